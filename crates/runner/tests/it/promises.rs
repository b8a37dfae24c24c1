//! Promises of each delivery (content, topic, quality, order) against truths planted in the simulated
//! system.

use crate::planted;

use planted::*;
use pubgauge_driver::Settings;
use pubgauge_figures::model::{Rule, Status, Trial};
use pubgauge_simulator::Behaviour;
use pubgauge_workload::Arrivals;

/// The verdict of a trial over a system with this behaviour.
fn trial_with(behaviour: Behaviour) -> Trial {
    let workload = workload(2, 2, Arrivals::Periodic { per_s: 100.0 });
    simulate(workload, behaviour, Settings::default())
        .trial
        .clone()
}

fn rules(trial: &Trial) -> Vec<Rule> {
    trial.verdict.reasons.iter().map(|r| r.rule).collect()
}

#[test]
fn a_damaged_body_is_no_valid_trial_whatever_is_damaged() {
    let in_the_middle = |seed| Behaviour {
        corruption: 0.01,
        corrupt_byte: Some(30),
        seed,
        ..Behaviour::default()
    };
    let cut = |seed| Behaviour {
        cut: 0.01,
        seed,
        ..Behaviour::default()
    };
    let lengthened = |seed| Behaviour {
        lengthened: 0.01,
        seed,
        ..Behaviour::default()
    };
    for seed in 0..4 {
        for behaviour in [in_the_middle(seed), cut(seed), lengthened(seed)] {
            let trial = trial_with(behaviour);
            assert_eq!(trial.verdict.status, Status::Broken);
            assert_eq!(rules(&trial), [Rule::Corrupt]);
            assert_eq!(trial.odd.compared, trial.messages.delivered);
            assert_eq!(trial.odd.compared_whole, trial.messages.delivered);
        }
    }
}

#[test]
fn a_delivery_on_another_topic_is_no_valid_trial() {
    for seed in 0..8 {
        let trial = trial_with(Behaviour {
            misdirection: 0.005,
            seed,
            ..Behaviour::default()
        });
        assert_eq!(trial.verdict.status, Status::Broken);
        assert_eq!(rules(&trial), [Rule::WrongTopic]);
        assert!(trial.odd.misdirected > 0);
        assert_eq!((trial.odd.foreign, trial.odd.corrupt), (0, 0));
    }
}

#[test]
fn a_delivery_below_the_promised_quality_is_no_valid_trial() {
    for seed in 0..8 {
        let trial = trial_with(Behaviour {
            lowering: 0.005,
            seed,
            ..Behaviour::default()
        });
        assert_eq!(trial.verdict.status, Status::Lossy);
        assert_eq!(rules(&trial), [Rule::LowerQuality]);
        assert!(trial.odd.lowered > 0);
    }
}

#[test]
fn a_delivery_out_of_order_is_no_valid_trial_where_order_is_promised() {
    for seed in 0..8 {
        let disorder = Behaviour {
            reordering: 0.01,
            hold_back_ns: 50_000_000,
            seed,
            ..Behaviour::default()
        };
        let trial = trial_with(disorder.clone());
        assert_eq!(trial.verdict.status, Status::Lossy);
        assert_eq!(rules(&trial), [Rule::OutOfOrder]);
        let unordered = Behaviour {
            ordered: false,
            ..disorder
        };
        let trial = trial_with(unordered);
        assert!(trial.messages.reordered > 0);
        assert!(!rules(&trial).contains(&Rule::OutOfOrder));
    }
}

#[test]
fn members_of_a_group_may_overtake_each_other() {
    let mut workload = workload(1, 3, Arrivals::Periodic { per_s: 200.0 });
    for subscriber in &mut workload.flows[0].subscribers {
        subscriber.group = Some("team".into());
    }
    let behaviour = Behaviour {
        reordering: 0.02,
        hold_back_ns: 50_000_000,
        ..Behaviour::default()
    };
    let trial = simulate(workload, behaviour, Settings::default())
        .trial
        .clone();
    assert!(
        !rules(&trial).contains(&Rule::OutOfOrder),
        "{:#?}",
        trial.verdict
    );
}
