//! What takes long.

mod counters;
