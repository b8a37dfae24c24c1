//! Tests of the crate through what it offers, one program.

mod common;
mod long;
mod resources;
mod scripted;
