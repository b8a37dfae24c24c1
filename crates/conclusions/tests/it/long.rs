//! Tests that take long.

mod planted_pairs;
