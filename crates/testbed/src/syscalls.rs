//! Counts system calls of threads: kernel counters on the tracepoint `raw_syscalls:sys_enter`.
//!
//! While a counter is open, the kernel passes each system call of every program through the tracepoint,
//! which slows it a little.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::sync::OnceLock;

use libc::c_long;
use perf_event::events::Tracepoint;
use perf_event::{Builder, Counter};
use perf_event_open_sys::ioctls;
use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use crate::procfs;

/// Numbers of system calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Syscalls {
    /// All of them.
    pub all: u64,
    /// Of these, `sendto` (which is `send`), `sendmsg` and `sendmmsg`.
    pub sends: u64,
    /// Of these, `recvfrom` (which is `recv`), `recvmsg` and `recvmmsg`.
    pub receives: u64,
    /// Of these, calls that write to disk what was written before: `fsync`, `fdatasync`, `msync`, `sync`,
    /// `syncfs` and `sync_file_range`.
    pub syncs: u64,
}

/// What each counter of a thread counts; nothing for all calls.
const KINDS: [&[c_long]; 4] = [
    &[],
    &[libc::SYS_sendto, libc::SYS_sendmsg, libc::SYS_sendmmsg],
    &[libc::SYS_recvfrom, libc::SYS_recvmsg, libc::SYS_recvmmsg],
    &[
        libc::SYS_fsync,
        libc::SYS_fdatasync,
        libc::SYS_msync,
        libc::SYS_sync,
        libc::SYS_syncfs,
        libc::SYS_sync_file_range,
    ],
];

/// How often threads are listed anew because others have begun meanwhile.
const ATTEMPTS: usize = 20;

/// Counts the system calls of threads, and of all threads and processes that these begin from then on.
pub struct SyscallCounter {
    threads: Vec<[Counter; KINDS.len()]>,
}

impl SyscallCounter {
    /// Counts those of threads, by number.
    ///
    /// # Errors
    /// Why the kernel does not let this program count.
    pub fn of_threads(threads: impl IntoIterator<Item = i32>) -> Result<SyscallCounter, String> {
        let id = tracepoint()?;
        let mut counted = Vec::new();
        for thread in threads {
            match counters(id, thread) {
                Ok(counters) => counted.push(counters),
                // It has ended since it was listed.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => return Err(refused(&error)),
            }
        }
        Ok(SyscallCounter { threads: counted })
    }

    /// Counts those of processes, which `list` gives, with all their threads.
    ///
    /// # Errors
    /// Why the kernel does not let this program count; or threads begin so fast that none of several lists
    /// is of one moment.
    pub fn of_processes(list: impl Fn() -> Vec<i32>) -> Result<SyscallCounter, String> {
        let threads = || -> BTreeSet<i32> {
            let processes = list().into_iter();
            processes.flat_map(procfs::threads).collect()
        };
        for _ in 0..ATTEMPTS {
            let before = threads();
            let counter = SyscallCounter::of_threads(before.iter().copied())?;
            // A thread that began meanwhile is counted twice if a new one was listed that a counted one began, and
            // not at all if one began it that was not counted yet.
            if threads().is_subset(&before) {
                return Ok(counter);
            }
        }
        Err("threads of the processes begin so fast that they cannot be listed".to_owned())
    }

    /// How many system calls there were since it began to count.
    ///
    /// # Errors
    /// If the kernel gives no number.
    pub fn read(&mut self) -> io::Result<Syscalls> {
        let mut sum = [0; KINDS.len()];
        for counters in &mut self.threads {
            for (sum, counter) in sum.iter_mut().zip(counters) {
                *sum += counter.read()?;
            }
        }
        let [all, sends, receives, syncs] = sum;
        Ok(Syscalls {
            all,
            sends,
            receives,
            syncs,
        })
    }
}

impl std::ops::Sub for Syscalls {
    type Output = Syscalls;

    fn sub(self, before: Syscalls) -> Syscalls {
        Syscalls {
            all: self.all.saturating_sub(before.all),
            sends: self.sends.saturating_sub(before.sends),
            receives: self.receives.saturating_sub(before.receives),
            syncs: self.syncs.saturating_sub(before.syncs),
        }
    }
}

fn counters(id: u64, thread: i32) -> io::Result<[Counter; KINDS.len()]> {
    let [all, sends, receives, syncs] = KINDS.map(|kind| counter(id, thread, kind));
    Ok([all?, sends?, receives?, syncs?])
}

fn counter(id: u64, thread: i32, calls: &[c_long]) -> io::Result<Counter> {
    let mut counter = Builder::new(Tracepoint::with_id(id))
        .observe_pid(thread)
        .any_cpu()
        // The tracepoint lies in the kernel.
        .exclude_kernel(false)
        .inherit(true)
        .build()?;
    if !calls.is_empty() {
        let words: Vec<String> = calls.iter().map(|call| format!("id == {call}")).collect();
        let filter = CString::new(words.join(" || ")).expect("no zero in it");
        // SAFETY: a text that ends in 0; the kernel copies it.
        let set = unsafe { ioctls::SET_FILTER(counter.as_raw_fd(), filter.as_ptr().cast_mut()) };
        if set < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    counter.enable()?;
    Ok(counter)
}

fn refused(error: &io::Error) -> String {
    let hint = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            "; run as root, or with the capabilities CAP_PERFMON and CAP_SYS_ADMIN; a container may forbid it"
        }
        Some(libc::EMFILE) => "; each thread takes 4 open files: raise `ulimit -n`",
        _ => "",
    };
    format!("the kernel refuses to count system calls: {error}{hint}")
}

/// The number of the tracepoint; it stays the same until the machine starts anew.
fn tracepoint() -> Result<u64, String> {
    static ID: OnceLock<Result<u64, String>> = OnceLock::new();
    let why = |error: io::Error| {
        format!(
            "the kernel does not tell the number of its tracepoint raw_syscalls:sys_enter: {error}; it takes \
             tracefs mounted and readable, or root"
        )
    };
    ID.get_or_init(|| where_mounted().map_or_else(detached, Ok).map_err(why))
        .clone()
}

const ID_FILE: &str = "events/raw_syscalls/sys_enter/id";

/// From a tracefs that is mounted, if one is.
fn where_mounted() -> Option<u64> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    let fields = mounts.lines().map(|line| line.split(' '));
    let mut points = fields.filter_map(|mut fields| {
        let point = fields.nth(1)?;
        (fields.next()? == "tracefs").then_some(point)
    });
    points.find_map(|point| number(&std::fs::read_to_string(format!("{point}/{ID_FILE}")).ok()?))
}

/// From a tracefs of this function alone, which is mounted nowhere: the machine's mounts stay as they are.
fn detached() -> io::Result<u64> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let root = fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::empty(),
    )?;
    let file = openat(
        root,
        ID_FILE,
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let mut text = String::new();
    std::fs::File::from(file).read_to_string(&mut text)?;
    number(&text).ok_or_else(|| io::Error::other("no number in its file"))
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}
