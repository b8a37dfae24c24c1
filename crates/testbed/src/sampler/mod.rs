//! CPU time, memory and context switches of processes and threads, from `/proc`.

mod kernel;
mod process;
mod thread;

pub use process::{BusiestThread, ProcessSample, ProcessSampler};
pub use thread::{ThreadFigures, ThreadSample, ThreadSampler, current_tid};

use kernel::tick_ns;

/// Whether a folder is in memory (tmpfs): what is written there is not written to disk.
pub fn lies_in_memory(folder: &std::path::Path) -> bool {
    rustix::fs::statfs(folder).is_ok_and(|of| of.f_type == libc::TMPFS_MAGIC)
}

/// Processor time that all programs of this machine have used since it started, ns, in whole clock ticks.
/// Without interrupts and the time that a hypervisor gave to others. `None` if it cannot be read.
pub fn machine_cpu_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let mut ticks = text
        .lines()
        .next()?
        .strip_prefix("cpu ")?
        .split_whitespace();
    // The fields `user`, `nice` and `system`.
    let mut sum = 0;
    for _ in 0..3 {
        sum += ticks.next()?.parse::<u64>().ok()?;
    }
    Some(sum * tick_ns())
}
