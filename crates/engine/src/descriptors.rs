//! Room for the descriptors of many connections.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Descriptors beside those of connections: of pipes, epoll, `/proc`, the system's log.
const OTHERS: usize = 256;

/// Makes room for the descriptors of so many connections in this process. Its table of descriptors grows by doubling, and in
/// a process of several threads each time waits until all processors have passed through the kernel's scheduler
/// (`expand_fdtable`): 15 to 30 ms at 256 and 512 descriptors, in which answers to clients that connect would wait.
/// Does nothing where the process may not have so many.
pub(crate) fn make_room(connections: usize) {
    let Ok(any) = File::open("/dev/null") else {
        return;
    };
    let Ok(last) = libc::c_int::try_from(connections + OTHERS) else {
        return;
    };
    // SAFETY: the call takes an open descriptor, and no pointer.
    let highest = unsafe { libc::fcntl(any.as_raw_fd(), libc::F_DUPFD_CLOEXEC, last) };
    if highest >= 0 {
        // SAFETY: it was made just now, and nobody else has it.
        drop(unsafe { OwnedFd::from_raw_fd(highest) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_stays_open() {
        let open = || std::fs::read_dir("/proc/self/fd").expect("procfs").count();
        let before = open();
        make_room(500);
        make_room(usize::MAX / 2);
        assert_eq!(open(), before);
    }
}
