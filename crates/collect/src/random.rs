//! Random numbers.

/// A random number.
pub(crate) fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    // The standard library seeds each `RandomState` from the operating system's random numbers.
    std::hash::RandomState::new().build_hasher().finish()
}
