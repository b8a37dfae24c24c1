//! Conclusions from the trials of a run. Pure: what comes next and what follows is decided from stored trials alone, and
//! told elsewhere.
//!
//! - [`compare`]: two runs, systems or settings: effect, interval and verdict for each figure; the rounds of a comparison.
//! - [`claims`]: whether what a study claims holds for what a run measured, and which repeats would decide it.

#![forbid(unsafe_code)]

pub mod claims;
pub mod compare;
