//! Non-blocking TCP sockets.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use pubgauge_driver::DriverError;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// Options of a TCP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketOptions {
    /// `TCP_NODELAY`: no waiting for more bytes (Nagle's algorithm off).
    pub no_delay: bool,
    /// `SO_SNDBUF` in bytes; the kernel's choice if absent.
    pub send_buffer: Option<usize>,
    /// `SO_RCVBUF` in bytes; the kernel's choice if absent.
    pub receive_buffer: Option<usize>,
}

/// What a socket call came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// So many bytes went through; 0 of a read is the end of the stream.
    Done(usize),
    /// It would have to wait.
    WouldBlock,
    /// It failed.
    Failed(Errno),
}

/// How it went to read from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// Bytes; more may be waiting.
    More,
    /// All there was for now.
    Drained,
    /// The end of the stream.
    Ended,
}

impl From<Result<usize, Errno>> for Io {
    #[inline]
    fn from(result: Result<usize, Errno>) -> Io {
        match result {
            Ok(n) => Io::Done(n),
            Err(Errno::AGAIN | Errno::INTR) => Io::WouldBlock,
            Err(errno) => Io::Failed(errno),
        }
    }
}

/// Sends what the socket takes at once.
#[inline]
pub fn write(fd: BorrowedFd<'_>, bytes: &[u8]) -> Io {
    net::send(fd, bytes, SendFlags::NOSIGNAL).into()
}

/// Receives what is there.
#[inline]
pub fn read(fd: BorrowedFd<'_>, buf: &mut [u8]) -> Io {
    net::recv(fd, buf, RecvFlags::empty())
        .map(|(_, n)| n)
        .into()
}

/// Makes a socket with the options set and begins to connect. The inner result is what `connect`
/// said where it said it at once.
///
/// # Errors
/// When no socket can be made, an option cannot be set, or `source` is no address of this host.
pub fn begin_connect(
    address: SocketAddr,
    source: Option<IpAddr>,
    options: &SocketOptions,
) -> Result<(OwnedFd, Result<(), Errno>), DriverError> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let fd = net::socket_with(family, SocketType::STREAM, flags, None).map_err(socket_error)?;
    let set = |what: &str, result: Result<(), Errno>| {
        result.map_err(|errno| DriverError::new(format!("cannot set {what} on a socket: {errno}")))
    };
    set(
        "TCP_NODELAY",
        net::sockopt::set_tcp_nodelay(&fd, options.no_delay),
    )?;
    if let Some(bytes) = options.send_buffer {
        set(
            "SO_SNDBUF",
            net::sockopt::set_socket_send_buffer_size(&fd, bytes),
        )?;
    }
    if let Some(bytes) = options.receive_buffer {
        set(
            "SO_RCVBUF",
            net::sockopt::set_socket_recv_buffer_size(&fd, bytes),
        )?;
    }
    if let Some(source) = source {
        // The port is chosen at connect, when the whole four-tuple is known, so that one source
        // address serves as many connections as it has ports for each server. (Past 14,000 of
        // them Linux searches long for each: it tries every other port of its range first.)
        set("IP_BIND_ADDRESS_NO_PORT", bind_address_no_port(&fd))?;
        net::bind(&fd, &SocketAddr::new(source, 0)).map_err(|errno| {
            DriverError::with_hint(
                format!("cannot connect from {source}: {errno}"),
                "a source address must belong to this host (all of 127.0.0.0/8 does)",
            )
        })?;
    }
    let begun = loop {
        match net::connect(&fd, &address) {
            Err(Errno::INTR) => {}
            Err(Errno::INPROGRESS) => break Ok(()),
            other => break other,
        }
    };
    Ok((fd, begun))
}

fn bind_address_no_port(fd: &OwnedFd) -> Result<(), Errno> {
    let on: libc::c_int = 1;
    // SAFETY: `on` is a valid int that outlives the call, and its size is given.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 {
        return Ok(());
    }
    Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL))
}

fn socket_error(errno: Errno) -> DriverError {
    let hint = match errno {
        Errno::MFILE => {
            "every connection needs a file descriptor: raise the limit (ulimit -n), or plan fewer clients or more processes"
        }
        Errno::NFILE => {
            "the whole host is out of file descriptors: raise fs.file-max or plan fewer clients"
        }
        Errno::NOBUFS | Errno::NOMEM => {
            "the kernel is out of memory for sockets: plan fewer clients"
        }
        _ => return DriverError::new(format!("cannot make a socket: {errno}")),
    };
    DriverError::with_hint(format!("cannot make a socket: {errno}"), hint)
}

/// Why a connection could not be made or was lost, and what to do.
pub fn explain(errno: Errno, endpoint: &str, connecting: bool) -> String {
    let (what, hint) = match errno {
        Errno::CONNREFUSED => (
            "connection refused",
            "nothing listens there: is the server running, on this port?",
        ),
        Errno::TIMEDOUT => (
            "timed out",
            "the host does not answer: check address, route and firewall",
        ),
        Errno::HOSTUNREACH | Errno::NETUNREACH => {
            ("no route to the host", "check the address and the network")
        }
        Errno::ADDRNOTAVAIL => (
            "no local port left",
            "one source address has some 28,000 ports for each server: use several source addresses",
        ),
        Errno::CONNRESET if connecting => (
            "connection reset",
            "the server took the connection and dropped it: its log may say why; a limit on connections is common",
        ),
        Errno::CONNRESET => (
            "connection reset by the server",
            "the server or something between dropped the connection: its log may say why",
        ),
        Errno::PIPE => ("the server closed the connection", "its log may say why"),
        other => return format!("{endpoint}: {other}"),
    };
    format!("{endpoint}: {what}\n  hint: {hint}")
}
