//! Network namespaces: those without a name live as long as this process holds them open, and not a moment longer.

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::sync::Arc;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// A network namespace, open.
///
/// Nothing of one that was made but the open file keeps it, and processes within. The kernel closes the file when this process ends,
/// however that happens; what is in the namespace (interfaces, addresses, rules) is gone then.
#[derive(Debug)]
pub struct Namespace {
    file: File,
    path: String,
}

impl Namespace {
    /// Makes one, with nothing in it but a loopback interface that is down.
    ///
    /// # Errors
    /// This process may not: it takes root, or a user namespace of one's own (see its kind).
    pub fn make() -> io::Result<Namespace> {
        let file = on_a_thread(|| {
            // SAFETY: of what `unshare` may take away (files, file systems) a network namespace is nothing.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
            File::open("/proc/thread-self/ns/net")
        })?;
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        Ok(Namespace { file, path })
    }

    /// The one that `ip netns` knows by this name, or whose file has this path.
    ///
    /// # Errors
    /// There is none, or this program may not open it.
    pub fn open(name: &str) -> io::Result<Namespace> {
        let path = Path::new("/run/netns").join(name);
        Ok(Namespace {
            file: File::open(&path)?,
            path: path.display().to_string(),
        })
    }

    /// Its file, open, for what runs a process within.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The path of its file, as long as this lives: for `nsenter --net=PATH` and all that takes a name of `ip
    /// netns` or a path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Does something on a thread within: sockets made there, files of `/proc/thread-self/net` opened there and
    /// programs started there stay within.
    ///
    /// # Errors
    /// The namespace cannot be entered, or what was done failed. A panic is handed on.
    pub fn run<T: Send>(&self, what: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        on_a_thread(|| {
            move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))?;
            what()
        })
    }
}

/// Namespaces belong to threads: what enters one does so on a thread of its own, which ends with it.
fn on_a_thread<T: Send>(what: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("netns".into());
        let thread = thread.spawn_scoped(scope, what)?;
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A host of a network, for what runs on it.
#[derive(Clone, Debug)]
pub struct NetworkHost {
    /// Its address on the network.
    pub address: Ipv4Addr,
    /// Where its processes and sockets are; absent: where this program's are, on a network of hosts that
    /// pubgauge has not made.
    pub namespace: Option<Arc<Namespace>>,
}

/// Does something on a host of a network ([`Namespace::run`]); where this thread is if absent.
///
/// # Errors
/// The host cannot be entered.
pub(crate) fn on<T: Send>(
    host: Option<&NetworkHost>,
    what: impl FnOnce() -> T + Send,
) -> io::Result<T> {
    match host.and_then(|host| host.namespace.as_ref()) {
        Some(namespace) => namespace.run(|| Ok(what())),
        None => Ok(what()),
    }
}
