//! The answers of a run: which rows carry their load, by what figure, with how much to spare and at
//! what cost; and who wins at what. Table and page show them; `serde` writes them as JSON.

use pubgauge_conclusions::judgement::{
    FlowJudgement, JudgedRepeat, Judgement, by_flow, is_by_default, is_upper,
};
use pubgauge_figures::criterion::{Comparator, CriterionSpec};
use pubgauge_figures::figure::{Figure, Unit, figure};
use pubgauge_figures::{PublisherWindow, Reason, Results, Rule, Status, Trial};
use pubgauge_quantities::shown;
use pubgauge_quantities::stats::mean;
use pubgauge_results::criterion::Bearing;
use serde::Serialize;

pub use pubgauge_conclusions::Carries;
pub use pubgauge_conclusions::answer::CarriedRate;
pub(crate) use pubgauge_conclusions::judgement::demands;

use crate::glossary;
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
    /// About how many repeats would decide it; absent where it is not open, or nothing says how far repeats differ.
    pub repeats_to_tell: Option<u32>,
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
    /// That figure as short as a matrix needs it: `p99 <= 4.2 ms`.
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
    /// The answer of each flow, where the workload has several.
    pub flows: Vec<FlowAnswer>,
}

/// The answer of one flow of a row.
#[derive(Clone, Debug, Serialize)]
pub struct FlowAnswer {
    /// Its name.
    pub flow: String,
    /// Whether it is carried; absent where nothing is asked of it.
    pub carries: Option<Carries>,
    /// The figure that decided, in as few words as can be: `p99 4.2 ms`, `lost 12`. Where nothing is asked, its rate flat
    /// out, else its 99th percentile.
    pub brief: String,
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
                meaning: glossary::figure(contest.term),
                outcome: answer.outcome(),
                who: answer.winner_sentence(),
                lead: answer.lead(),
                short: answer.short(),
                repeats_to_tell: (answer.repeats_to_tell)
                    .filter(|_| answer.outcome() == Outcome::Open),
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
        .any(|cell| is_by_default(cell.trials[0], specs));
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

/// The name of a criterion's figure in words, with its flow: `p99`, `readings: lost`.
fn figure_words(spec: &CriterionSpec) -> String {
    match &spec.filter.flow {
        Some(flow) => format!("{flow}: {}", figure_name(spec)),
        None => figure_name(spec),
    }
}

/// The name of a criterion's figure in words: `p99`, `send lag p50`.
fn figure_name(spec: &CriterionSpec) -> String {
    let figure = Figure::in_window(&spec.figure).map(|(figure, _)| figure);
    match figure {
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
    }
}

/// The words for what decided.
struct Words {
    figure: String,
    brief: String,
    decided_by: String,
    reason: Option<String>,
}

/// The answer of one row.
pub(crate) fn row(cell: &Cell<'_>, specs: &[CriterionSpec]) -> RowAnswer {
    let carried = cell.carried();
    let judgement = Judgement::new(cell, specs);
    let words = match judgement.decisive() {
        Some(decisive) => Words {
            decided_by: decided_by(decisive, &judgement, cell.trials.len()),
            ..judgement_words(decisive)
        },
        None => rate_or_verdict(cell, carried.as_ref()),
    };
    let cost = |t: &Trial| Contest::CPU_PER_MESSAGE.value(t);
    RowAnswer {
        row: cell.label.clone(),
        brief: words.brief,
        system: cell.system.clone(),
        carries: judgement.carries,
        figure: words.figure,
        decided_by: words.decided_by,
        reason: words.reason,
        used: judgement.used(),
        repeat: judgement.decisive().map(|decisive| decisive.trial.repeat),
        headroom: headroom(cell),
        carried: carried.map(|c| CarriedRate {
            msgs_per_s: c.estimate.mean,
            bound: c.bound,
        }),
        cpu_us_per_msg: mean(cell.valid().filter_map(cost)),
        flows: (by_flow(cell, specs).iter())
            .map(|flow| FlowAnswer::new(cell, flow))
            .collect(),
    }
}

impl FlowAnswer {
    fn new(cell: &Cell<'_>, flow: &FlowJudgement<'_>) -> FlowAnswer {
        let decisive = flow.judgement.decisive();
        let trial = decisive.map_or_else(|| cell.typical(), |one| one.trial);
        let lost = (trial.flows.iter())
            .find(|of| of.name == flow.flow)
            .map_or(0, |of| of.shortfall.lost);
        let is_lost = lost > 0 && flow.judgement.carries == Some(Carries::No);
        FlowAnswer {
            flow: flow.flow.to_owned(),
            carries: flow.judgement.carries,
            brief: match decisive.and_then(|one| one.demand.as_ref()) {
                _ if is_lost => format!("lost {}", shown::count(lost)),
                Some((spec, bearing)) => {
                    let words = figure_name(spec);
                    let brief = bearing.brief(&words, |value| short(spec, value));
                    brief.unwrap_or_else(|| "not measured".to_owned())
                }
                None => unasked(trial, flow.flow),
            },
        }
    }
}

/// The rate of a flow of which nothing is asked, if it is flat out, else its 99th percentile of latency.
fn unasked(trial: &Trial, flow: &str) -> String {
    let flat_out = trial.flows.iter().any(|of| of.name == flow && of.flat_out);
    let rate = figure(trial, Some(flow), "delivered_rate").filter(|_| flat_out);
    let latency = || figure(trial, Some(flow), "latency.p99");
    match rate {
        Some(rate) => shown::rate(rate),
        None => latency().map_or("not measured".to_owned(), |ns| {
            format!("p99 {}", shown::time(ns))
        }),
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

/// The figure that decided in full, in how many repeats, and what the others showed.
fn decided_by(decisive: &JudgedRepeat<'_>, judgement: &Judgement<'_>, all: usize) -> String {
    let mut text = judgement_words(decisive).decided_by;
    match judgement.repeats(decisive.met) {
        some if some < all => text += &format!(" in {some} of {all} repeats"),
        _ => {}
    }
    if judgement.judged.iter().any(|one| one.outvoted) {
        text += "; the machine was too busy in other repeats to tell whose doing it was";
    }
    let met = judgement.judged.iter().find(|one| one.met == Some(true));
    let is_partly_met = decisive.met != Some(true) && judgement.repeats(Some(true)) < all;
    if let Some(met) = met.filter(|_| is_partly_met) {
        text += &format!("; else {}", judgement_words(met).decided_by);
    }
    text
}

/// The words for a row of which nothing is asked: its rate, or else its verdict.
fn rate_or_verdict(cell: &Cell<'_>, carried: Option<&Carried>) -> Words {
    let Some(carried) = carried else {
        return verdict_words(cell.typical());
    };
    let (decided_by, reason) = match full_window(cell) {
        Some((window, reason)) if carried.bound == Bound::SettingBound => (
            format!("{} ({window})", carried.short()),
            Some(reason.text.clone()),
        ),
        _ => (carried.to_string(), None),
    };
    Words {
        figure: carried.short(),
        brief: carried.short(),
        decided_by,
        reason,
    }
}

/// The verdict of a trial, with its first reason.
fn verdict_words(trial: &Trial) -> Words {
    let word = trial.verdict.status.as_str().to_owned();
    let reason = trial.verdict.reasons.first();
    Words {
        figure: word.clone(),
        brief: word.clone(),
        decided_by: word,
        reason: reason.map(|reason| reason.text.clone()),
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

fn judgement_words(judged: &JudgedRepeat<'_>) -> Words {
    match &judged.demand {
        Some((spec, bearing)) => words_of_demand(judged, spec, bearing),
        None if judged.met == Some(true) && is_idle(judged.trial) => {
            let held = held(judged.trial);
            Words {
                figure: held.clone(),
                brief: held.clone(),
                decided_by: format!("held {held}"),
                reason: verdict_words(judged.trial).reason,
            }
        }
        None if judged.met == Some(true) => {
            let taken = shown::count(judged.trial.messages.published);
            Words {
                figure: format!("took {taken}"),
                brief: format!("took {taken}"),
                decided_by: format!("took all of {taken} messages"),
                reason: verdict_words(judged.trial).reason,
            }
        }
        None => verdict_words(judged.trial),
    }
}

/// Whether a trial is about its connections alone: nobody publishes.
fn is_idle(trial: &Trial) -> bool {
    let messages = &trial.messages;
    trial.workload.publishers == 0 && messages.published == 0 && trial.connections.made > 0
}

/// The connections of an idle trial, and the memory of the system for each: `3000 connections, 9.2 KiB each`.
fn held(trial: &Trial) -> String {
    let connections = shown::so_many(trial.connections.made, "connection");
    let name = if trial.system_in_client() {
        "client-memory-per-connection"
    } else {
        "system-memory-per-connection"
    };
    match figure(trial, None, name) {
        Some(bytes) => format!("{connections}, {} each", shown::bytes(bytes as u64)),
        None => connections,
    }
}

fn words_of_demand(judged: &JudgedRepeat<'_>, spec: &CriterionSpec, bearing: &Bearing) -> Words {
    let (trial, used) = (judged.trial, judged.used);
    let exact = spec.comparison == Comparator::Equal;
    let words = figure_words(spec);
    let allowed = spec.format_value(spec.value);
    let measured = if (used - 1.0).abs() > 0.01 {
        // Three digits, unless these would hide on which side of the limit the value lies.
        bearing.figure(|value| short(spec, value))
    } else {
        bearing.figure(|value| spec.format_value(value))
    };
    let by_verdict = judged.is_by_verdict();
    let times = shown::digits(1.0 / used);
    let shown = format!("{words} {measured}");
    let decided_by = match (bearing.met, is_upper(spec)) {
        _ if by_verdict => trial.verdict.status.as_str().to_owned(),
        (None, _) => format!(
            "{words} {}",
            bearing.figure(|value| spec.format_value(value))
        ),
        (Some(true), _) if !used.is_normal() || spec.value == 0.0 => shown.clone(),
        (Some(true), true) => format!("{shown}, {times} times below the {allowed} allowed"),
        (Some(true), false) => format!("{shown}, {times} times the {allowed} asked for"),
        (Some(false), _) if exact => format!("{shown} instead of {allowed}"),
        (Some(false), true) => format!("{shown}, more than the {allowed} allowed"),
        (Some(false), false) => format!("{shown}, less than the {allowed} asked for"),
    };
    let is_known = figure(trial, spec.filter.flow.as_deref(), &spec.figure).is_some()
        || bearing.at_most().is_some();
    let figure = match (by_verdict, bearing.met) {
        (true, _) => trial.verdict.status.as_str().to_owned(),
        (false, None) if is_known => "too few messages".to_owned(),
        (false, None) => "not measured".to_owned(),
        (false, Some(_)) => shown,
    };
    let brief = bearing.brief(&words, |value| short(spec, value));
    let brief = brief.filter(|_| !by_verdict && bearing.met.is_some());
    let mut brief = brief.unwrap_or_else(|| figure.clone());
    if is_idle(trial) {
        brief += &format!(", {}", held(trial));
    }
    Words {
        brief,
        figure,
        decided_by,
        reason: verdict_words(trial).reason.filter(|_| by_verdict),
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
    use pubgauge_conclusions::judgement::by_demand;
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
        let of = |published| {
            let trial = TrialBuilder::periodic(1_000.0, 1.0).carried(published);
            let trial = trial.build();
            let judged = by_demand(&trial, &spec);
            (judged.met, judged.used, judgement_words(&judged))
        };
        let (is_met, used, met) = of(1_000.0);
        assert_eq!((is_met, used), (Some(true), 0.0));
        let (is_met, _, missed) = of(900.0);
        assert_eq!(is_met, Some(false));
        assert!(
            missed.decided_by.ends_with("900 instead of 1000"),
            "{}",
            missed.decided_by
        );
        assert!(!met.decided_by.contains("allowed"), "{}", met.decided_by);
    }
}
