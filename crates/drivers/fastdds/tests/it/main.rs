//! Tests of the crate through what it offers, one program.

mod common;
mod delivery;
mod long;
mod resources;
