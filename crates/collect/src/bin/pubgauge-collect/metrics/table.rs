//! The metrics of a collector, each declared once; the table of the documentation has the same.

use std::time::Instant;

use pubgauge_collect::dead::Why;
use pubgauge_collect::files::Misplacement;
use pubgauge_collect::{BrokerStatus, Count, Histogram, Status};
use pubgauge_openmetrics::MetricType;

/// A metric.
pub struct Metric {
    /// Ends in the unit, if it has one.
    pub name: &'static str,
    pub kind: MetricType,
    pub help: &'static str,
    pub value: Value,
}

/// Where the value of a metric comes from.
#[derive(Clone, Copy)]
pub enum Value {
    /// Facts about the program.
    Info,
    /// The only value, if there is one.
    One(fn(&Status, Instant) -> Option<f64>),
    /// A value for each word of a label.
    Each(&'static str, fn(&Status) -> Vec<(&'static str, f64)>),
    /// The values of a histogram, divided by a number to be in the unit.
    Histogram(fn(&Status) -> &Histogram, f64),
    /// The value of each broker that has one.
    OfBroker(OfBroker),
}

/// The value of a broker, if it has one.
type OfBroker = fn(&BrokerStatus, Instant) -> Option<f64>;

/// A counter without labels.
macro_rules! counter {
    ($name:literal, $help:literal, $field:ident) => {
        Metric {
            name: $name,
            kind: MetricType::Counter,
            help: $help,
            value: Value::One(|status, _| Some(status.$field.get() as f64)),
        }
    };
}

const fn gauge(
    name: &'static str,
    help: &'static str,
    of: fn(&Status, Instant) -> Option<f64>,
) -> Metric {
    Metric {
        name,
        kind: MetricType::Gauge,
        help,
        value: Value::One(of),
    }
}

const fn of_broker(
    kind: MetricType,
    name: &'static str,
    help: &'static str,
    of: OfBroker,
) -> Metric {
    Metric {
        name,
        kind,
        help,
        value: Value::OfBroker(of),
    }
}

/// Each word of a label with its count.
fn counts_by_word<const N: usize>(
    words: [&'static str; N],
    counts: &[Count; N],
) -> Vec<(&'static str, f64)> {
    let counts = counts.iter().map(|count| count.get() as f64);
    words.into_iter().zip(counts).collect()
}

/// All metrics of a collector.
pub const METRICS: [Metric; 38] = [
    Metric {
        name: "pubgauge_collect",
        kind: MetricType::Info,
        help: "The collector.",
        value: Value::Info,
    },
    Metric {
        name: "pubgauge_collect_received_messages",
        kind: MetricType::Counter,
        help: "Messages received, by the QoS of their delivery.",
        value: Value::Each("qos", |s| counts_by_word(["0", "1", "2"], &s.received)),
    },
    counter!(
        "pubgauge_collect_marked_duplicate_messages",
        "Messages received that the broker marked as perhaps sent before.",
        marked_duplicate
    ),
    counter!(
        "pubgauge_collect_payload_bytes",
        "Bytes of the payloads that were received.",
        payload_bytes
    ),
    counter!(
        "pubgauge_collect_stored_messages",
        "Messages that are on disk.",
        stored
    ),
    counter!(
        "pubgauge_collect_acknowledged_messages",
        "Messages whose acknowledgement was sent.",
        acknowledged
    ),
    Metric {
        name: "pubgauge_collect_dead_letters",
        kind: MetricType::Counter,
        help: "Messages that cannot be stored with the others, by why.",
        value: Value::Each("why", |s| counts_by_word(Why::ALL.map(Why::name), &s.dead)),
    },
    Metric {
        name: "pubgauge_collect_undecoded_messages",
        kind: MetricType::Counter,
        help: "Messages whose payload lacks columns: it is not of its form, a value is not of its column's type, or is not there.",
        value: Value::Each("why", |s| {
            counts_by_word(["form", "value", "missing"], &s.undecoded)
        }),
    },
    counter!(
        "pubgauge_collect_damaged_messages",
        "Messages that cannot be read in the log.",
        damaged
    ),
    Metric {
        name: "pubgauge_collect_commit_seconds",
        kind: MetricType::Histogram,
        help: "How long it took to put the messages of a commit on disk, written and synced, or to the store.",
        value: Value::Histogram(|s| &s.commit_ns, 1e9),
    },
    Metric {
        name: "pubgauge_collect_commit_bytes",
        kind: MetricType::Histogram,
        help: "Bytes that a commit wrote.",
        value: Value::Histogram(|s| &s.commit_bytes, 1.0),
    },
    gauge(
        "pubgauge_collect_lag_seconds",
        "How long the oldest message waits that was read and is not on disk.",
        |s, _| Some(s.lag_s()),
    ),
    gauge(
        "pubgauge_collect_stalled",
        "1 while messages cannot be stored, and none is acknowledged.",
        |s, _| Some(f64::from(s.is_stalled())),
    ),
    gauge(
        "pubgauge_collect_log_bytes",
        "Bytes of the log: messages that are in no finished file yet.",
        |s, _| Some(s.log.bytes()? as f64),
    ),
    gauge(
        "pubgauge_collect_oldest_segment_seconds",
        "How long ago the first message came that is in no finished file yet; of an earlier start, how long ago its segment was written.",
        |s, now| Some(s.log.oldest(now)?.as_secs_f64()),
    ),
    gauge(
        "pubgauge_collect_disk_free_bytes",
        "Bytes that are free on the disk of the data folder.",
        |s, _| Some(s.log.disk()?.free as f64),
    ),
    gauge(
        "pubgauge_collect_disk_reserve_bytes",
        "Bytes that the log leaves free: it takes nothing while less is.",
        |s, _| Some(s.log.disk()?.reserve as f64),
    ),
    gauge(
        "pubgauge_collect_waiting_segments",
        "Closed segments of the log that are in no finished file yet.",
        |s, _| Some(s.waiting_segments.get() as f64),
    ),
    counter!(
        "pubgauge_collect_segments_set_aside",
        "Segments of the log that cannot be read, and that the others went on without.",
        set_aside
    ),
    Metric {
        name: "pubgauge_collect_misplaced_messages",
        kind: MetricType::Counter,
        help: "Messages in finished files that do not lie where their time or topic would have them, by why.",
        value: Value::Each("why", |s| {
            counts_by_word(Misplacement::ALL.map(Misplacement::name), &s.misplaced)
        }),
    },
    counter!("pubgauge_collect_files", "Finished files.", files),
    counter!(
        "pubgauge_collect_file_messages",
        "Messages in finished files.",
        file_messages
    ),
    counter!(
        "pubgauge_collect_file_bytes",
        "Bytes of finished files.",
        file_bytes
    ),
    gauge(
        "pubgauge_collect_waiting_files",
        "Finished files that are to be put to the store.",
        |s, _| Some(s.waiting_files.get() as f64),
    ),
    counter!(
        "pubgauge_collect_uploaded_files",
        "Finished files that the store has confirmed.",
        uploaded_files
    ),
    counter!(
        "pubgauge_collect_uploaded_bytes",
        "Bytes of these.",
        uploaded_bytes
    ),
    counter!(
        "pubgauge_collect_failed_uploads",
        "Times that the store did not take a file.",
        failed_uploads
    ),
    counter!(
        "pubgauge_collect_upload_conflicts",
        "Finished files of whose names the store has other objects.",
        conflicts
    ),
    of_broker(
        MetricType::Gauge,
        "pubgauge_collect_broker_connected",
        "1 while the subscriptions at the broker stand.",
        |b, _| Some(f64::from(b.connected)),
    ),
    of_broker(
        MetricType::Gauge,
        "pubgauge_collect_broker_gone",
        "1 while the broker's name does not stand for it; it may hold messages.",
        |b, _| Some(f64::from(b.gone)),
    ),
    of_broker(
        MetricType::Counter,
        "pubgauge_collect_broker_connections",
        "Connections made to the broker.",
        |b, _| Some(b.connections as f64),
    ),
    of_broker(
        MetricType::Counter,
        "pubgauge_collect_broker_messages",
        "Messages received from the broker.",
        |b, _| Some(b.messages as f64),
    ),
    of_broker(
        MetricType::Gauge,
        "pubgauge_collect_broker_silent_seconds",
        "Time since the last message from the broker, or since it became known.",
        |b, now| Some(b.silent_for(now).as_secs_f64()),
    ),
    of_broker(
        MetricType::Counter,
        "pubgauge_collect_canary_acknowledged_messages",
        "Messages of the collector's own that the broker has acknowledged.",
        |b, _| Some(b.canaries.as_ref()?.acknowledged as f64),
    ),
    of_broker(
        MetricType::Counter,
        "pubgauge_collect_canary_delivered_messages",
        "Those of them that the broker has delivered.",
        |b, _| Some(b.canaries.as_ref()?.delivered as f64),
    ),
    of_broker(
        MetricType::Counter,
        "pubgauge_collect_canary_lost_messages",
        "Those of them that the broker has lost: it has delivered a later one.",
        |b, _| Some(b.canaries.as_ref()?.lost as f64),
    ),
    of_broker(
        MetricType::Gauge,
        "pubgauge_collect_canary_wait_seconds",
        "How long the oldest one is under way that the broker has not delivered.",
        |b, now| {
            let since = b.canaries.as_ref()?.waits_since;
            Some(since.map_or(0.0, |since| {
                now.saturating_duration_since(since).as_secs_f64()
            }))
        },
    ),
    of_broker(
        MetricType::Gauge,
        "pubgauge_collect_canary_seconds",
        "How long the last one that came was under way.",
        |b, _| Some(b.canaries.as_ref()?.took?.as_secs_f64()),
    ),
];
