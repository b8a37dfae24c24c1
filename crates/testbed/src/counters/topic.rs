//! Counts that a system publishes, as MQTT brokers do below `$SYS/`: read through the driver.

use std::time::Instant;

use pubgauge_driver::clock::monotonic_now;
use pubgauge_driver::{
    Acknowledgement, Change, ClientId, ClientSpec, Delivery, Driver, Events, Fleet, Settings,
    Subscription, Target,
};

use super::pick::Pair;
use crate::file::{Counter, Counters};
use crate::probe::{CLOSE_NS, open};

/// A client that is subscribed to counts.
pub(super) struct CountsReader<'a> {
    counters: &'a Counters,
    fleet: Box<dyn Fleet>,
    client: Option<ClientId>,
    seen: LatestCounts,
}

/// The messages that have come.
#[derive(Default)]
struct LatestCounts {
    topics: Pair<String>,
    update: Option<String>,
    /// The latest values, and how many messages this client had got before each.
    values: Pair<(u64, u64)>,
    /// A message on a counter's topic that is no count.
    odd: Option<String>,
    /// All messages that this client got.
    received: u64,
    /// Which topics had a message since the last answer to a subscription.
    answered: [bool; 2],
    /// The system has brought its counts up to date.
    updated: bool,
    connected: bool,
    subscribed: usize,
    failed: Option<String>,
}

impl Events for LatestCounts {
    fn arrived(&mut self) {}

    fn delivered(&mut self, _: ClientId, delivery: Delivery<'_>) {
        let before = self.received;
        self.received += 1;
        let Some(topic) = delivery.topic else {
            return;
        };
        for which in 0..2 {
            if self.topics[which].as_deref() != Some(topic) {
                continue;
            }
            let text = String::from_utf8_lossy(delivery.payload);
            match text.trim().parse() {
                // The same value again is from the same moment. For a count of sent messages a new
                // entry would subtract the message that brought the first one.
                Ok(value) if self.values[which].is_some_and(|(last, _)| last == value) => {}
                Ok(value) => self.values[which] = Some((value, before)),
                Err(_) => self.odd = Some(format!("{topic} says `{text}`, which is no count")),
            }
            self.answered[which] = true;
        }
        self.updated |= !delivery.retained && self.update.as_deref() == Some(topic);
    }

    fn acknowledged(&mut self, _: ClientId, _: u64, _: Acknowledgement) {}

    fn changed(&mut self, _: ClientId, change: Change) {
        match change {
            Change::Connected { .. } => self.connected = true,
            Change::Subscribed => {
                self.subscribed += 1;
                self.answered = [false; 2];
            }
            Change::SubscriptionRefused(why) => self.failed = Some(why),
            Change::Failed(failure) => self.failed = Some(failure.why),
            Change::Writable | Change::Closed => {}
        }
    }
}

impl<'a> CountsReader<'a> {
    /// Opens a fleet of one client, which connects with the first reading.
    ///
    /// # Errors
    /// The driver's error.
    pub fn open(
        counters: &'a Counters,
        target: &Target,
        driver: &dyn Driver,
    ) -> Result<Self, String> {
        let topic = |counter: Option<&Counter>| counter?.topic.clone();
        Ok(CountsReader {
            counters,
            fleet: open(driver, target, &Settings::default(), 1)?,
            client: None,
            seen: LatestCounts {
                topics: counters.message_counters().map(topic),
                update: counters.update.clone(),
                ..LatestCounts::default()
            },
        })
    }

    /// Both counts at this moment or later, without the messages that this client itself received.
    ///
    /// # Errors
    /// Why they could not be read before `until`.
    pub fn read(&mut self, until: Instant) -> Result<Pair<u64>, String> {
        let topics: Vec<String> = self.seen.topics.iter().flatten().cloned().collect();
        let first = self.client.is_none();
        let client = match self.client {
            Some(client) => client,
            None => self.connect(until)?,
        };
        match self.counters.update.clone() {
            Some(update) => {
                if first {
                    for topic in topics.iter().filter(|t| **t != update).chain([&update]) {
                        self.subscribe(client, topic, until)?;
                    }
                }
                self.seen.updated = false;
                let missing = format!("no update on {update} in time");
                self.until(&missing, until, |seen| seen.updated && seen.has_all())?;
            }
            None => {
                for topic in &topics {
                    self.subscribe(client, topic, until)?;
                    let which = usize::from(self.seen.topics[0].as_ref() != Some(topic));
                    let missing = format!("no message on {topic} in time");
                    self.until(&missing, until, |seen| seen.answered[which])?;
                }
            }
        }
        let [published, delivered] = self.seen.values;
        let without_own = |(value, own): (u64, u64)| value.saturating_sub(own);
        Ok([
            published.map(|(value, _)| value),
            delivered.map(without_own),
        ])
    }

    fn connect(&mut self, until: Instant) -> Result<ClientId, String> {
        let spec = ClientSpec {
            name: format!("counters{}", std::process::id()),
            subscribes: true,
            ..ClientSpec::default()
        };
        let client = self
            .fleet
            .connect(&spec)
            .map_err(|error| error.to_string())?;
        self.until("no answer to a login in time", until, |seen| seen.connected)?;
        self.client = Some(client);
        Ok(client)
    }

    fn subscribe(&mut self, client: ClientId, topic: &str, until: Instant) -> Result<(), String> {
        let subscription = Subscription {
            filter: topic.to_owned(),
            group: None,
        };
        let so_far = self.seen.subscribed;
        (self.fleet.subscribe(client, &subscription)).map_err(|error| error.to_string())?;
        let missing = format!("no answer to a subscription to {topic} in time");
        self.until(&missing, until, |seen| seen.subscribed > so_far)
    }

    /// Polls until `holds` returns true.
    fn until(
        &mut self,
        missing: &str,
        until: Instant,
        holds: impl Fn(&LatestCounts) -> bool,
    ) -> Result<(), String> {
        loop {
            if let Some(why) = self.seen.failed.take().or_else(|| self.seen.odd.take()) {
                return Err(why);
            }
            if holds(&self.seen) {
                return Ok(());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(missing.to_owned());
            }
            let wake = monotonic_now() + left.as_nanos() as u64;
            self.fleet
                .poll(wake, &mut self.seen)
                .map_err(|error| error.to_string())?;
        }
    }
}

impl LatestCounts {
    fn has_all(&self) -> bool {
        (self.topics.iter().zip(&self.values)).all(|(topic, v)| topic.is_none() || v.is_some())
    }
}

impl Drop for CountsReader<'_> {
    fn drop(&mut self) {
        self.fleet.close(monotonic_now() + CLOSE_NS);
    }
}
