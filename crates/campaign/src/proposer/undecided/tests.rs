//! Repeats for undecided claims, over the simulated system in simulated time: what it does is planted.

use std::sync::OnceLock;

use pubgauge_conclusions::claims::judge;
use pubgauge_driver::Settings;
use pubgauge_figures::StudyInfo;
use pubgauge_figures::claim::ClaimVerdict::{self, CannotTell, DoesNotHold, Holds};
use pubgauge_figures::model::{Reason, Rule, Status};
use pubgauge_runner::simulated::simulate;
use pubgauge_simulator::Behaviour;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Distribution, Normal};

use super::*;
use crate::proposer::tests::prepared;
use crate::{ClientOptions, Prepared};

/// Three systems: `c` is far slower, `a` and `b` are near each other.
const STUDY: &str = r#"
name = "near"
systems = ["a", "b", "c"]
repeats = 4
[phases]
warm-up = "50ms"
measure = "400ms"
drain-within = "2s"
[[workload]]
name = "w"
flow = [{ payload = "64B", rate = "200/s" }]

[[claim]]
id = "far"
sentence = "c is slower than a."
source = "planted"
rule = { figure = "latency.p50", sides = ["c", "a"], ratio = "> 1" }

[[claim]]
id = "near"
sentence = "b is slower than a."
source = "planted"
rule = { figure = "latency.p50", sides = ["b", "a"], ratio = "> 1" }

[[claim]]
id = "nowhere"
sentence = "b loses less than d."
source = "planted"
rule = { figure = "latency.p50", sides = ["b", "d"], ratio = "> 1" }
"#;

const SEEDS: u64 = 100;
/// What a trial takes.
const SECONDS: f64 = 2.0;

fn proposer(prepared: &Prepared, budget_s: Option<f64>) -> Proposer<'_> {
    match Proposer::new(prepared, &ClientOptions::default(), None) {
        Ok(proposer) => proposer.until_decided(budget_s),
        Err(error) => panic!("{error}"),
    }
}

fn next(proposer: &Proposer<'_>, results: &Results) -> Option<Proposal> {
    let planned = proposer.next(&results.trials);
    let planned = planned.unwrap_or_else(|error| panic!("{error}"));
    planned.or_else(|| proposer.propose_repeat(results))
}

/// A trial of the simulated system: all cells have the same workload.
static SIMULATED: OnceLock<Trial> = OnceLock::new();

/// A trial whose latency is that of its system, a tenth more or less.
fn measured(proposal: &Proposal, slower: f64, draws: &mut StdRng) -> Trial {
    let trial = &proposal.trial;
    let us = match trial.system.as_str() {
        "a" => 200.0,
        "b" => 200.0 * slower,
        _ => 900.0,
    };
    let noise = Normal::new(0.0f64, 0.1).expect("a deviation").sample(draws);
    let like = SIMULATED.get_or_init(|| {
        let run = simulate(
            (*trial.workload).clone(),
            Behaviour::default(),
            Settings::default(),
        );
        run.unwrap_or_else(|error| panic!("{error}")).trial
    });
    assert_eq!(like.verdict.status, Status::Valid, "{:?}", like.verdict);
    let mut done = like.clone();
    done.messages.latency_ns.p50 = Some((1e3 * us * noise.exp()) as u64);
    done.id = trial.order;
    done.cell.clone_from(&trial.cell);
    done.system.name.clone_from(&trial.system);
    done.settings_name.clone_from(&trial.settings_name);
    done.workload.name.clone_from(&trial.workload.name);
    done.repeat = trial.repeat;
    done.round = proposal.round;
    done.took_s = SECONDS;
    done
}

fn carried_out(prepared: &Prepared, slower: f64, budget_s: Option<f64>, seed: u64) -> Results {
    carried_out_while(prepared, slower, budget_s, seed, &|_| {})
}

/// A run to its end, in which `then` happens to each trial; one that is resumed now and then proposes the same.
fn carried_out_while(
    prepared: &Prepared,
    slower: f64,
    budget_s: Option<f64>,
    seed: u64,
    then: &dyn Fn(&mut Trial),
) -> Results {
    let mut draws = StdRng::seed_from_u64(seed);
    let on = proposer(prepared, budget_s);
    let mut results = Results {
        study: StudyInfo {
            planned_trials: prepared.plan.trials.len() as u32,
            until_decided_s: budget_s,
            ..StudyInfo::default()
        },
        ..Results::default()
    };
    while let Some(proposal) = next(&on, &results) {
        if results.trials.len().is_multiple_of(5) {
            let resumed = next(&proposer(prepared, budget_s), &results);
            let said =
                |p: &Proposal| (p.trial.order, p.trial.cell.clone(), p.trial.repeat, p.round);
            assert_eq!(resumed.as_ref().map(said), Some(said(&proposal)));
        }
        let mut trial = measured(&proposal, slower, &mut draws);
        then(&mut trial);
        results.trials.push(trial);
        assert!(results.trials.len() < 2000, "there is an end");
    }
    results
}

fn outcomes(prepared: &Prepared, results: &Results) -> [ClaimVerdict; 3] {
    let found = judge(results, &prepared.plan.claims);
    [found[0].outcome, found[1].outcome, found[2].outcome]
}

#[test]
fn a_round_that_was_cut_off_is_not_looked_at() {
    let prepared = prepared(STUDY);
    let on = proposer(&prepared, Some(600.0));
    let mut draws = StdRng::seed_from_u64(1);
    let mut results = Results::default();
    // `a` and `b` are alike: `near` is undecided.
    let mut planned = 0;
    while planned == 0 {
        let proposal = next(&on, &results).expect("a round");
        if proposal.round == 1 {
            planned = results.trials.len();
        }
        results.trials.push(measured(&proposal, 1.0, &mut draws));
    }
    assert_eq!(on.whole_rounds(&results).trials.len(), planned);
    // The whole round is.
    while let Some(proposal) = next(&on, &results).filter(|proposal| proposal.round < 2) {
        results.trials.push(measured(&proposal, 1.0, &mut draws));
    }
    assert!(results.trials.len() > planned + 1);
    assert_eq!(on.whole_rounds(&results).trials.len(), results.trials.len());
}

#[test]
fn only_what_is_undecided_is_repeated() {
    let mut prepared = prepared(STUDY);
    let (mut told, mut repeated) = (0, 0);
    let (mut turns, mut first) = (0, 0);
    for seed in 0..SEEDS {
        // Orders are drawn by the plan's seed and the number of the turn.
        prepared.plan.seed = seed << 32;
        let results = carried_out(&prepared, 1.12, Some(600.0), seed);
        let [far, near, nowhere] = outcomes(&prepared, &results);
        assert_eq!((far, nowhere), (Holds, CannotTell));
        told += u32::from(near == Holds);
        let extra: Vec<&Trial> = results.trials.iter().filter(|t| t.round > 0).collect();
        repeated += u32::from(!extra.is_empty());
        assert!(
            extra.iter().all(|trial| trial.system.name != "c"),
            "seed {seed}"
        );
        // In turns: a and b take theirs alternately, and have the same number at the end.
        for pair in extra.chunks(2) {
            let [one, other] = pair else {
                panic!("an odd number of repeats: seed {seed}")
            };
            assert_eq!(one.repeat, other.repeat);
            assert_ne!(one.system.name, other.system.name);
        }
        turns += extra.len() / 2;
        first += extra
            .chunks(2)
            .filter(|pair| pair[0].system.name == "a")
            .count();
    }
    assert!(told >= 97, "{told} of {SEEDS}");
    // Each of the two is first in about half of the turns.
    assert!(
        3 * first > turns && 3 * first < 2 * turns,
        "{first} of {turns}"
    );
    assert!(
        repeated >= 50,
        "four repeats told {repeated} of {SEEDS} nothing"
    );
}

/// All repeats of the plan: none of them counts.
#[test]
fn what_a_hypervisor_slowed_is_repeated() {
    let prepared = prepared(STUDY);
    let slow = |trial: &mut Trial| {
        if trial.system.name == "c" && trial.round == 0 {
            trial.verdict.status = Status::ClientBound;
            trial.verdict.reasons = vec![Reason::new(Rule::TimeStolen, "a hypervisor took it")];
        }
    };
    for (budget_s, outcome) in [(None, CannotTell), (Some(600.0), Holds)] {
        let results = carried_out_while(&prepared, 1.0, budget_s, 1, &slow);
        let [far, ..] = outcomes(&prepared, &results);
        assert_eq!(far, outcome);
    }
}

#[test]
fn repeating_finds_no_difference_where_there_is_none() {
    let prepared = prepared(STUDY);
    let told = (0..SEEDS).filter(|seed| {
        let results = carried_out(&prepared, 1.0, Some(300.0), *seed);
        [Holds, DoesNotHold].contains(&outcomes(&prepared, &results)[1])
    });
    let told = told.count();
    assert!(told <= 8, "{told} of {SEEDS}");
}

#[test]
fn the_budget_is_kept_and_used() {
    let prepared = prepared(STUDY);
    let mut spent_all = 0;
    for seed in 0..20 {
        let results = carried_out(&prepared, 1.0, Some(50.0), seed);
        let spent = spent_s(&results.trials, u32::MAX);
        assert!(spent <= 50.0, "{spent} s");
        spent_all += u32::from(spent >= 46.0);
    }
    assert!(spent_all >= 15, "{spent_all} of 20");
    let none = carried_out(&prepared, 1.05, None, 1);
    assert_eq!(none.trials.len(), prepared.plan.trials.len());
}

#[test]
fn a_forecast_adds_up_what_claims_share() {
    let prepared = prepared(STUDY);
    let results = carried_out(&prepared, 1.05, None, 3);
    let on = proposer(&prepared, Some(600.0));
    let forecast = on.forecast(&results);
    let open = open(&results, &prepared.plan.claims);
    let near = open[1].as_ref().expect("undecided after four repeats");
    let lacking = f64::from(2 * (near.repeats - prepared.plan.repeats));
    assert_eq!(forecast.seconds, [lacking * SECONDS]);
    let of = |seconds: &[f64], beyond| RepeatsForecast {
        seconds: seconds.to_vec(),
        beyond,
    };
    assert_eq!(
        of(&[70.0, 500.0, 2400.0], 1).sentence(),
        "more repeats would decide 3 claims: 1 within about 2 min, 2 within about 9 min, all within about 40 min; 1 \
         claim would take more than 1000 repeats"
    );
    assert_eq!(
        of(&[5.0], 0).sentence(),
        "more repeats would decide 1 claim: 1 within about 1 min"
    );
    assert_eq!(of(&[], 0).sentence(), "no claim waits for repeats");
}
