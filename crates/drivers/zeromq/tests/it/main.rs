//! Tests of the crate through what it offers, one program.

mod common;
mod conformance;
mod connections;
mod delivery;
mod queues;
mod resources;
mod threads;
mod wire;
