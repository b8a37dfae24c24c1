//! Counts the system calls of threads, with kernel counters on the tracepoints `raw_syscalls:sys_enter`,
//! `sock:sock_send_length` and `sock:sock_recv_length`.
//!
//! While a counter is open, the kernel passes each system call of every program through the tracepoints,
//! which slows it a little.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
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
    pub all: u64,
    /// Writes of bytes to a socket, by any call; each message of `sendmmsg` counts. `None` before Linux 6.3,
    /// which has no such tracepoint.
    pub sends: Option<u64>,
    /// Reads of bytes from a socket, likewise; a look at them (`MSG_PEEK`) does not count.
    pub receives: Option<u64>,
    /// Calls that flush earlier writes to disk: `fsync`, `fdatasync`, `msync`, `sync`, `syncfs` and
    /// `sync_file_range`.
    pub syncs: u64,
}

/// Calls that flush earlier writes to disk.
const SYNCS: [c_long; 6] = [
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_msync,
    libc::SYS_sync,
    libc::SYS_syncfs,
    libc::SYS_sync_file_range,
];

/// Counters of a thread.
const KINDS: usize = 4;

/// The events of each counter of a thread: the number of a tracepoint, and a filter of its events.
type Kinds = [Option<(u64, CString)>; KINDS];

/// How often the threads are listed again because others have begun meanwhile.
const ATTEMPTS: usize = 20;

/// Counts the system calls of threads, and of all threads and processes that these start from then on.
pub struct SyscallCounter {
    threads: Vec<[Option<Counter>; KINDS]>,
}

impl SyscallCounter {
    /// Counts the system calls of threads, by number. A thread that has ended is left out.
    ///
    /// # Errors
    /// Why the kernel does not let this program count.
    pub fn of_threads(threads: impl IntoIterator<Item = i32>) -> io::Result<SyscallCounter> {
        let kinds = kinds()?;
        let mut counted = Vec::new();
        for thread in threads {
            match counters(kinds, thread) {
                Ok(counters) => counted.push(counters),
                // It has ended since it was listed.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => return Err(refused(&error)),
            }
        }
        Ok(SyscallCounter { threads: counted })
    }

    /// Counts the system calls of all threads of the processes that `list` returns.
    ///
    /// # Errors
    /// Why the kernel does not let this program count; or threads begin so fast that no two lists agree.
    pub fn of_processes(list: impl Fn() -> Vec<i32>) -> io::Result<SyscallCounter> {
        let threads = || -> BTreeSet<i32> {
            let processes = list().into_iter();
            processes.flat_map(procfs::threads).collect()
        };
        for _ in 0..ATTEMPTS {
            let before = threads();
            let counter = SyscallCounter::of_threads(before.iter().copied())?;
            // A thread that began meanwhile is counted twice if it was listed and a counted thread began it, and
            // not at all if a thread began it that was not counted yet.
            if threads().is_subset(&before) {
                return Ok(counter);
            }
        }
        Err(io::Error::other(
            "threads of the processes begin so fast that they cannot be listed",
        ))
    }

    /// The number of system calls since the counter was made.
    ///
    /// # Errors
    /// If the kernel returns no number.
    pub fn read(&mut self) -> io::Result<Syscalls> {
        let mut sum = kinds()?.each_ref().map(|kind| kind.as_ref().map(|_| 0));
        for counters in &mut self.threads {
            for (sum, counter) in sum.iter_mut().zip(counters) {
                if let (Some(sum), Some(counter)) = (sum, counter) {
                    *sum += counter.read()?;
                }
            }
        }
        let [all, sends, receives, syncs] = sum;
        Ok(Syscalls {
            all: all.unwrap_or_default(),
            sends,
            receives,
            syncs: syncs.unwrap_or_default(),
        })
    }
}

impl std::ops::Sub for Syscalls {
    type Output = Syscalls;

    fn sub(self, before: Syscalls) -> Syscalls {
        let both = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
        Syscalls {
            all: self.all.saturating_sub(before.all),
            sends: both(self.sends, before.sends),
            receives: both(self.receives, before.receives),
            syncs: self.syncs.saturating_sub(before.syncs),
        }
    }
}

fn counters(kinds: &Kinds, thread: i32) -> io::Result<[Option<Counter>; KINDS]> {
    let one = |kind: &Option<(u64, CString)>| {
        let counter = kind.as_ref().map(|(id, of)| counter(*id, thread, of));
        counter.transpose()
    };
    let [all, sends, receives, syncs] = kinds.each_ref().map(one);
    Ok([all?, sends?, receives?, syncs?])
}

fn counter(id: u64, thread: i32, filter: &CString) -> io::Result<Counter> {
    let mut counter = Builder::new(Tracepoint::with_id(id))
        .observe_pid(thread)
        .any_cpu()
        // The tracepoint is in the kernel.
        .exclude_kernel(false)
        .inherit(true)
        .build()?;
    if !filter.is_empty() {
        // SAFETY: a text that ends in 0; the kernel copies it.
        let set = unsafe { ioctls::SET_FILTER(counter.as_raw_fd(), filter.as_ptr().cast_mut()) };
        if set < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    counter.enable()?;
    Ok(counter)
}

fn refused(error: &io::Error) -> io::Error {
    let hint = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            "; run as root, or with the capabilities CAP_PERFMON and CAP_SYS_ADMIN; a container may forbid it"
        }
        Some(libc::EMFILE) => "; each thread takes 4 open files: raise `ulimit -n`",
        _ => "",
    };
    let what = format!("the kernel refuses to count system calls: {error}{hint}");
    io::Error::new(error.kind(), what)
}

/// The kinds of counters. The numbers of tracepoints stay the same until the machine restarts.
fn kinds() -> io::Result<&'static Kinds> {
    static KINDS: OnceLock<Result<Kinds, String>> = OnceLock::new();
    let find = || {
        let why = |error: io::Error| {
            format!(
                "the kernel does not tell the number of its tracepoint raw_syscalls:sys_enter: {error}; it takes \
                 tracefs mounted and readable, or root"
            )
        };
        let tracefs = Tracefs::find();
        let enter = tracefs.number("raw_syscalls/sys_enter").map_err(why)?;
        let syncs: Vec<String> = SYNCS.iter().map(|call| format!("id == {call}")).collect();
        let kind = |id: u64, filter: &str| (id, CString::new(filter).expect("no zero in it"));
        let moved = |name: &str, filter| Some(kind(tracefs.number(name).ok()?, filter));
        Ok([
            Some(kind(enter, "")),
            moved("sock/sock_send_length", "ret > 0"),
            moved("sock/sock_recv_length", "ret > 0 && !(flags & 2)"),
            Some(kind(enter, &syncs.join(" || "))),
        ])
    };
    let found = KINDS.get_or_init(find).as_ref();
    found.map_err(|why| io::Error::other(why.as_str()))
}

/// The file system in which the kernel lists its tracepoints.
enum Tracefs {
    Mounted(String),
    /// Mounted for this program alone, on no folder: the machine's mounts stay as they are.
    Detached(io::Result<OwnedFd>),
}

impl Tracefs {
    fn find() -> Tracefs {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let fields = mounts.lines().map(|line| line.split(' '));
        let mut points = fields.filter_map(|mut fields| {
            let point = fields.nth(1)?;
            (fields.next()? == "tracefs").then_some(point)
        });
        let readable = points.find(|point| {
            let id = format!("{point}/events/raw_syscalls/sys_enter/id");
            std::fs::File::open(id).is_ok()
        });
        match readable {
            Some(point) => Tracefs::Mounted(point.to_owned()),
            None => Tracefs::Detached(detached()),
        }
    }

    /// The number of a tracepoint that is named `GROUP/NAME`.
    fn number(&self, tracepoint: &str) -> io::Result<u64> {
        let path = format!("events/{tracepoint}/id");
        let mut text = String::new();
        let mut file = match self {
            Tracefs::Mounted(point) => std::fs::File::open(format!("{point}/{path}"))?,
            Tracefs::Detached(Ok(root)) => {
                openat(root, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?.into()
            }
            Tracefs::Detached(Err(error)) => return Err(io::Error::other(error.to_string())),
        };
        file.read_to_string(&mut text)?;
        let number = text.trim().parse();
        number.map_err(|_| io::Error::other("no number in its file"))
    }
}

fn detached() -> io::Result<OwnedFd> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let (flags, attributes) = (FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty());
    Ok(fsmount(&context, flags, attributes)?)
}
