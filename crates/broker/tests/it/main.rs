//! Tests of the crate through what it offers, one program.

mod backpressure;
mod common;
mod conformance;
mod hostile;
mod mosquitto_clients;
mod protocol;
mod sessions;
