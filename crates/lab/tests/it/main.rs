//! Tests of the crate through what it offers, one program.

mod common;
mod network;
mod plan;
mod wires;
