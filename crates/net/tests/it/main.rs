//! Tests of the crate through what it offers, one program.

mod fleet;
mod keys;
mod trust;
