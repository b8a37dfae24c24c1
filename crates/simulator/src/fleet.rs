//! One worker's share of the simulated system's clients.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::behaviour::Behaviour;
use super::bus::{Bus, BusContent, Parcel, Sent, WillTruth};
use pubgauge_driver::clock::{Clock, Nanos};
use pubgauge_driver::payload::Payload;
use pubgauge_driver::resource::Resource;
use pubgauge_driver::seam::{
    Change, ClientId, ClientSpec, Delivery, DriverError, Events, Failure, Fleet, FleetConfig,
    Publish, Refusal, Subscription, TopicId, WireBytes,
};
use pubgauge_driver::{Grant, Session, Travel, Will};

pub(super) struct SimulatedFleet {
    bus: Arc<Bus>,
    mine: usize,
    behaviour: Behaviour,
    acknowledges: bool,
    window: u64,
    grants: Vec<Grant>,
    clients: Vec<ClientState>,
    /// Each with how its messages travel, where that is not as the settings say.
    topics: Vec<(String, Option<Travel>)>,
    topic_ids: HashMap<String, TopicId>,
    changes: VecDeque<(ClientId, Change)>,
    /// Clients whose log-in is under way, each with when it is answered.
    logging_in: VecDeque<(Nanos, ClientId)>,
    /// Clients that have said that they leave, each with when its connection ends.
    closing: VecDeque<(Nanos, ClientId)>,
    durable: bool,
    /// The system keeps each topic's last value.
    keeps: bool,
    /// Subscriptions without an answer, each with when it is answered.
    subscribing: VecDeque<(Nanos, ClientId)>,
    blocked: Vec<ClientId>,
    /// Clients for which messages wait with the system because their applications were busy.
    awaited: BTreeSet<u32>,
    unsettled: u64,
    wire: WireBytes,
    /// Bytes of the user properties that go with each message.
    property_bytes: u64,
}

struct ClientState {
    name: String,
    up: bool,
    /// It was connected before, so that the system has a session of it where these are durable.
    known: bool,
    /// Attempts that will be turned away.
    turned_away: u32,
    /// How many more messages its application takes, where that is bounded.
    bound: Option<u32>,
    outstanding: u64,
    falls_at: Option<Nanos>,
    /// When the system stops reading from it.
    unread_from: Option<Nanos>,
    will: Option<Will>,
}

impl SimulatedFleet {
    pub(super) fn new(bus: Arc<Bus>, config: FleetConfig) -> Self {
        let behaviour = bus.behaviour();
        let acknowledges = !config.settings.may_lose();
        let asked = config.settings.in_flight.map_or(u64::MAX, u64::from);
        let window = match behaviour.grants {
            0 => asked,
            granted => asked.min(granted.into()),
        };
        let grant = Grant {
            granted: window,
            term: "window".into(),
            ..Grant::own_window(asked)
        };
        SimulatedFleet {
            grants: (acknowledges && window < u64::MAX)
                .then_some(grant)
                .into_iter()
                .collect(),
            mine: bus.join(),
            bus,
            behaviour,
            acknowledges,
            window,
            clients: Vec::new(),
            topics: Vec::new(),
            topic_ids: HashMap::new(),
            changes: VecDeque::new(),
            logging_in: VecDeque::new(),
            closing: VecDeque::new(),
            durable: config.settings.session == Some(Session::Durable),
            keeps: config.settings.last_value == Some(true),
            subscribing: VecDeque::new(),
            blocked: Vec::new(),
            awaited: BTreeSet::new(),
            unsettled: 0,
            wire: WireBytes::default(),
            property_bytes: (config.settings.user_properties.iter().flatten())
                .map(|(key, value)| (key.len() + value.len()) as u64)
                .sum(),
        }
    }

    /// Begins to log a client in.
    fn log_in(&mut self, client: ClientId) {
        let most = self.behaviour.connecting_at_once;
        if most > 0 && self.logging_in.len() >= most {
            let change = Change::Failed("the simulated system has no room for one more".into());
            self.changes.push_back((client, change));
            return;
        }
        match self.behaviour.connect_ns {
            0 => self.come_up(client),
            takes => {
                let answered_at = self.bus.clock.now() + takes;
                self.logging_in.push_back((answered_at, client));
            }
        }
    }

    /// Publishes the will of a client whose connection has ended, if it has one and that is how it ended.
    fn leave_will(&self, client: ClientId, in_order: bool) {
        let state = &self.clients[client.0 as usize];
        if let Some(will) = &state.will {
            let truth = WillTruth {
                of: state.name.clone(),
                ended_at: self.bus.clock.now(),
                in_order,
            };
            let whose = (self.mine, client.0);
            self.bus.end_with_will(whose, will, truth, self.durable);
        }
    }

    /// Ends the connection of a client that has said that it leaves.
    fn end_connection(&mut self, client: ClientId) {
        self.leave_will(client, true);
        self.bus.leave(self.mine, client.0, self.durable);
        self.changes.push_back((client, Change::Closed));
    }

    fn come_up(&mut self, client: ClientId) {
        let state = &mut self.clients[client.0 as usize];
        let change = if self.behaviour.starves.contains(&state.name) {
            Change::Failed(Failure {
                why: format!("{}: no file descriptor is left", state.name),
                exhausted: Some(Resource::Descriptors),
            })
        } else if self.behaviour.refuses.contains(&state.name) {
            Change::Failed(format!("the simulated system refuses {}", state.name).into())
        } else if state.turned_away > 0 {
            state.turned_away -= 1;
            Change::Failed("the simulated system is busy".into())
        } else {
            let session_present = self.durable && state.known;
            (state.up, state.known) = (true, true);
            self.bus.avert_will(self.mine, client.0);
            if session_present {
                self.bus.resume(self.mine, client.0);
            }
            Change::Connected {
                session_present,
                address: None,
            }
        };
        self.changes.push_back((client, change));
    }

    fn fall_due(&mut self, now: Nanos) {
        let mut fallen = Vec::new();
        for (index, client) in self.clients.iter_mut().enumerate() {
            if client.up && client.falls_at.is_some_and(|at| at <= now) {
                (client.up, client.bound) = (false, None);
                client.falls_at = None;
                fallen.push(ClientId(index as u32));
                self.bus.forget(self.mine, index as u32);
                self.changes.push_back((
                    ClientId(index as u32),
                    Change::Failed("the simulated system closed the connection".into()),
                ));
            }
        }
        for client in fallen {
            self.leave_will(client, false);
        }
    }

    /// Advances the clock to the end of the client's sleep that it has reached, if any.
    fn sleep_through(&self, clock: &Clock) {
        let since = clock.now().saturating_sub(self.bus.born);
        let sleeps = &self.behaviour.client_sleeps;
        if let Some((_, to)) = sleeps
            .iter()
            .find(|(from, to)| (*from..*to).contains(&since))
        {
            clock.advance_to(self.bus.born + to);
        }
    }

    fn next_fall(&self) -> Option<Nanos> {
        self.clients
            .iter()
            .filter(|c| c.up)
            .filter_map(|c| c.falls_at)
            .min()
    }

    /// The next parcel that is delivered at `now`: one that has waited for its client, or else one that is due.
    fn next_parcel(&mut self, now: Nanos) -> Option<Parcel> {
        let mut bus = self.bus.lock();
        let may_take =
            |clients: &[ClientState], client: u32| clients[client as usize].bound != Some(0);
        let mut awaited = self.awaited.iter();
        if let Some(client) = awaited
            .find(|client| may_take(&self.clients, **client))
            .copied()
        {
            let waiting = bus.waiting.get_mut(&(self.mine, client));
            match waiting.and_then(VecDeque::pop_front) {
                Some(parcel) => return Some(parcel),
                None => {
                    self.awaited.remove(&client);
                    drop(bus);
                    return self.next_parcel(now);
                }
            }
        }
        loop {
            let parcel = bus.take_due(self.mine, now)?;
            let message = matches!(parcel.content, BusContent::Message { .. });
            if !message || may_take(&self.clients, parcel.client) {
                return Some(parcel);
            }
            let client = parcel.client;
            self.awaited.insert(client);
            if !bus.wait(self.mine, parcel) {
                drop(bus);
                self.throw_out(ClientId(client));
                bus = self.bus.lock();
            }
        }
    }

    /// Closes the connection of a client for which too much waits.
    fn throw_out(&mut self, client: ClientId) {
        let state = &mut self.clients[client.0 as usize];
        (state.up, state.bound) = (false, None);
        self.awaited.remove(&client.0);
        self.leave_will(client, false);
        self.bus.leave(self.mine, client.0, false);
        let why = "the simulated system closed the connection: it is too slow";
        self.changes.push_back((client, Change::Failed(why.into())));
    }

    /// Hands a message or an acknowledgement over to whoever polls.
    fn hand_over(&mut self, parcel: Parcel, events: &mut dyn Events) {
        let client = ClientId(parcel.client);
        match parcel.content {
            BusContent::Message {
                topic,
                payload,
                header,
                redelivered,
                last_value,
                lowered,
                ..
            } => {
                if let Some(header) = &header {
                    events.header(header);
                }
                if lowered {
                    events.lowered();
                }
                self.wire.received += payload.len() as u64 + self.property_bytes;
                events.delivered(
                    client,
                    Delivery {
                        payload: &payload,
                        topic: Some(&topic),
                        retained: last_value,
                        redelivered,
                    },
                );
            }
            BusContent::Acknowledgement { tag, answer } => {
                self.unsettled -= 1;
                self.clients[parcel.client as usize].outstanding -= 1;
                events.acknowledged(client, tag, answer);
            }
        }
    }

    /// Reports all events due at `now`; whether there were any.
    fn report(&mut self, now: Nanos, events: &mut dyn Events) -> bool {
        let mut any = false;
        self.fall_due(now);
        while let Some((at, client)) = self.closing.front().copied()
            && at <= now
        {
            self.closing.pop_front();
            self.end_connection(client);
        }
        while let Some((at, client)) = self.logging_in.front().copied()
            && at <= now
        {
            self.logging_in.pop_front();
            self.come_up(client);
        }
        while let Some((at, client)) = self.subscribing.front().copied()
            && at <= now
        {
            self.subscribing.pop_front();
            self.changes.push_back((client, Change::Subscribed));
        }
        let mut first = true;
        while let Some((client, change)) = self.changes.pop_front() {
            // A server's answer to a login is read as a message is.
            if std::mem::take(&mut first) {
                events.arrived();
            }
            events.changed(client, change);
            any = true;
        }
        while let Some(parcel) = self.next_parcel(now) {
            if let Some(left) = &mut self.clients[parcel.client as usize].bound
                && matches!(parcel.content, BusContent::Message { .. })
            {
                *left -= 1;
            }
            self.bus.lock().note_delivery(&parcel, now);
            if std::mem::take(&mut first) {
                events.arrived();
            }
            any = true;
            self.hand_over(parcel, events);
        }
        // Of clients that were thrown out.
        while let Some((client, change)) = self.changes.pop_front() {
            events.changed(client, change);
            any = true;
        }
        if !self.blocked.is_empty() && !self.bus.full() {
            let (window, clients) = (self.window, &self.clients);
            self.blocked.retain(|client| {
                let free = clients[client.0 as usize].outstanding < window;
                if free {
                    events.changed(*client, Change::Writable);
                    any = true;
                }
                !free
            });
        }
        any
    }
}

impl Fleet for SimulatedFleet {
    fn connect(&mut self, client: &ClientSpec) -> Result<ClientId, DriverError> {
        let id = ClientId(self.clients.len() as u32);
        let planted = |times: &[(Nanos, String)]| {
            let mut times = times.iter();
            let own = times.find(|(_, name)| *name == client.name);
            own.map(|(at, _)| self.bus.born + at)
        };
        let falls_at = planted(&self.behaviour.disconnects);
        let unread_from = planted(&self.behaviour.unread);
        self.clients.push(ClientState {
            name: client.name.clone(),
            up: false,
            known: false,
            turned_away: (self.behaviour.turned_away.iter())
                .find(|(name, _)| *name == client.name)
                .map_or(0, |(_, attempts)| *attempts),
            bound: None,
            outstanding: 0,
            falls_at,
            unread_from,
            will: client.will.clone(),
        });
        self.log_in(id);
        Ok(id)
    }

    fn subscribe(
        &mut self,
        client: ClientId,
        subscription: &Subscription,
    ) -> Result<(), DriverError> {
        let asked =
            |(of, change): &&(ClientId, Change)| *of == client && *change == Change::Subscribed;
        let most = self.behaviour.subscriptions_at_once;
        if most > 0 && self.changes.iter().filter(asked).count() >= most {
            return Err(DriverError::new(format!(
                "more than {most} subscriptions of one client without an answer"
            )));
        }
        let name = &self.clients[client.0 as usize].name;
        self.bus.subscribe(self.mine, client.0, name, subscription);
        match self.behaviour.subscribe_ns {
            0 => self.changes.push_back((client, Change::Subscribed)),
            takes => {
                let answered_at = self.bus.clock.now() + takes;
                self.subscribing.push_back((answered_at, client));
            }
        }
        Ok(())
    }

    fn advertise(&mut self, _: ClientId, topic: &str) -> Result<TopicId, DriverError> {
        if let Some(id) = self.topic_ids.get(topic) {
            return Ok(*id);
        }
        let id = TopicId(self.topics.len() as u32);
        self.topics.push((topic.to_owned(), None));
        self.topic_ids.insert(topic.to_owned(), id);
        Ok(id)
    }

    fn advertise_as(
        &mut self,
        _: ClientId,
        topic: &str,
        travel: Travel,
    ) -> Result<TopicId, DriverError> {
        let id = TopicId(self.topics.len() as u32);
        self.topics.push((topic.to_owned(), Some(travel)));
        Ok(id)
    }

    fn is_acknowledged(&self, topic: TopicId) -> bool {
        let travel = self.topics[topic.0 as usize].1.unwrap_or_default();
        travel.qos != Some(0)
    }

    fn publish(
        &mut self,
        client: ClientId,
        topic: TopicId,
        payload: Payload<'_>,
        tag: u64,
    ) -> Publish {
        let state = &mut self.clients[client.0 as usize];
        if !state.up {
            return Publish::Refused(Refusal::NotConnected);
        }
        if state.outstanding >= self.window || self.bus.full() {
            if self.behaviour.drops {
                return Publish::Refused(Refusal::Dropped);
            }
            if !self.blocked.contains(&client) {
                self.blocked.push(client);
            }
            return Publish::Blocked;
        }
        let acknowledged = self.acknowledges && self.is_acknowledged(topic);
        let (name, travel) = &self.topics[topic.0 as usize];
        let apart = travel.filter(|travel| travel.header_apart);
        let apart = apart.map(|travel| (*payload.head, travel));
        let mut bytes = Vec::with_capacity(payload.len());
        if apart.is_some() {
            bytes.extend_from_slice(payload.body);
        } else {
            payload.append_to(&mut bytes);
        }
        let state = &mut self.clients[client.0 as usize];
        let acknowledge = acknowledged.then(|| {
            state.outstanding += 1;
            self.unsettled += 1;
            tag
        });
        let now = self.bus.clock.now();
        let unread = state.unread_from.is_some_and(|from| now >= from);
        self.wire.sent += bytes.len() as u64 + self.property_bytes;
        self.bus.publish(
            self.mine,
            client.0,
            Sent {
                topic: name,
                payload: bytes,
                apart,
                acknowledge,
                unread,
                keeps: travel.and_then(|t| t.retain).unwrap_or(self.keeps),
            },
        );
        let takes = self.behaviour.publish_cost_ns + self.behaviour.publish_sleep_ns;
        if takes > 0 {
            self.bus.clock.advance_to(self.bus.clock.now() + takes);
        }
        Publish::Accepted
    }

    fn poll(&mut self, until: Nanos, events: &mut dyn Events) -> Result<(), DriverError> {
        let clock = self.bus.clock.clone();
        loop {
            self.sleep_through(&clock);
            let now = clock.now();
            if self.report(now, events) || now >= until {
                return Ok(());
            }
            let next = self.bus.lock().next_due(self.mine);
            let planned = [&self.logging_in, &self.closing, &self.subscribing];
            let planned = planned.iter().filter_map(|all| Some(all.front()?.0));
            let earlier = (next.into_iter())
                .chain(self.next_fall())
                .chain(planned)
                .min();
            let wake = earlier.map_or(until, |at| at.min(until));
            match clock {
                Clock::Virtual(_) => clock.advance_to(wake),
                Clock::Monotonic | Clock::Converted(_) => {
                    let inner = self.bus.lock();
                    // Another fleet may have sent something between the first check and this lock.
                    let wake = inner.next_due(self.mine).map_or(wake, |due| due.min(wake));
                    let sleep = Duration::from_nanos(wake.saturating_sub(clock.now()));
                    let waited = self.bus.arrived.wait_timeout(inner, sleep);
                    drop(waited.unwrap_or_else(PoisonError::into_inner));
                }
            }
        }
    }

    fn take_at_most(&mut self, client: ClientId, messages: Option<u32>) -> Result<(), DriverError> {
        let state = &mut self.clients[client.0 as usize];
        if state.up {
            state.bound = messages;
        }
        Ok(())
    }

    fn disconnect(&mut self, client: ClientId) {
        let state = &mut self.clients[client.0 as usize];
        (state.up, state.bound) = (false, None);
        match self.behaviour.closing_ns {
            0 => self.end_connection(client),
            takes => (self.closing).push_back((self.bus.clock.now() + takes, client)),
        }
    }

    fn abort(&mut self, client: ClientId) {
        let state = &mut self.clients[client.0 as usize];
        (state.up, state.bound) = (false, None);
        self.leave_will(client, false);
        self.bus.leave(self.mine, client.0, self.durable);
    }

    fn reconnect(&mut self, client: ClientId) -> Result<(), DriverError> {
        self.log_in(client);
        Ok(())
    }

    fn renew_will(&mut self, client: ClientId, payload: Vec<u8>) -> Result<(), DriverError> {
        if let Some(will) = &mut self.clients[client.0 as usize].will {
            will.payload = payload;
        }
        Ok(())
    }

    fn unsettled(&self) -> u64 {
        self.unsettled
    }

    fn wire_bytes(&self) -> WireBytes {
        self.wire
    }

    fn grants(&self) -> Vec<Grant> {
        self.grants.clone()
    }

    fn close(&mut self, _: Nanos) {
        for index in 0..self.clients.len() {
            self.bus.forget(self.mine, index as u32);
        }
    }
}
