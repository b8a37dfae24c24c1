//! Tests of the crate through what it offers, one program.

mod capabilities;
mod common;
mod conformance;
mod crowd;
mod features;
mod leave;
mod mqtt_variant;
mod nodes;
mod places;
mod resources;
mod scripted;
mod security;
