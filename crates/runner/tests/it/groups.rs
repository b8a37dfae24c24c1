//! Shares of group members, against what the simulated system gave them.

use crate::planted;

use std::collections::{BTreeMap, BTreeSet};

use planted::*;
use pubgauge_driver::{Kind, Settings};
use pubgauge_engine::assignment::Workers;
use pubgauge_figures::figure::figure;
use pubgauge_figures::model::Status;
use pubgauge_simulator::{Behaviour, Truth};
use pubgauge_workload::{Arrivals, SECOND, Until, Workload};

/// 2 publishers, and a group for each of these numbers of members.
fn grouped(members: &[u32]) -> Workload {
    let all = members.iter().sum();
    let mut workload = workload(2, all, Arrivals::Periodic { per_s: 400.0 });
    let names = members.iter().enumerate();
    let names = names.flat_map(|(team, count)| (0..*count).map(move |_| format!("team{team}")));
    for (subscriber, name) in workload.flows[0].subscribers.iter_mut().zip(names) {
        subscriber.group = Some(name);
    }
    workload
}

/// Measured messages that really came to each subscriber, in the order of the flow's subscribers.
fn really(run: &Run, workload: &Workload) -> Vec<u64> {
    let mut came: BTreeMap<&str, BTreeSet<(u32, u32)>> = BTreeMap::new();
    for record in run.truth.iter().filter(|r| r.delivered_at.is_some()) {
        if let Some(header) = record.header.filter(|h| h.kind == Kind::Measured) {
            let messages = came.entry(&record.subscriber).or_default();
            messages.insert((header.stream, header.sequence));
        }
    }
    let subscribers = workload.flows[0].subscribers.iter();
    let name = |device: u32| workload.devices[device as usize].name.as_str();
    subscribers
        .map(|s| {
            came.get(name(s.device))
                .map_or(0, |messages| messages.len() as u64)
        })
        .collect()
}

#[test]
fn a_lopsided_group_is_reported_as_it_was() {
    for seed in 0..4 {
        let behaviour = Behaviour {
            group_order: vec![0, 0, 0, 1],
            delay_sigma: 0.5,
            loss: 0.01,
            duplication: 0.02,
            seed,
            ..Behaviour::default()
        };
        // The third member never gets anything.
        let workload = grouped(&[3]);
        let run = simulate(workload.clone(), behaviour, Settings::default());
        let [group] = &run.trial.groups[..] else {
            panic!("{:?}", run.trial.groups)
        };
        assert_eq!((group.name.as_str(), group.broker), ("team0", 1));
        assert_eq!(group.deliveries, really(&run, &workload));
        assert_eq!(
            group.deliveries.iter().sum::<u64>(),
            run.trial.messages.unique()
        );
        assert_eq!(group.deliveries[2], 0);
        let of = |name: &str| figure(&run.trial, None, name).unwrap();
        assert_eq!(of("smallest_member_share"), 0.0);
        within(of("largest_member_share"), 0.75, 0.01);
    }
}

#[test]
fn each_group_is_counted_apart_whichever_worker_it_is_on() {
    let mut workload = grouped(&[2, 3, 1]);
    workload.phases.warm_up = Until::Time(SECOND / 5);
    workload.phases.measure = Until::Time(SECOND);
    let workers = Workers {
        publishers: 2,
        subscribers: 3,
        ..Workers::default()
    };
    let run = on_threads(
        workload.clone(),
        Behaviour::default(),
        Settings::default(),
        workers,
    );
    let groups = &run.trial.groups;
    let deliveries: Vec<u64> = groups.iter().flat_map(|g| g.deliveries.clone()).collect();
    assert_eq!(deliveries, really(&run, &workload));
    let members: Vec<usize> = groups.iter().map(|g| g.deliveries.len()).collect();
    assert_eq!(members, [2, 3, 1]);
    // Each group has had every message.
    for group in groups {
        assert_eq!(
            group.deliveries.iter().sum::<u64>(),
            run.trial.messages.published
        );
    }
    assert_eq!(figure(&run.trial, None, "largest_member_share"), Some(1.0));
}

/// The members are on two workers, and some messages come to one on each.
#[test]
fn what_members_on_different_workers_got_is_reported_as_it_was() {
    let mut workload = grouped(&[4]);
    workload.phases.warm_up = Until::Time(SECOND / 5);
    workload.phases.measure = Until::Time(SECOND);
    let behaviour = Behaviour {
        group_duplication: 0.1,
        loss: 0.05,
        ..Behaviour::default()
    };
    let workers = Workers {
        subscribers: 2,
        ..Workers::default()
    };
    let run = on_threads(workload, behaviour, Settings::default(), workers);
    let truth = Truth::count(&run.truth, run.record.epoch);
    let t = &run.trial;
    assert_eq!(
        (
            t.messages.delivered,
            t.messages.unique(),
            t.messages.duplicated,
            t.shortfall.lost,
            t.shortfall.under_way
        ),
        (
            truth.delivered,
            truth.unique,
            truth.duplicated,
            truth.lost,
            0
        )
    );
    assert!(truth.duplicated > 0 && truth.lost > 0);
    assert_eq!(t.groups[0].deliveries.iter().sum::<u64>(), truth.unique);
    run.adds_up();
    run.is(Status::Lossy, "");
}

/// The system does nothing for three seconds, from before the end of the measurement on: all that it then owes a group comes, and
/// what it has lost is told from that, be it half of all messages, sentinels among them.
#[test]
fn what_a_frozen_system_still_owes_a_group_is_not_lost() {
    for seed in 0..4 {
        let mut workload = grouped(&[3, 2]);
        workload.phases.measure = Until::Time(2 * SECOND);
        let end = 4 * SECOND;
        let from = end - (1 + seed) * SECOND / 5;
        let behaviour = Behaviour {
            stalls: vec![(from, from + 3 * SECOND)],
            delay_sigma: 0.5,
            loss: [0.0, 0.02, 0.5, 0.0][seed as usize],
            seed,
            ..Behaviour::default()
        };
        let run = simulate(workload, behaviour, Settings::default());
        run.agrees();
        let truth = Truth::count(&run.truth, run.record.epoch);
        let shortfall = &run.trial.shortfall;
        assert_eq!(
            (shortfall.lost, shortfall.under_way),
            (truth.lost, 0),
            "seed {seed}"
        );
    }
}

#[test]
fn what_a_frozen_system_owes_members_on_two_workers_is_not_lost() {
    let mut workload = grouped(&[4]);
    workload.phases.warm_up = Until::Time(SECOND / 5);
    workload.phases.measure = Until::Time(SECOND);
    let behaviour = Behaviour {
        // The first second is about the time at which the measurement ends.
        stalls: vec![(SECOND, 4 * SECOND)],
        ..Behaviour::default()
    };
    let workers = Workers {
        subscribers: 2,
        ..Workers::default()
    };
    let run = on_threads(workload, behaviour, Settings::default(), workers);
    let messages = &run.trial.messages;
    assert_eq!(messages.unique(), messages.published);
    let shortfall = &run.trial.shortfall;
    assert_eq!((shortfall.lost, shortfall.under_way), (0, 0));
}

#[test]
fn where_nobody_shares_there_are_no_groups() {
    let workload = workload(1, 3, Arrivals::Periodic { per_s: 100.0 });
    let run = simulate(workload, Behaviour::default(), Settings::default());
    assert!(run.trial.groups.is_empty());
    assert_eq!(figure(&run.trial, None, "smallest_member_share"), None);
}
