//! Stored messages, published again: in their order, with the time between them.

mod files;
mod messages;
mod publisher;
mod stored;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use pubgauge_driver::{Secret, Tls};
use pubgauge_mqtt_codec::Version;
use pubgauge_mqtt_codec::topic::check_filter;
use serde::Serialize;

use crate::Error;
use crate::config::{Broker, Mqtt};
use crate::verify::Discrepancy;
use messages::{Messages, Next};
use publisher::Publisher;

/// How long acknowledgements are awaited once it is to end.
const FAREWELL: Duration = Duration::from_secs(10);

/// How often it is told how far it is.
const TELL: Duration = Duration::from_secs(1);

/// The broker that stored messages are published to. What opens it goes to no other.
#[derive(Debug)]
pub struct ReplayTarget {
    broker: Broker,
    version: Version,
}

impl ReplayTarget {
    /// Reads a broker's address, such as `mqtt://USER@HOST:PORT`.
    ///
    /// # Errors
    /// An address of another form; a password without a user, which MQTT 3.1.1 does not allow.
    pub fn parse(
        url: &str,
        tls: Tls,
        password: Option<Secret>,
        mqtt: Mqtt,
    ) -> Result<ReplayTarget, Error> {
        let broker = Broker::parse(url, tls, password)?;
        let endpoint = &broker.endpoint;
        if mqtt == Mqtt::V311 && broker.password.is_some() && endpoint.username.is_none() {
            return Err(Error::input(
                format!("the password of {} needs a user", endpoint.shown),
                "MQTT 3.1.1 allows none without: mqtts://USER@HOST",
            ));
        }
        let version = mqtt.version();
        Ok(ReplayTarget { broker, version })
    }
}

/// Which messages are published, and when.
#[derive(Clone, Debug, Default)]
pub struct ReplayOptions {
    /// Only messages that were received from then on, and before, ns since 1970.
    pub from_ns: Option<i64>,
    pub until_ns: Option<i64>,
    /// Only topics that one of these filters matches; all if there is none.
    pub filters: Vec<String>,
    /// How many times as fast as they were received; as fast as the broker takes them, if absent.
    pub speed: Option<f64>,
    /// Stands in front of each topic.
    pub topic_prefix: String,
}

impl ReplayOptions {
    /// # Errors
    /// If a filter is none, or no topic can begin so.
    fn check(&self) -> Result<(), Error> {
        for filter in &self.filters {
            check_filter(filter).map_err(|error| {
                let what = format!("the topic filter {filter:?}: {error}");
                Error::input(what, "such as m/+/power or m/#")
            })?;
        }
        if self.topic_prefix.contains(['+', '#', '\0']) {
            let what = format!("no topic begins with {:?}", self.topic_prefix);
            return Err(Error::input(what, "expected text without `+` and `#`"));
        }
        Ok(())
    }
}

/// Messages that were published.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Replayed {
    /// Messages that are of the time and the topics that were asked for.
    pub read: u64,
    /// All of them at QoS 1.
    pub published: u64,
    pub acknowledged: u64,
    /// Messages that the broker refused, with a reason code.
    pub refused: u64,
    /// Messages whose payload is not stored (`payload.keep = false`): nothing is published in place of them.
    pub not_kept: u64,
    /// Messages that the broker does not take as they are: too large, or retained where it retains nothing.
    pub not_taken: u64,
    /// By how much the latest one was published too late.
    pub lag_ms: u64,
    /// Files that were not published as a whole, and why.
    pub faults: Vec<Discrepancy>,
    /// Why it ended before its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// When the first message was received that was not acknowledged, ns since 1970, where it ended before its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goes_on_from_ns: Option<i64>,
}

/// When messages are due: time is an argument.
struct ReplayPace {
    speed: Option<f64>,
    first_ns: Option<i64>,
}

impl ReplayPace {
    /// How long after the begin the next message is due that was received then.
    fn due(&mut self, received_ns: i64) -> Duration {
        let first = *self.first_ns.get_or_insert(received_ns);
        let apart = received_ns.saturating_sub(first).max(0) as f64 / 1e9;
        let due = self.speed.map_or(0.0, |speed| apart / speed);
        Duration::try_from_secs_f64(due).unwrap_or(Duration::MAX)
    }
}

/// Publishes the messages of a data folder's finished files. The log is not: what is in it becomes files within
/// `log.segment-age`. `tell` is given how far it is, about once a second, and when the last message was received.
///
/// # Errors
/// If it is no data folder, or the broker is not reached.
pub fn replay(
    data: &Path,
    target: &ReplayTarget,
    options: &ReplayOptions,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(&Replayed, i64),
) -> Result<Replayed, Error> {
    options.check()?;
    let mut messages = Messages::open(data, options)?;
    let publisher = Publisher::connect(target, stop)?;
    let mut replaying = Replaying {
        publisher,
        replayed: Replayed::default(),
        next_ns: None,
        told_at: Instant::now(),
        tell,
    };
    let published = replaying.publish_all(&mut messages, options, stop);
    let finished = replaying.publisher.finish(Instant::now() + FAREWELL);
    let mut replayed = replaying.counted();
    replayed.faults = messages.into_faults();
    if let Err(why) = published.and(finished) {
        let oldest = replaying.publisher.oldest_ns();
        replayed.goes_on_from_ns = oldest.or(replaying.next_ns);
        replayed.ended = Some(why);
    }
    Ok(replayed)
}

/// How far it is.
struct Replaying<'a> {
    publisher: Publisher,
    replayed: Replayed,
    /// When the message was received that is the next one.
    next_ns: Option<i64>,
    told_at: Instant,
    tell: &'a mut dyn FnMut(&Replayed, i64),
}

impl Replaying<'_> {
    /// # Errors
    /// Why it ends before its end.
    fn publish_all(
        &mut self,
        messages: &mut Messages,
        options: &ReplayOptions,
        stop: &AtomicBool,
    ) -> Result<(), String> {
        let mut begun = None;
        let mut pace = ReplayPace {
            speed: options.speed,
            first_ns: None,
        };
        loop {
            let mut message = match messages.next() {
                Next::Message(message) => message,
                Next::NotYet => {
                    check(stop)?;
                    self.publisher.work(Duration::ZERO)?;
                    continue;
                }
                Next::End => return Ok(()),
            };
            self.next_ns = Some(message.received_ns);
            let begun: &Instant = begun.get_or_insert_with(Instant::now);
            let due = begun.checked_add(pace.due(message.received_ns));
            self.wait_until(due, message.received_ns, stop)?;
            message.topic.insert_str(0, &options.topic_prefix);
            let replayed = &mut self.replayed;
            replayed.read += 1;
            if message.payload.is_none() {
                replayed.not_kept += 1;
            } else if self.publisher.publish(&message, stop)? {
                replayed.published += 1;
            } else {
                replayed.not_taken += 1;
            }
            if let (Some(_), Some(due)) = (options.speed, due) {
                let lag = due.elapsed().as_millis() as u64;
                replayed.lag_ms = replayed.lag_ms.max(lag);
            }
            self.next_ns = None;
        }
    }

    /// Waits until the message is due that was received then.
    fn wait_until(
        &mut self,
        due: Option<Instant>,
        received_ns: i64,
        stop: &AtomicBool,
    ) -> Result<(), String> {
        loop {
            let left = due.map_or(TELL, |due| due.saturating_duration_since(Instant::now()));
            self.tell_now_and_then(received_ns);
            check(stop)?;
            if left.is_zero() {
                return Ok(());
            }
            self.publisher.work(left)?;
        }
    }

    fn counted(&self) -> Replayed {
        Replayed {
            acknowledged: self.publisher.acknowledged,
            refused: self.publisher.refused,
            ..self.replayed.clone()
        }
    }

    fn tell_now_and_then(&mut self, received_ns: i64) {
        if self.told_at.elapsed() >= TELL {
            self.told_at = Instant::now();
            let so_far = self.counted();
            (self.tell)(&so_far, received_ns);
        }
    }
}

/// # Errors
/// If it is to be stopped.
fn check(stop: &AtomicBool) -> Result<(), String> {
    if stop.load(Relaxed) {
        return Err("it was stopped".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_due_as_they_came_or_at_once() {
        let pace = |speed| {
            let mut pace = ReplayPace {
                speed,
                first_ns: None,
            };
            let received = [5_000_000_000, 7_000_000_000, 4_000_000_000, 7_000_000_000];
            received.map(|ns| pace.due(ns).as_millis())
        };
        assert_eq!(pace(Some(1.0)), [0, 2000, 0, 2000]);
        assert_eq!(pace(Some(10.0)), [0, 200, 0, 200]);
        assert_eq!(pace(None), [0; 4]);
    }
}
