//! Tests of the crate through what it offers, one program.

mod acknowledgements;
mod bursts;
mod coming_and_going;
mod groups;
mod late;
mod load_over_time;
mod long;
mod parties;
mod percentiles;
mod planted;
mod processes;
mod promises;
mod search;
mod slow;
mod study;
mod sweep;
mod sweep_ramps;
mod truth;
mod tuning;
mod wills;
mod windows;
