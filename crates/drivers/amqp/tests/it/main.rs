//! Tests of the crate through what it offers, one program.

mod codec;
mod common;
mod long;
mod resources;
mod scripted;
