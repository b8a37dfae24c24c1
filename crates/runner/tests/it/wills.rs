//! Last wills: how many were published, for which ends of connections, and how soon, planted.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pubgauge_driver::{Session, Settings};
use pubgauge_figures::figure::figure;
use pubgauge_figures::wills::WillFigures;
use pubgauge_simulator::{Behaviour, TruthRecord};
use pubgauge_workload::presence::{Between, Presence};
use pubgauge_workload::{Arrivals, LastWill, Nanos, SECOND, Until, Workload};

use crate::planted::*;

const MS: Nanos = 1_000_000;

hold_for_seeds!(
    each_cut_has_its_will_and_no_other_end_has_one,
    wills_that_the_system_forgets_or_repeats_are_told,
    wills_of_connections_that_ended_in_order_are_told,
    wills_with_a_delay_are_due_where_nobody_is_back,
);

/// Publishers with wills that come and go, and subscribers that hear all.
struct Planted {
    publishers: u32,
    watchers: u32,
    seed: u64,
    delay_s: u32,
    vanishes: bool,
    online: Between,
    offline: Between,
    measure: Nanos,
}

impl Planted {
    fn new(seed: u64) -> Planted {
        Planted {
            publishers: 1 + (seed % 7) as u32,
            watchers: 1 + (seed % 3) as u32,
            seed,
            delay_s: 0,
            vanishes: true,
            online: Between {
                least: 200 * MS,
                most: 500 * MS,
            },
            offline: Between {
                least: 50 * MS,
                most: 400 * MS,
            },
            measure: 2 * SECOND,
        }
    }

    fn workload(&self) -> Workload {
        let per_s = 40.0 + (self.seed * 13 % 160) as f64;
        let arrivals = Arrivals::Periodic { per_s };
        let mut workload = workload(self.publishers, self.watchers, arrivals);
        workload.phases.warm_up = Until::Time(SECOND / 10);
        workload.phases.measure = Until::Time(self.measure);
        workload.phases.drain_quiet = SECOND / 5;
        workload.seed = self.seed;
        let flow = &mut workload.flows[0];
        flow.presence = Some(Box::new(Presence {
            publishers: true,
            subscribers: false,
            online: self.online,
            offline: self.offline,
            spread: self.online.least < self.online.most,
            back_within: None,
            vanishes: self.vanishes,
        }));
        for (n, publisher) in flow.publishers.iter().enumerate() {
            workload.devices[publisher.device as usize].will = Some(Box::new(LastWill {
                topic: format!("gone/{n}"),
                bytes: 16 + (self.seed % 50) as u32,
                retain: self.seed.is_multiple_of(5),
                qos: None,
                delay_s: self.delay_s,
            }));
        }
        for subscriber in &mut flow.subscribers {
            subscriber.filters.push("gone/#".into());
        }
        workload
    }

    fn run(&self, behaviour: Behaviour) -> Run {
        let behaviour = Behaviour {
            connect_ns: (1 + self.seed % 9) * MS,
            will_after_ns: self.seed % 7 * 3 * MS,
            seed: self.seed,
            ..behaviour
        };
        let settings = Settings {
            session: (self.delay_s > 0).then_some(Session::Durable),
            ..Settings::default()
        };
        simulate(self.workload(), behaviour, settings)
    }
}

/// The wills that were on their way in a trial: by client and end of its connection, with each subscriber's copies.
fn wills(run: &Run, in_order: bool) -> BTreeMap<(String, Nanos), Vec<&TruthRecord>> {
    let mut all: BTreeMap<(String, Nanos), Vec<&TruthRecord>> = BTreeMap::new();
    for record in &run.truth {
        if let Some(will) = record.will.as_ref().filter(|w| w.in_order == in_order) {
            let key = (will.of.clone(), will.ended_at);
            all.entry(key).or_default().push(record);
        }
    }
    all
}

fn came(records: &[&TruthRecord]) -> bool {
    records.iter().any(|record| record.delivered_at.is_some())
}

/// Figures of wills that are due without a delay are the truth.
#[track_caller]
fn agrees(planted: &Planted, run: &Run) -> WillFigures {
    let seed = planted.seed;
    let told = run.trial.wills.clone().expect("devices with wills");
    let cut = wills(run, false);
    let count = |n: usize| n as u64;
    let presence = run.trial.presence.as_ref().expect("comings and goings");
    assert_eq!(told.cut, count(cut.len()), "seed {seed}");
    assert_eq!(told.cut + told.in_order, presence.left, "seed {seed}");
    assert_eq!((told.lost, told.not_kept, told.undecided), (0, 0, 0));
    assert_eq!(told.due, told.cut, "seed {seed}");
    let published = cut.values().filter(|records| came(records)).count();
    assert_eq!(told.published, count(published), "seed {seed}");
    assert_eq!(told.deliveries_due, told.due * u64::from(planted.watchers));
    let mut times = Vec::new();
    let mut copies = 0;
    for ((_, ended_at), records) in &cut {
        let mut first: BTreeMap<&str, Nanos> = BTreeMap::new();
        for record in records {
            let Some(at) = record.delivered_at else {
                continue;
            };
            copies += 1;
            let earliest = first.entry(&record.subscriber).or_insert(at);
            *earliest = at.min(*earliest);
        }
        times.extend(first.values().map(|at| at - ended_at));
    }
    assert_eq!(told.deliveries, count(times.len()), "seed {seed}");
    let in_order: usize = wills(run, true)
        .values()
        .filter(|records| came(records))
        .count();
    assert_eq!(told.after_disconnect, count(in_order), "seed {seed}");
    let of_others = wills(run, true).values().flatten().fold(0, |sum, record| {
        sum + usize::from(record.delivered_at.is_some())
    });
    let firsts_of_others: usize = (wills(run, true).values())
        .map(|records| {
            let heard = records.iter().filter(|r| r.delivered_at.is_some());
            heard.map(|r| &r.subscriber).collect::<BTreeSet<_>>().len()
        })
        .sum();
    let duplicated = copies - times.len() + of_others - firsts_of_others;
    assert_eq!(told.duplicated, count(duplicated), "seed {seed}");
    times.sort_unstable();
    if let Some(median) = figure(&run.trial, None, "will-time.p50") {
        let all = told.deliveries_due as usize;
        let real = times[all.div_ceil(2) - 1];
        within(median, real as f64, 0.002);
    }
    if let Some(last) = times
        .last()
        .filter(|_| times.len() as u64 == told.deliveries_due)
    {
        let most = told.time_ns.as_ref().and_then(|t| t.max).expect("times");
        within(most as f64, *last as f64, 0.002);
    }
    // A will is no message: nothing else is disturbed.
    assert_eq!((run.trial.odd.foreign, run.trial.shortfall.lost), (0, 0));
    run.adds_up();
    told
}

fn each_cut_has_its_will_and_no_other_end_has_one(seeds: Range<u64>) {
    let seeds: Vec<u64> = seeds.collect();
    of_each(&seeds, |seed| {
        let planted = Planted {
            vanishes: seed % 4 != 3,
            ..Planted::new(*seed)
        };
        let told = agrees(&planted, &planted.run(Behaviour::default()));
        let (all, others) = if planted.vanishes {
            (told.cut, told.in_order)
        } else {
            (told.in_order, told.cut)
        };
        assert!(all > 0 && others == 0, "seed {seed}: {told:?}");
        assert_eq!((told.missing(), told.deliveries_missing()), (0, 0));
        assert_eq!(
            (told.after_disconnect, told.needless, told.averted),
            (0, 0, 0)
        );
    });
}

fn wills_that_the_system_forgets_or_repeats_are_told(seeds: Range<u64>) {
    let seeds: Vec<u64> = seeds.collect();
    of_each(&seeds, |seed| {
        let planted = Planted::new(*seed);
        let run = planted.run(Behaviour {
            will_loss: (seed % 4) as f64 / 5.0,
            duplication: (seed % 3) as f64 / 4.0,
            repeated_after_ns: Some(5 * MS),
            ..Behaviour::default()
        });
        let told = agrees(&planted, &run);
        let lost = told.cut - told.published;
        assert_eq!(told.missing(), lost, "seed {seed}");
        assert_eq!(
            told.deliveries_missing(),
            lost * u64::from(planted.watchers)
        );
    });
}

fn wills_of_connections_that_ended_in_order_are_told(seeds: Range<u64>) {
    let seeds: Vec<u64> = seeds.collect();
    of_each(&seeds, |seed| {
        let planted = Planted {
            vanishes: false,
            ..Planted::new(*seed)
        };
        let run = planted.run(Behaviour {
            wills_in_order: 0.3 + (seed % 8) as f64 / 10.0,
            closing_ns: seed % 3 * 10 * MS,
            ..Behaviour::default()
        });
        let told = agrees(&planted, &run);
        assert_eq!((told.cut, told.due, told.needless), (0, 0, 0));
        let after = figure(&run.trial, None, "wills-after-disconnect");
        assert_eq!(after, Some(told.after_disconnect as f64));
    });
}

/// A device that is away for longer than the delay has a will; one that is back before has none.
fn wills_with_a_delay_are_due_where_nobody_is_back(seeds: Range<u64>) {
    let seeds: Vec<u64> = seeds.collect();
    of_each(&seeds, |seed| {
        let waits = seed % 2 == 0;
        let planted = Planted {
            delay_s: if waits { 1 } else { 3 },
            online: Between::exactly(500 * MS + seed * MS / 10),
            offline: Between::exactly(if waits { 3_500 * MS } else { SECOND }),
            measure: 4_300 * MS,
            ..Planted::new(*seed)
        };
        let run = planted.run(Behaviour {
            wills_despite_return: seed % 3 == 0,
            ..Behaviour::default()
        });
        let told = run.trial.wills.clone().expect("devices with wills");
        let of_truth = wills(&run, false);
        let published = of_truth.values().filter(|records| came(records)).count() as u64;
        assert_eq!((told.after_disconnect, told.duplicated), (0, 0));
        let devices = u64::from(planted.publishers);
        if waits {
            // Each is cut once, and long gone when its will comes.
            let both = (told.cut, told.due, told.published, told.averted);
            assert_eq!(both, (devices, devices, published, 0), "seed {seed}");
            assert_eq!((told.missing(), told.needless, told.undecided), (0, 0, 0));
            let least = told.time_ns.as_ref().and_then(|t| t.min).expect("times");
            let takes = SECOND + planted.seed % 7 * 3 * MS + MS;
            within(least as f64, takes as f64, 0.002);
        } else {
            // Each is back a second later, again and again.
            assert_eq!((told.cut, told.due), (told.averted, 0), "seed {seed}");
            assert!(told.cut >= devices, "seed {seed}");
            assert_eq!(told.needless, published, "seed {seed}");
            assert_eq!(published > 0, seed % 3 == 0, "seed {seed}");
        }
    });
}

/// The system ends a connection itself: a will may come, and is told as that of a connection that was lost.
#[test]
fn wills_of_connections_that_were_lost_are_apart() {
    let planted = Planted {
        publishers: 2,
        online: Between::exactly(100 * SECOND),
        ..Planted::new(3)
    };
    let mut workload = planted.workload();
    workload.phases.disconnects_allowed = true;
    workload.phases.reconnect_after = Some(SECOND / 4);
    let behaviour = Behaviour {
        disconnects: vec![(SECOND, "pub0".into())],
        ..Behaviour::default()
    };
    let run = simulate(workload, behaviour, Settings::default());
    let told = run.trial.wills.clone().expect("devices with wills");
    assert_eq!((told.cut, told.in_order, told.lost), (0, 0, 1));
    assert_eq!((told.after_loss, told.due, told.needless), (1, 0, 0));
    assert_eq!(told.time_ns, None);
}
