//! The time of day, and whether it was set.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// A smaller step is none: clocks that are steered gain no more than half a millisecond in a second.
const STEP_NS: i64 = 1_000_000_000;

/// Two looks that lie further apart say nothing: this process stood still in between.
const LOOK_NS: i64 = 100_000_000;

/// Nanoseconds since 1970-01-01 UTC.
pub fn unix_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as i64)
}

/// Seconds since 1970-01-01 UTC.
pub fn unix_s() -> u64 {
    (unix_ns() / 1_000_000_000) as u64
}

/// Nanoseconds since the host was started, also while it slept.
fn boot_ns() -> i64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Finds that the time of day was set.
#[derive(Debug, Default)]
pub struct Steps {
    /// The start of the host by the time of day, when it was looked at last, ns since 1970.
    started_ns: Option<i64>,
}

impl Steps {
    /// By how much it was set since the last look, ns; forward if positive. `None` if it was not.
    pub fn look(&mut self) -> Option<i64> {
        let (before, now, after) = (boot_ns(), unix_ns(), boot_ns());
        (after - before <= LOOK_NS)
            .then(|| self.step_at(before, now))
            .flatten()
    }

    fn step_at(&mut self, boot_ns: i64, unix_ns: i64) -> Option<i64> {
        let started = unix_ns - boot_ns;
        let before = self.started_ns.replace(started)?;
        let step = started - before;
        (step.abs() >= STEP_NS).then_some(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_is_found_and_one_that_is_steered_is_not() {
        const S: i64 = 1_000_000_000;
        let mut steps = Steps::default();
        let mut offset = 1_795_676_400 * S;
        // A day that gains half a millisecond a second, and looks that are a second apart.
        for second in 0..86_400 {
            offset += 500_000;
            assert_eq!(steps.step_at(second * S, offset + second * S), None);
        }
        let mut boot = 86_400 * S;
        for step in [3600 * S, -7200 * S, 2 * S] {
            offset += step;
            boot += S / 5;
            assert_eq!(steps.step_at(boot, offset + boot), Some(step));
            assert_eq!(
                steps.step_at(boot + 1, offset + boot + 1),
                None,
                "told once"
            );
        }
    }
}
