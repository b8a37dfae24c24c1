//! Faults and delays of the simulated system.

use pubgauge_driver::clock::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Faults and delays of the simulated system, for messages and clients. The default is a perfect system with
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
    /// From each of these times on, the processor needs another time per message: (start since the bus was
    /// made, time per message), nanoseconds, in ascending order. Models burst credit that is used up, and
    /// steps of capacity.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub service_later: Vec<(Nanos, Nanos)>,
    /// While this much work waits, the processor needs another time per message: (work, time per message),
    /// nanoseconds. Models a system that is slower under load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_crowded: Option<(Nanos, Nanos)>,
    /// Times in which the processor stands still, again and again; what it was doing continues afterwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pauses: Option<Pauses>,
    /// Messages that may wait for the processor, the one in progress included: further ones are
    /// dropped (a full queue); 0: no limit. Needs [`Behaviour::service_ns`].
    pub queue: usize,
    /// Subscribers that take one delivery per this time, while others wait in a queue: (client
    /// name, nanoseconds).
    pub slow_subscribers: Vec<(String, Nanos)>,
    /// Subscribers that get all that much later: (client name, nanoseconds).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub late_subscribers: Vec<(String, Nanos)>,
    /// Subscribers to which deliveries are lost: (client name, probability), where that is more than
    /// [`Behaviour::loss`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lossy_subscribers: Vec<(String, f64)>,
    /// Bound on the messages that wait for a subscriber whose application is busy; absent: any number waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// While so many messages or more wait for one such subscriber, what is published takes so much longer to all others:
    /// (messages, nanoseconds). Models a system that waits for its slowest subscriber.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_up: Option<(usize, Nanos)>,
    /// Which member of a group that shares gets the next message, by its index among those that subscribed,
    /// repeatedly: `[0, 0, 0, 1]` gives the first one three of four. Empty: each in turn.
    pub group_order: Vec<usize>,
    /// Probability that the next member of a group gets a message as well.
    pub group_duplication: f64,
    /// Messages that may be inside the system before publishers are blocked; 0: no limit.
    pub capacity: usize,
    /// The client drops a message that there is no room for, instead of waiting.
    pub drops: bool,
    /// Intervals in which nothing is delivered: (from, to), nanoseconds since the bus was made.
    pub stalls: Vec<(Nanos, Nanos)>,
    /// Publishers that the system stops reading: (nanoseconds since the bus was made, client name). What such a
    /// one hands over from then on is neither delivered nor acknowledged.
    pub unread: Vec<(Nanos, String)>,
    /// Each delivery waits for the next multiple of this time since the bus was made, nanoseconds, so
    /// that it arrives in lumps; 0: it is delivered at once. The processor works on meanwhile.
    pub lumps_ns: Nanos,
    /// Clients that lose their connection: (nanoseconds since the bus was made, client name).
    pub disconnects: Vec<(Nanos, String)>,
    /// Time from the beginning of an attempt to connect to the system's answer, nanoseconds.
    pub connect_ns: Nanos,
    /// Attempts to connect of a fleet's clients that the system answers at once; one more is turned away; 0: any number.
    pub connecting_at_once: usize,
    /// Clients that are turned away at first: (client name, attempts). An attempt later they get in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub turned_away: Vec<(String, u32)>,
    /// Time from when a client says that it leaves to the end of its connection, nanoseconds: messages go on coming to it.
    pub closing_ns: Nanos,
    /// Time between the messages that a durable session has kept for an absent subscriber, when it comes back, nanoseconds.
    pub backlog_every_ns: Nanos,
    /// Time from a subscription, which has its effect at once, to the system's answer, nanoseconds.
    pub subscribe_ns: Nanos,
    /// Topics whose last value the system does not keep, although it was asked to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keeps_none_of: Vec<String>,
    /// Messages of each topic that the system stores, and delivers to whoever subscribes later.
    pub history: usize,
    /// Time between the messages that the system has kept for whoever subscribes, last values or stored ones, nanoseconds.
    pub kept_every_ns: Nanos,
    /// Time from the end of a connection to its will, beside the will's delay, nanoseconds.
    pub will_after_ns: Nanos,
    /// Probability that a will is not published.
    pub will_loss: f64,
    /// Probability that a will is published for a connection that ended in order.
    pub wills_in_order: f64,
    /// Wills with a delay are published although their client is back before it has passed.
    pub wills_despite_return: bool,
    /// Clients that are refused, by name.
    pub refuses: Vec<String>,
    /// Clients for which the client's own process has no file descriptor left, by name.
    pub starves: Vec<String>,
    /// Topics whose messages are all lost.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub silences: Vec<String>,
    /// Subscriptions of one client that may be without an answer: one more is refused by the client itself, whose requests
    /// have no more numbers; 0: no limit.
    pub subscriptions_at_once: usize,
    /// Delay from the confirmation of a subscription to its effect, nanoseconds (late readiness).
    pub deaf_for_ns: Nanos,
    /// Time that the client takes to hand over one message, nanoseconds; for virtual clocks only.
    pub publish_cost_ns: Nanos,
    /// Time for which the system's library sleeps in the call that hands over one message, nanoseconds; for virtual clocks
    /// only.
    pub publish_sleep_ns: Nanos,
    /// Processor time that handing over one message adds to the client's simulated accounts, nanoseconds;
    /// the clock does not advance for it.
    pub publish_cpu_ns: Nanos,
    /// Intervals in which the client does not run, neither sending nor receiving: (from, to),
    /// nanoseconds since the bus was made. For virtual clocks only, which skip them.
    pub client_sleeps: Vec<(Nanos, Nanos)>,
    /// Probability that one delivery has a damaged payload.
    pub corruption: f64,
    /// Probability that a message that asks for acknowledgement is rejected, and not delivered.
    pub rejection: f64,
    /// The code with which it is.
    pub rejection_code: u16,
    /// Rejected messages are delivered all the same.
    pub rejected_come: bool,
    /// Probability that a message that asks for acknowledgement is delivered and never acknowledged.
    pub unacknowledged: f64,
    /// Messages without an acknowledgement that the system grants a publisher, where that is less than the publisher's own
    /// window; 0: it grants any number.
    pub grants: u32,
    /// The byte of a damaged payload that is another one, from 0, or its last if it is shorter; absent: the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrupt_byte: Option<usize>,
    /// Probability that one delivery lacks the last byte of its payload.
    pub cut: f64,
    /// Probability that one delivery has a byte more than its payload.
    pub lengthened: f64,
    /// Probability that one delivery is told as one on another topic than its message was published on.
    pub misdirection: f64,
    /// Probability that one delivery comes with a lower quality of service than was asked for.
    pub lowering: f64,
    /// Seed of all random draws.
    pub seed: u64,
}

/// Bound on the messages that wait for one subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Waiting {
    /// How many wait at the most.
    pub most: usize,
    /// The fate of one more.
    pub then: WhenFull,
}

/// The fate of a message for which there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WhenFull {
    /// It is dropped.
    DropNewest,
    /// The message that has waited longest is dropped.
    DropOldest,
    /// The subscriber's connection is closed, and all that waits for it is dropped.
    Disconnect,
}

/// Pauses of a processor; all times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Pauses {
    /// When the first one begins, since the bus was made.
    pub first_ns: Nanos,
    /// How long each lasts.
    pub lasts_ns: Nanos,
    /// From the beginning of one to that of the next, longer than one lasts; 0: there is one alone.
    pub every_ns: Nanos,
}

impl Pauses {
    /// When `work` is done that begins at `start`, since the bus was made.
    fn done(self, start: Nanos, work: Nanos) -> Nanos {
        // A single pause is one of which the next never comes.
        let every = match self.every_ns {
            0 => Nanos::MAX / 4,
            every => every,
        };
        let lasts = self.lasts_ns.min(every - 1);
        let (mut now, mut left) = (start, work);
        loop {
            let next = match now.checked_sub(self.first_ns) {
                None => self.first_ns,
                Some(since) => {
                    let begun = self.first_ns + since / every * every;
                    now = now.max(begun + lasts);
                    begun + every
                }
            };
            if now + left <= next {
                return now + left;
            }
            left -= next - now;
            now = next;
        }
    }
}

impl Behaviour {
    /// Time for one message at `since` the bus was made, with `waiting` work before it; all ns.
    pub(crate) fn service(&self, since: Nanos, waiting: Nanos) -> Nanos {
        let begun = self.service_later.iter().rfind(|(from, _)| since >= *from);
        let later = begun.copied();
        let crowded = self.service_crowded.filter(|(work, _)| waiting >= *work);
        let longest = later.into_iter().chain(crowded).map(|(_, ns)| ns).max();
        longest.unwrap_or(self.service_ns)
    }

    /// When the processor has done `work` that it begins at `start`; all ns since the bus was made.
    pub(crate) fn done(&self, start: Nanos, work: Nanos) -> Nanos {
        match self.pauses {
            Some(pauses) => pauses.done(start, work),
            None => start + work,
        }
    }

    /// When something is delivered that is ready at `ready`; both ns since the bus was made.
    pub(crate) fn delivery(&self, ready: Nanos) -> Nanos {
        let stalls = &mut self.stalls.iter();
        let stall = stalls.find(|(from, to)| (*from..*to).contains(&ready));
        let ready = stall.map_or(ready, |(_, to)| *to);
        match self.lumps_ns {
            0 => ready,
            lumps => ready.next_multiple_of(lumps),
        }
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
            service_later: Vec::new(),
            service_crowded: None,
            pauses: None,
            queue: 0,
            slow_subscribers: Vec::new(),
            late_subscribers: Vec::new(),
            lossy_subscribers: Vec::new(),
            waiting: None,
            held_up: None,
            group_order: Vec::new(),
            group_duplication: 0.0,
            capacity: 0,
            drops: false,
            stalls: Vec::new(),
            unread: Vec::new(),
            lumps_ns: 0,
            disconnects: Vec::new(),
            connect_ns: 0,
            connecting_at_once: 0,
            turned_away: Vec::new(),
            closing_ns: 0,
            backlog_every_ns: 0,
            subscribe_ns: 0,
            keeps_none_of: Vec::new(),
            history: 0,
            kept_every_ns: 0,
            will_after_ns: 0,
            will_loss: 0.0,
            wills_in_order: 0.0,
            wills_despite_return: false,
            refuses: Vec::new(),
            starves: Vec::new(),
            silences: Vec::new(),
            subscriptions_at_once: 0,
            deaf_for_ns: 0,
            publish_cost_ns: 0,
            publish_sleep_ns: 0,
            publish_cpu_ns: 0,
            client_sleeps: Vec::new(),
            corruption: 0.0,
            rejection: 0.0,
            rejection_code: 0x97,
            rejected_come: false,
            unacknowledged: 0.0,
            grants: 0,
            corrupt_byte: None,
            cut: 0.0,
            lengthened: 0.0,
            misdirection: 0.0,
            lowering: 0.0,
            seed: 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_stands_still_in_its_pauses() {
        let pauses = |every_ns| Pauses {
            first_ns: 100,
            lasts_ns: 10,
            every_ns,
        };
        for (every, start, work, done) in [
            (0, 0, 100, 100),
            (0, 0, 101, 111),
            (0, 105, 5, 115),
            (0, 500, 5, 505),
            (50, 105, 40, 150),
            (50, 105, 41, 161),
            (50, 0, 300, 350),
        ] {
            let found = pauses(every).done(start, work);
            assert_eq!(found, done, "every {every}, {work} from {start}");
        }
    }

    #[test]
    fn lumps_leave_at_multiples() {
        let behaviour = Behaviour {
            lumps_ns: 100,
            stalls: vec![(250, 420)],
            ..Behaviour::default()
        };
        for (ready, delivered) in [(0, 0), (1, 100), (100, 100), (300, 500)] {
            assert_eq!(behaviour.delivery(ready), delivered);
        }
    }
}
