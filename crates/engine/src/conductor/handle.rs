//! A worker as the conductor knows it.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use crate::assignment::Role;
use crate::link::WorkerLink;
use crate::live::LiveCounters;
use crate::recording::Recording;
use crate::reports::{Command, Sent};

/// Where reports arrive, by the worker's number.
pub(super) type Inbox = Receiver<Sent>;

/// A worker, as the conductor knows it.
pub(super) struct WorkerHandle {
    pub(super) link: Option<Box<dyn WorkerLink>>,
    pub(super) role: Role,
    pub(super) counters: LiveCounters,
    /// For how long the conductor has waited for reports since the worker's last.
    pub(super) silent: Duration,
    pub(super) ready: bool,
    pub(super) gone: bool,
    pub(super) closing: bool,
    pub(super) recording: Option<Recording>,
    /// Record by record, histograms that it has handed in.
    handed_in: Vec<u32>,
}

impl WorkerHandle {
    /// A worker; one that could not be started has no link.
    pub(super) fn new(link: Option<Box<dyn WorkerLink>>, role: Role) -> Self {
        WorkerHandle {
            link,
            role,
            counters: LiveCounters::default(),
            silent: Duration::ZERO,
            ready: false,
            gone: false,
            closing: false,
            recording: None,
            handed_in: Vec::new(),
        }
    }

    /// Notes a histogram of a record, of which the worker has `most` at the most.
    ///
    /// # Errors
    /// That it has handed in more.
    pub(super) fn hand_in(&mut self, number: u32, most: usize) -> Result<(), String> {
        let number = number as usize;
        if self.handed_in.len() <= number {
            self.handed_in.resize(number + 1, 0);
        }
        let count = &mut self.handed_in[number];
        *count += 1;
        if *count as usize <= most {
            return Ok(());
        }
        Err(format!(
            "it hands in more than {most} histograms of one interval, which is what the trial has"
        ))
    }

    pub(super) fn is_over(&self) -> bool {
        self.gone || self.link.is_none() || self.recording.is_some()
    }

    pub(super) fn send(&mut self, command: Command) {
        if let Some(link) = &mut self.link {
            link.send(command);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_interval_has_more_histograms_than_the_trial() {
        let mut handle = WorkerHandle::new(None, Role::Subscribers);
        for number in [0, 7, 0, 7] {
            handle.hand_in(number, 2).unwrap();
        }
        let why = handle.hand_in(7, 2).unwrap_err();
        assert!(
            why.contains("more than 2 histograms of one interval"),
            "{why}"
        );
        handle.hand_in(8, 2).unwrap();
    }
}
