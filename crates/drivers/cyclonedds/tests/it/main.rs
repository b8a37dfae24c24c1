//! Tests of the crate through what it offers, one program.

mod common;
mod long;
mod qos;
mod resources;
mod wire;
