//! Time as the engine and the drivers see it: nanoseconds of one monotonic clock.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// A point in time or a span, in nanoseconds.
///
/// Points count from the clock's own origin (for [`Clock::Monotonic`] the kernel's
/// `CLOCK_MONOTONIC`, which is the same for every process and network namespace of a host).
pub type Nanos = u64;

/// Where the time comes from. Real runs use [`Clock::Monotonic`], their workers on other hosts
/// [`Clock::Converted`]; tests over the simulated system use [`Clock::Virtual`], which moves only
/// when the simulated fleet sleeps, so that an hour of traffic takes milliseconds.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The host's `CLOCK_MONOTONIC`.
    Monotonic,
    /// Another host's `CLOCK_MONOTONIC`, computed from this host's.
    Converted(Course),
    /// Simulated time, advanced by the simulated system.
    Virtual(Arc<AtomicU64>),
}

impl Clock {
    /// A virtual clock that stands at `start`.
    pub fn virtual_at(start: Nanos) -> Self {
        Clock::Virtual(Arc::new(AtomicU64::new(start)))
    }

    /// The present.
    #[inline]
    pub fn now(&self) -> Nanos {
        match self {
            Clock::Monotonic => monotonic_now(),
            Clock::Converted(course) => course.far_reading(monotonic_now()),
            Clock::Virtual(now) => now.load(Ordering::Relaxed),
        }
    }

    /// Moves a virtual clock forward to `to` (never back). No effect on real ones.
    pub fn advance_to(&self, to: Nanos) {
        if let Clock::Virtual(now) = self {
            now.fetch_max(to, Ordering::Relaxed);
        }
    }
}

/// A linear conversion of one clock's readings into another's; it never goes back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// A reading of the near clock.
    pub near: Nanos,
    /// The reading of the far clock then.
    pub far: Nanos,
    /// By how much the far clock gains on the near one, ns per ns; between -0.5 and 0.5.
    pub drift: f64,
}

impl Course {
    /// The reading of the far clock when the near one reads `near`.
    #[inline]
    pub fn far_reading(&self, near: Nanos) -> Nanos {
        // Readings are below 2^63: clocks count from the start of their hosts.
        let passed = near as i64 - self.near as i64;
        (self.far as i64 + passed + (passed as f64 * self.drift) as i64).max(0) as Nanos
    }
}

impl fmt::Display for Course {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}", self.near, self.far, self.drift)
    }
}

/// A text that is no course of a clock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no course of a clock; expected NEAR,FAR,DRIFT")]
pub struct NoCourse(String);

impl FromStr for Course {
    type Err = NoCourse;

    fn from_str(text: &str) -> Result<Course, NoCourse> {
        let wrong = || NoCourse(text.to_owned());
        let mut parts = text.split(',');
        let mut reading = || {
            let reading: Option<Nanos> = parts.next()?.parse().ok();
            reading.filter(|reading| i64::try_from(*reading).is_ok())
        };
        let near = reading().ok_or_else(wrong)?;
        let far = reading().ok_or_else(wrong)?;
        let drift: Option<f64> = parts.next().and_then(|drift| drift.parse().ok());
        let drift = drift.filter(|drift| drift.abs() <= 0.5 && parts.next().is_none());
        let drift = drift.ok_or_else(wrong)?;
        Ok(Course { near, far, drift })
    }
}

/// The host's `CLOCK_MONOTONIC` in nanoseconds (a vDSO call, some 35 ns).
#[inline]
pub fn monotonic_now() -> Nanos {
    let mut ts = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `ts` is a valid, writable timespec and CLOCK_MONOTONIC always exists on Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut ts) };
    ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_is_a_straight_line() {
        let course = Course {
            near: 1_000_000_000,
            far: 5_000_000_000,
            drift: 1e-5,
        };
        assert_eq!(course.far_reading(1_000_000_000), 5_000_000_000);
        assert_eq!(course.far_reading(2_000_000_000), 6_000_010_000);
        assert_eq!(course.far_reading(0), 3_999_990_000);
        let behind = Course { far: 0, ..course };
        assert_eq!(behind.far_reading(0), 0, "a clock reads nothing below 0");
    }

    #[test]
    fn a_course_is_written_and_read() {
        let course = Course {
            near: 7,
            far: 1 << 62,
            drift: -0.000_012_345_678_9,
        };
        assert_eq!(course.to_string().parse(), Ok(course));
        for wrong in [
            "",
            "1,2",
            "1,2,3",
            "1,2,x",
            "-1,2,0",
            "1,2,0,0",
            "1,9223372036854775808,0",
            "1,2,NaN",
        ] {
            assert!(wrong.parse::<Course>().is_err(), "{wrong}");
        }
    }
}
