//! Samples threads of this process and of others.

use std::collections::BTreeMap;

use pubgauge_driver::Nanos;
use pubgauge_driver::clock::monotonic_now;
use serde::Serialize;

use super::kernel::{ThreadFiles, thread_cpu_ns};

/// The number of the calling thread.
pub fn current_tid() -> i32 {
    // SAFETY: gettid cannot fail.
    unsafe { libc::gettid() }
}

/// Watches some threads.
///
/// CPU time comes from the CPU clock for threads of this process, up to the moment of the call. For other threads it is
/// the first field of `schedstat`, which lags by at most one clock tick (10 ms). Waiting time is the second field of
/// `schedstat`, which the kernel updates whenever the thread gets a processor.
/// A thread that has ended keeps the figures of the last sample in which it was seen, so take one
/// before it ends.
#[derive(Debug, Default)]
pub struct ThreadSampler {
    threads: BTreeMap<i32, Watched>,
}

#[derive(Debug)]
struct Watched {
    files: ThreadFiles,
    figures: ThreadFigures,
}

/// Figures of one thread since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ThreadFigures {
    /// Nanoseconds on a processor.
    pub cpu_ns: u64,
    /// Nanoseconds of waiting for a processor while ready to run.
    pub wait_ns: u64,
    /// Times it went to sleep.
    pub voluntary_switches: u64,
    /// Times it was pushed off its processor.
    pub involuntary_switches: u64,
}

/// Figures of all watched threads at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ThreadSample {
    /// When the sample began, ns of `CLOCK_MONOTONIC`.
    pub at_ns: Nanos,
    /// The sum over all watched threads, those that have ended included.
    pub total: ThreadFigures,
    /// Each thread, by number.
    pub threads: BTreeMap<i32, ThreadFigures>,
}

impl ThreadSampler {
    /// Watches threads: (process, thread).
    pub fn new(threads: impl IntoIterator<Item = (i32, i32)>) -> Self {
        let mut sampler = ThreadSampler::default();
        sampler.watch(threads);
        sampler
    }

    /// Watches further threads: (process, thread).
    pub fn watch(&mut self, threads: impl IntoIterator<Item = (i32, i32)>) {
        for (pid, tid) in threads {
            self.threads.entry(tid).or_insert_with(|| Watched {
                files: ThreadFiles::new(pid, tid, true),
                figures: ThreadFigures::default(),
            });
        }
    }

    /// Takes a sample: two files and a clock per thread.
    pub fn sample(&mut self) -> ThreadSample {
        let mut sample = ThreadSample {
            at_ns: monotonic_now(),
            ..ThreadSample::default()
        };
        for (tid, watched) in &mut self.threads {
            let figures = &mut watched.figures;
            if let Some((cpu_ns, wait_ns)) = watched.files.run_and_wait() {
                figures.cpu_ns = figures.cpu_ns.max(cpu_ns);
                figures.wait_ns = wait_ns;
                // Only while its files can be read: the number may belong to another thread.
                if let Some(cpu_ns) = thread_cpu_ns(*tid) {
                    figures.cpu_ns = figures.cpu_ns.max(cpu_ns);
                }
            }
            if let Some(switches) = watched.files.switches() {
                figures.voluntary_switches = switches.voluntary;
                figures.involuntary_switches = switches.involuntary;
            }
            sample.total.add(figures);
            sample.threads.insert(*tid, *figures);
        }
        sample
    }
}

impl ThreadFigures {
    fn add(&mut self, other: &ThreadFigures) {
        self.cpu_ns += other.cpu_ns;
        self.wait_ns += other.wait_ns;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
    }
}
