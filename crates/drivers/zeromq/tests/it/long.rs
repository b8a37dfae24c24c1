//! What takes long.

mod conformance;
