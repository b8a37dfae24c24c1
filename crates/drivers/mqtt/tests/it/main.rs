//! Tests of the crate through what it offers, one program.

mod common;
mod conformance;
mod counts;
mod features;
mod handshakes;
mod java_brokers;
mod leave;
mod promises;
mod resources;
mod scripted;
mod security;
mod sockets;
