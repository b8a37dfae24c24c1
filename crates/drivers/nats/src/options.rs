//! Translates the neutral settings to core NATS, and names those that it cannot honour.

use pubgauge_driver::{
    Durability, MessagingPattern, NativeSettings, Resolution, Resolved, Session, Settings, becomes,
    cannot, spelt,
};
use pubgauge_net::fleet::{Terms, Tuning};
use pubgauge_net::socket::SocketOptions;

/// The driver's name in study files.
pub(crate) const NAME: &str = "nats";

/// `native.nats.*`: those of a socket.
pub(crate) static NATIVE: NativeSettings<SocketOptions> = NativeSettings::for_driver(NAME);

const DEFAULT_KEEP_ALIVE_S: u16 = 60;

const TERMS: Terms = Terms {
    protocol: "NATS",
    units: "messages",
    unit: "message",
    tcp: "TCP; with TLS after INFO where the endpoint is nats+tls://",
    not_tcp: "this driver speaks NATS over TCP, with or without TLS, only",
};

/// The settings as the fleet uses them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NatsOptions {
    pub tuning: Tuning,
    pub keep_alive_s: u16,
    /// The header of every message; empty for none.
    pub header: Vec<u8>,
}

impl NatsOptions {
    pub fn resolve(s: &Settings) -> Resolved<NatsOptions> {
        let mut table = Resolution::default();
        let t = &mut table;
        let socket = NATIVE.read(s, t);
        delivery(s, t);
        absent(s, t);
        let options = NatsOptions {
            tuning: Tuning::resolve(s, socket, TERMS, t),
            keep_alive_s: s.keep_alive_s.unwrap_or(DEFAULT_KEEP_ALIVE_S),
            header: header(s, t),
        };
        options.connection(s, t);
        table.finish(options)
    }

    fn connection(&self, s: &Settings, t: &mut Resolution) {
        let on_full = if self.tuning.drop_when_full {
            "refused as dropped while 64 KiB wait"
        } else {
            "the publisher is held back by TCP"
        };
        t.row("on-full", spelt(&s.on_full), on_full);
        let keep_alive = match self.keep_alive_s {
            0 => "none, but the server's PING is answered".to_owned(),
            n => format!("PING after {n} s without a word to the server"),
        };
        t.row("keep-alive-s", spelt(&s.keep_alive_s), keep_alive);
    }
}

fn delivery(s: &Settings, t: &mut Resolution) {
    t.decide("pattern", s.pattern, |pattern| match pattern {
        None | Some(MessagingPattern::PublishSubscribe) => becomes(
            "PUB to a subject, SUB to subjects: a/b/c is a.b.c, + is *, # is >, which needs one more level; . * > % and white space within a level are %XX",
        ),
        Some(MessagingPattern::PointToPoint) => cannot(
            "NATS has subjects and no addressees: whoever may subscribe to a device's subject gets its messages too; give each device a topic of its own and use publish-subscribe",
        ),
        Some(MessagingPattern::RequestReply) => cannot(
            "a reply is a message to the asker's inbox subject; use a ping-pong workload, which asks and answers on two topics",
        ),
    });
    t.decide("reliability", s.reliability, |_| if s.may_lose() { becomes("at most once: nothing is acknowledged") } else { cannot(
        "core NATS keeps nothing and acknowledges nothing; that takes JetStream, which this driver does not speak",
    ) });
    t.decide("durability", s.durability, |durability| match durability {
        None | Some(Durability::Memory) => becomes("nothing is kept"),
        Some(_) => cannot("core NATS writes nothing to disk"),
    });
    t.decide("session", s.session, |session| match session {
        None | Some(Session::Clean) => becomes("ends with the connection"),
        Some(Session::Durable) => cannot("core NATS forgets a client with its connection"),
    });
}

/// Settings that core NATS cannot honour, each with the reason.
const ABSENT: [(&str, &str); 8] = [
    ("session-expiry-s", "core NATS has no sessions"),
    ("last-value", "core NATS keeps no last values"),
    ("lifespan-ms", "messages do not wait in core NATS"),
    ("in-flight", "core NATS acknowledges nothing"),
    (
        "queue-limit",
        "the driver's queue is bounded in bytes: 64 KiB",
    ),
    ("priority", "messages go out in their order"),
    ("rate-limit-bytes-per-s", "NATS clients set no rates"),
    ("conflate", "NATS servers queue every message"),
];

fn absent(s: &Settings, t: &mut Resolution) {
    let given = serde_json::to_value(s).unwrap_or_default();
    for (name, why) in ABSENT {
        let given = given.get(name).filter(|value| !value.is_null());
        t.absent(name, &given, why, &format!("{why}; leave it out"));
    }
}

/// The header of every message (ADR-4 of nats-architecture-and-design).
fn header(s: &Settings, t: &mut Resolution) -> Vec<u8> {
    let given = s.user_properties.iter().flatten();
    let line_end = |text: &str| text.contains(['\r', '\n']);
    let odd = |(key, value): &(&String, &String)| {
        key.is_empty() || key.contains(':') || line_end(key) || line_end(value)
    };
    if let Some((key, _)) = given.clone().find(odd) {
        let reason = "a header's name is not empty and has no : in it, and neither it nor the value has an end of line";
        t.refuse("user-properties", format!("{key:?}"), reason);
        return Vec::new();
    }
    let lines: Vec<String> = given.map(|(k, v)| format!("{k}: {v}\r\n")).collect();
    let (words, header) = match lines.len() {
        0 => ("none".to_owned(), String::new()),
        n => (
            format!("{n} headers of every HPUB"),
            format!("NATS/1.0\r\n{}\r\n", lines.concat()),
        ),
    };
    t.row("user-properties", spelt(&s.user_properties), words);
    header.into_bytes()
}
