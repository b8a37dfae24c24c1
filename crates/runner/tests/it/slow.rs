//! Subscribers whose applications are slow, beside others: what the system does with their messages, planted.

use std::ops::Range;

use pubgauge_driver::{Kind, Settings};
use pubgauge_figures::figure::figure;
use pubgauge_figures::model::Status;
use pubgauge_figures::slow::SlowFigures;
use pubgauge_simulator::{Behaviour, Truth, TruthRecord, Waiting, WhenFull};
use pubgauge_workload::{Arrivals, Nanos, SECOND, Until, Workload};

use crate::planted::*;

const MS: Nanos = 1_000_000;

hold_for_seeds!(
    what_a_system_keeps_for_slow_subscribers_comes_when_they_catch_up,
    what_a_system_drops_is_lost_and_each_of_them_is_told,
    who_is_thrown_out_loses_all_that_follows,
    who_is_fast_enough_does_not_fall_behind,
    a_fast_subscriber_that_waits_for_a_slow_one_is_seen,
    an_application_that_takes_its_time_is_the_limit,
    an_application_that_has_time_left_is_not,
    members_of_a_group_take_their_time_each,
    members_of_a_group_may_take_longer_than_a_drain_is_silent,
    what_waits_for_an_application_waits_as_in_theory,
    who_is_thrown_out_takes_its_time_afterwards,
);

/// A trial with slow subscribers, the first ones, and others.
struct Planted {
    slow: u32,
    fast: u32,
    takes: Nanos,
    per_s: f64,
    seed: u64,
}

impl Planted {
    /// More is due than is taken.
    fn overwhelmed(seed: u64) -> Planted {
        let takes = (4 + seed % 7) * MS;
        Planted {
            slow: 1 + (seed % 3) as u32,
            fast: 1 + (seed % 4) as u32,
            takes,
            per_s: 1e9 / takes as f64 * (2.0 + (seed % 5) as f64 / 2.0),
            seed,
        }
    }

    fn workload(&self) -> Workload {
        let publishers = 1 + (self.seed % 3) as u32;
        let per_s = self.per_s;
        let arrivals = match self.seed % 2 {
            0 => Arrivals::Periodic { per_s },
            _ => Arrivals::Poisson { per_s },
        };
        let mut workload = workload(publishers, self.slow + self.fast, arrivals);
        workload.phases.warm_up = Until::Time(SECOND / 10);
        workload.phases.measure = Until::Time(2 * SECOND);
        workload.phases.drain_quiet = SECOND / 5;
        workload.seed = self.seed;
        for subscriber in &mut workload.flows[0].subscribers[..self.slow as usize] {
            subscriber.takes = Some(self.takes);
        }
        workload
    }

    fn run(&self, behaviour: Behaviour) -> Run {
        let behaviour = Behaviour {
            seed: self.seed,
            ..behaviour
        };
        simulate(self.workload(), behaviour, Settings::default())
    }

    fn is_slow(&self, record: &TruthRecord) -> bool {
        let number: u32 = record.subscriber["sub".len()..].parse().unwrap();
        number < self.slow
    }

    /// Figures of slow subscribers and of others are the truth.
    #[track_caller]
    fn agrees(&self, run: &Run) -> SlowFigures {
        let (slow, fast): (Vec<TruthRecord>, Vec<TruthRecord>) =
            (run.truth.iter().cloned()).partition(|record| self.is_slow(record));
        let (seed, trial) = (self.seed, &run.trial);
        let truth = Truth::count(&fast, run.record.epoch);
        let messages = &trial.messages;
        assert_eq!(messages.delivered, truth.delivered, "seed {seed}");
        assert_eq!(messages.expected, truth.unique);
        assert_eq!((trial.shortfall.lost, trial.shortfall.under_way), (0, 0));
        assert_eq!(messages.latency_ns.count, truth.unique);
        run.adds_up();
        let told = trial.slow.clone().expect("slow subscribers");
        let end = run.record.table.unwrap().end;
        let measured = |record: &&TruthRecord| {
            record
                .header
                .is_some_and(|header| header.kind == Kind::Measured)
        };
        let came = |within: fn(Nanos, Nanos) -> bool| {
            let records = slow.iter().filter(measured);
            records
                .filter(|r| r.delivered_at.is_some_and(|at| within(at, end)))
                .count() as u64
        };
        assert_eq!(told.taken, came(|at, end| at < end), "seed {seed}");
        assert_eq!(told.behind, came(|at, end| at >= end), "seed {seed}");
        assert_eq!(told.expected, messages.published * u64::from(self.slow));
        assert_eq!(told.lost, told.expected - told.taken - told.behind);
        assert_eq!((told.under_way, told.duplicated), (0, 0));
        assert_eq!(told.subscribers, u64::from(self.slow));
        assert_eq!(told.latency_ns.as_ref().map_or(0, |d| d.count), told.taken);
        let each = |of: fn(&pubgauge_figures::slow::SlowSubscriber) -> u64| -> u64 {
            told.of.iter().map(of).sum()
        };
        if told.fell_behind == told.subscribers {
            assert_eq!(each(|one| one.taken), told.taken);
            assert_eq!(each(|one| one.behind), told.behind);
            assert_eq!(each(|one| one.lost.unwrap()), told.lost, "seed {seed}");
        }
        told
    }
}

fn what_a_system_keeps_for_slow_subscribers_comes_when_they_catch_up(seeds: Range<u64>) {
    let seeds: Vec<u64> = seeds.collect();
    of_each(&seeds, |seed| {
        let planted = Planted::overwhelmed(*seed);
        let run = planted.run(Behaviour::default());
        run.is(Status::Valid, "");
        let told = planted.agrees(&run);
        assert_eq!((told.lost, told.disconnects), (0, 0));
        assert_eq!(told.fell_behind, told.subscribers);
        assert!(told.behind > 0);
        // They are never idle once the first message is there.
        let each = 2 * SECOND / planted.takes;
        let taken = told.taken / u64::from(planted.slow);
        let first = (20.0 * 1e9 / planted.per_s / planted.takes as f64) as u64 + 2;
        assert!(
            (each - first..=each + 1).contains(&taken),
            "seed {seed}: {taken} of {each}"
        );
        // The others get each message as if nobody were slow.
        assert!(run.trial.messages.latency_ns.max.unwrap() <= MS + 2_000);
        let latest = told.latency_ns.unwrap().max.unwrap();
        assert!(latest > SECOND / 4, "seed {seed}: {latest}");
    });
}

fn what_a_system_drops_is_lost_and_each_of_them_is_told(seeds: Range<u64>) {
    let seeds: Vec<u64> = seeds.collect();
    of_each(&seeds, |seed| {
        let planted = Planted::overwhelmed(*seed);
        let most = 5 + (seed % 50) as usize;
        let then = match seed % 2 {
            0 => WhenFull::DropNewest,
            _ => WhenFull::DropOldest,
        };
        let run = planted.run(Behaviour {
            waiting: Some(Waiting { most, then }),
            ..Behaviour::default()
        });
        run.is(Status::Valid, "");
        let told = planted.agrees(&run);
        let lost = run.truth.iter().filter(|record| {
            record.lost && record.header.is_some_and(|h| h.kind == Kind::Measured)
        });
        assert_eq!(told.lost, lost.count() as u64, "seed {seed}");
        assert!(told.lost > 0 && told.disconnects == 0);
        assert_eq!(told.fell_behind, told.subscribers);
        // Those that waited at the end come, and the few that were on their way.
        let behind = told.behind / told.subscribers;
        assert!(
            behind <= most as u64 + 10,
            "seed {seed}: {behind} of {most}"
        );
        assert_eq!(
            figure(&run.trial, None, "slow-lost"),
            Some(told.lost as f64)
        );
    });
}

fn who_is_thrown_out_loses_all_that_follows(seeds: Range<u64>) {
    let seeds: Vec<u64> = seeds.collect();
    of_each(&seeds, |seed| {
        let planted = Planted::overwhelmed(*seed);
        let most = 5 + (seed % 50) as usize;
        let run = planted.run(Behaviour {
            waiting: Some(Waiting {
                most,
                then: WhenFull::Disconnect,
            }),
            ..Behaviour::default()
        });
        run.is(Status::Valid, "");
        let told = planted.agrees(&run);
        assert_eq!(told.disconnects, told.subscribers, "seed {seed}");
        assert_eq!(run.trial.connections.lost, told.disconnects);
        // Nobody else was without a connection.
        assert_eq!(run.trial.interruptions, []);
        assert_eq!(told.behind, 0);
        assert_eq!(told.fell_behind, told.subscribers);
        assert!(
            told.of
                .iter()
                .all(|one| one.disconnects == 1 && one.lost > Some(0))
        );
    });
}

fn who_is_fast_enough_does_not_fall_behind(seeds: Range<u64>) {
    let seeds: Vec<u64> = seeds.collect();
    of_each(&seeds, |seed| {
        let takes = (1 + seed % 4) * MS;
        let planted = Planted {
            takes,
            per_s: 0.5 * 1e9 / takes as f64,
            // Evenly spaced.
            seed: seed * 2,
            ..Planted::overwhelmed(*seed)
        };
        let run = planted.run(Behaviour::default());
        run.is(Status::Valid, "");
        let told = planted.agrees(&run);
        assert_eq!((told.fell_behind, told.lost), (0, 0), "seed {seed}");
        assert!(told.behind <= 2 * told.subscribers);
        // Several publishers may send together.
        let latest = told.latency_ns.unwrap().max.unwrap();
        assert!(latest <= MS + 3 * takes, "seed {seed}: {latest}");
    });
}

fn a_fast_subscriber_that_waits_for_a_slow_one_is_seen(seeds: Range<u64>) {
    let seeds: Vec<u64> = seeds.collect();
    of_each(&seeds, |seed| {
        let planted = Planted::overwhelmed(*seed);
        let extra = (20 + seed % 30) * MS;
        let run = planted.run(Behaviour {
            held_up: Some((10, extra)),
            ..Behaviour::default()
        });
        let told = planted.agrees(&run);
        assert_eq!(told.lost, 0, "seed {seed}");
        let latency = &run.trial.messages.latency_ns;
        let held_up = (MS + extra) as f64;
        within(latency.p99.unwrap() as f64, held_up, 0.002);
    });
}

/// All subscribers of a flow take so long for each message.
fn all_take(takes: Nanos, subscribers: u32, arrivals: Arrivals) -> Workload {
    let mut workload = workload(1, subscribers, arrivals);
    workload.phases.warm_up = Until::Time(SECOND / 5);
    workload.phases.measure = Until::Time(2 * SECOND);
    workload.phases.drain_within = 20 * SECOND;
    workload.flows[0].subscribers_take = Some(takes);
    workload
}

/// All members of a flow's one group take so long for each message.
fn members_take(takes: Nanos, members: u32, arrivals: Arrivals) -> Workload {
    let mut workload = all_take(takes, members, arrivals);
    for subscriber in &mut workload.flows[0].subscribers {
        subscriber.group = Some("g".into());
    }
    workload
}

/// Three times as much is sent as an application takes, or as much as a window lets through: each takes as much as it can, and
/// what waits for it is not the system's.
fn an_application_that_takes_its_time_is_the_limit(seeds: Range<u64>) {
    let seeds: Vec<u64> = seeds.collect();
    of_each(&seeds, |seed| {
        let takes = (100 + 50 * (seed % 5)) * 1_000;
        let each = 1e9 / takes as f64;
        let floods = seed % 2 == 1;
        let arrivals = if floods {
            Arrivals::FlatOut
        } else {
            Arrivals::Periodic { per_s: 3.0 * each }
        };
        let mut workload = all_take(takes, 1 + (seed % 3) as u32, arrivals);
        workload.flows[0].window = floods.then_some(200);
        let subscribers = workload.flows[0].subscribers.len() as f64;
        let behaviour = Behaviour {
            publish_cost_ns: 200,
            seed: *seed,
            ..Behaviour::default()
        };
        let run = simulate(workload, behaviour, Settings::default());
        run.agrees();
        run.is(Status::ClientBound, "application of a subscriber");
        let messages = &run.trial.messages;
        within(messages.delivered_msgs_per_s, subscribers * each, 0.005);
        assert!(run.trial.worker_load.applications_busy.unwrap() > 0.999);
        assert_eq!(run.trial.shortfall.lost, 0);
        if !floods {
            // What was kept is taken in the drain, one at a time.
            let drained = messages.published as f64 / each - 2.0;
            assert!(run.trial.drain.seconds > 0.95 * drained, "seed {seed}");
        }
    });
}

fn an_application_that_has_time_left_is_not(seeds: Range<u64>) {
    let seeds: Vec<u64> = seeds.collect();
    of_each(&seeds, |seed| {
        let takes = (100 + 50 * (seed % 5)) * 1_000;
        let share = 0.2 + 0.1 * (seed % 6) as f64;
        let per_s = share * 1e9 / takes as f64;
        let workload = all_take(takes, 2, Arrivals::Periodic { per_s });
        let behaviour = Behaviour {
            seed: *seed,
            ..Behaviour::default()
        };
        let run = simulate(workload, behaviour, Settings::default());
        run.agrees();
        run.is(Status::Valid, "");
        let busy = run.trial.worker_load.applications_busy.unwrap();
        within(busy, share, 0.01);
        let latest = run.trial.messages.latency_ns.max.unwrap();
        assert!(latest <= MS + 2_000, "seed {seed}: {latest}");
    });
}

fn members_of_a_group_take_their_time_each(seeds: Range<u64>) {
    let seeds: Vec<u64> = seeds.collect();
    of_each(&seeds, |seed| {
        let takes = (100 + 50 * (seed % 5)) * 1_000;
        let members = 2 + (seed % 3) as u32;
        let per_s = 2.0 * f64::from(members) * 1e9 / takes as f64;
        let workload = members_take(takes, members, Arrivals::Periodic { per_s });
        let behaviour = Behaviour {
            seed: *seed,
            ..Behaviour::default()
        };
        let run = simulate(workload, behaviour, Settings::default());
        run.agrees();
        run.is(Status::ClientBound, "application of a subscriber");
        let delivered = run.trial.messages.delivered_msgs_per_s;
        within(delivered, f64::from(members) * 1e9 / takes as f64, 0.005);
    });
}

/// Between two messages nothing comes for longer than the drain waits for those of which nothing comes.
fn members_of_a_group_may_take_longer_than_a_drain_is_silent(seeds: Range<u64>) {
    let seeds: Vec<u64> = seeds.collect();
    of_each(&seeds, |seed| {
        let takes = (3 + seed % 3) * SECOND / 10;
        let mut workload = members_take(takes, 2, Arrivals::Periodic { per_s: 8.0 });
        workload.phases.measure = Until::Time(SECOND);
        workload.phases.drain_quiet = SECOND / 10;
        let behaviour = Behaviour {
            seed: *seed,
            ..Behaviour::default()
        };
        let run = simulate(workload, behaviour, Settings::default());
        run.agrees();
        let shortfall = &run.trial.shortfall;
        assert_eq!((shortfall.lost, shortfall.under_way), (0, 0), "seed {seed}");
    });
}

/// At random arrivals and a fixed time for each, a message waits for `rho takes / (2 (1 - rho))` on average (M/D/1).
fn what_waits_for_an_application_waits_as_in_theory(seeds: Range<u64>) {
    let seeds: Vec<u64> = seeds.collect();
    let waits = of_each(&seeds, |seed| {
        let (takes, rho) = (200_000, 0.7);
        let per_s = rho * 1e9 / takes as f64;
        let mut workload = all_take(takes, 1, Arrivals::Poisson { per_s });
        workload.phases.measure = Until::Time(10 * SECOND);
        workload.seed = *seed;
        let behaviour = Behaviour {
            seed: *seed,
            ..Behaviour::default()
        };
        let run = simulate(workload, behaviour, Settings::default());
        run.agrees();
        let busy = run.trial.worker_load.applications_busy.unwrap();
        within(busy, rho, 0.03);
        let mean = run.trial.messages.latency_ns.mean.unwrap();
        let theory = rho * takes as f64 / (2.0 * (1.0 - rho));
        (mean - MS as f64) / theory
    });
    // The mean over 35,000 messages scatters by some percent, as waits depend on one another.
    let mean = waits.iter().sum::<f64>() / waits.len() as f64;
    within(mean, 1.0, 0.08);
}

/// A system disconnects whom too much waits for: what comes afterwards is taken one at a time, too.
fn who_is_thrown_out_takes_its_time_afterwards(seeds: Range<u64>) {
    let seeds: Vec<u64> = seeds.collect();
    of_each(&seeds, |seed| {
        let takes = (200 + 50 * (seed % 5)) * 1_000;
        let each = 1e9 / takes as f64;
        let mut workload = all_take(takes, 1, Arrivals::Periodic { per_s: 3.0 * each });
        workload.phases.reconnect_after = Some(SECOND / 10);
        let behaviour = Behaviour {
            waiting: Some(Waiting {
                most: 50,
                then: WhenFull::Disconnect,
            }),
            seed: *seed,
            ..Behaviour::default()
        };
        let run = simulate(workload, behaviour, Settings::default());
        assert!(run.trial.connections.lost > 3, "seed {seed}");
        let delivered = run.trial.messages.delivered_msgs_per_s;
        // It is without a connection for most of the time, and never faster.
        assert!((0.02 * each..=each).contains(&delivered), "{delivered}");
        let mut came: Vec<Nanos> = (run.truth.iter())
            .filter(|record| record.header.is_some_and(|h| h.kind == Kind::Measured))
            .filter_map(|record| record.delivered_at)
            .collect();
        came.sort_unstable();
        let gaps = came.windows(2).map(|pair| pair[1] - pair[0]);
        let short = gaps.filter(|gap| *gap < takes - 1_000).count();
        // One at the most comes with each connection.
        assert!(
            short as u64 <= run.trial.connections.lost,
            "seed {seed}: {short}"
        );
    });
}

/// One that is thrown out connects again, if the study says so, and is as slow as before.
#[test]
fn who_is_thrown_out_comes_back_as_slow_as_before() {
    let planted = Planted {
        slow: 1,
        ..Planted::overwhelmed(4)
    };
    let mut workload = planted.workload();
    workload.phases.reconnect_after = Some(SECOND / 10);
    let behaviour = Behaviour {
        waiting: Some(Waiting {
            most: 10,
            then: WhenFull::Disconnect,
        }),
        ..Behaviour::default()
    };
    let run = simulate(workload, behaviour, Settings::default());
    run.is(Status::Valid, "");
    let told = planted.agrees(&run);
    assert!(told.disconnects > 3, "{told:?}");
    // The measurement may end before the last return.
    let remade = run.trial.connections.remade;
    assert!((told.disconnects - 1..=told.disconnects).contains(&remade));
}
