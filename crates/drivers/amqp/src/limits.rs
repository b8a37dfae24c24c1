//! More of what the neutral settings become: limits of queues and windows, batching, the
//! connection, and what AMQP 0-9-1 has nothing for.

use pubgauge_amqp_codec::Value;
use pubgauge_driver::{Batching, OnFull, Settings, Transport};
use pubgauge_net::out::OUT_CAP;

use crate::native::Native;
use crate::options::{
    Answers, DEFAULT_IN_FLIGHT, DEFAULT_MAX_PRIORITY, Exchange, FRAME_MAX, NAME, Options, Table,
    spelt,
};

/// Unconfirmed messages that the driver keeps account of for one publisher.
const MAX_IN_FLIGHT: u32 = 1_000_000;

impl Options {
    /// Limits of the queues that subscribers are given.
    pub fn queues(&mut self, s: &Settings, native: &Native, t: &mut Table) {
        let mut arguments: Vec<(&str, Value<'_>)> = Vec::new();
        let overflow = native.overflow.unwrap_or("drop-head");
        let value = spelt(&s.queue_limit);
        let conflate = s.conflate == Some(true);
        match s.queue_limit {
            None => t.row(
                "queue-limit",
                value,
                "64 KiB of frames per publisher, then back-pressure; none in the server's queues",
            ),
            Some(0) => t.refuse("queue-limit", "0", "a queue needs room for one message"),
            Some(n) if conflate => t.refuse(
                "queue-limit",
                n.to_string(),
                "conflate makes it 1; leave one of them out",
            ),
            Some(n) if s.on_full == Some(OnFull::Block) => t.refuse(
                "queue-limit",
                n.to_string(),
                "the server does not hold a publisher back for a full queue; set on-full = \"drop\", or limit messages under way with in-flight",
            ),
            Some(n) => {
                arguments.push(("x-max-length", Value::Int(i64::from(n))));
                arguments.push(("x-overflow", Value::Long(overflow.as_bytes())));
                t.row(
                    "queue-limit",
                    value,
                    format!("x-max-length {n}, x-overflow {overflow} on each subscriber's queue; what is prefetched does not count"),
                );
            }
        }
        if native.overflow.is_some() && s.queue_limit.is_none() {
            t.refuse("native.amqp.overflow", overflow, "only with queue-limit");
        }
        if overflow == "reject-publish" && self.answers == Answers::Nothing {
            t.refuse(
                "native.amqp.overflow",
                overflow,
                "a rejection is a negative confirm; set reliability = \"at-least-once\"",
            );
        }
        let value = spelt(&s.conflate);
        if conflate {
            arguments.push(("x-max-length", Value::Int(1)));
            arguments.push(("x-overflow", Value::Long(b"drop-head")));
            t.row(
                "conflate",
                value,
                "x-max-length 1, x-overflow drop-head: the newest of what waits in the queue, not of what is prefetched",
            );
        } else {
            t.row("conflate", value, "off");
        }
        if self.priority.is_some() {
            let max = native.max_priority.unwrap_or(DEFAULT_MAX_PRIORITY);
            arguments.push(("x-max-priority", Value::Int(i64::from(max))));
        }
        for table in [&mut self.passing, &mut self.staying] {
            for (name, value) in &arguments {
                // Short names and values always fit.
                let _ = table.push(name, *value);
            }
        }
    }

    pub fn flow(&mut self, s: &Settings, t: &mut Table) {
        let value = spelt(&s.in_flight);
        match s.in_flight {
            Some(n) if n == 0 || n > MAX_IN_FLIGHT => t.refuse(
                "in-flight",
                n.to_string(),
                format!("the driver keeps account of 1 to {MAX_IN_FLIGHT}"),
            ),
            Some(n) if self.answers == Answers::Nothing => t.refuse(
                "in-flight",
                n.to_string(),
                "without publisher confirms nothing is known of what is under way; set reliability = \"at-least-once\"",
            ),
            None if self.answers == Answers::Nothing => {
                t.row("in-flight", value, "no effect: nothing is confirmed");
            }
            n => {
                let n = n.unwrap_or(DEFAULT_IN_FLIGHT);
                self.in_flight = n as usize;
                t.row("in-flight", value, format!("{n} unconfirmed messages per publisher"));
            }
        }
        self.drop_when_full = s.on_full == Some(OnFull::Drop);
        t.row(
            "on-full",
            spelt(&s.on_full),
            if self.drop_when_full {
                "refused as dropped while 64 KiB wait, the window is full or the server says connection.blocked"
            } else {
                "the publisher is held back by TCP, the window, connection.blocked and channel.flow"
            },
        );
        let value = spelt(&s.batching);
        match s.batching {
            None | Some(Batching::Adaptive) => t.row(
                "batching",
                value,
                "frames gather until 16 KiB or until the worker has nothing due, whichever is first",
            ),
            Some(Batching::Off) => {
                self.batch = 0;
                t.row("batching", value, "one write per message");
            }
            Some(Batching::Bytes(0)) => {
                t.refuse("batching", "0 bytes", "use batching = \"off\" for one write per message");
            }
            Some(Batching::Bytes(n)) if n as usize > OUT_CAP => t.refuse(
                "batching",
                format!("{n} bytes"),
                format!("at most {OUT_CAP} bytes wait in the driver"),
            ),
            Some(Batching::Bytes(n)) => {
                self.batch = n as usize;
                t.row(
                    "batching",
                    value,
                    format!("frames gather until {n} bytes or until the worker has nothing due, whichever is first"),
                );
            }
        }
    }

    pub fn connection(&mut self, s: &Settings, native: &Native, t: &mut Table) {
        self.heartbeat_s = s.keep_alive_s;
        self.frame_max = native.frame_max.unwrap_or(FRAME_MAX);
        self.sasl = native.sasl;
        self.virtual_host = native.virtual_host.clone();
        self.no_delay = native.no_delay.unwrap_or(true);
        self.send_buffer = native.send_buffer;
        self.receive_buffer = native.receive_buffer;
        t.row(
            "keep-alive-s",
            spelt(&s.keep_alive_s),
            match s.keep_alive_s {
                None => "heartbeats as the server proposes".to_owned(),
                Some(0) => "no heartbeats".to_owned(),
                Some(n) => format!("heartbeat {n} s"),
            },
        );
    }

    /// Rows of the native settings that were given.
    pub fn natives(&mut self, s: &Settings, t: &mut Table) {
        for (name, value) in s.native.get(NAME).into_iter().flatten() {
            let value = match value {
                serde_json::Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let native = match name.as_str() {
                "exchange" => match self.exchange {
                    Exchange::Queue => "the default exchange".to_owned(),
                    _ => format!("the exchange {}", self.exchange_name()),
                },
                "exchange-name" => format!(
                    "exchange.declare of {value}, {}{}",
                    self.exchange_kind(),
                    if self.persistent { ", durable" } else { "" }
                ),
                "acknowledge" if self.acknowledge => {
                    "basic.ack, one for all deliveries of a read".to_owned()
                }
                "acknowledge" => "no-ack in basic.consume".to_owned(),
                "prefetch" => match self.prefetch {
                    0 => "no basic.qos".to_owned(),
                    n => format!("basic.qos {n} per consumer"),
                },
                "transactions" => {
                    format!(
                        "tx.commit after {value} messages, or when the worker has nothing due; the publisher is held back until its answer"
                    )
                }
                "mandatory" if self.mandatory => {
                    "mandatory, and a message-id of 16 digits, so that one that comes back is known"
                        .to_owned()
                }
                "mandatory" => {
                    "not mandatory: what no queue gets is confirmed all the same".to_owned()
                }
                "queue-type" => format!("x-queue-type {value}"),
                "overflow" => format!("x-overflow {value}"),
                "max-priority" => format!("x-max-priority {value}"),
                "frame-max-bytes" => {
                    format!(
                        "frames of {value} bytes at most, or what the server allows if that is less"
                    )
                }
                "sasl" => format!("SASL {}", value.to_uppercase()),
                "virtual-host" => format!("connection.open of {value}"),
                "no-delay" => format!("TCP_NODELAY {}", u8::from(self.no_delay)),
                "send-buffer-bytes" => format!("SO_SNDBUF {value}"),
                "receive-buffer-bytes" => format!("SO_RCVBUF {value}"),
                _ => continue,
            };
            t.row(&format!("native.amqp.{name}"), Some(value), native);
        }
    }
}

/// Settings that AMQP 0-9-1 over TCP has nothing for.
pub(crate) fn absent(s: &Settings, t: &mut Table) {
    match s.last_value {
        Some(true) => t.refuse(
            "last-value",
            "true",
            "AMQP 0-9-1 exchanges keep no messages (RabbitMQ's recent-history plug-in keeps an exchange's last ones, not each topic's); use a system with last values, for example MQTT",
        ),
        value => t.row("last-value", spelt(&value), "off: exchanges keep nothing"),
    }
    match s.multicast {
        Some(true) => t.refuse(
            "multicast",
            "true",
            "AMQP runs over TCP: the server sends each subscriber its own copy; leave it out",
        ),
        value => t.row(
            "multicast",
            spelt(&value),
            "off: one TCP copy for each subscriber",
        ),
    }
    match s.rate_limit_bytes_per_s {
        Some(n) => t.refuse(
            "rate-limit-bytes-per-s",
            n.to_string(),
            "an AMQP client cannot tell the server to limit its rate; shape the link in the testbed or lower the workload's rate",
        ),
        None => t.row("rate-limit-bytes-per-s", None, "none"),
    }
    match s.transport {
        None | Some(Transport::Tcp) => t.row(
            "transport",
            spelt(&s.transport),
            "TCP; with TLS where the endpoint is amqps://",
        ),
        Some(_) => t.refuse(
            "transport",
            spelt(&s.transport).unwrap_or_default(),
            "this driver speaks AMQP over TCP (amqp://) and TLS (amqps://) only",
        ),
    }
}
