//! One worker's clients: the calls of [`Fleet`], over the loop in [`crate::io`].

use std::sync::Arc;

use pubgauge_driver::{
    Change, ClientId, ClientSpec, DriverError, Encryption, Events, Fleet, FleetConfig, Nanos,
    Payload, Publish, Refusal, Scheme, Subscription, TopicId, WireBytes, refusal,
};
use pubgauge_mqtt_codec::{
    Disconnect, FiltersBuf, Packet, Properties, PropertiesBuf, Property, QoS, Subscribe,
    SubscribeOptions, Version, topic,
};
use pubgauge_net::endpoint::Protocol;
use pubgauge_net::out::{OUT_CAP, OutPool};
use pubgauge_net::pair::{self, Pair};
use pubgauge_net::socket::SocketOptions;
use pubgauge_net::timers::Timers;
use pubgauge_net::turns::{Driven, Reports, Turns};
use pubgauge_net::{socket, tls};
use rustls::pki_types::ServerName;

use crate::client::{Client, State};
use crate::leave::Left;
use crate::options::Options;
use crate::protocol::{self, Broken};
use crate::session::Awaits;
use crate::shared::Shared;
use crate::topics::Topics;

/// The buffer that all connections are read into: as much as one system call can usefully bring.
const READ_BUF: usize = 256 << 10;

/// Time for TCP, TLS and CONNACK together.
const CONNECT_TIMEOUT_MS: u32 = 30_000;

/// Time for the server to close its end after our DISCONNECT.
const CLOSE_TIMEOUT_MS: u32 = 5_000;

/// How MQTT endpoints are written.
pub(crate) const PROTOCOL: Protocol = Protocol {
    name: "MQTT",
    schemes: &[
        PLAIN,
        Scheme {
            name: "mqtts",
            also: &["ssl", "tls"],
            encryption: Encryption::Tls,
            usual_port: Some(8883),
            ..PLAIN
        },
    ],
};

const PLAIN: Scheme = Scheme {
    name: "mqtt",
    also: &["tcp"],
    encryption: Encryption::None,
    usual_port: Some(1883),
    path: None,
};

/// One worker's share of the clients.
pub(crate) struct MqttFleet {
    pub clients: Vec<Client>,
    pub shared: Shared,
    pub turns: Turns,
    /// Every connection is read into this and decoded in place.
    pub buf: Box<[u8]>,
    /// What the end of the fleet came to.
    pub left: Left,
    tls: Option<TlsSetup>,
}

struct TlsSetup {
    config: Arc<rustls::ClientConfig>,
    /// For each of the shared endpoints; none for those without TLS.
    names: Vec<Option<ServerName<'static>>>,
}

impl MqttFleet {
    pub fn open(config: FleetConfig) -> Result<MqttFleet, DriverError> {
        let (options, _) = Options::resolve(&config.settings, &config.target)
            .map_err(|refused| refusal("MQTT", refused))?;
        let target = &config.target;
        let endpoints = pair::places(&target.endpoints, &PROTOCOL, |url| {
            Pair::parse(url, &PROTOCOL)
        })?;
        let password_alone = target.password.is_some()
            && target.username.is_none()
            && endpoints.iter().any(|e| e.username.is_none());
        if password_alone && options.version == Version::V311 {
            return Err(DriverError::with_hint(
                "a password without a user name, which MQTT 3.1.1 does not allow",
                "give the user name too",
            ));
        }
        let tls = if endpoints.iter().any(|e| e.encryption.is_on()) {
            let given = target.tls.clone().unwrap_or_default();
            let names = endpoints
                .iter()
                .map(|e| {
                    e.encryption
                        .is_on()
                        .then(|| tls::server_name(e, Some(&given)))
                        .transpose()
                })
                .collect::<Result<Vec<_>, _>>()?;
            Some(TlsSetup {
                config: tls::configure(&given)?,
                names,
            })
        } else {
            None
        };
        Ok(MqttFleet {
            clients: Vec::with_capacity(config.clients),
            shared: Shared {
                options,
                leaving: false,
                endpoints,
                username: target.username.clone(),
                password: target.password.clone(),
                topics: Topics::default(),
                out_pool: OutPool::default(),
                bitmap_pool: Vec::new(),
                timers: Timers::default(),
                dirty: Vec::new(),
                reports: Reports::default(),
                unsettled: 0,
                wire: WireBytes::default(),
                writes: 0,
                // Room for the longest topic, and as much again for properties.
                max_in: config.max_payload.saturating_add(128 << 10),
                now_ms: 0,
            },
            turns: Turns::new(config.clock)?,
            buf: vec![0; READ_BUF].into_boxed_slice(),
            left: Left::default(),
            tls,
        })
    }

    fn client(&mut self, id: ClientId) -> Result<&mut Client, DriverError> {
        self.clients
            .get_mut(id.0 as usize)
            .ok_or_else(|| DriverError::new(format!("no client {} in this fleet", id.0)))
    }

    /// Begins to connect a client that is down.
    pub fn begin(&mut self, id: ClientId) -> Result<(), DriverError> {
        self.look_at_clock();
        let client = &mut self.clients[id.0 as usize];
        let index = usize::from(client.endpoint);
        let endpoint = &self.shared.endpoints[index];
        let address = endpoint.address_for(client.source)?;
        let secure = match &self.tls {
            Some(TlsSetup { config, names }) => match &names[index] {
                Some(name) => Some(tls::connect(config, name.clone()).map_err(|error| {
                    DriverError::new(format!("{}: TLS cannot begin: {error}", endpoint.shown))
                })?),
                None => None,
            },
            None => None,
        };
        let options = SocketOptions {
            no_delay: self.shared.options.no_delay,
            send_buffer: self.shared.options.send_buffer,
            receive_buffer: self.shared.options.receive_buffer,
        };
        let (fd, begun) = socket::begin_connect(address, client.source, &options, &endpoint.shown)?;
        if let Err(failure) = begun {
            self.shared.reports.owe(id, Change::Failed(failure));
            return Ok(());
        }
        self.turns.watch(&fd, id)?;
        client.fd = Some(fd);
        client.tls = secure;
        client.state = State::Connecting;
        client.ended_in_order = false;
        client.epoch += 1;
        let shared = &mut self.shared;
        shared.set_timer(client, id, CONNECT_TIMEOUT_MS);
        Ok(())
    }

    /// Ends a client's connection without a word. Its session stays if the server keeps it too.
    pub fn drop_connection(&mut self, id: ClientId) {
        let client = &mut self.clients[id.0 as usize];
        let shared = &mut self.shared;
        shared.unsettled -= client.drop_connection(&mut shared.out_pool);
        if let Some(session) = &mut client.session {
            session.subscribing.clear();
            if !shared.options.durable {
                shared.unsettled -= session.discard();
            }
            if session.is_idle() {
                client.session = None;
            }
        }
    }

    /// Ends a connection that cannot go on. The change is reported at the next opportunity.
    pub fn fail(&mut self, id: ClientId, broken: Broken) {
        let client = &mut self.clients[id.0 as usize];
        if client.state == State::Down {
            return;
        }
        let closing = client.state == State::Closing;
        client.ended_in_order = closing && client.half_closed;
        // The DISCONNECT of the end said that no session is to stay.
        if client.ended_in_order && self.shared.ends_sessions() {
            client.has_session = false;
        }
        if let (Some(reason), State::Connected, Version::V5, None) = (
            broken.reason,
            client.state,
            self.shared.options.version,
            &client.out,
        ) {
            // MQTT 5 tells the server why (5.0 §4.13.1), if nothing stands in the way.
            let packet = Packet::Disconnect(Disconnect {
                reason,
                ..Disconnect::default()
            });
            let out = client.out(&mut self.shared.out_pool);
            if packet.encode(Version::V5, &mut out.bytes).is_ok() {
                let _ = self.flush(id);
            }
        }
        self.drop_connection(id);
        // After our own DISCONNECT any end will do.
        let change = match closing {
            true => Change::Closed,
            false => Change::Failed(broken.failure),
        };
        self.shared.reports.owe(id, change);
    }

    /// Takes a QoS 1 or 2 message on its way, if the window has room.
    #[inline]
    fn publish_acknowledged(
        &mut self,
        id: ClientId,
        topic: TopicId,
        payload: Payload<'_>,
        tag: u64,
    ) -> Option<u16> {
        let client = &mut self.clients[id.0 as usize];
        if client.session.is_none() {
            let window = protocol::window(client, &self.shared);
            client
                .session
                .get_or_insert_default()
                .begin_connection(window);
        }
        let session = client.session.as_mut()?;
        if !session.can_publish() {
            return None;
        }
        let awaits = match self.shared.options.qos {
            QoS::ExactlyOnce => Awaits::PubRec,
            _ => Awaits::PubAck,
        };
        let keep = self.shared.options.durable.then_some(payload);
        Some(session.take(awaits, topic, tag, keep))
    }

    /// The answer to a publish for which there is no room.
    fn no_room(&mut self, id: ClientId) -> Publish {
        if self.shared.options.drop_when_full {
            return Publish::Refused(Refusal::Dropped);
        }
        self.clients[id.0 as usize].owes_writable = true;
        Publish::Blocked
    }
}

impl Fleet for MqttFleet {
    fn connect(&mut self, spec: &ClientSpec) -> Result<ClientId, DriverError> {
        let endpoint = pair::place_of(spec, self.shared.endpoints.len())?;
        if spec.name.len() > 65_535 || spec.name.contains('\0') {
            return Err(DriverError::new(
                "an MQTT client identifier has at most 65535 bytes and no U+0000",
            ));
        }
        if let Some(will) = &spec.will {
            topic::check_name(&will.topic).map_err(|error| {
                DriverError::new(format!("the topic of the will, {:?}: {error}", will.topic))
            })?;
            if will.payload.len() > 65_535 {
                return Err(DriverError::new(
                    "the payload of a will has at most 65535 bytes",
                ));
            }
        }
        let id = ClientId(self.clients.len() as u32);
        self.clients.push(Client::new(spec, endpoint));
        self.begin(id).inspect_err(|_| {
            self.clients.pop();
        })?;
        Ok(id)
    }

    fn subscribe(&mut self, id: ClientId, subscription: &Subscription) -> Result<(), DriverError> {
        let options = &self.shared.options;
        let (v5, version) = (options.version == Version::V5, options.version);
        let wanted = SubscribeOptions {
            qos: options.subscribe_qos,
            no_local: v5 && options.no_local && subscription.group.is_none(),
            retain_as_published: false,
            retain_handling: options.retain_handling,
        };
        let filter = match &subscription.group {
            Some(group) => format!("$share/{group}/{}", subscription.filter),
            None => subscription.filter.clone(),
        };
        let refuse = |error: &dyn std::fmt::Display| {
            DriverError::with_hint(
                format!("{filter:?} is not an MQTT topic filter: {error}"),
                "levels are separated by /, + stands for one whole level, # for all the rest and only at the end; a group name has neither of them",
            )
        };
        let group = subscription.group.as_deref();
        if group.is_some_and(|group| group.contains('/')) {
            return Err(refuse(&"a group name with / in it"));
        }
        topic::check_filter(&filter).map_err(|error| refuse(&error))?;
        let mut filters = FiltersBuf::default();
        filters
            .push(&filter, wanted)
            .map_err(|error| refuse(&error))?;
        let client = self.client(id)?;
        if client.state != State::Connected {
            return Err(DriverError::new("a client subscribes once it is connected"));
        }
        if client.session.is_none() {
            let client = &self.clients[id.0 as usize];
            let window = protocol::window(client, &self.shared);
            let client = &mut self.clients[id.0 as usize];
            client
                .session
                .get_or_insert_default()
                .begin_connection(window);
        }
        let client = &mut self.clients[id.0 as usize];
        let session = client.session.get_or_insert_default();
        let Some(packet_id) = session.begin_subscribe() else {
            return Err(DriverError::with_hint(
                "more than 1500 subscriptions of one client without an answer",
                "poll the fleet between subscriptions",
            ));
        };
        let packet = Packet::Subscribe(Subscribe {
            packet_id,
            filters: filters.as_filters(),
            properties: Properties::default(),
        });
        let out = client.out.get_or_insert_with(|| self.shared.out_pool.get());
        if let Err(error) = packet.encode(version, &mut out.bytes) {
            session.end_subscribe(packet_id);
            return Err(refuse(&error));
        }
        self.shared.mark_dirty(client, id);
        Ok(())
    }

    fn advertise(&mut self, id: ClientId, topic: &str) -> Result<TopicId, DriverError> {
        let limit = self.shared.options.topic_alias;
        self.client(id)?;
        let client = &mut self.clients[id.0 as usize];
        let aliases = &mut client.aliases;
        self.shared
            .topics
            .advertise(id.0, topic, &self.shared.options, || {
                if *aliases >= limit {
                    return None;
                }
                *aliases += 1;
                Some(*aliases)
            })
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
        if client.state != State::Connected {
            return Publish::Refused(Refusal::NotConnected);
        }
        let Some(topic) = self.shared.topics.get(topic_id) else {
            return Publish::Refused(Refusal::NotConnected);
        };
        debug_assert_eq!(
            topic.client, id.0,
            "a topic is published to by who advertised it"
        );
        match topic.plain.packet_len(payload.len()) {
            Some(len) if len as u64 <= u64::from(client.max_packet) => {}
            _ => return Publish::Refused(Refusal::TooLarge),
        }
        if client.pending() >= OUT_CAP {
            let stuck = client.out.as_ref().is_some_and(|out| out.stuck);
            if stuck || self.flush(id).is_err() || self.clients[id.0 as usize].pending() >= OUT_CAP
            {
                return self.no_room(id);
            }
        }
        let at_most_once = self.shared.options.qos == QoS::AtMostOnce;
        let packet_id = if at_most_once {
            0
        } else {
            match self.publish_acknowledged(id, topic_id, payload, tag) {
                Some(packet_id) => packet_id,
                None => return self.no_room(id),
            }
        };
        let client = &mut self.clients[id.0 as usize];
        let shared = &mut self.shared;
        let Some(topic) = shared.topics.get_mut(topic_id) else {
            return Publish::Refused(Refusal::NotConnected);
        };
        topic.published = true;
        let template = match &topic.alias {
            Some(alias) if alias.number <= client.alias_max => {
                if topic.alias_epoch == client.epoch {
                    &alias.short
                } else {
                    topic.alias_epoch = client.epoch;
                    &alias.introduce
                }
            }
            _ => &topic.plain,
        };
        let out = client.out.get_or_insert_with(|| shared.out_pool.get());
        if out.start != 0 {
            out.compact();
        }
        template.append(&mut out.bytes, packet_id, payload.head, payload.body);
        out.messages += u32::from(at_most_once);
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
                client.state = State::Closing;
                self.look_at_clock();
                let version = self.shared.options.version;
                let client = &mut self.clients[id.0 as usize];
                let out = client.out.get_or_insert_with(|| self.shared.out_pool.get());
                let mut properties = PropertiesBuf::default();
                if self.shared.ends_sessions() {
                    // One number always fits.
                    let _ = properties.push(Property::SessionExpiryInterval(0));
                }
                let disconnect = Disconnect {
                    properties: properties.as_properties(),
                    ..Disconnect::default()
                };
                // It always encodes.
                let _ = Packet::Disconnect(disconnect).encode(version, &mut out.bytes);
                self.shared.mark_dirty(client, id);
                self.shared.set_timer(client, id, CLOSE_TIMEOUT_MS);
            }
            State::Down | State::Connecting | State::Greeting => {
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

    fn close(&mut self, until: Nanos) {
        self.leave(until);
    }

    fn parting_messages(&self) -> u64 {
        self.left.cleared as u64
    }

    fn left_behind(&self) -> Option<String> {
        self.left_words()
    }
}
