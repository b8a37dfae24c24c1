//! Non-blocking TCP sockets.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use pubgauge_driver::{Attempt, DriverError, Failure, Resource};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};
use schemars::JsonSchema;
use serde::Deserialize;

/// When the host of an address is looked up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NameLookup {
    /// Before the first connection; clients take the addresses in turn.
    #[default]
    Once,
    /// For each connection, which takes the first address, as devices do.
    EachConnection,
}

/// Options of a TCP connection, which are native settings of every driver over TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct SocketOptions {
    /// Look-up of the host's name.
    pub name_lookup: NameLookup,
    /// TCP_NODELAY.
    ///
    /// No waiting for more bytes (Nagle's algorithm off).
    pub no_delay: bool,
    /// SO_SNDBUF, bytes.
    ///
    /// The kernel's choice if absent.
    #[schemars(range(min = 1, max = 1_073_741_824))]
    pub send_buffer_bytes: Option<usize>,
    /// SO_RCVBUF, bytes.
    ///
    /// The kernel's choice if absent.
    #[schemars(range(min = 1, max = 1_073_741_824))]
    pub receive_buffer_bytes: Option<usize>,
}

/// The outcome of a socket call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// The bytes that went through; 0 of a read is the end of the stream.
    Done(usize),
    /// It would have to wait.
    WouldBlock,
    Failed(Errno),
}

/// The outcome of reading from a client.
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

/// Makes a socket with the options set and begins to connect to an endpoint, which messages call
/// `shown`. The inner result is a failure that `connect` reported at once.
///
/// # Errors
/// When no socket can be made, an option cannot be set, or `source` is no address of this host.
pub fn begin_connect(
    address: SocketAddr,
    source: Option<IpAddr>,
    options: &SocketOptions,
    shown: &str,
) -> Result<(OwnedFd, Result<(), Failure>), DriverError> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let fd = net::socket_with(family, SocketType::STREAM, flags, None).map_err(|errno| {
        DriverError::of_io("cannot make a socket", Attempt::Open, &errno.into())
    })?;
    let cannot_set = |option: &'static str| {
        move |errno: Errno| {
            let what = format!("cannot set {option} on a socket");
            DriverError::of_io(what, Attempt::Open, &errno.into())
        }
    };
    sockopt::set_tcp_nodelay(&fd, options.no_delay).map_err(cannot_set("TCP_NODELAY"))?;
    if let Some(bytes) = options.send_buffer_bytes {
        sockopt::set_socket_send_buffer_size(&fd, bytes).map_err(cannot_set("SO_SNDBUF"))?;
    }
    if let Some(bytes) = options.receive_buffer_bytes {
        sockopt::set_socket_recv_buffer_size(&fd, bytes).map_err(cannot_set("SO_RCVBUF"))?;
    }
    if let Some(source) = source {
        // The port is chosen at connect, when the whole four-tuple is known, so that one source
        // address serves as many connections as it has ports for each server. (Past 14,000 of
        // them Linux searches long for each: it tries every other port of its range first.)
        bind_address_no_port(&fd).map_err(cannot_set("IP_BIND_ADDRESS_NO_PORT"))?;
        net::bind(&fd, &SocketAddr::new(source, 0)).map_err(|errno| {
            let what = format!("cannot connect from {source}");
            DriverError::of_io(what, Attempt::BindAnyPort, &errno.into())
                .or_hint("a source address must belong to this host (all of 127.0.0.0/8 does)")
        })?;
    }
    let begun = loop {
        match net::connect(&fd, &address) {
            Err(Errno::INTR) => {}
            Err(Errno::INPROGRESS) => break Ok(()),
            // Reported where a source address has no port left, and where no source address
            // reaches the destination.
            Err(Errno::ADDRNOTAVAIL) if !has_source_address(address) => {
                break Err(Failure::from(format!(
                    "{shown}: this host has no address to connect to {} from\n  hint: check the network, and whether IPv6 is on where that is an address of IPv6",
                    address.ip()
                )));
            }
            other => break other.map_err(|errno| failure(errno, shown, true)),
        }
    };
    Ok((fd, begun))
}

/// Whether this host has an address from which `address` can be reached: connecting a UDP socket
/// chooses one, sends nothing, and takes none of TCP's ports.
fn has_source_address(address: SocketAddr) -> bool {
    let any: SocketAddr = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let reached = UdpSocket::bind(any).and_then(|socket| socket.connect(address));
    !reached.is_err_and(|error| error.kind() == io::ErrorKind::AddrNotAvailable)
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

/// Why a connection could not be made or was lost, and what to do.
pub fn failure(errno: Errno, endpoint: &str, connecting: bool) -> Failure {
    let attempt = if connecting {
        Attempt::Connect
    } else {
        Attempt::Transfer
    };
    if let Some(resource) = Resource::of_errno(attempt, errno.raw_os_error()) {
        let what = match resource {
            Resource::Ports => format!("{endpoint}: no local port left"),
            _ => format!("{endpoint}: {errno}"),
        };
        return DriverError::exhausted(what, resource).into();
    }
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
        Errno::CONNRESET if connecting => (
            "connection reset",
            "the server took the connection and dropped it: its log may say why; a limit on connections is common",
        ),
        Errno::CONNRESET => (
            "connection reset by the server",
            "the server or something between dropped the connection: its log may say why",
        ),
        Errno::PIPE => ("the server closed the connection", "its log may say why"),
        other => return format!("{endpoint}: {other}").into(),
    };
    format!("{endpoint}: {what}\n  hint: {hint}").into()
}
