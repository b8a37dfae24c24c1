//! All rules at once: their order, and what holds for any trial.

use proptest::prelude::*;
use pubgauge_figures::Messages;
use pubgauge_figures::model::{DecidingFigure, PublisherWindow, QuotaUse};
use pubgauge_figures::party::{PartyCourse, PartyFigures, PartyName};

use super::*;
use crate::verdict::findings::contradicts;

#[test]
fn all_reasons_stand_worst_first() {
    let mut t = calm();
    t.messages.delivered -= 10;
    t.shortfall.lost = 10;
    t.messages.not_sent = 5_000;
    t.messages.offered += 5_000;
    t.worker_load.subscribers_waiting = 0.5;
    let verdict = judge(&t, &here());
    assert_eq!(verdict.status, Status::Lossy);
    assert_eq!(verdict.reasons.len(), 3, "{verdict:#?}");
    assert!(verdict.reasons[0].text.contains("lost"));
    assert!(verdict.reasons[1].text.contains("handed over"));
    assert!(verdict.reasons[2].text.contains("processors was the limit"));
}

/// A change to a trial that makes one rule apply.
type Plant = (Rule, fn(&mut Trial));

const PLANTS: [Plant; 33] = [
    (Rule::NotRun, |t| {
        t.circumstances.not_run = Some("late".into())
    }),
    (Rule::SystemDied, |t| {
        t.circumstances.system_died = vec!["signal 9".into()]
    }),
    (Rule::Unconnected, |t| t.connections.made = 1),
    (Rule::ConnectionsLost, |t| t.connections.lost = 1),
    (Rule::Foreign, |t| t.odd.foreign = 1),
    (Rule::Corrupt, |t| t.odd.corrupt = 1),
    (Rule::WrongTopic, |t| t.odd.misdirected = 1),
    (Rule::LowerQuality, |t| t.odd.lowered = 1),
    (Rule::OutOfOrder, |t| {
        t.circumstances.order_promised = true;
        t.flows = vec![FlowFigures {
            messages: Messages {
                reordered: 1,
                ..Messages::default()
            },
            ..FlowFigures::default()
        }];
    }),
    (Rule::Clocks, |t| t.odd.negative = t.messages.delivered),
    (Rule::CountsDiffer, |t| t.messages.published += 1),
    (Rule::Lost, |t| {
        let some = t.messages.delivered / 10;
        (t.messages.delivered, t.shortfall.lost) =
            (t.messages.delivered - some, t.shortfall.lost + some);
    }),
    (Rule::Repeated, |t| {
        (t.messages.delivered, t.messages.duplicated) =
            (t.messages.delivered + 5, t.messages.duplicated + 5);
    }),
    (Rule::QueueGrew, |t| {
        for (i, second) in t.series.iter_mut().enumerate() {
            second.traffic.backlog = 20_000 * i as u64;
        }
    }),
    (Rule::SubscriberBehind, |t| {
        t.parties = Some(PartyFigures {
            count: 100,
            slot_s: t.duration_s / 20.0,
            lowest_ns: vec![Some(MS); 20],
            rising: vec![PartyCourse {
                party: PartyName {
                    name: "sub7".into(),
                    ..PartyName::default()
                },
                deliveries: 1_000,
                lowest_ns: (0..20).map(|slot| Some(slot * 200 * MS)).collect(),
            }],
            ..PartyFigures::default()
        });
    }),
    (Rule::UnderWay, |t| {
        let some = t.messages.delivered / 10;
        (t.messages.delivered, t.shortfall.under_way) =
            (t.messages.delivered - some, t.shortfall.under_way + some);
    }),
    (Rule::Unsent, |t| {
        let some = t.messages.offered / 10;
        (t.messages.offered, t.messages.not_sent) =
            (t.messages.offered + some, t.messages.not_sent + some);
    }),
    (Rule::Refused, |t| {
        let some = t.messages.offered / 10;
        (t.messages.offered, t.messages.refused) =
            (t.messages.offered + some, t.messages.refused + some);
    }),
    (Rule::Unacknowledged, |t| t.shortfall.unacknowledged = 5),
    (Rule::WindowFull, |t| {
        let publishers = u64::from(t.workload.publishers.max(1));
        let usual = 2e10 * publishers as f64 / t.messages.published_msgs_per_s;
        t.publishers_blocked = Some(0.9);
        t.publisher_window = Some(PublisherWindow {
            setting: "in-flight".into(),
            asked: 20,
            granted: 20,
            term: String::new(),
            fastest_acknowledgement_ns: Some(usual as u64),
        });
        t.messages.acknowledgement_ns = Some(distribution(1_000, usual as u64, usual as u64));
        let some = t.messages.offered / 10;
        (t.messages.offered, t.messages.not_sent) =
            (t.messages.offered + some, t.messages.not_sent + some);
    }),
    (Rule::TooShort, |t| t.longest_silence_ns = 4_000 * MS),
    (Rule::RateWanders, |t| {
        let half = t.series.len() / 2;
        t.series[..half]
            .iter_mut()
            .for_each(|s| s.traffic.delivered /= 4);
    }),
    (Rule::LatencyWanders, |t| {
        let half = t.series.len() / 2;
        t.series[half..]
            .iter_mut()
            .for_each(|s| s.traffic.latency_p50_ns *= 9);
    }),
    (Rule::LatencyFalls, |t| {
        let half = t.series.len() / 2;
        t.series[..half]
            .iter_mut()
            .for_each(|s| s.traffic.latency_p50_ns *= 9);
    }),
    (Rule::SystemSilent, |t| t.longest_silence_ns = 2_000 * MS),
    (Rule::PublisherFull, |t| {
        t.worker_load.publishers_running = 0.97
    }),
    (Rule::SubscriberFull, |t| {
        t.worker_load.subscribers_running = 0.97
    }),
    (Rule::ApplicationFull, |t| {
        t.worker_load.applications_busy = Some(0.99);
    }),
    (Rule::LibraryFull, |t| {
        t.circumstances.system_in_client = true;
        t.worker_load.publishers_running = 0.97;
    }),
    (Rule::MachineFull, |t| {
        t.system_cpu_s = Some(0.5);
        t.worker_load.subscribers_waiting = 0.4;
    }),
    (Rule::QuotaFull, |t| {
        let periods = (10.0 * t.duration_s) as u64;
        t.worker_load.quota = Some(QuotaUse {
            cores: 0.5,
            period_ns: 100 * MS,
            periods,
            held_back_periods: periods,
            held_back_ns: periods * 40 * MS,
        });
    }),
    (Rule::ClientLate, |t| {
        t.messages.send_lag_ns.p50 = Some(150_000);
        t.noise_ns.p50 = Some(150_000);
    }),
    (Rule::ClientStalled, |t| {
        t.worker_load.subscribers_stalled = 0.2;
        t.worker_load.longest_stall_ns = 400 * MS;
    }),
];

/// Any two changes at once, paced and flat out: no two reasons contradict each other.
#[test]
fn reasons_never_contradict_each_other() {
    let mut shown = std::collections::HashSet::new();
    for base in [calm(), flat_out()] {
        for (first, plant) in PLANTS {
            for (second, other) in PLANTS {
                let mut t = base.clone();
                t.circumstances = here();
                plant(&mut t);
                other(&mut t);
                let found: Vec<Rule> = findings(&t)
                    .found
                    .iter()
                    .map(|(_, found)| found.rule)
                    .collect();
                shown.extend(found.iter().copied());
                for a in &found {
                    for b in &found {
                        let said = &findings(&t).found;
                        assert!(!contradicts(*a, *b), "{first:?} with {second:?}: {said:#?}");
                    }
                }
                let verdict = crate::verdict::judge(&t);
                for reason in &verdict.reasons {
                    let in_words = [Rule::NotRun, Rule::SystemDied].contains(&reason.rule);
                    assert_eq!(reason.figures.is_empty(), in_words, "{reason:?}");
                    let numbers = |f: &DecidingFigure| {
                        f.value.is_finite() && f.limit.is_none_or(f64::is_finite)
                    };
                    assert!(reason.figures.iter().all(numbers), "{reason:?}");
                }
                let reasons = verdict.sentences();
                let mut once = reasons.clone();
                once.sort();
                once.dedup();
                assert_eq!(reasons.len(), once.len(), "{reasons:#?}");
            }
        }
    }
    for (rule, _) in PLANTS {
        assert!(shown.contains(&rule), "{rule:?} never applied");
    }
}

/// The order of the verdicts: what each outranks.
#[test]
fn a_client_at_its_end_outranks_an_unsteady_rate() {
    let mut t = calm();
    t.longest_silence_ns = 2_000 * MS;
    t.worker_load.subscribers_running = 0.97;
    let verdict = crate::verdict::judge(&t);
    assert_eq!(verdict.status, Status::ClientBound);
    assert_eq!(verdict.reasons.len(), 2, "{verdict:#?}");
}

proptest! {
    /// For any series: no panic, the status fits the reasons, the same input gets the same verdict.
    #[test]
    fn judging_is_total(
        records in prop::collection::vec((0.0f64..2.0, 0u64..1_000_000, 0u64..1_000_000, 0u64..1_000_000_000, 0u64..u64::MAX), 0..40),
        duration in 0.0f64..30.0,
        flat_out: bool,
        load in prop::array::uniform4(0.0f64..1.0),
        cores in 0u32..8,
        system_cpu in prop::option::of(0.0f64..30.0),
    ) {
        let mut t = calm();
        t.workload.flat_out = flat_out;
        t.duration_s = duration;
        t.system_cpu_s = system_cpu;
        t.worker_load = WorkerLoad {
            publishers_running: load[0],
            publishers_waiting: load[1],
            subscribers_running: load[2],
            subscribers_waiting: load[3],
            ..WorkerLoad::default()
        };
        let mut at = 0.0;
        t.series = records.iter().map(|(length, published, delivered, backlog, p50)| {
            at += length;
            SeriesRecord { traffic: TrafficRecord { t_s: at, published: *published, delivered: *delivered, backlog: *backlog, latency_p50_ns: *p50, ..TrafficRecord::default() },      ..Default::default() }
        }).collect();
        let circumstances = Circumstances { cores, ..Default::default() };
        let verdict = judge(&t, &circumstances);
        prop_assert_eq!(verdict.status == Status::Valid, verdict.reasons.is_empty());
        let again = judge(&t, &circumstances);
        prop_assert_eq!(verdict.reasons, again.reasons);
    }

    /// A backlog that takes more than a tenth of what is offered is never called valid,
    /// whatever the length of a record and however noisy the deliveries.
    #[test]
    fn material_growth_is_never_valid(
        length in 0.1f64..1.0,
        records in 4usize..40,
        rate in 1_000.0f64..1_000_000.0,
        kept in 0.1f64..0.9,
        noise in prop::collection::vec(-0.02f64..0.02, 40),
    ) {
        let mut t = flat_out();
        t.duration_s = length * records as f64;
        t.system_cpu_s = Some(t.duration_s);
        let published = (rate * length) as u64;
        let mut backlog = 0;
        t.series = (0..records).map(|i| {
            let delivered = (published as f64 * (1.0 - kept) * (1.0 + noise[i])) as u64;
            backlog += published - delivered.min(published);
            SeriesRecord { traffic: TrafficRecord { t_s: length * (i + 1) as f64, published, delivered, backlog, latency_p50_ns: 1, ..TrafficRecord::default() },      ..Default::default() }
        }).collect();
        prop_assert_eq!(judge(&t, &here()).status, Status::Overloaded);
    }

    /// A backlog of constant length is never called overload.
    #[test]
    fn a_standing_backlog_is_no_overload(
        standing in 0u64..1_000_000,
        wobble in prop::collection::vec(-40i64..40, 8..30),
    ) {
        let mut t = flat_out();
        let n = wobble.len();
        t.duration_s = n as f64 * 0.25;
        let backlog: Vec<u64> = wobble.iter().map(|w| standing.saturating_add_signed(*w)).collect();
        t.series = series(0.25, &vec![75_000; n], &vec![75_000; n], &backlog);
        let verdict = judge(&t, &here());
        prop_assert!(verdict.status != Status::Overloaded, "{:?}", verdict.reasons);
    }
}
