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
        }
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
