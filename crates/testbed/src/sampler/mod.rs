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

/// Processor time of this machine since it started, of all its processors together, ns, in whole clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineTime {
    /// Used by programs, without interrupts.
    pub used_ns: u64,
    /// Given by a hypervisor to other virtual machines while this one had work; 0 on hardware of one's own.
    pub stolen_ns: u64,
    /// All, that in which processors were idle included.
    pub all_ns: u64,
}

/// The processor time of this machine until now. `None` if it cannot be read.
pub fn machine_time() -> Option<MachineTime> {
    machine_time_in(&std::fs::read_to_string("/proc/stat").ok()?)
}

/// From the text of `/proc/stat` (proc_stat(5)): its first line has the ticks of all processors.
fn machine_time_in(text: &str) -> Option<MachineTime> {
    let ticks = text.lines().next()?.strip_prefix("cpu ")?;
    // The fields `user` to `steal`. Those after them, of guests, are part of `user` and `nice`.
    let ticks: Vec<u64> = ticks
        .split_whitespace()
        .take(8)
        .map(|ticks| ticks.parse().ok())
        .collect::<Option<_>>()?;
    let [user, nice, system, _idle, _iowait, _irq, _softirq, steal] = ticks[..] else {
        return None;
    };
    Some(MachineTime {
        used_ns: (user + nice + system) * tick_ns(),
        stolen_ns: steal * tick_ns(),
        all_ns: ticks.iter().sum::<u64>() * tick_ns(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_time_is_that_of_the_first_line() {
        let text = "cpu  10 2 30 400 5 6 7 80 9 1\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        let time = machine_time_in(text).unwrap();
        let ticks = |n| n * tick_ns();
        assert_eq!(time.used_ns, ticks(42));
        assert_eq!(time.stolen_ns, ticks(80));
        assert_eq!(time.all_ns, ticks(540));
        for text in ["", "cpu0 1 2", "cpu  1 2 3 4 5 6 7", "cpu  1 2 3 4 5 6 7 x"] {
            assert_eq!(machine_time_in(text), None, "{text}");
        }
        assert!(machine_time().is_some());
    }
}
