//! State of each client and of the fleet, and what a client does with the lines it gets. No sockets
//! here: bytes come in as a slice, and what is to be sent is appended to the client's output
//! buffer.
//!
//! | line | while greeting | while connected |
//! |---|---|---|
//! | INFO | TLS, CONNECT | ignored: a cluster has changed |
//! | PONG | connected | subscribed, or a sign of life |
//! | MSG, HMSG | failed | delivered |
//! | PING | answered | answered |
//! | -ERR | failed | a subscription is refused, or failed |

use std::collections::VecDeque;

use pubgauge_driver::header::HEADER_LEN;
use pubgauge_driver::travel::{HEADER_TEXT_LEN, header_of_text};
use pubgauge_driver::{Change, Delivery, Encryption, Events, Grant};
use pubgauge_net::dotted_topics::restore;
use pubgauge_net::fleet::{Broken, ClientLink};
use pubgauge_net::topics::{Named, Topics};
use serde_json::{Value, json};

use crate::options::NatsOptions;
use crate::wire::{Op, excerpt};

/// The request that the server's next PONG answers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Awaits {
    Connect,
    Subscription,
    /// A subscription that the server refused with this text.
    Refused(String),
    SignOfLife,
}

/// State of a client besides its connection.
#[derive(Default)]
pub(crate) struct NatsClient {
    /// Requests that the server's next PONGs answer; none while nothing is under way.
    #[allow(clippy::box_collection)] // An idle client must be small: 8 bytes, not 32.
    pub pongs: Option<Box<VecDeque<Awaits>>>,
    /// Subscriptions asked for; the last one's number.
    pub subscriptions: u32,
    /// Longest message that the server takes, in bytes.
    pub max_out: u32,
}

/// A topic that was advertised.
pub(crate) struct NatsTopic {
    pub name: Box<str>,
    /// Its PUB or HPUB line, up to the length of the message.
    pub line: Box<[u8]>,
    /// Headers of messages travel in a header field of the server's: all fields up to its value.
    pub apart: Option<Box<[u8]>>,
}

/// Bytes behind the fields that a topic's messages have up to the value of their header: that, and the end of the fields.
pub(crate) const APART_LEN: usize = HEADER_TEXT_LEN + 4;

/// The value of the header field in which a message's header travels.
pub(crate) fn header_in(fields: &[u8]) -> Option<[u8; HEADER_LEN]> {
    const FIELD: &[u8] = b"\r\npubgauge: ";
    let at = memchr::memmem::rfind(fields, FIELD)? + FIELD.len();
    header_of_text(fields.get(at..at + HEADER_TEXT_LEN)?)
}

impl Named for NatsTopic {
    fn name(&self) -> &str {
        &self.name
    }
}

/// A client and its connection.
pub(crate) type NatsLink<'a> = ClientLink<'a, NatsClient>;

/// State that all clients of a fleet share.
pub(crate) struct Nats {
    pub options: NatsOptions,
    /// Longest message that is taken from a server, header and all, in bytes.
    pub max_in: usize,
    pub topics: Topics<NatsTopic>,
    /// The subject that came last, and its topic.
    pub last: (Vec<u8>, String),
    /// The longest message that servers take.
    pub granted: Vec<Grant>,
}

impl Nats {
    pub fn new(options: NatsOptions, max_payload: usize) -> Nats {
        Nats {
            // The field with the header: its name, a colon, its value.
            max_in: max_payload.saturating_add(options.header.len() + 2 * APART_LEN),
            options,
            topics: Topics::default(),
            last: Default::default(),
            granted: Vec::new(),
        }
    }
}

/// The end of a connection whose server does not keep to the protocol.
pub(crate) fn breach(link: &NatsLink<'_>, what: impl std::fmt::Display) -> Broken {
    link.protocol_broken(what, "is it a NATS server?")
}

/// Appends a line and a PING, whose PONG is the answer to it.
pub(crate) fn ask(link: &mut NatsLink<'_>, line: &str, awaits: Awaits) {
    let out = &mut link.out().bytes;
    out.extend_from_slice(line.as_bytes());
    out.extend_from_slice(b"PING\r\n");
    let pongs = link.client.own.pongs.get_or_insert_default();
    pongs.push_back(awaits);
}

/// Acts on one operation of the server.
#[inline]
pub(crate) fn act(
    nats: &mut Nats,
    link: &mut NatsLink<'_>,
    op: Op<'_>,
    events: &mut dyn Events,
) -> Result<(), Broken> {
    match op {
        Op::Message {
            subject,
            header,
            payload,
        } if link.is_connected() => {
            if !header.is_empty()
                && let Some(header) = header_in(header)
            {
                events.header(&header);
            }
            let (last, topic) = &mut nats.last;
            if subject != last {
                restore(subject, topic);
                last.clear();
                last.extend_from_slice(subject);
            }
            let delivery = Delivery {
                payload,
                topic: Some(topic.as_str()),
                retained: false,
                redelivered: false,
            };
            link.deliver(events, delivery);
            Ok(())
        }
        Op::Message { .. } => Err(breach(link, "a message before the login")),
        // Only the first INFO, before the CONNECT.
        Op::Info(json) if !link.is_connected() && link.client.own.pongs.is_none() => {
            log_in(nats, link, json)
        }
        Op::Info(_) | Op::Ok => Ok(()),
        Op::Ping => {
            link.out().bytes.extend_from_slice(b"PONG\r\n");
            Ok(())
        }
        Op::Pong => answered(nats, link, events),
        Op::Error(words) => complaint(link, excerpt(words).trim_matches('\'')),
    }
}

/// INFO: TLS begins if it is to, and CONNECT goes out.
fn log_in(nats: &mut Nats, link: &mut NatsLink<'_>, json: &[u8]) -> Result<(), Broken> {
    let info: Value = serde_json::from_slice(json)
        .map_err(|error| breach(link, format_args!("its INFO: {error}")))?;
    let has = |name: &str| info[name] == true;
    let max_out = info["max_payload"].as_u64();
    let max_out = max_out.ok_or_else(|| breach(link, "its INFO has no max_payload"))?;
    let encrypted = link.endpoint().encryption == Encryption::StartTls;
    match (encrypted, has("tls_required") || has("tls_available")) {
        (true, true) => link.start_tls()?,
        (true, false) => {
            return Err(link.broken(
                "the server has no TLS\n  hint: give it a certificate, or write nats://HOST:PORT, which is not encrypted",
            ));
        }
        (false, _) if has("tls_required") => {
            return Err(link.broken("the server wants TLS\n  hint: write nats+tls://HOST:PORT"));
        }
        (false, _) => {}
    }
    if !has("headers") && !nats.options.header.is_empty() {
        return Err(link.broken("the server takes no headers, which user-properties become"));
    }
    let (user, password) = (link.username(), link.password());
    let password = password.map(|password| password.reveal());
    let connect = json!({
        "verbose": false,
        "pedantic": false,
        "tls_required": encrypted,
        "lang": "rust",
        "version": env!("CARGO_PKG_VERSION"),
        "protocol": 1,
        "name": &*link.client.name,
        "headers": has("headers"),
        "user": user,
        "pass": password.filter(|_| user.is_some()),
        // A password alone is a token.
        "auth_token": password.filter(|_| user.is_none()),
    });
    Grant::unite(&mut nats.granted, [Grant::size(max_out, "max_payload")]);
    link.client.own.max_out = u32::try_from(max_out).unwrap_or(u32::MAX);
    ask(link, &format!("CONNECT {connect}\r\n"), Awaits::Connect);
    Ok(())
}

fn answered(nats: &Nats, link: &mut NatsLink<'_>, events: &mut dyn Events) -> Result<(), Broken> {
    let pongs = &mut link.client.own.pongs;
    let awaited = pongs.as_mut().and_then(|pongs| pongs.pop_front());
    if pongs.as_ref().is_some_and(|pongs| pongs.is_empty()) {
        *pongs = None; // Nothing is under way: give the memory back.
    }
    match awaited {
        None => return Err(breach(link, "a PONG that nobody asked for")),
        Some(Awaits::SignOfLife) => {}
        Some(Awaits::Connect) => {
            link.connected();
            link.keep_alive(nats.options.keep_alive_s);
            link.report_connected(events, false);
        }
        Some(Awaits::Subscription) => link.report(events, Change::Subscribed),
        Some(Awaits::Refused(why)) => link.report(events, Change::SubscriptionRefused(why)),
    }
    Ok(())
}

/// -ERR: of a subscription it comes before the PONG that follows; all others end the connection.
fn complaint(link: &mut NatsLink<'_>, words: &str) -> Result<(), Broken> {
    let message = format!("{}: the server says: {words}", link.display_endpoint());
    let about_subscription = words.contains("Subscription") || words.starts_with("Invalid Subject");
    let front = link.client.own.pongs.as_mut().and_then(|p| p.front_mut());
    if about_subscription && let Some(front @ Awaits::Subscription) = front {
        *front = Awaits::Refused(format!(
            "{message}\n  hint: this user's permissions or the server's limits may not allow the filter"
        ));
        return Ok(());
    }
    if words.starts_with("Authorization") {
        let (what, hint) = link.login_refused();
        return Err(Broken::new(format!(
            "{message}: {what}\n  hint: {hint}; a password alone is a token"
        )));
    }
    Err(Broken::new(format!(
        "{message}\n  hint: its log may say more; max_pending bounds what waits for a subscriber, max_payload what is taken"
    )))
}
