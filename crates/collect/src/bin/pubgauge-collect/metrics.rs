//! Figures of a collector as OpenMetrics, and its health.

mod table;

use std::sync::Arc;
use std::time::{Duration, Instant};

use pubgauge_collect::Status;
use pubgauge_command::exit::Ending;
use pubgauge_command::http::{Effort, Http, PLAIN, Page, StatusCode};
use pubgauge_openmetrics::{MEDIA_TYPE, MetricType, Text};

use table::{METRICS, Metric, Value};

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
            body: text(&status, Instant::now()),
        },
        "/health" => health_page(status.ill(), "collecting\n"),
        "/live" => health_page(hangs(&status), "at work\n"),
        _ => Page {
            status: StatusCode::NOT_FOUND,
            media_type: PLAIN,
            body: "a collector of pubgauge has /metrics, /health and /live\n".into(),
        },
    };
    Http::open("--listen", address, Effort::AT_ONCE, Box::new(answer))
}

fn hangs(status: &Status) -> Option<String> {
    let stuck = status.stuck_for();
    let words = || format!("nothing was read for {} s", stuck.as_secs());
    (stuck > TURNS_WITHIN).then(words)
}

/// Why it is not as it should be, or that it is.
fn health_page(wrong: Option<String>, well: &str) -> Page {
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

fn text(status: &Status, now: Instant) -> String {
    let mut text = Text::default();
    for metric in &METRICS {
        metric.write(status, now, &mut text);
    }
    text.finish()
}

impl Metric {
    /// The unit, which the name ends in; empty if there is none.
    fn unit(&self) -> &'static str {
        let units = ["seconds", "bytes"];
        let ends = |unit: &&str| self.name.ends_with(unit);
        units.into_iter().find(ends).unwrap_or_default()
    }

    /// The end of a sample's name, after that of the metric.
    fn suffix(&self) -> &'static str {
        match self.kind {
            MetricType::Counter => "_total",
            MetricType::Info => "_info",
            _ => "",
        }
    }

    fn write(&self, status: &Status, now: Instant, text: &mut Text) {
        let begin = |text: &mut Text| text.family(self.name, self.kind, self.unit(), self.help);
        match self.value {
            Value::Info => {
                begin(text);
                let version = ("pubgauge_version", env!("CARGO_PKG_VERSION"));
                text.sample(self.suffix(), &[version], &[], 1.0);
            }
            Value::One(of) => {
                if let Some(value) = of(status, now) {
                    begin(text);
                    text.sample(self.suffix(), &[], &[], value);
                }
            }
            Value::Each(label, of) => {
                begin(text);
                for (word, value) in of(status) {
                    text.sample(self.suffix(), &[(label, word)], &[], value);
                }
            }
            Value::Histogram(of, scale) => {
                begin(text);
                let counted = of(status).counted();
                let each = counted.up_to.iter();
                let up_to: Vec<_> = each.map(|(bound, n)| (*bound as f64 / scale, *n)).collect();
                text.histogram(&up_to, counted.count, counted.sum as f64 / scale);
            }
            Value::OfBroker(of) => {
                let brokers = status.brokers();
                let mut known = brokers
                    .iter()
                    .filter_map(|(address, broker)| Some((address, of(broker, now)?)))
                    .peekable();
                if known.peek().is_some() {
                    begin(text);
                }
                for (address, value) in known {
                    text.sample(self.suffix(), &[("broker", address)], &[], value);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
