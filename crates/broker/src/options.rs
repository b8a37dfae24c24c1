//! Settings, errors and counters of the broker.

use std::net::SocketAddr;
use std::time::Duration;

/// Settings of the broker. The defaults suit measuring on one machine.
#[derive(Debug, Clone)]
pub struct Options {
    /// Address to listen on; port 0 takes a free one. Default `127.0.0.1:0`.
    pub listen: SocketAddr,
    /// User names and passwords that are accepted. If empty (the default),
    /// every client is accepted, with or without a name.
    pub credentials: Vec<Credential>,
    /// Longest packet taken from a client, in bytes with its header. Longer ones
    /// end the connection (MQTT 5 section 3.2.2.3.6). Default 16 MiB.
    pub max_packet_bytes: u32,
    /// QoS 2 messages a client may have in flight to the broker, 1 to 65,535
    /// (MQTT 5 section 3.2.2.3.3). Default 65,535.
    pub receive_maximum: u16,
    /// Most QoS 1 and 2 messages in flight to any client; an MQTT 3.1.1 client
    /// cannot tell a lower limit. Default 65,535.
    pub max_in_flight: u16,
    /// Topic aliases a client may use (MQTT 5 section 3.2.2.3.8). Default 256.
    pub topic_alias_maximum: u16,
    /// Bytes that may wait for one connected subscriber before the publishers
    /// that feed it are no longer read. Default 64 MiB.
    pub max_backlog_bytes: usize,
    /// Messages kept for one durable session while its client is not connected;
    /// newer ones are dropped and counted. Default 100,000.
    pub max_offline_messages: usize,
    /// Bytes kept for one durable session while its client is not connected; as
    /// above. Default 64 MiB.
    pub max_offline_bytes: usize,
    /// Bytes of retained messages in all; beyond, a message is passed on but not
    /// retained, and counted as dropped. Default 1 GiB.
    pub max_retained_bytes: usize,
    /// Sessions in all, with and without a connection; beyond, CONNECT is
    /// answered with "quota exceeded". Default 1,000,000.
    pub max_sessions: usize,
    /// How long a connection may take to send its CONNECT. Default 10 s.
    pub connect_timeout: Duration,
    /// How often the `$SYS` topics are published. Default 10 s, as mosquitto's.
    /// A new subscription to `$SYS` gets current values regardless.
    pub sys_interval: Duration,
    /// Least processor time of the broker's thread for each PUBLISH it receives: the thread spins for what
    /// handling the message took less. A broker that is held to a share of a processor then carries that share
    /// over this time, in messages a second, and no more. Default zero: no spinning.
    pub cpu_per_message: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            credentials: Vec::new(),
            max_packet_bytes: 16 * 1024 * 1024,
            receive_maximum: u16::MAX,
            max_in_flight: u16::MAX,
            topic_alias_maximum: 256,
            max_backlog_bytes: 64 * 1024 * 1024,
            max_offline_messages: 100_000,
            max_offline_bytes: 64 * 1024 * 1024,
            max_retained_bytes: 1024 * 1024 * 1024,
            max_sessions: 1_000_000,
            connect_timeout: Duration::from_secs(10),
            sys_interval: Duration::from_secs(10),
            cpu_per_message: Duration::ZERO,
        }
    }
}

/// A user name with its password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    pub username: String,
    /// Password, any bytes.
    pub password: Vec<u8>,
}

impl std::fmt::Debug for Credential {
    /// Without the password, since options may be printed.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential")
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

/// Why the broker could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; hint: choose another port, or 0 for a free one")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// A system call that the broker cannot do without failed.
    #[error("the reference broker stopped: {what} failed: {source}")]
    System {
        /// The call.
        what: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
}

/// Counts of the broker since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// PUBLISH packets received, as `$SYS/broker/publish/messages/received`.
    pub publish_received: u64,
    /// PUBLISH packets sent, as `$SYS/broker/publish/messages/sent`.
    pub publish_sent: u64,
    /// Messages dropped because of a limit, as
    /// `$SYS/broker/publish/messages/dropped`: a full offline queue, a packet
    /// larger than the subscriber takes, a full retained store, or a circle of
    /// clients that wait for each other beyond four times the backlog limit.
    pub publish_dropped: u64,
    /// Queued messages whose expiry interval ran out before they could be sent
    /// (MQTT 5 section 3.3.2.3.3).
    pub publish_expired: u64,
    /// Packets of all types received.
    pub packets_received: u64,
    /// Packets of all types sent.
    pub packets_sent: u64,
    pub bytes_received: u64,
    pub bytes_sent: u64,
    pub connections_accepted: u64,
    /// Times that accepting had to pause because the process or the system had
    /// no file descriptor left. The connection concerned is closed at once.
    pub accept_out_of_files: u64,
    /// Connections ended because of malformed packets or protocol errors.
    pub protocol_errors: u64,
    /// Times that a publisher was not read for a while because a subscriber of
    /// its messages was full.
    pub publisher_pauses: u64,
    /// Clients connected now.
    pub clients_connected: u64,
    /// Most clients that were connected at a time.
    pub clients_maximum: u64,
}
