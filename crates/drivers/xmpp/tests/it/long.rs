//! Tests that take long.

mod conformance;
mod crowd;
mod features;
mod leave;
mod mqtt_variant;
mod nodes;
mod places;
mod security;
