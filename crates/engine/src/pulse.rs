//! The pulse of a worker: whether each turn of its loop began when it was due.

use std::ops::Range;

use pubgauge_driver::{Clock, Nanos};

use crate::usage::{running, waiting};

/// Shortest delay of the loop that counts.
pub const FLOOR: Nanos = 5_000_000;
/// How often the kernel's times of the thread are read.
const EVERY: Nanos = 20_000_000;

/// Finds the times in which the worker's thread neither ran nor waited for a processor though its
/// sleep was over: a stopped process, a virtual machine that was not run.
///
/// The time that the kernel counts as the thread's running or waiting since the last reading is taken off each delay, so that
/// a stall is reported too short rather than where there was none. A worker whose library sleeps in calls has a
/// [`Heartbeat`](crate::heartbeat::Heartbeat) instead.
pub struct Pulse {
    rounds: Rounds,
    stalls: Stalls,
}

/// Times in which a thread stood still.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stalls {
    /// In the measurement, ns.
    pub within: Nanos,
    /// The longest in the measurement, ns.
    pub longest: Nanos,
    /// Before and after the measurement, ns.
    pub outside: Nanos,
    /// The most that the thread waited for a processor between two readings of the kernel's times within the measurement,
    /// some 20 ms apart, ns: no single wait was longer.
    pub longest_wait: Nanos,
}

impl Stalls {
    /// Adds a stall.
    pub fn add(&mut self, stall: Range<Nanos>, measurement: &Range<Nanos>) {
        let all = stall.end - stall.start;
        let within = stall
            .end
            .min(measurement.end)
            .saturating_sub(stall.start.max(measurement.start));
        self.outside += all - within;
        if within >= FLOOR {
            self.within += within;
            self.longest = self.longest.max(within);
        }
    }
}

impl Pulse {
    /// A worker whose loop begins.
    pub fn new(clock: &Clock) -> Self {
        Pulse {
            rounds: Rounds::new(clock),
            stalls: Stalls::default(),
        }
    }

    /// A turn of the loop begins.
    #[inline]
    pub fn beat(&mut self, now: Nanos, measurement: &Range<Nanos>) {
        if let Some(stall) = self.rounds.beat(now) {
            self.stalls.add(stall, measurement);
        }
        if self.rounds.waited > self.stalls.longest_wait && measurement.contains(&now) {
            self.stalls.longest_wait = self.rounds.waited;
        }
    }

    /// The loop sleeps until `until` at the latest.
    #[inline]
    pub fn sleeps(&mut self, until: Nanos) {
        self.rounds.due = self.rounds.due.max(until);
    }

    /// The kernel's times of the thread, running and waiting, as they were read last, ns.
    pub fn accounts(&self) -> Nanos {
        self.rounds.accounts
    }

    /// The stalls until now.
    pub fn stalls(&self) -> Stalls {
        self.stalls
    }
}

/// When a thread's next turn should begin, and what the kernel counts for it.
pub struct Rounds {
    simulated: bool,
    /// When the next turn should begin.
    pub due: Nanos,
    read_at: Nanos,
    accounts: Nanos,
    waiting: Nanos,
    /// For how long the thread waited for a processor between the last two readings, ns.
    pub waited: Nanos,
}

impl Rounds {
    /// A thread that begins.
    pub fn new(clock: &Clock) -> Self {
        Rounds {
            simulated: matches!(clock, Clock::Virtual(_)),
            due: Nanos::MAX,
            read_at: 0,
            accounts: 0,
            waiting: 0,
            waited: 0,
        }
    }

    /// A turn begins; the stall before it, if there was one.
    #[inline]
    pub fn beat(&mut self, now: Nanos) -> Option<Range<Nanos>> {
        let mut stall = None;
        if now >= self.due.saturating_add(FLOOR) {
            stall = self.late(now);
        } else if now >= self.read_at + EVERY {
            self.read(now);
        }
        self.due = now;
        stall
    }

    #[cold]
    fn late(&mut self, now: Nanos) -> Option<Range<Nanos>> {
        let before = self.accounts;
        self.read(now);
        let accounted = self.accounts - before;
        // Accounted time is taken off the beginning.
        let from = self.due + accounted;
        (now >= from + FLOOR).then_some(from..now)
    }

    fn read(&mut self, now: Nanos) {
        self.read_at = now;
        if !self.simulated {
            let waiting = waiting();
            self.waited = waiting.saturating_sub(self.waiting);
            self.waiting = waiting;
            self.accounts = self.accounts.max(running() + waiting);
        }
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
        assert_eq!(pulse.stalls, Stalls::default());
    }

    #[test]
    fn a_stall_counts_from_when_the_sleep_was_over_and_within_the_measurement() {
        let mut pulse = pulse();
        pulse.beat(100 * MS, &(0..1_000 * MS));
        pulse.sleeps(110 * MS);
        pulse.beat(400 * MS, &(0..1_000 * MS));
        assert_eq!(
            (pulse.stalls.within, pulse.stalls.longest),
            (290 * MS, 290 * MS)
        );
        pulse.sleeps(0);
        pulse.beat(1_200 * MS, &(0..1_000 * MS));
        let expected = Stalls {
            within: 890 * MS,
            longest: 600 * MS,
            outside: 200 * MS,
            longest_wait: 0,
        };
        assert_eq!(pulse.stalls, expected);
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
        assert!(pulse.stalls.within < 40 * MS, "{:?}", pulse.stalls);
    }
}
