//! Subscribers that come late, beside others: what the system has kept for them and what comes afterwards, planted.

use std::ops::Range;

use pubgauge_driver::{Kind, Settings};
use pubgauge_figures::figure::figure;
use pubgauge_figures::late::LateFigures;
use pubgauge_figures::model::Status;
use pubgauge_simulator::{Behaviour, Truth, TruthRecord};
use pubgauge_workload::{Arrivals, Nanos, SECOND, Until, Workload};

use crate::planted::*;

const MS: Nanos = 1_000_000;

hold_for_seeds!(
    last_values_come_to_each_late_subscriber_once_for_each_topic,
    last_values_that_the_system_does_not_keep_are_missing,
    what_is_lost_after_a_subscription_is_told_from_what_came_before_it,
    stored_messages_are_a_backlog,
);

/// A trial with late subscribers, the last ones, and others.
struct Planted {
    late: u32,
    on_time: u32,
    publishers: u32,
    topics: u32,
    after: Nanos,
    per_s: f64,
    seed: u64,
    random: bool,
    last_value: bool,
}

impl Planted {
    fn new(seed: u64) -> Planted {
        Planted {
            late: 1 + (seed % 4) as u32,
            on_time: 1 + (seed % 3) as u32,
            publishers: 1 + (seed % 5) as u32,
            topics: 1 + (seed / 3 % 4) as u32,
            // At no moment at which a message is due.
            after: (100 + seed * 37 % 1_700) * MS + 333_337,
            per_s: 40.0 + (seed * 13 % 160) as f64,
            seed,
            random: seed % 2 == 1,
            last_value: true,
        }
    }

    fn workload(&self) -> Workload {
        let per_s = self.per_s;
        let arrivals = if self.random {
            Arrivals::Poisson { per_s }
        } else {
            Arrivals::Periodic { per_s }
        };
        let mut workload = workload(self.publishers, self.on_time + self.late, arrivals);
        workload.phases.warm_up = Until::Time(SECOND / 10);
        workload.phases.measure = Until::Time(2 * SECOND);
        workload.phases.drain_quiet = SECOND / 5;
        workload.seed = self.seed;
        let flow = &mut workload.flows[0];
        for (number, publisher) in flow.publishers.iter_mut().enumerate() {
            let topics = (0..self.topics).map(|topic| format!("t/{number}/{topic}"));
            publisher.topics = topics.collect();
        }
        for subscriber in &mut flow.subscribers[self.on_time as usize..] {
            subscriber.late = Some(self.after);
        }
        workload
    }

    fn run(&self, behaviour: Behaviour) -> Run {
        self.run_workload(self.workload(), behaviour)
    }

    fn run_workload(&self, workload: Workload, behaviour: Behaviour) -> Run {
        let behaviour = Behaviour {
            seed: self.seed,
            ..behaviour
        };
        let settings = Settings {
            last_value: Some(self.last_value),
            ..Settings::default()
        };
        simulate(workload, behaviour, settings)
    }

    fn is_late(&self, record: &TruthRecord) -> bool {
        let number: u32 = record.subscriber["sub".len()..].parse().unwrap();
        number >= self.on_time
    }

    /// Topics that each subscriber hears.
    fn heard(&self) -> u64 {
        u64::from(self.publishers * self.topics)
    }

    /// The figures of others, and of those who are late, are true.
    #[track_caller]
    fn agrees(&self, run: &Run) -> LateFigures {
        let (late, others): (Vec<TruthRecord>, Vec<TruthRecord>) =
            (run.truth.iter().cloned()).partition(|record| self.is_late(record));
        let (seed, trial) = (self.seed, &run.trial);
        let truth = Truth::count(&others, run.record.epoch);
        let messages = &trial.messages;
        assert_eq!(messages.delivered, truth.delivered, "seed {seed}");
        assert_eq!(
            messages.expected,
            messages.published * u64::from(self.on_time)
        );
        assert_eq!(trial.shortfall.lost, truth.lost, "seed {seed}");
        assert_eq!(
            (messages.duplicated, messages.missed, messages.backlog),
            (0, 0, 0)
        );
        assert_eq!((trial.odd.retained, trial.odd.foreign), (0, 0));
        run.adds_up();
        let told = trial.late.clone().expect("late subscribers");
        let came = |of: &dyn Fn(&TruthRecord) -> bool| {
            let records = late.iter().filter(|r| r.delivered_at.is_some());
            records.filter(|record| of(record)).count() as u64
        };
        let is = |record: &TruthRecord, kind| record.header.is_some_and(|h| h.kind == kind);
        assert_eq!(told.last_values, came(&|r| r.last_value), "seed {seed}");
        // Stored messages are recorded when they are sent.
        let stored = |r: &TruthRecord| {
            let due = run.record.epoch + r.header.map_or(0, |h| h.intended);
            !r.last_value && due < r.published_at
        };
        let message = |r: &TruthRecord| is(r, Kind::Measured) || is(r, Kind::WarmUp);
        assert_eq!(
            told.backlog,
            came(&|r| stored(r) && message(r)),
            "seed {seed}"
        );
        let live = came(&|r| !stored(r) && !r.last_value && is(r, Kind::Measured));
        assert_eq!(told.live, live, "seed {seed}");
        assert_eq!((told.duplicated, told.last_values_repeated), (0, 0));
        let subscribers = u64::from(self.late);
        assert_eq!(
            (told.subscribers, told.subscribed),
            (subscribers, subscribers)
        );
        assert_eq!(told.open_paths, 0, "seed {seed}");
        told
    }
}

fn last_values_come_to_each_late_subscriber_once_for_each_topic(seeds: Range<u64>) {
    let seeds: Vec<u64> = seeds.collect();
    of_each(&seeds, |seed| {
        let planted = Planted::new(*seed);
        let (every, answered) = (seed % 7 * MS / 4, seed % 11 * MS);
        let run = planted.run(Behaviour {
            kept_every_ns: every,
            subscribe_ns: answered,
            ..Behaviour::default()
        });
        run.is(Status::Valid, "");
        let told = planted.agrees(&run);
        let due = planted.heard() * u64::from(planted.late);
        assert_eq!((told.last_values, told.last_values_due), (due, Some(due)));
        assert_eq!((told.lost, told.backlog), (0, 0), "seed {seed}");
        let subscribe = told.subscribe_ns.expect("they subscribed");
        assert_eq!(subscribe.count, u64::from(planted.late));
        within(subscribe.max.unwrap() as f64, answered.max(1) as f64, 0.002);
        let last_values = told.last_values_ns.expect("they got some");
        assert_eq!(last_values.count, u64::from(planted.late));
        let last = MS + (planted.heard() - 1) * every;
        within(last_values.max.unwrap() as f64, last as f64, 0.002);
        assert_eq!(
            figure(&run.trial, None, "late-last-values-missing"),
            Some(0.0)
        );
    });
}

fn last_values_that_the_system_does_not_keep_are_missing(seeds: Range<u64>) {
    let seeds: Vec<u64> = seeds.collect();
    of_each(&seeds, |seed| {
        let planted = Planted::new(*seed);
        let forgotten = 1 + seed % planted.heard();
        let topics = (0..planted.publishers)
            .flat_map(|p| (0..planted.topics).map(move |t| format!("t/{p}/{t}")));
        let run = planted.run(Behaviour {
            keeps_none_of: topics.take(forgotten as usize).collect(),
            ..Behaviour::default()
        });
        run.is(Status::Valid, "");
        let told = planted.agrees(&run);
        let missing = forgotten * u64::from(planted.late);
        assert_eq!(told.last_values_missing(), Some(missing), "seed {seed}");
        assert_eq!(told.lost, 0);
    });
}

fn what_is_lost_after_a_subscription_is_told_from_what_came_before_it(seeds: Range<u64>) {
    let seeds: Vec<u64> = seeds.collect();
    of_each(&seeds, |seed| {
        let planted = Planted {
            random: false,
            last_value: seed % 3 == 0,
            ..Planted::new(*seed)
        };
        let loss = 0.05 + (seed % 6) as f64 / 20.0;
        let late =
            (planted.on_time..planted.on_time + planted.late).map(|n| (format!("sub{n}"), loss));
        let run = planted.run(Behaviour {
            lossy_subscribers: late.collect(),
            ..Behaviour::default()
        });
        // The others lose nothing.
        run.is(Status::Valid, "");
        let told = planted.agrees(&run);
        let lost = run.truth.iter().filter(|record| {
            record.lost && record.header.is_some_and(|h| h.kind == Kind::Measured)
        });
        assert_eq!(told.lost, lost.count() as u64, "seed {seed}");
        assert_eq!(told.last_values_due.is_some(), planted.last_value);
    });
}

fn stored_messages_are_a_backlog(seeds: Range<u64>) {
    let seeds: Vec<u64> = seeds.collect();
    of_each(&seeds, |seed| {
        let planted = Planted {
            last_value: seed % 2 == 0,
            ..Planted::new(*seed)
        };
        let run = planted.run(Behaviour {
            history: 1 + (seed % 20) as usize,
            kept_every_ns: seed % 5 * MS / 10,
            ..Behaviour::default()
        });
        run.is(Status::Valid, "");
        let told = planted.agrees(&run);
        assert!(told.backlog > 0, "seed {seed}");
        assert_eq!(told.lost, 0, "seed {seed}");
        let backlog = told.backlog_ns.expect("they got some");
        assert_eq!(backlog.count, u64::from(planted.late));
    });
}

/// One that has no connection when its time comes subscribes once it has one.
#[test]
fn who_is_away_when_its_time_comes_subscribes_when_it_is_back() {
    let planted = Planted {
        late: 1,
        after: SECOND + 333_337,
        ..Planted::new(6)
    };
    let mut workload = planted.workload();
    workload.phases.reconnect_after = Some(SECOND / 4);
    workload.phases.disconnects_allowed = true;
    let run = planted.run_workload(
        workload,
        Behaviour {
            disconnects: vec![(SECOND, format!("sub{}", planted.on_time))],
            ..Behaviour::default()
        },
    );
    run.is(Status::Valid, "");
    let told = planted.agrees(&run);
    assert_eq!(told.last_values, planted.heard());
    assert_eq!((told.lost, run.trial.connections.remade), (0, 1));
}

/// A measurement that ends before their time has nothing to tell of them.
#[test]
fn who_never_subscribed_is_owed_nothing() {
    let planted = Planted::new(4);
    let mut workload = planted.workload();
    workload.phases.measure = Until::Count(20, 10 * SECOND);
    for subscriber in &mut workload.flows[0].subscribers[planted.on_time as usize..] {
        subscriber.late = Some(9 * SECOND);
    }
    let run = planted.run_workload(workload, Behaviour::default());
    let told = run.trial.late.as_ref().expect("late subscribers");
    assert_eq!(
        (told.subscribers, told.subscribed),
        (u64::from(planted.late), 0)
    );
    assert_eq!(
        (told.last_values_due, told.lost, told.live),
        (Some(0), 0, 0)
    );
    assert_eq!(run.trial.shortfall.lost, 0);
}
