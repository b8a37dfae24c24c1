//! A run that looks like a real one, drawn from a fixed seed: five systems, three workloads, and
//! verdicts by the real rules.
#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use pubgauge_driver::{Answer, Capability, Mapping, Support, Unsupported};
use pubgauge_figures::criterion::{Comparator, CriterionSpec, TrialFilter};
use pubgauge_figures::histogram::{ECDF_POINTS, Interval, ecdf};
use pubgauge_figures::model::{CapabilityAnswer, SystemCapabilities};
use pubgauge_figures::*;
use pubgauge_fixtures::TrialBuilder;
use pubgauge_report::Logs;
use pubgauge_results::verdict::judge;

pub mod claims;
pub mod searches;

/// A small generator of our own, so that the sample never changes with a library.
pub struct Draws(u64);

impl Draws {
    pub fn new(seed: u64) -> Draws {
        Draws(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    pub fn log_normal(&mut self, median: f64, spread: f64) -> f64 {
        median * (spread * self.normal()).exp()
    }
}

struct Profile {
    name: &'static str,
    version: &'static str,
    /// Median latency in ns, paced.
    latency: f64,
    spread: f64,
    /// Messages per second flat out.
    capacity: f64,
    /// CPU seconds per message: system, publishers, subscribers.
    cpu: [f64; 3],
    in_client: bool,
}

const PROFILES: [Profile; 5] = [
    Profile {
        name: "reference",
        version: "0.1.0",
        latency: 61e3,
        spread: 0.55,
        capacity: 1.45e6,
        cpu: [0.65e-6, 0.12e-6, 0.24e-6],
        in_client: false,
    },
    Profile {
        name: "mosquitto",
        version: "2.0.11",
        latency: 118e3,
        spread: 0.65,
        capacity: 214e3,
        cpu: [4.6e-6, 0.15e-6, 0.31e-6],
        in_client: false,
    },
    Profile {
        name: "zeromq",
        version: "4.3.5",
        latency: 74e3,
        spread: 0.8,
        capacity: 1.31e6,
        cpu: [0.0, 0.68e-6, 0.44e-6],
        in_client: true,
    },
    Profile {
        name: "zeromq-forwarder",
        version: "4.3.5",
        latency: 131e3,
        spread: 0.8,
        capacity: 0.92e6,
        cpu: [0.88e-6, 0.61e-6, 0.46e-6],
        in_client: false,
    },
    Profile {
        name: "rabbitmq",
        version: "3.10.8",
        latency: 640e3,
        spread: 1.0,
        capacity: 31e3,
        cpu: [38e-6, 0.4e-6, 0.7e-6],
        in_client: false,
    },
];

struct Load {
    name: &'static str,
    publishers: u32,
    topics: u32,
    payload: &'static str,
    arrivals: &'static str,
    rate: Option<f64>,
}

const LOADS: [Load; 3] = [
    Load {
        name: "fleet of meters",
        publishers: 100,
        topics: 100,
        payload: "64 B",
        arrivals: "10/s each",
        rate: Some(1_000.0),
    },
    Load {
        name: "periodic 1-1",
        publishers: 1,
        topics: 1,
        payload: "64 B",
        arrivals: "10 k/s",
        rate: Some(10_000.0),
    },
    Load {
        name: "flat out 1-1",
        publishers: 1,
        topics: 1,
        payload: "64 B",
        arrivals: "flat out",
        rate: None,
    },
];

/// The sample with that many repeats of everything, and its histogram logs.
pub fn run(repeats: u32) -> (Results, Logs) {
    of(&LOADS, repeats, |_| true)
}

/// That run with four systems.
pub fn four(repeats: u32) -> (Results, Logs) {
    of(&LOADS, repeats, |profile| {
        profile.name != "zeromq-forwarder"
    })
}

/// One workload over a grid of rates and payloads, up to rates that not every system carries.
pub fn grid(repeats: u32) -> (Results, Logs) {
    let (mut all, mut logs) = of(&[], repeats, |_| true);
    for (rate, per_s) in [("1k/s", 1e3), ("10k/s", 1e4), ("100k/s", 1e5)] {
        for (payload, size) in [("64B", "64 B"), ("4KiB", "4 KiB")] {
            let load = Load {
                name: "meters",
                publishers: 100,
                topics: 100,
                payload: size,
                arrivals: rate,
                rate: Some(per_s),
            };
            let first = all.trials.len() as u32;
            let (one, own) = of(&[load], repeats, |_| true);
            logs.extend(own.into_iter().map(|(id, log)| (first + id, log)));
            all.trials.extend(one.trials.into_iter().map(|mut trial| {
                trial.id += first;
                trial.cell = format!("{} {rate} {payload}", trial.system.name);
                let axis = |name: &str, value: &str| AxisValue {
                    name: name.into(),
                    value: value.into(),
                };
                trial.axes = vec![
                    axis("workload.meters.flow.rate", rate),
                    axis("payload", payload),
                ];
                trial
            }));
        }
    }
    all.study.planned_trials = all.trials.len() as u32;
    (all, logs)
}

fn of(loads: &[Load], repeats: u32, wanted: fn(&Profile) -> bool) -> (Results, Logs) {
    let mut trials = Vec::new();
    let mut logs = Logs::new();
    let mut id = 0;
    for load in loads {
        for repeat in 1..=repeats {
            for (at, profile) in PROFILES.iter().enumerate().filter(|(_, p)| wanted(p)) {
                let (trial, interval) = trial(id, at, profile, load, repeat);
                logs.insert(id, vec![interval]);
                trials.push(trial);
                id += 1;
            }
        }
    }
    let results = Results {
        machine: Machine {
            kernel: "Linux 6.1.0".into(),
            os: "Debian GNU/Linux 12".into(),
            cpu_model: "Example CPU 2.5 GHz".into(),
            cores: 4,
            quota_cores: None,
            memory_bytes: 8 << 30,
            governor: None,
            idle_driver: None,
            max_open_files: 1_048_576,
            load_average_1min: 0.31,
            pubgauge_commit: String::new(),
            pubgauge_version: "0.1.0".into(),
            calibration: Some(
                serde_json::json!({"timer_lateness_ns": {"p50": 52_000, "p99": 210_000}}),
            ),
        },
        study: StudyInfo {
            until_decided_s: None,
            name: "first look".into(),
            question: Some("Which middleware carries a fleet of meters, and at what cost?".into()),
            started: "2026-11-21T01:45:00Z".into(),
            planned_trials: id,
            criteria: vec![CriterionOutcome {
                criterion: "latency.p99 at most 5 ms".into(),
                met: Some(false),
                figures: "rabbitmq 3.10.8, fleet of meters, repeat 1: 6.021 ms".into(),
            }],
            criterion_specs: vec![CriterionSpec {
                text: "latency.p99 at most 5 ms".into(),
                figure: "latency_ns.p99".into(),
                comparison: Comparator::AtMost,
                value: 5e6,
                filter: TrialFilter {
                    workloads: vec!["fleet of meters".into()],
                    ..TrialFilter::default()
                },
            }],
            unsupported: vec![UnsupportedCell {
                system: "zeromq".into(),
                settings: vec![Unsupported {
                    setting: "reliability".into(),
                    value: "exactly-once".into(),
                    reason: "libzmq has no acknowledgements; use at-most-once".into(),
                }],
            }],
            capabilities: ["rabbitmq", "zeromq"].map(capabilities).to_vec(),
            recordings: Vec::new(),
            claim_rules: BTreeMap::new(),
            scale: None,
            seed: 7,
            cut_off: false,
        },
        trials,
        ..Results::default()
    };
    (results, logs)
}

/// Made-up answers of every kind.
fn capabilities(system: &str) -> SystemCapabilities {
    let supports = [
        Support::Native,
        Support::Emulated,
        Support::Broken,
        Support::Unsupported,
    ];
    let answer = |(n, capability): (usize, Capability)| CapabilityAnswer {
        capability,
        answer: Answer {
            support: supports[(n + system.len()) % supports.len()],
            words: format!("what {capability} is on <{system}>"),
        },
    };
    SystemCapabilities {
        system: system.into(),
        answers: Capability::ALL
            .into_iter()
            .enumerate()
            .map(answer)
            .collect(),
    }
}

fn trial(id: u32, at: usize, profile: &Profile, load: &Load, repeat: u32) -> (Trial, Interval) {
    let mut draws = Draws::new(u64::from(id) + 1000);
    let duration_s = 2.0;
    let flat_out = load.rate.is_none();
    let wobble = 1.0 + 0.02 * draws.normal();
    // Messages that RabbitMQ cannot carry pile up in it.
    let too_much = load.rate.is_some_and(|rate| rate > profile.capacity);
    let overloaded = profile.name == "rabbitmq" && flat_out || too_much;
    let offered = load.rate.unwrap_or(profile.capacity * wobble);
    let rate = offered.min(profile.capacity * wobble);
    let published = (offered * duration_s * if overloaded && flat_out { 1.6 } else { 1.0 }) as u64;
    let lost = if profile.name == "zeromq-forwarder" && load.name == "periodic 1-1" {
        37
    } else {
        0
    };
    // The drain lasts half a second.
    let under_way = if too_much {
        published.saturating_sub((rate * (duration_s + 0.5)) as u64)
    } else {
        0
    };
    let delivered = published - lost - under_way;

    let (median, spread) = if too_much {
        (400e6, 0.9)
    } else if flat_out {
        (120e6 / (profile.capacity / 2e5), 0.25)
    } else {
        (profile.latency, profile.spread)
    };
    let latency = histogram(&mut draws, 4_000, median, spread);
    let lag = histogram(&mut draws, 4_000, 6_000.0, 0.7);
    let noise = histogram(&mut draws, 1_900, 55_000.0, 0.5);
    let system_cpu = profile.cpu[0] * delivered as f64;
    let fill = |share: f64| (share * duration_s).min(duration_s * 0.88);
    let client = ClientCpu {
        publishers: fill(profile.cpu[1] * published as f64 / duration_s),
        subscribers: fill(profile.cpu[2] * delivered as f64 / duration_s),
        ..ClientCpu::default()
    };
    let mut series = Vec::new();
    let mut backlog = if flat_out { 20_000.0 } else { 2.0 };
    for i in 0..10 {
        let length = 0.25;
        let draining = i >= 8;
        let out = rate * length * (1.0 + 0.01 * draws.normal());
        let into = if draining {
            0.0
        } else {
            published as f64 / 8.0
        };
        backlog = if overloaded {
            (backlog + into - out).max(0.0)
        } else {
            backlog
        };
        let delivered_now = if draining && !overloaded { 0.0 } else { out };
        series.push(SeriesRecord {
            traffic: TrafficRecord {
                t_s: length * f64::from(i + 1),
                published: into as u64,
                delivered: delivered_now as u64,
                backlog: if draining && !overloaded {
                    0
                } else {
                    (backlog + 3.0 * draws.uniform()) as u64
                },
                latency_p50_ns: draws.log_normal(median, 0.05) as u64,
                latency_p99_ns: draws.log_normal(median * 3.0, 0.2) as u64,
                latency_max_ns: (median * 9.0) as u64,
                ..TrafficRecord::default()
            },

            publishers_cpu: if draining {
                0.0
            } else {
                client.publishers / duration_s
            },
            subscribers_cpu: client.subscribers / duration_s,
            system_cpu: (!profile.in_client).then_some((system_cpu / duration_s).min(1.0)),
            client_rss_bytes: 12 << 20,
            system_rss_bytes: (!profile.in_client).then_some(9 << 20),
            noise_max_ns: draws.log_normal(400_000.0, 0.6) as u64,
            ..SeriesRecord::default()
        });
    }
    let builder = if flat_out {
        TrialBuilder::flat_out(published as f64 / duration_s, duration_s)
    } else {
        TrialBuilder::periodic(published as f64 / duration_s, duration_s)
    };
    let builder = builder
        .id(id)
        .repeat(repeat)
        .cell(format!("{}/{}", profile.name, load.name))
        .system(profile.name)
        .workload(load.name)
        .variant("")
        .lost(lost)
        .under_way(under_way);
    let mut trial = builder.build();
    let messages = &mut trial.messages;
    messages.delivered_msgs_per_s = rate.min(messages.delivered_msgs_per_s);
    messages.latency_ns = Distribution::censored(&latency, 4_000 * under_way / published.max(1));
    messages.latency_from_send_ns = Distribution::from_histogram(&latency);
    messages.send_lag_ns = Distribution::from_histogram(&lag);
    trial.system.version = profile.version.into();
    trial.mappings = mappings(profile.in_client);
    trial.workload.publishers = load.publishers;
    trial.workload.topics = load.topics;
    trial.workload.payload = load.payload.into();
    trial.workload.arrivals = load.arrivals.into();
    trial.started = "2026-11-21T01:45:00Z".into();
    trial.sentinels = 3;
    trial.client_cpu_s = client;
    trial.client_rss_bytes = 12 << 20;
    if !profile.in_client {
        trial.system_cpu_s = Some(if flat_out { 1.97 } else { system_cpu });
        trial.system_rss_bytes = Some(9 << 20);
        trial.system_busiest_thread_cpu = Some((system_cpu / duration_s).min(0.98));
    }
    trial.worker_load = WorkerLoad {
        publishers_running: client.publishers / duration_s,
        publishers_waiting: 0.04,
        subscribers_running: client.subscribers / duration_s,
        subscribers_waiting: 0.05,
        ..WorkerLoad::default()
    };
    let tenth = [published / 10, delivered / 10];
    trial.flows = match load.publishers {
        1 => vec![flow("periodic", published, delivered, &latency)],
        _ => vec![
            flow("alarms", tenth[0], tenth[1], &lag),
            flow(
                "readings",
                published - tenth[0],
                delivered - tenth[1],
                &latency,
            ),
        ],
    };
    trial.connections.planned = u64::from(load.publishers) + 1;
    trial.connections.made = trial.connections.planned;
    trial.series = series;
    trial.noise_ns = Distribution::from_histogram(&noise);
    trial.latency_ecdf = ecdf(&latency, ECDF_POINTS);
    trial.noise_ecdf = ecdf(&noise, ECDF_POINTS);
    if profile.in_client {
        trial.circumstances.system_in_client = true;
    }
    // One machine-bound trial among good ones.
    if at == 1 && load.name == "fleet of meters" && repeat == 2 {
        trial.worker_load.subscribers_waiting = 0.34;
    }
    trial.verdict = judge(&trial);
    let interval = Interval {
        tag: Some("all".into()),
        start: Duration::ZERO,
        length: Duration::from_secs_f64(duration_s),
        histogram: latency,
    };
    (trial, interval)
}

fn mappings(in_client: bool) -> Vec<Mapping> {
    vec![
        Mapping {
            setting: "reliability".into(),
            value: "default".into(),
            native: if in_client {
                "PUB/SUB over TCP, no acknowledgements".into()
            } else {
                "QoS 0".into()
            },
            term: (!in_client).then(|| "QoS 0".into()),
            qos: (!in_client).then_some(0),
        },
        Mapping {
            setting: "transport".into(),
            value: "tcp".into(),
            native: "TCP, TCP_NODELAY".into(),
            term: None,
            qos: None,
        },
    ]
}

fn flow(name: &str, published: u64, delivered: u64, latency: &Histogram<u64>) -> FlowFigures {
    FlowFigures {
        messages: Messages {
            offered: published,
            published,
            delivered,
            expected: published,
            latency_ns: Distribution::from_histogram(latency),
            ..Messages::default()
        },
        shortfall: Shortfall {
            lost: published.saturating_sub(delivered),
            ..Shortfall::default()
        },
        name: name.into(),

        ..Default::default()
    }
}

fn histogram(draws: &mut Draws, count: usize, median: f64, spread: f64) -> Histogram<u64> {
    let mut h = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
    for _ in 0..count {
        h.record(draws.log_normal(median, spread).clamp(1.0, 3.6e12) as u64)
            .unwrap();
    }
    h
}

/// Names that try to break out of HTML, JSON, scripts, CSV and the terminal.
pub fn hostile() -> (Results, Logs) {
    let (mut results, logs) = run(1);
    let names = [
        "</script><script>window.broken=1</script>",
        "\"><img src=x onerror=\"window.broken=2\">",
        "a\u{2028}b\u{2029}c<!--",
        "x, \"y\"\r\nz\u{1b}[31m\u{202e}",
        "'; window.broken=3; //${window.broken=4}",
    ];
    for trial in &mut results.trials {
        let at = PROFILES
            .iter()
            .position(|p| p.name == trial.system.name)
            .unwrap();
        trial.system.name = names[at].into();
        trial.workload.name = format!(
            "{} </title><script>window.broken=5</script>",
            trial.workload.name
        );
        trial.mappings[0].native = names[(at + 1) % 5].into();
        let reason = Reason::new(Rule::Lost, names[at]);
        trial.verdict.reasons.push(reason);
    }
    results.study.name = names[0].into();
    results.study.question = Some(names[1].into());
    results.machine.cpu_model = names[1].into();
    (results, logs)
}
