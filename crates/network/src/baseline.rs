//! Measurements of a network's bare links: the upper bound of a system's figures on it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::network::{Host, Nanos};

/// Payload of a datagram that fills a frame of 1500 bytes: less 20 bytes of IPv4 and 8 of UDP.
pub const DATAGRAM_BYTES: usize = 1472;

/// Measurements of the links between one host and others, without other traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Baseline {
    /// The host that sends.
    pub from: Host,
    /// The hosts that receive, all at the same time.
    pub to: Vec<Host>,
    /// One TCP stream to each.
    pub tcp: Throughput,
    /// Datagrams of [`DATAGRAM_BYTES`] to each in turn.
    pub udp: Throughput,
    /// Datagrams of [`DATAGRAM_BYTES`] to a multicast group that all are in.
    pub multicast: Throughput,
    /// Round trips of 64 bytes to each, one receiver after another.
    pub round_trips: Vec<RoundTrip>,
    /// Whether throughput cannot be quoted.
    pub shape_only: bool,
}

/// The arrivals in a span of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Throughput {
    /// The span.
    pub span_ns: Nanos,
    /// Payload that arrived within the span, in bytes, for each receiver.
    pub received_bytes: Vec<u64>,
}

impl Throughput {
    /// Payload of all receivers together, in bits per second.
    pub fn bits_per_s(&self) -> f64 {
        let bytes: u64 = self.received_bytes.iter().sum();
        bytes as f64 * 8e9 / self.span_ns.max(1) as f64
    }
}

/// Round trips of one datagram at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundTrip {
    /// The host that answers.
    pub to: Host,
    /// How many came back; both percentiles are 0 if none did.
    pub answered: u64,
    /// How many did not.
    pub lost: u64,
    /// Median, in nanoseconds.
    pub p50_ns: Nanos,
    /// 99th percentile, in nanoseconds (nearest rank).
    pub p99_ns: Nanos,
}
