//! Tests of the crate through what it offers, one program.

#[path = "../common/mod.rs"]
mod common;

mod back_pressure;
mod brokers;
mod delivery;
mod hostile;
mod reload;
