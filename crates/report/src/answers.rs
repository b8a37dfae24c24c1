//! The answers of a run: which rows carry their load, by what figure, with how much to spare and at
//! what cost; and who wins at what. Table and page show them; `serde` writes them as JSON.

use std::collections::BTreeSet;

use pubgauge_figures::criterion::{Comparator, CriterionSpec, default_for};
use pubgauge_figures::figure::{Figure, Unit, figure};
use pubgauge_figures::{PublisherWindow, Reason, Results, Rule, Status, Trial};
use pubgauge_quantities::shown;
use pubgauge_quantities::stats::mean;
use pubgauge_results::criterion::bearing;
use pubgauge_results::verdict::failures_decide;
use serde::Serialize;

pub use crate::carries::Carries;
use crate::summary::{Bound, Carried, Cell, Summary, WorkloadCells};
use crate::wins::{Contest, Outcome, answer};

#[derive(Clone, Debug, Serialize)]
pub struct WorkloadAnswer {
    pub workload: String,
    /// The demands on it, in words: `p99 <= 100 ms`. Empty flat out without criteria.
    pub asked: Vec<String>,
    /// The study has no criterion here, so that pubgauge's default applies, at least to some rows.
    pub by_default: bool,
    /// The answer of each row.
    pub rows: Vec<RowAnswer>,
    /// Who wins at what, for each point of the varied load.
    pub wins: Vec<Win>,
}

/// Who wins at one thing.
#[derive(Clone, Debug, Serialize)]
pub struct Win {
    /// The point: `payload = 1 KiB`; empty where no load was varied.
    pub at: String,
    /// The contest: `lowest median latency`.
    pub what: &'static str,
    /// The meaning of its figure, in one line.
    pub meaning: &'static str,
    /// How far it is decided.
    pub outcome: Outcome,
    /// The winners, with the figures that show it.
    pub who: String,
    /// The best with the distance to the next, or those that lower bounds leave without an order; absent without either.
    pub lead: Option<String>,
    /// The winners in a few words: `zeromq-direct 66.1 µs`.
    pub short: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct RowAnswer {
    /// The row's name: what was varied.
    pub row: String,
    pub system: String,
    /// Whether it carries its load; absent flat out without criteria: `carried` says how much.
    pub carries: Option<Carries>,
    /// The figure that decided, in a few words: `p99 4.2 ms`.
    pub figure: String,
    /// The same in as few words as can be, for a matrix: `p99 <= 4.2 ms`.
    pub brief: String,
    /// The deciding figure in full, with the limit, or the verdict that leaves it undecided.
    pub decided_by: String,
    /// The first reason of the verdict that decided, where one did.
    pub reason: Option<String>,
    /// The share of what is allowed that the deciding figure uses, 1 at the limit; absent where a verdict decided, nothing
    /// could be told, or the figure cannot be divided.
    pub used: Option<f64>,
    /// The repeat that decided; absent where nothing is asked.
    pub repeat: Option<u32>,
    /// Other resources that remain before the row fails, where they are known.
    pub headroom: Vec<String>,
    /// Deliveries per second; absent if lossy, unsteady or broken.
    pub carried: Option<CarriedRate>,
    /// Processor time of system and client per delivery, µs; absent without a valid repeat and for
    /// systems out of sight.
    pub cpu_us_per_msg: Option<f64>,
}

/// A rate, and how it bounds what the system can deliver.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CarriedRate {
    /// Deliveries per second, mean over repeats.
    pub msgs_per_s: f64,
    /// Whether the system can deliver exactly this, or more.
    pub bound: Bound,
}

/// The answers of a run, workload by workload.
pub fn answers(results: &Results) -> Vec<WorkloadAnswer> {
    let summary = Summary::summarize(results);
    let each = summary.workloads.iter();
    each.map(|workload| of_workload(results, workload))
        .collect()
}

/// Why the default applies.
pub(crate) fn default_words(results: &Results) -> &'static str {
    let study = &results.study;
    if study.criterion_specs.is_empty() && !study.criteria.is_empty() {
        "pubgauge's default: these results do not say to what the criteria apply"
    } else {
        "pubgauge's default: the study asks for nothing"
    }
}

pub(crate) fn of_workload(results: &Results, workload: &WorkloadCells<'_>) -> WorkloadAnswer {
    let specs = &results.study.criterion_specs;
    let rows = workload.cells.iter().map(|cell| row(cell, specs)).collect();
    let (asked, by_default) = demands_in_words(results, workload);
    let wins = (0..workload.points.len()).flat_map(|point| {
        let cells: Vec<&Cell<'_>> = workload.cells_at(point).collect();
        let at = workload.points[point].label.clone();
        let each = Contest::contests_of(&cells).into_iter();
        each.map(move |contest| {
            let answer = answer(&cells, contest);
            Win {
                at: at.clone(),
                what: contest.superlative,
                meaning: contest.meaning(),
                outcome: answer.outcome(),
                who: answer.winner_sentence(),
                lead: answer.lead(),
                short: answer.short(),
            }
        })
        .collect::<Vec<_>>()
    });
    WorkloadAnswer {
        workload: workload.name.clone(),
        asked,
        by_default,
        rows,
        wins: wins.collect(),
    }
}

/// The demands on a workload in words, and whether pubgauge's default applies to some rows.
pub(crate) fn demands_in_words(
    results: &Results,
    workload: &WorkloadCells<'_>,
) -> (Vec<String>, bool) {
    let specs = &results.study.criterion_specs;
    let demands = demands(specs, workload);
    let by_default = workload
        .cells
        .iter()
        .any(|cell| defaulted(cell.trials[0], specs));
    // Settings that drop messages, and a study that allows losses, leave a trial valid that lost some.
    let mut trials = workload.cells.iter().flat_map(|cell| &cell.trials);
    let losses = if trials.any(|t| t.verdict.status == Status::Valid && t.shortfall.lost > 0) {
        "nothing lost but where that is allowed"
    } else {
        "nothing lost"
    };
    let others = [losses, "no growing queue"].map(str::to_owned);
    let others = others.into_iter().filter(|_| by_default);
    let asked = others.chain(demands.iter().map(demand)).collect();
    (asked, by_default)
}

/// The demands on a workload: the study's criteria that apply to it, and pubgauge's default where
/// none applies to a row.
pub(crate) fn demands(specs: &[CriterionSpec], workload: &WorkloadCells<'_>) -> Vec<CriterionSpec> {
    let trials = || workload.cells.iter().map(|cell| cell.trials[0]);
    let bears = |spec: &&CriterionSpec| trials().any(|trial| spec.filter.lets_through(trial));
    let own = specs.iter().filter(bears).cloned();
    let mut all: Vec<CriterionSpec> = own.collect();
    // Paths of different lengths have different ones.
    for trial in trials().filter(|trial| defaulted(trial, specs)) {
        let default = default_for(trial);
        if !all.contains(&default) {
            all.push(default);
        }
    }
    all
}

/// Whether only the default applies to a trial.
fn defaulted(trial: &Trial, specs: &[CriterionSpec]) -> bool {
    !trial.workload.flat_out && !specs.iter().any(|spec| spec.filter.lets_through(trial))
}

/// A criterion in a few words: `readings: p99 <= 100 ms`.
pub(crate) fn demand(spec: &CriterionSpec) -> String {
    let words = format!(
        "{} {} {}",
        figure_words(spec),
        spec.comparison,
        spec.limit()
    );
    match &spec.filter.systems[..] {
        [] => words,
        systems => format!("{words} ({})", systems.join(", ")),
    }
}

/// The name of a criterion's figure in words: `p99`, `send lag p50`, `readings: lost`.
fn figure_words(spec: &CriterionSpec) -> String {
    let figure = Figure::in_window(&spec.figure).map(|(figure, _)| figure);
    let words = match figure {
        Some(figure) if figure.name == "latency.max" => "largest latency".to_owned(),
        Some(figure) => {
            let words = |recorded: &str| {
                let base = recorded.strip_suffix(figure.unit.suffix());
                base.unwrap_or(recorded).replace(['_', '.'], " ")
            };
            let recorded = figure.recorded.split_once('.');
            let statistic = figure
                .name
                .split_once('.')
                .filter(|_| figure.is_statistic());
            match (statistic, recorded) {
                (Some(("latency", statistic)), _) => statistic.to_owned(),
                (Some((_, statistic)), Some((times, _))) => format!("{}{statistic}", words(times)),
                _ => words(&figure.recorded).trim_end().to_owned(),
            }
        }
        None => spec.figure.replace('_', " "),
    };
    match &spec.filter.flow {
        Some(flow) => format!("{flow}: {words}"),
        None => words,
    }
}

/// The outcome of one criterion for one repeat.
struct Said {
    repeat: u32,
    met: Option<bool>,
    /// The used share of what is allowed, by which repeats are ranked; 1 is the limit.
    used: f64,
    /// Whether a verdict decided, so that no figure is quoted.
    by_verdict: bool,
    figure: String,
    brief: String,
    decided_by: String,
    reason: Option<String>,
    /// It failed, and too many other repeats were disturbed by the machine for that to decide.
    outvoted: bool,
}

/// The answer of one row.
pub(crate) fn row(cell: &Cell<'_>, specs: &[CriterionSpec]) -> RowAnswer {
    let carried = cell.carried();
    let mut said: Vec<Said> = cell
        .trials
        .iter()
        .flat_map(|trial| of_trial(trial, specs))
        .collect();
    let has_failed = |trial: &Trial| {
        let mut of_repeat = said.iter().filter(|said| said.repeat == trial.repeat);
        of_repeat.any(|said| said.met == Some(false))
    };
    if !failures_decide(&cell.trials, has_failed) {
        let failures = said.iter_mut().filter(|said| said.met == Some(false));
        failures.for_each(|said| {
            said.met = None;
            said.outvoted = true;
        });
    }
    // A failure decides first, then an undecided one, then the one nearest to failing.
    let rank = |said: &Said| (said.met != Some(false), said.met.is_some());
    said.sort_by(|a, b| rank(a).cmp(&rank(b)).then(b.used.total_cmp(&a.used)));
    let carries = said.first().map(|decisive| match decisive.met {
        Some(true) => Carries::Yes,
        Some(false) => Carries::No,
        None => Carries::CannotTell,
    });
    let (figure, decided_by, reason) = match said.first() {
        Some(decisive) => {
            let in_repeats = |met: Option<bool>| {
                let alike = said.iter().filter(|said| said.met == met);
                let repeats: BTreeSet<u32> = alike.map(|said| said.repeat).collect();
                repeats.len()
            };
            let all = cell.trials.len();
            let mut words = decisive.decided_by.clone();
            match in_repeats(decisive.met) {
                some if some < all => words += &format!(" in {some} of {all} repeats"),
                _ => {}
            }
            if said.iter().any(|said| said.outvoted) {
                words += "; the machine was too busy in other repeats to tell whose doing it was";
            }
            let met = said.iter().find(|said| said.met == Some(true));
            if let Some(met) =
                met.filter(|_| decisive.met != Some(true) && in_repeats(Some(true)) < all)
            {
                words += &format!("; else {}", met.decided_by);
            }
            (decisive.figure.clone(), words, decisive.reason.clone())
        }
        None => rate_or_verdict(cell, carried.as_ref()),
    };
    let used = said
        .first()
        .filter(|said| said.met.is_some() && !said.by_verdict);
    let used = used.map(|said| said.used).filter(|used| used.is_normal());
    let cost = |t: &Trial| Contest::CPU_PER_MESSAGE.value(t);
    let brief = match said.first() {
        Some(decisive) => decisive.brief.clone(),
        None => figure.clone(),
    };
    RowAnswer {
        row: cell.label.clone(),
        brief,
        system: cell.system.clone(),
        carries,
        figure,
        decided_by,
        reason,
        used,
        repeat: said.first().map(|said| said.repeat),
        headroom: headroom(cell),
        carried: carried.map(|c| CarriedRate {
            msgs_per_s: c.estimate.mean,
            bound: c.bound,
        }),
        cpu_us_per_msg: mean(cell.valid().filter_map(cost)),
    }
}

impl RowAnswer {
    /// The repeat that shows why the answer is *no*; `None` for other answers.
    pub(crate) fn refusing_trial<'a>(&self, cell: &Cell<'a>) -> Option<&'a Trial> {
        let repeat = self.repeat.filter(|_| self.carries == Some(Carries::No))?;
        cell.trials
            .iter()
            .copied()
            .find(|trial| trial.repeat == repeat)
    }
}

/// The rate of a row of which nothing is asked, or else its verdict: in short, in full, and the reason.
fn rate_or_verdict(cell: &Cell<'_>, carried: Option<&Carried>) -> (String, String, Option<String>) {
    let Some(carried) = carried else {
        let verdict = &cell.typical().verdict;
        let word = verdict.status.as_str().to_owned();
        let reason = verdict.reasons.first().map(|reason| reason.text.clone());
        return (word.clone(), word, reason);
    };
    match full_window(cell) {
        Some((window, reason)) if carried.bound == Bound::SettingBound => (
            carried.short(),
            format!("{} ({window})", carried.short()),
            Some(reason.text.clone()),
        ),
        _ => (carried.short(), carried.to_string(), None),
    }
}

/// The window that held publishers back in the first repeat that it did, with the reason.
fn full_window<'a>(cell: &Cell<'a>) -> Option<(&'a PublisherWindow, &'a Reason)> {
    let mut trials = cell.trials.iter();
    trials.find_map(|trial| {
        let reason = trial.verdict.reason(Rule::WindowFull)?;
        Some((trial.publisher_window.as_ref()?, reason))
    })
}

/// The outcomes of all criteria for a trial.
fn of_trial(trial: &Trial, specs: &[CriterionSpec]) -> Vec<Said> {
    let bearing_on_it = specs.iter().filter(|spec| spec.filter.lets_through(trial));
    let mut said: Vec<Said> = bearing_on_it.map(|spec| of_spec(trial, spec)).collect();
    if trial.workload.flat_out {
        return said;
    }
    let status = trial.verdict.status;
    let by_verdict = |met| Said {
        repeat: trial.repeat,
        met,
        used: f64::INFINITY,
        by_verdict: true,
        figure: status.as_str().to_owned(),
        brief: status.as_str().to_owned(),
        decided_by: status.as_str().to_owned(),
        reason: trial
            .verdict
            .reasons
            .first()
            .map(|reason| reason.text.clone()),
        outvoted: false,
    };
    if said.is_empty() && trial.messages.expected > 0 {
        said.push(of_spec(trial, &default_for(trial)));
    } else if said.is_empty() {
        // Without subscribers there is no latency to judge.
        said.push(match status {
            Status::Valid => Said {
                figure: format!("took {}", shown::count(trial.messages.published)),
                brief: format!("took {}", shown::count(trial.messages.published)),
                decided_by: format!(
                    "took all of {} messages",
                    shown::count(trial.messages.published)
                ),
                used: 0.0,
                by_verdict: false,
                ..by_verdict(Some(true))
            },
            Status::HostBound
            | Status::SettingBound
            | Status::TooShort
            | Status::Unsteady
            | Status::ClientBound => by_verdict(None),
            Status::Broken if !trial.verdict.system_failed => by_verdict(None),
            _ => by_verdict(Some(false)),
        });
    } else if status == Status::Overloaded {
        // A load under which the queue grows is not carried, whatever the criteria say.
        said.push(by_verdict(Some(false)));
    }
    said
}

fn of_spec(trial: &Trial, spec: &CriterionSpec) -> Said {
    let bearing = bearing(trial, spec);
    let words = figure_words(spec);
    let value = figure(trial, spec.filter.flow.as_deref(), &spec.figure);
    let value = bearing.at_most().or(value);
    let (limit, upper) = (
        spec.value,
        !matches!(spec.comparison, Comparator::Greater | Comparator::AtLeast),
    );
    let exact = spec.comparison == Comparator::Equal;
    let used = value.map_or(f64::INFINITY, |value| match (upper, value == limit) {
        (_, true) if exact || limit == 0.0 => 0.0,
        _ if exact => f64::INFINITY,
        (true, _) => value / limit,
        (false, _) => limit / value,
    });
    let allowed = spec.format_value(limit);
    let measured = if (used - 1.0).abs() > 0.01 {
        // Three digits, unless these would hide on which side of the limit the value lies.
        bearing.figure(|value| short(spec, value))
    } else {
        bearing.figure(|value| spec.format_value(value))
    };
    let status = trial.verdict.status;
    // A trial that is not valid is decided by its verdict, not by a figure. A client-bound trial
    // that misses the limit all the same is decided by its figure.
    let by_verdict = match bearing.met {
        Some(true) => false,
        Some(false) => status > Status::ClientBound,
        None => status != Status::Valid,
    };
    let times = shown::digits(1.0 / used);
    let shown = format!("{words} {measured}");
    let decided_by = match (bearing.met, upper) {
        _ if by_verdict => status.as_str().to_owned(),
        (None, _) => format!(
            "{words} {}",
            bearing.figure(|value| spec.format_value(value))
        ),
        (Some(true), _) if !used.is_normal() || limit == 0.0 => shown.clone(),
        (Some(true), true) => format!("{shown}, {times} times below the {allowed} allowed"),
        (Some(true), false) => format!("{shown}, {times} times the {allowed} asked for"),
        (Some(false), _) if exact => format!("{shown} instead of {allowed}"),
        (Some(false), true) => format!("{shown}, more than the {allowed} allowed"),
        (Some(false), false) => format!("{shown}, less than the {allowed} asked for"),
    };
    let figure = match (by_verdict, bearing.met) {
        (true, _) => status.as_str().to_owned(),
        (false, None) if value.is_some() => "too few messages".to_owned(),
        (false, None) => "not measured".to_owned(),
        (false, Some(_)) => shown,
    };
    let brief = bearing.brief(&words, |value| short(spec, value));
    let brief = brief.filter(|_| !by_verdict && bearing.met.is_some());
    Said {
        repeat: trial.repeat,
        met: bearing.met,
        used,
        by_verdict,
        brief: brief.unwrap_or_else(|| figure.clone()),
        figure,
        decided_by,
        reason: trial
            .verdict
            .reasons
            .first()
            .filter(|_| by_verdict)
            .map(|reason| reason.text.clone()),
        outvoted: false,
    }
}

/// A figure in three digits.
fn short(spec: &CriterionSpec, value: f64) -> String {
    match spec.catalogued_figure().map(|asked| asked.unit) {
        Some(Unit::Nanoseconds) => shown::time(value),
        Some(Unit::PerSecond) => shown::rate(value),
        _ => spec.format_value(value),
    }
}

/// The largest processor use of a thread over a row's repeats, in words: a thread that uses all of
/// a core is at its limit.
fn headroom(cell: &Cell<'_>) -> Vec<String> {
    let in_client = cell.trials[0].system_in_client();
    let load = |trial: &Trial| {
        let load = &trial.worker_load;
        let busiest = load.publishers_running.max(load.subscribers_running);
        if in_client {
            Some(busiest)
        } else {
            trial.system_busiest_thread_cpu
        }
    };
    let whose = if in_client {
        "the busiest client thread, with the library in it,"
    } else {
        "its busiest thread"
    };
    let most = cell.quoted().into_iter().filter_map(load);
    let most = most.max_by(f64::total_cmp).into_iter();
    most.map(|share| format!("{whose} uses {} of a core", shown::share(share.min(1.0))))
        .collect()
}

#[cfg(test)]
mod tests {
    use pubgauge_figures::criterion::TrialFilter;

    use super::*;
    use pubgauge_fixtures::TrialBuilder;

    /// A criterion of equality sets no upper limit.
    #[test]
    fn what_must_be_equal_is_not_allowed_or_more() {
        let spec = CriterionSpec {
            text: "published equals 1000".into(),
            figure: "published".into(),
            comparison: Comparator::Equal,
            value: 1_000.0,
            filter: TrialFilter::default(),
        };
        let said = |published| {
            let trial = TrialBuilder::periodic(1_000.0, 1.0).carried(published);
            of_spec(&trial.build(), &spec)
        };
        let (met, missed) = (said(1_000.0), said(900.0));
        assert_eq!((met.met, met.used), (Some(true), 0.0));
        assert_eq!(missed.met, Some(false));
        assert!(
            missed.decided_by.ends_with("900 instead of 1000"),
            "{}",
            missed.decided_by
        );
        assert!(!met.decided_by.contains("allowed"), "{}", met.decided_by);
    }
}
