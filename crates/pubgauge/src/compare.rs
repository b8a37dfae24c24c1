//! `pubgauge compare`: two runs, or two systems or settings of one.

use pubgauge_campaign::pairs::figures;
use pubgauge_command::exit::Ending;
use pubgauge_conclusions::compare::{self, Choice, Comparison, Difference, FigureChange, Pairing};
use pubgauge_quantities::stats::MeanInterval;
use pubgauge_quantities::text::wrap;
use pubgauge_report::compare::text;
use pubgauge_results::store;
use serde::Serialize;

use crate::args::CompareArgs;
use crate::ending;
use crate::gate;

/// A comparison as JSON output.
#[derive(Serialize)]
struct ComparisonJson<'a> {
    /// The worst verdict.
    verdict: Difference,
    /// Change up to which two figures count as the same, as a share.
    margin: f64,
    /// Probability that all intervals hold at once.
    confidence: f64,
    cells: Vec<CellJson<'a>>,
    not_compared: Vec<String>,
    remarks: &'a [String],
}

#[derive(Serialize)]
struct CellJson<'a> {
    cell: &'a str,
    figures: Vec<FigureJson<'a>>,
}

#[derive(Serialize)]
struct FigureJson<'a> {
    figure: &'a str,
    unit: &'a str,
    a: Option<f64>,
    b: Option<f64>,
    change: Option<FigureChange>,
    verdict: Difference,
    why: Option<&'a str>,
    paired: bool,
    repeats_to_tell: Option<u32>,
}

/// `pubgauge compare`: compares, and reports to a gate.
pub fn compare(args: &CompareArgs) -> Result<i32, Ending> {
    let margin = share(&args.margin)?;
    let figures = figures("--figure", &args.figure).map_err(ending)?;
    let systems = two("--systems", &args.systems)?;
    let settings = two("--settings", &args.settings)?;
    let a = store::load(&args.a).map_err(Ending::bad_input)?;
    let other = args.b.as_deref().map(store::load).transpose();
    let other = other.map_err(Ending::bad_input)?;
    let b = other.as_ref().unwrap_or(&a);
    gate::can_be_written(&args.gate)?;
    let choice = |side: usize| Choice {
        system: systems.as_ref().map(|names| names[side].clone()),
        settings: settings.as_ref().map(|names| names[side].clone()),
    };
    let (left, right) = (choice(0), choice(1));
    let workload = args.workload.as_deref();
    let pairing = compare::pair([&a, b], [&left, &right], workload).map_err(Ending::bad_input)?;
    let comparison = compare::compare(&pairing.pairs, &figures, margin);
    let shown = json(&comparison, &pairing);
    args.output
        .print_result(&shown, || describe(&comparison, &pairing));
    let checks = gate::of_comparison(&comparison, &pairing.not_compared);
    let name = format!("compare {}", b.study.name);
    gate::report(&args.gate, &name, None, &checks)?;
    Ok(gate::exit_code(&checks))
}

/// `5%` of `--margin` as a share.
pub fn share(text: &str) -> Result<f64, Ending> {
    let number = text.strip_suffix('%').map(|n| n.trim().parse::<f64>());
    match number {
        Some(Ok(percent)) if (0.0..1000.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err(Ending::bad_input(format!(
            "--margin {text}: expected a percentage, 0% or more\n  hint: for example --margin 5%"
        ))),
    }
}

/// The names for A and for B; one name stands for both.
fn two<'a>(flag: &str, names: &'a [String]) -> Result<Option<[&'a String; 2]>, Ending> {
    match names {
        [] => Ok(None),
        [both] => Ok(Some([both, both])),
        [a, b] => Ok(Some([a, b])),
        more => Err(Ending::bad_input(format!(
            "{flag} {}: at most two can be compared\n  hint: {flag} A,B, once for each two",
            more.join(",")
        ))),
    }
}

fn json<'a>(comparison: &'a Comparison, pairing: &'a Pairing<'_>) -> ComparisonJson<'a> {
    let mean = |estimate: Option<MeanInterval>| estimate.map(|e| e.mean);
    let cells = comparison.sections.iter().map(|section| CellJson {
        cell: &section.title,
        figures: (section.rows.iter())
            .map(|row| FigureJson {
                figure: &row.figure.name,
                unit: row.figure.known.unit.symbol(),
                a: mean(row.a),
                b: mean(row.b),
                change: row.change,
                verdict: row.verdict,
                why: row.why.as_deref(),
                paired: row.paired,
                repeats_to_tell: row.repeats_to_tell,
            })
            .collect(),
    });
    ComparisonJson {
        verdict: comparison.verdict(),
        margin: comparison.margin,
        confidence: pubgauge_quantities::stats::CONFIDENCE,
        cells: cells.collect(),
        not_compared: pairing
            .not_compared
            .iter()
            .map(ToString::to_string)
            .collect(),
        remarks: &pairing.remarks,
    }
}

fn describe(comparison: &Comparison, pairing: &Pairing<'_>) -> String {
    let mut out = text(comparison);
    for remark in &pairing.remarks {
        out.push_str(&wrap(&format!("note: {remark}"), 0));
    }
    if !pairing.not_compared.is_empty() {
        out.push_str("not compared\n");
        for what in &pairing.not_compared {
            out.push_str(&wrap(&what.to_string(), 2));
        }
    }
    out
}
