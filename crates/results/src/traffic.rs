//! Emulated networks of a run, and what crossed the links of their hosts.

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
    /// What its links do without other traffic, measured before its first trial.
    pub baseline: Option<Baseline>,
}

/// What crossed the links of a trial's hosts during the measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkTraffic {
    /// Which of the run's networks it ran on, from 0.
    pub network: u32,
    /// Each host, brokers first. A datagram to a group is sent once, and received by each.
    pub hosts: Vec<HostTraffic>,
    /// Why the counts do not describe the measurement; absent: they do.
    pub not_told: Option<String>,
}

/// What crossed a host's link, by the counters of its interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostTraffic {
    /// `broker-1`, `publisher-1`, `subscriber-7`.
    pub host: String,
    /// What its link carries each way, in bits per second of the frames that are counted here; absent: as much
    /// as the machine can.
    #[serde(default)]
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
    /// Bytes and packets that the hosts of a role sent, all together; `publisher`, `subscriber`, `broker`.
    pub fn sent_by(&self, role: &str) -> (u64, u64) {
        let hosts = self.hosts.iter();
        let of = hosts.filter(|own| {
            own.host
                .rsplit_once('-')
                .is_some_and(|(own, _)| own == role)
        });
        of.fold((0, 0), |(bytes, packets), own| {
            (bytes + own.sent_bytes, packets + own.sent_packets)
        })
    }
}
