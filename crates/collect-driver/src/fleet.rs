//! The fleet: clients that publish are those of another fleet, and clients that subscribe are collectors.
//!
//! Publishers are those of the MQTT driver's own fleet. A collector has threads of its own, as in `pubgauge-collect`; each
//! commit comes over a channel when it is synced, and is reported with the next poll. A worker whose clients all publish
//! or all subscribe, the engine's usual division, sleeps in one place. One with both looks after its publishers every
//! [`SLICE`].

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use pubgauge_driver::{
    Change, ClientId, ClientSpec, Clock, Crowd, DriverError, Events, Fleet, Footprint, Grant,
    Nanos, Payload, Publish, Refusal, Subscription, Target, TopicId, WireBytes,
};
use pubgauge_driver_mqtt::SubscriberTerms;

use crate::collecting::Collecting;
use crate::relay::Relay;
use crate::setup::Setup;
use crate::told::{CollectorReports, What};

/// Longest sleep of a worker that has publishers and collectors, ns.
const SLICE: Nanos = 500_000;

/// Commits that one poll reports, at the most.
const AT_ONCE: usize = 64;

/// Memory and threads of collectors beside their connections.
pub(crate) fn footprint(crowd: &Crowd) -> Footprint {
    Footprint {
        // Lock, segment, event descriptor, and files that are being made.
        descriptors: 8 * crowd.subscribers,
        threads: 4 * crowd.subscribers,
        // Of the first bytes that come, and of the first commit.
        memory_bytes: crowd.subscribers << 20,
        ..Footprint::default()
    }
}

/// A fleet whose publishers are those of `publishing`.
pub(crate) fn open(
    publishing: Box<dyn Fleet>,
    terms: SubscriberTerms,
    target: Target,
    clock: Clock,
    worker: u32,
) -> CollectedFleet {
    let (tell, told) = channel();
    CollectedFleet {
        publishing,
        ours: Vec::new(),
        clients: Vec::new(),
        collectors: 0,
        pending: VecDeque::new(),
        told,
        tell,
        setup: Setup::new(terms, target, worker),
        clock,
    }
}

enum CollectorClient {
    /// Its number among the publishers.
    Publisher(ClientId),
    Collector(Box<Collecting>),
}

pub(crate) struct CollectedFleet {
    publishing: Box<dyn Fleet>,
    /// The number here of each publisher.
    ours: Vec<ClientId>,
    clients: Vec<CollectorClient>,
    collectors: usize,
    /// To be reported by the next poll.
    pending: VecDeque<(ClientId, Change)>,
    told: Receiver<CollectorReports>,
    tell: Sender<CollectorReports>,
    setup: Setup,
    clock: Clock,
}

impl CollectedFleet {
    fn publisher(&self, id: ClientId) -> Result<ClientId, DriverError> {
        match id.find(&self.clients)? {
            CollectorClient::Publisher(place) => Ok(*place),
            CollectorClient::Collector(_) => Err(DriverError::new(format!(
                "client {} is a collector and publishes nothing",
                id.0
            ))),
        }
    }

    fn collector(&mut self, id: ClientId) -> Result<&mut Collecting, DriverError> {
        match id.find_mut(&mut self.clients)? {
            CollectorClient::Collector(collecting) => Ok(collecting),
            CollectorClient::Publisher(_) => Err(DriverError::with_hint(
                format!("client {} does not subscribe", id.0),
                "say so when it connects: that decides whether it is a collector",
            )),
        }
    }

    fn each_collector(&mut self) -> impl Iterator<Item = &mut Collecting> {
        self.clients.iter_mut().filter_map(|client| match client {
            CollectorClient::Collector(collecting) => Some(&mut **collecting),
            CollectorClient::Publisher(_) => None,
        })
    }

    /// Has collectors begin, or go on with more filters, where that was asked for.
    fn begin(&mut self) {
        for client in &mut self.clients {
            let CollectorClient::Collector(collecting) = client else {
                continue;
            };
            if let Err(error) = collecting.go_on(&self.setup, &self.tell) {
                let failed = Change::Failed(error.into());
                self.pending.push_back((collecting.id, failed));
            }
        }
    }

    fn poll_publishing(
        &mut self,
        until: Nanos,
        events: &mut dyn Events,
    ) -> Result<bool, DriverError> {
        let mut relay = Relay {
            events,
            ours: &self.ours,
            reported: false,
        };
        self.publishing.poll(until, &mut relay)?;
        Ok(relay.reported)
    }

    /// Reports what collectors have told; whether it was anything.
    fn report(&mut self, events: &mut dyn Events) -> bool {
        let mut reported = false;
        for _ in 0..AT_ONCE {
            let Ok(told) = self.told.try_recv() else {
                break;
            };
            reported |= self.take(told, events);
        }
        while let Some((client, change)) = self.pending.pop_front() {
            events.changed(client, change);
            reported = true;
        }
        reported
    }

    fn take(&mut self, told: CollectorReports, events: &mut dyn Events) -> bool {
        let id = told.client;
        let what = match told.what {
            What::Stored(batch) => {
                events.arrived();
                for delivery in batch.deliveries() {
                    events.delivered(id, delivery);
                }
                return true;
            }
            what => what,
        };
        let Ok(collecting) = self.collector(id) else {
            return false;
        };
        if told.run != collecting.run {
            // Of a collector that was given up.
            return false;
        }
        let changes = match what {
            What::Notice(notice) => collecting.apply_notice(notice),
            What::Ended(outcome) => collecting.apply_end(outcome),
            What::Stored(_) => Vec::new(),
        };
        let reported = !changes.is_empty();
        for change in changes {
            events.changed(id, change);
        }
        reported
    }
}

impl Fleet for CollectedFleet {
    fn connect(&mut self, spec: &ClientSpec) -> Result<ClientId, DriverError> {
        let id = ClientId(self.clients.len() as u32);
        if !spec.subscribes {
            let place = self.publishing.connect(spec)?;
            self.ours.push(id);
            self.clients.push(CollectorClient::Publisher(place));
            return Ok(id);
        }
        if spec.publishes {
            return Err(DriverError::with_hint(
                format!("client {}: a collector does not publish", spec.name),
                "leave native.mqtt.collect out where clients publish and subscribe",
            ));
        }
        spec.without_will("a collector", "native.mqtt.collect")?;
        let collecting = Collecting::new(id, spec, &self.setup)?;
        self.clients
            .push(CollectorClient::Collector(Box::new(collecting)));
        self.collectors += 1;
        Ok(id)
    }

    fn subscribe(&mut self, id: ClientId, asked: &Subscription) -> Result<(), DriverError> {
        if !self.collector(id)?.subscribe(asked) {
            self.pending.push_back((id, Change::Subscribed));
        }
        Ok(())
    }

    fn advertise(&mut self, id: ClientId, topic: &str) -> Result<TopicId, DriverError> {
        let place = self.publisher(id)?;
        self.publishing.advertise(place, topic)
    }

    #[inline]
    fn publish(&mut self, id: ClientId, topic: TopicId, payload: Payload<'_>, tag: u64) -> Publish {
        match self.clients.get(id.0 as usize) {
            Some(CollectorClient::Publisher(place)) => {
                self.publishing.publish(*place, topic, payload, tag)
            }
            _ => Publish::Refused(Refusal::NotConnected),
        }
    }

    fn poll(&mut self, until: Nanos, events: &mut dyn Events) -> Result<(), DriverError> {
        self.begin();
        if self.collectors == 0 {
            return self.poll_publishing(until, events).map(|_| ());
        }
        let publishes = !self.ours.is_empty();
        loop {
            let mut reported = publishes && self.poll_publishing(0, events)?;
            reported |= self.report(events);
            let now = self.clock.now();
            if reported || now >= until {
                return Ok(());
            }
            let wake = if publishes {
                until.min(now + SLICE)
            } else {
                until
            };
            // The other end is held here, so that only time can be over.
            let told = self.told.recv_timeout(Duration::from_nanos(wake - now));
            if told.is_ok_and(|told| self.take(told, events)) {
                return Ok(());
            }
        }
    }

    fn disconnect(&mut self, id: ClientId) {
        if let Ok(place) = self.publisher(id) {
            self.publishing.disconnect(place);
        } else if let Ok(collecting) = self.collector(id)
            && !collecting.leave()
        {
            self.pending.push_back((id, Change::Closed));
        }
    }

    /// A collector ends in order all the same: no thread can be killed.
    fn abort(&mut self, id: ClientId) {
        if let Ok(place) = self.publisher(id) {
            self.publishing.abort(place);
        } else if let Ok(collecting) = self.collector(id) {
            collecting.give_up();
        }
    }

    fn reconnect(&mut self, id: ClientId) -> Result<(), DriverError> {
        if let Ok(place) = self.publisher(id) {
            return self.publishing.reconnect(place);
        }
        self.collector(id)?.begin_again();
        Ok(())
    }

    fn unsettled(&self) -> u64 {
        self.publishing.unsettled()
    }

    fn wire_bytes(&self) -> WireBytes {
        let mut bytes = self.publishing.wire_bytes();
        for client in &self.clients {
            if let CollectorClient::Collector(collecting) = client {
                let own = collecting.wire_bytes();
                bytes.sent += own.sent;
                bytes.received += own.received;
            }
        }
        bytes
    }

    fn has_threads(&self) -> bool {
        true
    }

    fn later_threads(&self) -> Vec<u32> {
        let collectors = self.clients.iter().filter_map(|client| match client {
            CollectorClient::Collector(collecting) => Some(collecting.threads()),
            CollectorClient::Publisher(_) => None,
        });
        let mut threads = self.publishing.later_threads();
        threads.extend(collectors.flatten());
        threads
    }

    fn close(&mut self, until: Nanos) {
        self.each_collector().for_each(Collecting::give_up);
        self.each_collector().for_each(Collecting::wait);
        self.setup.remove();
        self.publishing.close(until);
    }

    fn grants(&self) -> Vec<Grant> {
        self.publishing.grants()
    }

    fn parting_messages(&self) -> u64 {
        self.publishing.parting_messages()
    }

    fn left_behind(&self) -> Option<String> {
        self.publishing.left_behind()
    }
}

impl Drop for CollectedFleet {
    fn drop(&mut self) {
        self.each_collector().for_each(Collecting::give_up);
    }
}
