//! Comparisons that a study asked for, as tables with a change in each cell.

use pubgauge_conclusions::compare::FigureChange;
use pubgauge_figures::Results;
use pubgauge_figures::comparison::{
    ComparedFigure, ComparedSystem, Difference, Ended, GuardOutcome, PairComparison,
};
use pubgauge_quantities::lists::{grouped, unique};

use crate::compare::format_change;

/// A table of changes.
pub(crate) struct Board {
    /// The title: the sides of the comparison.
    pub title: String,
    /// Heading of the first column.
    pub corner: &'static str,
    /// Headings of the other columns.
    pub heads: Vec<String>,
    /// Rows: a name, and the entry of each column.
    pub rows: Vec<(String, Vec<Option<ComparisonRow>>)>,
    /// Remarks, in sentences.
    pub notes: Vec<String>,
}

/// The entry for one figure of one comparison.
pub(crate) struct ComparisonRow {
    /// The change: `+13.0 %`; `-` if there is none.
    pub change: String,
    /// Its interval and the number of pairs: `+9.1 to +17.0, 12 pairs`.
    pub interval: String,
    /// The outcome in words.
    pub words: String,
    /// The outcome, for its colour.
    pub verdict: Difference,
    /// Why it is undecided; empty if it is not.
    pub why: String,
}

/// The tables of a run: one of all figures for each base; of an ablation one for each figure, with changes in
/// the rows and systems in the columns.
pub(crate) fn boards(results: &Results) -> Vec<Board> {
    let all = results.comparisons.iter();
    let groups = grouped(all.map(|c| ((&c.workload, &c.axes), c)));
    let boards = groups
        .iter()
        .flat_map(|(_, group)| match group[0].ablation {
            Some(_) => ablation(group),
            None => vec![against_one(group)],
        });
    boards.collect()
}

/// The meaning of a table's signs.
pub(crate) fn legend(results: &Results) -> String {
    let margin = results.comparisons.first().map_or(0.0, |c| c.margin);
    let margin = format!("{} %", (1e4 * margin).round() / 1e2);
    let mut figures = results.comparisons.iter().flat_map(|c| &c.figures);
    let outcomes = if figures.any(|figure| figure.guard.is_some()) {
        format!(
            "within the margin: the interval leaves out that the new one is worse by more than {margin}; worse than the margin: all of it is beyond that."
        )
    } else {
        format!(
            "Of 100 comparisons between equals up to 5 are told apart. same: the interval lies within {margin}; better, worse: it leaves out \"no change\"."
        )
    };
    format!(
        "Change against the base, round by round, with its 95 % interval; the intervals of one comparison hold together. {outcomes}"
    )
}

fn figures<'a>(group: &[&'a PairComparison]) -> Vec<&'a str> {
    let figures = group.iter().flat_map(|c| &c.figures);
    unique(figures.map(|f| f.figure.as_str()))
}

fn name_place(of: &PairComparison) -> String {
    let axes = of.axes.iter();
    let axes = axes.map(|axis| format!(", {} = {}", axis.name, axis.value));
    of.workload.clone() + &axes.collect::<String>()
}

fn against_one(group: &[&PairComparison]) -> Board {
    let base = &group[0].base;
    let sides = || group.iter().map(|c| &c.other).chain([base]);
    let systems = unique(sides().map(|s| &s.system)).len() > 1;
    let settings = unique(sides().map(|s| &s.settings)).len() > 1;
    let name = |side: &ComparedSystem| match (systems, settings) {
        (true, true) => format!("{}, {}", side.system, side.settings),
        (false, true) => side.settings.clone(),
        _ => side.system.clone(),
    };
    let heads = figures(group);
    let row = |c: &&PairComparison| {
        let found = heads
            .iter()
            .map(|head| c.figures.iter().find(|f| f.figure == *head));
        (
            name(&c.other),
            found.map(|figure| Some(table_entry(c, figure?))).collect(),
        )
    };
    Board {
        title: format!("{}: compared with {}", name_place(group[0]), name(base)),
        corner: "",
        rows: group.iter().map(row).collect(),
        notes: notes(group, |c| name(&c.other)),
        heads: heads.into_iter().map(str::to_owned).collect(),
    }
}

fn ablation(group: &[&PairComparison]) -> Vec<Board> {
    let systems = unique(group.iter().map(|c| c.other.system.as_str()));
    let changes = unique(group.iter().filter_map(|c| c.ablation.as_deref()));
    let board = |(nth, figure): (usize, &str)| {
        let row = |change: &&str| {
            let cell = |system: &&str| {
                let mut own = group.iter().filter(|c| c.other.system == *system);
                let comparison = own.find(|c| c.ablation.as_deref() == Some(*change))?;
                let found = comparison.figures.iter().find(|f| f.figure == figure)?;
                Some(table_entry(comparison, found))
            };
            ((*change).to_owned(), systems.iter().map(cell).collect())
        };
        Board {
            title: format!(
                "{}: {figure}, one change at a time against {}",
                name_place(group[0]),
                group[0].base.settings
            ),
            corner: "change",
            heads: systems.iter().map(|s| (*s).to_owned()).collect(),
            rows: changes.iter().map(row).collect(),
            notes: match nth {
                0 => notes(group, |c| {
                    format!("{}, {}", c.other.system, c.other.settings)
                }),
                _ => Vec::new(),
            },
        }
    };
    figures(group).into_iter().enumerate().map(board).collect()
}

fn table_entry(comparison: &PairComparison, figure: &ComparedFigure) -> ComparisonRow {
    let change = FigureChange::from_stored(figure);
    let (change, interval) = change.map_or(("-".to_owned(), String::new()), format_change);
    let pairs = match comparison.pairs {
        1 => "1 pair".to_owned(),
        n => format!("{n} pairs"),
    };
    ComparisonRow {
        change,
        interval: if interval.is_empty() {
            pairs
        } else {
            format!("{interval}, {pairs}")
        },
        words: match figure.guard {
            Some(outcome) => outcome.to_string(),
            None => figure.verdict.to_string(),
        },
        verdict: match figure.guard {
            Some(GuardOutcome::WithinMargin) => Difference::Same,
            Some(GuardOutcome::Worse) => Difference::Worse,
            Some(GuardOutcome::CannotTell) => Difference::CannotTell,
            None => figure.verdict,
        },
        why: figure.why.clone().unwrap_or_default(),
    }
}

/// Why pairs ended early, and what could not be compared.
fn notes(group: &[&PairComparison], name: impl Fn(&PairComparison) -> String) -> Vec<String> {
    let name = &name;
    let notes = group.iter().flat_map(|comparison| {
        let ended = match comparison.ended {
            Ended::Repeats | Ended::Precision => None,
            Ended::Budget => {
                Some("the pairs or the time of the study were spent before it was precise enough")
            }
            Ended::System => Some(
                "given up: the system was at its end (overloaded, lossy or gone), and no further pair would show the figures",
            ),
            Ended::Client => Some("given up: most trials were spoilt by the client or not steady"),
            Ended::Cut => Some("cut off before it was precise enough"),
        };
        let whys = comparison.figures.iter().filter_map(|figure| {
            let why = figure.why.as_ref()?;
            Some(format!("{}: {why}", figure.figure))
        });
        let notes = ended.map(str::to_owned).into_iter().chain(whys);
        notes.map(move |note| (note, name(comparison)))
    });
    let words = grouped(notes).into_iter();
    words
        .map(|(note, names)| format!("{}: {note}", names.join("; ")))
        .collect()
}
