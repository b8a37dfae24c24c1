//! Tests that need a machine that is not busy with other things.

mod network;
mod wires;
