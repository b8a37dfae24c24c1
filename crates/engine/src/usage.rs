//! The use of processors by threads of this process, and on its machine, from the kernel's own accounting.

use std::fs;
use std::io::Read;

use pubgauge_driver::clock::monotonic_now;
use pubgauge_driver::{Clock, Nanos};
use serde::{Deserialize, Serialize};

/// Processor time of this machine, of all its processors together, ns, between two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineTime {
    /// Used by programs: what was neither idle, nor stolen, nor in interrupts. Programs that run for less than a clock
    /// tick at a time are in it, which the kernel's own counts of ticks may all miss.
    pub used: Nanos,
    /// Given by a hypervisor to other virtual machines while this one had work; 0 on hardware of one's own.
    pub stolen: Nanos,
    /// All, that in which processors were idle included.
    pub all: Nanos,
    /// All time in whole clock ticks, as the kernel counts what was stolen.
    pub counted: Nanos,
}

impl MachineTime {
    /// Share of all processors' time that a hypervisor gave to other virtual machines, 0 to 1.
    pub fn stolen_share(&self) -> f64 {
        self.stolen as f64 / self.counted.max(1) as f64
    }
}

/// A reading of what this machine's processors have not done for programs since it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineReading {
    /// When, ns of `CLOCK_MONOTONIC`.
    at: Nanos,
    processors: u64,
    /// Idle, also while a disk was waited for. The kernel measures it from falling asleep to waking up.
    idle: Nanos,
    interrupts: Nanos,
    stolen: Nanos,
    counted: Nanos,
}

impl MachineReading {
    /// Reads it. `None` if it cannot be read.
    pub fn now() -> Option<MachineReading> {
        let mut text = [0; 256];
        let text = first_bytes("/proc/stat", &mut text)?;
        MachineReading::parse(text, monotonic_now(), processors()?)
    }

    /// From the text of `/proc/stat` (proc_stat(5)): its first line has the ticks of all processors.
    fn parse(text: &str, at: Nanos, processors: u64) -> Option<MachineReading> {
        let ticks = text.lines().next()?.strip_prefix("cpu ")?;
        // The fields `user` to `steal`. Those after them, of guests, are part of `user` and `nice`.
        let ticks: Vec<u64> = ticks
            .split_whitespace()
            .take(8)
            .map(|ticks| ticks.parse().ok())
            .collect::<Option<_>>()?;
        let [_user, _nice, _system, idle, iowait, irq, softirq, steal] = ticks[..] else {
            return None;
        };
        // A sandbox that counts nothing writes zeros.
        let counted = ticks.iter().sum::<u64>() * tick();
        (counted > 0).then(|| MachineReading {
            at,
            processors,
            idle: (idle + iowait) * tick(),
            interrupts: (irq + softirq) * tick(),
            stolen: steal * tick(),
            counted,
        })
    }

    /// The time since `earlier`.
    pub fn since(&self, earlier: &MachineReading) -> MachineTime {
        let all = self.processors * self.at.saturating_sub(earlier.at);
        let stolen = self.stolen.saturating_sub(earlier.stolen);
        let unused = self.idle.saturating_sub(earlier.idle)
            + self.interrupts.saturating_sub(earlier.interrupts)
            + stolen;
        MachineTime {
            used: all.saturating_sub(unused),
            stolen,
            all,
            counted: self.counted.saturating_sub(earlier.counted),
        }
    }
}

/// The processors that are in use by the kernel, whose times it adds up.
fn processors() -> Option<u64> {
    // SAFETY: the call has no pointers.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    u64::try_from(count).ok().filter(|count| *count > 0)
}

/// Length of a clock tick, ns.
fn tick() -> Nanos {
    // SAFETY: the call has no pointers.
    let ticks_per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u64;
    1_000_000_000 / ticks_per_s
}

/// Use of processors over a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Length of the span, ns: the measurement, without what the worker stood still before and after it
    /// while it could not take a reading.
    pub span: Nanos,
    /// Running, ns; may exceed the span where a library has threads.
    pub running: Nanos,
    /// Of this the worker's own thread, ns.
    pub own_running: Nanos,
    /// The worker's own thread was ready but waited for a processor, ns.
    pub own_waiting: Nanos,
    /// The worker's own thread neither ran nor waited for a processor, though its sleep was over:
    /// the process or the machine stood still. Times below 5 ms are not counted, ns.
    pub own_stalled: Nanos,
    /// The longest such time, ns.
    pub longest_stall: Nanos,
    /// No single wait of the thread for a processor was longer, ns: the most within some 20 ms.
    pub longest_wait: Nanos,
    /// The thread went to sleep.
    pub voluntary_switches: u64,
    /// The thread was preempted.
    pub involuntary_switches: u64,
    /// The use of the processors of the worker's machine; `None` where it cannot be read, and in simulated time.
    pub machine: Option<MachineTime>,
}

/// Time for which a thread that wakes up waits for a processor that nobody else uses, ns: it was 6 to 14 us on two virtual
/// processors where nothing else ran, at 850 to 20,000 messages a second.
const ORDINARY_WAIT: Nanos = 10_000;

impl Usage {
    /// For how long the thread waited for a processor beyond what it waits whenever it is switched to, ns.
    pub fn kept_waiting(&self) -> Nanos {
        let switches = self.voluntary_switches + self.involuntary_switches;
        self.own_waiting
            .saturating_sub(switches.saturating_mul(ORDINARY_WAIT))
    }
}

/// A reading of the times that the kernel counts for the calling worker.
#[derive(Clone, Copy, Debug, Default)]
pub struct UsageReading {
    at: Nanos,
    /// For how long the worker has stood still outside the measurement, ns; its pulse knows.
    pub stood_still: Nanos,
    own: Nanos,
    waiting: Nanos,
    helpers: Nanos,
    voluntary: u64,
    involuntary: u64,
    machine: Option<MachineReading>,
}

impl UsageReading {
    /// Reads the times of the calling thread and of the library threads `helpers`. In simulated
    /// time all are 0.
    pub fn take(clock: &Clock, helpers: &[u32]) -> Self {
        let now = clock.now();
        if let Clock::Virtual(_) = clock {
            return UsageReading {
                at: now,
                ..UsageReading::default()
            };
        }
        // SAFETY: the call writes to a valid local structure.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
            usage
        };
        UsageReading {
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
            machine: MachineReading::now(),
        }
    }

    /// When it was taken.
    pub fn taken_at(&self) -> Nanos {
        self.at
    }

    /// The use since `earlier`.
    pub fn since(&self, earlier: &UsageReading) -> Usage {
        let own = self.own.saturating_sub(earlier.own);
        // A standstill that goes on is told by when it began; once it is over, what the thread ran and waited is known
        // and taken off.
        let stood_still = self.stood_still.saturating_sub(earlier.stood_still);
        Usage {
            span: (self.at - earlier.at).saturating_sub(stood_still),
            running: own + self.helpers.saturating_sub(earlier.helpers),
            own_running: own,
            own_waiting: self.waiting.saturating_sub(earlier.waiting),
            // The worker's pulse adds these.
            own_stalled: 0,
            longest_stall: 0,
            longest_wait: 0,
            voluntary_switches: self.voluntary.saturating_sub(earlier.voluntary),
            involuntary_switches: self.involuntary.saturating_sub(earlier.involuntary),
            machine: (self.machine.zip(earlier.machine)).map(|(to, from)| to.since(&from)),
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
    let mut fields = first_bytes(path, &mut text)?.split_ascii_whitespace();
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// As much of a file of `/proc` as `buffer` takes.
fn first_bytes<'a>(path: &str, buffer: &'a mut [u8]) -> Option<&'a str> {
    let length = fs::File::open(path).ok()?.read(buffer).ok()?;
    std::str::from_utf8(&buffer[..length]).ok()
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

    #[test]
    fn a_standstill_that_turns_out_shorter_makes_no_time() {
        let at = |at, stood_still| UsageReading {
            at,
            stood_still,
            ..UsageReading::default()
        };
        assert_eq!(at(1_000, 50).since(&at(0, 60)).span, 1_000);
        assert_eq!(at(1_000, 60).since(&at(0, 50)).span, 990);
    }

    /// Two processors for a second: others used 1.2 of them, in pieces that fall between the ticks, so that the kernel
    /// counts 0.2 as used.
    #[test]
    fn what_was_used_is_what_was_not_idle() {
        const S: Nanos = 1_000_000_000;
        let at = |text: &str, at| MachineReading::parse(text, at, 2).unwrap();
        let hundredth = tick() / 10_000_000;
        let ticks = |n: u64| n / hundredth;
        let from = at(
            "cpu  10 2 30 400 5 6 7 80 9 1\ncpu0 1 1 1 1 1 1 1 1 1 1\n",
            7 * S,
        );
        let text = format!(
            "cpu  {} 2 30 {} {} {} 7 {} 9 1\n",
            10 + ticks(20),
            400 + ticks(50),
            5 + ticks(10),
            6 + ticks(10),
            80 + ticks(10),
        );
        let time = at(&text, 8 * S).since(&from);
        assert_eq!((time.all, time.used), (2 * S, 6 * S / 5));
        assert_eq!(time.stolen_share(), 0.1);
        let zeros = "cpu  0 0 0 0 0 0 0 0 0 0\n";
        for text in [
            "",
            "cpu0 1 2",
            "cpu  1 2 3 4 5 6 7",
            "cpu  1 2 3 4 5 6 7 x",
            zeros,
        ] {
            assert_eq!(MachineReading::parse(text, 0, 2), None, "{text}");
        }
        assert!(MachineReading::now().is_some());
    }

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
        let before = UsageReading::take(&Clock::Monotonic, &[thread]);
        begin.send(()).expect("it waits");
        told.recv().expect("it is done");
        let usage = UsageReading::take(&Clock::Monotonic, &[thread]).since(&before);
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
