//! Tests that take long.

mod counters;
