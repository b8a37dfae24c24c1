//! The engine: it owns time, the schedule, the header and the counting.
//!
//! A trial is split into [`assignment`]s for [`worker`]s, each of which drives one fleet in one
//! loop; a [`conductor`] leads them through the phases (connect, prove readiness, warm up,
//! measure, drain) and adds their [`recording`]s up.

pub mod absences;
pub mod assignment;
pub mod bursts;
mod calls;
pub mod conductor;
pub mod connecting;
mod context;
mod counts;
mod descriptors;
pub mod failures;
pub mod groups;
mod heartbeat;
mod histograms;
mod intervals;
mod late;
mod ledger;
pub mod link;
pub mod live;
mod message_counts;
pub mod parties;
pub mod parts;
mod pulse;
mod receiving;
pub mod record;
pub mod recording;
mod reports;
mod sending;
pub mod series;
mod slow;
pub mod times;
pub mod timetable;
pub mod usage;
mod wills;
mod window;
pub mod worker;
