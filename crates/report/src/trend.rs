//! Several runs in the order of time: what changed beyond noise, and what cannot be told, for terminal and page alike.

use std::fmt::Write as _;

use pubgauge_conclusions::Carries;
use pubgauge_conclusions::compare::trend::{CellTrend, FigureTrend, Trend, TrendRun, TrendStep};
use pubgauge_conclusions::compare::{Difference, Unit};
use pubgauge_figures::figure::Figure;
use pubgauge_quantities::lists::{grouped, names, unique};
use pubgauge_quantities::shown::{self, so_many};

use crate::compare::format_change;
use crate::table::MINIMUM_WIDTH;
use crate::terminal::{plain, wrapped};

/// Reasons that the terminal names why something cannot be told.
const REASONS: usize = 4;

/// A step of one figure of one cell.
#[derive(Clone, Copy)]
pub(crate) struct Step<'a> {
    pub(crate) cell: &'a CellTrend,
    pub(crate) figure: &'a FigureTrend,
    pub(crate) step: &'a TrendStep,
}

impl Step<'_> {
    /// The change and how large it is: `mosquitto, fleet: latency.p99 0.50 ms -> 0.75 ms in run 3 (+50.0 %, +31.0 to +71.0;
    /// against run 2)`.
    pub(crate) fn describe(&self) -> String {
        let TrendStep { from, to, .. } = self.step;
        let unit = unit(self.figure);
        let value = |run: u32| {
            let mut points = self.figure.points.iter();
            let value = points.find(|point| point.run == run)?.value?;
            Some(unit.format(value))
        };
        let [before, now] = [*from, *to].map(|run| value(run).unwrap_or_default());
        let change = self.step.change.map(format_change).unwrap_or_default();
        let change = [change.0, change.1].into_iter();
        let change: Vec<String> = change.filter(|words| !words.is_empty()).collect();
        format!(
            "{}: {} {before} -> {now} in run {to} ({}; against run {from})",
            name(self.cell),
            self.figure.figure,
            change.join(", "),
        )
    }
}

/// The name of a cell among all: row, workload, point of the grid.
pub(crate) fn name(cell: &CellTrend) -> String {
    let parts = [&cell.row, &cell.workload, &cell.at].into_iter();
    names(parts.map(String::as_str).filter(|part| !part.is_empty()))
}

/// The unit of a figure.
pub(crate) fn unit(figure: &FigureTrend) -> Unit {
    Figure::in_window(&figure.figure).map_or(Unit::Count, |(known, _)| known.unit)
}

/// All steps from run to run.
fn steps(trend: &Trend) -> impl Iterator<Item = Step<'_>> {
    let figures = trend
        .cells
        .iter()
        .flat_map(|cell| cell.figures.iter().map(move |figure| (cell, figure)));
    figures.flat_map(|(cell, figure)| {
        let steps = figure.points.iter().filter_map(|point| point.step.as_ref());
        steps.map(move |step| Step { cell, figure, step })
    })
}

/// The steps that are changes, worse ones first; of a figure without any the change from its first run to its last.
pub(crate) fn changes(trend: &Trend) -> Vec<Step<'_>> {
    let figures = trend
        .cells
        .iter()
        .flat_map(|cell| cell.figures.iter().map(move |figure| (cell, figure)));
    let mut all: Vec<Step<'_>> = figures
        .flat_map(|(cell, figure)| {
            let marked = figure.steps().filter(|step| step.is_change());
            let whole = figure.whole.as_ref();
            let each: Vec<&TrendStep> = marked.collect();
            let single = |step: &&TrendStep| each.len() == 1 || Some(*step) != whole;
            let kept: Vec<&TrendStep> = each.iter().copied().filter(single).collect();
            kept.into_iter()
                .map(move |step| Step { cell, figure, step })
                .collect::<Vec<_>>()
        })
        .collect();
    all.sort_by_key(|one| (std::cmp::Reverse(one.step.verdict), one.step.to));
    all
}

/// Cells whose load is carried in one run and not in another, in sentences.
pub(crate) fn changed_answers(trend: &Trend) -> Vec<String> {
    let each = trend.cells.iter().flat_map(|cell| {
        let told = cell.runs.iter().filter_map(|run| {
            let carries = run.carries?;
            (carries != Carries::CannotTell).then_some((run.run, carries))
        });
        let told: Vec<(u32, Carries)> = told.collect();
        let pairs = told.windows(2).filter(|pair| pair[0].1 != pair[1].1);
        let words = pairs.map(|pair| {
            let [(before, earlier), (run, now)] = [pair[0], pair[1]];
            format!(
                "{}: carries its load: {} in run {run}, {} in run {before}",
                name(cell),
                now.as_str(),
                earlier.as_str()
            )
        });
        words.collect::<Vec<_>>()
    });
    each.collect()
}

/// How many steps show no change, in a sentence; `None` without any.
pub(crate) fn quiet(trend: &Trend) -> Option<String> {
    let told = steps(trend).filter(|one| one.step.why.is_none());
    let (same, noisy): (Vec<Step<'_>>, Vec<Step<'_>>) = told
        .filter(|one| !one.step.is_change())
        .partition(|one| one.step.verdict == Difference::Same);
    let repeats = noisy.iter().filter_map(|one| one.step.repeats_to_tell);
    let repeats = repeats.max();
    let (same, noisy) = (same.len(), noisy.len());
    let parts = [
        (same > 0).then(|| {
            let margin = shown::percent(trend.margin, 9);
            format!("{same} the same within {margin}")
        }),
        (noisy > 0).then(|| {
            let told = repeats.map_or(String::new(), |most| {
                format!(" (about {most} repeats of each run would tell all)")
            });
            format!("{noisy} whose noise hides whether anything changed{told}")
        }),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("no change beyond noise: {}", parts.join(", ")))
}

/// Why steps cannot be told, each reason once with the number of its steps.
pub(crate) fn untold(trend: &Trend) -> Vec<String> {
    let open = steps(trend).filter(|one| one.step.verdict == Difference::CannotTell);
    let whys = open.filter_map(|one| Some((one.step.why.as_deref()?, one)));
    let mut groups = grouped(whys);
    groups.sort_by_key(|(_, steps)| std::cmp::Reverse(steps.len()));
    let words = groups.into_iter().map(|(why, steps)| {
        let cells = unique(steps.iter().map(|one| name(one.cell)));
        let of = match &cells[..] {
            [one] => one.clone(),
            [one, others @ ..] => format!("{one} and {} more", others.len()),
            [] => String::new(),
        };
        let figures = so_many(steps.len() as u64, "figure");
        format!("{why} ({figures}: {of})")
    });
    words.collect()
}

/// The meaning of a mark, in a sentence.
pub(crate) fn meaning(trend: &Trend) -> String {
    format!(
        "A change is marked where its interval leaves out \"no change\" and does not lie within {}; {} hold together at 95 %. \
         Noise is what repeats of one run differ by: what a machine does from one day to the next is not in it, and is marked.",
        shown::percent(trend.margin, 9),
        so_many(trend.intervals.into(), "interval"),
    )
}

/// The day and minute of a run.
fn minute(run: &TrendRun) -> String {
    run.started
        .get(..16)
        .unwrap_or(&run.started)
        .replace('T', " ")
}

/// Why a run is not compared with the one before.
pub(crate) fn not_compared(run: usize, why: &str) -> String {
    format!("not compared with run {}: {why}", run - 1)
}

/// The studies of the runs, each once.
pub(crate) fn studies(trend: &Trend) -> String {
    names(unique(trend.runs.iter().map(|run| run.study.as_str())))
}

/// The trend for the terminal, no line longer than `width` (at least 72) characters.
pub fn trend_text(trend: &Trend, width: usize) -> String {
    let width = width.max(MINIMUM_WIDTH);
    let runs = so_many(trend.runs.len() as u64, "run");
    let mut out = format!("trend · {runs} · {}\n\n", plain(&studies(trend)));
    let mut line = |lead: &str, words: &str| wrapped(&mut out, lead, &plain(words), width);
    for (number, run) in (1..).zip(&trend.runs) {
        let trials = so_many(run.trials.all.into(), "trial");
        let valid = match run.trials.valid {
            valid if valid == run.trials.all => String::new(),
            valid => format!(", {valid} valid"),
        };
        let systems = run.systems.join(", ");
        let words = format!(
            "{} · {} · {trials}{valid} · {systems}",
            run.name,
            minute(run)
        );
        line(&format!(" run {number}: "), &words);
        for words in &run.not_compared {
            line("        ", &not_compared(number, words));
        }
        for words in &run.remarks {
            line("        ", words);
        }
    }
    out.push('\n');
    let mut line = |lead: &str, words: &str| wrapped(&mut out, lead, &plain(words), width);
    let changes = changes(trend);
    for one in &changes {
        line(&format!(" {}: ", one.step.verdict), &one.describe());
    }
    for words in changed_answers(trend) {
        line(" ", &words);
    }
    if changes.is_empty() && trend.intervals > 0 {
        line(" ", "Nothing changed beyond noise.");
    }
    if let Some(words) = quiet(trend) {
        line(" ", &words);
    }
    let untold = untold(trend);
    for words in untold.iter().take(REASONS) {
        line(" cannot tell: ", words);
    }
    if untold.len() > REASONS {
        let more = untold.len() - REASONS;
        let _ = writeln!(out, " and {more} more reasons (the page has them)");
    }
    out.push('\n');
    wrapped(&mut out, " ", &meaning(trend), width);
    out
}
