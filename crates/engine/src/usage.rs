//! What threads of this process use, from the kernel's own accounting in nanoseconds.

use std::fs;
use std::io::Read;

use pubgauge_driver::{Clock, Nanos};

use crate::recording::Usage;

/// A reading of the times that the kernel counts for the calling worker.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    at: Nanos,
    /// For how long the worker has stood still outside the measurement, ns; its pulse knows.
    pub stood_still: Nanos,
    own: Nanos,
    waiting: Nanos,
    helpers: Nanos,
    voluntary: u64,
    involuntary: u64,
}

impl Reading {
    /// Reads the times of the calling thread and of the library threads `helpers`. In simulated
    /// time all are 0.
    pub fn take(clock: &Clock, helpers: &[u32]) -> Self {
        let now = clock.now();
        if let Clock::Virtual(_) = clock {
            return Reading {
                at: now,
                ..Reading::default()
            };
        }
        // SAFETY: the call writes to a valid local structure.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
            usage
        };
        Reading {
            at: now,
            stood_still: 0,
            own: running(),
            waiting: waiting(),
            helpers: helpers
                .iter()
                .filter_map(|tid| schedstat(&format!("/proc/self/task/{tid}/schedstat")))
                .map(|(running, _)| running)
                .sum(),
            voluntary: usage.ru_nvcsw as u64,
            involuntary: usage.ru_nivcsw as u64,
        }
    }

    /// When it was taken.
    pub fn at(&self) -> Nanos {
        self.at
    }

    /// What was used since `earlier`.
    pub fn since(&self, earlier: &Reading) -> Usage {
        let own = self.own.saturating_sub(earlier.own);
        Usage {
            span: (self.at - earlier.at).saturating_sub(self.stood_still - earlier.stood_still),
            running: own + self.helpers.saturating_sub(earlier.helpers),
            own_running: own,
            own_waiting: self.waiting.saturating_sub(earlier.waiting),
            // The worker's pulse adds these.
            own_stalled: 0,
            longest_stall: 0,
            voluntary_switches: self.voluntary.saturating_sub(earlier.voluntary),
            involuntary_switches: self.involuntary.saturating_sub(earlier.involuntary),
        }
    }
}

/// Nanoseconds for which the calling thread ran.
pub fn running() -> Nanos {
    let mut ts = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes to a valid local structure.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut ts) };
    ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64
}

/// Nanoseconds for which the calling thread was ready but waited for a processor.
pub fn waiting() -> Nanos {
    schedstat("/proc/thread-self/schedstat").map_or(0, |(_, waiting)| waiting)
}

/// Nanoseconds for which the calling thread ran or was ready: all but its sleep.
pub fn accounted() -> Nanos {
    running() + waiting()
}

/// Nanoseconds a thread ran, and nanoseconds it was ready but waited for a processor
/// (`Documentation/scheduler/sched-stats.rst`).
fn schedstat(path: &str) -> Option<(Nanos, Nanos)> {
    // Read some fifty times a second by every worker: without an allocation.
    let mut text = [0; 128];
    let length = fs::File::open(path).ok()?.read(&mut text).ok()?;
    let text = std::str::from_utf8(&text[..length]).ok()?;
    let mut fields = text.split_ascii_whitespace();
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// The threads of this process.
pub fn threads() -> Vec<u32> {
    fs::read_dir("/proc/self/task")
        .map(|dir| {
            dir.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok())
                .collect()
        })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// A library's thread that uses 60 ms of a processor while the worker waits for it.
    #[test]
    fn a_library_thread_is_told_from_the_worker() {
        const PLANTED: Nanos = 60_000_000;
        let (tell, told) = channel();
        let (begin, begun) = channel::<()>();
        let (end, ended) = channel::<()>();
        let library = std::thread::spawn(move || {
            // SAFETY: the call has no arguments and cannot fail.
            let _ = tell.send(unsafe { libc::gettid() } as u32);
            let _ = begun.recv();
            let from = running();
            while running() - from < PLANTED {}
            let _ = tell.send(0);
            let _ = ended.recv();
        });
        let thread = told.recv().expect("its number");
        let before = Reading::take(&Clock::Monotonic, &[thread]);
        begin.send(()).expect("it waits");
        told.recv().expect("it is done");
        let usage = Reading::take(&Clock::Monotonic, &[thread]).since(&before);
        let of_library = usage.running - usage.own_running;
        assert!(of_library >= PLANTED, "{usage:?}");
        assert!(
            of_library < 2 * PLANTED && usage.own_running < PLANTED,
            "{usage:?}"
        );
        end.send(()).expect("it waits");
        library.join().expect("no panic");
    }
}
