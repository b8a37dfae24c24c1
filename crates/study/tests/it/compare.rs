//! Studies that compare their cells: rounds, ablations, and what is wrong with them.

use std::path::Path;

use pubgauge_driver::{Batching, Reliability, Unsupported};
use pubgauge_quantities::Percent;
use pubgauge_study::{KnownSystems, Plan, PlanOptions, Study};
use pubgauge_workload::SECOND;

const WORKLOAD: &str =
    "[[workload]]\nname = \"w\"\n[[workload.flow]]\nrate = \"10/s\"\npayload = \"64B\"\n";

fn planned(text: &str, repeats: Option<u32>) -> Result<Plan, String> {
    let text = format!("name = \"s\"\n{text}\n{WORKLOAD}");
    let study = Study::parse("study.toml", &text, Path::new("")).expect("TOML");
    let options = PlanOptions {
        known: KnownSystems::default(),
        on: vec!["a".into(), "b".into()],
        repeats,
    };
    study.plan(&options).map_err(|error| error.to_string())
}

fn plan(text: &str) -> Plan {
    planned(text, None).expect("a sound study")
}

#[test]
fn an_ablation_is_the_base_and_the_base_with_each_change() {
    let mut plan = plan(
        "repeats = 2\n[settings]\nname = \"base\"\nreliability = \"at-least-once\"\nin-flight = 7\n\
         native.mqtt.version = \"5\"\n\
         [[ablation]]\nname = \"best effort\"\nreliability = \"best-effort\"\n\
         [[ablation]]\nname = \"old\"\nbatching = \"off\"\nnative.mqtt.version = \"3.1.1\"",
    );
    assert_eq!(plan.trials.len(), 2 * 3 * 2);
    assert_eq!(
        plan.compare.as_ref().unwrap().ablation.as_deref(),
        Some("base")
    );
    assert!(plan.rounds().is_none(), "as many rounds as repeats");
    let of = |name: &str| {
        let found = plan.trials.iter().find(|t| t.settings_name == name);
        found.unwrap().settings.clone()
    };
    let (base, effort, old) = (of("base"), of("best effort"), of("old"));
    assert_eq!(effort.reliability, Some(Reliability::BestEffort));
    assert_eq!((effort.in_flight, &effort.native), (Some(7), &base.native));
    assert_eq!(
        (old.batching, old.reliability),
        (Some(Batching::Off), base.reliability)
    );
    assert_eq!(old.native["mqtt"]["version"], "3.1.1");
    // All first repeats before all second ones; the list's order is kept besides.
    assert!(plan.trials.is_sorted_by_key(|t| t.repeat));
    let mut first: Vec<_> = plan.trials.iter().filter(|t| t.repeat == 1).collect();
    first.sort_by_key(|t| t.listed);
    let names: Vec<_> = first
        .iter()
        .map(|t| (&t.settings_name[..], &t.system[..]))
        .collect();
    assert_eq!(
        names[..3],
        [("base", "a"), ("base", "b"), ("best effort", "a")]
    );
    // Settings that a system cannot have are left out, with the reason.
    plan.split_unsupported(|system, settings| match (system, settings.batching) {
        ("b", Some(_)) => Err(vec![Unsupported {
            setting: "batching".into(),
            value: "off".into(),
            reason: "it cannot".into(),
        }]),
        _ => Ok(()),
    });
    assert_eq!((plan.trials.len(), plan.unsupported.len()), (10, 1));
}

#[test]
fn with_a_precision_a_plan_has_each_cell_once() {
    let plan = plan("repeats = 9\n[compare]\nprecision = \"2.5%\"\npairs = 20\nbudget = \"10min\"");
    let rounds = plan.rounds().expect("rounds");
    assert_eq!(rounds.precision, Some(0.025));
    assert_eq!(
        (rounds.pairs, rounds.budget, rounds.margin),
        (20, 600 * SECOND, 0.05)
    );
    assert_eq!(plan.trials.len(), 2);
    assert!(
        plan.notes
            .iter()
            .any(|note| note.contains("repeats = 9 counts for nothing"))
    );
    // At most: the budget and the round that had begun, or all rounds.
    let round: u64 = plan.trials.iter().map(|t| t.duration_estimate()).sum();
    assert_eq!(
        plan.duration_estimate(),
        (600 * SECOND + round).min(20 * round)
    );
    // The stored study is read as the same.
    let again = Study::parse("again", &plan.resolved, Path::new("")).expect("TOML");
    assert_eq!(
        again.file().unwrap().compare.precision,
        Some(Percent(0.025))
    );
}

#[test]
fn what_cannot_be_compared_is_said() {
    let change = "[[ablation]]\nname = \"x\"\nbatching = \"off\"\n";
    let cases = [
        (
            "[compare]\nprecision = \"3\"".to_owned(),
            "is no percentage",
        ),
        (
            "[compare]\nprecision = \"70%\"".to_owned(),
            "a percentage from 0.1% to 50%",
        ),
        (
            "[compare]\nprecision = \"3%\"\npairs = 2".to_owned(),
            "`pairs` is a number from 6 to 1000",
        ),
        (
            "[compare]\npairs = 20".to_owned(),
            "`pairs` bounds the rounds of a study with a precision",
        ),
        (
            "[[ablation]]\nbatching = \"off\"".to_owned(),
            "a change needs a name",
        ),
        (
            "[[ablation]]\nname = \"x\"".to_owned(),
            "this changes nothing",
        ),
        (change.repeat(2), "`x` is there twice"),
        (
            format!("[[settings]]\nname = \"p\"\n[[settings]]\nname = \"q\"\n{change}"),
            "an ablation has one base",
        ),
        (
            "[grid]\n\"compare.precision\" = [\"1%\", \"2%\"]".to_owned(),
            "cannot vary within a study",
        ),
    ];
    for (text, message) in cases {
        let error = planned(&text, None).expect_err(&text);
        assert!(error.contains(message), "{text}: {error}");
    }
    let error = planned("[compare]\nprecision = \"3%\"", Some(4)).expect_err("both");
    assert!(error.contains("--repeats"), "{error}");
    let searching = format!("name = \"s\"\n{change}{WORKLOAD}").replace("10/s", "find");
    let study = Study::parse("s", &searching, Path::new("")).expect("TOML");
    let error = study
        .plan(&PlanOptions::default())
        .expect_err("both")
        .to_string();
    assert!(error.contains("compares nothing else"), "{error}");
}
