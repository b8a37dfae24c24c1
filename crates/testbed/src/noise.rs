//! The machine's own noise: how late a thread wakes up that only sleeps.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use pubgauge_driver::Nanos;
use pubgauge_driver::clock::monotonic_now;
use rustix::io::Errno;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec};

use crate::lock::lock;
use crate::realtime::set_timer_slack;
use crate::sampler::current_tid;

/// Time between two wake-ups: 4 ms, in ns. A second has 250 samples, which bear a 99th percentile from 1.2 s on; waking
/// up more often takes processor time from client and system.
pub const NOISE_INTERVAL: Nanos = 4_000_000;

/// Samples kept until they are drained: 17 minutes' worth.
const CAPACITY: usize = 1 << 18;

/// A thread that is to wake up every [`NOISE_INTERVAL`] (absolute times of `CLOCK_MONOTONIC`, timer
/// slack 1 ns) and records how late it woke up each time.
///
/// A stall of 50 ms gives 12 samples, of 50 ms, 46 ms and so on: every moment of the stall
/// weighs as much as a quiet one. The thread costs 5 to 10 µs of CPU a wake-up, up to 0.3 % of a
/// processor; [`NoiseMeter::tid`] gives its number, so that its cost is not added to the client's.
pub struct NoiseMeter {
    shared: Arc<SharedNoise>,
    began: Nanos,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct SharedNoise {
    stop: AtomicBool,
    tid: AtomicI32,
    dropped: AtomicU64,
    samples: Mutex<Vec<Nanos>>,
}

impl NoiseMeter {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start() -> io::Result<Self> {
        let shared = Arc::new(SharedNoise::default());
        let theirs = Arc::clone(&shared);
        let began = monotonic_now();
        let thread = std::thread::Builder::new()
            .name("noise".to_owned())
            .spawn(move || theirs.measure(began))?;
        Ok(NoiseMeter {
            shared,
            began,
            thread: Some(thread),
        })
    }

    /// The lateness of each wake-up since the last call, ns, in order. To be called about once a
    /// second.
    pub fn drain(&self) -> Vec<Nanos> {
        let fresh = Vec::with_capacity(2048);
        std::mem::replace(&mut *lock(&self.shared.samples), fresh)
    }

    /// When its first wake-up was due, less [`NOISE_INTERVAL`]: the others follow, one each interval.
    pub fn start_time(&self) -> Nanos {
        self.began
    }

    /// Samples that were discarded because nobody drained them for 17 minutes.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// The thread's number, to leave its cost out of the client's; 0 until it has begun.
    pub fn tid(&self) -> i32 {
        self.shared.tid.load(Ordering::Relaxed)
    }

    /// Ends the thread and returns what was not drained yet.
    pub fn stop(mut self) -> Vec<Nanos> {
        self.finish();
        self.drain()
    }

    fn finish(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It cannot panic; if it did, there would only be no more samples.
            let _ = thread.join();
        }
    }
}

impl Drop for NoiseMeter {
    fn drop(&mut self) {
        self.finish();
    }
}

impl SharedNoise {
    fn measure(&self, began: Nanos) {
        self.tid.store(current_tid(), Ordering::Relaxed);
        // A refusal is no error: the figures then show 50 µs of slack, as other programs have it.
        let _ = set_timer_slack(1);
        let mut due = began + NOISE_INTERVAL;
        while !self.stop.load(Ordering::Relaxed) {
            sleep_until(due);
            let late = monotonic_now().saturating_sub(due);
            let mut samples = lock(&self.samples);
            if samples.len() < CAPACITY {
                samples.push(late)
            } else {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
            drop(samples);
            due += NOISE_INTERVAL;
        }
    }
}

fn sleep_until(due: Nanos) {
    let until = Timespec {
        tv_sec: (due / 1_000_000_000) as _,
        tv_nsec: (due % 1_000_000_000) as _,
    };
    // A signal ends the sleep early, so it is begun again.
    while clock_nanosleep_absolute(ClockId::Monotonic, &until) == Err(Errno::INTR) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_sample_for_every_interval() {
        let begin = monotonic_now();
        let meter = NoiseMeter::start().unwrap();
        let mut samples = Vec::new();
        let deadline = begin + 10_000 * NOISE_INTERVAL;
        // A busy machine catches up on the wake-ups that it missed, at any time.
        loop {
            samples.extend(meter.drain());
            let passed = (monotonic_now() - begin) / NOISE_INTERVAL;
            assert!(
                samples.len() as u64 <= passed,
                "{} in {passed} intervals",
                samples.len()
            );
            if passed > 50 && samples.len() as u64 >= passed * 9 / 10 {
                break;
            }
            assert!(
                monotonic_now() < deadline,
                "{} in {passed} intervals",
                samples.len()
            );
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(meter.tid() > 0 && meter.dropped() == 0);
        samples.extend(meter.stop());
        let whole = monotonic_now() - begin;
        assert!(samples.iter().all(|late| *late < whole));
    }

    #[test]
    fn a_sleep_never_ends_early() {
        for _ in 0..5 {
            let due = monotonic_now() + NOISE_INTERVAL;
            sleep_until(due);
            assert!(monotonic_now() >= due);
        }
    }
}
