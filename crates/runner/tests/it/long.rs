//! What takes long.

mod claims;
mod pairs;
