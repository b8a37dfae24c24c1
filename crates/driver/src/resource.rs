//! Resources of the client's own process and host that can run out, so that a system is not blamed
//! for what its clients could not even ask of it.

use std::fmt;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::mpsc::channel;

use serde::{Deserialize, Serialize};

/// A resource that the client has run out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// Open files and sockets of this process (`EMFILE`) or of the host (`ENFILE`).
    Descriptors,
    /// Memory, of the process or of the kernel for sockets (`ENOMEM`, `ENOBUFS`).
    Memory,
    /// Local ports: each connection from one source address to one port of a server needs one,
    /// and so does each address that a brokerless publisher is reached under.
    Ports,
    /// Threads and processes (`EAGAIN` when one is started).
    Threads,
    /// Sockets that epoll watches (`ENOSPC`).
    Watches,
}

/// The attempt that failed with an error. The same error number means other things in other calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// To make a socket, to open a file, to create an epoll.
    Open,
    /// To connect. `EADDRNOTAVAIL` then means that no port is left, unless there is no source
    /// address for that destination at all: the caller rules that out.
    Connect,
    /// To bind to port 0, for which the kernel chooses one.
    BindAnyPort,
    /// To have epoll watch a descriptor.
    Watch,
    /// To start a thread or a process.
    Start,
    /// To read, to write, to allocate.
    Transfer,
}

impl Resource {
    /// All there are.
    pub const ALL: [Resource; 5] = [
        Resource::Descriptors,
        Resource::Memory,
        Resource::Ports,
        Resource::Threads,
        Resource::Watches,
    ];

    /// The resource that an error says is exhausted; `None` if the error says something else, such
    /// as a server that refuses or has gone.
    pub fn exhausted_by(attempt: Attempt, error: &io::Error) -> Option<Resource> {
        Resource::of_errno(attempt, error.raw_os_error()?)
    }

    /// [`Resource::exhausted_by`] for a bare error number.
    pub fn of_errno(attempt: Attempt, errno: i32) -> Option<Resource> {
        match (errno, attempt) {
            (libc::EMFILE | libc::ENFILE, _) => Some(Resource::Descriptors),
            (libc::ENOMEM | libc::ENOBUFS, _) => Some(Resource::Memory),
            (libc::EADDRNOTAVAIL, Attempt::Connect) => Some(Resource::Ports),
            (libc::EADDRINUSE, Attempt::BindAnyPort) => Some(Resource::Ports),
            (libc::EAGAIN, Attempt::Start) => Some(Resource::Threads),
            (libc::ENOSPC, Attempt::Watch) => Some(Resource::Watches),
            _ => None,
        }
    }

    /// In words, plural.
    pub fn name(self) -> &'static str {
        match self {
            Resource::Descriptors => "file descriptors",
            Resource::Memory => "memory",
            Resource::Ports => "local ports",
            Resource::Threads => "threads",
            Resource::Watches => "epoll watches",
        }
    }

    /// The next step for the user.
    pub fn advice(self) -> &'static str {
        match self {
            Resource::Descriptors => {
                "raise the limit of open files (ulimit -n; fs.file-max for the whole host), or plan fewer clients"
            }
            Resource::Memory => {
                "give the client more memory (free -m, the cgroup's memory.max, net.ipv4.tcp_mem), or plan fewer clients or smaller payloads"
            }
            Resource::Ports => {
                "widen net.ipv4.ip_local_port_range (28,232 ports by default for each source address and server), connect from more source addresses or hosts, or plan fewer clients"
            }
            Resource::Threads => {
                "raise the limit of processes (ulimit -u, the cgroup's pids.max, kernel.threads-max), or plan fewer workers"
            }
            Resource::Watches => "raise fs.epoll.max_user_watches, or plan fewer clients",
        }
    }

    /// Whether this process can have this many more descriptors and threads at present: takes them
    /// and gives them back. For libraries that do not say why they failed, or that end the
    /// process where they get none.
    ///
    /// # Errors
    /// The resource that it cannot have.
    pub fn can_have(descriptors: usize, threads: usize) -> Result<(), Resource> {
        let mut held = Vec::with_capacity(descriptors);
        for _ in 0..descriptors {
            // SAFETY: no pointers; the result is checked.
            let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
            if fd < 0 {
                let error = io::Error::last_os_error();
                return match Resource::exhausted_by(Attempt::Open, &error) {
                    Some(resource) => Err(resource),
                    None => Ok(()), // It tells nothing of descriptors.
                };
            }
            // SAFETY: a new descriptor that nobody else owns.
            held.push(unsafe { OwnedFd::from_raw_fd(fd) });
        }
        let mut started = Vec::with_capacity(threads);
        for _ in 0..threads {
            let (end, ended) = channel::<()>();
            let spawned = std::thread::Builder::new()
                .name("probe".into())
                .stack_size(32 << 10)
                .spawn(move || ended.recv().is_err());
            match spawned {
                Ok(thread) => started.push((end, thread)),
                Err(error) => {
                    let resource = Resource::exhausted_by(Attempt::Start, &error);
                    give_back(started);
                    return resource.map_or(Ok(()), Err);
                }
            }
        }
        give_back(started);
        Ok(())
    }

    /// The resource of which this process cannot have one more at present: descriptors or threads. It is taken as
    /// the reason of a library's failure that gives none.
    pub fn missing_now() -> Option<Resource> {
        Resource::can_have(1, 1).err()
    }
}

type HeldThread = (std::sync::mpsc::Sender<()>, std::thread::JoinHandle<bool>);

fn give_back(started: Vec<HeldThread>) {
    for (end, thread) in started {
        drop(end);
        // It waits for `end` alone and cannot panic.
        let _ = thread.join();
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_number_means_what_was_tried() {
        use Attempt::*;
        let cases = [
            (libc::EMFILE, Open, Some(Resource::Descriptors)),
            (libc::ENFILE, Open, Some(Resource::Descriptors)),
            (libc::ENOMEM, Open, Some(Resource::Memory)),
            (libc::ENOBUFS, Transfer, Some(Resource::Memory)),
            (libc::EADDRNOTAVAIL, Connect, Some(Resource::Ports)),
            // A source address that is not this host's.
            (libc::EADDRNOTAVAIL, BindAnyPort, None),
            (libc::EADDRINUSE, BindAnyPort, Some(Resource::Ports)),
            (libc::EADDRINUSE, Connect, None),
            (libc::EAGAIN, Start, Some(Resource::Threads)),
            // "Not now", of a socket that does not wait.
            (libc::EAGAIN, Transfer, None),
            (libc::ENOSPC, Watch, Some(Resource::Watches)),
            // A full disk.
            (libc::ENOSPC, Open, None),
            // The behaviour of servers.
            (libc::ECONNREFUSED, Connect, None),
            (libc::ECONNRESET, Transfer, None),
            (libc::ECONNRESET, Connect, None),
            (libc::EPIPE, Transfer, None),
            (libc::ETIMEDOUT, Connect, None),
            (libc::EHOSTUNREACH, Connect, None),
        ];
        for (errno, attempt, expected) in cases {
            let error = io::Error::from_raw_os_error(errno);
            assert_eq!(
                Resource::exhausted_by(attempt, &error),
                expected,
                "{attempt:?}: {error}"
            );
        }
        let without_number = io::Error::new(io::ErrorKind::OutOfMemory, "words");
        assert_eq!(Resource::exhausted_by(Open, &without_number), None);
    }

    #[test]
    fn every_resource_says_what_to_do() {
        for resource in Resource::ALL {
            assert!(!resource.name().is_empty());
            assert!(
                resource.advice().contains("plan fewer"),
                "{resource}: {}",
                resource.advice()
            );
        }
    }

    #[test]
    fn what_was_taken_to_try_is_given_back() {
        let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        let before = open();
        assert_eq!(Resource::can_have(50, 3), Ok(()));
        // Other tests open and close some of their own at the same time.
        assert!(open() < before + 50);
        assert_eq!(Resource::missing_now(), None);
    }
}
