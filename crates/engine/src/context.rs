//! What a worker has beside its assignment.

use std::sync::Arc;

use pubgauge_driver::{Clock, Driver, Filler, Nanos, Settings, Target};

use crate::assignment::Brief;

/// What a worker needs beside its assignment.
#[derive(Clone)]
pub struct Context {
    /// The workload and what follows from it.
    pub brief: Arc<Brief>,
    pub driver: Arc<dyn Driver>,
    /// The system.
    pub target: Target,
    /// What the application asks for, as [`crate::assignment::Assignment::settings`] counts.
    pub settings: Arc<[Settings]>,
    /// The trial's clock.
    pub clock: Clock,
    /// Origin of the times in headers.
    pub epoch: Nanos,
    /// Bodies of messages.
    pub filler: Arc<Filler>,
    /// For each stream, how many workers have parties that hear it.
    pub spread: Arc<[u16]>,
    /// Groups with members on several workers, as indices into the audience's parties.
    pub apart: Arc<[u32]>,
}
