//! What shows on a machine alone that is not busy with other things.

mod network;
mod wires;
