//! The settings that only this driver knows, `native.amqp.*`.

use pubgauge_driver::{Resolution, Settings};
use pubgauge_net::socket::SocketOptions;
use serde_json::Value;

use crate::options::{Exchange, FRAME_MAX, NAME, Sasl};

/// The driver's own settings, each with what it takes.
const NATIVE: [(&str, &str); 15] = [
    (
        "exchange",
        "\"topic\", \"direct\", \"fanout\" or \"default\"",
    ),
    (
        "exchange-name",
        "a name of 1 to 255 bytes that does not begin with amq.",
    ),
    ("acknowledge", "\"automatic\" or \"manual\""),
    ("prefetch", "a number from 0 to 65535; 0 for no limit"),
    (
        "transactions",
        "messages per commit, a number from 1 to 65535",
    ),
    ("mandatory", "true or false"),
    ("queue-type", "\"classic\" or \"quorum\""),
    ("overflow", "\"drop-head\" or \"reject-publish\""),
    ("max-priority", "a number from 1 to 255"),
    ("frame-max-bytes", "a number from 4096 to 131072"),
    ("sasl", "\"plain\" or \"external\""),
    ("virtual-host", "a name of at most 255 bytes"),
    SocketOptions::NATIVE[0],
    SocketOptions::NATIVE[1],
    SocketOptions::NATIVE[2],
];

/// `native.amqp.*` as given.
#[derive(Default)]
pub(crate) struct Native {
    pub exchange: Option<Exchange>,
    pub exchange_name: Option<String>,
    pub acknowledge: Option<bool>,
    pub prefetch: Option<u16>,
    pub transactions: Option<u16>,
    pub mandatory: Option<bool>,
    pub quorum: Option<bool>,
    pub overflow: Option<&'static str>,
    pub max_priority: Option<u8>,
    pub frame_max: Option<u32>,
    pub sasl: Option<Sasl>,
    pub virtual_host: Option<String>,
    pub socket: SocketOptions,
}

impl Native {
    /// Reads them; what is unknown or out of range is refused in `t`.
    pub fn parse(settings: &Settings, t: &mut Resolution) -> Native {
        let mut native = Native::default();
        t.natives(
            settings,
            NAME,
            &NATIVE.map(|(name, _)| name),
            |name, value| {
                let taken = native.take(name, value);
                taken.map(|()| None).ok_or_else(|| expected(name))
            },
        );
        native
    }

    /// Takes a known setting; `None` if it has no such value.
    fn take(&mut self, name: &str, value: &Value) -> Option<()> {
        let number = value.as_u64();
        let text = value.as_str();
        match name {
            "exchange" => {
                self.exchange = Some(match text? {
                    "topic" => Exchange::Topic,
                    "direct" => Exchange::Direct,
                    "fanout" => Exchange::Fanout,
                    "default" => Exchange::Queue,
                    _ => return None,
                });
            }
            "exchange-name" => {
                let fits = |n: &&str| (1..=255).contains(&n.len()) && !n.starts_with("amq.");
                self.exchange_name = Some(text.filter(fits)?.to_owned());
            }
            "acknowledge" => {
                self.acknowledge = Some(match text? {
                    "automatic" => false,
                    "manual" => true,
                    _ => return None,
                });
            }
            "prefetch" => self.prefetch = Some(u16::try_from(number?).ok()?),
            "transactions" => {
                self.transactions = Some(u16::try_from(number?).ok().filter(|n| *n > 0)?);
            }
            "mandatory" => self.mandatory = Some(value.as_bool()?),
            "queue-type" => {
                self.quorum = Some(match text? {
                    "classic" => false,
                    "quorum" => true,
                    _ => return None,
                });
            }
            "overflow" => {
                self.overflow = Some(match text? {
                    "drop-head" => "drop-head",
                    "reject-publish" => "reject-publish",
                    _ => return None,
                });
            }
            "max-priority" => {
                self.max_priority = Some(u8::try_from(number?).ok().filter(|n| *n > 0)?);
            }
            "frame-max-bytes" => {
                let n = u32::try_from(number?).ok()?;
                self.frame_max = Some(n).filter(|n| (4096..=FRAME_MAX).contains(n));
                self.frame_max?;
            }
            "sasl" => {
                self.sasl = Some(match text? {
                    "plain" => Sasl::Plain,
                    "external" => Sasl::External,
                    _ => return None,
                });
            }
            "virtual-host" => {
                self.virtual_host = Some(text.filter(|n| n.len() <= 255)?.to_owned());
            }
            name => drop(self.socket.take(name, value)?),
        }
        Some(())
    }
}

fn expected(name: &str) -> String {
    let known = NATIVE.iter().find(|(known, _)| *known == name);
    known.map_or(String::new(), |(_, expected)| {
        format!("expected {expected}")
    })
}
