//! Answers of the system to messages that asked for acknowledgement: rejections, and answers that never come.

use crate::planted;

use planted::*;
use pubgauge_driver::{Reliability, Settings};
use pubgauge_figures::model::{Rule, Status};
use pubgauge_simulator::Behaviour;
use pubgauge_workload::Arrivals;

fn acknowledged(reliability: Reliability) -> Settings {
    Settings {
        reliability: Some(reliability),
        ..Settings::default()
    }
}

/// A trial of 10,000 messages over a system that answers like this.
fn run(behaviour: Behaviour, settings: Settings) -> Run {
    let w = workload(2, 3, Arrivals::Periodic { per_s: 1_000.0 });
    simulate(w, behaviour, settings)
}

/// The rule of the first reason.
fn rule(run: &Run) -> Option<Rule> {
    run.trial.verdict.reasons.first().map(|reason| reason.rule)
}

const ACKNOWLEDGED: [Reliability; 2] = [Reliability::AtLeastOnce, Reliability::ExactlyOnce];

#[test]
fn any_rejected_message_makes_a_trial_lossy_and_names_its_code() {
    for (seed, share) in [0.0005, 0.005, 0.02, 0.3].into_iter().enumerate() {
        for reliability in ACKNOWLEDGED {
            let behaviour = Behaviour {
                rejection: share,
                seed: seed as u64,
                ..Behaviour::default()
            };
            let run = run(behaviour, acknowledged(reliability));
            run.adds_up();
            run.is(Status::Lossy, "rejected");
            assert_eq!(rule(&run), Some(Rule::Refused));
            let t = &run.trial;
            assert_eq!((t.shortfall.lost, t.shortfall.under_way), (0, 0));
            let [rejection] = &t.shortfall.rejections[..] else {
                panic!("{:?}", t.shortfall.rejections);
            };
            assert_eq!(
                (rejection.code, rejection.messages),
                (0x97, t.messages.refused)
            );
            let name = &rejection.name;
            assert!(t.verdict.reasons[0].text.contains(name.as_str()), "{name}");
        }
    }
}

#[test]
fn a_system_that_rejects_and_delivers_all_the_same_is_lossy_and_its_counts_agree() {
    let behaviour = Behaviour {
        rejection: 0.005,
        rejected_come: true,
        ..Behaviour::default()
    };
    let run = run(behaviour, acknowledged(Reliability::AtLeastOnce));
    run.is(Status::Lossy, "rejected");
    assert_eq!(
        run.trial.verdict.reasons.len(),
        1,
        "{:#?}",
        run.trial.verdict
    );
}

#[test]
fn a_message_that_is_never_acknowledged_makes_a_trial_lossy() {
    for (seed, share) in [0.0005, 0.001, 0.02, 0.3].into_iter().enumerate() {
        for reliability in ACKNOWLEDGED {
            let behaviour = Behaviour {
                unacknowledged: share,
                seed: seed as u64,
                ..Behaviour::default()
            };
            let run = run(behaviour, acknowledged(reliability));
            run.agrees();
            run.is(Status::Lossy, "never acknowledged");
            assert_eq!(rule(&run), Some(Rule::Unacknowledged));
            let t = &run.trial;
            assert_eq!(
                (t.shortfall.lost, t.shortfall.under_way, t.messages.refused),
                (0, 0, 0)
            );
            let missing = t
                .messages
                .acknowledgement_ns
                .expect("acknowledgements")
                .censored;
            assert_eq!(t.shortfall.unacknowledged, missing);
        }
    }
}

/// Acknowledgements that are slow, or come after a pause, are no missing ones; a system that answers to nothing has none.
#[test]
fn late_acknowledgements_are_awaited() {
    for (seed, delay_ms) in [1, 100, 900].into_iter().enumerate() {
        let behaviour = Behaviour {
            delay_median_ns: delay_ms * 1_000_000,
            seed: seed as u64,
            ..Behaviour::default()
        };
        for reliability in ACKNOWLEDGED {
            let run = run(behaviour.clone(), acknowledged(reliability));
            run.is(Status::Valid, "");
            assert_eq!(run.trial.shortfall.unacknowledged, 0);
        }
    }
    let behaviour = Behaviour {
        rejection: 0.3,
        unacknowledged: 0.3,
        ..Behaviour::default()
    };
    let run = run(behaviour, Settings::default());
    run.is(Status::Valid, "");
    assert_eq!(
        (
            run.trial.shortfall.unacknowledged,
            run.trial.messages.refused
        ),
        (0, 0)
    );
}
