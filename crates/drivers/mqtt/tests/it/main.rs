//! Tests of the crate through what it offers, one program.

mod common;
mod counts;
mod features;
mod handshakes;
mod leave;
mod long;
mod resources;
mod scripted;
mod security;
mod sockets;
mod websocket;
