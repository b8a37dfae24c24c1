//! Time as the engine and the drivers see it: nanoseconds of one monotonic clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A point in time or a span, in nanoseconds.
///
/// Points count from the clock's own origin (for [`Clock::Monotonic`] the kernel's
/// `CLOCK_MONOTONIC`, which is the same for every process and network namespace of a host).
pub type Nanos = u64;

/// Where the time comes from. Real runs use [`Clock::Monotonic`]; tests over the simulated
/// system use [`Clock::Virtual`], which moves only when the simulated fleet sleeps, so that an
/// hour of traffic takes milliseconds.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The host's `CLOCK_MONOTONIC`.
    Monotonic,
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
            Clock::Virtual(now) => now.load(Ordering::Relaxed),
        }
    }

    /// Moves a virtual clock forward to `to` (never back). No effect on the monotonic clock.
    pub fn advance_to(&self, to: Nanos) {
        if let Clock::Virtual(now) = self {
            now.fetch_max(to, Ordering::Relaxed);
        }
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
