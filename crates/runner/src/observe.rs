//! Observations beside a trial: the system's processes, the client's threads and memory, and the
//! machine's noise, step by step.

use pubgauge_figures::TrafficRecord;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use hdrhistogram::Histogram;
use pubgauge_driver::{Nanos, clock::monotonic_now};
use pubgauge_engine::assignment::Role;
use pubgauge_engine::conductor::{Observer, Phase};
use pubgauge_engine::live::Live;
use pubgauge_engine::times::histogram;
use pubgauge_engine::usage::MachineReading;
use pubgauge_figures::model::{Broker, ContextSwitches, QuotaUse, SeriesRecord};
use pubgauge_testbed::limits::{Quota, Throttling, quotas};
use pubgauge_testbed::{
    BusiestThread, NOISE_INTERVAL, NoiseMeter, ProcessSample, ProcessSampler, ThreadSampler,
};

use crate::instances::Instances;
use crate::job::Watch;
use crate::on_request::CountersOnRequest;

const SECOND: Nanos = 1_000_000_000;

/// Figures of the processes of client and system over the measurement; of the system `None` where it is out of sight.
#[derive(Clone, Debug, Default)]
pub struct ProcessFigures {
    pub client_processes: Option<u32>,
    pub client_rss_bytes: u64,
    pub system_cpu_s: Option<f64>,
    pub system_rss_bytes: Option<u64>,
    pub system_context_switches: Option<ContextSwitches>,
    pub system_busiest_thread_cpu: Option<f64>,
    pub system_processes: Option<u32>,
    /// At the end.
    pub system_descriptors: Option<u64>,
    pub system_written_bytes: Option<u64>,
    /// Each of several brokers; empty where there is one.
    pub brokers: Vec<Broker>,
    /// For how long the system's thread that waited most was ready and waited for a processor.
    pub system_waiting: Option<SystemWaiting>,
}

/// For how long a thread of the system was ready and waited for a processor.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemWaiting {
    /// The thread that waited most in the measurement, ns.
    pub all: Nanos,
    /// The most that a thread waited within one interval of the series, ns: no single wait was longer.
    pub longest: Nanos,
}

/// The observations made while a trial ran.
pub struct Observed {
    pub processes: ProcessFigures,
    /// How late a thread that only sleeps woke up during the measurement, ns.
    pub noise: Histogram<u64>,
    /// Processes of the system that ended during the trial.
    pub died: Vec<String>,
    /// The trial was ended because it had.
    pub ended_by_system: bool,
    /// Stalls of the whole machine during the measurement.
    pub stalls: Stalls,
    /// Processors that other programs than client and system kept busy during the measurement, of those that this process
    /// may use, on average; with the system where that is out of sight. `None` where the machine does not tell.
    pub others_cores: Option<f64>,
    /// Share of this machine's processor time that a hypervisor gave to others during the measurement.
    pub stolen: Option<f64>,
    /// The effect of a quota of processor time around this process during the measurement; `None` without any, or where the
    /// kernel does not tell.
    pub quota: Option<QuotaUse>,
    /// By each window's bound, in ns from the start of the measurement: the time when the system's
    /// processor time was read (this process's clock), and that processor time, both ns.
    pub system_cpu_at: BTreeMap<Nanos, (Nanos, u64)>,
    /// Whether the workers were on other hosts: of the client only this process was observed.
    pub elsewhere: bool,
    /// The observations in each interval of the series.
    seconds: Vec<SeriesRecord>,
}

/// Stalls of the whole machine of [`Stalls::FLOOR`] and more, in the measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalls {
    /// All of them, ns.
    pub all: Nanos,
    /// The longest, ns.
    pub longest: Nanos,
    within: bool,
    /// Samples so far.
    samples: u64,
}

impl Stalls {
    /// The shortest that counts, ns.
    pub const FLOOR: Nanos = 10_000_000;

    /// When the wake-up of the next sample is due, of a thread that began at `began`.
    fn due(&self, began: Nanos) -> Nanos {
        began + (self.samples + 1) * NOISE_INTERVAL
    }

    /// Adds the next sample of a thread that wants to wake up every [`NOISE_INTERVAL`]. A stall of
    /// 50 ms gives samples of 50 ms, 49 ms and so on.
    fn add(&mut self, late: Nanos) {
        self.samples += 1;
        let within = late >= Self::FLOOR;
        if within {
            // The first sample also counts for the stall's last ones, which are below the floor.
            self.all += if self.within {
                NOISE_INTERVAL
            } else {
                NOISE_INTERVAL + Self::FLOOR
            };
            self.longest = self.longest.max(late);
        }
        self.within = within;
    }
}

impl Observed {
    /// Without any observations.
    pub fn nothing() -> Self {
        Observed {
            processes: ProcessFigures::default(),
            noise: histogram(),
            died: Vec::new(),
            ended_by_system: false,
            stalls: Stalls::default(),
            others_cores: None,
            stolen: None,
            quota: None,
            system_cpu_at: BTreeMap::new(),
            elsewhere: false,
            seconds: Vec::new(),
        }
    }

    /// Takes the next samples of a thread that wants to wake up every [`NOISE_INTERVAL`] from the beginning of
    /// `span` on, which ends with the measurement. They are the `last`: a thread that has not woken up by
    /// `now`, [`Stalls::FLOOR`] and more too late, is late as well. Returns the largest lateness, ns.
    fn take_noise(
        &mut self,
        samples: &[Nanos],
        span: &Range<Nanos>,
        now: Nanos,
        last: bool,
    ) -> Nanos {
        let mut longest = 0;
        let mut add = |observed: &mut Observed, due: Nanos, late: Nanos| {
            longest = longest.max(late);
            observed.noise.saturating_record(late.max(1));
            // The part of a stall that comes after the measurement does not count.
            observed.stalls.add(late.min(span.end - due));
        };
        for late in samples {
            let due = self.stalls.due(span.start);
            if due < span.end {
                add(self, due, *late);
            }
        }
        let missing = self.stalls.due(span.start);
        if last && missing + Stalls::FLOOR <= span.end {
            while self.stalls.due(span.start) < span.end {
                let due = self.stalls.due(span.start);
                add(self, due, now - due);
            }
        }
        longest
    }

    /// The observations of the interval at `at_s`, in seconds from the start of the measurement; nothing of its
    /// traffic.
    pub fn second(&self, at_s: f64) -> SeriesRecord {
        self.seconds
            .iter()
            .find(|s| s.traffic.t_s >= at_s)
            .or(self.seconds.last())
            .copied()
            .unwrap_or_default()
    }
}

/// Observes one trial.
pub struct Watcher<'a> {
    running: &'a Instances,
    /// Broker by broker.
    system: Vec<Option<ProcessSampler>>,
    client: ProcessSampler,
    threads: BTreeMap<Role, ThreadSampler>,
    noise_meter: Option<NoiseMeter>,
    watch: &'a mut dyn Watch,
    stop: Arc<AtomicBool>,
    measuring: Option<Measuring>,
    observed: Observed,
    next_check: Nanos,
    ends_once_hopeless: bool,
    steps: SampleTimes,
    counter: &'a mut CountersOnRequest,
    /// Processors that this process may use.
    processors: f64,
    /// The quotas of processor time around this process, tightest first.
    quotas: Vec<Quota>,
}

/// When a measurement is sampled, ns from its start.
#[derive(Clone, Debug, Default)]
pub struct SampleTimes {
    /// At each multiple of this.
    pub interval: Nanos,
    /// Where a window begins or ends, ascending.
    pub bounds: Vec<Nanos>,
    /// Longest length of the measurement.
    pub length: Nanos,
}

struct Measuring {
    began: Nanos,
    first: Sample,
    last: Sample,
    next: Nanos,
    busiest_ns: u64,
    /// The time that a thread of the system waited since the last turn, until it was sampled at the bound of a window.
    waited_ns: u64,
    /// Busiest thread of each broker.
    each_busiest_ns: Vec<u64>,
}

#[derive(Clone, Default)]
struct Sample {
    at: Nanos,
    publishers_ns: u64,
    subscribers_ns: u64,
    client: ProcessSample,
    /// All brokers together; `None` where one is out of sight.
    system: Option<ProcessSample>,
    machine: Option<MachineReading>,
    /// The effect of each quota around this process so far.
    throttling: Vec<Option<Throttling>>,
    each: Vec<Option<ProcessSample>>,
}

/// A sample of each system; `None` of one that is out of sight.
fn sampled(system: &mut [Option<ProcessSampler>]) -> Vec<Option<ProcessSample>> {
    let sample = |one: &mut Option<ProcessSampler>| one.as_mut().map(ProcessSampler::sample);
    system.iter_mut().map(sample).collect()
}

/// Several systems as one; its busiest thread is the busiest of all. `None` where one is out of
/// sight.
fn combine(each: &[Option<ProcessSample>]) -> Option<ProcessSample> {
    let mut each = each.iter();
    let mut sum = each.next()?.clone()?;
    for one in each {
        let one = one.as_ref()?;
        sum.cpu_ns += one.cpu_ns;
        sum.rss_bytes += one.rss_bytes;
        sum.peak_rss_bytes += one.peak_rss_bytes;
        sum.voluntary_switches += one.voluntary_switches;
        sum.involuntary_switches += one.involuntary_switches;
        sum.written_bytes = sum.written_bytes.zip(one.written_bytes).map(|(a, b)| a + b);
        sum.processes += one.processes;
        sum.threads += one.threads;
        sum.longest_waiting_ns = sum.longest_waiting_ns.max(one.longest_waiting_ns);
        sum.waiting_since_last_ns = sum.waiting_since_last_ns.max(one.waiting_since_last_ns);
        let busier = |thread: &&BusiestThread| {
            sum.busiest
                .as_ref()
                .is_none_or(|b| thread.cpu_ns > b.cpu_ns)
        };
        if let Some(thread) = one.busiest.as_ref().filter(busier) {
            sum.busiest = Some(thread.clone());
        }
    }
    Some(sum)
}

/// Until when what the meter saw counts: the end of the measurement, which may come early. Its samples from `now` on, while
/// the system was sampled, are of the next turn's interval, and count as well.
fn noise_until(end: Nanos, now: Nanos, last_turn: bool) -> Nanos {
    if last_turn { now.min(end) } else { end }
}

/// Processor time that other programs used from one sample to a later one, ns, of the `processors` that this process
/// may use; with that of the system where it is out of sight.
fn time_of_others(from: &Sample, to: &Sample, processors: f64) -> Option<f64> {
    let systems = from.system.as_ref().zip(to.system.as_ref());
    let system = systems.map_or(0, |(from, to)| to.cpu_ns.saturating_sub(from.cpu_ns));
    let machine = to.machine?.since(&from.machine?);
    let client = to.client.cpu_ns.saturating_sub(from.client.cpu_ns);
    let others = machine.used.saturating_sub(system + client) as f64;
    let span = to.at.saturating_sub(from.at) as f64;
    Some(time_taken(others, machine.all as f64, span, processors))
}

/// The part of the time of `others` that was taken from the `processors` that this process may use, ns. Where a quota (a
/// container's) leaves it fewer than the machine has, others have the rest first. `all` is the time of all processors.
fn time_taken(others: f64, all: f64, span: f64, processors: f64) -> f64 {
    // Both clocks are read a moment apart.
    let there = (all / span.max(1.0)).round();
    (others - (there - processors).max(0.0) * span).max(0.0)
}

/// The effect of quotas from one sample to a later one: of that which held back longest, of the first if none did.
fn quota_use(quotas: &[Quota], from: &Sample, to: &Sample) -> Option<QuotaUse> {
    let readings = to.throttling.iter().zip(&from.throttling);
    let each = quotas
        .iter()
        .zip(readings)
        .filter_map(|(quota, (to, from))| {
            let told = to.as_ref()?.since(from.as_ref()?);
            Some(QuotaUse {
                cores: quota.cores,
                period_ns: quota.period_ns,
                periods: told.periods,
                held_back_periods: told.throttled_periods,
                held_back_ns: told.throttled_ns,
            })
        });
    // Of those that held back alike, the tightest comes first.
    each.reduce(|most, other| {
        if other.held_back_ns > most.held_back_ns {
            other
        } else {
            most
        }
    })
}

/// Context switches from one sample of the same processes to a later one.
fn switches(from: &ProcessSample, to: &ProcessSample) -> ContextSwitches {
    ContextSwitches {
        voluntary: to
            .voluntary_switches
            .saturating_sub(from.voluntary_switches),
        involuntary: to
            .involuntary_switches
            .saturating_sub(from.involuntary_switches),
    }
}

impl<'a> Watcher<'a> {
    /// Observes the trial on `running`, of which `brokers` are several, calling `watch`, in a series of `steps`, with
    /// `counter` for what else is counted.
    pub fn new(
        running: &'a Instances,
        brokers: Vec<Broker>,
        watch: &'a mut dyn Watch,
        stop: Arc<AtomicBool>,
        steps: SampleTimes,
        counter: &'a mut CountersOnRequest,
    ) -> Self {
        Watcher {
            running,
            system: (running.root_pids().into_iter())
                .map(|root| root.map(ProcessSampler::descendants_of))
                .collect(),
            client: ProcessSampler::only(&[std::process::id() as i32]),
            threads: BTreeMap::new(),
            noise_meter: None,
            watch,
            stop,
            measuring: None,
            observed: Observed {
                processes: ProcessFigures {
                    brokers,
                    ..ProcessFigures::default()
                },
                ..Observed::nothing()
            },
            next_check: 0,
            ends_once_hopeless: false,
            steps,
            counter,
            processors: pubgauge_testbed::processors(),
            quotas: quotas(),
        }
    }

    /// Has the measurement end as soon as the system cannot carry its load any more.
    pub fn end_once_hopeless(&mut self) {
        self.ends_once_hopeless = true;
    }

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
        let each = sampled(&mut self.system);
        Sample {
            at: now,
            publishers_ns: of(Role::Publishers),
            subscribers_ns: of(Role::Subscribers),
            client: self.client.sample(),
            system: combine(&each),
            machine: MachineReading::now(),
            throttling: self.quotas.iter().map(Quota::throttling).collect(),
            each,
        }
    }

    fn begin(&mut self, live: &Live, now: Nanos) {
        for role in [Role::Publishers, Role::Subscribers] {
            let threads = live.threads.iter().filter(|thread| thread.role == role);
            let threads = threads.map(|thread| (thread.process as i32, thread.thread as i32));
            self.threads.insert(role, ThreadSampler::new(threads));
        }
        // This process too, where the workers are in others.
        let mut processes = BTreeSet::from([std::process::id() as i32]);
        processes.extend(live.threads.iter().map(|thread| thread.process as i32));
        let processes: Vec<_> = processes.into_iter().collect();
        self.observed.processes.client_processes = Some(processes.len() as u32);
        self.client = ProcessSampler::only(&processes);
        self.counter.begin();
        let last = self.sample(now);
        self.noise_meter = NoiseMeter::start().ok();
        self.measuring = Some(Measuring {
            began: now,
            first: last.clone(),
            last,
            busiest_ns: 0,
            waited_ns: 0,
            each_busiest_ns: vec![0; self.system.len()],
            next: now + self.steps.interval,
        });
    }

    /// Reads the system's processor time at the bounds of windows.
    fn bounds(&mut self, now: Nanos) {
        let Some(measuring) = &mut self.measuring else {
            return;
        };
        let bounds = &self.steps.bounds;
        let passed = bounds.partition_point(|bound| measuring.began + bound <= now);
        if passed <= self.observed.system_cpu_at.len() {
            return;
        }
        // Most bounds are ends of intervals too, at which it has just been read.
        if measuring.last.at != now {
            let each = sampled(&mut self.system);
            // `None` where a system is out of sight.
            let Some(all) = combine(&each) else {
                return;
            };
            // The busiest thread's time since the sample before this one.
            measuring.busiest_ns += all.busiest.as_ref().map_or(0, |b| b.cpu_ns);
            measuring.waited_ns += all.waiting_since_last_ns;
            for (sum, one) in measuring.each_busiest_ns.iter_mut().zip(&each) {
                let busiest = one.as_ref().and_then(|one| one.busiest.as_ref());
                *sum += busiest.map_or(0, |b| b.cpu_ns);
            }
            self.read(passed, now, all.cpu_ns);
        } else if let Some(ns) = self.last_cpu_ns() {
            self.read(passed, now, ns);
        }
    }

    /// After the measurement: the remaining bounds get the reading at its end.
    fn last_bounds(&mut self) {
        let at = self.measuring.as_ref().map(|measuring| measuring.last.at);
        if let (Some(at), Some(ns)) = (at, self.last_cpu_ns()) {
            self.read(self.steps.bounds.len(), at, ns);
        }
    }

    fn last_cpu_ns(&self) -> Option<u64> {
        let last = self.measuring.as_ref()?.last.system.as_ref()?;
        Some(last.cpu_ns)
    }

    /// Stores a reading for the first `passed` bounds that have none.
    fn read(&mut self, passed: usize, at: Nanos, ns: u64) {
        for bound in &self.steps.bounds[..passed] {
            self.observed
                .system_cpu_at
                .entry(*bound)
                .or_insert((at, ns));
        }
    }

    /// Ends an interval of the series; `last_turn`: that of the measurement's end.
    fn turn(&mut self, now: Nanos, last_turn: bool) {
        let sample = self.sample(now);
        let Some(measuring) = &mut self.measuring else {
            return;
        };
        let last = std::mem::replace(&mut measuring.last, sample.clone());
        let observed = &mut self.observed;
        let began = measuring.began;
        let mut noise_max_ns = 0;
        if let Some(meter) = &self.noise_meter {
            let end = began + self.steps.length;
            let span = meter.start_time()..noise_until(end, now, last_turn);
            noise_max_ns = observed.take_noise(&meter.drain(), &span, now, last_turn);
        }
        let figures = &mut observed.processes;
        if last_turn {
            let each = self.system.iter();
            figures.system_descriptors = each
                .map(|one| one.as_ref()?.count_descriptors())
                .try_fold(0, |sum, count| Some(sum + count?))
                .filter(|_| !self.system.is_empty());
        }
        if let Some((first, system)) = measuring.first.system.as_ref().zip(sample.system.as_ref()) {
            let cpu_ns = system.cpu_ns.saturating_sub(first.cpu_ns);
            figures.system_cpu_s = Some(cpu_ns as f64 / SECOND as f64);
            figures.system_context_switches = Some(switches(first, system));
            figures.system_processes = Some(system.processes);
            let written = first.written_bytes.zip(system.written_bytes);
            figures.system_written_bytes = written.map(|(from, to)| to.saturating_sub(from));
            measuring.busiest_ns += system.busiest.as_ref().map_or(0, |b| b.cpu_ns);
            let waiting = figures.system_waiting.get_or_insert_default();
            waiting.all = system.longest_waiting_ns;
            let waited = std::mem::take(&mut measuring.waited_ns) + system.waiting_since_last_ns;
            waiting.longest = waiting.longest.max(waited);
            let span = (sample.at - measuring.first.at).max(1);
            figures.system_busiest_thread_cpu = Some(measuring.busiest_ns as f64 / span as f64);
        }
        let whole = (sample.at - measuring.first.at).max(1) as f64;
        observed.others_cores =
            time_of_others(&measuring.first, &sample, self.processors).map(|ns| ns / whole);
        let machine = sample.machine.zip(measuring.first.machine);
        observed.stolen = machine.map(|(to, from)| to.since(&from).stolen_share());
        observed.quota = quota_use(&self.quotas, &measuring.first, &sample);
        for (number, broker) in figures.brokers.iter_mut().enumerate() {
            let (Some(first), Some(now)) = (&measuring.first.each[number], &sample.each[number])
            else {
                continue;
            };
            broker.cpu_s = Some(now.cpu_ns.saturating_sub(first.cpu_ns) as f64 / SECOND as f64);
            broker.rss_bytes = broker.rss_bytes.max(Some(now.rss_bytes));
            let busiest = &mut measuring.each_busiest_ns[number];
            *busiest += now.busiest.as_ref().map_or(0, |b| b.cpu_ns);
            broker.busiest_thread_cpu = Some(*busiest as f64 / whole);
        }
        let span = (sample.at - last.at).max(1) as f64;
        let share = |to: u64, from: u64| to.saturating_sub(from) as f64 / span;
        let systems = last.system.as_ref().zip(sample.system.as_ref());
        let system_rss_bytes = sample.system.as_ref().map(|s| s.rss_bytes);
        figures.client_rss_bytes = figures.client_rss_bytes.max(sample.client.rss_bytes);
        figures.system_rss_bytes = figures.system_rss_bytes.max(system_rss_bytes);
        observed.seconds.push(SeriesRecord {
            traffic: TrafficRecord {
                t_s: (now - began) as f64 / SECOND as f64,
                ..TrafficRecord::default()
            },

            publishers_cpu: share(sample.publishers_ns, last.publishers_ns),
            subscribers_cpu: share(sample.subscribers_ns, last.subscribers_ns),
            system_cpu: systems.map(|(from, to)| share(to.cpu_ns, from.cpu_ns)),
            client_rss_bytes: sample.client.rss_bytes,
            system_rss_bytes,
            client_context_switches: switches(&last.client, &sample.client),
            system_context_switches: systems.map(|(from, to)| switches(from, to)),
            noise_max_ns,
            ..SeriesRecord::default()
        });
    }
}

impl Observer for Watcher<'_> {
    fn phase(&mut self, phase: Phase, _: Nanos) {
        if self.measuring.is_some() && phase != Phase::Measure {
            self.counter.end_measurement();
            // The noise thread must wake up to record its lateness.
            std::thread::sleep(Duration::from_nanos(2 * NOISE_INTERVAL));
            self.turn(monotonic_now(), true);
            self.last_bounds();
            self.measuring = None;
            self.noise_meter = None;
        }
        self.watch.phase(phase);
    }

    fn tick(&mut self, phase: Phase, live: &Live, now: Nanos) -> Option<String> {
        if phase == Phase::WarmUp {
            self.counter.open(self.running, live);
        }
        if phase == Phase::Measure && self.measuring.is_none() {
            self.begin(live, now);
        }
        if self.measuring.as_ref().is_some_and(|m| now >= m.next) {
            self.turn(now, false);
            if let Some(measuring) = &mut self.measuring {
                measuring.next += self.steps.interval;
            }
        }
        if phase == Phase::Measure {
            self.bounds(now);
        }
        if now < self.next_check {
            return None;
        }
        self.next_check = now + 50_000_000;
        self.watch.tick(live, now);
        if self.stop.load(Relaxed) {
            return None; // the conductor looks at the same flag
        }
        if let Err(how) = self.running.check() {
            if self.observed.died.is_empty() {
                self.observed.died.push(how.clone());
            }
            self.observed.ended_by_system = true;
            return Some(how);
        }
        None
    }

    fn has_enough(&mut self, live: &Live, now: Nanos) -> bool {
        let began = self.measuring.as_ref().map(|measuring| measuring.began);
        let lasted = began.map_or(0, |began| now.saturating_sub(began));
        self.ends_once_hopeless && is_hopeless(live, lasted)
    }
}

/// Whether a system cannot carry its load: the measurement has `lasted` for 2 s, ns, and more is under way than has come at
/// all, the warm-up included. By then an ordinary pause would be over.
fn is_hopeless(live: &Live, lasted: Nanos) -> bool {
    lasted >= 2 * SECOND && live.under_way > live.received
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_hopeless_where_more_waits_than_has_come() {
        let live = |under_way, received| Live {
            under_way,
            received,
            ..Live::default()
        };
        assert!(is_hopeless(&live(1_001, 1_000), 2 * SECOND));
        assert!(!is_hopeless(&live(1_001, 1_000), SECOND));
        assert!(!is_hopeless(&live(999, 1_000), 2 * SECOND));
        assert!(!is_hopeless(&Live::default(), 9 * SECOND));
    }

    #[test]
    fn others_have_the_processors_first_that_a_quota_leaves() {
        let s = SECOND as f64;
        let of = |others: f64, there: f64, own| time_taken(others * s, there * s, s, own) / s;
        assert_eq!(of(5.0, 8.0, 2.0), 0.0);
        assert_eq!(of(7.5, 8.0, 2.0), 1.5);
        assert_eq!(
            of(0.5, 2.02, 2.0),
            0.5,
            "no quota, and ticks that are not exact"
        );
    }

    #[test]
    fn a_stall_is_as_long_as_it_was() {
        let mut stalls = Stalls::default();
        let ms = 1_000_000;
        for late in [0, 0, 50 * ms] {
            // The samples of one stall.
            let samples = (0..=late).rev().step_by(NOISE_INTERVAL as usize);
            samples.for_each(|late| stalls.add(late));
        }
        assert_eq!(stalls.longest, 50 * ms);
        let within = 2 * NOISE_INTERVAL;
        assert!(stalls.all.abs_diff(50 * ms) <= within, "{}", stalls.all);
    }

    /// Ten turns of which each is 3 ms old when the meter is read, because the system was sampled first. Before, the samples
    /// of these 3 ms were lost, and taken for a stall of 30 ms at the end.
    #[test]
    fn what_the_meter_saw_while_the_system_was_sampled_is_no_stall() {
        let ms = 1_000_000;
        let (began, end) = (7_000 * ms, 8_000 * ms);
        let mut observed = Observed::nothing();
        let mut seen = 0;
        for turn in 1..=10 {
            let (now, last) = (began + 100 * turn * ms, turn == 10);
            let upto = (now + 3 * ms - began) / NOISE_INTERVAL;
            let span = began..noise_until(end, now, last);
            observed.take_noise(&vec![50_000; (upto - seen) as usize], &span, now, last);
            seen = upto;
        }
        assert_eq!((observed.stalls.all, observed.stalls.longest), (0, 0));
        // The first is due an interval after the beginning.
        assert_eq!(observed.noise.len(), 1_000 * ms / NOISE_INTERVAL - 1);
    }

    /// A stall that lasts beyond the measurement counts as far as it lies in it, whether the thread wakes up
    /// after it or never.
    #[test]
    fn a_stall_across_the_end_is_within_the_measurement() {
        let ms = 1_000_000;
        let began = 7_000 * ms;
        // It stands still from 600 ms on, of a measurement of 1 s, for 5 s.
        let span = began..began + 1_000 * ms;
        let before = vec![0; (600 * ms / NOISE_INTERVAL) as usize];
        let after = (0..5_000 * ms / NOISE_INTERVAL).rev();
        let after: Vec<Nanos> = after.map(|late| late * NOISE_INTERVAL).collect();
        for woken in [Vec::new(), after] {
            let mut observed = Observed::nothing();
            let now = began + 6_000 * ms;
            observed.take_noise(&before, &span, began + 601 * ms, false);
            assert_eq!(observed.stalls.all, 0);
            let longest = observed.take_noise(&woken, &span, now, true);
            let stalls = observed.stalls;
            let within = 2 * NOISE_INTERVAL;
            assert!(stalls.all.abs_diff(400 * ms) <= within, "{stalls:?}");
            assert!(stalls.longest.abs_diff(400 * ms) <= within, "{stalls:?}");
            let least = 5_000 * ms - NOISE_INTERVAL;
            assert!(longest >= least, "{longest}");
            assert!(observed.noise.max() >= least);
        }
    }

    /// A thread that is a moment late when the measurement ends is no stall.
    #[test]
    fn the_end_of_a_measurement_is_no_stall() {
        let ms = 1_000_000;
        let span = 0..1_000 * ms;
        let mut observed = Observed::nothing();
        let samples = 1_000 * ms / NOISE_INTERVAL - 2;
        let seen = vec![50_000; samples as usize];
        observed.take_noise(&seen, &span, 1_003 * ms, true);
        assert_eq!(observed.stalls.all, 0);
        assert_eq!(observed.noise.len(), samples);
    }
}
