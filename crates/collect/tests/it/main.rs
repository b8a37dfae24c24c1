//! Tests of the crate through what it offers, one program.

#[path = "../common/mod.rs"]
mod common;

mod back_pressure;
mod brokers;
mod delivery;
#[cfg(feature = "upload")]
mod direct;
mod figures;
mod hostile;
#[cfg(feature = "kafka")]
mod kafka;
mod leaving;
mod partitions;
mod passwords;
mod reload;
#[cfg(feature = "upload")]
mod renewal;
mod replay;
mod strangers;
#[cfg(feature = "upload")]
mod upload;
mod websocket;
