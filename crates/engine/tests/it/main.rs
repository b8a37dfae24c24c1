//! Tests of the crate through what it offers, one program.

mod brokers;
mod groups;
mod pacing;
mod truth;
mod windows;
