//! One worker's clients: the calls of [`Fleet`], over the loop in [`crate::io`].

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use pubgauge_amqp_codec::Method;
use pubgauge_amqp_codec::method::{ConnectionClose, TxCommit};
use pubgauge_driver::{
    Change, ClientId, ClientSpec, DriverError, Encryption, Events, Fleet, FleetConfig, Nanos,
    Payload, Publish, Refusal, Scheme, Subscription, TopicId, WireBytes, refusal,
};
use pubgauge_net::endpoint::{Addressing, Endpoint};
use pubgauge_net::out::{OUT_CAP, OutPool};
use pubgauge_net::pair::{self, Pair};
use pubgauge_net::socket::SocketOptions;
use pubgauge_net::timers::Timers;
use pubgauge_net::turns::{Driven, Reports, Turns};
use pubgauge_net::{socket, tls};
use rustls::pki_types::ServerName;

use crate::broken::Broken;
use crate::client::{Client, PUBLISHING, State};
use crate::options::{Answers, Exchange, Options};
use crate::shared::Shared;
use crate::topics::{SESSION_PREFIX, Topics};

/// The buffer that all connections are read into: two frames of the longest.
const READ_BUF: usize = 256 << 10;

/// Time for TCP, TLS and login together.
const CONNECT_TIMEOUT_MS: u32 = 30_000;

/// Time for the server to answer our connection.close.
const CLOSE_TIMEOUT_MS: u32 = 5_000;

/// How AMQP endpoints are written.
pub(crate) const PROTOCOL: Addressing = Addressing {
    name: "AMQP",
    schemes: &[
        PLAIN,
        Scheme {
            name: "amqps",
            encryption: Encryption::Tls,
            usual_port: Some(5671),
            ..PLAIN
        },
    ],
};

const PLAIN: Scheme = Scheme {
    name: "amqp",
    also: &[],
    encryption: Encryption::None,
    usual_port: Some(5672),
    path: Some("VIRTUAL-HOST"),
};

/// One worker's share of the clients.
pub(crate) struct AmqpFleet {
    pub clients: Vec<Client>,
    pub shared: Shared,
    pub turns: Turns,
    /// Every connection is read into this and decoded in place.
    pub buf: Box<[u8]>,
    tls: Option<TlsSetup>,
    /// Durable sessions that the end did not remove.
    left: usize,
}

struct TlsSetup {
    config: Arc<rustls::ClientConfig>,
    /// For each of the shared endpoints; none for those without TLS.
    names: Vec<Option<ServerName<'static>>>,
}

impl AmqpFleet {
    pub fn open(config: FleetConfig) -> Result<AmqpFleet, DriverError> {
        let (options, _) =
            Options::resolve(&config.settings).map_err(|refused| refusal("AMQP", refused))?;
        let target = &config.target;
        let endpoints = pair::places(&target.endpoints, &PROTOCOL, |url| {
            Pair::parse(url, &PROTOCOL)
        })?;
        let path = |e: &Endpoint| e.path.as_ref().map_or(0, String::len);
        if endpoints.iter().any(|e| path(e) > 255) {
            return Err(DriverError::new(
                "the name of a virtual host has at most 255 bytes",
            ));
        }
        let given = target.tls.clone().unwrap_or_default();
        let tls = if endpoints.iter().any(|e| e.encryption.is_on()) {
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
        Ok(AmqpFleet {
            clients: Vec::with_capacity(config.clients),
            shared: Shared {
                options,
                endpoints,
                username: target.username.clone(),
                password: target.password.clone(),
                leaving: false,
                has_certificate: given.cert_file.is_some(),
                nonce: RandomState::new().build_hasher().finish(),
                topics: Topics::default(),
                out_pool: OutPool::default(),
                partials: Vec::new(),
                topic: String::new(),
                timers: Timers::default(),
                dirty: Vec::new(),
                reports: Reports::default(),
                unsettled: 0,
                wire: WireBytes::default(),
                writes: 0,
                max_in: config.max_payload,
                now_ms: 0,
            },
            turns: Turns::new(config.clock)?,
            buf: vec![0; READ_BUF].into_boxed_slice(),
            tls,
            left: 0,
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
        let index = usize::from(client.endpoint);
        let endpoint = &self.shared.endpoints[index];
        let address = endpoint.address_for(client.source)?;
        let secure = match self.tls.as_ref().map(|t| (&t.config, &t.names[index])) {
            Some((config, Some(name))) => {
                Some(tls::connect(config, name.clone()).map_err(|error| {
                    DriverError::new(format!("{}: TLS cannot begin: {error}", endpoint.shown))
                })?)
            }
            _ => None,
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
        client.epoch += 1;
        self.shared.set_timer(client, id, CONNECT_TIMEOUT_MS);
        Ok(())
    }

    /// Ends a client's connection without a word.
    pub fn drop_connection(&mut self, id: ClientId) {
        let client = &mut self.clients[id.0 as usize];
        let shared = &mut self.shared;
        shared.unsettled -= client.drop_connection(&mut shared.out_pool);
    }

    /// Ends a connection that cannot go on. The change is reported at the next opportunity.
    pub fn fail(&mut self, id: ClientId, broken: Broken) {
        let client = &self.clients[id.0 as usize];
        if client.state == State::Down {
            return;
        }
        let closing = client.state == State::Closing;
        if client.out.as_ref().is_some_and(|out| !out.stuck) && !client.marks.hung_up {
            // The server is told that its close was heard, if nothing stands in the way.
            self.write(id);
        }
        self.drop_connection(id);
        // After our own connection.close any end will do.
        let change = match closing {
            true => Change::Closed,
            false => Change::Failed(broken.failure),
        };
        self.shared.reports.owe(id, change);
    }

    /// The answer to a publish for which there is no room.
    fn no_room(&mut self, id: ClientId) -> Publish {
        if self.shared.options.drop_when_full {
            return Publish::Refused(Refusal::Dropped);
        }
        self.clients[id.0 as usize].owes_writable = true;
        Publish::Blocked
    }

    /// Ends the transaction that has messages in it.
    pub fn commit(&mut self, id: ClientId) {
        let client = &mut self.clients[id.0 as usize];
        let Some(publisher) = client.publisher.as_mut().filter(|p| p.uncommitted > 0) else {
            return;
        };
        publisher.uncommitted = 0;
        publisher.committing = Some(publisher.window.last());
        let commit = Method::TxCommit(TxCommit::default());
        self.shared.send(client, id, PUBLISHING, commit);
    }
}

impl Fleet for AmqpFleet {
    fn connect(&mut self, spec: &ClientSpec) -> Result<ClientId, DriverError> {
        let endpoint = pair::place_of(spec, self.shared.endpoints.len())?;
        if spec.name.len() > 255 - SESSION_PREFIX.len() {
            return Err(DriverError::new(format!(
                "a client's name has at most {} bytes, since its queue is named after it",
                255 - SESSION_PREFIX.len()
            )));
        }
        if spec.will.is_some() {
            return Err(DriverError::with_hint(
                format!(
                    "client {:?} has a will, which AMQP 0-9-1 does not know",
                    spec.name
                ),
                "leave it out",
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
        let client = self.client(id)?;
        if client.state != State::Connected {
            return Err(DriverError::new("a client subscribes once it is connected"));
        }
        let client = &mut self.clients[id.0 as usize];
        self.shared.subscribe(client, id, subscription)
    }

    fn advertise(&mut self, id: ClientId, topic: &str) -> Result<TopicId, DriverError> {
        self.client(id)?;
        let client = &mut self.clients[id.0 as usize];
        let shared = &mut self.shared;
        let (topic, new) = shared.topics.advertise(id.0, topic, &shared.options)?;
        client.publishes = true;
        if client.state != State::Connected {
            return Ok(topic); // The channel is opened with the connection.
        }
        if client.publisher.is_none() {
            shared.open_publisher(client, id);
        } else if new && shared.options.exchange == Exchange::Queue {
            let queue = shared.topics.get(topic).map(|t| t.key.clone());
            shared.declare_for_publishing(client, id, &queue.unwrap_or_default());
        }
        Ok(topic)
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
        if client.is_held(self.shared.options.in_flight) {
            return self.no_room(id);
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
        let (Some(topic), Some(publisher)) = (shared.topics.get(topic_id), &mut client.publisher)
        else {
            return Publish::Refused(Refusal::NotConnected);
        };
        let answered = shared.options.answers != Answers::Nothing;
        let number = if answered {
            publisher.window.push(tag)
        } else {
            0
        };
        let mut full = false;
        if let Answers::Commits(n) = shared.options.answers {
            publisher.uncommitted += 1;
            full = publisher.uncommitted >= u32::from(n);
        }
        let out = client.out.get_or_insert_with(|| shared.out_pool.get());
        if out.start != 0 {
            out.compact();
        }
        topic.template.append(
            &mut out.bytes,
            client.frame_max as usize,
            number,
            payload.head,
            payload.body,
        );
        out.messages += u32::from(!answered);
        shared.unsettled += 1;
        shared.mark_dirty(client, id);
        if full {
            self.commit(id);
        }
        let stuck = |out: &pubgauge_net::out::Out| {
            out.stuck || out.pending().len() < self.shared.options.batch
        };
        let client = &self.clients[id.0 as usize];
        if !client.out.as_deref().is_none_or(stuck) {
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
                if matches!(self.shared.options.answers, Answers::Commits(_)) {
                    self.commit(id);
                }
                let client = &mut self.clients[id.0 as usize];
                if self.shared.leaving && self.shared.options.durable_session {
                    self.shared.remove_queues(client, id);
                }
                let client = &mut self.clients[id.0 as usize];
                client.state = State::Closing;
                let close = Method::ConnectionClose(ConnectionClose {
                    reply_code: 200,
                    reply_text: b"done",
                    ..ConnectionClose::default()
                });
                self.shared.send(client, id, 0, close);
                self.shared.set_timer(client, id, CLOSE_TIMEOUT_MS);
            }
            _ => {
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

    fn left_behind(&self) -> Option<String> {
        let shown = &self.shared.endpoints.first()?.shown;
        (self.left > 0 && self.shared.options.durable_session).then(|| {
            format!(
                "{shown}: queues of this trial's durable sessions may still be on the server, for {} of its clients were not connected at the end\n  hint: they expire by themselves (session-expiry-s); their names carry the trial's mark",
                self.left
            )
        })
    }

    fn writes(&self) -> Option<u64> {
        Some(self.shared.writes)
    }

    fn close(&mut self, until: Nanos) {
        self.shared.leaving = true;
        let of = |fleet: &Self, gone: fn(State) -> bool| {
            let sessions = fleet.clients.iter().filter(|c| c.subscribes);
            sessions.filter(|c| gone(c.state)).count()
        };
        self.left = of(self, |state| state != State::Connected);
        for id in 0..self.clients.len() as u32 {
            self.disconnect(ClientId(id));
        }
        self.run_unheard(until, |fleet| {
            fleet.clients.iter().all(|c| c.state == State::Down)
        });
        self.left += of(self, |state| state != State::Down);
        for id in 0..self.clients.len() as u32 {
            self.drop_connection(ClientId(id));
        }
    }
}
