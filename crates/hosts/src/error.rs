//! Why other hosts cannot be used.

use std::io;
use std::net::Ipv6Addr;
use std::time::Duration;

use pubgauge_engine::link;

/// Why the hosts of a run cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HostsError {
    /// The user ended the wait.
    #[error("ended by the user while hosts were waited for")]
    Stopped,
    /// A host that cannot be used.
    #[error("{host}: {error}")]
    Host { host: String, error: HostError },
}

/// Why a host cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Nothing could be started here.
    #[error("cannot be started here: {0}")]
    Start(#[from] io::Error),
    /// The started command ended without a word.
    #[error(
        "{how}\n  hint: does `{command} --version` work in a shell, and does the prefix pass standard input on (kubectl exec -i)?"
    )]
    Ended {
        how: String,
        /// The prefix and the program.
        command: String,
    },
    /// It says something else.
    #[error(
        "what was started says {0:?} before its greeting\n  hint: a start-up file of the shell there may print it"
    )]
    Strange(String),
    /// Nothing was said in time.
    #[error("nothing was heard of it within {} s", .0.as_secs())]
    Silent(Duration),
    /// Its program is of another version.
    #[error(
        "its program is pubgauge {pubgauge} and speaks version {link} of the link, not {}\n  hint: install the pubgauge that runs the study there, or name one with --host-program",
        link::VERSION
    )]
    OtherVersion { pubgauge: String, link: u32 },
    #[error("it gives names that no host has")]
    Names,
    /// Systems without a broker need IPv4.
    #[error(
        "it has {0} towards this host, and systems without a broker have IPv4 addresses only\n  hint: --at with an IPv4 address of this host"
    )]
    NoIpv4(Ipv6Addr),
    #[error("it does not say at which network interface it reaches this host")]
    NoInterface,
    #[error("it is not there")]
    NotThere,
}
