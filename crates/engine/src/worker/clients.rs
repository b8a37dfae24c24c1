//! The clients of a worker: connecting them, what they subscribe to, and what becomes of them.

use std::collections::VecDeque;

use pubgauge_driver::{
    Change, ClientId, ClientSpec, DriverError, Failure, Login, Nanos, Subscription, is_on_loopback,
};
use pubgauge_workload::{Exchange, Subscriber};

use super::{ClientState, Worker, WorkerPhase};
use crate::failures::FailureKind;
use crate::receiving::TimedChange;
use crate::reports::Report;
use crate::sending::reply_topic;
use crate::wills::HowEnded;

/// Subscriptions of one client that are asked for before the first of them is answered. A driver that numbers its
/// requests has so many numbers, and an answer is read only between them.
const SUBSCRIBING_AT_ONCE: usize = 1000;
/// Clients that share a source address. There are some 28,000 ports to one, but the kernel's search
/// for a free one gets slow long before they run out: at 15,000 it was a quarter of all the
/// processor time spent on connecting.
pub const PER_SOURCE: u32 = 4_000;

impl Worker {
    pub(super) fn connect_some(&mut self, now: Nanos) -> Nanos {
        let workload = &self.context.brief.workload;
        // The rate is that of all workers together: each has its share of it.
        let share = self.assignment.share(workload);
        let gap = workload
            .phases
            .connect_per_s
            .map_or(0, |rate| (1e9 / (rate * share)) as Nanos);
        if let Some(failure) = self.turned_away.gives_up(now) {
            self.tell_failed(failure);
        }
        let patience_ends = self.turned_away.patience_ends();
        if self.first_connect.is_none() {
            self.first_connect = Some(now);
            self.next_connect = now;
        }
        if let Some(until) = self.turned_away.waits_until(self.connecting, now) {
            return until.min(patience_ends);
        }
        if self.next_connect > now && self.begun < self.assignment.devices.len() {
            return self.next_connect.min(patience_ends);
        }
        let begins = self.context.clock.now();
        match self.begin_next() {
            None => {}
            Some(Ok(client)) => {
                self.next_connect += gap;
                let state = &mut self.clients[client.0 as usize];
                *state = ClientState::Connecting {
                    again: *state == ClientState::Down,
                };
                self.connecting += 1;
                self.connections.begin(client, begins);
                // Answers are read before the next client begins: else they would count as late.
                return now;
            }
            Some(Err(error)) => {
                self.fail(error.into());
                return now;
            }
        }
        if self.up == self.assignment.devices.len() {
            self.connect_usage = self.reading_of_threads().since(&self.connect_reading);
            self.phase = WorkerPhase::Connected;
            let report = match self.sending.advertise(&mut *self.fleet, &self.client_of) {
                Ok(()) => Report::Ready(std::mem::take(&mut self.addresses)),
                Err(error) => Report::Failed(error.into()),
            };
            self.tell_counters(self.context.clock.now());
            self.outbox.send(report);
        }
        patience_ends
    }

    /// Begins to connect the next client: one that has not tried yet, or else one that was turned away; `None` if there is
    /// none.
    fn begin_next(&mut self) -> Option<Result<ClientId, DriverError>> {
        let Some(device) = self.assignment.devices.get(self.begun).copied() else {
            let client = self.turned_away.next()?;
            return Some(self.reconnect(client).map(|()| client));
        };
        let spec = self.spec(device);
        Some(self.fleet.connect(&spec).inspect(|client| {
            self.client_of.insert(device, *client);
            self.begun += 1;
        }))
    }

    fn spec(&self, device: u32) -> ClientSpec {
        let workload = &self.context.brief.workload;
        let described = &workload.devices[device as usize];
        let mut spec = ClientSpec {
            name: described.client_id().to_owned(),
            login: described
                .identity
                .as_ref()
                .map_or_else(Login::default, |own| own.login()),
            will: self.first_will(device),
            ..ClientSpec::default()
        };
        spec.publishes = self.context.brief.responds(device);
        for link in self.context.brief.links(device) {
            let ping_pong = self.context.brief.is_ping_pong(link.flow as usize);
            spec.publishes |= !link.subscribes;
            spec.subscribes |= link.subscribes || ping_pong;
        }
        spec.source = self.source(device, spec.subscribes && !spec.publishes);
        if self.traits.publishers_first && spec.subscribes {
            spec.peers = self.peers_of(device);
        }
        spec
    }

    /// A source address of its own for each [`PER_SOURCE`] clients beyond the first, where the
    /// place that it connects to is on loopback.
    fn source(&self, device: u32, only_subscribes: bool) -> Option<std::net::IpAddr> {
        let endpoint = self.context.target.endpoints.first()?;
        let block = device / PER_SOURCE;
        (block > 0 && is_on_loopback(endpoint, only_subscribes)).then(|| {
            std::net::IpAddr::from([127, 0, (1 + block / 250) as u8, (1 + block % 250) as u8])
        })
    }

    /// Addresses of the publishers a device must listen to: those whose streams it is entitled
    /// to, and, for a ping-pong publisher, its responder (who has none before it is connected).
    fn peers_of(&self, device: u32) -> Vec<String> {
        let brief = &self.context.brief;
        let mut wanted = std::collections::BTreeSet::new();
        for link in brief.links(device) {
            let flow = &brief.workload.flows[link.flow as usize];
            if link.subscribes {
                let party = brief.audience.party_of(link.flow, link.index);
                for stream in brief.audience.parties[party as usize]
                    .streams
                    .iter()
                    .cloned()
                    .flatten()
                {
                    let info = brief.audience.streams[stream as usize];
                    let publisher = &brief.workload.flows[info.flow as usize].publishers
                        [info.publisher as usize];
                    wanted.insert(publisher.device);
                }
            } else if flow.exchange == Exchange::PingPong {
                let first = brief.audience.first_stream(link.flow, link.index);
                let topics = flow.publishers[link.index as usize].topics.len() as u32;
                for stream in first..first + topics {
                    wanted.extend(brief.audience.responding_devices(&brief.workload, stream));
                }
            }
        }
        self.peers
            .iter()
            .filter(|(d, _)| wanted.contains(d))
            .map(|(_, address)| address.clone())
            .collect()
    }

    /// Clients that connected before their peers had addresses get them now.
    pub(super) fn hear_late_peers(&mut self, known: &[(u32, String)]) {
        for index in 0..self.assignment.devices.len() {
            let device = self.assignment.devices[index];
            let late: Vec<String> = self
                .peers_of(device)
                .into_iter()
                .filter(|address| !known.iter().any(|(_, a)| a == address))
                .collect();
            for address in late {
                if let Err(error) = self.fleet.add_peer(self.client_of[&device], &address) {
                    self.fail(error.into());
                }
            }
        }
    }

    /// The subscriptions of a device, answers of ping-pong included.
    pub(super) fn subscriptions(&self, device: u32) -> Vec<Subscription> {
        let mut all = Vec::new();
        for link in self.context.brief.links(device) {
            let flow = &self.context.brief.workload.flows[link.flow as usize];
            let index = link.index as usize;
            if link.subscribes {
                let Subscriber { filters, group, .. } = &flow.subscribers[index];
                all.extend(filters.iter().map(|f| Subscription {
                    filter: f.clone(),
                    group: group.clone(),
                }));
            } else if flow.exchange == Exchange::PingPong {
                let topics = flow.publishers[index].topics.iter();
                all.extend(topics.map(|t| Subscription {
                    filter: reply_topic(t),
                    group: None,
                }));
            }
        }
        all
    }

    pub(super) fn take_changes(&mut self) {
        let mut changes = std::mem::take(&mut self.receiving.changes);
        let mut rest = changes.drain(..);
        while let Some((read, client, change)) = rest.next() {
            self.take_change(read, client, change, rest.as_slice());
        }
        drop(rest);
        self.receiving.changes = changes;
    }

    /// Takes in a change of a client, after what was `read` at that time; `later` has the changes after it.
    fn take_change(
        &mut self,
        read: Nanos,
        client: ClientId,
        change: Change,
        later: &[TimedChange],
    ) {
        let index = client.0 as usize;
        let device = self.assignment.devices[index];
        match change {
            Change::Connected {
                session_present,
                address,
            } => {
                if let Some(address) = address {
                    self.addresses.push((device, address));
                }
                let again = matches!(
                    self.clients[index],
                    ClientState::Down | ClientState::Connecting { again: true }
                );
                if again {
                    self.remade += 1;
                } else {
                    self.made += 1;
                }
                self.connected += 1;
                let now = self.context.clock.now();
                let times = self.connections.note_connection(client, again, read, now);
                self.wills.note_return(client, times);
                let wanted: VecDeque<Subscription> = if session_present || self.late.waits(client) {
                    VecDeque::new()
                } else {
                    self.subscriptions(device).into()
                };
                if !again && !wanted.is_empty() {
                    self.connections.subscribe(now);
                }
                if wanted.is_empty() {
                    self.come_up(client, read);
                    return;
                }
                self.ask_for(client, wanted, later);
            }
            Change::Subscribed => {
                if self.phase == WorkerPhase::Connecting {
                    self.connections.subscribed(read);
                }
                if let ClientState::Subscribing(left) = &mut self.clients[index] {
                    *left -= 1;
                    if *left == 0 {
                        self.come_up(client, read);
                        self.to_subscribe.remove(&client);
                    } else if let Some(next) = self.next_subscription(client) {
                        self.subscribe(client, &next, later);
                    }
                }
            }
            Change::SubscriptionRefused(why) => {
                let told = format!("{}: {why}", self.device_name(device));
                self.tell_failed(told.into());
                self.note(FailureKind::Subscription, Some(client), why.into());
            }
            Change::Writable => self.sending.writable(&mut *self.fleet, client),
            Change::Failed(_) if self.closing => self.clients[index] = ClientState::Down,
            Change::Failed(failure) => self.take_failure(client, failure),
            Change::Closed => self.presences.closed(client),
        }
    }

    /// Begins to ask for the subscriptions of a client, one at least; `later` has the changes after this moment.
    pub(super) fn ask_for(
        &mut self,
        client: ClientId,
        mut wanted: VecDeque<Subscription>,
        later: &[TimedChange],
    ) {
        self.clients[client.0 as usize] = ClientState::Subscribing(wanted.len() as u32);
        let later_ones = wanted.split_off(wanted.len().min(SUBSCRIBING_AT_ONCE));
        self.to_subscribe.remove(&client);
        if !later_ones.is_empty() {
            self.to_subscribe.insert(client, later_ones);
        }
        self.note_asking(client, self.context.clock.now());
        for subscription in &wanted {
            if !self.subscribe(client, subscription, later) {
                break;
            }
        }
    }

    /// A subscription of a client that was not asked for yet.
    fn next_subscription(&mut self, client: ClientId) -> Option<Subscription> {
        self.to_subscribe.get_mut(&client)?.pop_front()
    }

    /// Asks for one subscription; false if the client's connection has ended already, as a change among `later` says.
    fn subscribe(
        &mut self,
        client: ClientId,
        subscription: &Subscription,
        later: &[TimedChange],
    ) -> bool {
        let ended = |(_, other, change): &TimedChange| {
            *other == client && matches!(change, Change::Failed(_))
        };
        match self.fleet.subscribe(client, subscription) {
            Ok(()) => true,
            Err(_) if later.iter().any(ended) => false,
            Err(error) => {
                self.fail(error.into());
                true
            }
        }
    }

    /// Takes in that a client's connection was lost, or could not be made.
    fn take_failure(&mut self, client: ClientId, failure: Failure) {
        let index = client.0 as usize;
        let now = self.context.clock.now();
        if self.presences.is_gone(client) {
            self.presences.closed(client);
            return;
        }
        self.note_end(client, HowEnded::Lost, now);
        let was = self.clients[index];
        let lost = matches!(was, ClientState::Up | ClientState::Subscribing(_));
        self.lost += u64::from(lost);
        if lost {
            // A slow subscriber that is thrown out is told apart: the system goes on.
            if self.receiving.is_slow(client) {
                self.receiving.slow_disconnected(client);
            } else {
                self.connections.note_loss(now);
            }
        }
        self.clients[index] = match was {
            ClientState::New | ClientState::Connecting { again: false } => ClientState::New,
            _ => ClientState::Down,
        };
        self.to_subscribe.remove(&client);
        self.late.lost(client);
        let returning = self.presences.is_returning(client);
        if !returning {
            self.sending.retry(&mut *self.fleet, client);
        }
        let kind = if lost {
            FailureKind::Lost
        } else {
            FailureKind::Refused
        };
        self.note(kind, Some(client), failure.clone());
        if failure.exhausted.is_none() && !lost {
            self.connections.note_refusal();
        }
        if returning {
            self.presences.turned_away(client, now);
        } else if self.phase == WorkerPhase::Connecting {
            match was {
                ClientState::Up => self.up -= 1,
                _ => self.connecting = self.connecting.saturating_sub(1),
            }
            let name = self.device_name(self.assignment.devices[index]);
            let failure = Failure {
                why: format!("{name}: {}", failure.why),
                ..failure
            };
            if failure.exhausted.is_some() {
                self.tell_failed(failure);
            } else {
                self.turned_away.add(client, failure, now);
            }
        } else if let Some(after) = self.context.brief.workload.phases.reconnect_after {
            self.reconnects.push_back((now + after, client));
        }
    }

    fn come_up(&mut self, client: ClientId, read: Nanos) {
        let index = client.0 as usize;
        self.clients[index] = ClientState::Up;
        if self.phase == WorkerPhase::Connecting {
            self.connecting -= 1;
            self.up += 1;
            self.turned_away.connected(self.up);
        } else {
            let is_slow = self.receiving.is_slow(client);
            let comes_back = !self.presences.is_returning(client) && !self.late.is_asking(client);
            if comes_back && !is_slow {
                self.connections.note_return(read.max(self.context.epoch));
            }
            self.came_back(client, read);
            self.late_came_up(client, read);
            self.paced_came_back(client, self.context.clock.now());
            self.sending.writable(&mut *self.fleet, client);
        }
    }

    fn device_name(&self, device: u32) -> String {
        self.context.brief.workload.devices[device as usize].describe()
    }
}
