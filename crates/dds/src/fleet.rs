//! A fleet over a DDS library: clients, their topics and what becomes of both. What the library does
//! for them is a [`Library`]'s.
//!
//! All clients of a fleet are entities of one participant. A topic of a client is a publisher with one
//! writer; it ends with its client, and comes back when the client connects again. Subscriptions are
//! the caller's to repeat.
//!
//! | a client is | what happens there |
//! |---|---|
//! | up | messages |
//! | closing | its readers are gone; its writers wait for acknowledgements, for a second at most |
//! | down: failed, closed or aborted | it has no entities |

mod calls;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use pubgauge_driver::{
    Change, ClientId, Clock, DriverError, Events, Fleet, FleetConfig, Nanos, Publish, Refusal,
    TopicId,
};

use crate::advertised::{Gate, Topic};
use crate::library::{Library, News, Traffic};

/// How long a client that disconnects waits for acknowledgements, ns.
const LINGER: Nanos = 1_000_000_000;

/// How often such a client is looked at, ns.
const LINGER_LOOK: Nanos = 1_000_000;

/// One worker thread's share of the clients.
pub struct DdsFleet<L: Library> {
    clients: Vec<DdsClient>,
    topics: Vec<Topic<L::Writer>>,
    topic_ids: HashMap<(ClientId, String), TopicId>,
    /// Topics that are [`Gate::HeldBack`], and when they are looked at again at the latest.
    held_back: Vec<u32>,
    retry_at: Nanos,
    closing: Vec<ClientId>,
    news: News,
    clock: Clock,
    worker: u32,
    /// The participant's last counts, once it is gone.
    last_traffic: Option<Traffic>,
    /// `None` once the fleet is closed.
    library: Option<L>,
}

struct DdsClient {
    name: String,
    phase: Phase,
    topics: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Up,
    /// Waits for acknowledgements until then.
    Closing(Nanos),
    Down,
}

const CONNECTED: Change = Change::Connected {
    session_present: false,
    address: None,
};

impl<L: Library> DdsFleet<L> {
    /// A fleet without clients.
    pub fn new(config: &FleetConfig, library: L) -> Self {
        DdsFleet {
            clients: Vec::with_capacity(config.clients),
            topics: Vec::new(),
            topic_ids: HashMap::new(),
            held_back: Vec::new(),
            retry_at: 0,
            closing: Vec::new(),
            news: News::new(),
            clock: config.clock.clone(),
            worker: config.worker,
            last_traffic: None,
            library: Some(library),
        }
    }

    /// The library; `None` once the fleet is closed.
    pub fn library(&self) -> Option<&L> {
        self.library.as_ref()
    }

    fn open_library(&mut self) -> Result<&mut L, DriverError> {
        self.library.as_mut().ok_or_else(DriverError::closed)
    }

    fn traffic(&self) -> Option<Traffic> {
        let library = self.library.as_ref();
        library.map_or(self.last_traffic, Library::traffic)
    }

    /// Creates the writer of a topic. Its key has the worker in it, so that no other of the trial has the same.
    fn create_writer(&mut self, number: u32) -> Result<(), DriverError> {
        let key = (self.worker & 0xfff) << 20 | (number & 0xf_ffff);
        let library = self.library.as_mut().ok_or_else(DriverError::closed)?;
        let topic = &mut self.topics[number as usize];
        topic.writer = Some(library.create_writer(&topic.name, key)?);
        topic.gate = Gate::Open;
        Ok(())
    }

    /// Lets the topics of a client take nothing more.
    fn shut_topics(&mut self, id: ClientId) {
        for number in &self.clients[id.0 as usize].topics {
            self.topics[*number as usize].gate = Gate::Shut;
        }
        let topics = &self.topics;
        self.held_back
            .retain(|number| topics[*number as usize].gate == Gate::HeldBack);
        if let Some(library) = self.library.as_mut().filter(|_| self.held_back.is_empty()) {
            library.hold_back(false);
        }
    }

    /// Deletes the entities of a client at once.
    fn drop_entities(&mut self, id: ClientId) {
        self.shut_topics(id);
        self.closing.retain(|client| *client != id);
        let client = &mut self.clients[id.0 as usize];
        client.phase = Phase::Down;
        let Some(library) = &mut self.library else {
            return;
        };
        for number in &client.topics {
            if let Some(writer) = self.topics[*number as usize].writer.take() {
                library.end_writer(writer, 0);
            }
        }
        library.drop_readers(id);
    }

    #[cold]
    fn hold_back(&mut self, number: u32) -> Publish {
        if let Some(library) = self.library.as_mut().filter(|_| self.held_back.is_empty()) {
            self.retry_at = self.clock.now() + library.retry();
            library.hold_back(true);
        }
        self.topics[number as usize].gate = Gate::HeldBack;
        self.held_back.push(number);
        Publish::Blocked
    }

    /// A write has failed: its client goes down.
    #[cold]
    fn fail(&mut self, id: ClientId, error: DriverError) -> Publish {
        self.drop_entities(id);
        self.news.push_back((id, Change::Failed(error.into())));
        Publish::Refused(Refusal::NotConnected)
    }

    /// Lets topics that were held back take messages again where there is room.
    fn release(&mut self, now: Nanos) {
        let Some(library) = self.library.as_mut().filter(|_| !self.held_back.is_empty()) else {
            return;
        };
        let due = now >= self.retry_at;
        if !library.may_have_room() && !due {
            return;
        }
        let (topics, news) = (&mut self.topics, &mut self.news);
        self.held_back.retain(|number| {
            let topic = &mut topics[*number as usize];
            let writer = topic.writer.as_ref();
            if writer.is_some_and(|writer| !library.has_room(writer, due)) {
                return true;
            }
            topic.gate = Gate::Open;
            news.push_back((topic.client, Change::Writable));
            false
        });
        if due {
            self.retry_at = now + library.retry();
        }
        if self.held_back.is_empty() {
            library.hold_back(false);
        }
    }

    /// Closes clients that wait, once all is acknowledged or their time is over.
    fn finish_closing(&mut self, now: Nanos) {
        for index in (0..self.closing.len()).rev() {
            let id = self.closing[index];
            let is_due = match self.clients[id.0 as usize].phase {
                Phase::Closing(deadline) => deadline <= now,
                _ => true,
            };
            if is_due || self.is_settled(id) {
                self.drop_entities(id);
                self.news.push_back((id, Change::Closed));
            }
        }
    }

    /// Whether all messages of a client are acknowledged.
    fn is_settled(&self, id: ClientId) -> bool {
        let Some(library) = &self.library else {
            return true;
        };
        let topics = self.clients[id.0 as usize].topics.iter();
        let mut writers = topics.filter_map(|n| self.topics[*n as usize].writer.as_ref());
        writers.all(|writer| library.is_settled(writer))
    }

    /// Reports what happened outside of [`Fleet::poll`]. Says whether there was anything.
    fn report(&mut self, events: &mut dyn Events) -> bool {
        let any = !self.news.is_empty();
        for (client, change) in self.news.drain(..) {
            events.changed(client, change);
        }
        any
    }

    /// When to wake up at the latest, if not before `until`.
    fn wake_at(&self, until: Nanos, now: Nanos) -> Nanos {
        let mut wake = until;
        if !self.held_back.is_empty() {
            wake = wake.min(self.retry_at);
        }
        if !self.closing.is_empty() {
            wake = wake.min(now + LINGER_LOOK);
        }
        wake
    }
}

impl<L: Library> Drop for DdsFleet<L> {
    /// Writers and readers before their participant, whatever the order of the fields.
    fn drop(&mut self) {
        self.close(0);
    }
}
