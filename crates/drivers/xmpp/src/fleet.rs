//! One worker's clients: the calls of [`Fleet`], over the loop in [`crate::io`].

use std::collections::VecDeque;

use pubgauge_driver::topic::filter_fault;
use pubgauge_driver::{
    Change, ClientId, ClientSpec, DriverError, Encryption, Events, Fleet, FleetConfig, Nanos,
    Payload, Publish, Refusal, Subscription, TopicId, TopicMatch, WireBytes, refusal,
};
use pubgauge_net::out::{OUT_CAP, OutPool};
use pubgauge_net::pair;
use pubgauge_net::socket;
use pubgauge_net::timers::Timers;
use pubgauge_net::turns::{Driven, Reports, Turns};
use rustc_hash::FxHashMap;

use crate::broken::Broken;
use crate::client::{Client, Request, State};
use crate::element::Scratch;
use crate::endpoint::{self, PROTOCOL};
use crate::negotiate;
use crate::options::Options;
use crate::requests;
use crate::shared::{Shared, Topic};
use crate::tls;
use crate::wildcard::Wildcards;
use crate::write::{self, Template};

/// The buffer that all connections are read into: as much as one system call can usefully bring.
const READ_BUF: usize = 256 << 10;

/// Time for TCP, TLS, login and binding together.
const CONNECT_TIMEOUT_MS: u32 = 30_000;

/// Time for the server to end its side of the stream after ours.
const CLOSE_TIMEOUT_MS: u32 = 5_000;

/// Bytes that a stanza may have besides a payload: for names, and for lists of nodes.
const STANZA_OVERHEAD: usize = 8 << 20;

/// Longest resource (RFC 7622 §3.4), in bytes.
const MAX_RESOURCE: usize = 1023;

/// One worker's share of the clients.
pub(crate) struct XmppFleet {
    pub clients: Vec<Client>,
    pub shared: Shared,
    pub turns: Turns,
    /// Every connection is read into this and decoded in place.
    pub buf: Box<[u8]>,
}

impl XmppFleet {
    pub fn open(config: FleetConfig) -> Result<XmppFleet, DriverError> {
        let (options, _) = Options::resolve(&config.settings, &config.target.features)
            .map_err(|refused| refusal("XMPP", refused))?;
        let target = &config.target;
        let user = target.username.as_deref();
        let endpoints = pair::places(&target.endpoints, &PROTOCOL, |url| {
            endpoint::parse_pair(url, user)
        })?;
        let tls = match endpoints.iter().any(|e| e.net.encryption.is_on()) {
            true => Some(tls::Setup::new(
                &target.tls.clone().unwrap_or_default(),
                &endpoints,
            )?),
            false => None,
        };
        Ok(XmppFleet {
            clients: Vec::with_capacity(config.clients),
            shared: Shared {
                options,
                endpoints,
                password: target.password.clone(),
                topics: Vec::new(),
                topic_ids: FxHashMap::default(),
                wildcards: Wildcards::default(),
                waiting: VecDeque::new(),
                asked: 0,
                out_pool: OutPool::default(),
                timers: Timers::default(),
                dirty: Vec::new(),
                reports: Reports::default(),
                unsettled: 0,
                wire: WireBytes::default(),
                writes: 0,
                // In base64, and as an error sends it back.
                max_in: (config.max_payload / 3 + 1)
                    .saturating_mul(4)
                    .saturating_add(STANZA_OVERHEAD),
                now_ms: 0,
                scratch: Scratch::default(),
                settled: Vec::new(),
                decoded: Vec::new(),
                tls,
                made: Vec::new(),
            },
            turns: Turns::new(config.clock)?,
            buf: vec![0; READ_BUF].into_boxed_slice(),
        })
    }

    fn client(&mut self, id: ClientId) -> Result<&mut Client, DriverError> {
        self.clients
            .get_mut(id.0 as usize)
            .ok_or_else(|| DriverError::new(format!("no client {} in this fleet", id.0)))
    }

    /// Begins to connect a client that is down.
    fn begin(&mut self, id: ClientId) -> Result<(), DriverError> {
        self.look_at_clock();
        let client = &mut self.clients[id.0 as usize];
        let endpoint = &self.shared.endpoints[usize::from(client.endpoint)];
        let address = endpoint.net.address_for(client.source)?;
        let secure =
            match endpoint.net.encryption {
                Encryption::Tls => Some(self.shared.tls_connection(client).map_err(|error| {
                    DriverError::new(format!("{}: {error}", endpoint.net.shown))
                })?),
                _ => None,
            };
        let options = self.shared.options.socket;
        let (fd, begun) =
            socket::begin_connect(address, client.source, &options, &endpoint.net.shown)?;
        if let Err(failure) = begun {
            self.shared.reports.owe(id, Change::Failed(failure));
            return Ok(());
        }
        self.turns.watch(&fd, id)?;
        client.fd = Some(fd);
        client.tls = secure;
        client.state = State::Connecting;
        client.epoch += 1;
        self.shared.set_timer(client, id, CONNECT_TIMEOUT_MS);
        Ok(())
    }

    /// Ends a client's connection without a word.
    pub fn drop_connection(&mut self, id: ClientId) {
        let client = &mut self.clients[id.0 as usize];
        let shared = &mut self.shared;
        shared.asked = shared.asked.saturating_sub(client.session.asked);
        shared.unsettled -= client.drop_connection(&mut shared.out_pool);
        shared.wildcards.forget(id.0, shared.now_ms);
    }

    /// Ends a connection that cannot go on. The change is reported at the next opportunity.
    pub fn fail(&mut self, id: ClientId, broken: Broken) {
        let client = &mut self.clients[id.0 as usize];
        if client.state == State::Down {
            return;
        }
        // After our own end of the stream any end will do.
        let change = match client.state {
            State::Closing => Change::Closed,
            _ => Change::Failed(broken.0),
        };
        // What the server did settle has been said before.
        while let Some(change) = client.session.outcome() {
            self.shared.reports.owe(id, change);
        }
        self.drop_connection(id);
        self.shared.reports.owe(id, change);
    }

    /// The answer to a publish for which there is no room.
    fn no_room(&mut self, id: ClientId) -> Publish {
        if self.shared.options.drop_when_full {
            return Publish::Refused(Refusal::Dropped);
        }
        self.not_yet(id)
    }

    /// The answer to a publish that has to wait, whatever the settings say of full queues.
    fn not_yet(&mut self, id: ClientId) -> Publish {
        self.clients[id.0 as usize].owes_writable = true;
        Publish::Blocked
    }

    /// Ends a connected client's stream: its subscriptions first.
    fn say_goodbye(&mut self, id: ClientId) {
        let client = &mut self.clients[id.0 as usize];
        let shared = &mut self.shared;
        let service = shared.service(client);
        let jid = client.session.jid.clone().unwrap_or_default();
        for node in std::mem::take(&mut client.session.nodes) {
            let number = client.session.ask(Request::Forget, 0);
            let out = client.out(&mut shared.out_pool);
            write::subscription(&mut out.bytes, number, &service, "unsubscribe", &node, &jid);
        }
        client.state = State::Closing;
        let out = client.out(&mut shared.out_pool);
        out.bytes.extend_from_slice(write::STREAM_END);
        shared.mark_dirty(client, id);
        shared.set_timer(client, id, CLOSE_TIMEOUT_MS);
    }

    /// The address of whoever listens to a topic, under point-to-point.
    fn receiver(&self, client: &Client, topic: &str) -> Result<String, DriverError> {
        let endpoint = self.shared.endpoint(client);
        match &endpoint.username {
            Some(user) => Ok(format!("{user}@{}/{topic}", endpoint.domain)),
            None => Err(DriverError::with_hint(
                "point-to-point needs an account: the server gives anonymous clients their addresses, so that no sender knows them",
                "give a user name and its password",
            )),
        }
    }
}

/// Whether a topic can be a node's name, or a resource.
fn check_topic(topic: &str, direct: bool) -> Result<(), DriverError> {
    let refuse = |what: &str| {
        Err(DriverError::with_hint(
            format!("the topic {topic:?} {what}"),
            "a topic has levels between /, no wildcards, and no control characters",
        ))
    };
    if topic.is_empty() {
        return refuse("is empty");
    }
    if !write::is_xml(topic) {
        return refuse("has a character that XML does not allow");
    }
    if direct && topic.len() > MAX_RESOURCE {
        return refuse("has more than 1023 bytes, which a resource may not have");
    }
    if direct && topic.chars().any(char::is_control) {
        return refuse("has a control character, which a resource may not have");
    }
    Ok(())
}

/// Whether clients can subscribe so; see [`pubgauge_driver::Driver::check_subscription`].
pub(crate) fn check_subscription(
    options: &Options,
    subscription: &Subscription,
) -> Result<(), DriverError> {
    if subscription.group.is_some() {
        return Err(DriverError::with_hint(
            "XMPP has no shared subscriptions: every subscriber of a node gets every item",
            "give each member a topic of its own, or leave the group out",
        ));
    }
    let filter = &subscription.filter;
    if let Some(fault) = filter_fault(filter) {
        return Err(DriverError::new(format!("the filter {filter:?}: {fault}")));
    }
    if options.direct && filter.is_wild() {
        return Err(DriverError::with_hint(
            "under point-to-point a receiver has one address, and that is its topic: no wildcards",
            "give each receiver a topic, or use pattern = \"publish-subscribe\"",
        ));
    }
    check_topic(filter, options.direct)
}

impl Fleet for XmppFleet {
    fn connect(&mut self, spec: &ClientSpec) -> Result<ClientId, DriverError> {
        let endpoint = pair::place_of(spec, self.shared.endpoints.len())?;
        if spec.name.is_empty()
            || spec.name.len() > MAX_RESOURCE
            || spec.name.chars().any(char::is_control)
        {
            return Err(DriverError::new(
                "the name of an XMPP client is its resource: 1 to 1023 bytes without control characters",
            ));
        }
        if spec.will.is_some() {
            return Err(DriverError::with_hint(
                format!(
                    "client {:?} has a will, which XMPP does not know",
                    spec.name
                ),
                "leave it out: who wants to know of a client's end watches its presence",
            ));
        }
        let id = ClientId(self.clients.len() as u32);
        self.clients.push(Client::new(spec, endpoint));
        self.begin(id).inspect_err(|_| {
            self.clients.pop();
        })?;
        Ok(id)
    }

    fn subscribe(&mut self, id: ClientId, subscription: &Subscription) -> Result<(), DriverError> {
        check_subscription(&self.shared.options, subscription)?;
        let filter = subscription.filter.as_str();
        if self.client(id)?.state != State::Connected {
            return Err(DriverError::new("a client subscribes once it is connected"));
        }
        let client = &mut self.clients[id.0 as usize];
        let shared = &mut self.shared;
        let now_ms = shared.now_ms;
        if !shared.options.direct {
            let report = client.session.promise();
            if filter.is_wild() {
                let endpoint = client.endpoint;
                shared.wildcards.add(id.0, endpoint, filter, report, now_ms);
            } else {
                let request = Request::Subscribe {
                    node: filter.into(),
                    report,
                    created: false,
                };
                requests::ask(client, shared, id, request, requests::TRIES);
            }
            return Ok(());
        }
        if client.session.jid.is_some() || client.session.binding {
            return Err(DriverError::with_hint(
                "under point-to-point a client receives at one address, and this one has its address already",
                "subscribe once for each client, to one topic, before it publishes",
            ));
        }
        let report = client.session.promise();
        negotiate::bind(client, shared, id, filter, Some(report));
        Ok(())
    }

    fn advertise(&mut self, id: ClientId, topic: &str) -> Result<TopicId, DriverError> {
        self.client(id)?;
        let client = &self.clients[id.0 as usize];
        if let Some(known) = self.shared.topic_ids.get(&(id.0, topic.into())) {
            return Ok(TopicId(*known));
        }
        let direct = self.shared.options.direct;
        check_topic(topic, direct)?;
        let template = match direct {
            true => Template::direct(&self.receiver(client, topic)?),
            false => Template::publish(
                &self.shared.service(client),
                topic,
                self.shared.options.last_value,
            ),
        };
        let number = self.shared.topics.len() as u32;
        self.shared.topics.push(Topic {
            client: id.0,
            name: topic.into(),
            template,
            ready: 0,
        });
        self.shared.topic_ids.insert((id.0, topic.into()), number);
        let client = &mut self.clients[id.0 as usize];
        client.topics.push(number);
        if client.state == State::Connected {
            requests::make_sure(client, &mut self.shared, id, number);
        }
        Ok(TopicId(number))
    }

    #[inline]
    fn publish(
        &mut self,
        id: ClientId,
        topic_id: TopicId,
        payload: Payload<'_>,
        tag: u64,
    ) -> Publish {
        let Some(client) = self.clients.get_mut(id.0 as usize) else {
            return Publish::Refused(Refusal::NotConnected);
        };
        let topic = self.shared.topics.get(topic_id.0 as usize);
        let (State::Connected, Some(topic)) = (client.state, topic) else {
            return Publish::Refused(Refusal::NotConnected);
        };
        debug_assert_eq!(
            topic.client, id.0,
            "a topic is published to by who advertised it"
        );
        let direct = self.shared.options.direct;
        if direct && client.session.jid.is_none() {
            // It has subscribed to nothing: any address will do.
            if !client.session.binding {
                let name = client.name.clone();
                negotiate::bind(client, &mut self.shared, id, &name, None);
            }
            return self.not_yet(id);
        }
        if !direct && topic.ready != client.epoch {
            return self.not_yet(id);
        }
        if client.pending() >= OUT_CAP {
            let stuck = client.out.as_ref().is_some_and(|out| out.stuck);
            if stuck || self.flush(id).is_err() || self.clients[id.0 as usize].pending() >= OUT_CAP
            {
                return self.no_room(id);
            }
        }
        let client = &mut self.clients[id.0 as usize];
        let shared = &mut self.shared;
        let number = match direct {
            true => 0,
            false if client.session.window.has_room(shared.options.in_flight) => {
                client.session.window.take(tag)
            }
            false => return self.no_room(id),
        };
        let out = client.out.get_or_insert_with(|| shared.out_pool.get());
        if out.start != 0 {
            out.compact();
        }
        let template = &shared.topics[topic_id.0 as usize].template;
        template.append(&mut out.bytes, number, payload);
        out.messages += u32::from(direct);
        let (waiting, stuck) = (out.pending().len(), out.stuck);
        shared.unsettled += 1;
        shared.mark_dirty(client, id);
        if waiting >= shared.options.batch && !stuck {
            // A failure is reported by the next poll.
            let _ = self.flush(id);
        }
        Publish::Accepted
    }

    fn poll(&mut self, until: Nanos, events: &mut dyn Events) -> Result<(), DriverError> {
        self.run(until, events)
    }

    fn disconnect(&mut self, id: ClientId) {
        let Ok(client) = self.client(id) else {
            return;
        };
        match client.state {
            State::Closing => {}
            State::Connected => {
                self.look_at_clock();
                self.say_goodbye(id);
            }
            State::Down | State::Connecting | State::Negotiating => {
                self.drop_connection(id);
                self.shared.reports.forget(id);
                self.shared.reports.owe(id, Change::Closed);
            }
        }
    }

    fn abort(&mut self, id: ClientId) {
        if self.client(id).is_ok() {
            self.drop_connection(id);
            self.shared.reports.forget(id);
        }
    }

    fn reconnect(&mut self, id: ClientId) -> Result<(), DriverError> {
        if self.client(id)?.state != State::Down {
            return Err(DriverError::new("the client is still connected"));
        }
        self.begin(id)
    }

    fn unsettled(&self) -> u64 {
        self.shared.unsettled
    }

    fn wire_bytes(&self) -> WireBytes {
        self.shared.wire
    }

    fn writes(&self) -> Option<u64> {
        Some(self.shared.writes)
    }

    fn left_behind(&self) -> Option<String> {
        let shown = &self.shared.endpoints.first()?.net.shown;
        let left = self.shared.made.len();
        (left > 0).then(|| {
            format!(
                "{shown}: nodes of this trial ({left}) are still on the server, which did not delete them in time at the end\n  hint: the names of default topics carry the trial's mark; delete them there if the server is to be used further"
            )
        })
    }

    fn close(&mut self, until: Nanos) {
        self.delete_nodes(until);
        for id in 0..self.clients.len() as u32 {
            self.disconnect(ClientId(id));
        }
        self.run_unheard(until, |fleet| {
            fleet.clients.iter().all(|c| c.state == State::Down)
        });
        for id in 0..self.clients.len() as u32 {
            self.drop_connection(ClientId(id));
        }
    }
}
