//! Emulated networks of a run, what crossed the links of their hosts, and what crossed an interface.

use pubgauge_network::{Baseline, Network};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An emulated network that trials of a run took place on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkInfo {
    /// Its hosts and links.
    pub network: Network,
    /// Its delays and losses were made by programs that every packet crosses, so that throughput over it is not
    /// that of its links.
    pub shape_only: bool,
    /// The performance of its links without other traffic, measured before its first trial.
    pub baseline: Option<Baseline>,
}

/// The traffic on the links of a trial's hosts during the measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkTraffic {
    /// Which of the run's networks it ran on, from 0.
    pub network: u32,
    /// Constant delay of a message's way from a publisher's host to a subscriber's, ns, as the network was asked for:
    /// of both their links and, where a broker is between, of its link twice. Jitter and queues are not in it. It is on
    /// top of what is asked by default. Absent: none of these links has a delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_ns: Option<u64>,
    /// Each host, brokers first. A datagram to a group is sent once, and received by each.
    pub hosts: Vec<HostTraffic>,
    /// Why the counts do not describe the measurement; absent: they do.
    pub not_told: Option<String>,
}

/// The traffic on a host's link, by the counters of its interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostTraffic {
    /// `broker-1`, `publisher-1`, `subscriber-7`.
    pub host: String,
    /// The capacity of its link each way, in bits per second of the frames that are counted here; absent: as much
    /// as the machine can.
    pub rate_bits_per_s: Option<u64>,
    /// Bytes that it sent, with headers of Ethernet (14 B a packet), IP and above.
    pub sent_bytes: u64,
    /// Packets that it sent.
    pub sent_packets: u64,
    /// Bytes that it received.
    pub received_bytes: u64,
    /// Packets that it received.
    pub received_packets: u64,
}

impl NetworkTraffic {
    /// The hosts of a role: `publisher`, `subscriber`, `broker`.
    fn hosts_of(&self, role: &str) -> impl Iterator<Item = &HostTraffic> {
        self.hosts.iter().filter(move |own| {
            let name = own.host.rsplit_once('-');
            name.is_some_and(|(own, _)| own == role)
        })
    }

    /// Bytes and packets that the hosts of a role sent, all together; `publisher`, `subscriber`, `broker`.
    pub fn sent_by(&self, role: &str) -> (u64, u64) {
        self.hosts_of(role).fold((0, 0), |(bytes, packets), own| {
            (bytes + own.sent_bytes, packets + own.sent_packets)
        })
    }

    /// Bytes that the hosts of a role received, all together; `None` if there is no such host, or the counts do not
    /// describe the measurement.
    pub fn received_by(&self, role: &str) -> Option<u64> {
        let counted = self.not_told.is_none();
        let received = self.hosts_of(role).map(|own| own.received_bytes);
        received.reduce(|all, more| all + more).filter(|_| counted)
    }
}

/// The traffic of a network interface during the measurement, headers included, whoever sent it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct InterfaceTraffic {
    /// The interface.
    pub interface: String,
    /// Its network namespace, as `ip netns` names it; absent: that of pubgauge.
    pub namespace: Option<String>,
    /// Bytes, with the headers that the interface counts; on loopback sent ones only, else in
    /// both directions.
    pub bytes: u64,
    /// Packets as the interface takes them, up to 64 KiB each.
    pub packets: u64,
    /// Payload bytes of the first deliveries that came in that time.
    pub payload_bytes: Option<u64>,
    /// Bytes that others sent over it in that time. Estimated as the larger of two: the traffic at the higher of the
    /// rates before the first client connected and after the last one closed; and what exceeds the traffic that the
    /// clients can have caused.
    pub foreign_bytes: u64,
    /// Why bytes and packets do not describe the trial's messages; absent: they do.
    pub not_told: Option<String>,
}

impl InterfaceTraffic {
    /// The largest share of foreign bytes, of the bytes that crossed or of the payload bytes if these are more,
    /// with which the figures are given: their error.
    pub const MOST_FOREIGN: f64 = 0.01;
}
