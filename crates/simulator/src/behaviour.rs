//! What the simulated system is told to do to messages and clients.

use pubgauge_driver::clock::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the simulated system does to messages and clients. The default is a perfect system with
/// a constant delay of 1 ms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Behaviour {
    /// Median of the delay from publish to delivery, nanoseconds.
    pub delay_median_ns: Nanos,
    /// Standard deviation of the delay's logarithm (log-normal); 0: constant.
    pub delay_sigma: f64,
    /// Intervals in which published messages take longer: (from, to, extra delay), nanoseconds; from and
    /// to count since the bus was made.
    pub slower: Vec<(Nanos, Nanos, Nanos)>,
    /// Keep the order of each subscriber's stream even when delays vary.
    pub ordered: bool,
    /// Probability that one delivery is lost.
    pub loss: f64,
    /// Probability that one delivery happens twice; 1: every one does.
    pub duplication: f64,
    /// Delay of a second delivery after the first, nanoseconds; absent:
    /// [`Behaviour::delay_median_ns`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeated_after_ns: Option<Nanos>,
    /// Probability that one delivery is held back by [`Behaviour::hold_back_ns`], even if
    /// `ordered`.
    pub reordering: f64,
    /// How long a reordered delivery is held back, nanoseconds.
    pub hold_back_ns: Nanos,
    /// Time that the system's only processor needs for one message, nanoseconds: further messages
    /// wait in a queue; 0: unlimited capacity.
    pub service_ns: Nanos,
    /// From a time on, the processor needs another time per message: (start since the bus was made, time
    /// per message), nanoseconds. Models burst credit that is used up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_later: Option<(Nanos, Nanos)>,
    /// While this much work waits, the processor needs another time per message: (work, time per message),
    /// nanoseconds. Models a system that is slower under load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_crowded: Option<(Nanos, Nanos)>,
    /// Messages that may wait for the processor, the one in progress included: further ones are
    /// dropped (a full queue); 0: no limit. Needs [`Behaviour::service_ns`].
    pub queue: usize,
    /// Subscribers that take one delivery per this time, while others wait in a queue: (client
    /// name, nanoseconds).
    pub slow_subscribers: Vec<(String, Nanos)>,
    /// Which member of a group that shares gets the next message, by its index among those that subscribed,
    /// repeatedly: `[0, 0, 0, 1]` gives the first one three of four. Empty: each in turn.
    pub group_order: Vec<usize>,
    /// Messages that may be inside the system before publishers are blocked; 0: no limit.
    pub capacity: usize,
    /// Intervals in which nothing is delivered: (from, to), nanoseconds since the bus was made.
    pub stalls: Vec<(Nanos, Nanos)>,
    /// Publishers that the system stops reading: (nanoseconds since the bus was made, client name). What such a
    /// one hands over from then on is neither delivered nor acknowledged.
    pub unread: Vec<(Nanos, String)>,
    /// Clients that lose their connection: (nanoseconds since the bus was made, client name).
    pub disconnects: Vec<(Nanos, String)>,
    /// Clients that are refused, by name.
    pub refuses: Vec<String>,
    /// Clients for which the client's own process has no file descriptor left, by name.
    pub starves: Vec<String>,
    /// Delay from the confirmation of a subscription to its effect, nanoseconds (late readiness).
    pub deaf_for_ns: Nanos,
    /// Time that it takes to hand over one message, nanoseconds; for virtual clocks only.
    pub publish_cost_ns: Nanos,
    /// Processor time that handing over one message adds to the client's simulated accounts, nanoseconds;
    /// the clock does not advance for it.
    pub publish_cpu_ns: Nanos,
    /// Intervals in which the client does not run, neither sending nor receiving: (from, to),
    /// nanoseconds since the bus was made. For virtual clocks only, which skip them.
    pub client_sleeps: Vec<(Nanos, Nanos)>,
    /// Probability that one delivery has a damaged payload.
    pub corruption: f64,
    /// Seed of all random draws.
    pub seed: u64,
}

impl Behaviour {
    /// Time for one message at `since` the bus was made, with `waiting` work before it; all ns.
    pub(crate) fn service(&self, since: Nanos, waiting: Nanos) -> Nanos {
        let later = self.service_later.filter(|(from, _)| since >= *from);
        let crowded = self.service_crowded.filter(|(work, _)| waiting >= *work);
        let longest = later.into_iter().chain(crowded).map(|(_, ns)| ns).max();
        longest.unwrap_or(self.service_ns)
    }

    /// Extra delay of a message that is published at `since` the bus was made, ns.
    pub(crate) fn longer(&self, since: Nanos) -> Nanos {
        let slower = self.slower.iter();
        let now = slower.filter(|(from, to, _)| (*from..*to).contains(&since));
        now.map(|(_, _, longer)| longer).sum()
    }
}

impl Default for Behaviour {
    fn default() -> Self {
        Behaviour {
            delay_median_ns: 1_000_000,
            delay_sigma: 0.0,
            slower: Vec::new(),
            ordered: true,
            loss: 0.0,
            duplication: 0.0,
            repeated_after_ns: None,
            reordering: 0.0,
            hold_back_ns: 10_000_000,
            service_ns: 0,
            service_later: None,
            service_crowded: None,
            queue: 0,
            slow_subscribers: Vec::new(),
            group_order: Vec::new(),
            capacity: 0,
            stalls: Vec::new(),
            unread: Vec::new(),
            disconnects: Vec::new(),
            refuses: Vec::new(),
            starves: Vec::new(),
            deaf_for_ns: 0,
            publish_cost_ns: 0,
            publish_cpu_ns: 0,
            client_sleeps: Vec::new(),
            corruption: 0.0,
            seed: 1,
        }
    }
}
