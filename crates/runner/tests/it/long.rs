//! Tests that take long.

mod claims;
mod pairs;
