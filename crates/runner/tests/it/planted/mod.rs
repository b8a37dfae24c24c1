//! Trials over the simulated system in simulated time, with what really happened beside what was
//! reported.
#![allow(dead_code)] // Each test file uses its own part.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use pubgauge_driver::{Clock, Kind, Mark, Settings};
use pubgauge_engine::assignment::Workers;
use pubgauge_engine::conductor::TrialEnd;
use pubgauge_figures::model::{Rule, SeriesRecord, Status};
use pubgauge_runner::simulated::{self, START, SimulatedClient};
use pubgauge_setup::ClientSetup;
use pubgauge_simulator::{Behaviour, Bus, Truth};
use pubgauge_workload::{Arrivals, SECOND, Until, Workload};

/// Each of these holds for some seeds in the gate, and for a thousand where there is time.
macro_rules! hold_for_seeds {
    ($($name:ident),+ $(,)?) => {
        mod gate {
            $(#[test]
            fn $name() {
                super::$name(0..100);
            })+
        }

        mod long {
            $(#[test]
            fn $name() {
                super::$name(0..1_000);
            })+
        }
    };
}

pub(crate) use hold_for_seeds;

/// `publishers` devices on a topic each, all heard by each of `subscribers` devices; 2 s of warm-up,
/// 10 s of measurement.
pub fn workload(publishers: u32, subscribers: u32, arrivals: Arrivals) -> Workload {
    let mut workload = Workload::fan(publishers, subscribers, arrivals);
    workload.phases.warm_up = Until::Time(2 * SECOND);
    workload.phases.measure = Until::Time(10 * SECOND);
    workload
}

/// The results of `run` for all cases, on all processors, in no order.
pub fn of_each<C: Sync, R: Send>(cases: &[C], run: impl Fn(&C) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        let mut done = Vec::new();
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push(run(case));
        }
        done
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let done = threads.into_iter().map(|t| t.join().expect("a thread"));
        done.flatten().collect()
    })
}

/// A trial, and what really happened in it.
pub struct Run(simulated::SimulatedTrial);

impl std::ops::Deref for Run {
    type Target = simulated::SimulatedTrial;

    fn deref(&self) -> &simulated::SimulatedTrial {
        &self.0
    }
}

impl Run {
    /// Whether the system is said to have stood still.
    pub fn stood_still(&self) -> bool {
        let mut reasons = self.trial.verdict.reasons.iter();
        reasons.any(|reason| reason.rule == Rule::SystemSilent)
    }
}

/// [`simulated::simulate`].
pub fn simulate(workload: Workload, behaviour: Behaviour, settings: Settings) -> Run {
    Run(simulated::simulate(workload, behaviour, settings).expect("a sound workload"))
}

/// Such a case where messages that fall due within a span, ns, leave together.
pub fn gathered(workload: Workload, behaviour: Behaviour, pacing_within: u64) -> Run {
    let (clock, mark) = (Clock::virtual_at(START), Mark::from_seed(behaviour.seed));
    let bus = Arc::new(Bus::new(behaviour.clone(), clock.clone(), mark));
    let client = SimulatedClient {
        setup: ClientSetup {
            pacing_within,
            ..ClientSetup::default()
        },
        ..SimulatedClient::default()
    };
    let there = (clock, mark, bus);
    let run = simulated::simulate_on(workload, &behaviour, Settings::default(), there, client);
    Run(run.expect("a sound workload"))
}

/// Runs a trial in real time, in so many threads.
pub fn on_threads(
    workload: Workload,
    behaviour: Behaviour,
    settings: Settings,
    workers: Workers,
) -> Run {
    let (clock, mark) = (Clock::Monotonic, Mark::from_seed(behaviour.seed));
    let bus = Arc::new(Bus::new(behaviour.clone(), clock.clone(), mark));
    let there = (clock, mark, bus);
    let client = SimulatedClient {
        workers,
        ..SimulatedClient::default()
    };
    let run = simulated::simulate_on(workload, &behaviour, settings, there, client);
    Run(run.expect("a sound workload"))
}

/// Two runs at once on one system, in real time: on default topics, or on a topic that both were
/// told to use.
pub fn two_at_once(named: bool) -> [Run; 2] {
    let behaviour = Behaviour::default();
    let bus = Arc::new(Bus::new(
        behaviour.clone(),
        Clock::Monotonic,
        Mark::from_seed(0),
    ));
    let mut w = workload(1, 1, Arrivals::Periodic { per_s: 1_000.0 });
    w.phases.warm_up = Until::Time(SECOND / 2);
    w.phases.measure = Until::Time(SECOND);
    let root = if named { "site" } else { "pubgauge" };
    w.flows[0].publishers[0].topics = vec![format!("{root}/flow")];
    w.flows[0].subscribers[0].filters = vec![format!("{root}/#")];
    let threads = [(); 2].map(|()| {
        let (w, behaviour, bus) = (w.clone(), behaviour.clone(), bus.clone());
        std::thread::spawn(move || {
            let mark = Mark::random();
            let marked = w.marked(&mark.hex_digits());
            let settings = Settings::default();
            let there = (Clock::Monotonic, mark, bus);
            let run = simulated::simulate_on(
                marked,
                &behaviour,
                settings,
                there,
                SimulatedClient::default(),
            );
            Run(run.expect("a sound workload"))
        })
    });
    threads.map(|thread| thread.join().expect("a trial ends"))
}

/// Whether a figure is within a share of what it should be.
#[track_caller]
pub fn within(figure: f64, truth: f64, share: f64) {
    let off = (figure - truth).abs();
    assert!(
        off <= share * truth,
        "{figure} is not within {share} of {truth}"
    );
}

impl Run {
    /// The verdict is `status`, and a reason says `part`.
    #[track_caller]
    pub fn is(&self, status: Status, part: &str) {
        let verdict = &self.trial.verdict;
        assert_eq!(verdict.status, status, "{:#?}", verdict.reasons);
        let said = verdict
            .reasons
            .iter()
            .any(|reason| reason.text.contains(part));
        assert!(said || part.is_empty(), "{:#?}", verdict.reasons);
    }

    /// Counts are those that really happened, to the message; the median is, to what a histogram keeps.
    #[track_caller]
    pub fn agrees(&self) {
        self.agrees_to(0.002);
    }

    /// Checks latencies with the median to a share of it: in real time a thread looks at the clock some microseconds
    /// after the delivery, and later on a busy machine.
    #[track_caller]
    pub fn agrees_to(&self, share: f64) {
        let truth = Truth::count(&self.truth, self.record.epoch);
        let t = &self.trial;
        assert_eq!(self.record.outcome, TrialEnd::Completed);
        assert_eq!(
            (
                t.messages.delivered,
                t.messages.unique(),
                t.shortfall.lost,
                t.shortfall.under_way,
                t.messages.duplicated,
                t.messages.reordered
            ),
            (
                truth.delivered,
                truth.unique,
                truth.lost,
                truth.under_way,
                truth.duplicated,
                truth.reordered
            ),
            "delivered, unique, lost, under way, duplicated, reordered"
        );
        if let Some(median) = t.messages.latency_ns.p50 {
            let all = t.messages.latency_ns.count + t.messages.latency_ns.censored;
            let real = truth.latencies[(all.div_ceil(2) - 1) as usize] as f64;
            within(median as f64, real, share);
        }
        self.adds_up();
    }

    /// Checks that hold for every case.
    #[track_caller]
    pub fn adds_up(&self) {
        let t = &self.trial;
        let untaken = t.messages.refused + t.messages.not_connected + t.messages.not_sent;
        assert_eq!(
            t.messages.offered,
            t.messages.published + untaken,
            "messages"
        );
        let deliveries = t.messages.unique() + t.shortfall.under_way + t.shortfall.lost;
        assert_eq!(t.messages.expected, deliveries, "deliveries");
        for check in &t.checks {
            assert!(!check.disagrees(), "{check:?}");
        }
        let sum = |of: fn(&SeriesRecord) -> u64| -> u64 { t.series.iter().map(of).sum() };
        // The series counts a message when it is handed over, before the system may reject it.
        let rejected: u64 = t.shortfall.rejections.iter().map(|r| r.messages).sum();
        let published = t.messages.published + rejected + t.warm_up.published;
        assert_eq!(
            t.at_start.published + sum(|s| s.traffic.published),
            published
        );
        let delivered = t.messages.delivered + t.warm_up.delivered;
        let unique = t.at_start.delivered + sum(|s| s.traffic.delivered);
        let warm_up = self.record.sum();
        assert_eq!(unique, t.messages.unique() + warm_up.warm_up_unique);
        assert!(delivered >= unique);
        // At the end of the measurement: what the drain delivered, and what is left.
        let (inside, drain): (Vec<SeriesRecord>, Vec<SeriesRecord>) = t
            .series
            .iter()
            .partition(|s| s.traffic.t_s <= t.duration_s + 1e-9);
        if let Some(end) = inside.last() {
            let drained: u64 = drain.iter().map(|s| s.traffic.delivered).sum();
            let warm_up_left = self.warm_up_under_way();
            // Messages held back when the measurement ended may still have gone out, and be lost: it is not known
            // which of the lost ones were.
            let added: u64 = drain.iter().map(|s| s.traffic.due).sum();
            let left = drained + t.shortfall.under_way + warm_up_left;
            let backlog = end.traffic.backlog + added;
            let lost_late = added.min(t.shortfall.lost + self.record.sum().warm_up_passed_over);
            // A message that was rejected in the drain was under way until then.
            let rejected_late = rejected * u64::from(t.workload.subscribers);
            assert!(
                (left..=left + lost_late + rejected_late).contains(&backlog),
                "backlog: {backlog}, {left}"
            );
        }
        let d = &t.messages.latency_ns;
        if d.censored > 0 {
            let known = d.count as f64 / (d.count + d.censored) as f64;
            for (quantile, value) in [
                (0.5, d.p50),
                (0.9, d.p90),
                (0.99, d.p99),
                (0.999, d.p99_9),
                (1.0, d.max),
            ] {
                assert!(
                    value.is_none() || quantile <= known + 1e-9,
                    "{quantile} of {known}"
                );
            }
        }
        // Every message that was due has its place in the distribution, whatever became of it.
        let sum = self.record.sum();
        if let Some(each) = sum.messages.expected.checked_div(sum.messages.published) {
            let due = t.messages.offered * each + sum.messages.timed_again;
            assert_eq!(d.count + d.censored, due, "deliveries due");
        }
        let lag = &t.messages.send_lag_ns;
        assert_eq!(lag.count + lag.censored, t.messages.offered, "messages due");
    }

    fn warm_up_under_way(&self) -> u64 {
        let sum = self.record.sum();
        let missing = sum.warm_up_expected - sum.warm_up_unique;
        if self.trial.drain.cut_short || sum.messages.unique == 0 {
            missing.saturating_sub(sum.warm_up_passed_over)
        } else {
            0
        }
    }

    /// The largest number of messages that were under way at once: handed over, and not yet
    /// delivered to all who are to get them.
    pub fn most_under_way(&self) -> u64 {
        self.most_under_way_from(0)
    }

    /// That count of messages handed over at `from` or later, since the trial began.
    pub fn most_under_way_from(&self, from: u64) -> u64 {
        type Span = (u64, u64);
        let mut spans: HashMap<(Kind, u32, u32), Span> = HashMap::new();
        for record in &self.truth {
            let Some(header) = record.header.filter(|h| h.kind != Kind::Sentinel) else {
                continue;
            };
            if record.published_at < START + from {
                continue;
            }
            let delivered = record.delivered_at.unwrap_or(u64::MAX);
            let message = (header.kind, header.stream, header.sequence);
            let span = spans
                .entry(message)
                .or_insert((record.published_at, delivered));
            span.1 = span.1.max(delivered);
        }
        let begins = spans.values().map(|span| (span.0, 1i64));
        let ends = spans.values().map(|span| (span.1, -1));
        let mut steps: Vec<(u64, i64)> = begins.chain(ends).collect();
        // Of an end and a beginning at the same time, the end came first.
        steps.sort_unstable();
        let (mut now, mut most) = (0, 0);
        for (_, step) in steps {
            now += step;
            most = most.max(now);
        }
        most as u64
    }
}

/// Anything that the simulated system and the client may do.
pub fn plants() -> impl Strategy<Value = Behaviour> {
    let system = (
        0u64..20_000_000,
        0.0f64..1.2,
        any::<bool>(),
        prop_oneof![Just(0.0), 0.0f64..0.2],
        prop_oneof![Just(0.0), Just(1.0), 0.0f64..0.2],
        prop_oneof![Just(0.0), 0.0f64..0.2],
        prop_oneof![Just(0u64), 500_000u64..5_000_000],
        prop_oneof![Just(0usize), 1usize..100],
    );
    let spans = |seconds: u64| {
        let span = (0..seconds * SECOND, 0..SECOND).prop_map(|(from, long)| (from, from + long));
        prop::collection::vec(span, 0..3)
    };
    let client = (
        spans(6),
        spans(6),
        prop_oneof![Just(0u64), 0u64..4_000_000],
        any::<u64>(),
    );
    (system, client).prop_map(|(system, (stalls, client_sleeps, slow, seed))| {
        let (
            delay_median_ns,
            delay_sigma,
            ordered,
            loss,
            duplication,
            reordering,
            service_ns,
            capacity,
        ) = system;
        Behaviour {
            delay_median_ns: delay_median_ns + 1,
            delay_sigma,
            ordered,
            loss,
            duplication,
            reordering,
            service_ns,
            capacity,
            stalls,
            client_sleeps,
            slow_subscribers: vec![("sub0".into(), slow)],
            publish_cost_ns: 50_000,
            seed,
            ..Behaviour::default()
        }
    })
}
