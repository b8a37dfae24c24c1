//! Neutral and native settings as QoS policies and configuration of Cyclone DDS.

use pubgauge_dds::settings::{decide_common, is_reliable};
use pubgauge_driver::{
    Batching, Durability, OnFull, Resolution, Resolved, Settings, Traits, Transport, becomes,
    cannot,
};

use crate::native::{CycloneNative, Multicast};

/// Cyclone's default of General/MaxMessageSize, bytes.
pub(crate) const DEFAULT_MESSAGE: u32 = 14_720;

/// Largest datagram that leaves room for the headers of IP and UDP.
const LARGEST_MESSAGE: u32 = 65_000;

/// KEEP_LAST depth where messages may be dropped and the settings do not say how many are kept.
const DEFAULT_DEPTH: i32 = 1000;

/// Default for the most messages in a reader's cache.
const DEFAULT_CACHE: u32 = 20_000;

/// Default for the most payload bytes in a reader's cache.
const CACHE_BYTES: usize = 128 << 20;

/// Settings in DDS's terms.
#[derive(Clone, Debug)]
pub(crate) struct CycloneOptions {
    pub(crate) reliable: bool,
    /// KEEP_LAST depth of writers; 0 is KEEP_ALL.
    pub(crate) writer_depth: i32,
    /// KEEP_LAST depth of readers; 0 is KEEP_ALL.
    pub(crate) reader_depth: i32,
    /// Messages in a KEEP_ALL reader before nothing more is received, if asked for.
    pub(crate) cache: Option<u32>,
    pub(crate) last_value: bool,
    pub(crate) lifespan_ms: Option<i64>,
    pub(crate) batching: Batching,
    /// General/MaxMessageSize, bytes.
    pub(crate) max_message_bytes: u32,
    pub(crate) multicast: Option<Multicast>,
    pub(crate) keep_alive_s: Option<u16>,
    pub(crate) native: CycloneNative,
}

impl CycloneOptions {
    /// How the system behaves under these options.
    pub(crate) fn traits(&self) -> Traits {
        let keeps_all = self.reliable && self.writer_depth == 0;
        Traits {
            publishers_first: false,
            back_pressure: keeps_all,
            acknowledges: false,
            // See native.cyclonedds.max-samples.
            may_duplicate: self.native.max_samples.is_some(),
            publish_sleeps: true,
        }
    }

    /// How many messages of up to `max_payload` bytes a reader may have that were not taken before
    /// nothing more is received; 0 is no limit, as KEEP_LAST has its own.
    pub(crate) fn cache_limit(&self, max_payload: usize) -> u32 {
        match (self.cache, self.reader_depth) {
            (Some(limit), 0) => limit,
            (None, 0) => {
                let fitting = CACHE_BYTES / max_payload.max(1);
                u32::try_from(fitting)
                    .unwrap_or(u32::MAX)
                    .clamp(64, DEFAULT_CACHE)
            }
            (_, _) => 0,
        }
    }
}

/// Translates `settings`, or names every setting that cannot be honoured.
pub(crate) fn resolve(settings: &Settings) -> Resolved<CycloneOptions> {
    let mut answer = Resolution::default();
    let native = CycloneNative::read(settings, &mut answer);

    decide_common(&mut answer, settings);
    let reliable = is_reliable(settings);
    answer.decide("durability", settings.durability, |d| match d {
        None | Some(Durability::Memory) if settings.last_value == Some(true) => {
            becomes("DURABILITY TRANSIENT_LOCAL: kept in the writer's memory")
        }
        None | Some(Durability::Memory) => becomes("DURABILITY VOLATILE"),
        Some(_) => cannot(
            "DURABILITY PERSISTENT needs a durability service, which Cyclone DDS does not \
             have; use memory",
        ),
    });
    answer.decide("last-value", settings.last_value, |l| match l {
        None | Some(false) => becomes("none kept"),
        Some(true) if !reliable => cannot(
            "TRANSIENT_LOCAL delivers what was written before to reliable readers only; use \
             reliability = \"reliable\"",
        ),
        Some(true) => becomes(
            "DURABILITY TRANSIENT_LOCAL with DURABILITY_SERVICE KEEP_LAST 1: the last message \
             of each writer that still lives",
        ),
    });
    answer.decide("lifespan-ms", settings.lifespan_ms, |l| match l {
        None => becomes("messages do not expire"),
        Some(ms) if (1..=i64::MAX as u64 / 1_000_000).contains(&ms) => {
            becomes(format!("LIFESPAN {ms} ms"))
        }
        Some(_) => cannot("a lifespan lies between 1 ms and 292 years"),
    });
    answer.absent(
        "in-flight",
        &settings.in_flight,
        "Internal/Watermarks: bytes that are not acknowledged",
        "Cyclone DDS bounds unacknowledged messages by bytes, not by number: use \
         native.cyclonedds.whc-high-bytes",
    );
    let (writer_depth, reader_depth, cache) = history(&mut answer, settings, &native, reliable);
    let max_message_bytes = batching(&mut answer, settings, &native);
    answer.absent(
        "priority",
        &settings.priority,
        "all the same",
        "in Cyclone DDS 0.10 TRANSPORT_PRIORITY only chooses the receiver's delivery thread: no \
         message overtakes another and no packet is marked; native.cyclonedds.transport-priority \
         sets it all the same",
    );
    let multicast = multicast(&mut answer, settings, &native);
    answer.absent(
        "rate-limit-bytes-per-s",
        &settings.rate_limit_bytes_per_s,
        "no limit",
        "Cyclone DDS limits bandwidth (Channels/DataBandwidthLimit) only when built with network \
         channels, which Debian's library is not; limit the link in the testbed instead",
    );
    answer.decide("conflate", settings.conflate, |c| match c {
        None | Some(false) => becomes("no"),
        Some(true) => becomes("HISTORY KEEP_LAST 1 at writers and readers"),
    });
    answer.decide("transport", settings.transport, |t| match t {
        None | Some(Transport::Udp) => becomes("RTPS over UDP"),
        Some(Transport::Tcp) => cannot(
            "this driver does not set up Cyclone's TCP, which needs a list of all ports; use udp",
        ),
        Some(Transport::Ipc) => cannot("RTPS has no local sockets; use udp"),
        Some(Transport::SharedMemory) => cannot(
            "Cyclone's shared memory needs the Iceoryx daemon and messages of a fixed size, \
             which these are not; use udp",
        ),
    });
    answer.decide("keep-alive-s", settings.keep_alive_s, |k| match k {
        None => becomes("Discovery/LeaseDuration 10 s"),
        Some(0) => cannot("a DDS participant's lease always runs out; use 1 or more"),
        Some(s) => becomes(format!(
            "Discovery/SPDPInterval {s} s, Discovery/LeaseDuration {} s",
            3 * u32::from(s)
        )),
    });
    let options = CycloneOptions {
        reliable,
        writer_depth,
        reader_depth,
        cache,
        last_value: settings.last_value == Some(true),
        lifespan_ms: settings.lifespan_ms.and_then(|ms| i64::try_from(ms).ok()),
        batching: settings.batching.unwrap_or(Batching::Off),
        max_message_bytes,
        multicast,
        keep_alive_s: settings.keep_alive_s,
        native,
    };
    answer.finish(options)
}

/// Depths of writers and readers, and the limit of a KEEP_ALL reader: `queue-limit` and
/// `on-full`.
fn history(
    answer: &mut Resolution,
    settings: &Settings,
    native: &CycloneNative,
    reliable: bool,
) -> (i32, i32, Option<u32>) {
    let conflate = settings.conflate == Some(true);
    let drops = conflate
        || native.history_depth.is_some()
        || settings.on_full == Some(OnFull::Drop)
        || !reliable;
    let limit = match settings.queue_limit {
        None => None,
        Some(0) => {
            let reason = "DDS counts from 1; leave it out for the default";
            answer.refuse("queue-limit", "0", reason);
            return (0, 0, None);
        }
        Some(n) => Some(n.min(i32::MAX as u32)),
    };
    let asked_depth = limit.map(|n| n as i32);
    let depth = match (conflate, native.history_depth.or(asked_depth)) {
        (true, _) => 1,
        (false, Some(depth)) => depth,
        (false, None) => DEFAULT_DEPTH,
    };
    answer.decide("queue-limit", settings.queue_limit, |asked| match asked {
        Some(_) if conflate => cannot(
            "with conflate = true each queue holds one message, whatever the limit; \
             leave one of them out",
        ),
        Some(_) if native.history_depth.is_some() => {
            cannot("native.cyclonedds.history-depth says the same; leave one of them out")
        }
        _ if drops && reliable => becomes(format!(
            "HISTORY KEEP_LAST {depth} at writers and readers, for each writer"
        )),
        _ if drops => becomes(format!(
            "HISTORY KEEP_LAST {depth} at readers, for each writer"
        )),
        Some(n) => becomes(format!(
            "HISTORY KEEP_ALL; pubgauge lets Cyclone's receive thread wait while a reader \
             holds {} messages",
            n.min(i32::MAX as u32)
        )),
        None => becomes(format!(
            "HISTORY KEEP_ALL; pubgauge lets Cyclone's receive thread wait while a reader \
             holds {DEFAULT_CACHE} messages (fewer if they could exceed {} MiB, but 64)",
            CACHE_BYTES >> 20
        )),
    });
    answer.decide("on-full", settings.on_full, |asked| match asked {
        Some(OnFull::Block) if conflate || native.history_depth.is_some() => cannot(
            "KEEP_LAST (conflate, history-depth) replaces messages instead of blocking; \
             leave one of them out",
        ),
        Some(OnFull::Block) if !reliable => {
            cannot("a best-effort writer is never held back; use reliability = \"reliable\"")
        }
        _ if drops => becomes("HISTORY KEEP_LAST: the oldest message is replaced"),
        _ => becomes(
            "HISTORY KEEP_ALL: the writer is held back above Internal/Watermarks/WhcHigh \
             (max_blocking_time 0, tried again by pubgauge)",
        ),
    });
    if drops {
        // No reader asks a best-effort writer for what it keeps.
        (if reliable { depth } else { 1 }, depth, None)
    } else {
        (0, 0, limit)
    }
}

/// General/MaxMessageSize, bytes.
fn batching(answer: &mut Resolution, settings: &Settings, native: &CycloneNative) -> u32 {
    let given = native.max_message_bytes;
    let room = given.unwrap_or(DEFAULT_MESSAGE);
    answer.decide("batching", settings.batching, |b| match b {
        None | Some(Batching::Off) => {
            becomes("Internal/WriteBatch false: a datagram for each message")
        }
        Some(Batching::Bytes(n)) if n > LARGEST_MESSAGE => cannot(format!(
            "a batch is one UDP datagram: at most {LARGEST_MESSAGE} bytes"
        )),
        Some(Batching::Bytes(n)) if given.is_some_and(|given| given < n) => {
            cannot("more than native.cyclonedds.max-message-bytes; raise that or leave it out")
        }
        Some(Batching::Bytes(n)) => becomes(format!(
            "Internal/WriteBatch, flushed at {n} bytes in one datagram and before waiting \
             (General/MaxMessageSize {})",
            room.max(n)
        )),
        Some(Batching::Adaptive) => becomes(format!(
            "Internal/WriteBatch, flushed by pubgauge at the bytes that come in {} us at the \
             present rate, at {room} bytes at most, and before waiting",
            native.hold_us.unwrap_or(DEFAULT_HOLD_US)
        )),
    });
    match settings.batching {
        Some(Batching::Bytes(n)) => room.max(n),
        _ => room,
    }
}

fn multicast(
    answer: &mut Resolution,
    settings: &Settings,
    native: &CycloneNative,
) -> Option<Multicast> {
    let asked = settings.multicast;
    let mode = match (asked, native.multicast_mode) {
        (Some(true), None) => Some(Multicast::AnySource),
        (_, mode) => mode,
    };
    answer.decide("multicast", asked, |m| match (m, mode) {
        (Some(true), Some(Multicast::Discovery)) => cannot(
            "native.cyclonedds.multicast-mode = \"spdp\" keeps data on unicast; leave one of \
             them out",
        ),
        (Some(true), mode) => becomes(format!(
            "General/AllowMulticast {}: one datagram for all readers of a topic that are \
             more than one",
            mode.map_or("asm", Multicast::as_str)
        )),
        (_, None) => becomes("General/AllowMulticast false: one datagram for each reader"),
        (_, Some(Multicast::Discovery)) => {
            becomes("General/AllowMulticast spdp: one datagram for each reader")
        }
        (_, Some(_)) => cannot(
            "native.cyclonedds.multicast-mode puts data on multicast; say multicast = true \
             as well",
        ),
    });
    mode
}

/// How long adaptive batching may hold a message back, microseconds.
pub(crate) const DEFAULT_HOLD_US: u32 = 100;

impl Multicast {
    /// As General/AllowMulticast spells it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Multicast::Discovery => "spdp",
            Multicast::AnySource => "asm",
            Multicast::SourceSpecific => "ssm",
        }
    }
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
