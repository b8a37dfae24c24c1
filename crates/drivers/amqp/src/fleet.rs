//! AMQP for a fleet over TCP: the calls that come from the fleet. What the frames mean is in [`crate::protocol`], [`crate::login`] and [`crate::subscribe`].

use std::borrow::Cow;
use std::hash::{BuildHasher, Hasher, RandomState};

use crate::codec::method::{ConnectionClose, TxCommit};
use crate::codec::{HEARTBEAT, Method, PROTOCOL_HEADER};
use pubgauge_driver::{
    ClientSpec, DriverError, Encryption, Events, Failure, FleetConfig, Grant, Nanos, Payload,
    Refusal, Scheme, Subscription, TopicId, Travel, accepted,
};
use pubgauge_net::endpoint::{Addressing, Endpoint};
use pubgauge_net::fleet::{Broken, Protocol, State, Taken, TcpFleet};
use pubgauge_net::pair;
use pubgauge_net::topics::Topics;

use crate::client::{AmqpClient, L, LoginStep, PUBLISHING, send};
use crate::options::{AmqpOptions, Answers, Exchange};
use crate::shared::Amqp;
use crate::topics::{AmqpTopic, SESSION_PREFIX};
use crate::{login, protocol};

/// How AMQP endpoints are written.
pub(crate) const ADDRESSING: Addressing = Addressing {
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
    websocket: None,
};

/// A fleet without clients.
pub(crate) fn open(config: FleetConfig) -> Result<TcpFleet<Amqp>, DriverError> {
    let options = accepted("AMQP", AmqpOptions::resolve(&config.settings))?;
    let target = &config.target;
    let endpoints = pair::plain_places(&target.endpoints, &ADDRESSING)?;
    let path = |e: &Endpoint| e.path.as_ref().map_or(0, String::len);
    if endpoints.iter().any(|e| path(e) > 255) {
        return Err(DriverError::new(
            "the name of a virtual host has at most 255 bytes",
        ));
    }
    let tuning = options.tuning;
    let amqp = Amqp {
        options,
        leaving: false,
        has_certificate: target.tls.as_ref().is_some_and(|t| t.cert_file.is_some()),
        nonce: RandomState::new().build_hasher().finish(),
        topics: Topics::default(),
        partials: Vec::new(),
        topic: String::new(),
        max_in: config.max_payload,
        left: 0,
    };
    TcpFleet::open(config, endpoints, tuning, amqp)
}

/// Sends tx.commit for the messages since the last one.
fn commit(link: &mut L<'_>) {
    let publisher = link.client.own.publisher.as_mut();
    let Some(publisher) = publisher.filter(|p| p.uncommitted > 0) else {
        return;
    };
    publisher.uncommitted = 0;
    publisher.committing = Some(publisher.window.last());
    send(link, PUBLISHING, Method::TxCommit(TxCommit::default()));
}

impl Amqp {
    /// The id of a client's topic, made if it is new; `header_apart`: its messages' headers travel beside them.
    fn advertised(
        &mut self,
        link: &mut L<'_>,
        name: &str,
        header_apart: bool,
    ) -> Result<TopicId, DriverError> {
        let known = self.topics.find(link.id.0, name);
        let is_same = |id: &TopicId| {
            let topic = self.topics.get(*id);
            topic.is_some_and(|topic| topic.header_apart == header_apart)
        };
        let known = known.filter(is_same);
        let id = match known {
            Some(id) => id,
            None => {
                let topic = AmqpTopic::new(name, &self.options, header_apart)?;
                self.topics.insert(link.id.0, topic)
            }
        };
        link.client.own.publishes = true;
        if !link.is_connected() {
            return Ok(id); // The channel is opened with the connection.
        }
        if link.client.own.publisher.is_none() {
            self.open_publisher(link);
        } else if known.is_none() && self.options.exchange == Exchange::Queue {
            let queue = self.topics.get(id).map(|t| t.key.clone());
            self.declare_for_publishing(link, &queue.unwrap_or_default());
        }
        Ok(id)
    }
}

impl Protocol for Amqp {
    type Client = AmqpClient;
    // The server answers connection.close.
    const HALF_CLOSES: bool = false;
    const NO_WILLS: Option<[&'static str; 2]> = Some(["AMQP 0-9-1", "leave it out"]);
    const TURNED_AWAY: [&'static str; 2] = ["without a greeting", "AMQP 0-9-1"];

    fn client(&mut self, spec: &ClientSpec) -> Result<AmqpClient, DriverError> {
        if spec.name.len() > 255 - SESSION_PREFIX.len() {
            return Err(DriverError::new(format!(
                "a client's name has at most {} bytes, since its queue is named after it",
                255 - SESSION_PREFIX.len()
            )));
        }
        Ok(AmqpClient::new(spec))
    }

    fn greet(&mut self, link: &mut L<'_>) -> Result<(), Broken> {
        link.out().bytes.extend_from_slice(&PROTOCOL_HEADER);
        Ok(())
    }

    fn receive(
        &mut self,
        link: &mut L<'_>,
        bytes: &[u8],
        events: &mut dyn Events,
    ) -> Result<usize, Broken> {
        protocol::receive(self, link, bytes, events)
    }

    fn subscribe(
        &mut self,
        link: &mut L<'_>,
        subscription: &Subscription,
    ) -> Result<(), DriverError> {
        self.ask_for(link, subscription)
    }

    fn advertise(&mut self, link: &mut L<'_>, name: &str) -> Result<TopicId, DriverError> {
        self.advertised(link, name, false)
    }

    fn advertise_as(
        &mut self,
        link: &mut L<'_>,
        name: &str,
        travel: Travel,
    ) -> Result<TopicId, DriverError> {
        self.advertised(link, name, travel.header_apart)
    }

    #[inline]
    fn publish(
        &mut self,
        link: &mut L<'_>,
        topic: TopicId,
        payload: Payload<'_>,
        tag: u64,
    ) -> Taken {
        let own = &mut link.client.own;
        if own.is_held(self.options.in_flight) {
            return Taken::Full;
        }
        let (Some(topic), Some(publisher)) = (self.topics.get(topic), &mut own.publisher) else {
            return Taken::Refused(Refusal::NotConnected);
        };
        let answered = self.options.answers != Answers::Nothing;
        let number = if answered {
            publisher.window.push(tag)
        } else {
            0
        };
        let mut full = false;
        if let Answers::Commits(n) = self.options.answers {
            publisher.uncommitted += 1;
            full = publisher.uncommitted >= u32::from(n);
        }
        let frame_max = own.frame_max as usize;
        let out = link.out();
        let bytes = &mut out.bytes;
        let (head, body) = (payload.head, payload.body);
        if topic.header_apart {
            let template = &topic.template;
            template.append_apart(bytes, frame_max, number, head, body);
        } else {
            topic.template.append(bytes, frame_max, number, head, body);
        }
        out.messages += u32::from(!answered);
        if full {
            commit(link);
        }
        Taken::Accepted
    }

    fn grants(&self) -> Vec<Grant> {
        let windowed = self.options.answers != Answers::Nothing;
        let window = windowed.then(|| Grant::own_window(self.options.in_flight as u64));
        window.into_iter().collect()
    }

    #[inline]
    fn may_publish(&self, client: &AmqpClient) -> bool {
        !client.is_held(self.options.in_flight)
    }

    #[inline]
    fn before_write(&mut self, link: &mut L<'_>) {
        if self.has_transactions() && link.is_connected() {
            commit(link);
        }
    }

    fn ping(&mut self, link: &mut L<'_>) {
        link.out().bytes.extend_from_slice(&HEARTBEAT);
    }

    /// Runs twice in each heartbeat interval (§4.2.7): sends a heartbeat if nothing else was sent,
    /// and fails the connection after two intervals without a byte from the server.
    fn keep_alive(&mut self, link: &mut L<'_>) -> Result<(), Broken> {
        let heartbeat_s = u32::from(link.client.own.heartbeat_s);
        let half_ms = heartbeat_s * 500;
        let since = |then: u32| link.shared.now_ms.saturating_sub(then);
        // While reading is paused until answers are written, silence says nothing of the server.
        if since(link.client.last_received_ms) >= 4 * half_ms && !link.client.paused {
            return Err(link.broken(format_args!(
                "no sign of life from the server for {} s, twice the heartbeat\n  hint: it hangs, or the connection is dead",
                2 * heartbeat_s
            )));
        }
        // While output waits to be written, a heartbeat would only wait behind it.
        let due = link.client.out.is_none() && since(link.client.last_sent_ms) + 50 >= half_ms;
        link.set_timer(half_ms);
        if due {
            self.ping(link);
        }
        Ok(())
    }

    fn goodbye(&mut self, link: &mut L<'_>) {
        if self.has_transactions() {
            commit(link);
        }
        if self.leaving && self.options.durable_session {
            self.remove_queues(link);
        }
        let close = Method::ConnectionClose(ConnectionClose {
            reply_code: 200,
            reply_text: b"done",
            ..ConnectionClose::default()
        });
        send(link, 0, close);
    }

    /// Whether the answer to the server's close can be written now.
    fn failing(&mut self, link: &mut L<'_>, _: Option<u8>) -> bool {
        link.client.out.is_some() && link.client.is_writable()
    }

    fn dropped(&mut self, link: &mut L<'_>, _: bool) {
        let unanswered = link.client.own.forget_connection();
        link.settled(unanswered);
    }

    fn waits_for(&self, client: &AmqpClient) -> Cow<'static, str> {
        let what = match client.step {
            LoginStep::Greeting => "no connection.start",
            LoginStep::LoggingIn => "no answer to the login",
            LoginStep::Entering => "no connection.open-ok",
            LoginStep::Opening | LoginStep::Done => "not all channels and queues were answered for",
        };
        what.into()
    }

    fn turned_away(&self, link: &L<'_>, reset: bool) -> Option<Failure> {
        let why = match link.client.own.step {
            LoginStep::Greeting => return Some(link.turned_away(Self::TURNED_AWAY)),
            _ if reset => return None,
            LoginStep::LoggingIn => {
                login::refused(link, "the server closed the connection during the login")
            }
            LoginStep::Entering => format!(
                "{}: the server closed the connection in place of opening the virtual host\n  hint: check the virtual host and the user's permissions there; its log may say why",
                link.display_endpoint()
            ),
            LoginStep::Opening | LoginStep::Done => return None,
        };
        Some(why.into())
    }

    fn close(fleet: &mut TcpFleet<Amqp>, until: Nanos) {
        fleet.protocol.leaving = true;
        let of = |fleet: &TcpFleet<Amqp>, gone: fn(State) -> bool| {
            let sessions = fleet.clients.iter().filter(|c| c.own.subscribes);
            sessions.filter(|c| gone(c.state)).count()
        };
        let before = of(fleet, |state| state != State::Connected);
        fleet.leave(until);
        fleet.protocol.left = before + of(fleet, |state| state != State::Down);
    }

    fn left_behind(&self) -> Option<String> {
        (self.left > 0 && self.options.durable_session).then(|| {
            format!(
                "queues of this trial's durable sessions may still be on the server, for {} of its clients were not connected at the end\n  hint: they expire by themselves (session-expiry-s); their names carry the trial's mark",
                self.left
            )
        })
    }
}
