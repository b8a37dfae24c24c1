//! A canary: a numbered message of the collector's own, published through each broker. One that the broker has
//! acknowledged and does not deliver is a loss that nobody else would see.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use pubgauge_mqtt_codec::{EncodeError, Packet, Publish, QoS, ReasonCode, Version};
use serde::{Deserialize, Serialize};

use crate::config;
use pubgauge_net::random::random;

/// How long after a later one has come one that has not is waited for: a cluster may deliver out of order for a moment.
const GRACE: Duration = Duration::from_secs(10);

/// How long one may take, on a connection that stands, until it is said to be overdue.
const WITHIN: Duration = Duration::from_secs(60);

/// So many may be under way; no more are sent until some have come.
const MOST: usize = 1000;

/// Packet identifiers: those of SUBSCRIBE and UNSUBSCRIBE are smaller.
const FIRST_ID: u16 = 60_001;

/// The contents of a canary.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Said<'a> {
    /// Sixteen digits that no other session has.
    canary: &'a str,
    number: u64,
}

/// Counts of the canaries of a broker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Canaries {
    /// Those that the broker has acknowledged.
    pub acknowledged: u64,
    /// Those of them that it has delivered.
    pub delivered: u64,
    /// Those that it has not delivered although it has delivered a later one.
    pub lost: u64,
    /// When one was found to be lost last.
    pub lost_at: Option<Instant>,
    /// How long the last one took from its publication to its arrival.
    pub took: Option<Duration>,
    /// Since when the oldest one is under way.
    pub waits_since: Option<Instant>,
    /// It is under way for longer than it should be.
    pub is_overdue: bool,
}

/// A canary that is under way.
#[derive(Clone, Copy, Debug)]
struct Flight {
    number: u64,
    sent_at: Instant,
}

/// The canary of one session.
#[derive(Debug)]
pub struct Canary {
    topic: String,
    every: Duration,
    start: String,
    /// Number of the last one that was made.
    last: u64,
    next_at: Instant,
    /// When the subscriptions stood last.
    up_at: Instant,
    /// The one that the broker has not acknowledged; whether it has come for all that.
    sent: Option<(Flight, bool)>,
    /// Those that it has acknowledged and not delivered.
    awaited: VecDeque<Flight>,
    /// Those that a later one has overtaken, and when.
    overtaken: VecDeque<(u64, Instant)>,
    /// Why the broker does not take them, until that is told.
    refused: Option<&'static str>,
    counts: Canaries,
    /// As it was told last.
    told: Option<Canaries>,
}

impl Canary {
    pub fn new(asked: &config::Canary, collector: &str, now: Instant) -> Canary {
        Canary {
            topic: asked.topic_of(collector),
            every: asked.every,
            start: format!("{:016x}", random()),
            last: 0,
            next_at: now,
            up_at: now,
            sent: None,
            awaited: VecDeque::new(),
            overtaken: VecDeque::new(),
            refused: None,
            counts: Canaries::default(),
            told: None,
        }
    }

    /// The subscriptions stand: what was not acknowledged on the connection before is sent again.
    ///
    /// # Errors
    /// If something in it is longer than the protocol allows.
    pub fn came_up(
        &mut self,
        now: Instant,
        is_resumed: bool,
        version: Version,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        self.up_at = now;
        match self.sent {
            Some((flight, _)) => self.encode(flight.number, is_resumed, version, out),
            None => Ok(()),
        }
    }

    /// Appends the next one, if it is due.
    ///
    /// # Errors
    /// If something in it is longer than the protocol allows.
    pub fn send(
        &mut self,
        now: Instant,
        version: Version,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        if now < self.next_at || self.sent.is_some() || self.awaited.len() >= MOST {
            return Ok(());
        }
        self.next_at = now + self.every;
        self.last += 1;
        let number = self.last;
        self.sent = Some((
            Flight {
                number,
                sent_at: now,
            },
            false,
        ));
        self.encode(number, false, version, out)
    }

    fn encode(
        &self,
        number: u64,
        dup: bool,
        version: Version,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let said = Said {
            canary: &self.start,
            number,
        };
        // A text and a number always can be written.
        let payload = serde_json::to_vec(&said).unwrap_or_default();
        let publish = Publish {
            dup,
            qos: QoS::AtLeastOnce,
            topic: &self.topic,
            packet_id: packet_id(number),
            payload: &payload,
            ..Publish::default()
        };
        Packet::Publish(publish).encode(version, out)
    }

    /// The broker has acknowledged a packet. Whether it was a canary.
    pub fn acknowledged(&mut self, id: u16, reason: ReasonCode) -> bool {
        if id < FIRST_ID {
            return false;
        }
        // Another one is the second acknowledgement of one that was sent twice.
        let Some((flight, came)) = self.sent.take_if(|(one, _)| packet_id(one.number) == id) else {
            return true;
        };
        if reason.0 >= 0x80 {
            self.refused = Some(reason.words());
            return true;
        }
        self.counts.acknowledged += 1;
        if came {
            self.counts.delivered += 1;
        } else {
            self.awaited.push_back(flight);
        }
        true
    }

    /// Takes a message in. Whether it is a canary of this collector, of this start or an earlier one.
    pub fn takes(&mut self, publish: &Publish<'_>, now: Instant) -> bool {
        if publish.topic != self.topic {
            return false;
        }
        let Ok(said) = serde_json::from_slice::<Said<'_>>(publish.payload) else {
            return false;
        };
        if said.canary == self.start {
            self.came(said.number, now);
        }
        true
    }

    fn came(&mut self, number: u64, now: Instant) {
        if let Some((flight, came)) = self.sent.as_mut().filter(|(one, _)| one.number == number) {
            if !*came {
                self.counts.took = Some(now.saturating_duration_since(flight.sent_at));
            }
            *came = true;
        } else if let Some(at) = self.awaited.iter().position(|one| one.number == number) {
            let flight = self.awaited.remove(at);
            let took = flight.map(|flight| now.saturating_duration_since(flight.sent_at));
            self.counts.took = took;
            self.counts.delivered += 1;
        } else if let Some(at) = self.overtaken.iter().position(|(one, _)| *one == number) {
            self.overtaken.remove(at);
            self.counts.delivered += 1;
            return;
        } else {
            // A copy, or one that was told as lost.
            return;
        }
        let earlier = self.awaited.partition_point(|one| one.number < number);
        let overtaken = self.awaited.drain(..earlier);
        self.overtaken
            .extend(overtaken.map(|one| (one.number, now)));
    }

    /// The numbers of those that are lost for certain; at the end of the collection nothing is waited for any more.
    pub fn lost(&mut self, now: Instant, is_end: bool) -> Vec<u64> {
        let is_over = |since: Instant| is_end || now.saturating_duration_since(since) >= GRACE;
        let over = self.overtaken.partition_point(|(_, since)| is_over(*since));
        let lost: Vec<u64> = self.overtaken.drain(..over).map(|(one, _)| one).collect();
        if !lost.is_empty() {
            self.counts.lost += lost.len() as u64;
            self.counts.lost_at = Some(now);
        }
        lost
    }

    /// Why the broker has refused one since this was asked last.
    pub fn refused(&mut self) -> Option<&'static str> {
        self.refused.take()
    }

    /// Counts of them, if they have changed since it was asked for last, and what was told then.
    pub fn news(&mut self, now: Instant, is_up: bool) -> Option<(Canaries, Option<Canaries>)> {
        let counts = self.counts(now, is_up);
        (self.told.as_ref() != Some(&counts)).then(|| {
            let before = self.told.replace(counts.clone());
            (counts, before)
        })
    }

    /// Counts of them; `is_up` is whether the connection stands.
    fn counts(&self, now: Instant, is_up: bool) -> Canaries {
        let first = self.awaited.front().copied();
        let oldest = first.or(self.sent.map(|(flight, _)| flight));
        let since = oldest.map(|flight| flight.sent_at);
        let on_this = since.map(|since| since.max(self.up_at));
        let is_late = |since: Instant| now.saturating_duration_since(since) > WITHIN;
        Canaries {
            waits_since: since,
            is_overdue: is_up && on_this.is_some_and(is_late),
            ..self.counts.clone()
        }
    }
}

fn packet_id(number: u64) -> u16 {
    let many = u64::from(u16::MAX - FIRST_ID) + 1;
    FIRST_ID + (number % many) as u16
}

#[cfg(test)]
mod tests;
