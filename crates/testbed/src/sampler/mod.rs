//! CPU time, memory and context switches of processes and threads, from `/proc`.

mod kernel;
mod process;
mod thread;

pub use process::{BusiestThread, ProcessSample, ProcessSampler};
pub use thread::{ThreadFigures, ThreadSample, ThreadSampler, current_tid};

/// Whether a folder is in memory (tmpfs): what is written there is not written to disk.
pub fn lies_in_memory(folder: &std::path::Path) -> bool {
    rustix::fs::statfs(folder).is_ok_and(|of| of.f_type == libc::TMPFS_MAGIC)
}
