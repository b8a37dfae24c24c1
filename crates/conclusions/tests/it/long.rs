//! What takes long.

mod planted_pairs;
