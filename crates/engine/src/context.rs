//! The context of a worker, beside its assignment.

use std::sync::Arc;

use pubgauge_driver::{Clock, Driver, Filler, Nanos, Settings, Target};

use crate::assignment::Brief;

/// The context that a worker needs beside its assignment.
#[derive(Clone)]
pub struct Context {
    /// The workload and what follows from it.
    pub brief: Arc<Brief>,
    pub driver: Arc<dyn Driver>,
    /// The system.
    pub target: Target,
    /// The application's demands, as [`crate::assignment::Assignment::settings`] counts them.
    pub settings: Arc<[Settings]>,
    /// The trial's clock.
    pub clock: Clock,
    /// Origin of the times in headers.
    pub epoch: Nanos,
    /// Bodies of messages.
    pub filler: Arc<Filler>,
    /// For each stream, how many workers have parties that hear it, without slow ones.
    pub spread: Arc<[u16]>,
    /// Groups with members on several workers, as indices into the audience's parties.
    pub apart: Arc<[u32]>,
}
