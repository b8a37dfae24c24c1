//! An emulated network as plain data: its hosts, and the properties of their links to the switch.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A time span, in nanoseconds.
pub type Nanos = u64;

/// Default length of a link's queue, in nanoseconds: 50 ms of its rate.
pub const USUAL_QUEUE_NS: Nanos = 50_000_000;

/// The role of a host.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum HostRole {
    /// Runs brokers.
    Broker,
    /// Runs publishers.
    Publisher,
    /// Runs subscribers.
    Subscriber,
}

impl HostRole {
    /// All roles, in the order in which hosts are numbered.
    pub const ALL: [HostRole; 3] = [HostRole::Broker, HostRole::Publisher, HostRole::Subscriber];

    /// Its name, as in [`Host`]'s.
    pub fn name(self) -> &'static str {
        match self {
            HostRole::Broker => "broker",
            HostRole::Publisher => "publisher",
            HostRole::Subscriber => "subscriber",
        }
    }
}

/// One host of a network: `publisher-2`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Its role.
    pub role: HostRole,
    /// Its number among the hosts of its role, from 1.
    pub number: u32,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.role.name(), self.number)
    }
}

/// Hosts around one switch: each has one link to it. A packet from one host to another crosses two
/// links, the sender's and the receiver's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Hosts that run brokers. None if absent.
    #[serde(default)]
    pub broker: Hosts,
    /// Hosts that run publishers. None if absent.
    #[serde(default)]
    pub publisher: Hosts,
    /// Hosts that run subscribers. None if absent.
    #[serde(default)]
    pub subscriber: Hosts,
}

/// The hosts of one role.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hosts {
    /// How many. 0 to [`crate::MOST_HOSTS`], over all roles.
    pub hosts: u32,
    /// The link of each of them.
    #[serde(default)]
    pub link: Link,
}

/// A link between a host and the switch. Everything applies to each direction separately: 20 ms of
/// delay is 20 ms to the switch and 20 ms from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Link {
    /// Bits per second of Ethernet frames without preamble, checksum and gap: a TCP stream with full
    /// segments gets 1448 / 1514 of it as payload. 64 kbit/s to 10 Gbit/s. As fast as the machine if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bits_per_s: Option<u64>,
    /// Length of the queue of a link with a rate, as the time to send it: 1 ms to 10 s, 50 ms if
    /// absent. Further packets are dropped. Without a rate there is no queue.
    pub queue_ns: Nanos,
    /// Delay, in nanoseconds: at most 10 s, 0 if absent.
    pub delay_ns: Nanos,
    /// Each packet's delay is uniformly distributed within this of `delay_ns`; at most `delay_ns`,
    /// 0 if absent.
    pub jitter_ns: Nanos,
    /// Which packets are lost. None if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// Share of packets that come twice, from 0 to less than 1.
    pub duplicated: f64,
    /// Which packets overtake others. None if absent, also with jitter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reordering: Option<Reordering>,
    /// State of the link at first.
    pub state: LinkState,
}

impl Default for Link {
    fn default() -> Self {
        Link {
            rate_bits_per_s: None,
            queue_ns: USUAL_QUEUE_NS,
            delay_ns: 0,
            jitter_ns: 0,
            loss: None,
            duplicated: 0.0,
            reordering: None,
            state: LinkState::Up,
        }
    }
}

/// Which packets a link loses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "kebab-case")]
pub enum Loss {
    /// Each packet independently.
    Independent {
        /// Share of packets, from 0.000001 to 1.
        share: f64,
    },
    /// In bursts, by a chain of two states: one loses all packets, the other none (Gilbert 1960).
    Gilbert {
        /// Share of packets on average, above 0 and below 1.
        share: f64,
        /// Mean length of a burst, in packets: at least 1, and at least `share / (1 - share)`.
        burst_packets: f64,
    },
}

impl Loss {
    /// Share of packets that are lost on average.
    pub fn share(&self) -> f64 {
        match *self {
            Loss::Independent { share } | Loss::Gilbert { share, .. } => share,
        }
    }

    /// The probabilities per packet that a Gilbert chain begins and ends a burst.
    pub fn chances(share: f64, burst_packets: f64) -> [f64; 2] {
        let end = 1.0 / burst_packets;
        [end * share / (1.0 - share), end]
    }
}

/// Which packets overtake others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "kebab-case")]
pub enum Reordering {
    /// Each packet keeps the delay that jitter gave it, and overtakes those with a longer one.
    Jitter,
    /// This share of packets, above 0 and below 1, is not delayed.
    Share {
        /// Share of packets.
        share: f64,
    },
}

/// The directions in which packets pass a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LinkState {
    /// Both directions.
    #[default]
    Up,
    /// Packets from the host are dropped; those to it pass.
    SendsNothing,
    /// Packets to the host are dropped; those from it pass.
    HearsNothing,
    /// Both directions are dropped: a partition.
    Cut,
}

impl LinkState {
    /// Whether packets from the host pass.
    pub fn sends(self) -> bool {
        matches!(self, LinkState::Up | LinkState::HearsNothing)
    }

    /// Whether packets to the host pass.
    pub fn hears(self) -> bool {
        matches!(self, LinkState::Up | LinkState::SendsNothing)
    }
}

impl Network {
    /// The hosts of a role.
    pub fn hosts_of(&self, role: HostRole) -> &Hosts {
        match role {
            HostRole::Broker => &self.broker,
            HostRole::Publisher => &self.publisher,
            HostRole::Subscriber => &self.subscriber,
        }
    }

    /// All hosts: brokers, publishers, subscribers.
    pub fn hosts(&self) -> impl Iterator<Item = Host> + '_ {
        HostRole::ALL.into_iter().flat_map(|role| {
            (1..=self.hosts_of(role).hosts).map(move |number| Host { role, number })
        })
    }

    /// The constant delay of a message from a publisher's host to a subscriber's, which crosses a broker's link twice
    /// where there is a broker. Jitter and queues are not in it.
    pub fn path_ns(&self, through_broker: bool) -> Nanos {
        let delay = |role| match self.hosts_of(role) {
            Hosts { hosts: 0, .. } => 0,
            there => there.link.delay_ns,
        };
        let broker = if through_broker {
            2 * delay(HostRole::Broker)
        } else {
            0
        };
        delay(HostRole::Publisher) + broker + delay(HostRole::Subscriber)
    }

    /// The link of a host.
    pub fn link(&self, host: Host) -> &Link {
        &self.hosts_of(host.role).link
    }
}

impl Link {
    /// Whether packets are delayed, duplicated, reordered or lost in bursts: needs `netem` or `wirefilter`.
    pub fn delays(&self) -> bool {
        self.delay_ns > 0
            || self.jitter_ns > 0
            || self.duplicated > 0.0
            || self.reordering.is_some()
            || matches!(self.loss, Some(Loss::Gilbert { .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_crosses_the_link_of_a_broker_twice() {
        let hosts = |hosts, delay_ms: u64| Hosts {
            hosts,
            link: Link {
                delay_ns: delay_ms * 1_000_000,
                jitter_ns: 1_000,
                ..Link::default()
            },
        };
        let network = Network {
            broker: hosts(1, 20),
            publisher: hosts(2, 50),
            subscriber: hosts(3, 10),
        };
        assert_eq!(network.path_ns(true), 100_000_000);
        assert_eq!(network.path_ns(false), 60_000_000);
        let nobody_subscribes = Network {
            subscriber: hosts(0, 10),
            ..network
        };
        assert_eq!(nobody_subscribes.path_ns(false), 50_000_000);
        assert_eq!(Network::default().path_ns(true), 0);
    }
}
