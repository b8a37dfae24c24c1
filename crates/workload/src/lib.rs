//! The work of devices and applications, as plain data: who publishes what to whom, how big, when.
//!
//! Everything here is pure. A [`Workload`] is fully resolved: templates are expanded, times are in
//! nanoseconds and sizes in bytes. The study crate builds it, the engine runs it.

pub mod audience;
pub mod brokers;
pub mod census;
pub mod check;
pub mod curve;
mod draws;
mod fan;
mod goers;
pub mod identity;
mod late;
pub mod mark;
mod model;
mod popularity;
pub mod presence;
pub mod schedule;
mod seeds;
mod slow;
#[cfg(test)]
mod tests_support;
pub mod trace;
mod units;
mod volume;
mod wills;

pub use audience::{Audience, AudienceError, Party, StreamInfo};
pub use brokers::{MOST_BROKERS, PlacementError};
pub use census::Census;
pub use check::WorkloadError;
pub use curve::{RateCurve, RatePiece};
pub use identity::Identity;
pub use model::{
    Arrivals, Device, Exchange, Flow, LastWill, Phases, Publisher, Replay, ReplayMode, Sizes,
    Subscriber, Until, Window, Workload,
};
pub use popularity::MOST_TOPIC_ZIPF;
pub use pubgauge_driver::topic::{self as filter, TopicMatch};
pub use schedule::{Due, Gate, Schedule, ScheduleError, Shard};
pub use trace::{Trace, TraceError, TraceSource};
pub use units::{BURST_SLOT, MAX_SIZE, MIN_SIZE, Nanos, SECOND};
pub use volume::{Volume, Volumes};
pub use wills::WillWatchers;
