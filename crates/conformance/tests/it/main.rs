//! Tests of the crate through what it offers, one program.

mod last_value;
mod mutants;
mod simulated;
