//! Tests of the crate through what it offers, one program.

mod common;
mod garbage;
mod oracle;
mod round_trip;
