//! The pulse of a worker: whether each turn of its loop began when it was due.

use std::ops::Range;

use pubgauge_driver::{Clock, Nanos};

use crate::usage::accounted;

/// Shortest delay of the loop that counts.
const FLOOR: Nanos = 5_000_000;
/// How often the kernel's times of the thread are read.
const EVERY: Nanos = 20_000_000;

/// Finds the times in which the worker's thread neither ran nor waited for a processor though its
/// sleep was over: a stopped process, a virtual machine that was not run.
///
/// What the kernel counts as the thread's running or waiting since the last reading is taken off
/// each delay, so that a stall is reported too short rather than where there was none.
pub struct Pulse {
    simulated: bool,
    /// When the loop's next turn should begin.
    due: Nanos,
    read_at: Nanos,
    accounts: Nanos,
    /// In the measurement, ns.
    pub stalled: Nanos,
    /// The longest, ns.
    pub longest: Nanos,
    /// Before and after the measurement, ns.
    pub outside: Nanos,
}

impl Pulse {
    /// A worker whose loop begins.
    pub fn new(clock: &Clock) -> Self {
        Pulse {
            simulated: matches!(clock, Clock::Virtual(_)),
            due: Nanos::MAX,
            read_at: 0,
            accounts: 0,
            stalled: 0,
            longest: 0,
            outside: 0,
        }
    }

    /// A turn of the loop begins.
    #[inline]
    pub fn beat(&mut self, now: Nanos, measurement: &Range<Nanos>) {
        if now >= self.due.saturating_add(FLOOR) {
            self.late(now, measurement);
        } else if now >= self.read_at + EVERY {
            self.read(now);
        }
        self.due = now;
    }

    /// The loop sleeps until `until` at the latest.
    #[inline]
    pub fn sleeps(&mut self, until: Nanos) {
        self.due = self.due.max(until);
    }

    #[cold]
    fn late(&mut self, now: Nanos, measurement: &Range<Nanos>) {
        let before = self.accounts;
        self.read(now);
        let accounted = self.accounts - before;
        // Accounted time is taken off the beginning.
        let all = now.saturating_sub(self.due + accounted);
        if all < FLOOR {
            return;
        }
        let from = (now - all).max(measurement.start);
        let within = now.min(measurement.end).saturating_sub(from);
        self.outside += all - within;
        if within >= FLOOR {
            self.stalled += within;
            self.longest = self.longest.max(within);
        }
    }

    fn read(&mut self, now: Nanos) {
        self.read_at = now;
        if !self.simulated {
            self.accounts = self.accounts.max(accounted());
        }
    }

    /// The kernel's times of the thread, running and waiting, as they were read last, ns.
    pub fn accounts(&self) -> Nanos {
        self.accounts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    fn pulse() -> Pulse {
        Pulse::new(&Clock::virtual_at(0))
    }

    #[test]
    fn a_loop_that_comes_round_has_no_stalls() {
        let mut pulse = pulse();
        for turn in 0..100 {
            pulse.beat(turn * 10 * MS, &(0..1_000 * MS));
            pulse.sleeps((turn + 1) * 10 * MS - MS);
        }
        assert_eq!(pulse.stalled, 0);
    }

    #[test]
    fn a_stall_counts_from_when_the_sleep_was_over_and_within_the_measurement() {
        let mut pulse = pulse();
        pulse.beat(100 * MS, &(0..1_000 * MS));
        pulse.sleeps(110 * MS);
        pulse.beat(400 * MS, &(0..1_000 * MS));
        assert_eq!((pulse.stalled, pulse.longest), (290 * MS, 290 * MS));
        pulse.sleeps(0);
        pulse.beat(1_200 * MS, &(0..1_000 * MS));
        assert_eq!((pulse.stalled, pulse.longest), (890 * MS, 600 * MS));
        assert_eq!(pulse.outside, 200 * MS);
    }

    #[test]
    fn a_busy_thread_does_not_stall() {
        let mut pulse = Pulse::new(&Clock::Monotonic);
        let now = || pubgauge_driver::clock::monotonic_now();
        let all = 0..Nanos::MAX;
        pulse.beat(now(), &all);
        pulse.sleeps(0);
        let began = now();
        while now() < began + 60 * MS {}
        pulse.beat(now(), &all);
        assert!(pulse.stalled < 40 * MS, "{} ns", pulse.stalled);
    }
}
