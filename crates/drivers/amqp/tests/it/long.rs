//! What takes long.

mod conformance;
mod features;
mod leave;
mod places;
mod security;
