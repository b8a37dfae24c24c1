//! Tests that take long.

mod conformance;
mod features;
mod leave;
mod places;
mod security;
