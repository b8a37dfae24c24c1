//! How good the verdicts are where loads, delays and capacities change within the measurement: rates that rise and
//! fall over a constant delay, delays that drift without a queue, latencies that grow from burst to burst, flat-out
//! capacities that fall, messages that are gathered, single stragglers.
//!
//! As a normal test it takes one trial of each case; with `PUBGAUGE_SWEEP=N` N, and with 20 it compares the table in
//! `docs/verdicts.md` with what it found, or writes it there with `PUBGAUGE_SWEEP_WRITE=1`:
//!
//! ```sh
//! PUBGAUGE_SWEEP=20 cargo test -p pubgauge-runner --test it sweep_ramps -- --nocapture
//! ```

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use pubgauge_driver::{Clock, Mark, Settings};
use pubgauge_figures::model::{Status, Trial};
use pubgauge_runner::simulated::{START, SimulatedClient, simulate_on};
use pubgauge_setup::ClientSetup;
use pubgauge_simulator::{Behaviour, Bus};
use pubgauge_workload::{Arrivals, Device, Replay, SECOND, TraceSource, Until, Workload};

use crate::planted;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, LogNormal};

/// Connecting and the proof take so long, ns.
const READY: u64 = 20_000_000;
/// Lengths of the measurement, s.
const LENGTHS: [u64; 4] = [2, 5, 10, 30];
/// Servers of families with a queue: what they carry, as shares of the highest or of the lowest rate offered.
const CARRIES: [f64; 4] = [0.7, 0.95, 1.1, 1.5];

/// Kinds of cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Family {
    /// A replayed trace whose rate rises or falls, 1.2 to 10 times.
    Ramp,
    /// Flows that begin one after the other.
    Flows,
    /// A steady load over a constant delay.
    Delay,
    /// A delay that grows by 8 to 50 % over the measurement, without a queue.
    Drift,
    /// Bursts whose latency grows 4 to 40 times.
    GrowingBursts,
    /// Bursts whose latency does not grow.
    EvenBursts,
    /// Flat out, the capacity falls by 10 to 60 % at a moment within the measurement.
    CapacityFalls,
    /// Flat out, the capacity varies by up to 10 % from record to record.
    CapacityVaries,
    /// Messages that leave together, 10 to 250 ms of them.
    Gathered,
    /// One message comes 3 s late, near the end.
    Straggler,
}

const FAMILIES: [Family; 10] = [
    Family::Ramp,
    Family::Flows,
    Family::Delay,
    Family::Drift,
    Family::GrowingBursts,
    Family::EvenBursts,
    Family::CapacityFalls,
    Family::CapacityVaries,
    Family::Gathered,
    Family::Straggler,
];

impl Family {
    fn words(self) -> &'static str {
        match self {
            Family::Ramp => "a replayed rate that rises or falls 1.2 to 10 times",
            Family::Flows => "flows that begin one after the other",
            Family::Delay => "a steady rate over a constant delay",
            Family::Drift => "a delay that grows by 8 to 50 %, no queue",
            Family::GrowingBursts => "bursts whose latency grows 4 to 40 times",
            Family::EvenBursts => "bursts whose latency stays",
            Family::CapacityFalls => "flat out, capacity falls by 10 to 60 %",
            Family::CapacityVaries => "flat out, capacity varies by up to 10 %",
            Family::Gathered => "gathered for 10 to 250 ms",
            Family::Straggler => "one message 3 s late",
        }
    }

    /// Whether its servers have a queue.
    fn queues(self) -> bool {
        matches!(
            self,
            Family::Ramp | Family::Flows | Family::Delay | Family::Gathered
        )
    }
}

/// The truth of a case, and the verdicts that would be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Truth {
    /// 5 % more is offered than carried, all the time; `valid` is wrong.
    TooMuch,
    /// 10 % more is carried than is offered at any time; `overloaded` is wrong.
    Room,
    /// It changes; `valid` is wrong.
    Changes,
    /// It does not change; `unsteady` and `overloaded` are wrong.
    Stays,
}

impl Truth {
    fn is_wrong(self, status: Status) -> bool {
        match self {
            Truth::TooMuch | Truth::Changes => status == Status::Valid,
            Truth::Room => status == Status::Overloaded,
            Truth::Stays => matches!(status, Status::Overloaded | Status::Unsteady),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Truth::TooMuch => "too much by 5 % or more",
            Truth::Room => "10 % to spare or more",
            Truth::Changes => "changes",
            Truth::Stays => "stays",
        }
    }
}

/// One trial.
#[derive(Clone, Copy, Debug)]
struct Case {
    family: Family,
    seconds: u64,
    /// Index into [`CARRIES`].
    carries: usize,
    seed: u64,
}

impl Case {
    fn all(seeds: u64) -> Vec<Case> {
        let mut all = Vec::new();
        for family in FAMILIES {
            for seconds in LENGTHS {
                let judged = match family {
                    // Latency is judged from 5 s on.
                    Family::GrowingBursts => seconds >= 5,
                    _ => true,
                };
                let servers = if family.queues() { CARRIES.len() } else { 1 };
                for carries in (0..servers).filter(|_| judged) {
                    all.extend((0..seeds).map(|seed| Case {
                        family,
                        seconds,
                        carries,
                        seed,
                    }));
                }
            }
        }
        all
    }

    fn truth(&self) -> Truth {
        match self.family {
            family if family.queues() && CARRIES[self.carries] < 1.0 => Truth::TooMuch,
            family if family.queues() => Truth::Room,
            Family::GrowingBursts | Family::CapacityFalls => Truth::Changes,
            Family::Drift => Truth::Room,
            _ => Truth::Stays,
        }
    }

    fn plant(&self, folder: &Path) -> (Workload, Behaviour, u64) {
        let place = (self.family as u64) << 40 | self.seconds << 32 | (self.carries as u64) << 24;
        let mut draws = StdRng::seed_from_u64(place | self.seed);
        // Evenly over the logarithm.
        let mut between =
            |low: f64, high: f64| -> f64 { low * (high / low).powf(draws.random::<f64>()) };
        let ns = |s: f64| (s * 1e9) as u64;
        let length = self.seconds as f64;
        let warm_up = between(1.0, 3.0);
        // From 50 messages on.
        let rate = between((50.0 / length).max(20.0), 2_000.0);
        let mut behaviour = Behaviour {
            delay_median_ns: ns(between(0.001, 0.2)),
            seed: self.seed,
            ..Behaviour::default()
        };
        let from = ns(warm_up) + READY;
        let mut pacing_within = 0;
        let periodic = |per_s| Workload::fan(10, 1, Arrivals::Periodic { per_s });
        // The extra delay at a share of the measurement.
        let grows = |to: f64, behaviour: &mut Behaviour| {
            let steps = 200;
            let at = |step: u64| from + ns(length) * step / steps;
            let extra = |step: u64| {
                (behaviour.delay_median_ns as f64 * to * step as f64 / steps as f64) as u64
            };
            let slower: Vec<(u64, u64, u64)> = (0..steps)
                .map(|step| (at(step), at(step + 1), extra(step)))
                .chain([(at(steps), u64::MAX, extra(steps))])
                .collect();
            behaviour.slower = slower;
        };
        // The lowest and the highest rate offered.
        let (mut lowest, mut highest) = (rate, rate);
        let mut workload = match self.family {
            Family::Ramp => {
                let factor = between(1.2, 10.0);
                let (mut first, mut last) = (rate, rate * factor);
                (lowest, highest) = (first, last);
                if self.seed % 2 == 1 {
                    std::mem::swap(&mut first, &mut last);
                }
                let name = format!(
                    "{:?}-{}-{}-{}.csv",
                    self.family, self.seconds, self.carries, self.seed
                );
                let file = folder.join(name);
                std::fs::write(&file, ramp(warm_up, length, first, last)).expect("a folder");
                let source = TraceSource {
                    files: vec![file],
                    ..TraceSource::default()
                };
                let replay = Replay {
                    source,
                    ..Replay::default()
                };
                Workload::fan(10, 1, Arrivals::Replay(Box::new(replay)))
            }
            Family::Flows => {
                let (more, most) = (between(0.2, 4.0), between(0.2, 4.0));
                highest = rate * (1.0 + more + most);
                let begin = [0.0, between(0.1, 0.6), between(0.1, 0.9)];
                let parts = [1.0, more, most].into_iter().zip(begin).enumerate();
                beside(parts.map(|(n, (share, begin))| {
                    let mut part = periodic(rate * share);
                    if n > 0 {
                        part.flows[0].start_offset = Some(ns(begin * length));
                    }
                    part
                }))
            }
            Family::Delay => periodic(rate),
            Family::Drift => {
                grows(between(0.08, 0.5), &mut behaviour);
                periodic(rate)
            }
            Family::GrowingBursts | Family::EvenBursts => {
                let (on, off) = (between(0.1, length / 8.0), between(0.1, length / 8.0));
                behaviour.delay_median_ns = ns(between(0.0005, 0.02));
                if self.family == Family::GrowingBursts {
                    grows(between(4.0, 40.0) - 1.0, &mut behaviour);
                }
                let per_s = rate * (on + off) / on;
                behaviour.service_ns = (1e9 / per_s / between(0.8, 3.0)) as u64;
                behaviour.service_ns = behaviour.service_ns.min((0.7e9 / rate) as u64);
                if self.family == Family::GrowingBursts {
                    // No queue of each burst hides the delay that grows.
                    let short = (0.5e9 / per_s) as u64;
                    behaviour.service_ns = short.min(behaviour.delay_median_ns / 4);
                }
                let arrivals = Arrivals::OnOff {
                    per_s: Some(per_s),
                    on: ns(on),
                    off: ns(off),
                };
                Workload::fan(10, 1, arrivals)
            }
            Family::CapacityFalls | Family::CapacityVaries => {
                behaviour.delay_median_ns = 1_000_000;
                behaviour.publish_cost_ns = 20_000;
                behaviour.capacity = 200;
                let falls = self.family == Family::CapacityFalls;
                let takes = between(100_000.0, 1_000_000.0);
                let to = if falls {
                    takes / (1.0 - between(0.1, 0.6))
                } else {
                    takes
                };
                let at = from + (ns(length) as f64 * between(0.15, 0.85)) as u64;
                let spread = if falls {
                    between(0.001, 0.02)
                } else {
                    between(0.01, 0.1)
                };
                let noise = LogNormal::new(0.0, spread).expect("a spread");
                // As long as a record.
                let step = ns(length / 10.0).min(SECOND);
                let mut noises = StdRng::seed_from_u64(place ^ self.seed);
                let steps = (0..from + ns(length) + 5 * SECOND).step_by(step as usize);
                let mut later: Vec<(u64, u64)> = steps
                    .map(|since| {
                        let now = if since < at { takes } else { to };
                        (since, (now * noise.sample(&mut noises)) as u64)
                    })
                    .collect();
                if falls {
                    later.push((at, to as u64));
                    later.sort_unstable();
                }
                behaviour.service_ns = takes as u64;
                behaviour.service_later = later;
                Workload::fan(1, 1, Arrivals::FlatOut)
            }
            Family::Gathered => {
                pacing_within = ns(between(0.01, 0.25));
                behaviour.delay_median_ns = ns(between(0.0002, 0.02));
                periodic(rate)
            }
            Family::Straggler => {
                behaviour.delay_median_ns = ns(between(0.0002, 0.02));
                behaviour.ordered = false;
                let due = from + (ns(length) as f64 * between(0.5, 0.999)) as u64;
                behaviour.slower = vec![(due, due + ns(1.0 / rate), 3 * SECOND)];
                periodic(rate)
            }
        };
        if self.family.queues() {
            let carries = match CARRIES[self.carries] {
                share if share < 1.0 => lowest * share,
                share => highest * share,
            };
            behaviour.service_ns = (1e9 / carries) as u64;
        }
        workload.seed = self.seed;
        workload.phases.warm_up = Until::Time(ns(warm_up));
        workload.phases.measure = Until::Time(self.seconds * SECOND);
        workload.phases.drain_within = 20 * SECOND;
        (workload, behaviour, pacing_within)
    }
}

/// A trace whose rate is steady for `warm_up` seconds, and then goes from one rate to another within `length`.
fn ramp(warm_up: f64, length: f64, first: f64, last: f64) -> String {
    let (mut t, mut n, mut text) = (0.0, 0, String::from("time,device,size\n"));
    while t < warm_up + length + 1.0 {
        let _ = writeln!(text, "{t:.9},d{},64", n % 10);
        let within = ((t - warm_up) / length).clamp(0.0, 1.0);
        t += 1.0 / (first + (last - first) * within);
        n += 1;
    }
    text
}

/// Workloads of one flow each as flows of one.
fn beside(parts: impl Iterator<Item = Workload>) -> Workload {
    let mut all: Option<Workload> = None;
    for (n, mut part) in parts.enumerate() {
        let flow = &mut part.flows[0];
        let before = all.as_ref().map_or(0, |all| all.devices.len() as u32);
        flow.name = format!("flow{n}");
        for publisher in &mut flow.publishers {
            publisher.device += before;
            publisher.topics = vec![format!("{n}/{}", publisher.device)];
        }
        for subscriber in &mut flow.subscribers {
            subscriber.device += before;
            subscriber.filters = vec![format!("{n}/#")];
        }
        let rename = |device: Device| Device {
            name: format!("{}-{n}", device.name),
            ..device
        };
        let devices: Vec<Device> = part.devices.drain(..).map(rename).collect();
        match &mut all {
            None => {
                part.devices = devices;
                all = Some(part);
            }
            Some(all) => {
                all.devices.extend(devices);
                all.flows.append(&mut part.flows);
            }
        }
    }
    all.expect("one at least")
}

fn trial(case: &Case, folder: &Path) -> Trial {
    let (workload, behaviour, pacing_within) = case.plant(folder);
    let (clock, mark) = (Clock::virtual_at(START), Mark::from_seed(behaviour.seed));
    let bus = Bus::new(behaviour.clone(), clock.clone(), mark).without_truth();
    let client = SimulatedClient {
        setup: ClientSetup {
            pacing_within,
            ..ClientSetup::default()
        },
        ..SimulatedClient::default()
    };
    let there = (clock, mark, Arc::new(bus));
    let run = simulate_on(workload, &behaviour, Settings::default(), there, client);
    run.expect("a sound workload").trial
}

fn sweep(cases: &[Case], folder: &Path) -> Vec<(Case, Trial)> {
    planted::of_each(cases, |case| {
        let mut trial = trial(case, folder);
        // Messages that are not needed any more are dropped, to save memory.
        trial.series.clear();
        trial.course.clear();
        trial.flows.clear();
        (*case, trial)
    })
}

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/verdicts.md");
/// Trials of each case in the table that stands there.
const SEEDS: u64 = 20;
const BEGIN: &str = "<!-- ramps: begin -->\n";
const END: &str = "<!-- ramps: end -->";
const VERDICTS: [Status; 4] = [
    Status::Valid,
    Status::TooShort,
    Status::Unsteady,
    Status::Overloaded,
];

type VerdictCounts = BTreeMap<Status, u32>;

#[test]
fn verdicts_hold_where_load_delay_or_capacity_changes() {
    let seeds = std::env::var("PUBGAUGE_SWEEP").ok();
    let seeds = seeds.map_or(1, |n| n.parse().expect("PUBGAUGE_SWEEP is a count"));
    let only = std::env::var("PUBGAUGE_SWEEP_FAMILY").ok();
    let folder = tempfile::tempdir().expect("a folder");
    let mut cases = Case::all(seeds);
    cases.retain(|case| {
        only.as_ref()
            .is_none_or(|only| format!("{:?}", case.family) == *only)
    });
    let mut found: BTreeMap<(Family, Truth), VerdictCounts> = BTreeMap::new();
    for (case, trial) in sweep(&cases, folder.path()) {
        let (status, truth) = (trial.verdict.status, case.truth());
        let kind = found.entry((case.family, truth)).or_default();
        *kind.entry(status).or_default() += 1;
        if truth.is_wrong(status) {
            let why: Vec<&str> = (trial.verdict.reasons.iter())
                .map(|reason| reason.text.as_str())
                .collect();
            let (workload, behaviour, within) = case.plant(folder.path());
            let flow = &workload.flows[0];
            println!(
                "{case:?} {:?} delay {} service {} within {within}: {status:?} {why:?}",
                flow.arrivals, behaviour.delay_median_ns, behaviour.service_ns
            );
        }
    }
    let table = table(&found);
    println!("{table}");
    let (mut all_wrong, mut all_cases) = (0, 0);
    for ((family, truth), found) in &found {
        let all: u32 = found.values().sum();
        let wrong = found.iter().filter(|(status, _)| truth.is_wrong(**status));
        let wrong: u32 = wrong.map(|(_, count)| count).sum();
        // Of few cases one may be chance.
        assert!(
            wrong <= 1 + all / 100,
            "{family:?}, {truth:?}: {wrong} of {all}"
        );
        all_wrong += wrong;
        all_cases += all;
    }
    assert!(
        all_wrong <= 2 + all_cases / 100,
        "{all_wrong} of {all_cases}"
    );
    if seeds == SEEDS && only.is_none() {
        let docs = std::fs::read_to_string(DOCS).expect("the page is there");
        let from = docs.find(BEGIN).expect("its beginning is marked") + BEGIN.len();
        let to = docs.find(END).expect("its end is marked");
        if std::env::var("PUBGAUGE_SWEEP_WRITE").is_ok() {
            let docs = format!("{}{table}{}", &docs[..from], &docs[to..]);
            std::fs::write(DOCS, docs).expect("the page can be written");
        } else {
            assert_eq!(&docs[from..to], table, "PUBGAUGE_SWEEP_WRITE=1 writes it");
        }
    }
}

/// The table of the page.
fn table(found: &BTreeMap<(Family, Truth), VerdictCounts>) -> String {
    let mut out = String::from("| planted | truth |");
    VERDICTS
        .iter()
        .for_each(|status| out += &format!(" {} |", status.as_str()));
    out += " wrong |\n|---|---|---|---|---|---|---|\n";
    for ((family, truth), found) in found {
        let _ = write!(out, "| {} | {} |", family.words(), truth.words());
        for status in VERDICTS {
            let _ = write!(out, " {} |", found.get(&status).unwrap_or(&0));
        }
        let wrong = found.iter().filter(|(status, _)| truth.is_wrong(**status));
        let _ = writeln!(out, " {} |", wrong.map(|(_, count)| count).sum::<u32>());
    }
    out
}
