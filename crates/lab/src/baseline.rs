//! What the bare links do: the ceiling that a system's figures are drawn under.
//!
//! Threads with sockets of the hosts send and receive as fast as the links let them, one kind of traffic after
//! another, over a network that carries nothing else.

mod round_trip;
mod throughput;

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::lab::{Lab, LabError, LabHost};
use crate::network::{Host, Nanos};

/// Payload of a datagram that fills a frame of 1500 bytes: less 20 bytes of IPv4 and 8 of UDP.
pub const DATAGRAM_BYTES: usize = 1472;

/// What the links between one host and others do, with nothing else on them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
    /// Whether throughput is not quotable ([`Lab::shape_only`]).
    pub shape_only: bool,
}

/// What arrived in a span of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Throughput {
    /// The span.
    pub span_ns: Nanos,
    /// Payload that came within the span, in bytes, of each receiver.
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RoundTrip {
    /// The host that answers.
    pub to: Host,
    /// How many came back; both percentiles are 0 if none did.
    pub answered: u64,
    /// How many did not.
    pub lost: u64,
    /// Half of them took no longer, in nanoseconds.
    pub p50_ns: Nanos,
    /// 99 of 100 took no longer, in nanoseconds (nearest rank).
    pub p99_ns: Nanos,
}

impl Lab {
    /// Measures what the links between `from` and each of `to` do, for `span` each: round trips while nothing else is
    /// under way, a thousand with each receiver or as many as `span` allows; then TCP, UDP, multicast. Takes somewhat
    /// more than four spans.
    ///
    /// # Errors
    /// The network has no such host, or sockets fail. A link that is cut is no error: nothing comes.
    pub fn baseline(&self, from: Host, to: &[Host], span: Duration) -> Result<Baseline, LabError> {
        let round_trips = self.round_trips(from, to, span)?;
        let (sender, receivers) = self.ends(from, to)?;
        let failed = |what: &'static str| LabError::io(format!("baseline from {from}: {what}"));
        Ok(Baseline {
            from,
            to: to.to_vec(),
            tcp: throughput::tcp(sender, &receivers, span).map_err(failed("TCP"))?,
            udp: throughput::udp(sender, &receivers, span).map_err(failed("UDP"))?,
            multicast: throughput::multicast(sender, &receivers, span)
                .map_err(failed("multicast"))?,
            round_trips,
            shape_only: self.shape_only(),
        })
    }

    /// Round trips alone, in `span` altogether.
    ///
    /// # Errors
    /// As [`Lab::baseline`].
    pub fn round_trips(
        &self,
        from: Host,
        to: &[Host],
        span: Duration,
    ) -> Result<Vec<RoundTrip>, LabError> {
        let (sender, receivers) = self.ends(from, to)?;
        let one = span / receivers.len().max(1) as u32;
        let delay = |host| {
            let link = self.network().link(host);
            Duration::from_nanos(link.delay_ns + link.jitter_ns)
        };
        let trips = receivers.iter().map(|receiver| {
            let delays = delay(from) + delay(receiver.host());
            round_trip::measure(sender, receiver, one, delays)
        });
        let trips: io::Result<Vec<RoundTrip>> = trips.collect();
        trips.map_err(LabError::io(format!("round trips from {from}")))
    }

    fn ends(&self, from: Host, to: &[Host]) -> Result<(&LabHost, Vec<&LabHost>), LabError> {
        let own = |host: Host| self.host(host).ok_or(LabError::NoHost(host));
        let receivers: Result<_, _> = to.iter().map(|host| own(*host)).collect();
        Ok((own(from)?, receivers?))
    }
}

/// A host's address with any port.
fn any_port(host: &LabHost) -> SocketAddrV4 {
    SocketAddrV4::new(host.address(), 0)
}

/// The group that multicast is measured with, of those for use within one organisation (RFC 2365).
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 77, 77);
