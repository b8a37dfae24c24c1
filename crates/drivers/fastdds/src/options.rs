//! Neutral and native settings in Fast DDS's terms.

use pubgauge_dds::settings::{decide_common, is_reliable};
use pubgauge_driver::{
    Batching, Durability, OnFull, Resolution, Resolved, Settings, Target, Traits, Transport,
    becomes, cannot, spelt,
};

use crate::native::{FastNative, NAME, Preset, PublishMode, Scheduler, ns};

/// The library's own limit for one instance (`ResourceLimitsQosPolicy::max_samples_per_instance`):
/// samples of one writer that readers have not acknowledged, or that wait in a reader.
const LIBRARY_SAMPLES: i32 = 400;
/// Samples of one publisher that a reader holds: more than its writer may have under way, so that
/// the reader need not reject (and the writer resend) what a short pause lets pile up.
const READER_SAMPLES: i32 = 1000;
/// Payload bytes that the histories may hold if the settings do not limit them.
const WRITER_BYTES: usize = 64 << 20;
const READER_BYTES: usize = 256 << 20;
/// Payload bytes that a reader without acknowledgements may hold: a sample that it rejects is lost.
const BEST_EFFORT_READER_BYTES: usize = 1 << 30;
/// The fewest samples even of the largest payloads.
const FEWEST: i32 = 32;
/// Heartbeats of the preset `tuned`.
const TUNED_HEARTBEAT_NS: i64 = 1_000_000;
/// Heartbeats of the preset `tuned` with a flow controller, or over shared memory.
const TUNED_SLOW_HEARTBEAT_NS: i64 = 20_000_000;
/// A flow controller that may send less than this per period could not send a header.
const LEAST_PER_PERIOD: u64 = 512;

/// Settings in Fast DDS's terms.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FastOptions {
    pub(crate) native: FastNative,
    pub(crate) reliable: bool,
    pub(crate) last_value: bool,
    pub(crate) conflate: bool,
    pub(crate) lifespan_ms: Option<u64>,
    pub(crate) in_flight: Option<i32>,
    pub(crate) queue_limit: Option<i32>,
    pub(crate) drop_when_full: bool,
    pub(crate) multicast: bool,
    pub(crate) shared_memory: bool,
    /// Bytes per period of the flow controller; 0: no limit.
    pub(crate) flow_bytes: u32,
}

impl FastOptions {
    /// How the system behaves under these options.
    pub(crate) fn traits(&self) -> Traits {
        let keeps_all = self.writer_depth() == 0;
        Traits {
            publishers_first: false,
            back_pressure: self.reliable && keeps_all && !self.drop_when_full,
            acknowledges: false,
            may_duplicate: false,
            publish_sleeps: true,
        }
    }

    /// Depth of the writer's history; 0: keep all.
    pub(crate) fn writer_depth(&self) -> i32 {
        if self.last_value || self.conflate {
            1
        } else {
            self.native.history_depth.unwrap_or(0)
        }
    }

    /// Depth of the reader's history; 0: keep all.
    pub(crate) fn reader_depth(&self) -> i32 {
        if self.conflate {
            1
        } else {
            self.native.history_depth.unwrap_or(0)
        }
    }

    /// Most samples in a writer's history, for payloads of up to `max_payload` bytes.
    pub(crate) fn writer_samples(&self, max_payload: usize) -> i32 {
        let asked = self.in_flight.or(self.native.max_samples);
        let depth = self.writer_depth();
        asked
            .unwrap_or_else(|| samples_within(LIBRARY_SAMPLES, WRITER_BYTES, max_payload))
            .max(depth)
    }

    /// Most samples of each publisher in a reader's history, for payloads of up to `max_payload`
    /// bytes.
    pub(crate) fn reader_samples(&self, max_payload: usize) -> i32 {
        let asked = self.queue_limit.or(self.native.reader_max_samples);
        let usual = usual_reader_samples(self.native.preset);
        let bytes = reader_bytes(self.reliable);
        asked
            .unwrap_or_else(|| samples_within(usual, bytes, max_payload))
            .max(self.reader_depth())
    }

    /// Period of the heartbeats, ns; `None`: the library's. While a flow controller holds samples
    /// back, heartbeats announce samples that are not sent yet, which readers then ask for again
    /// and again; therefore the period is longer there. The same holds over shared memory: with 1 ms, heartbeats of 200 writers and
    /// their answers fill a port (512 messages) faster than its thread reads them, and no delivery gets through any more.
    pub(crate) fn heartbeat_ns(&self) -> Option<i64> {
        let is_slow = self.scheduler().is_some() || self.shared_memory;
        let usual = match self.native.preset {
            Preset::Default => None,
            Preset::Tuned if is_slow => Some(TUNED_SLOW_HEARTBEAT_NS),
            Preset::Tuned => Some(TUNED_HEARTBEAT_NS),
        };
        ns(self.native.heartbeat_period_ms).or(usual)
    }

    /// Whether writers are TRANSIENT_LOCAL. Unless last values are asked for, readers are VOLATILE
    /// and get no earlier samples: then it decides only when acknowledged samples are removed. Only
    /// reliable samples are acknowledged.
    pub(crate) fn writer_transient_local(&self) -> bool {
        self.last_value || self.reliable && self.native.writer_transient_local()
    }

    /// Whether a thread of the library sends.
    pub(crate) fn asynchronous(&self) -> bool {
        self.scheduler().is_some() || self.native.publish_mode == Some(PublishMode::Async)
    }

    /// The policy of the flow controller, if there is one.
    pub(crate) fn scheduler(&self) -> Option<Scheduler> {
        self.native.flow_controller.or_else(|| {
            if !self.native.priorities.0.is_empty() {
                Some(Scheduler::HighPriority)
            } else {
                (self.flow_bytes > 0).then_some(Scheduler::Fifo)
            }
        })
    }
}

fn usual_reader_samples(preset: Preset) -> i32 {
    match preset {
        Preset::Default => LIBRARY_SAMPLES,
        Preset::Tuned => READER_SAMPLES,
    }
}

fn reader_bytes(reliable: bool) -> usize {
    if reliable {
        READER_BYTES
    } else {
        BEST_EFFORT_READER_BYTES
    }
}

fn samples_within(samples: i32, bytes: usize, max_payload: usize) -> i32 {
    let fit = bytes / max_payload.max(1);
    samples.min(i32::try_from(fit).unwrap_or(i32::MAX).max(FEWEST))
}

/// Translates `settings`, or names every setting that cannot be honoured.
pub(crate) fn resolve(settings: &Settings, target: &Target) -> Resolved<FastOptions> {
    let mut answer = Resolution::default();
    // The other variant has the feature `preset-tuned`.
    let variant = if target.has("preset-default") {
        Preset::Default
    } else {
        Preset::Tuned
    };
    let native = FastNative::read(settings, variant, &mut answer);
    let reliable = is_reliable(settings);
    let shared_memory = settings.transport == Some(Transport::SharedMemory);

    decide_common(&mut answer, settings);
    answer.decide("durability", settings.durability, |d| match d {
        None | Some(Durability::Memory) if settings.last_value == Some(true) => {
            becomes("TRANSIENT_LOCAL_DURABILITY_QOS, lost with its writer")
        }
        None | Some(Durability::Memory) if reliable && native.writer_transient_local() => {
            becomes("readers VOLATILE_DURABILITY_QOS, writers TRANSIENT_LOCAL_DURABILITY_QOS")
        }
        None | Some(Durability::Memory) => becomes("VOLATILE_DURABILITY_QOS"),
        Some(_) => cannot(
            "samples live in the writer's memory; the library's persistence plug-in (SQLite, for \
             PERSISTENT durability) is not built in: use memory",
        ),
    });
    answer.decide("last-value", settings.last_value, |l| match l {
        None | Some(false) => becomes("no"),
        Some(true) if !reliable => {
            cannot("writers send what was before to reliable readers only; use reliable")
        }
        Some(true) => becomes(
            "TRANSIENT_LOCAL_DURABILITY_QOS and KEEP_LAST_HISTORY_QOS, depth 1, in each writer: a \
             sample that a reader missed is not sent again once a newer one is written",
        ),
    });
    answer.decide("lifespan-ms", settings.lifespan_ms, |l| match l {
        None => becomes("infinite"),
        Some(0) => cannot("a message that expires at once is never delivered"),
        Some(ms) if ms > 86_400_000 => cannot("at most a day (86400000)"),
        Some(ms) => becomes(format!("Lifespan QoS {ms} ms, kept by writer and reader")),
    });
    limits(&mut answer, settings, &native);
    answer.decide("batching", settings.batching, |b| match b {
        None | Some(Batching::Off) => becomes("none: each sample is a message of its own"),
        Some(_) => cannot(
            "Fast DDS gathers no samples; native.fastdds.publish-mode = \"async\" is the nearest \
             (its thread may put queued samples into one datagram)",
        ),
    });
    answer.absent(
        "priority",
        &settings.priority,
        "none",
        "Fast DDS orders only what the writers of one participant have queued in its flow \
         controller, and one priority for all of them orders nothing; name topics in \
         native.fastdds.priorities",
    );
    answer.decide("multicast", settings.multicast, |m| match m {
        None | Some(false) => becomes("one datagram per participant with readers"),
        Some(true) if shared_memory => cannot("shared memory has no multicast; use udp"),
        Some(true) => becomes(
            "readers announce the multicast address 239.255.0.1; writers send one datagram to it \
             as soon as several participants share it",
        ),
    });
    let flow_bytes = rate_limit(&mut answer, settings, &native);
    let depth = native.history_depth;
    answer.decide("conflate", settings.conflate, |c| match (c, depth) {
        (None | Some(false), _) => becomes("no"),
        (Some(true), Some(_)) => cannot(
            "native.fastdds.history-depth says the same in other words; leave one of them out",
        ),
        (Some(true), None) => becomes(
            "KEEP_LAST_HISTORY_QOS, depth 1, at writer and reader: one sample of each publisher",
        ),
    });
    answer.decide("transport", settings.transport, |t| match t {
        None | Some(Transport::Udp) => {
            becomes("UDPv4 on the loopback interface, or on a network's")
        }
        Some(Transport::SharedMemory) => becomes("the library's shared-memory transport"),
        Some(Transport::Tcp) => cannot(
            "the library's TCP transport wants the addresses of all participants beforehand; not \
             built in: use udp",
        ),
        Some(Transport::Ipc) => cannot("Fast DDS has no local sockets; use shared-memory"),
    });
    answer.absent(
        "keep-alive-s",
        &settings.keep_alive_s,
        "participants announce themselves every 3 s, and are given up after 20 s of silence",
        "the library's announcements (3 s, lease 20 s) are left as they are; leave it out",
    );
    contradictions(&mut answer, settings, &native, shared_memory);

    let count = |n: Option<u32>| n.map(|n| i32::try_from(n).unwrap_or(i32::MAX));
    let options = FastOptions {
        reliable,
        last_value: settings.last_value == Some(true),
        conflate: settings.conflate == Some(true),
        lifespan_ms: settings.lifespan_ms,
        in_flight: count(settings.in_flight),
        queue_limit: count(settings.queue_limit),
        drop_when_full: settings.on_full == Some(OnFull::Drop),
        multicast: settings.multicast == Some(true),
        shared_memory,
        flow_bytes,
        native,
    };
    answer.finish(options)
}

fn limits(answer: &mut Resolution, settings: &Settings, native: &FastNative) {
    let reliable = is_reliable(settings);
    let keeps_all = settings.last_value != Some(true)
        && settings.conflate != Some(true)
        && native.history_depth.is_none();
    let keep_last = "the history keeps the last samples whatever the limit (last-value, \
                     conflate or native.fastdds.history-depth); leave it out";
    answer.decide("in-flight", settings.in_flight, |n| match n {
        Some(0) => cannot("samples that may be unacknowledged: at least 1"),
        Some(_) if native.max_samples.is_some() => {
            cannot("native.fastdds.max-samples says the same; leave one of them out")
        }
        Some(_) if !keeps_all => cannot(keep_last),
        Some(n) => becomes(format!("writer: resource_limits.max_samples {n}")),
        None if !keeps_all => becomes("writer: as many as the history's depth"),
        None => becomes(match native.max_samples {
            Some(n) => format!("writer: resource_limits.max_samples {n}"),
            None => format!(
                "writer: resource_limits.max_samples {LIBRARY_SAMPLES}; fewer, down to \
                 {FEWEST}, if payloads could fill more than 64 MiB"
            ),
        }),
    });
    answer.decide("queue-limit", settings.queue_limit, |n| match n {
        Some(0) => cannot("samples that may wait in a reader: at least 1"),
        Some(_) if native.reader_max_samples.is_some() => {
            cannot("native.fastdds.reader-max-samples says the same; leave one of them out")
        }
        Some(_) if settings.conflate == Some(true) || native.history_depth.is_some() => {
            cannot(keep_last)
        }
        Some(n) => becomes(format!(
            "reader: resource_limits.max_samples_per_instance {n}, for each publisher"
        )),
        None => becomes(match native.reader_max_samples {
            Some(n) => format!("reader: resource_limits.max_samples_per_instance {n}"),
            None => format!(
                "reader: resource_limits.max_samples_per_instance {}, for each publisher; \
                 fewer, down to {FEWEST}, if payloads could fill more than {} MiB",
                usual_reader_samples(native.preset),
                reader_bytes(reliable) >> 20,
            ),
        }),
    });
    answer.decide("on-full", settings.on_full, |o| match o {
        Some(_) if !keeps_all => cannot(
            "with KEEP_LAST_HISTORY_QOS (last-value, conflate or native.fastdds.history-depth) \
             nothing is ever full: the oldest sample gives way; leave it out",
        ),
        Some(OnFull::Block) if !reliable => cannot(
            "best effort has no acknowledgements that could hold a publisher back; use reliable",
        ),
        Some(OnFull::Drop) => becomes(
            "HISTORY KEEP_ALL, max_blocking_time 0: a write that finds the writer's history full \
             is refused, counted, and not tried again",
        ),
        None if !keeps_all => becomes("the oldest sample gives way"),
        None if !reliable => becomes("a sent sample makes room at once; full readers drop"),
        None | Some(OnFull::Block) => becomes(
            "HISTORY KEEP_ALL, max_blocking_time 0: a write that finds the writer's history full \
             is tried again when acknowledgements come",
        ),
    });
}

/// Bytes per period of the flow controller.
fn rate_limit(answer: &mut Resolution, settings: &Settings, native: &FastNative) -> u32 {
    let period = u64::from(native.flow_period_ms);
    let per_period = settings
        .rate_limit_bytes_per_s
        .map(|rate| rate.saturating_mul(period) / 1000);
    answer.decide(
        "rate-limit-bytes-per-s",
        settings.rate_limit_bytes_per_s,
        |_| match per_period {
            Some(bytes) if bytes < LEAST_PER_PERIOD => cannot(format!(
                "that is less than {LEAST_PER_PERIOD} bytes in a period of {period} ms; \
                 lengthen native.fastdds.flow-period-ms"
            )),
            Some(bytes) if bytes > i32::MAX as u64 => {
                cannot("more than FlowControllerDescriptor can count")
            }
            Some(bytes) => becomes(format!(
                "flow controller of each participant (each worker): max_bytes_per_period \
                 {bytes}, period_ms {period}; asynchronous publishing"
            )),
            None => becomes("no limit"),
        },
    );
    per_period.map_or(0, |bytes| u32::try_from(bytes).unwrap_or(u32::MAX))
}

fn contradictions(
    answer: &mut Resolution,
    settings: &Settings,
    native: &FastNative,
    shared_memory: bool,
) {
    let given = |name: &str| spelt(&settings.native(NAME, name));
    let ordered = !native.priorities.0.is_empty();
    let unordered = matches!(
        native.flow_controller,
        Some(Scheduler::Fifo | Scheduler::RoundRobin)
    );
    let flow =
        settings.rate_limit_bytes_per_s.is_some() || ordered || native.flow_controller.is_some();
    let last_value = settings.last_value == Some(true);
    let durability = given("writer-durability").is_some();
    let all = [
        (
            native.publish_mode == Some(PublishMode::Sync) && flow,
            "publish-mode",
            "flow controllers (rate limit, priority) work on asynchronous publishing only",
        ),
        (
            ordered && unordered,
            "priorities",
            "native.fastdds.flow-controller must be high-priority or \
             priority-with-reservation, or left out",
        ),
        (
            native.data_sharing && settings.multicast == Some(true),
            "data-sharing",
            "samples that lie in shared files are not sent, by multicast or otherwise",
        ),
        (
            native.data_sharing && flow,
            "data-sharing",
            "samples that lie in shared files pass by the flow controller (rate limit, priority)",
        ),
        (
            durability && last_value,
            "writer-durability",
            "last-value decides it; leave one of them out",
        ),
        (
            durability && !last_value && !is_reliable(settings),
            "writer-durability",
            "best-effort samples are never acknowledged, and go at once; use reliable",
        ),
        (
            shared_memory && given("receive-buffer-bytes").is_some(),
            "receive-buffer-bytes",
            "shared memory has no receive buffer",
        ),
    ];
    for (_, name, reason) in all.into_iter().filter(|(contradicts, ..)| *contradicts) {
        let value = match name {
            "priorities" => "(topics)".to_owned(),
            _ => given(name).unwrap_or_default(),
        };
        answer.refuse(&format!("native.{NAME}.{name}"), value, reason);
    }
}

#[cfg(test)]
mod tests;
