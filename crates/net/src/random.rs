//! Random numbers.

/// A random number that nobody can guess from those before it.
pub fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    // The standard library seeds each `RandomState` from the operating system's random numbers.
    std::hash::RandomState::new().build_hasher().finish()
}
