//! Readers, and how messages arrive.

use std::ffi::CString;
use std::time::{SystemTime, UNIX_EPOCH};

use pubgauge_driver::{ClientId, Delivery, DriverError, Events, Nanos, monotonic_now};
use rustc_hash::FxHashMap;

use super::state::{CycloneFleet, Subscriber, failed};
use super::topics::Topics;
use crate::topic::Filter;

/// Most messages taken from one reader before others, and the sender's schedule, get their turn.
const TURN: usize = 256;

/// Most readers that get a turn in one poll.
const READERS: usize = 1024;

impl CycloneFleet {
    pub(super) fn create_reader(
        &mut self,
        client: ClientId,
        filter: &Filter,
    ) -> Result<(), DriverError> {
        let domain = self.domain.as_ref().ok_or_else(DriverError::closed)?;
        let free = self.subscribers.iter().position(Option::is_none);
        let index = free.unwrap_or(self.subscribers.len());
        let partitions: Vec<CString> = filter
            .partitions
            .iter()
            .map(|p| CString::new(p.as_str()))
            .collect::<Result<_, _>>()
            .map_err(|e| DriverError::new(e.to_string()))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_ns = now.map_or(0, |d| i64::try_from(d.as_nanos()).unwrap_or(i64::MAX));
        let reader = domain
            .reader(index as u32, &partitions, filter.names, &self.reader_qos)
            .map_err(|code| failed("cannot create a reader", code))?;
        let topics = if filter.names {
            Topics::ByWriter {
                check: filter.checked.then(|| filter.text.clone()),
                known: FxHashMap::default(),
                last: 0,
                last_known: None,
            }
        } else {
            Topics::One(filter.text.as_str().into())
        };
        let subscriber = Subscriber {
            client,
            reader,
            topics,
            since_ns: self.options.last_value.then_some(now_ns),
        };
        match self.subscribers.get_mut(index) {
            Some(slot) => *slot = Some(subscriber),
            None => self.subscribers.push(Some(subscriber)),
        }
        Ok(())
    }

    pub(super) fn drop_readers(&mut self, client: ClientId) {
        for (index, slot) in self.subscribers.iter_mut().enumerate() {
            if slot.as_ref().is_none_or(|s| s.client != client) {
                continue;
            }
            if let (Some(subscriber), Some(domain)) = (slot.take(), &self.domain) {
                domain.free(subscriber.reader);
            }
            self.unfinished.retain(|i| *i as usize != index);
        }
    }

    /// Takes and reports what has come. Says whether there was anything.
    pub(super) fn receive(&mut self, events: &mut dyn Events) -> Result<bool, DriverError> {
        let mut any = false;
        for _ in 0..self.unfinished.len() {
            if let Some(index) = self.unfinished.pop_front() {
                any |= self.turn(index, events)?;
            }
        }
        for _ in 0..READERS {
            let Some(index) = self.domain.as_ref().and_then(|d| d.next_ready()) else {
                break;
            };
            any |= self.turn(index, events)?;
        }
        Ok(any)
    }

    /// A reader's turn. Says whether it had anything.
    fn turn(&mut self, index: u32, events: &mut dyn Events) -> Result<bool, DriverError> {
        let Some(Some(subscriber)) = self.subscribers.get_mut(index as usize) else {
            return Ok(false);
        };
        let mut count = 0;
        let mut more = true;
        while more && count < TURN {
            more = self
                .taken
                .take(&subscriber.reader)
                .map_err(|code| failed("cannot take from a reader", code))?;
            if self.taken.len() == 0 {
                continue;
            }
            events.arrived();
            for at in 0..self.taken.len() {
                let sample = self.taken.get(at);
                let (topic, wanted) = subscriber.topics.of(&subscriber.reader, sample.publication);
                if wanted {
                    let delivery = Delivery {
                        payload: sample.payload,
                        topic,
                        retained: subscriber.since_ns.is_some_and(|s| sample.source_ns < s),
                        redelivered: false,
                    };
                    events.delivered(subscriber.client, delivery);
                }
            }
            count += self.taken.len();
        }
        self.taken.release();
        if more {
            self.unfinished.push_back(index);
        }
        Ok(count > 0)
    }

    /// Sleeps until something comes or `wake`; may look for a while first.
    pub(super) fn wait(&mut self, wake: Nanos, now: Nanos) {
        let Some(domain) = &self.domain else {
            return;
        };
        let end = self.patience.look_until(now, !self.blocked.is_empty());
        let mut then = now;
        while !domain.has_ready() {
            if then >= end.min(wake) {
                // The fleet's clock may be another host's; the kernel knows this one's alone.
                domain.wait(monotonic_now().saturating_add(wake.saturating_sub(then)));
                then = self.clock.now();
                break;
            }
            // Where there are fewer cores than threads, Cyclone's threads need this one: without
            // the yield, the message may come only once this thread sleeps.
            std::thread::yield_now();
            then = self.clock.now();
        }
        self.patience.waited(then - now, domain.has_ready());
    }
}
