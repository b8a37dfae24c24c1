use std::path::Path;

use pubgauge_figures::model::{Machine, StudyInfo};
use pubgauge_fixtures::TrialBuilder;

use super::super::tests::sample::{QUIET, Scatter, run};
use super::*;

/// A run of two systems that began on a day of a month.
fn day(day: u32, results: Results) -> NamedRun {
    let study = StudyInfo {
        name: "nightly".into(),
        started: format!("2026-11-{day:02}T10:00:00Z"),
        ..StudyInfo::default()
    };
    let machine = Machine {
        cpu_model: "Model 1".into(),
        kernel: "6.8".into(),
        cores: 4,
        ..Machine::default()
    };
    let name = format!("results/{day}");
    NamedRun {
        name,
        results: Results {
            study,
            machine,
            ..results
        },
    }
}

/// Four runs of five repeats, in which system `b` takes `times` as long from the third on.
fn four(seed: u64, times: f64) -> Vec<NamedRun> {
    let of = |nth: u32| {
        let times = if nth < 3 { 1.0 } else { times };
        let b = Scatter { times, ..QUIET };
        day(nth, run(1_000 * seed + u64::from(nth), 5, QUIET, b))
    };
    (1..=4).map(of).collect()
}

/// The steps that are marked: row, figure, from, to.
fn marked(trend: &Trend) -> Vec<(&str, &str, u32, u32)> {
    let figures = trend
        .cells
        .iter()
        .flat_map(|cell| cell.figures.iter().map(move |figure| (cell, figure)));
    let steps = figures.flat_map(|(cell, figure)| figure.steps().map(move |s| (cell, figure, s)));
    steps
        .filter(|(_, _, step)| step.is_change())
        .map(|(cell, figure, step)| (&*cell.row, &*figure.figure, step.from, step.to))
        .collect()
}

fn of_figure<'a>(trend: &'a Trend, row: &str, name: &str) -> &'a FigureTrend {
    let cell = trend.cells.iter().find(|cell| cell.row == row).unwrap();
    let figure = cell.figures.iter().find(|figure| figure.figure == name);
    figure.unwrap()
}

#[test]
fn noise_is_seldom_marked() {
    const SEEDS: u64 = 400;
    let wrong = (1..=SEEDS).filter(|seed| !marked(&trend(four(*seed, 1.0), &[], 0.05)).is_empty());
    let wrong = wrong.count();
    println!("{wrong} of {SEEDS} trends of four runs without a change have a mark");
    // At most 5 of 100, and what 400 draws may have beyond that.
    assert!(wrong <= 30, "{wrong} of {SEEDS}");
}

#[test]
fn a_rise_in_the_third_run_is_marked_there_and_nowhere_else() {
    const SEEDS: u64 = 200;
    let (mut found, mut elsewhere) = (0, 0);
    for seed in 1..=SEEDS {
        let trend = trend(four(seed, 1.5), &[], 0.05);
        let marks = marked(&trend);
        found += u64::from(marks.contains(&("b", "latency.p99", 2, 3)));
        // Of the last run against the first the mark stands, too.
        elsewhere += u64::from(
            (marks.iter()).any(|(row, _, from, to)| *row == "a" || !((*from < 3) && (*to >= 3))),
        );
        for (row, figure, from, to) in marks {
            let steps = of_figure(&trend, row, figure).steps();
            let mut steps = steps.filter(|step| (step.from, step.to) == (from, to));
            let step = steps.next().unwrap();
            if row == "b" && from < 3 && to >= 3 {
                assert_eq!(step.verdict, Difference::Worse, "{figure} {step:?}");
            }
        }
    }
    println!("a rise by half: {found} of {SEEDS} marked, {elsewhere} with a mark elsewhere");
    assert!(found >= 190, "{found} of {SEEDS}");
    assert!(elsewhere <= 18, "{elsewhere} of {SEEDS}");
}

/// A change of the last run against the first, which no step shows.
#[test]
fn a_slow_drift_shows_in_the_whole() {
    let of = |nth: u32| {
        let b = Scatter {
            times: 1.06_f64.powi(nth as i32),
            ..QUIET
        };
        day(nth, run(u64::from(nth), 6, QUIET, b))
    };
    let trend = trend((1..=9).map(of).collect(), &[], 0.05);
    let whole = of_figure(&trend, "b", "latency.p50").whole.as_ref();
    let whole = whole.unwrap();
    assert_eq!((whole.from, whole.to), (1, 9));
    assert_eq!(whole.verdict, Difference::Worse, "{whole:?}");
    assert!(marked(&trend).iter().all(|(row, ..)| *row == "b"));
}

#[test]
fn two_repeats_tell_nothing() {
    let few = |nth: u32, repeats: u32, times: f64| {
        let b = Scatter { times, ..QUIET };
        day(nth, run(u64::from(nth), repeats, QUIET, b))
    };
    // Ten times as slow in the second run, which has two repeats.
    let trend = trend(
        vec![few(1, 5, 1.0), few(2, 2, 10.0), few(3, 5, 10.0)],
        &[],
        0.05,
    );
    let figure = of_figure(&trend, "b", "latency.p50");
    let [first, second, third] = &figure.points[..] else {
        panic!("{figure:?}");
    };
    assert_eq!(first.step, None);
    let step = second.step.as_ref().unwrap();
    assert_eq!(step.verdict, Difference::CannotTell);
    let why = step.why.as_deref().unwrap();
    assert!(
        why.contains("run 2") && why.contains("fewer than three"),
        "{why}"
    );
    assert!(second.value.is_some() && second.low.is_some());
    // The third is compared with the first, past the one that tells nothing.
    let step = third.step.as_ref().unwrap();
    assert_eq!((step.from, step.verdict), (1, Difference::Worse));
}

#[test]
fn another_machine_is_named_and_not_compared() {
    let mut runs = four(1, 1.0);
    runs[1].results.machine.cores = 2;
    runs[3].results.machine.kernel = "6.9".into();
    runs.reverse();
    let trend = trend(runs, &[], 0.05);
    let names: Vec<&str> = trend.runs.iter().map(|run| &*run.name).collect();
    assert_eq!(
        names,
        ["results/1", "results/2", "results/3", "results/4"],
        "the oldest first"
    );
    let differs = |run: usize| trend.runs[run].not_compared.join("; ");
    assert_eq!(
        differs(1),
        "the number of processors differs: 2, 4 in run 1"
    );
    assert_eq!(
        differs(2),
        "the number of processors differs: 4, 2 in run 2"
    );
    assert_eq!(differs(3), "");
    // Another kernel is told, and compared.
    assert_eq!(
        trend.runs[3].remarks,
        ["the kernel differs: 6.9, 6.8 in run 3"]
    );
    let figure = of_figure(&trend, "a", "latency.p50");
    let step = |run: usize| figure.points[run].step.as_ref().unwrap();
    let why = step(1).why.as_deref().unwrap();
    assert!(why.starts_with("not compared: the number of"), "{why}");
    assert_eq!((step(2).from, step(2).why.as_deref()), (1, None));
    assert_eq!(step(3).from, 3);
}

#[test]
fn a_run_that_is_overloaded_shows_no_latency() {
    let mut runs = four(1, 1.0);
    for trial in &mut runs[2].results.trials {
        trial.verdict.status = Status::Overloaded;
    }
    let trend = trend(runs, &[], 0.05);
    let figure = of_figure(&trend, "a", "latency.p99");
    assert_eq!(figure.points[2].value, None);
    let step = figure.points[2].step.as_ref().unwrap();
    let why = step.why.as_deref().unwrap();
    assert!(why.contains("overloaded"), "{why}");
    assert_eq!(trend.cells[0].runs[2].carries, Some(Carries::No));
    assert_eq!(trend.cells[0].runs[1].carries, Some(Carries::Yes));
}

#[test]
fn other_settings_and_workloads_are_not_compared() {
    let trial = |repeat: u32, payload: &str| {
        let trial = TrialBuilder::periodic(1_000.0, 10.0)
            .id(repeat)
            .repeat(repeat);
        let mut trial = trial.build();
        trial.workload.payload = payload.into();
        trial
    };
    let run = |nth: u32, payload: &str| {
        let trials = (1..=3).map(|repeat| trial(repeat, payload)).collect();
        let results = Results {
            trials,
            ..Results::default()
        };
        day(nth, results)
    };
    let trend = trend(vec![run(1, "64 B"), run(2, "1 KiB")], &[], 0.05);
    let differ = trend.runs[1].not_compared.join("; ");
    assert!(differ.starts_with("the workload differs"), "{differ}");
    assert!(marked(&trend).is_empty());
    assert_eq!(trend.intervals, 0);
}

/// To renew the file: `PUBGAUGE_UPDATE_SCHEMA=1 cargo test -p pubgauge-conclusions trend`.
#[test]
fn the_schema_is_the_committed_one_and_trends_obey_it() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/trend.schema.json");
    if std::env::var_os("PUBGAUGE_UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, schema()).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == schema(),
        "schema/trend.schema.json is out of date: run this test with PUBGAUGE_UPDATE_SCHEMA=1 and commit it"
    );
    let schema: serde_json::Value = serde_json::from_str(&committed).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let trend = serde_json::to_value(trend(four(1, 1.5), &[], 0.05)).unwrap();
    let errors: Vec<_> = validator.iter_errors(&trend).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}
