//! The way of a message through the simulated system: it is served, meets its subscribers, and is acknowledged.

use std::collections::BTreeMap;
use std::sync::Arc;

use pubgauge_driver::clock::Nanos;
use pubgauge_driver::header::{HEADER_LEN, Header};
use pubgauge_driver::seam::Acknowledgement;
use pubgauge_driver::topic::TopicMatch;

use super::draws::{chance, draw_delay};
use super::{Bus, BusContent, Carried, Inner, Sent};

/// A message that the system has taken.
struct Passing<'a> {
    topic: &'a str,
    payload: &'a [u8],
    /// The header where it is not in the payload.
    bytes: Option<[u8; HEADER_LEN]>,
    header: Option<Header>,
    carried: Option<Arc<Carried>>,
    /// When it was handed over.
    now: Nanos,
    /// When the system has served it.
    served: Nanos,
    /// When the system began.
    born: Nanos,
    /// The client, by fleet and number, before which most messages wait, and how many these are.
    longest_wait: Option<(usize, (usize, u32))>,
}

impl Bus {
    /// Takes a message.
    pub(crate) fn publish(&self, fleet: usize, client: u32, sent: Sent<'_>) {
        let Sent {
            topic,
            payload,
            apart,
            acknowledge,
            unread,
            keeps,
        } = sent;
        let now = self.clock.now();
        let bytes = apart.as_ref().map(|(header, _)| *header);
        let header = match &bytes {
            Some(header) => Header::decode(header, self.mark),
            None => Header::decode(&payload, self.mark),
        };
        let carried = apart.map(|(_, travel)| {
            Arc::new(Carried {
                topic: topic.to_owned(),
                payload: payload.clone(),
                travel,
            })
        });
        let mut inner = self.lock();
        let inner = &mut *inner;
        let served = if unread {
            Some(now)
        } else {
            inner.serve(now, self.born)
        };
        let asked = acknowledge.is_some() && !unread;
        let rejected = asked && chance(&mut inner.rng, inner.behaviour.rejection);
        let comes = !rejected || inner.behaviour.rejected_come;
        if comes && served.is_some() && !unread {
            inner.store(topic, &payload, bytes, keeps);
        }
        let receivers = if comes {
            inner.receivers(topic, now)
        } else {
            Vec::new()
        };
        let longest_wait = (inner.waiting.iter())
            .map(|(of, waiting)| (waiting.len(), *of))
            .max();
        let passing = Passing {
            topic,
            payload: &payload,
            bytes,
            header,
            carried,
            now,
            served: served.unwrap_or(now),
            born: self.born,
            longest_wait,
        };
        for index in receivers {
            if unread {
                inner.note(index, header, now, false);
            } else if served.is_none() || inner.loses(index, topic) {
                inner.note(index, header, now, true);
            } else if inner.subscriptions[index].away {
                inner.keep(index, &passing);
            } else {
                let repeated = chance(&mut inner.rng, inner.behaviour.duplication);
                for copy in 0..=usize::from(repeated) {
                    inner.deliver(index, &passing, copy > 0);
                }
            }
        }
        let silent = asked && chance(&mut inner.rng, inner.behaviour.unacknowledged);
        if let Some(tag) = acknowledge.filter(|_| !unread && !silent) {
            inner.acknowledge((fleet, client), &passing, tag, rejected);
        }
        self.arrived.notify_all();
    }
}

impl Inner {
    /// Puts the answer to a publisher's message on its way.
    fn acknowledge(
        &mut self,
        (fleet, client): (usize, u32),
        passing: &Passing<'_>,
        tag: u64,
        rejected: bool,
    ) {
        let ready = passing.served + self.behaviour.delay_median_ns - passing.born;
        let due = passing.born + self.behaviour.delivery(ready);
        let answer = if rejected {
            Acknowledgement::Rejected(self.behaviour.rejection_code)
        } else {
            Acknowledgement::Taken
        };
        let content = BusContent::Acknowledgement { tag, answer };
        self.send(fleet, client, due, content);
    }

    /// When a message that is handed over now has been served; `None` if there is no room for it.
    fn serve(&mut self, now: Nanos, born: Nanos) -> Option<Nanos> {
        if self.behaviour.service_ns == 0 {
            return Some(now);
        }
        let start = self.busy_until.max(now);
        let waiting = (start - now).div_ceil(self.behaviour.service_ns);
        let queue = self.behaviour.queue as u64;
        if queue > 0 && waiting >= queue {
            return None;
        }
        let since = start - born;
        let work = self.behaviour.service(since, start - now);
        self.busy_until = born + self.behaviour.done(since, work);
        Some(self.busy_until)
    }

    /// The subscriptions that a message on `topic` goes to, of each group one.
    fn receivers(&mut self, topic: &str, now: Nanos) -> Vec<usize> {
        let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut receivers = Vec::new();
        for (index, s) in self.subscriptions.iter().enumerate() {
            if s.hears_from > now || !s.filter.matches_topic(topic) {
                continue;
            }
            match &s.group {
                Some(group) => groups.entry(group).or_default().push(index),
                None => receivers.push(index),
            }
        }
        for (group, members) in groups {
            let turn = self.turn.entry(group.to_owned()).or_default();
            let order = &self.behaviour.group_order;
            let next = match order.len() {
                0 => *turn,
                len => order[*turn % len],
            };
            receivers.push(members[next % members.len()]);
            if members.len() > 1 && chance(&mut self.rng, self.behaviour.group_duplication) {
                receivers.push(members[(next + 1) % members.len()]);
            }
            *turn += 1;
        }
        receivers
    }

    /// Whether a message to a subscription gets lost.
    fn loses(&mut self, index: usize, topic: &str) -> bool {
        let b = &self.behaviour;
        let loss = b.loss.max(self.subscriptions[index].loss);
        b.silences.iter().any(|silenced| silenced == topic) || chance(&mut self.rng, loss)
    }

    /// Keeps a message for a subscription whose client is away.
    fn keep(&mut self, index: usize, passing: &Passing<'_>) {
        let truth = self.note(index, passing.header, passing.now, false);
        if let Some(carried) = &passing.carried {
            self.note_carried(truth, carried);
        }
        let (topic, payload) = (passing.topic.to_owned(), passing.payload.to_vec());
        let message = (topic, payload, passing.bytes, truth);
        self.subscriptions[index].kept.push(message);
    }

    /// Puts a message on its way to a subscription.
    fn deliver(&mut self, index: usize, passing: &Passing<'_>, repeated: bool) {
        let due = self.arrival(index, passing, repeated);
        let b = &self.behaviour;
        let mut payload = passing.payload.to_vec();
        if chance(&mut self.rng, b.corruption)
            && let Some(last) = payload.len().checked_sub(1)
        {
            payload[b.corrupt_byte.map_or(last, |at| at.min(last))] ^= 0x55;
        }
        if chance(&mut self.rng, b.cut) {
            payload.pop();
        }
        if chance(&mut self.rng, b.lengthened) {
            payload.push(0x55);
        }
        self.inside += 1;
        let mut topic = passing.topic.to_owned();
        if chance(&mut self.rng, b.misdirection) {
            topic.push_str("/other");
        }
        let lowered = chance(&mut self.rng, b.lowering);
        let truth = self.note(index, passing.header, passing.now, false);
        if let Some(carried) = &passing.carried {
            self.note_carried(truth, carried);
        }
        let message = BusContent::Message {
            lowered,
            topic,
            payload,
            header: passing.bytes,
            redelivered: repeated,
            last_value: false,
            truth,
        };
        let (fleet, client) = self.subscriptions[index].client();
        self.send(fleet, client, due, message);
    }

    /// When a message arrives at a subscription.
    fn arrival(&mut self, index: usize, passing: &Passing<'_>, repeated: bool) -> Nanos {
        let to = self.subscriptions[index].client();
        let stream = passing.header.map_or(u32::MAX, |h| h.stream);
        let b = &self.behaviour;
        let held_up = (b.held_up.zip(passing.longest_wait))
            .filter(|((most, _), (waiting, of))| *of != to && waiting >= most)
            .map_or(0, |((_, longer), _)| longer);
        let longer =
            b.longer(passing.now - passing.born) + self.subscriptions[index].later_ns + held_up;
        let mut due = passing.served + draw_delay(&mut self.rng, b) + longer;
        if repeated {
            due += b.repeated_after_ns.unwrap_or(b.delay_median_ns);
        }
        let subscriber = &mut self.subscriptions[index];
        if subscriber.takes_ns > 0 {
            due = due.max(subscriber.busy_until) + subscriber.takes_ns;
            subscriber.busy_until = due;
        }
        if chance(&mut self.rng, b.reordering) {
            due += b.hold_back_ns;
        } else if b.ordered && !repeated {
            let last = self.last_delivery.entry((to.0, to.1, stream)).or_default();
            due = due.max(*last);
            *last = due;
        }
        passing.born + b.delivery(due - passing.born)
    }
}
