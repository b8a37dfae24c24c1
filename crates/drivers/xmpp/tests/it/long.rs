//! What takes long.

mod capabilities;
mod conformance;
mod crowd;
mod features;
mod leave;
mod mqtt_variant;
mod nodes;
mod places;
mod security;
