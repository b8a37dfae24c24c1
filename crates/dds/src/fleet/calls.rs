//! The calls of the engine.

use pubgauge_driver::{
    Change, ClientId, ClientSpec, DriverError, Events, Fleet, Nanos, Payload, Publish, Refusal,
    Subscription, TopicId, WireBytes,
};

use super::{CONNECTED, DdsClient, DdsFleet, LINGER, Phase};
use crate::advertised::{Gate, Topic};
use crate::check_client;
use crate::library::{Library, Written};
use crate::topic::{Filter, partition};

impl<L: Library> Fleet for DdsFleet<L> {
    fn connect(&mut self, spec: &ClientSpec) -> Result<ClientId, DriverError> {
        check_client(spec)?;
        self.open_library()?;
        let id = ClientId(self.clients.len() as u32);
        self.clients.push(DdsClient {
            name: spec.name.clone(),
            phase: Phase::Up,
            topics: Vec::new(),
        });
        self.news.push_back((id, CONNECTED));
        Ok(id)
    }

    fn subscribe(&mut self, id: ClientId, subscription: &Subscription) -> Result<(), DriverError> {
        let filter = Filter::new(subscription)?;
        let client = id.find(&self.clients)?;
        if client.phase != Phase::Up {
            return Err(DriverError::new(format!(
                "client {} is not connected",
                client.name
            )));
        }
        let library = self.library.as_mut().ok_or_else(DriverError::closed)?;
        library.subscribe(id, filter, &mut self.news)
    }

    fn advertise(&mut self, id: ClientId, topic: &str) -> Result<TopicId, DriverError> {
        let is_up = id.find(&self.clients)?.phase == Phase::Up;
        let key = (id, topic.to_owned());
        if let Some(known) = self.topic_ids.get(&key) {
            return Ok(*known);
        }
        let number = self.topics.len() as u32;
        self.topics.push(Topic {
            client: id,
            name: partition(topic)?.to_owned(),
            gate: Gate::Shut,
            writer: None,
        });
        if is_up && let Err(error) = self.create_writer(number) {
            self.topics.pop();
            return Err(error);
        }
        self.clients[id.0 as usize].topics.push(number);
        self.topic_ids.insert(key, TopicId(number));
        Ok(TopicId(number))
    }

    #[inline]
    fn publish(&mut self, id: ClientId, topic: TopicId, payload: Payload<'_>, _: u64) -> Publish {
        const NOT_CONNECTED: Publish = Publish::Refused(Refusal::NotConnected);
        let (Some(known), Some(library)) =
            (self.topics.get_mut(topic.0 as usize), &mut self.library)
        else {
            return NOT_CONNECTED;
        };
        let Some(writer) = known.writer.as_mut().filter(|_| known.client == id) else {
            return NOT_CONNECTED;
        };
        match known.gate {
            Gate::Open => {}
            Gate::HeldBack => return Publish::Blocked,
            Gate::Shut => return NOT_CONNECTED,
        }
        match library.write(topic.0, writer, payload) {
            Written::Accepted => Publish::Accepted,
            Written::NoRoom => self.hold_back(topic.0),
            Written::Refused(refusal) => Publish::Refused(refusal),
            Written::Failed(error) => self.fail(id, *error),
        }
    }

    fn poll(&mut self, until: Nanos, events: &mut dyn Events) -> Result<(), DriverError> {
        if let Some(library) = &mut self.library {
            library.flush(&mut self.topics);
            library.prepare(&mut self.news)?;
        }
        loop {
            if !self.held_back.is_empty() || !self.closing.is_empty() {
                let now = self.clock.now();
                self.release(now);
                self.finish_closing(now);
            }
            let mut any = self.report(events);
            let Some(library) = &mut self.library else {
                return Ok(());
            };
            any |= library.receive(events)?;
            // At full speed nothing asks for the time.
            if any || until == 0 {
                return Ok(());
            }
            let now = self.clock.now();
            if now >= until {
                return Ok(());
            }
            let wake = self.wake_at(until, now);
            if let Some(library) = self.library.as_mut().filter(|_| wake > now) {
                library.wait(wake - now);
            }
        }
    }

    fn disconnect(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(id.0 as usize) else {
            return;
        };
        match client.phase {
            Phase::Up => client.phase = Phase::Closing(self.clock.now() + LINGER),
            Phase::Closing(_) => return,
            Phase::Down => return self.news.push_back((id, Change::Closed)),
        }
        self.shut_topics(id);
        self.closing.push(id);
        if let Some(library) = &mut self.library {
            library.flush(&mut self.topics);
            library.drop_readers(id);
        }
    }

    /// Deletes the client's writers and readers. Discovery tells other participants at once; a crash
    /// would be noticed when the lease of the participant ends, but all clients of the fleet share it.
    fn abort(&mut self, id: ClientId) {
        if (id.0 as usize) < self.clients.len() {
            self.drop_entities(id);
            self.news.retain(|(client, _)| *client != id);
        }
    }

    fn reconnect(&mut self, id: ClientId) -> Result<(), DriverError> {
        let client = id.find(&self.clients)?;
        if client.phase != Phase::Down {
            return Err(DriverError::new(format!(
                "client {} is still connected",
                client.name
            )));
        }
        for number in client.topics.clone() {
            if let Err(error) = self.create_writer(number) {
                self.drop_entities(id);
                return Err(error);
            }
        }
        self.clients[id.0 as usize].phase = Phase::Up;
        self.news.push_back((id, CONNECTED));
        Ok(())
    }

    /// Writers with messages that are not acknowledged: DDS does not tell how many those are. 0 where
    /// the library is not asked ([`Library::counts_unsettled`]).
    fn unsettled(&self) -> u64 {
        let library = self.library.as_ref().filter(|l| l.counts_unsettled());
        let Some(library) = library else {
            return 0;
        };
        let writers = self.topics.iter().filter_map(|t| t.writer.as_ref());
        writers.filter(|writer| !library.is_settled(writer)).count() as u64
    }

    /// UDP payloads of the fleet's participant: RTPS with its headers, heartbeats, acknowledgements,
    /// repeated messages and discovery. 0 if the library cannot be counted.
    fn wire_bytes(&self) -> WireBytes {
        let traffic = self.traffic().unwrap_or_default();
        WireBytes {
            sent: traffic.sent_bytes,
            received: traffic.received_bytes,
        }
    }

    /// UDP datagrams sent, one system call each.
    fn writes(&self) -> Option<u64> {
        self.traffic().map(|traffic| traffic.sent_datagrams)
    }

    fn has_threads(&self) -> bool {
        true
    }

    fn close(&mut self, until: Nanos) {
        let Some(mut library) = self.library.take() else {
            return;
        };
        library.flush(&mut self.topics);
        for topic in &mut self.topics {
            topic.gate = Gate::Shut;
            if let Some(writer) = topic.writer.take() {
                library.end_writer(writer, until.saturating_sub(self.clock.now()));
            }
        }
        for (index, client) in self.clients.iter_mut().enumerate() {
            client.phase = Phase::Down;
            library.drop_readers(ClientId(index as u32));
        }
        self.held_back.clear();
        self.closing.clear();
        self.news.clear();
        self.last_traffic = library.traffic();
    }
}
