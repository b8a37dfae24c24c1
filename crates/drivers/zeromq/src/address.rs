//! Addresses: of a forwarder, and of a publisher's own socket file.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::str::FromStr;

use pubgauge_driver::{DriverError, Encryption, Scheme, Transport};

/// Longest path of a local socket: `sun_path` of `sockaddr_un` without its final zero byte.
const MAX_IPC_PATH: usize = 107;

/// The two sides of a forwarder, as written in [`pubgauge_driver::Target::endpoints`]:
/// `zmq-forwarder+tcp://HOST:IN,OUT` or `zmq-forwarder+ipc://PATH_IN,PATH_OUT`. Publishers connect
/// to the first (its XSUB socket), subscribers to the second (its XPUB socket).
///
/// ```
/// use pubgauge_driver_zeromq::ForwarderAddress;
/// let address: ForwarderAddress = "zmq-forwarder+tcp://127.0.0.1:5559,5560".parse().unwrap();
/// assert_eq!(address.for_publishers(), "tcp://127.0.0.1:5559");
/// assert_eq!(address.for_subscribers(), "tcp://127.0.0.1:5560");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForwarderAddress {
    /// Two TCP ports of one host.
    Tcp {
        /// Host name or IP address; an IPv6 address in brackets.
        host: String,
        /// Port of the XSUB socket; 0 lets the system choose when binding.
        xsub_port: u16,
        /// Port of the XPUB socket; 0 lets the system choose when binding.
        xpub_port: u16,
    },
    /// Two local sockets.
    Ipc {
        /// Socket file of the XSUB socket.
        xsub_path: String,
        /// Socket file of the XPUB socket.
        xpub_path: String,
    },
}

/// Schemes of forwarders' addresses, which name two sockets, unlike those of other servers.
pub(crate) const SCHEMES: &[Scheme] = &[TCP, IPC];

const TCP: Scheme = Scheme {
    name: "zmq-forwarder+tcp",
    also: &[],
    encryption: Encryption::None,
    usual_port: None,
    path: None,
    websocket: None,
};

const IPC: Scheme = Scheme {
    name: "zmq-forwarder+ipc",
    ..TCP
};

impl ForwarderAddress {
    /// Where publishers connect to, as a libzmq endpoint.
    pub fn for_publishers(&self) -> String {
        match self {
            Self::Tcp {
                host, xsub_port, ..
            } => format!("tcp://{host}:{xsub_port}"),
            Self::Ipc { xsub_path, .. } => format!("ipc://{xsub_path}"),
        }
    }

    /// Where subscribers connect to, as a libzmq endpoint.
    pub fn for_subscribers(&self) -> String {
        match self {
            Self::Tcp {
                host, xpub_port, ..
            } => format!("tcp://{host}:{xpub_port}"),
            Self::Ipc { xpub_path, .. } => format!("ipc://{xpub_path}"),
        }
    }

    /// The transport of both sockets.
    pub fn transport(&self) -> Transport {
        match self {
            Self::Tcp { .. } => Transport::Tcp,
            Self::Ipc { .. } => Transport::Ipc,
        }
    }
}

impl fmt::Display for ForwarderAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp {
                host,
                xsub_port,
                xpub_port,
            } => write!(f, "{}://{host}:{xsub_port},{xpub_port}", TCP.name),
            Self::Ipc {
                xsub_path,
                xpub_path,
            } => write!(f, "{}://{xsub_path},{xpub_path}", IPC.name),
        }
    }
}

impl FromStr for ForwarderAddress {
    type Err = DriverError;

    fn from_str(text: &str) -> Result<Self, DriverError> {
        let wrong = || {
            DriverError::with_hint(
                format!("{text:?} is not the address of a ZeroMQ forwarder"),
                "write zmq-forwarder+tcp://HOST:PUBLISHER_PORT,SUBSCRIBER_PORT or \
                 zmq-forwarder+ipc://PUBLISHER_PATH,SUBSCRIBER_PATH",
            )
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        if TCP.is(scheme) {
            let (host, ports) = rest.rsplit_once(':').ok_or_else(wrong)?;
            let (xsub, xpub) = ports.split_once(',').ok_or_else(wrong)?;
            if host.is_empty() || host.contains(',') {
                return Err(wrong());
            }
            Ok(Self::Tcp {
                host: host.to_owned(),
                xsub_port: xsub.parse().map_err(|_| wrong())?,
                xpub_port: xpub.parse().map_err(|_| wrong())?,
            })
        } else if IPC.is(scheme) {
            let (xsub, xpub) = rest.split_once(',').ok_or_else(wrong)?;
            if xpub.contains(',') {
                return Err(wrong());
            }
            for path in [xsub, xpub] {
                if path.is_empty() {
                    return Err(wrong());
                }
                check_ipc_path(Path::new(path))?;
            }
            Ok(Self::Ipc {
                xsub_path: xsub.to_owned(),
                xpub_path: xpub.to_owned(),
            })
        } else {
            Err(wrong())
        }
    }
}

/// Where a publisher or a queue is to listen: at any port of `ip`, or at the socket file `name` in
/// `scratch`, a short name because the system allows 107 bytes in all.
///
/// # Errors
/// When `scratch` is too long a path.
pub(crate) fn to_bind(
    transport: Option<Transport>,
    ip: IpAddr,
    scratch: &Path,
    name: &str,
) -> Result<String, DriverError> {
    if transport == Some(Transport::Ipc) {
        let path = scratch.join(name);
        check_ipc_path(&path)?;
        return Ok(format!("ipc://{}", path.display()));
    }
    Ok(match ip {
        IpAddr::V4(ip) => format!("tcp://{ip}:*"),
        IpAddr::V6(ip) => format!("tcp://[{ip}]:*"),
    })
}

fn check_ipc_path(path: &Path) -> Result<(), DriverError> {
    let len = path.as_os_str().len();
    if len > MAX_IPC_PATH {
        return Err(DriverError::with_hint(
            format!(
                "the socket path {} has {len} bytes; the system allows {MAX_IPC_PATH}",
                path.display()
            ),
            "choose a shorter folder for temporary files, for example TMPDIR=/tmp",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_address_is_refused_with_the_right_form() {
        for bad in [
            "",
            "tcp://127.0.0.1:1,2",
            "zmq-forwarder+tcp://127.0.0.1:1",
            "zmq-forwarder+tcp://:1,2",
            "zmq-forwarder+tcp://127.0.0.1:1,66000",
            "zmq-forwarder+ipc:///a",
            "zmq-forwarder+ipc:///a,",
            "zmq-forwarder+ipc:///a,/b,/c",
        ] {
            let error = bad.parse::<ForwarderAddress>().unwrap_err().to_string();
            assert!(
                error.contains("zmq-forwarder+tcp://HOST:"),
                "{bad}: {error}"
            );
        }
    }

    #[test]
    fn a_path_that_is_too_long_is_refused_before_libzmq_sees_it() {
        let at = |scratch: &str, name: &str| {
            let ip = [127, 0, 0, 1].into();
            to_bind(Some(Transport::Ipc), ip, Path::new(scratch), name)
        };
        assert!(at(&format!("/{}", "x".repeat(105)), "z0-0").is_err());
        let name = "z4000000000-4000000000";
        assert_eq!(at("/tmp/p", name).unwrap(), format!("ipc:///tmp/p/{name}"));
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_back(
            host in "[a-z0-9.-]{1,20}|\\[[0-9a-f:]{2,10}\\]", xsub_port: u16, xpub_port: u16,
            xsub_path in "/[a-z0-9/._-]{1,40}", xpub_path in "/[a-z0-9/._-]{1,40}",
        ) {
            for address in [
                ForwarderAddress::Tcp { host: host.clone(), xsub_port, xpub_port },
                ForwarderAddress::Ipc { xsub_path: xsub_path.clone(), xpub_path: xpub_path.clone() },
            ] {
                prop_assert_eq!(address.to_string().parse::<ForwarderAddress>().unwrap(), address);
            }
        }
    }
}
