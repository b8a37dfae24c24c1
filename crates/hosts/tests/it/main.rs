//! Tests of the crate through what it offers, one program.

mod common;
mod joining;
mod strangers;
mod trial;
