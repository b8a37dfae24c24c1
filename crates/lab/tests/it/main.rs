//! Tests of the crate through what it offers, one program.

mod common;
mod plan;
mod real_time;
