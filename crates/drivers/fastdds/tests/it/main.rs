//! Tests of the crate through what it offers, one program.

mod common;
mod conformance;
mod delivery;
mod resources;
