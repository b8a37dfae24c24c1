//! What is watched beside a trial: the system's processes, the client's own threads and memory,
//! and the machine's noise, step by step.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use hdrhistogram::Histogram;
use pubgauge_driver::{Nanos, clock::monotonic_now};
use pubgauge_engine::assignment::Role;
use pubgauge_engine::conductor::{Observer, Phase};
use pubgauge_engine::live::Live;
use pubgauge_engine::times::histogram;
use pubgauge_testbed::{NoiseMeter, ProcessSampler, Running, ThreadSampler};

use crate::progress::Progress;

const SECOND: Nanos = 1_000_000_000;

/// What was seen beside a trial.
pub struct Observed {
    /// Processor seconds of the system during the measurement.
    pub system_cpu_s: Option<f64>,
    /// Largest resident memory of the system during the measurement, bytes.
    pub system_rss_bytes: Option<u64>,
    /// Largest resident memory of the client during the measurement, bytes.
    pub client_rss_bytes: u64,
    /// How late a thread that only sleeps woke up during the measurement, ns.
    pub noise: Histogram<u64>,
    /// Processes of the system that ended during the trial.
    pub died: Vec<String>,
    seconds: Vec<SecondSeen>,
}

/// What was seen in one second.
#[derive(Clone, Copy, Debug, Default)]
pub struct SecondSeen {
    /// Its end, seconds from the start of the measurement.
    pub end_s: f64,
    /// Processor share of the publishing side, 1 = one core.
    pub publishers_cpu: f64,
    /// Processor share of the subscribing side.
    pub subscribers_cpu: f64,
    /// Processor share of the system.
    pub system_cpu: Option<f64>,
    /// Resident memory of the client, bytes.
    pub client_rss_bytes: u64,
    /// Resident memory of the system, bytes.
    pub system_rss_bytes: Option<u64>,
    /// Longest stall, ns.
    pub noise_max_ns: u64,
}

impl Observed {
    /// Nothing was seen.
    pub fn nothing() -> Self {
        Observed {
            system_cpu_s: None,
            system_rss_bytes: None,
            client_rss_bytes: 0,
            noise: histogram(),
            died: Vec::new(),
            seconds: Vec::new(),
        }
    }

    /// What was seen in the interval that holds `at_s`, seconds from the start of the
    /// measurement.
    pub fn second(&self, at_s: f64) -> SecondSeen {
        self.seconds
            .iter()
            .find(|s| s.end_s >= at_s)
            .or(self.seconds.last())
            .copied()
            .unwrap_or_default()
    }
}

/// Watches one trial.
pub struct Watcher<'a> {
    running: &'a Running,
    system: Option<ProcessSampler>,
    client: ProcessSampler,
    threads: BTreeMap<Role, ThreadSampler>,
    noise_meter: Option<NoiseMeter>,
    progress: &'a mut Progress,
    stop: Arc<AtomicBool>,
    measuring: Option<Measuring>,
    observed: Observed,
    next_check: Nanos,
    interval: Nanos,
}

struct Measuring {
    began: Nanos,
    first_system_ns: Option<u64>,
    last: Sample,
    next: Nanos,
}

#[derive(Clone, Copy, Default)]
struct Sample {
    at: Nanos,
    publishers_ns: u64,
    subscribers_ns: u64,
    system_ns: Option<u64>,
}

impl<'a> Watcher<'a> {
    /// Watches the trial on `running`, showing progress, in a series of steps of `interval`.
    pub fn new(
        running: &'a Running,
        progress: &'a mut Progress,
        stop: Arc<AtomicBool>,
        interval: Nanos,
    ) -> Self {
        Watcher {
            running,
            system: running.root_pid().map(ProcessSampler::descendants_of),
            client: ProcessSampler::only(&[std::process::id() as i32]),
            threads: BTreeMap::new(),
            noise_meter: None,
            progress,
            stop,
            measuring: None,
            observed: Observed::nothing(),
            next_check: 0,
            interval,
        }
    }

    /// What was seen.
    pub fn finish(self) -> Observed {
        self.observed
    }

    fn sample(&mut self, now: Nanos) -> Sample {
        let threads = &mut self.threads;
        let mut of = |role| {
            threads
                .get_mut(&role)
                .map_or(0, |t: &mut ThreadSampler| t.sample().total.cpu_ns)
        };
        Sample {
            at: now,
            publishers_ns: of(Role::Publishers),
            subscribers_ns: of(Role::Subscribers),
            system_ns: self.system.as_mut().map(|s| s.sample().cpu_ns),
        }
    }

    fn begin(&mut self, live: &Live, now: Nanos) {
        if let Ok(known) = live.threads.lock() {
            for role in [Role::Publishers, Role::Subscribers] {
                let tids = known
                    .iter()
                    .filter(|(r, _)| *r == role)
                    .map(|(_, tid)| *tid as i32);
                self.threads.insert(role, ThreadSampler::new(tids));
            }
        }
        let last = self.sample(now);
        self.noise_meter = NoiseMeter::start().ok();
        self.measuring = Some(Measuring {
            began: now,
            first_system_ns: last.system_ns,
            last,
            next: now + self.interval,
        });
    }

    /// Ends an interval of the series.
    fn turn(&mut self, now: Nanos) {
        let sample = self.sample(now);
        let Some(measuring) = &mut self.measuring else {
            return;
        };
        let last = std::mem::replace(&mut measuring.last, sample);
        let began = measuring.began;
        if let (Some(first), Some(system)) = (measuring.first_system_ns, sample.system_ns) {
            self.observed.system_cpu_s = Some(system.saturating_sub(first) as f64 / SECOND as f64);
        }
        let span = (sample.at - last.at).max(1) as f64;
        let share = |to: u64, from: u64| to.saturating_sub(from) as f64 / span;
        let mut noise_max_ns = 0;
        if let Some(meter) = &self.noise_meter {
            for late in meter.drain() {
                noise_max_ns = noise_max_ns.max(late);
                self.observed.noise.saturating_record(late.max(1));
            }
        }
        let client_rss_bytes = self.client.sample().rss_bytes;
        let system_rss_bytes = self.system.as_mut().map(|s| s.sample().rss_bytes);
        self.observed.client_rss_bytes = self.observed.client_rss_bytes.max(client_rss_bytes);
        self.observed.system_rss_bytes = self.observed.system_rss_bytes.max(system_rss_bytes);
        self.observed.seconds.push(SecondSeen {
            end_s: (now - began) as f64 / SECOND as f64,
            publishers_cpu: share(sample.publishers_ns, last.publishers_ns),
            subscribers_cpu: share(sample.subscribers_ns, last.subscribers_ns),
            system_cpu: sample
                .system_ns
                .zip(last.system_ns)
                .map(|(to, from)| share(to, from)),
            client_rss_bytes,
            system_rss_bytes,
            noise_max_ns,
        });
    }
}

impl Observer for Watcher<'_> {
    fn phase(&mut self, phase: Phase, _: Nanos) {
        if self.measuring.is_some() && phase != Phase::Measure {
            self.turn(monotonic_now());
            self.measuring = None;
            self.noise_meter = None;
        }
        self.progress.phase(phase);
    }

    fn tick(&mut self, phase: Phase, live: &Live, now: Nanos) -> Option<String> {
        if phase == Phase::Measure && self.measuring.is_none() {
            self.begin(live, now);
        }
        if self.measuring.as_ref().is_some_and(|m| now >= m.next) {
            self.turn(now);
            if let Some(measuring) = &mut self.measuring {
                measuring.next += self.interval;
            }
        }
        if now < self.next_check {
            return None;
        }
        self.next_check = now + 50_000_000;
        self.progress.tick(live, now);
        if self.stop.load(Relaxed) {
            return None; // the conductor looks at the same flag
        }
        if let Err(how) = self.running.check() {
            if self.observed.died.is_empty() {
                self.observed.died.push(how.clone());
            }
            return Some(how);
        }
        None
    }
}
