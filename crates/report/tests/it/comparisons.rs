//! Comparisons in the table of the terminal and on the page.

use crate::sample;

use pubgauge_figures::Results;
use pubgauge_figures::comparison::{
    ComparedFigure, ComparedSystem, Difference, Ended, PairComparison,
};
use pubgauge_report::{Logs, page, table};

fn figure(name: &str, change: Option<(f64, f64, f64)>, verdict: Difference) -> ComparedFigure {
    ComparedFigure {
        figure: name.into(),
        unit: "ns".into(),
        base: Some(1e6),
        other: Some(1e6),
        change: change.map(|c| c.0),
        low: change.map(|c| c.1),
        high: change.map(|c| c.2),
        relative: true,
        verdict,
        guard: None,
        why: change.is_none().then(|| "B: 1 of 7 repeats lossy".into()),
    }
}

fn compared(
    system: &str,
    change: &str,
    figures: Vec<ComparedFigure>,
    ended: Ended,
) -> PairComparison {
    let side = |settings: &str| ComparedSystem {
        system: system.into(),
        settings: settings.into(),
    };
    PairComparison {
        workload: "fleet".into(),
        base: side("base"),
        other: side(change),
        ablation: Some(change.into()),
        pairs: 12,
        not_valid: 1,
        precision: Some(0.03),
        margin: 0.05,
        ended,
        figures,
        ..PairComparison::default()
    }
}

fn run(comparisons: Vec<PairComparison>) -> Results {
    let (mut results, _) = sample::run(1);
    results.comparisons = comparisons;
    results
}

/// The part of the table that has comparisons.
fn section(results: &Results, width: usize) -> String {
    let table = table(results, width);
    let without = self::table(&run(Vec::new()), width);
    assert!(table.ends_with(&without), "the rest stays as it is");
    table[..table.len() - without.len()].to_owned()
}

#[test]
fn an_ablation_is_a_table_of_changes_and_systems() {
    let both = |latency, verdict| {
        let cpu = figure(
            "system-cpu-per-message",
            Some((-0.01, -0.02, 0.0)),
            Difference::Same,
        );
        vec![figure("latency.p50", latency, verdict), cpu]
    };
    let results = run(vec![
        compared(
            "mosquitto",
            "best effort",
            both(Some((-0.41, -0.43, -0.39)), Difference::Better),
            Ended::Precision,
        ),
        compared(
            "mosquitto",
            "no batching",
            both(Some((0.13, 0.09, 0.17)), Difference::Worse),
            Ended::Precision,
        ),
        compared(
            "nats",
            "best effort",
            both(None, Difference::CannotTell),
            Ended::System,
        ),
        compared(
            "a system with a long name",
            "best effort",
            both(Some((0.02, -0.01, 0.06)), Difference::CannotTell),
            Ended::Budget,
        ),
    ]);
    insta::assert_snapshot!(section(&results, 80));
    for width in [72, 80, 120] {
        let longest = section(&results, width)
            .lines()
            .map(|l| l.chars().count())
            .max();
        assert!(longest <= Some(width), "{width}: {longest:?}");
    }
    let page = page(&results, &Logs::new());
    let (_, after) = page
        .split_once("<section id=\"compared\">")
        .expect("a section");
    let (part, _) = after.split_once("</section>").expect("its end");
    for words in [
        "latency.p50, one change at a time against base",
        "<td data-name=\"mosquitto\">-41.0 % <span class=\"badge valid\" title=\"\">better</span><br>-43.0 to -39.0, 12 pairs</td>",
        "1 of 7 repeats lossy",
        "given up: the system was at its end",
    ] {
        assert!(part.contains(words), "{words} is not in {part}");
    }
    assert!(page.contains("<a href=\"#compared\">Compared</a>"));
}

#[test]
fn two_systems_have_their_figures_side_by_side() {
    let mut one = compared(
        "nats",
        "default",
        vec![
            figure("latency.p50", Some((0.13, 0.09, 0.17)), Difference::Worse),
            figure(
                "system-cpu-per-message",
                Some((-0.2, -0.22, -0.18)),
                Difference::Better,
            ),
        ],
        Ended::Precision,
    );
    one.ablation = None;
    one.base = ComparedSystem {
        system: "mosquitto".into(),
        settings: "default".into(),
    };
    insta::assert_snapshot!(section(&run(vec![one]), 80));
}
