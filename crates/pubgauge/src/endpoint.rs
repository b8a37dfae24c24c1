//! Live figures of a run over HTTP, as OpenMetrics.
//!
//! Scrapes must not disturb a measurement: one thread answers them that runs only when a processor is
//! idle (SCHED_IDLE), from a copy of counters that the conductor's thread keeps anyway; ten answers a second at most.
//! The thread's CPU time is among the figures: `pubgauge_scrape_cpu_seconds_total`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pubgauge_command::exit::Ending;
use pubgauge_command::http::{Effort, Http, PLAIN, Page, StatusCode};
use pubgauge_engine::conductor::Phase;
use pubgauge_engine::live::{LatencyLive, Live};
use pubgauge_figures::model::Status;
use pubgauge_openmetrics::{MEDIA_TYPE, MetricType, Text};

use crate::calibrate::thread_cpu;
use crate::lock;

/// Ten answers a second at most, and only when a processor is idle (SCHED_IDLE): something is measured beside them.
const WHEN_IDLE: Effort = Effort {
    pause: Duration::from_millis(100),
    begin: || {
        // Where the system does not allow it, only the limit on answers applies.
        let _ = pubgauge_testbed::only_when_idle();
    },
};

/// The figures of a run.
#[derive(Clone, Debug, Default)]
pub struct LiveFigures {
    /// Name of the study.
    pub study: String,
    /// Trials of the plan.
    pub trials: u64,
    /// Of these, not done yet.
    pub left: u64,
    /// Trials done since the run began or was resumed, by verdict.
    pub verdicts: BTreeMap<Status, u64>,
    /// Time since the run began or was resumed.
    pub elapsed: Duration,
    /// Estimated time that is left.
    pub remaining: Duration,
    /// The trial that runs.
    pub current: Option<Current>,
}

/// The figures of the trial that runs.
#[derive(Clone, Debug, Default)]
pub struct Current {
    /// Its number, from 1.
    pub number: u32,
    pub system: String,
    pub workload: String,
    pub settings: String,
    /// Its repeat, from 1.
    pub repeat: u32,
    /// Its phase; none while the system starts.
    pub phase: Option<Phase>,
    /// Counts of its workers.
    pub live: Live,
}

/// A listening endpoint; dropping it closes it.
pub struct MetricsEndpoint {
    http: Http,
    shown: Arc<Mutex<LiveFigures>>,
}

impl MetricsEndpoint {
    /// Listens at `text`: a port, or HOST:PORT; without a host, at the loopback address.
    ///
    /// # Errors
    /// If it is not an address, or cannot be listened on.
    pub fn open(text: &str) -> Result<MetricsEndpoint, Ending> {
        let shown = Arc::<Mutex<LiveFigures>>::default();
        let answered = shown.clone();
        let mut scrapes = 0;
        let answer = move |path: &str| match path {
            "/metrics" => {
                scrapes += 1;
                let shown = lock(&answered).clone();
                Page {
                    status: StatusCode::OK,
                    media_type: MEDIA_TYPE,
                    body: self::text(&shown, scrapes),
                }
            }
            _ => Page {
                status: StatusCode::NOT_FOUND,
                media_type: PLAIN,
                body: "live figures of a run of pubgauge are at /metrics\n".to_owned(),
            },
        };
        let http = Http::open("--listen", text, WHEN_IDLE, Box::new(answer))?;
        Ok(MetricsEndpoint { http, shown })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.http.address()
    }

    /// The figures that it shows, for the run to update.
    pub fn shared_figures(&self) -> Arc<Mutex<LiveFigures>> {
        self.shown.clone()
    }
}

/// Names of the phases; before the first the system starts.
const PHASES: [(&str, Option<Phase>); 7] = [
    ("start", None),
    ("connect", Some(Phase::Connect)),
    ("prove", Some(Phase::Prove)),
    ("warm-up", Some(Phase::WarmUp)),
    ("measure", Some(Phase::Measure)),
    ("drain", Some(Phase::Drain)),
    ("close", Some(Phase::Close)),
];

fn text(shown: &LiveFigures, scrapes: u64) -> String {
    let mut text = Text::default();
    text.family("pubgauge_run", MetricType::Info, "", "The run.");
    let version = env!("CARGO_PKG_VERSION");
    let about = [
        ("study", shown.study.as_str()),
        ("pubgauge_version", version),
    ];
    text.sample("_info", &about, &[], 1.0);
    let mut gauge = |name, unit, help, value| {
        text.family(name, MetricType::Gauge, unit, help);
        text.sample("", &[], &[], value);
    };
    gauge(
        "pubgauge_run_trials",
        "",
        "Trials of the plan.",
        shown.trials as f64,
    );
    gauge(
        "pubgauge_run_trials_left",
        "",
        "Trials not done yet.",
        shown.left as f64,
    );
    gauge(
        "pubgauge_run_elapsed_seconds",
        "seconds",
        "Since the run began or went on.",
        shown.elapsed.as_secs_f64(),
    );
    gauge(
        "pubgauge_run_remaining_seconds",
        "seconds",
        "About how long the run still takes.",
        shown.remaining.as_secs_f64(),
    );
    text.family(
        "pubgauge_run_verdicts",
        MetricType::Counter,
        "",
        "Trials done since the run began or went on, by verdict.",
    );
    for status in Status::ALL {
        let count = shown.verdicts.get(&status).copied().unwrap_or(0);
        text.sample("_total", &[("verdict", status.as_str())], &[], count as f64);
    }
    if let Some(current) = &shown.current {
        trial(&mut text, current);
    }
    text.family(
        "pubgauge_scrapes",
        MetricType::Counter,
        "",
        "Answers given here.",
    );
    text.sample("_total", &[], &[], scrapes as f64);
    text.family(
        "pubgauge_scrape_cpu_seconds",
        MetricType::Counter,
        "seconds",
        "Processor time that these answers have cost.",
    );
    text.sample("_total", &[], &[], thread_cpu() as f64 / 1e9);
    text.finish()
}

fn trial(text: &mut Text, current: &Current) {
    let (number, repeat) = (current.number.to_string(), current.repeat.to_string());
    let labels = [
        ("trial", number.as_str()),
        ("system", &current.system),
        ("workload", &current.workload),
        ("settings", &current.settings),
        ("repeat", &repeat),
    ];
    text.family(
        "pubgauge_live_phase",
        MetricType::StateSet,
        "",
        "Phase of the trial that runs.",
    );
    for (name, phase) in PHASES {
        let is = f64::from(current.phase == phase);
        text.sample("", &labels, &[("pubgauge_live_phase", name)], is);
    }
    let live = &current.live;
    let counters = [
        (
            "pubgauge_live_published_messages",
            "Messages published, of all phases.",
            live.sent,
        ),
        (
            "pubgauge_live_deliveries",
            "Deliveries, of all phases.",
            live.received,
        ),
        (
            "pubgauge_live_connections_lost",
            "Connections lost.",
            live.lost,
        ),
    ];
    for (name, help, value) in counters {
        text.family(name, MetricType::Counter, "", help);
        text.sample("_total", &labels, &[], value as f64);
    }
    let gauges = [
        (
            "pubgauge_live_connections",
            "Clients connected.",
            live.connected,
        ),
        (
            "pubgauge_live_under_way",
            "Measured deliveries that may still come.",
            live.under_way,
        ),
        (
            "pubgauge_live_passed_over",
            "Measured deliveries overtaken that have not come since: lost, as far as is known.",
            live.passed_over,
        ),
    ];
    for (name, help, value) in gauges {
        text.family(name, MetricType::Gauge, "", help);
        text.sample("", &labels, &[], value as f64);
    }
    text.family(
        "pubgauge_live_latency_seconds",
        MetricType::Gauge,
        "seconds",
        "Latency of the newest interval.",
    );
    if let Some(LatencyLive { p50, p99 }) = live.latency {
        for (quantile, ns) in [("0.5", p50), ("0.99", p99)] {
            text.sample("", &labels, &[("quantile", quantile)], ns as f64 / 1e9);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;
    use pubgauge_command::http::MAX_REQUEST;
    use serde_json::Value;

    /// The dashboard asks for nothing that the endpoint does not have, and shows all of it.
    #[test]
    fn the_dashboard_shows_what_the_endpoint_has() {
        let current = Current {
            live: Live {
                latency: Some(LatencyLive::default()),
                ..Live::default()
            },
            ..Current::default()
        };
        let shown = LiveFigures {
            current: Some(current),
            ..LiveFigures::default()
        };
        let text = text(&shown, 1);
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        let names = samples.filter_map(|line| line.split(['{', ' ']).next());
        let there: BTreeSet<&str> = names.collect();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/run-dashboard.json");
        let document = std::fs::read_to_string(path).unwrap();
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let words = document.split(|c| !is_of_name(c));
        let dashboard: Value = serde_json::from_str(&document).unwrap();
        let label = "pubgauge_live_phase";
        let asked: BTreeSet<&str> = words.filter(|word| word.starts_with("pubgauge_")).collect();
        assert!(asked.contains(label) && there.contains(label));
        let unknown: Vec<_> = asked.difference(&there).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        // How many answers were given is told by Prometheus itself.
        let left: Vec<_> = there.difference(&asked).collect();
        assert_eq!(left, [&"pubgauge_scrapes_total"]);
        let panels = dashboard["panels"].as_array().unwrap();
        let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64()).collect();
        assert_eq!(ids.len(), panels.len());
    }

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    #[test]
    fn it_answers_what_it_should_and_survives_the_rest() {
        let endpoint = MetricsEndpoint::open("0").unwrap();
        {
            let shown = endpoint.shared_figures();
            let mut shown = shown.lock().unwrap();
            shown.study = "a \"quoted\"\nstudy".into();
            shown.current = Some(Current {
                system: "mosquitto".into(),
                phase: Some(Phase::Measure),
                live: Live {
                    sent: 7,
                    latency: Some(LatencyLive {
                        p99: 218_000,
                        ..LatencyLive::default()
                    }),
                    ..Live::default()
                },
                ..Current::default()
            });
        }
        let address = endpoint.address();
        let answer = ask(address, "GET /metrics?x HTTP/1.1\r\nHost: x\r\n\r\n");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text"));
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())));
        assert!(body.ends_with("# EOF\n"));
        for line in [
            "pubgauge_run_info{study=\"a \\\"quoted\\\"\\nstudy\",",
            "system=\"mosquitto\",workload=\"\",settings=\"\",repeat=\"0\",pubgauge_live_phase=\"measure\"} 1\n",
            "quantile=\"0.99\"} 0.000218\n",
            "pubgauge_scrapes_total 1\n",
        ] {
            assert!(body.contains(line), "{line} is not in\n{body}");
        }
        assert!(ask(address, "HEAD /metrics HTTP/1.0\r\n\r\n").ends_with("\r\n\r\n"));
        assert!(ask(address, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(ask(address, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
        // Garbage without end is cut off; silence is given up; both leave room for the next.
        let garbage = "x".repeat(3 * MAX_REQUEST);
        let answer = ask(address, &garbage);
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 4"),
            "{answer}"
        );
        let silent = TcpStream::connect(address).unwrap();
        let answer = ask(address, "GET /metrics HTTP/1.1\r\n\r\n");
        assert!(answer.contains("pubgauge_scrapes_total 3\n"), "{answer}");
        drop(silent);
        drop(endpoint);
        assert!(
            TcpStream::connect(address).is_err(),
            "nobody listens any more"
        );
    }
}
