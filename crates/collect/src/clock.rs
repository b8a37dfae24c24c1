//! The time of day.

use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds since 1970-01-01 UTC.
pub fn unix_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as i64)
}

/// Seconds since 1970-01-01 UTC.
pub fn unix_s() -> u64 {
    (unix_ns() / 1_000_000_000) as u64
}
