//! Tests of the crate through what it offers, one program.

mod long;
