//! The kernel's figures of processes and threads: their files below `/proc`, and their CPU clocks.

use crate::procfs::{ProcFile, number_in};

/// Context switches of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Switches {
    pub(super) voluntary: u64,
    pub(super) involuntary: u64,
}

#[derive(Debug)]
pub(super) struct ThreadFiles {
    schedstat: ProcFile,
    status: ProcFile,
}

impl ThreadFiles {
    pub(super) fn new(pid: i32, tid: i32, keep: bool) -> Self {
        let folder = format!("/proc/{pid}/task/{tid}");
        ThreadFiles {
            schedstat: ProcFile::new(format!("{folder}/schedstat"), keep),
            status: ProcFile::new(format!("{folder}/status"), keep),
        }
    }

    /// Nanoseconds on a processor, and nanoseconds of waiting for one while ready. `None` if the
    /// thread is gone or the kernel keeps no such figures.
    pub(super) fn run_and_wait(&mut self) -> Option<(u64, u64)> {
        let mut buffer = [0; 128];
        let mut fields = self
            .schedstat
            .read(&mut buffer)
            .ok()?
            .split_ascii_whitespace();
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    }

    pub(super) fn switches(&mut self) -> Option<Switches> {
        let mut buffer = [0; 4096];
        let text = self.status.read(&mut buffer).ok()?;
        Some(Switches {
            voluntary: number_in(text, "voluntary_ctxt_switches:")?,
            involuntary: number_in(text, "nonvoluntary_ctxt_switches:")?,
        })
    }
}

/// Length of a clock tick, ns.
pub(super) fn tick_ns() -> u64 {
    // SAFETY: sysconf of a known name.
    let ticks_per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u64;
    1_000_000_000 / ticks_per_s
}

/// The CPU clock of a whole process (`CPUCLOCK_SCHED`), ns: of all its threads, also those that
/// have ended.
pub(super) fn process_cpu_ns(pid: i32) -> Option<u64> {
    clock_ns((!pid << 3) | 2)
}

/// The CPU clock of a thread of this process, ns, up to the moment of the call.
pub(super) fn thread_cpu_ns(tid: i32) -> Option<u64> {
    clock_ns((!tid << 3) | 2 | 4)
}

fn clock_ns(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is writable; a clock that does not exist is an error.
    let read = unsafe { libc::clock_gettime(clock, &mut time) };
    (read == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
