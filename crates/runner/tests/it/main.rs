//! Tests of the crate through what it offers, one program.

mod bursts;
mod claims;
mod groups;
mod pairs;
mod planted;
mod processes;
mod search;
mod study;
mod truth;
