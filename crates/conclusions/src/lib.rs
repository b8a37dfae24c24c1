//! Conclusions from the trials of a run. Pure: what comes next and what follows is decided from stored trials alone, and
//! told elsewhere.
//!
//! - [`compare`]: two runs, systems or settings: effect, interval and verdict for each figure; the rounds of a comparison.
//! - [`answer`]: which cells carry their load, who wins at what, limits, and what would tell more.
//! - [`device_cost`]: what one more connection or topic costs a system.
//! - [`summary`]: trials grouped by workload and cell; [`naming`]: the names of their rows.
//! - [`claims`]: whether what a study claims holds for what a run measured, and which repeats would decide it.

#![forbid(unsafe_code)]

pub mod answer;
mod carries;
mod cell;
pub mod claims;
pub mod compare;
pub mod device_cost;
pub mod judgement;
mod metric;
pub mod naming;
pub mod summary;
pub mod wins;

pub use carries::Carries;
pub use cell::Cell;
pub use cell::is_reference;
pub use metric::Contest;
