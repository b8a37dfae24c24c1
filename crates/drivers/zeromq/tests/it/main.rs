//! Tests of the crate through what it offers, one program.

mod common;
mod connections;
mod delivery;
mod long;
mod queues;
mod resources;
mod threads;
mod wire;
