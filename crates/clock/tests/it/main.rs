//! Tests of the crate through what it offers, one program.

mod common;
mod properties;
mod simulated;
mod udp;
