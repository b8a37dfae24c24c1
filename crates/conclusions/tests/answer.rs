//! The answer of a run as data: what is decided, by what figure, and what would tell more.

use std::path::Path;

use pubgauge_conclusions::answer::{AnsweredContest, AnsweredWorkload, RunAnswer, schema};
use pubgauge_conclusions::wins::Outcome;
use pubgauge_conclusions::{Carries, summary::Bound};
use pubgauge_figures::search::{Axis, LimitedBy, NoteOf, Search, SearchNote};
use pubgauge_figures::{Results, Rule, Status, StudyInfo, Trial};
use pubgauge_fixtures::TrialBuilder;
use serde_json::{Value, json};

const MS: u64 = 1_000_000;

fn paced(system: &str, repeat: u32, p99: u64) -> TrialBuilder {
    TrialBuilder::periodic(1_000.0, 2.0)
        .system(system)
        .workload("fleet")
        .repeat(repeat)
        .times(p99 / 2, p99)
}

fn flat_out(system: &str, workload: &str, repeat: u32, per_s: f64) -> Trial {
    let trial = TrialBuilder::flat_out(per_s, 2.0).system(system);
    trial.workload(workload).repeat(repeat).build()
}

/// Three systems under a load: one carries it, one is too slow, and other programs spoilt the third. Two systems flat out,
/// once far apart and once not.
fn results() -> Results {
    let mut trials = Vec::new();
    for repeat in 1..=2 {
        trials.push(paced("fast", repeat, MS).build());
        trials.push(paced("slow", repeat, 200 * MS).build());
        let spoilt = paced("spoilt", repeat, 300 * MS).status(Status::ClientBound);
        let spoilt = spoilt.reason(Rule::OthersBusy, "other programs kept 1.9 of 2 busy");
        trials.push(spoilt.build());
    }
    let rates = [
        ("apart", [99e3, 100e3, 101e3], [49e3, 50e3, 51e3]),
        ("close", [95e3, 100e3, 105e3], [93e3, 98e3, 103e3]),
    ];
    for (workload, first, second) in rates {
        for repeat in 1..=3 {
            let at = repeat as usize - 1;
            trials.push(flat_out("first", workload, repeat, first[at]));
            trials.push(flat_out("second", workload, repeat, second[at]));
        }
    }
    let numbered = trials.into_iter().zip(0..);
    let numbered = numbered.map(|(trial, id)| Trial { id, ..trial });
    Results {
        study: StudyInfo {
            name: "made up".into(),
            ..StudyInfo::default()
        },
        trials: numbered.collect(),
        searches: vec![Search {
            system: "fast".into(),
            workload: "fleet".into(),
            axis: Axis::Rate,
            low: Some(40e3),
            confirmed: Some(40e3),
            bound: LimitedBy::Client,
            notes: vec![
                SearchNote::new(NoteOf::Client, "the client"),
                SearchNote::new(NoteOf::CostVaried, "not a cause"),
            ],
            ..Search::default()
        }],
        ..Results::default()
    }
}

fn workload<'a>(answer: &'a RunAnswer, name: &str) -> &'a AnsweredWorkload {
    let mut workloads = answer.workloads.iter();
    workloads.find(|of| of.workload == name).unwrap()
}

fn contest<'a>(answer: &'a RunAnswer, of: &str, figure: &str) -> &'a AnsweredContest {
    let mut contests = workload(answer, of).contests.iter();
    contests.find(|of| of.figure == figure).unwrap()
}

#[test]
fn a_cell_says_by_what_figure_of_what_limit_it_is_decided() {
    let answer = RunAnswer::new(&results());
    let fleet = workload(&answer, "fleet");
    assert!(fleet.by_default);
    let demand = &fleet.demands[0];
    assert_eq!(
        (demand.figure.as_str(), demand.limit, demand.unit),
        ("latency_ns.p99", 100e6, "ns")
    );
    let by_system = |system: &str| {
        let mut cells = fleet.cells.iter();
        cells.find(|cell| cell.system == system).unwrap()
    };
    let fast = by_system("fast");
    let decided = fast.decided_by.as_ref().unwrap();
    assert_eq!(fast.carries, Some(Carries::Yes));
    assert_eq!((decided.at_least, decided.at_most), (Some(1e6), Some(1e6)));
    assert_eq!(decided.times_better, Some(100.0));
    let slow = by_system("slow");
    assert_eq!(slow.carries, Some(Carries::No));
    let decided = slow.decided_by.as_ref().unwrap();
    assert_eq!((decided.at_most, decided.times_better), (Some(200e6), None));
    assert_eq!((slow.cause, slow.spoilt_by_others), (None, false));
    let spoilt = by_system("spoilt");
    assert_eq!(spoilt.carries, Some(Carries::CannotTell));
    assert_eq!((spoilt.repeats, spoilt.valid), (2, 0));
    assert!(spoilt.spoilt_by_others);
    assert_eq!(spoilt.cause, Some(Rule::OthersBusy));
}

#[test]
fn one_cause_stands_once_and_says_what_would_tell() {
    let answer = RunAnswer::new(&results());
    assert_eq!(answer.trials.all, 18);
    assert_eq!(
        (answer.trials.valid, answer.trials.spoilt_by_others),
        (16, 2)
    );
    let [cause] = &answer.causes[..] else {
        panic!("{:#?}", answer.causes)
    };
    assert_eq!((cause.rule, cause.count), (Rule::OthersBusy, 1));
    assert_eq!(cause.cells.len(), 1);
    assert!(cause.text.contains("1.9 of 2") && !cause.advice.is_empty());
    assert!(answer.would_tell.quiet_machine && answer.would_tell.more_repeats);

    let mut quiet = results();
    let is_kept = |trial: &Trial| trial.system.name != "spoilt" && trial.workload.name != "close";
    quiet.trials.retain(is_kept);
    let answer = RunAnswer::new(&quiet);
    assert!(answer.causes.is_empty());
    assert!(!answer.would_tell.quiet_machine && !answer.would_tell.more_repeats);
}

#[test]
fn contests_have_the_factor_or_how_many_repeats_would_tell() {
    let answer = RunAnswer::new(&results());
    let apart = contest(&answer, "apart", "delivered-rate");
    assert_eq!(apart.outcome, Outcome::Decided);
    assert_eq!(
        (apart.best[0].row.as_str(), apart.best[0].bound),
        ("first", Bound::Exact)
    );
    assert_eq!(apart.next.as_ref().unwrap().row, "second");
    let factor = apart.factor.unwrap();
    let times = factor.times.unwrap();
    assert!((times - 2.0).abs() < 0.01, "{factor:?}");
    assert!(factor.low < times && times < factor.high.unwrap());
    assert_eq!(apart.repeats_to_tell, None);

    let close = contest(&answer, "close", "delivered-rate");
    assert_eq!((close.outcome, close.best.len()), (Outcome::Open, 2));
    assert!(close.factor.is_none() && close.next.is_none());
    // Two per cent apart, five per cent of spread: some tens of repeats.
    let repeats = close.repeats_to_tell.unwrap();
    assert!((10..=200).contains(&repeats), "{repeats}");

    // Of single repeats nothing says how far others would differ.
    let mut once = results();
    once.trials.retain(|trial| trial.repeat == 1);
    let answer = RunAnswer::new(&once);
    let close = contest(&answer, "close", "delivered-rate");
    assert_eq!(
        (close.outcome, close.repeats_to_tell),
        (Outcome::Open, None)
    );
    assert_eq!(answer.would_tell.repeats, None);
    assert!(answer.would_tell.more_repeats);
}

#[test]
fn a_limit_says_why_it_is_not_known_better() {
    let answer = RunAnswer::new(&results());
    let [limit] = &answer.limits[..] else {
        panic!("{:#?}", answer.limits)
    };
    assert_eq!((limit.low, limit.high), (Some(40e3), None));
    assert_eq!((limit.unit, limit.bound), ("1/s", LimitedBy::Client));
    assert_eq!(limit.because, [NoteOf::Client]);
}

/// To renew the file: `PUBGAUGE_UPDATE_SCHEMA=1 cargo test -p pubgauge-conclusions --test answer`.
#[test]
fn the_schema_is_the_committed_one_and_answers_obey_it() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/answer.schema.json");
    if std::env::var_os("PUBGAUGE_UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, schema()).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == schema(),
        "schema/answer.schema.json is out of date: run this test with PUBGAUGE_UPDATE_SCHEMA=1 and commit it"
    );
    let schema: Value = serde_json::from_str(&committed).unwrap();
    assert_eq!(schema["$id"], "urn:pubgauge:answer:1");
    let validator = jsonschema::validator_for(&schema).unwrap();
    let answer = serde_json::to_value(RunAnswer::new(&results())).unwrap();
    let errors: Vec<_> = validator.iter_errors(&answer).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    for (place, wrong) in [
        ("/workloads/0/cells/0/carries", json!("perhaps")),
        ("/workloads/0/contests/0/outcome", json!("won")),
        ("/limits/0/low", json!("much")),
        ("/would_tell", json!({})),
    ] {
        let mut broken = answer.clone();
        *broken.pointer_mut(place).unwrap() = wrong;
        assert!(!validator.is_valid(&broken), "{place}");
    }
}
