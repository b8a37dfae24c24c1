//! The comparisons of a run: those that its plan asks for, in the report's form, and their progress.

use pubgauge_conclusions::compare::{
    CellOf, ComparisonRule, FigureChange, NamedFigure, comparable, conclude, next,
};
use pubgauge_figures::comparison::{Ended, PairComparison};
use pubgauge_figures::figure::Figure;
use pubgauge_figures::model::Trial;
use pubgauge_quantities::shown::{percent, so_many};
use pubgauge_quantities::text::wrap;
use pubgauge_runner::searching;
use pubgauge_study::Plan;
use pubgauge_workload::SECOND;

use crate::Error;
use crate::prepared::axes;

/// Comparisons, which choose the next trial.
pub struct Pairs {
    question: ComparisonRule,
    cells: Vec<CellOf>,
    /// For each cell, its index in the plan's trials.
    templates: Vec<usize>,
}

impl Pairs {
    /// The comparisons of a plan; `None` if it compares nothing.
    ///
    /// # Errors
    /// If a figure does not exist, or no two cells can be compared.
    pub fn from_plan(plan: &Plan) -> Result<Option<Pairs>, Error> {
        let Some(asked) = &plan.compare else {
            return Ok(None);
        };
        let figures = figures("compare.figures", &asked.figures)?;
        let share = |figure: &&NamedFigure| figure.known.of_any_trial;
        if let (Some(_), Some(figure)) = (asked.precision, figures.iter().find(share)) {
            return Err(Error::bad_input(format!(
                "compare.figures {}: a share is 0 in most trials, and has no relative change that could be precise\n  hint: ask for a rate, a time, a cost or memory, and read shares in the table",
                figure.name
            )));
        }
        let mut templates: Vec<usize> = (0..plan.trials.len())
            .filter(|at| plan.trials[*at].repeat == 1)
            .collect();
        templates.sort_by_key(|at| plan.trials[*at].listed);
        let cells = templates.iter().map(|at| &plan.trials[*at]);
        let cells: Vec<CellOf> = cells
            .map(|trial| CellOf {
                cell: trial.cell.clone(),
                system: trial.system.clone(),
                settings: trial.settings_name.clone(),
                workload: trial.workload.name.clone(),
                axes: axes(trial),
            })
            .collect();
        let pairs = Pairs {
            question: ComparisonRule {
                precision: asked.precision,
                margin: asked.margin,
                guard: asked.guard,
                figures,
                most: match asked.precision {
                    Some(_) => asked.pairs,
                    None => plan.repeats,
                },
                seconds: asked.budget as f64 / SECOND as f64,
                shuffled: asked.shuffled.then_some(plan.seed),
                ablation: asked.ablation.clone(),
            },
            cells,
            templates,
        };
        if pairs.so_far(&[]).is_empty() {
            return Err(Error::bad_input(
                "there is nothing to compare: each workload and point of the grid has one cell\n  hint: name two systems (--on A,B), two variants of the settings, or an [[ablation]]",
            ));
        }
        Ok(Some(pairs))
    }

    /// Index in the plan of the trial to measure next, and its round; `None` at the end.
    pub fn next(&self, done: &[Trial]) -> Option<(usize, u32)> {
        let (cell, round) = next(&self.question, &self.cells, done, spent_s(done))?;
        Some((self.templates[cell], round))
    }

    /// The results of the comparisons so far.
    pub fn so_far(&self, done: &[Trial]) -> Vec<PairComparison> {
        conclude(&self.question, &self.cells, done, spent_s(done))
    }
}

/// Seconds that trials took.
fn spent_s(done: &[Trial]) -> f64 {
    done.iter().map(searching::seconds).sum()
}

/// How cells are compared, in words.
///
/// # Errors
/// As [`Pairs::from_plan`].
pub fn compared(plan: &Plan) -> Result<Option<String>, Error> {
    let Some(pairs) = Pairs::from_plan(plan)? else {
        return Ok(None);
    };
    let count = so_many(pairs.so_far(&[]).len() as u64, "comparison");
    let against = match &pairs.question.ablation {
        Some(base) => format!("each change against {base}, system by system"),
        None => "the first cell against each other of its workload".to_owned(),
    };
    Ok(plan.rounds().zip(pairs.question.precision).map(|(asked, precision)| {
        format!(
            "{count} ({against}): rounds go on until each is known to plus or minus {}, {} rounds or {} at most",
            pubgauge_quantities::Percent(precision),
            asked.pairs,
            pubgauge_quantities::Span(asked.budget),
        )
    }))
}

/// How many comparisons are precise enough, in one line.
pub fn describe_progress(comparisons: &[PairComparison], round: u32) -> String {
    let done = |ended: Ended| comparisons.iter().filter(|c| c.ended == ended).count();
    let mut words = format!(
        "after {}: {} of {} precise enough",
        so_many(round.into(), "round"),
        done(Ended::Precision),
        so_many(comparisons.len() as u64, "comparison")
    );
    let open = comparisons.iter().filter(|c| c.ended == Ended::Cut);
    let changes = open
        .flat_map(|c| &c.figures)
        .filter_map(FigureChange::from_stored);
    let widths = changes.filter_map(|change| change.half_width());
    if let Some(widest) = widths.reduce(f64::max) {
        words += &format!(
            ", the widest interval is plus or minus {}",
            percent(widest, 1)
        );
        if let Some(asked) = comparisons.iter().find_map(|c| c.precision) {
            words += &format!(" ({} is asked for)", percent(asked, 1));
        }
    }
    let given_up = done(Ended::System) + done(Ended::Client);
    if given_up > 0 {
        words += &format!(", {given_up} given up");
    }
    words
}

/// Figures by their names, which `asked` asks for.
pub fn figures(asked: &str, names: &[String]) -> Result<Vec<NamedFigure>, Error> {
    let figure = |name: &String| {
        NamedFigure::named(name).ok_or_else(|| {
            let known = comparable()
                .map(|figure| figure.known)
                .filter(|figure| figure.of_windows() || !name.contains('@'))
                .map(|figure| &*figure.name);
            let known: Vec<&str> = known.collect();
            let problem = match Figure::in_window(name) {
                Some((_, None)) => "this figure is not compared (of numbers of messages their shares and rates are)",
                Some((_, Some(_))) => "no such figure of a window",
                None => "no such figure",
            };
            Error::bad_input(format!(
                "{asked} {name}: {problem}\n  hint: known are\n{}",
                wrap(&known.join(", "), 4).trim_end()
            ))
        })
    };
    names.iter().map(figure).collect()
}
