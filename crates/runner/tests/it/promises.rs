//! What is promised of each delivery against what was planted in the simulated
//! system.

use crate::planted;

use planted::*;
use pubgauge_driver::Settings;
use pubgauge_results::model::{Rule, Status, Trial};
use pubgauge_simulator::Behaviour;
use pubgauge_workload::Arrivals;

/// What a trial over a system with this behaviour says.
fn trial_with(behaviour: Behaviour) -> Trial {
    let workload = workload(2, 2, Arrivals::Periodic { per_s: 100.0 });
    simulate(workload, behaviour, Settings::default()).trial
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
            assert_eq!(trial.odd.compared, trial.delivered);
            assert_eq!(trial.odd.compared_whole, trial.delivered);
        }
    }
}
