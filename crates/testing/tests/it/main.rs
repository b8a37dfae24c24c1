//! Tests of the crate through what it offers, one program.

mod common;
mod confined;
mod proxy_bytes;
mod proxy_mqtt;
