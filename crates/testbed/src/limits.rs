//! Limits of the client's process and host, and whether a trial fits into them.
//!
//! [`check`] compares plain numbers; [`available`] reads what there is. A limit that cannot be read
//! counts as unlimited: where it is reached, the running trial names the resource
//! ([`pubgauge_driver::Resource`]).

mod available;
mod groups;
mod quota;

use std::io;

use pubgauge_driver::Resource;
use pubgauge_quantities::shown;
use rustix::process::{self, Rlimit, getrlimit, setrlimit};

pub(crate) use available::ephemeral_ports;
pub(crate) use available::limit_bytes;
pub use available::{Available, available};
pub(crate) use groups::{cgroup_paths, groups_around};
pub use quota::{Quota, Throttling, quotas};

/// Descriptors of pubgauge itself while a trial runs, beside those of clients and samplers:
/// standard streams, the run's files, signals, `/proc` and others. 17 to 25 were counted.
const OWN_FILES: u64 = 32;
/// Files that the samplers keep open for each of the client's threads: two of the process sampler,
/// two of the thread sampler.
const FILES_PER_THREAD: u64 = 4;
/// Files that the sampler keeps open for each process of a server and each of its threads.
const FILES_PER_SERVER_PROCESS: u64 = 2;
/// Processes of a server: RabbitMQ and ejabberd have nine at most.
const SERVER_PROCESSES: u64 = 12;
/// Threads of pubgauge itself beside the workers.
const OWN_THREADS: u64 = 4;

/// The least that one trial needs of the client's process and host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceNeeds {
    pub clients: u64,
    /// Descriptors of clients and their libraries.
    pub files: u64,
    /// Whether each client has exactly one of these descriptors.
    pub one_file_each: bool,
    /// Worker threads.
    pub workers: u64,
    /// Threads of client libraries.
    pub library_threads: u64,
    /// The server, if it is started here.
    pub server: Option<ServerNeeds>,
    /// The largest number of connections from one source address to one address and port of a
    /// server, plus ports of that address that are taken otherwise.
    pub ports: u64,
    /// Parts of the memory estimate: the purpose and the size in bytes.
    pub memory: Vec<(String, u64)>,
}

/// The needs of a server that is started with the client's own limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerNeeds {
    pub name: String,
    /// Connections that it must accept.
    pub connections: u64,
    /// Open files that it needs for that: [`crate::file::Limits::files_for`].
    pub files: u64,
    /// Its own limit of open files; `None` where its file sets none.
    pub limit: Option<u64>,
}

/// Checks that a trial fits into the limits.
///
/// # Errors
/// The first thing that does not suffice, with what is needed, what there is, and a hint.
pub fn check(needs: &ResourceNeeds, available: &Available) -> Result<(), Shortage> {
    let limit = available.files_limit;
    let threads = needs.workers + needs.library_threads;
    let beside = available.files_open + files_beside(threads, needs.server.is_some(), limit);
    fit(needs, beside, limit)?;
    if let Some(server) = &needs.server {
        check_server(server, limit)?;
    }
    if needs.ports > available.ports {
        return Err(Shortage::Ports {
            needed: needs.ports,
            available: available.ports,
        });
    }
    let threads = threads + OWN_THREADS;
    if threads > available.threads {
        return Err(Shortage::Threads {
            needed: threads,
            available: available.threads,
            bound: available.threads_bound,
        });
    }
    let bytes = needs.memory.iter().map(|(_, bytes)| *bytes);
    let bytes = bytes.fold(0, u64::saturating_add);
    if bytes > available.memory_bytes {
        return Err(Shortage::Memory {
            needed: bytes,
            available: available.memory_bytes,
            bound: available.memory_bound,
            parts: largest_parts(&needs.memory, bytes),
        });
    }
    Ok(())
}

fn check_server(server: &ServerNeeds, limit: u64) -> Result<(), Shortage> {
    let limit = server.limit.unwrap_or(limit);
    if server.files <= limit {
        return Ok(());
    }
    Err(Shortage::ServerDescriptors {
        name: server.name.clone(),
        connections: server.connections,
        needed: server.files,
        limit,
    })
}

/// Descriptors of pubgauge's process beside those of its clients, while a trial runs with `threads`
/// threads of workers and client libraries under a `limit` of open files.
fn files_beside(threads: u64, server: bool, limit: u64) -> u64 {
    let server = if !server {
        0
    } else {
        let kept = kept_threads(limit) as u64;
        FILES_PER_SERVER_PROCESS * (SERVER_PROCESSES + kept)
    };
    OWN_FILES + FILES_PER_THREAD * threads + server
}

/// The largest number of a server's threads whose files the sampler keeps open between samples. A
/// Java server has a hundred threads. To open the files of the rest once a second costs less than
/// their descriptors would; where descriptors are few, clients need them more.
pub(crate) fn kept_threads(limit: u64) -> usize {
    if limit < 1024 { 8 } else { 64 }
}

fn fit(needs: &ResourceNeeds, beside: u64, limit: u64) -> Result<(), TooFewDescriptors> {
    let needed = needs.files.saturating_add(beside);
    if needed <= limit {
        return Ok(());
    }
    let shared = needs.files.saturating_sub(needs.clients);
    let fit = limit.saturating_sub(beside + shared);
    Err(TooFewDescriptors {
        clients: needs.clients,
        needed,
        limit,
        fit: needs.one_file_each.then_some(fit),
    })
}

/// A resource of which a trial needs more than there is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Shortage {
    /// Open files of the client.
    #[error(transparent)]
    Descriptors(#[from] TooFewDescriptors),
    /// Open files of the server.
    #[error(
        "{name} needs {needed} open files for {connections} connections, but may open {limit}\n  hint: plan fewer clients, or raise the hard limit before starting: `ulimit -Hn {needed}` as root; a server that pubgauge starts has pubgauge's limit, unless its file sets limits.open-files"
    )]
    ServerDescriptors {
        name: String,
        /// Connections planned.
        connections: u64,
        /// The limit of open files that it needs.
        needed: u64,
        /// The limit that holds for it.
        limit: u64,
    },
    /// Local ports.
    #[error(
        "{needed} local ports are needed from one source address to one port of a server, but there are {available}\n  hint: {}; endpoints at 127.0.0.1 get more source addresses by themselves",
        Resource::Ports.advice()
    )]
    Ports {
        /// Ports needed.
        needed: u64,
        /// Ports in `net.ipv4.ip_local_port_range` that are not reserved.
        available: u64,
    },
    /// Threads.
    #[error(
        "{needed} threads are needed, but {available} more are allowed ({bound})\n  hint: {}",
        Resource::Threads.advice()
    )]
    Threads {
        /// Threads needed.
        needed: u64,
        /// Threads allowed.
        available: u64,
        /// The limit that bounds them.
        bound: &'static str,
    },
    /// Memory.
    #[error(
        "the client needs about {} of memory at the least, but {} are available ({bound}): {parts}\n  hint: {}",
        shown::bytes(*needed),
        shown::bytes(*available),
        Resource::Memory.advice()
    )]
    Memory {
        /// Bytes needed, estimated.
        needed: u64,
        /// Bytes available.
        available: u64,
        /// The limit that bounds them.
        bound: &'static str,
        /// The parts of the estimate, in words.
        parts: String,
    },
}

impl Shortage {
    /// The resource that is short.
    pub fn resource(&self) -> Resource {
        match self {
            Shortage::Descriptors(_) | Shortage::ServerDescriptors { .. } => Resource::Descriptors,
            Shortage::Ports { .. } => Resource::Ports,
            Shortage::Threads { .. } => Resource::Threads,
            Shortage::Memory { .. } => Resource::Memory,
        }
    }
}

/// More clients than this process may open sockets for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{clients} clients need {needed} open files, but this process may open {limit}{}, or raise the hard limit before starting: `ulimit -Hn {needed}` as root, or a line `* hard nofile {needed}` in /etc/security/limits.conf and a new login",
    match fit {
        Some(fit) => format!(": {fit} clients would fit\n  hint: plan at most {fit} clients"),
        None => "\n  hint: plan fewer clients".into(),
    }
)]
pub struct TooFewDescriptors {
    /// Clients planned.
    pub clients: u64,
    /// The limit of open files that they need.
    pub needed: u64,
    /// The limit that holds.
    pub limit: u64,
    /// Clients that would fit, where each needs one descriptor.
    pub fit: Option<u64>,
}

/// The parts of the estimate that make up a hundredth or more.
fn largest_parts(memory: &[(String, u64)], all: u64) -> String {
    let large = memory.iter().filter(|(_, bytes)| *bytes >= all / 100);
    let words = large.map(|(what, bytes)| format!("{what} {}", shown::bytes(*bytes)));
    words.collect::<Vec<_>>().join(", ")
}

/// Raises the soft limit of open files to the hard one and returns the limit that then holds.
///
/// # Errors
/// If the system refuses to raise it.
pub fn raise_nofile() -> io::Result<u64> {
    let limit = getrlimit(process::Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit {
            current: limit.maximum,
            ..limit
        };
        setrlimit(process::Resource::Nofile, raised)?;
    }
    Ok(limit.maximum.unwrap_or(u64::MAX))
}

/// The soft limit of open files of this process; [`u64::MAX`] if there is none.
pub fn max_open_files() -> u64 {
    getrlimit(process::Resource::Nofile)
        .current
        .unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
