//! Neutral and native settings in libzmq's terms.

use pubgauge_driver::{
    Batching, Durability, MessagingPattern, OnFull, Reliability, Resolution, Resolved, Session,
    Settings, Target, Traits, Transport, becomes, cannot, spelt,
};

use crate::native::{Framing, NATIVE, PlusWildcard, ZeromqNative};

/// How publishers and subscribers find each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topology {
    /// Each publisher binds an address of its own, and each subscriber connects to the
    /// publishers it listens to. No system in between.
    Direct,
    /// All connect to an XSUB/XPUB forwarder ([`crate::forwarder`]).
    Forwarder,
}

impl Topology {
    /// A system with endpoints is made of forwarders.
    pub(crate) fn for_target(target: &Target) -> Self {
        if target.endpoints.is_empty() {
            Topology::Direct
        } else {
            Topology::Forwarder
        }
    }
}

/// Fate of a message that finds the queue full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    /// The publisher is held back: XPUB with ZMQ_XPUB_NODROP.
    Block,
    /// The message is dropped: PUB.
    Drop,
    /// It takes the place of the one before: PUB and SUB with ZMQ_CONFLATE.
    Conflate,
}

/// Settings in libzmq's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ZeromqOptions {
    /// PUSH/PULL in place of PUB/SUB.
    pub(crate) point_to_point: bool,
    pub(crate) queue: Queue,
    pub(crate) transport: Option<Transport>,
    /// Messages per connection; 0 is no limit.
    pub(crate) send_hwm: i32,
    /// Messages per connection; 0 is no limit.
    pub(crate) receive_hwm: i32,
    pub(crate) heartbeat_ms: i32,
    pub(crate) type_of_service: i32,
    pub(crate) plus_at_receiver: bool,
    pub(crate) native: ZeromqNative,
}

/// libzmq's own default of ZMQ_SNDHWM and ZMQ_RCVHWM (zmq_setsockopt(3)).
pub(crate) const DEFAULT_HWM: i32 = 1000;

impl ZeromqOptions {
    /// How the system behaves under these options.
    pub(crate) fn traits(&self) -> Traits {
        let blocks = self.queue == Queue::Block;
        Traits {
            publishers_first: true,
            // With one unlimited queue on the way, no surplus reaches the publisher as
            // back-pressure.
            back_pressure: blocks && self.send_hwm != 0 && self.receive_hwm != 0,
            acknowledges: false,
            may_duplicate: false,
            publish_sleeps: false,
        }
    }
}

/// Translates `settings`, or names every setting that cannot be honoured.
pub(crate) fn resolve(settings: &Settings, topology: Topology) -> Resolved<ZeromqOptions> {
    let mut answer = Resolution::default();
    let native = NATIVE.read(settings, &mut answer);
    let plus_at_receiver = native.plus_wildcard == PlusWildcard::FilterAtReceiver;
    let queue = queue(settings);

    let point_to_point = settings.pattern == Some(MessagingPattern::PointToPoint);
    let sockets = if !point_to_point {
        "PUB/SUB"
    } else {
        "PUSH/PULL"
    };
    answer.decide("pattern", settings.pattern, |p| match (p, topology) {
        (None | Some(MessagingPattern::PublishSubscribe), _) => becomes("PUB/SUB sockets"),
        (Some(MessagingPattern::PointToPoint), Topology::Direct) => becomes(
            "a PUSH socket for each topic of a publisher, whose receivers' PULL sockets share it \
             in turn; a subscription on the publisher's XPUB socket tells them where it is",
        ),
        (Some(MessagingPattern::PointToPoint), Topology::Forwarder) => cannot(
            "a forwarder of PUSH/PULL (ZMQ_STREAMER) has one queue for all topics, so that \
             receivers would take what others are to get; use ZeroMQ without a forwarder \
             (zeromq-direct)",
        ),
        (Some(MessagingPattern::RequestReply), _) => cannot(
            "this driver speaks PUB/SUB and PUSH/PULL, REQ/REP is not built in; use a ping-pong \
             workload, which asks and answers on two topics",
        ),
    });
    answer.decide("reliability", settings.reliability, |r| match r {
        None | Some(Reliability::AtMostOnce | Reliability::BestEffort) => becomes(format!(
            "no acknowledgement and no resending (all that ZeroMQ {sockets} has)"
        )),
        Some(_) => cannot(format!(
            "ZeroMQ {sockets} has no acknowledgements; use at-most-once, with on-full = \"block\" \
             if nothing may be lost while connections stay up"
        )),
    });
    answer.decide("durability", settings.durability, |d| match d {
        None | Some(Durability::Memory) => becomes("messages live in memory"),
        Some(_) => cannot("ZeroMQ keeps messages in memory only; use memory"),
    });
    answer.decide("session", settings.session, |s| match s {
        None | Some(Session::Clean) => becomes("forgotten with its connection"),
        Some(_) => cannot("ZeroMQ remembers no subscriber that has gone; use clean"),
    });
    answer.absent(
        "session-expiry-s",
        &settings.session_expiry_s,
        "no sessions",
        "ZeroMQ has no sessions; leave it out",
    );
    answer.decide("last-value", settings.last_value, |l| match l {
        None | Some(false) => becomes("none kept"),
        Some(true) => cannot("ZeroMQ keeps no last value for late subscribers; leave it out"),
    });
    answer.absent(
        "lifespan-ms",
        &settings.lifespan_ms,
        "messages do not expire",
        "ZeroMQ messages do not expire; conflate = true keeps only the newest",
    );
    answer.absent(
        "in-flight",
        &settings.in_flight,
        "nothing is acknowledged",
        &format!(
            "ZeroMQ {sockets} has no acknowledgements, hence no window; queue-limit bounds the \
             queues"
        ),
    );
    let (send_hwm, receive_hwm) = high_water_marks(&mut answer, settings, &native, queue);
    if point_to_point {
        on_full_of_push(&mut answer, settings, send_hwm);
    } else {
        on_full(&mut answer, settings, queue, send_hwm);
    }
    answer.decide("batching", settings.batching, |b| match b {
        None | Some(Batching::Adaptive) => {
            becomes("libzmq's own: what is waiting goes out together, up to 8192 bytes")
        }
        Some(Batching::Off) => {
            cannot("libzmq gathers waiting messages itself and has no switch for it; use adaptive")
        }
        Some(Batching::Bytes(_)) => cannot(
            "the batch size of libzmq 4.3.4 is fixed at 8192 bytes (ZMQ_OUT_BATCH_SIZE is in its \
             draft interface only); use adaptive",
        ),
    });
    let type_of_service = priority(&mut answer, settings, &native);
    answer.decide("multicast", settings.multicast, |m| match m {
        None | Some(false) if point_to_point => becomes("one transmission, to one receiver"),
        None | Some(false) => becomes("one transmission per subscriber"),
        Some(true) => cannot(
            "needs libzmq's pgm transport, which the bundled build does not contain; leave it out",
        ),
    });
    answer.absent(
        "rate-limit-bytes-per-s",
        &settings.rate_limit_bytes_per_s,
        "no limit",
        "ZMQ_RATE works on multicast (pgm) only, which the bundled build does not contain; limit \
         the link in the testbed instead",
    );
    conflate(&mut answer, settings, &native, topology);
    answer.decide("transport", settings.transport, |t| match (t, topology) {
        (None, Topology::Direct) | (Some(Transport::Tcp), _) => becomes("tcp://"),
        (None, Topology::Forwarder) => becomes("as the forwarder's address says"),
        (Some(Transport::Ipc), _) => becomes("ipc://"),
        (Some(Transport::Udp), _) => {
            cannot("libzmq offers udp to RADIO/DISH sockets only, not to PUB/SUB; use tcp or ipc")
        }
        (Some(Transport::SharedMemory), _) => {
            cannot("libzmq's inproc joins threads of one process, not processes; use ipc")
        }
    });
    let heartbeat_ms = i32::from(settings.keep_alive_s.unwrap_or(0)) * 1000;
    answer.decide(
        "keep-alive-s",
        settings.keep_alive_s,
        |_| match heartbeat_ms {
            0 => becomes("ZMQ_HEARTBEAT_IVL 0 (no heartbeats)"),
            ms => becomes(format!("ZMQ_HEARTBEAT_IVL {ms} ms")),
        },
    );
    answer.absent(
        "user-properties",
        &settings.user_properties.as_ref().filter(|p| !p.is_empty()),
        "none",
        "a ZeroMQ message has no properties; leave them out",
    );
    if point_to_point && plus_at_receiver {
        answer.refuse(
            "native.zeromq.plus-wildcard",
            "filter-at-receiver",
            "under point-to-point a receiver names its topic; leave it out",
        );
    }

    let options = ZeromqOptions {
        point_to_point,
        queue,
        transport: settings.transport,
        send_hwm,
        receive_hwm,
        heartbeat_ms,
        type_of_service,
        plus_at_receiver,
        native,
    };
    answer.finish(options)
}

/// The mark in the IP header for a neutral priority (-10 to 10): a class selector of RFC 2474,
/// from CS1 (lower effort, RFC 3662) over none to CS5. CS6 and CS7 belong to the network itself.
pub(crate) fn type_of_service(priority: i32) -> i32 {
    let class = match priority {
        ..0 => 1,
        0 => 0,
        p => 2 + (p.min(10) - 1) * 4 / 10,
    };
    class << 5
}

fn queue(settings: &Settings) -> Queue {
    match (settings.conflate, settings.on_full) {
        (Some(true), _) => Queue::Conflate,
        (_, Some(OnFull::Drop)) => Queue::Drop,
        _ => Queue::Block,
    }
}

fn high_water_marks(
    answer: &mut Resolution,
    settings: &Settings,
    native: &ZeromqNative,
    queue: Queue,
) -> (i32, i32) {
    let limit = settings.queue_limit;
    let neutral = match limit.map(i32::try_from) {
        None => DEFAULT_HWM,
        Some(Ok(limit)) => limit,
        Some(Err(_)) => {
            answer.refuse(
                "queue-limit",
                spelt(&limit).unwrap_or_default(),
                "libzmq counts to 2147483647; 0 means no limit",
            );
            return (DEFAULT_HWM, DEFAULT_HWM);
        }
    };
    let send = native.send_hwm.unwrap_or(neutral);
    let receive = native.receive_hwm.unwrap_or(neutral);
    if queue == Queue::Conflate {
        answer.decide("queue-limit", limit, |l| match l {
            None => becomes("one message (ZMQ_CONFLATE)"),
            Some(_) => cannot(
                "with conflate = true each queue holds one message, whatever the limit; leave one \
                 of them out",
            ),
        });
    } else {
        let text = format!(
            "ZMQ_SNDHWM {send}, ZMQ_RCVHWM {receive} messages per connection{}",
            if send == 0 || receive == 0 {
                " (0: no limit)"
            } else {
                ""
            }
        );
        answer.row("queue-limit", spelt(&limit), text);
    }
    (send, receive)
}

fn on_full(answer: &mut Resolution, settings: &Settings, queue: Queue, send_hwm: i32) {
    answer.decide("on-full", settings.on_full, |asked| match (queue, asked) {
        (Queue::Conflate, Some(OnFull::Block)) => cannot(
            "with conflate = true a full queue gives up its message instead of blocking; leave \
             one of them out",
        ),
        (Queue::Conflate, _) => becomes("the newest message stays (PUB, ZMQ_CONFLATE)"),
        (Queue::Block, _) if send_hwm == 0 => {
            becomes("XPUB; nothing blocks, as queues have no limit")
        }
        (Queue::Block, _) => becomes("XPUB with ZMQ_XPUB_NODROP: the publisher is held back"),
        (Queue::Drop, _) => {
            becomes("PUB: libzmq drops without a word what finds ZMQ_SNDHWM reached")
        }
    });
}

fn on_full_of_push(answer: &mut Resolution, settings: &Settings, send_hwm: i32) {
    answer.decide("on-full", settings.on_full, |asked| match asked {
        Some(OnFull::Drop) => cannot("PUSH never drops; use block"),
        _ if send_hwm == 0 => becomes("PUSH; blocks only while nobody receives"),
        _ => becomes("PUSH: the publisher is held back by full queues, and while nobody receives"),
    });
}

fn priority(answer: &mut Resolution, settings: &Settings, native: &ZeromqNative) -> i32 {
    let ipc = settings.transport == Some(Transport::Ipc);
    let no_packets = "ZMQ_TOS marks IP packets; local sockets have none. Use tcp";
    let asked = settings.priority;
    answer.decide("priority", asked, |p| match (p, native.type_of_service) {
        (None, _) => becomes("no mark"),
        (Some(_), Some(_)) => {
            cannot("native.zeromq.tos says the same in other words; leave one of them out")
        }
        (Some(_), _) if ipc => cannot(no_packets),
        (Some(p), _) if !(-10..=10).contains(&p) => cannot("a priority lies between -10 and 10"),
        (Some(p), _) => becomes(format!(
            "ZMQ_TOS {}: a mark on the packets, which queues on the way may honour; the \
             order within libzmq stays",
            type_of_service(p)
        )),
    });
    if let Some(mark) = native.type_of_service.filter(|_| ipc) {
        answer.refuse("native.zeromq.tos", mark.to_string(), no_packets);
    }
    native
        .type_of_service
        .unwrap_or_else(|| type_of_service(asked.unwrap_or(0)))
}

fn conflate(
    answer: &mut Resolution,
    settings: &Settings,
    native: &ZeromqNative,
    topology: Topology,
) {
    answer.decide("conflate", settings.conflate, |c| match (c, topology) {
        (None | Some(false), _) => becomes("no"),
        (Some(true), _) if settings.pattern == Some(MessagingPattern::PointToPoint) => {
            cannot("a message for one receiver is not replaced by a newer one; leave it out")
        }
        (Some(true), _) if native.framing == Framing::Multipart => cannot(
            "ZMQ_CONFLATE works on messages of one frame only; use native.zeromq.framing = \
             \"single-frame\"",
        ),
        (Some(true), Topology::Direct) => becomes(
            "ZMQ_CONFLATE at publisher and subscriber: one message per connection, whatever its \
             topic; what is in the sockets still arrives",
        ),
        (Some(true), Topology::Forwarder) => becomes(
            "ZMQ_CONFLATE at publisher and subscriber: one message per connection, whatever its \
             topic; the forwarder's own queues are not conflated (libzmq cannot, on XSUB and XPUB)",
        ),
    });
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
