//! Tests of the crate through what it offers, one program.

mod common;
mod conformance;
mod features;
mod leave;
mod places;
mod resources;
mod scripted;
mod security;
