//! Tests that take long.

mod conformance;
