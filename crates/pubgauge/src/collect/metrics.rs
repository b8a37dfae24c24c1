//! Figures of a collector as OpenMetrics, and its health.

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use pubgauge_collect::dead::Why;
use pubgauge_collect::{BrokerStatus, Status};
use pubgauge_export::openmetrics::{MEDIA_TYPE, MetricType, Text};

use crate::exit::Ending;
use crate::http::{Effort, Http, PLAIN, Page};

/// Longest time that the loop may not turn before the collector is said to hang.
const TURNS_WITHIN: Duration = Duration::from_secs(10);

/// Serves `/metrics`, `/health` and `/live`.
///
/// # Errors
/// If `address` is none, or cannot be listened on.
pub fn serve(address: &str, status: Arc<Status>) -> Result<Http, Ending> {
    let answer = move |path: &str| match path {
        "/metrics" => Page {
            status: StatusCode::OK,
            media_type: MEDIA_TYPE,
            body: text(&status),
        },
        "/health" => found(status.ill(), "collecting\n"),
        "/live" => found(hangs(&status), "at work\n"),
        _ => Page {
            status: StatusCode::NOT_FOUND,
            media_type: PLAIN,
            body: "a collector of pubgauge has /metrics, /health and /live\n".into(),
        },
    };
    Http::open("--listen", address, Effort::AtOnce, Box::new(answer))
}

fn hangs(status: &Status) -> Option<String> {
    let stuck = status.stuck_for();
    let words = || format!("nothing was read for {} s", stuck.as_secs());
    (stuck > TURNS_WITHIN).then(words)
}

/// Why it is not as it should be, or that it is.
fn found(wrong: Option<String>, well: &str) -> Page {
    let (line, body) = match wrong {
        None => (StatusCode::OK, well.to_owned()),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    };
    Page {
        status: line,
        media_type: PLAIN,
        body,
    }
}

fn text(status: &Status) -> String {
    let mut text = Text::default();
    text.family("pubgauge_collect", MetricType::Info, "", "The collector.");
    text.sample(
        "_info",
        &[("pubgauge_version", env!("CARGO_PKG_VERSION"))],
        &[],
        1.0,
    );
    text.family(
        "pubgauge_collect_received_messages",
        MetricType::Counter,
        "",
        "Messages received, by the QoS of their delivery.",
    );
    for (qos, count) in ["0", "1", "2"].into_iter().zip(&status.received) {
        text.sample("_total", &[("qos", qos)], &[], count.get() as f64);
    }
    let counters = [
        (
            "pubgauge_collect_marked_duplicate_messages",
            "Messages received that the broker marked as perhaps sent before.",
            &status.marked_duplicate,
        ),
        (
            "pubgauge_collect_stored_messages",
            "Messages that are on disk.",
            &status.stored,
        ),
        (
            "pubgauge_collect_acknowledged_messages",
            "Messages whose acknowledgement was sent.",
            &status.acknowledged,
        ),
        (
            "pubgauge_collect_damaged_messages",
            "Messages that cannot be read in the log.",
            &status.damaged,
        ),
        (
            "pubgauge_collect_segments_set_aside",
            "Segments of the log that cannot be read, and that the others went on without.",
            &status.set_aside,
        ),
        (
            "pubgauge_collect_payload_bytes",
            "Bytes of the payloads that were received.",
            &status.payload_bytes,
        ),
        (
            "pubgauge_collect_commits",
            "Times that messages were put on disk.",
            &status.commits,
        ),
        ("pubgauge_collect_files", "Finished files.", &status.files),
        (
            "pubgauge_collect_file_messages",
            "Messages in finished files.",
            &status.file_messages,
        ),
        (
            "pubgauge_collect_file_bytes",
            "Bytes of finished files.",
            &status.file_bytes,
        ),
        (
            "pubgauge_collect_uploaded_files",
            "Finished files that the store has confirmed.",
            &status.uploaded_files,
        ),
        (
            "pubgauge_collect_uploaded_bytes",
            "Bytes of these.",
            &status.uploaded_bytes,
        ),
        (
            "pubgauge_collect_upload_conflicts",
            "Finished files of whose names the store has other objects.",
            &status.conflicts,
        ),
        (
            "pubgauge_collect_failed_uploads",
            "Times that the store did not take a file.",
            &status.failed_uploads,
        ),
    ];
    for (name, help, count) in counters {
        text.family(name, MetricType::Counter, "", help);
        text.sample("_total", &[], &[], count.get() as f64);
    }
    text.family(
        "pubgauge_collect_undecoded_messages",
        MetricType::Counter,
        "",
        "Messages whose payload lacks columns: it is not of its form, a value is not of its column's type, or is not there.",
    );
    for (why, count) in ["form", "value", "missing"]
        .into_iter()
        .zip(&status.undecoded)
    {
        text.sample("_total", &[("why", why)], &[], count.get() as f64);
    }
    text.family(
        "pubgauge_collect_dead_letters",
        MetricType::Counter,
        "",
        "Messages that cannot be stored with the others, by why.",
    );
    for (why, count) in Why::ALL.into_iter().zip(&status.dead) {
        text.sample("_total", &[("why", why.name())], &[], count.get() as f64);
    }
    text.family(
        "pubgauge_collect_commit_seconds",
        MetricType::Counter,
        "seconds",
        "Time that putting messages on disk took.",
    );
    text.sample("_total", &[], &[], status.commit_ns.get() as f64 / 1e9);
    text.family(
        "pubgauge_collect_lag_seconds",
        MetricType::Gauge,
        "seconds",
        "How long the oldest message waits that was read and is not on disk.",
    );
    text.sample("", &[], &[], status.lag_s());
    text.family(
        "pubgauge_collect_waiting_segments",
        MetricType::Gauge,
        "",
        "Closed segments of the log that are in no finished file yet.",
    );
    text.sample("", &[], &[], status.waiting_segments.get() as f64);
    text.family(
        "pubgauge_collect_waiting_files",
        MetricType::Gauge,
        "",
        "Finished files that are to be put to the store.",
    );
    text.sample("", &[], &[], status.waiting_files.get() as f64);
    text.family(
        "pubgauge_collect_stalled",
        MetricType::Gauge,
        "",
        "1 while messages cannot be stored, and none is acknowledged.",
    );
    text.sample("", &[], &[], f64::from(status.is_stalled()));
    brokers(&mut text, status);
    text.finish()
}

/// A figure of each broker, if it has one.
type OfBroker = fn(&BrokerStatus) -> Option<f64>;

fn brokers(text: &mut Text, status: &Status) {
    let brokers = status.brokers();
    let figures: [(&str, &'static str, MetricType, &str, OfBroker); 9] = [
        (
            "",
            "pubgauge_collect_broker_connected",
            MetricType::Gauge,
            "1 while the subscriptions at the broker stand.",
            |broker| Some(f64::from(broker.connected)),
        ),
        (
            "",
            "pubgauge_collect_broker_gone",
            MetricType::Gauge,
            "1 while the broker's name does not stand for it; it may hold messages.",
            |broker| Some(f64::from(broker.gone)),
        ),
        (
            "_total",
            "pubgauge_collect_broker_connections",
            MetricType::Counter,
            "Connections made to the broker.",
            |broker| Some(broker.connections as f64),
        ),
        (
            "_total",
            "pubgauge_collect_broker_messages",
            MetricType::Counter,
            "Messages received from the broker.",
            |broker| Some(broker.messages as f64),
        ),
        (
            "_total",
            "pubgauge_collect_canary_acknowledged_messages",
            MetricType::Counter,
            "Messages of the collector's own that the broker has acknowledged.",
            |broker| Some(broker.canaries.as_ref()?.acknowledged as f64),
        ),
        (
            "_total",
            "pubgauge_collect_canary_delivered_messages",
            MetricType::Counter,
            "Those of them that the broker has delivered.",
            |broker| Some(broker.canaries.as_ref()?.delivered as f64),
        ),
        (
            "_total",
            "pubgauge_collect_canary_lost_messages",
            MetricType::Counter,
            "Those of them that the broker has lost: it has delivered a later one.",
            |broker| Some(broker.canaries.as_ref()?.lost as f64),
        ),
        (
            "",
            "pubgauge_collect_canary_wait_seconds",
            MetricType::Gauge,
            "How long the oldest one is under way that the broker has not delivered.",
            |broker| {
                let since = broker.canaries.as_ref()?.waits_since;
                Some(since.map_or(0.0, |since| since.elapsed().as_secs_f64()))
            },
        ),
        (
            "",
            "pubgauge_collect_canary_seconds",
            MetricType::Gauge,
            "How long the last one that came was under way.",
            |broker| Some(broker.canaries.as_ref()?.took?.as_secs_f64()),
        ),
    ];
    for (suffix, name, kind, help, of) in figures {
        let known = brokers
            .iter()
            .filter_map(|(address, broker)| Some((address, of(broker)?)));
        let mut known = known.peekable();
        if known.peek().is_none() {
            continue;
        }
        let unit = if name.ends_with("_seconds") {
            "seconds"
        } else {
            ""
        };
        text.family(name, kind, unit, help);
        for (address, figure) in known {
            text.sample(suffix, &[("broker", address)], &[], figure);
        }
    }
}
