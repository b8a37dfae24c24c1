//! The engine: it owns time, the schedule, the header and the counting.
//!
//! A trial is split into [`assignment`]s for [`worker`]s, each of which drives one fleet in one
//! loop; a [`conductor`] leads them through the phases (connect, prove readiness, warm up,
//! measure, drain) and adds their [`recording`]s up.

pub mod assignment;
pub mod bursts;
pub mod conductor;
mod context;
mod counts;
pub mod groups;
mod histograms;
pub mod intervals;
pub mod ledger;
pub mod link;
pub mod live;
pub mod parts;
mod pulse;
pub mod receiving;
pub mod record;
pub mod recording;
mod reports;
pub mod sending;
pub mod series;
pub mod times;
pub mod timetable;
mod usage;
pub mod window;
pub mod worker;
