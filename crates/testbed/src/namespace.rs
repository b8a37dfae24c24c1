//! Network namespaces. One without a name lives exactly as long as this process holds it open.

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::sync::Arc;

use crate::shares::HostShare;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// An open network namespace.
///
/// A namespace that was made here is kept by the open file alone, and by processes within. The kernel closes the file
/// when this process ends, in whatever way; the interfaces, addresses and rules of the namespace are gone then.
#[derive(Debug)]
pub struct Namespace {
    file: File,
    path: String,
}

impl Namespace {
    /// Makes a namespace that holds only a loopback interface, which is down.
    ///
    /// # Errors
    /// If this process may not: it needs root or a user namespace of its own (see the error's
    /// kind).
    pub fn create() -> io::Result<Namespace> {
        let file = on_a_thread(|| {
            // SAFETY: of what `unshare` may take away (files, file systems) a network namespace is nothing.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
            File::open("/proc/thread-self/ns/net")
        })?;
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        Ok(Namespace { file, path })
    }

    /// Opens the namespace that `ip netns` knows by this name, or whose file has this path.
    ///
    /// # Errors
    /// If there is none, or this program may not open it.
    pub fn open(name: &str) -> io::Result<Namespace> {
        let path = Path::new("/run/netns").join(name);
        Ok(Namespace {
            file: File::open(&path)?,
            path: path.display().to_string(),
        })
    }

    /// Its open file, to start a process within.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The path of its file, valid as long as this value lives: for `nsenter --net=PATH` and everything else
    /// that takes a name of `ip netns` or a path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Executes `what` on a thread within: sockets made there, files of `/proc/thread-self/net` opened there
    /// and programs started there stay within.
    ///
    /// # Errors
    /// If the namespace cannot be entered, or `what` failed. A panic is passed on.
    pub fn run<T: Send>(&self, what: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        on_a_thread(|| {
            move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))?;
            what()
        })
    }
}

/// Namespaces belong to threads: what enters one does so on a thread of its own.
fn on_a_thread<T: Send>(what: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("netns".into());
        let thread = thread.spawn_scoped(scope, what)?;
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A host of a network, on which a system or a client runs.
#[derive(Clone, Debug)]
pub struct NetworkHost {
    /// Its address on the network.
    pub address: Ipv4Addr,
    /// The namespace of its processes and sockets; absent on a network that pubgauge has not made: then
    /// that of this program.
    pub namespace: Option<Arc<Namespace>>,
}

/// The host that a system is started on: one of a network, one of a given size, both, or neither.
#[derive(Clone, Debug, Default)]
pub struct Site {
    /// The host of a network; absent: this host, on none.
    pub host: Option<NetworkHost>,
    /// The share of its host, in place of one that the system's file gives.
    pub share: Option<Arc<HostShare>>,
    /// Its number among the instances of its system, from 0: where processor time is limited by affinity, they take
    /// processors in turn.
    pub number: usize,
}

/// Executes `what` on a host of a network ([`Namespace::run`]), or on the calling thread if absent.
///
/// # Errors
/// If the host cannot be entered.
pub(crate) fn run_on<T: Send>(
    host: Option<&NetworkHost>,
    what: impl FnOnce() -> T + Send,
) -> io::Result<T> {
    match host.and_then(|host| host.namespace.as_ref()) {
        Some(namespace) => namespace.run(|| Ok(what())),
        None => Ok(what()),
    }
}
