//! An emulated network as plain data: which hosts there are, and what their links to the switch do.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A span, in nanoseconds.
pub type Nanos = u64;

/// How long a link's queue is where nothing is said, in nanoseconds: 50 ms of its rate.
pub const USUAL_QUEUE_NS: Nanos = 50_000_000;

/// What a host is for.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Runs brokers.
    Broker,
    /// Runs publishers.
    Publisher,
    /// Runs subscribers.
    Subscriber,
}

impl Role {
    /// All roles, in the order in which hosts are numbered.
    pub const ALL: [Role; 3] = [Role::Broker, Role::Publisher, Role::Subscriber];

    /// Its name, as in [`Host`]'s.
    pub fn name(self) -> &'static str {
        match self {
            Role::Broker => "broker",
            Role::Publisher => "publisher",
            Role::Subscriber => "subscriber",
        }
    }
}

/// One host of a network: `publisher-2`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// What it is for.
    pub role: Role,
    /// Which of its role's it is, from 1.
    pub number: u32,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.role.name(), self.number)
    }
}

/// Hosts around one switch: each has one link to it. What goes from one host to another crosses two
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
    /// What the link of each of them does.
    #[serde(default)]
    pub link: Link,
}

/// A link between a host and the switch. Everything holds in each direction by itself: 20 ms of delay
/// is 20 ms to the switch and 20 ms from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Link {
    /// Bits per second of Ethernet frames without preamble, checksum and gap: a TCP stream with full
    /// segments gets 1448 / 1514 of it as payload. 64 kbit/s to 10 Gbit/s. As fast as the machine if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bits_per_s: Option<u64>,
    /// How much waits for a link with a rate before the rest is dropped, as the time it takes to send:
    /// 1 ms to 10 s. Without a rate nothing waits.
    pub queue_ns: Nanos,
    /// Delay, at most 10 s.
    pub delay_ns: Nanos,
    /// Each packet's delay lies within this of `delay_ns`, uniformly; at most `delay_ns`.
    pub jitter_ns: Nanos,
    /// Which packets are lost. None if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// Share of packets that come twice, from 0 to less than 1.
    pub duplicated: f64,
    /// Which packets overtake others. None if absent, also with jitter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reordering: Option<Reordering>,
    /// Whether anything passes at first.
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
    /// Each packet by itself.
    Independent {
        /// Share of packets, from 0.000001 to 1.
        share: f64,
    },
    /// In bursts, by a chain of two states: all is lost in the one, nothing in the other (Gilbert 1960).
    Gilbert {
        /// Share of packets in the long run, above 0 and below 1.
        share: f64,
        /// Mean length of a burst, in packets: 1 and more. `share / (1 - share)` at the least.
        burst_packets: f64,
    },
}

impl Loss {
    /// Share of packets in the long run.
    pub fn share(&self) -> f64 {
        match *self {
            Loss::Independent { share } | Loss::Gilbert { share, .. } => share,
        }
    }

    /// The chances per packet of a Gilbert chain to begin and to end a burst.
    pub fn chances(share: f64, burst_packets: f64) -> [f64; 2] {
        let end = 1.0 / burst_packets;
        [end * share / (1.0 - share), end]
    }
}

/// Which packets overtake others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "kebab-case")]
pub enum Reordering {
    /// Each packet keeps the delay that jitter gave it, and overtakes those that got a longer one.
    Jitter,
    /// This share of packets, above 0 and below 1, is not delayed.
    Share {
        /// Share of packets.
        share: f64,
    },
}

/// Whether anything passes a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LinkState {
    /// Both ways.
    #[default]
    Up,
    /// Nothing that the host sends arrives; it hears the others.
    SendsNothing,
    /// Nothing arrives at the host; the others hear it.
    HearsNothing,
    /// Nothing passes: a partition.
    Cut,
}

impl LinkState {
    /// Whether what the host sends passes.
    pub fn sends(self) -> bool {
        matches!(self, LinkState::Up | LinkState::HearsNothing)
    }

    /// Whether what is sent to the host passes.
    pub fn hears(self) -> bool {
        matches!(self, LinkState::Up | LinkState::SendsNothing)
    }
}

impl Network {
    /// The hosts of a role.
    pub fn of(&self, role: Role) -> &Hosts {
        match role {
            Role::Broker => &self.broker,
            Role::Publisher => &self.publisher,
            Role::Subscriber => &self.subscriber,
        }
    }

    /// All hosts: brokers, publishers, subscribers.
    pub fn hosts(&self) -> impl Iterator<Item = Host> + '_ {
        Role::ALL
            .into_iter()
            .flat_map(|role| (1..=self.of(role).hosts).map(move |number| Host { role, number }))
    }

    /// The link of a host.
    pub fn link(&self, host: Host) -> &Link {
        &self.of(host.role).link
    }
}

impl Link {
    /// Whether packets wait, come twice, overtake or are lost in bursts, which takes `netem` or `wirefilter`.
    pub fn delays(&self) -> bool {
        self.delay_ns > 0
            || self.jitter_ns > 0
            || self.duplicated > 0.0
            || self.reordering.is_some()
            || matches!(self.loss, Some(Loss::Gilbert { .. }))
    }
}
