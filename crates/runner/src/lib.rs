//! Runs a planned trial up to its stored form: the system is started, the engine runs, its record
//! and the observations become figures, the figures are judged, the system is stopped. Nothing here
//! prints.

use std::sync::{Mutex, MutexGuard, PoisonError};

mod answers;
mod bursts;
mod circumstances;
pub mod convert;
mod counters;
pub mod describe;
mod distribution;
mod failures;
mod groups;
mod held_limits;
pub mod hosts;
mod instances;
mod job;
mod late;
pub mod limits;
mod logs;
mod messages;
pub mod network;
pub mod observe;
mod on_request;
mod parties;
mod processes;
mod record_sums;
mod running_system;
pub mod searching;
mod series;
pub mod simulated;
mod sizes;
mod slow;
mod started_trial;
pub mod trial;
pub mod tuning;
mod wills;
mod windows;
pub mod worker_thread;
mod workers_place;

pub use job::{ClientConfig, Environment, Job, ResolvedSettings, TrialRequest, Watch};
pub use processes::{ProcessPlace, Processes};
pub use running_system::Kept;
pub use sizes::OwnCost;
pub use trial::perform;

/// Locks a mutex, also after a thread has panicked that held it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
