//! Translates the neutral settings to XMPP, and names those that it cannot honour.

use pubgauge_driver::{
    Durability, MessagingPattern, Resolution, Resolved, Session, Settings, becomes, cannot, spelt,
};
use pubgauge_net::fleet::{Terms, Tuning};

use crate::native::NATIVE;
use crate::sasl::Choice;

/// Default for the most publish requests in flight per publisher.
const DEFAULT_IN_FLIGHT: u32 = 100;

const MAX_IN_FLIGHT: u32 = 1 << 20;
const DEFAULT_KEEP_ALIVE_S: u16 = 60;
const DEFAULT_DISCOVERY_INTERVAL_MS: u32 = 1000;

const TERMS: Terms = Terms {
    protocol: "XMPP",
    units: "stanzas",
    unit: "stanza",
    tcp: "TCP; STARTTLS where the endpoint is xmpp+starttls://, TLS from the start where it is xmpps://",
    not_tcp: "this driver speaks XMPP over TCP, with or without TLS, only",
};

/// The settings as the fleet uses them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct XmppOptions {
    /// Messages to one receiver instead of items of a node.
    pub direct: bool,
    pub last_value: bool,
    pub in_flight: usize,
    pub tuning: Tuning,
    pub keep_alive_s: u16,
    pub mechanism: Choice,
    pub service: Option<String>,
    /// Milliseconds between two searches for nodes that match a wildcard; 0 for one search only.
    pub discovery_interval_ms: u32,
}

impl XmppOptions {
    /// Resolves the settings for a system with these features.
    pub fn resolve(settings: &Settings, features: &[String]) -> Resolved<XmppOptions> {
        let mut table = Resolution::default();
        let native = NATIVE.read(settings, &mut table);
        let mut options = XmppOptions {
            direct: settings.pattern == Some(MessagingPattern::PointToPoint),
            last_value: settings.last_value.unwrap_or(false),
            in_flight: settings.in_flight.unwrap_or(DEFAULT_IN_FLIGHT) as usize,
            tuning: Tuning::resolve(settings, native.socket, TERMS, &mut table),
            keep_alive_s: settings.keep_alive_s.unwrap_or(DEFAULT_KEEP_ALIVE_S),
            mechanism: mechanism(native.mechanism, features, &mut table),
            service: native.pubsub_service.map(|service| service.0),
            discovery_interval_ms: native
                .discovery_interval_ms
                .unwrap_or(DEFAULT_DISCOVERY_INTERVAL_MS),
        };
        options.pattern(settings, &mut table);
        delivery(settings, &mut table);
        options.message(settings, &mut table);
        options.flow(settings, &mut table);
        absent(settings, &mut table);
        options.connection(settings, &mut table);
        if (1..10).contains(&options.discovery_interval_ms) {
            table.refuse(
                "native.xmpp.discovery-interval-ms",
                options.discovery_interval_ms.to_string(),
                "expected 0, or a number from 10 to 3600000",
            );
        }
        table.finish(options)
    }

    fn pattern(&self, s: &Settings, t: &mut Resolution) {
        t.decide("pattern", s.pattern, |pattern| match pattern {
            None | Some(MessagingPattern::PublishSubscribe) => becomes(
                "a leaf node for each topic (XEP-0060): publish requests, item notifications",
            ),
            Some(MessagingPattern::PointToPoint) if self.mechanism == Choice::Anonymous => cannot(
                "the server gives anonymous clients their addresses, so that no sender knows them; take a system with an account",
            ),
            Some(MessagingPattern::PointToPoint) => becomes(
                "<message type='headline'> to ACCOUNT/TOPIC: the topic is the receiver's resource, and whoever subscribes to it binds that",
            ),
            Some(MessagingPattern::RequestReply) => cannot(
                "XMPP's <iq> asks a client and brings its answer back, but this driver's receivers answer by messages of their own; use a ping-pong workload, which asks and answers on two topics",
            ),
        });
    }

    fn message(&self, s: &Settings, t: &mut Resolution) {
        t.decide("last-value", s.last_value, |_| {
            match (self.last_value, self.direct) {
                (true, true) => cannot(
                    "a message to a receiver who is not there is not kept; use pattern = \"publish-subscribe\"",
                ),
                (true, false) => becomes(
                    "nodes with persist_items, max_items 1 and send_last_published_item on_sub; every item has the identifier `current`",
                ),
                (false, true) => becomes("none"),
                (false, false) => {
                    becomes("nodes without persist_items, send_last_published_item never")
                }
            }
        });
        t.absent(
            "lifespan-ms",
            &s.lifespan_ms,
            "notifications do not expire",
            "XMPP notifications do not expire (XEP-0060's item_expire is about stored items, and ejabberd 23.01 does not have it); leave it out",
        );
        t.absent(
            "user-properties",
            &s.user_properties.as_ref().filter(|p| !p.is_empty()),
            "none",
            "an item has one payload and no properties (XEP-0060 §7.1); put them into the payload",
        );
    }

    fn flow(&mut self, s: &Settings, t: &mut Resolution) {
        t.decide("in-flight", s.in_flight, |asked| match asked {
            Some(_) if self.direct => {
                cannot("messages to a receiver are not answered; TCP alone holds the sender back")
            }
            None if self.direct => becomes("not limited: messages are not answered"),
            Some(n) if n == 0 || n > MAX_IN_FLIGHT => {
                cannot(format!("expected 1 to {MAX_IN_FLIGHT}"))
            }
            _ => becomes(format!(
                "{} unanswered publish requests per publisher",
                self.in_flight
            )),
        });
        t.absent(
            "queue-limit",
            &s.queue_limit,
            "64 KiB of stanzas per publisher, then back-pressure",
            "the driver's queue is bounded in bytes, not messages; to bound messages under way use in-flight",
        );
        t.row(
            "on-full",
            spelt(&s.on_full),
            match (self.tuning.drop_when_full, self.direct) {
                (true, _) => "refused as dropped while 64 KiB wait or the window is full",
                (false, false) => "the publisher is held back by TCP and the window",
                (false, true) => "the sender is held back by TCP",
            },
        );
    }

    fn connection(&self, s: &Settings, t: &mut Resolution) {
        t.row(
            "keep-alive-s",
            spelt(&s.keep_alive_s),
            match self.keep_alive_s {
                0 => "none".to_owned(),
                n => format!("XMPP Ping (XEP-0199) after {n} s without a word to the server"),
            },
        );
    }
}

/// How clients log in. A system's file says which mechanisms its server has.
fn mechanism(asked: Choice, features: &[String], t: &mut Resolution) -> Choice {
    let offered: Vec<&str> = Choice::ALL
        .into_iter()
        .filter_map(Choice::mechanism)
        .filter(|name| features.iter().any(|f| f == name))
        .collect();
    match asked.mechanism() {
        None if offered == ["anonymous"] => Choice::Anonymous,
        Some(name) if !offered.is_empty() && !offered.contains(&name) => {
            t.refuse(
                "native.xmpp.mechanism",
                name,
                format!(
                    "this system's file lists {} and not `{name}`",
                    offered.join(", ")
                ),
            );
            asked
        }
        _ => asked,
    }
}

/// Reliability, durability, sessions.
fn delivery(s: &Settings, t: &mut Resolution) {
    t.decide("reliability", s.reliability, |_| if s.may_lose() { becomes(
        "as TCP delivers: nobody acknowledges a notification, and what a lost connection swallows is gone",
    ) } else { cannot(
        "XMPP delivers as best it can: the answer to a publish request says that the server has the item, but no subscriber acknowledges a notification (stream management, XEP-0198, is not spoken by this driver); use at-most-once",
    ) });
    t.decide("durability", s.durability, |durability| match durability {
        None | Some(Durability::Memory) => becomes(
            "notifications are not stored; a last value is where the server keeps its nodes",
        ),
        Some(_) => cannot(
            "notifications are sent on at once and not stored; a server may keep items on disk, but sends none of them again by itself except the last",
        ),
    });
    t.decide("session", s.session, |session| match session {
        None | Some(Session::Clean) => {
            becomes("clean: subscriptions of full addresses, ended at disconnection")
        }
        Some(Session::Durable) => cannot(
            "a server keeps subscriptions, but does not keep for an absent subscriber what it missed (XEP-0060 §12.1)",
        ),
    });
    t.absent(
        "session-expiry-s",
        &s.session_expiry_s,
        "ends with the connection",
        "XMPP sessions end with their connection; leave it out",
    );
}

/// Refuses the settings that XMPP cannot honour.
fn absent(s: &Settings, t: &mut Resolution) {
    t.absent(
        "priority",
        &s.priority,
        "none: stanzas go out in their order",
        "XMPP keeps the order of stanzas between two addresses (RFC 6120 §10.1), so that none may overtake; leave it out",
    );
    t.absent(
        "rate-limit-bytes-per-s",
        &s.rate_limit_bytes_per_s,
        "none of the client's; the server's shaper is its own configuration",
        "an XMPP client cannot tell the server to limit its rate; give the server a shaper, or lower the workload's rate",
    );
    t.absent(
        "conflate",
        &s.conflate,
        "off",
        "XMPP servers send every notification; last-value keeps the newest for late subscribers only",
    );
}
