//! Work beside a collection: progress, signs of life, another configuration.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use pubgauge_collect::config::{self, Config, Given};
use pubgauge_collect::{Notice, Reloads, Status, Watch};

use crate::log::Log;
use crate::progress::Since;
use crate::service::Service;

/// How often progress is shown on a terminal, and elsewhere.
const DRAWN_EVERY: Duration = Duration::from_millis(500);
const LINE_EVERY: Duration = Duration::from_secs(60);

/// How often it is looked what is due.
const LOOK: Duration = Duration::from_millis(50);

/// Does the work beside a collection.
pub struct Attendant<'a> {
    pub status: &'a Status,
    pub log: &'a Log,
    pub service: &'a Service,
    /// The file to read again, if the collection comes from one.
    pub file: Option<Again<'a>>,
}

/// A collect file that is read again.
pub struct Again<'a> {
    pub path: &'a Path,
    pub given: Given,
    /// As it was at the beginning.
    pub config: Config,
    /// Set when it is to be read.
    pub asked: &'a AtomicBool,
    pub reloads: Reloads,
    pub watch: Watch,
}

impl Attendant<'_> {
    /// Works until the sender is dropped.
    pub fn attend(&self, over: &Receiver<()>) {
        let line_every = if self.log.draws() {
            DRAWN_EVERY
        } else {
            LINE_EVERY
        };
        let mut shown = (Instant::now(), Since::now(self.status));
        let mut told = (Instant::now(), Since::now(self.status));
        while over.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            if let Some(file) = self.file.as_ref().filter(|file| file.is_asked()) {
                self.service.reloading();
                file.read();
            }
            let now = Instant::now();
            if now.saturating_duration_since(shown.0) >= line_every {
                self.log.progress(&shown.1.progress(self.status));
                shown = (now, Since::now(self.status));
            }
            if self.service.is_due(told.0, now) {
                self.service
                    .alive(self.status, &told.1.progress(self.status));
                told = (now, Since::now(self.status));
            }
        }
        self.log.clear();
    }
}

impl Again<'_> {
    fn is_asked(&self) -> bool {
        self.asked.swap(false, Relaxed)
    }

    fn read(&self) {
        match config::read_again(self.path, &self.given, &self.config) {
            Ok(config) => self.reloads.replace(config),
            Err(error) => {
                let why = error.to_string();
                (self.watch)(&Notice::NotReloaded { why });
            }
        }
    }
}
