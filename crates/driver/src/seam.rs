//! The interface itself: [`Fleet`], the [`Events`] that it reports, and the data of its calls.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::address::Scheme;
use crate::clock::{Clock, Nanos};
use crate::grant::Grant;
use crate::header::HEADER_LEN;
use crate::login::Login;
use crate::payload::Payload;
use crate::resource::{Attempt, Resource};
use crate::secret::Secret;
use crate::settings::{Mapping, Settings};
use crate::shortened::shortened;
use crate::travel::Travel;
use crate::will::Will;

/// How a system behaves, for the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traits {
    /// Publishers must be connected before subscribers, because subscribers need the addresses
    /// that publishers got ([`Change::Connected`]'s `address`); brokerless systems.
    pub publishers_first: bool,
    /// A publisher that is faster than the system is eventually [`Publish::Blocked`]. Where this
    /// is false, the engine bounds the messages under way by a window of its own.
    pub back_pressure: bool,
    /// Accepted messages are later acknowledged ([`Events::acknowledged`]).
    pub acknowledges: bool,
    /// The system may deliver a message more than once even while connections stay up.
    pub may_duplicate: bool,
    /// [`Fleet::publish`] may sleep until the system takes the message, where others answer [`Publish::Blocked`]:
    /// the library writes to a socket that blocks. The engine then times each call.
    pub publish_sleeps: bool,
}

/// The parameters with which a fleet is opened.
#[derive(Clone)]
pub struct FleetConfig {
    /// The system to talk to.
    pub target: Target,
    /// The application's demands; [`crate::Driver::resolve`] accepted them.
    pub settings: Settings,
    /// The trial's clock, on which [`Fleet::poll`] gets its `until`. Real drivers may assume that it
    /// is not [`Clock::Virtual`].
    pub clock: Clock,
    /// The longest payload that will be published or received, in bytes.
    pub max_payload: usize,
    /// How many clients the fleet will hold, for sizing.
    pub clients: usize,
    /// Number of the worker, unique within the trial; for names that must not collide.
    pub worker: u32,
}

impl Default for FleetConfig {
    /// One client of a worker 0, by the system's clock, with messages of up to 4 MiB; neither target nor settings.
    fn default() -> FleetConfig {
        FleetConfig {
            target: Target::default(),
            settings: Settings::default(),
            clock: Clock::Monotonic,
            max_payload: 4 << 20,
            clients: 1,
            worker: 0,
        }
    }
}

/// Where and how a system is reached. As data it has neither the password, which travels apart, nor
/// what is shared within a process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Target {
    /// Endpoints as URLs, for example `mqtt://127.0.0.1:1883`, `mqtts://host:8883`. Empty for
    /// brokerless systems. Each of several brokers side by side is a target of its own.
    pub endpoints: Vec<String>,
    /// Features named in the system's file, for example `mqtt-5`, `mqtt-3.1.1`, `tls`; lets
    /// [`crate::Driver::resolve`] refuse what a server cannot do. Empty means: not known, try.
    pub features: Vec<String>,
    /// User name, if the system wants one.
    pub username: Option<String>,
    /// Password, if the system wants one.
    #[serde(skip)]
    pub password: Option<Secret>,
    /// Certificates for encrypted endpoints.
    pub tls: Option<Tls>,
    /// A private folder that vanishes after the trial, for sockets and the like.
    pub scratch: PathBuf,
    /// Where the fleet's clients are on a network of hosts; absent: on this host alone, where they keep
    /// to loopback.
    #[serde(default)]
    pub network: Option<OnNetwork>,
    /// The system itself, where it lives in this process ([`crate::Driver::shared`]).
    #[serde(skip)]
    pub shared: Option<InProcessSystem>,
}

/// Where the clients of a fleet are on a network: the addresses at which clients of systems without a
/// broker listen and find each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnNetwork {
    /// The address of the fleet's host.
    pub address: Ipv4Addr,
    /// The interface that has it.
    pub interface: String,
    /// The addresses of all hosts with clients, its own included.
    pub hosts: Vec<Ipv4Addr>,
}

/// A system that lives in the process of its clients, in the type that its driver knows.
pub type InProcessSystem = Arc<dyn std::any::Any + Send + Sync>;

impl Target {
    /// The system at one address.
    pub fn single(endpoint: impl Into<String>) -> Target {
        Target {
            endpoints: vec![endpoint.into()],
            ..Target::default()
        }
    }

    /// Whether the system's file names this feature.
    pub fn has(&self, feature: &str) -> bool {
        self.features.iter().any(|f| f == feature)
    }

    /// The row beside the settings that says that TLS is spoken to a server that is not checked
    /// ([`Tls::insecure`]); `None` where none of the endpoints, which have these `schemes`, has TLS.
    pub fn unchecked(&self, schemes: &[Scheme]) -> Option<Mapping> {
        let encrypted = |endpoint: &String| {
            Scheme::find(endpoint, schemes).is_some_and(|scheme| scheme.encryption.is_on())
        };
        let insecure = self.tls.as_ref().is_some_and(|tls| tls.insecure);
        (insecure && self.endpoints.iter().any(encrypted)).then(|| Mapping {
            setting: "tls".into(),
            value: "insecure".into(),
            native: "encrypted, but the server's certificate is not checked: whoever answers, or stands between, can read and change everything, the password included".into(),
            term: None,
            qos: None,
        })
    }
}

/// The environment variable that holds the password of a system that runs already.
pub const PASSWORD_VARIABLE: &str = "PUBGAUGE_PASSWORD";

/// The environment variable with the passphrase of the client's private key.
pub const KEY_PASSPHRASE_VARIABLE: &str = "PUBGAUGE_KEY_PASSPHRASE";

/// Certificates, as paths of files, and whether the server's is checked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tls {
    /// Authorities that may have signed the server's certificate; the system's own if absent.
    pub ca_file: Option<PathBuf>,
    /// The authority itself (PEM) in place of a file, of a certificate that was made for the run: workers on other hosts
    /// have no such file.
    #[serde(default)]
    pub ca_pem: Option<String>,
    /// The client's certificate chain: PEM or DER, or PKCS#12 with the private key.
    pub cert_file: Option<PathBuf>,
    /// The client's private key, where it is not in `cert_file`.
    pub key_file: Option<PathBuf>,
    /// The passphrase of a private key that is encrypted. It travels apart, as a password does.
    #[serde(skip)]
    pub passphrase: Option<Secret>,
    /// Protocols that the handshake names (ALPN, RFC 7301) in place of the driver's own, where TLS begins with the
    /// connection.
    #[serde(default)]
    pub alpn: Vec<String>,
    /// Name to check the server's certificate against, if it differs from the endpoint's host.
    pub server_name: Option<String>,
    /// Any certificate is accepted, unchecked: the connection is encrypted, but perhaps to another
    /// server.
    pub insecure: bool,
}

/// A client within one fleet: the n-th that was connected, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u32);

impl ClientId {
    /// The client of this number among all of a fleet.
    ///
    /// # Errors
    /// There is none.
    pub fn find<C>(self, clients: &[C]) -> Result<&C, DriverError> {
        let client = clients.get(self.0 as usize);
        client.ok_or_else(|| DriverError::new(format!("there is no client {}", self.0)))
    }

    /// [`ClientId::find`], to change it.
    ///
    /// # Errors
    /// There is none.
    pub fn find_mut<C>(self, clients: &mut [C]) -> Result<&mut C, DriverError> {
        self.find(clients)?;
        Ok(&mut clients[self.0 as usize])
    }
}

/// A topic that a client has advertised. Only valid with the fleet that gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TopicId(pub u32);

/// One client to connect.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientSpec {
    /// Its name (MQTT client identifier, XMPP resource, ...), unique within the trial.
    pub name: String,
    /// Whether it will publish.
    pub publishes: bool,
    /// Whether it will subscribe.
    pub subscribes: bool,
    /// Index into [`Target::endpoints`].
    pub endpoint: usize,
    /// Local address to connect from, when one address has too few ports; the kernel's choice if absent.
    pub source: Option<IpAddr>,
    /// Addresses of the publishers it must listen to, where [`Traits::publishers_first`].
    pub peers: Vec<String>,
    /// Message that the system publishes for it if it vanishes.
    pub will: Option<Will>,
    /// How it logs in, where that is not as the target says for all; not data, because it holds secrets.
    #[serde(skip)]
    pub login: Login,
}

impl ClientSpec {
    /// Refuses a will, which `system` does not have; `name` for the advice.
    ///
    /// # Errors
    /// If there is one.
    pub fn without_will(&self, system: &str, name: &str) -> Result<(), DriverError> {
        match self.will {
            None => Ok(()),
            Some(_) => Err(DriverError::with_hint(
                format!("client {}: {system} has no last will", self.name),
                format!("leave the will out for {name}"),
            )),
        }
    }
}

/// The messages that a client wants to receive. Filters use `/` between levels, `+` for one level and `#` for
/// all that follow, whatever the system; a driver translates or refuses. Left to the system: whether `a/#` matches
/// `a` itself (MQTT: yes, NATS: no), and how often a message comes that two subscriptions of one client match (MQTT
/// servers: once or twice). The engine asks for neither.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subscription {
    pub filter: String,
    /// Members of one group share the messages: each goes to exactly one of them.
    pub group: Option<String>,
}

impl Subscription {
    /// All that this filter matches.
    pub fn matching(filter: impl Into<String>) -> Subscription {
        Subscription {
            filter: filter.into(),
            group: None,
        }
    }

    /// Subscribes as a member of a group.
    pub fn of_group(self, group: impl Into<String>) -> Subscription {
        Subscription {
            group: Some(group.into()),
            ..self
        }
    }
}

/// The outcome of a publish call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Publish {
    /// The driver has taken the message and will put it on the wire without being asked again.
    Accepted,
    /// Not now: back-pressure or a full in-flight window. Nothing was taken. The driver reports
    /// [`Change::Writable`] for this client once it is worth trying again.
    Blocked,
    /// The message cannot be taken; trying again is pointless until something changes.
    Refused(Refusal),
}

/// Why a message was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// The client is not connected.
    NotConnected,
    /// Larger than the system (or its CONNACK) allows.
    TooLarge,
    /// The local queue is full and the settings say to drop (counted, never silent).
    Dropped,
}

/// The system's answer to one accepted message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledgement {
    /// It has the message (MQTT PUBACK / PUBCOMP, AMQP confirm).
    Taken,
    /// It has the message, and said that there is no subscriber.
    NoSubscriber,
    /// It rejected the message, with the protocol's own code.
    Rejected(u16),
}

/// A delivered message, as long as the call lasts.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'a> {
    /// The payload as the publisher gave it.
    pub payload: &'a [u8],
    /// The topic, where the protocol carries it: the counters of servers that publish them (`$SYS`) are read by it.
    pub topic: Option<&'a str>,
    /// A last value kept by the system, not a message published just now.
    pub retained: bool,
    /// The system marked it as possibly a second delivery.
    pub redelivered: bool,
}

/// An event of a client, other than messages.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Connected and logged in.
    Connected {
        /// The system still had a session of this client.
        session_present: bool,
        /// Where subscribers can reach it, in brokerless systems.
        address: Option<String>,
    },
    /// The system has taken a subscription; reported in the order in which subscriptions were asked
    /// for. Only sentinels prove that delivery has begun.
    Subscribed,
    /// The system refused a subscription.
    SubscriptionRefused(String),
    /// A client that was [`Publish::Blocked`] may try again.
    Writable,
    /// The connection was lost or could not be made; says why and what to do. The client stays
    /// in place for [`Fleet::reconnect`].
    Failed(Failure),
    /// An orderly end that [`Fleet::disconnect`] asked for.
    Closed,
}

/// Why a client's connection was lost or could not be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// In words, with a hint.
    pub why: String,
    /// The resource that the client itself ran out of, where that was the reason. `None` where it was the
    /// system's doing, or where the driver cannot tell: a server that is out of descriptors or
    /// memory refuses, closes or does not answer.
    pub exhausted: Option<Resource>,
}

impl<S: Into<String>> From<S> for Failure {
    fn from(why: S) -> Self {
        Failure {
            why: why.into(),
            exhausted: None,
        }
    }
}

impl From<DriverError> for Failure {
    fn from(error: DriverError) -> Self {
        Failure {
            why: error.to_string(),
            exhausted: error.exhausted,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

/// Where a fleet reports what happened, from inside [`Fleet::poll`].
pub trait Events {
    /// The driver has just read from the system: the messages reported next came with that
    /// read. The engine reads the clock here, once for all of them. To be called at least every
    /// 64 messages where a library hands over one message at a time.
    fn arrived(&mut self);
    /// The delivery that is reported next came with a lower quality of service (MQTT's QoS) than the fleet's settings
    /// promise between a publisher and a subscriber that both have them. The default: nobody counts it.
    fn lowered(&mut self) {}
    /// The delivery that is reported next had this header beside its payload ([`Travel::header_apart`]). The default:
    /// nobody looks for it there.
    fn header(&mut self, header: &[u8; HEADER_LEN]) {
        let _ = header;
    }
    /// A message for a subscriber.
    fn delivered(&mut self, client: ClientId, delivery: Delivery<'_>);
    /// The system's answer to a message that was published with this `tag`.
    fn acknowledged(&mut self, client: ClientId, tag: u64, answer: Acknowledgement);
    /// Anything else.
    fn changed(&mut self, client: ClientId, change: Change);
}

/// Bytes on the wire, protocol and encryption included, as far as the driver can see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireBytes {
    /// Bytes given to the system interface.
    pub sent: u64,
    /// Bytes got from the system interface.
    pub received: u64,
}

/// One worker thread's share of the clients of one system.
///
/// No call but [`Fleet::poll`] and [`Fleet::close`] may sleep. Outcomes of `connect`,
/// `subscribe` and `reconnect` arrive as [`Change`]s of later polls.
pub trait Fleet {
    /// Begins to connect a client. Ids are given in order from 0.
    ///
    /// # Errors
    /// When it cannot begin: no more file descriptors, an endpoint that is not one.
    fn connect(&mut self, client: &ClientSpec) -> Result<ClientId, DriverError>;

    /// Tells a connected client of one more publisher to listen to, where
    /// [`Traits::publishers_first`] and the address was not known when it connected.
    ///
    /// # Errors
    /// An address that is not one; a system whose clients have no peers.
    fn add_peer(&mut self, client: ClientId, address: &str) -> Result<(), DriverError> {
        let _ = client;
        Err(DriverError::new(format!(
            "this system has no peers to listen to (asked for {address})"
        )))
    }

    /// Begins to subscribe a connected client.
    ///
    /// # Errors
    /// When the filter cannot be expressed in this system.
    fn subscribe(
        &mut self,
        client: ClientId,
        subscription: &Subscription,
    ) -> Result<(), DriverError>;

    /// Makes a topic known for publishing. Asking again for the same client and topic gives the
    /// same id.
    ///
    /// # Errors
    /// When the topic cannot be expressed in this system.
    fn advertise(&mut self, client: ClientId, topic: &str) -> Result<TopicId, DriverError>;

    /// As [`Fleet::advertise`], for messages that travel in a way of their own, as far as
    /// [`crate::Driver::carries`] says; each call may give another id. The default: as the settings say.
    ///
    /// # Errors
    /// As [`Fleet::advertise`].
    fn advertise_as(
        &mut self,
        client: ClientId,
        topic: &str,
        travel: Travel,
    ) -> Result<TopicId, DriverError> {
        let _ = travel;
        self.advertise(client, topic)
    }

    /// Whether messages on an advertised topic are acknowledged, where [`Traits::acknowledges`]. The default: they are.
    fn is_acknowledged(&self, topic: TopicId) -> bool {
        let _ = topic;
        true
    }

    /// Hands over one message. Never waits. `tag` comes back with the acknowledgement.
    ///
    /// An accepted message is on its way at the latest with the next [`Fleet::poll`].
    fn publish(
        &mut self,
        client: ClientId,
        topic: TopicId,
        payload: Payload<'_>,
        tag: u64,
    ) -> Publish;

    /// Writes what is waiting, then reads and reports what has come; sleeps no later than
    /// `until` (a point of the fleet's clock) and returns as soon as anything was reported. An
    /// `until` in the past means: do not sleep.
    ///
    /// # Errors
    /// Only what ends the whole fleet. Trouble of one client is [`Change::Failed`].
    fn poll(&mut self, until: Nanos, events: &mut dyn Events) -> Result<(), DriverError>;

    /// Bounds what is taken from one client's connection: after so many more deliveries nothing is read from it, as by an
    /// application that is busy, until the bound is set again; `None`, with which each connection begins: all that comes. What
    /// the client sends is not held back, and other clients are read from as ever. A unit of the protocol that has several
    /// messages is delivered whole. A client without a connection has no bound.
    ///
    /// # Errors
    /// Where [`crate::Driver::bounds_reading`] says that it cannot, which is the default.
    fn take_at_most(&mut self, client: ClientId, messages: Option<u32>) -> Result<(), DriverError> {
        let _ = (client, messages);
        Err(DriverError::new(
            "this driver cannot stop reading from one client's connection",
        ))
    }

    /// Begins an orderly end of one client ([`Change::Closed`] follows). What was accepted is written first. An
    /// unfinished exactly-once handshake is cut off; [`Fleet::unsettled`] counts such messages before.
    fn disconnect(&mut self, client: ClientId);

    /// Drops one client's connection without telling the server, as a crash would. No change is
    /// reported.
    fn abort(&mut self, client: ClientId);

    /// Begins to connect a client again after [`Change::Failed`], [`Change::Closed`] or
    /// [`Fleet::abort`]; a durable session is resumed and unacknowledged messages are sent again
    /// as the protocol demands. Subscriptions are the caller's to repeat if no session was
    /// present.
    ///
    /// # Errors
    /// As [`Fleet::connect`].
    fn reconnect(&mut self, client: ClientId) -> Result<(), DriverError>;

    /// Replaces the payload of a client's will, from its next connection on.
    ///
    /// # Errors
    /// A client without a will; a system whose clients have none, which is the default.
    fn renew_will(&mut self, client: ClientId, payload: Vec<u8>) -> Result<(), DriverError> {
        let _ = payload;
        Err(DriverError::new(format!("client {} has no will", client.0)))
    }

    /// Messages accepted but not yet given to the system or not yet acknowledged.
    fn unsettled(&self) -> u64;

    /// Bytes on the wire since the fleet was opened.
    fn wire_bytes(&self) -> WireBytes;

    /// System calls that wrote to the network since the fleet was opened, where the driver makes
    /// them itself: their number shows how messages were gathered. `None`, the default: not known.
    fn writes(&self) -> Option<u64> {
        None
    }

    /// Whether the client library runs threads of its own, whose CPU time belongs to this fleet.
    fn has_threads(&self) -> bool {
        false
    }

    /// Kernel's identifiers of threads that clients have begun since the fleet was opened. Their processor time belongs to
    /// this fleet, too.
    fn later_threads(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Ends all clients in order, waiting until `until` at the latest, and frees everything. What
    /// they would leave on the system (last values, durable sessions, queues) is removed, as far
    /// as the system lets them.
    fn close(&mut self, until: Nanos);

    /// Limits of the clients that have connected so far, where the driver has some: the window of publishers whose messages
    /// are acknowledged ([`Grant::WINDOW`]), and what the system granted in place of what was asked for.
    fn grants(&self) -> Vec<Grant> {
        Vec::new()
    }

    /// Messages that [`Fleet::close`] published itself, to remove others: the system counts them.
    fn parting_messages(&self) -> u64 {
        0
    }

    /// The remains that [`Fleet::close`] could not remove from the system, in words with a hint.
    fn left_behind(&self) -> Option<String> {
        None
    }
}

/// Why a driver could not do what it was asked, and what the user can do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}{}", hint.as_ref().map(|h| format!("\n  hint: {h}")).unwrap_or_default())]
pub struct DriverError {
    /// The error.
    pub what: String,
    /// The next step for the user.
    pub hint: Option<String>,
    /// The resource that the client itself ran out of, where that was the reason.
    pub exhausted: Option<Resource>,
}

impl DriverError {
    /// An error without advice; what is long is [`shortened`].
    pub fn new(what: impl Into<String>) -> Self {
        DriverError {
            what: shortened(what),
            hint: None,
            exhausted: None,
        }
    }

    /// An error with advice.
    pub fn with_hint(what: impl Into<String>, hint: impl Into<String>) -> Self {
        DriverError {
            hint: Some(hint.into()),
            ..DriverError::new(what)
        }
    }

    /// Something was asked of a fleet after [`Fleet::close`].
    pub fn closed() -> Self {
        DriverError::new("the fleet is closed")
    }

    /// The client has run out of something; with the resource's advice.
    pub fn exhausted(what: impl Into<String>, resource: Resource) -> Self {
        DriverError {
            exhausted: Some(resource),
            ..DriverError::with_hint(what, resource.advice())
        }
    }

    /// From words and the error of an attempt: `WHAT: ERROR`. Says what to do if a resource of the
    /// client is exhausted.
    pub fn of_io(what: impl fmt::Display, attempt: Attempt, error: &io::Error) -> Self {
        let what = format!("{what}: {error}");
        match Resource::exhausted_by(attempt, error) {
            Some(resource) => DriverError::exhausted(what, resource),
            None => DriverError::new(what),
        }
    }

    /// Adds this advice, unless there is some already.
    pub fn or_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint.get_or_insert_with(|| hint.into());
        self
    }
}
