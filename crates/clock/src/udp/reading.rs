//! Readings of a clock.

use std::sync::Arc;

use rustix::time::{ClockId, clock_gettime};

/// Reads a clock, ns.
pub type Reading = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The host's `CLOCK_MONOTONIC`, in ns: the clock that the engine measures on.
pub fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // It counts from the host's start.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
