//! Criteria of a study: whether a run met them.

use std::collections::BTreeSet;

use pubgauge_figures::criterion::{Comparator, CriterionSpec};
use pubgauge_figures::distribution::{Bounds, TooFew};
use pubgauge_figures::figure::{Better, Figure, Unit, figure};
use pubgauge_figures::model::{CriterionOutcome, Excess, Status, Trial};
use pubgauge_figures::party::SlowestParty;

use crate::verdict::failures_decide;

/// The bearing of one trial on a criterion.
#[derive(Clone, Debug, PartialEq)]
pub struct Bearing {
    /// Whether it meets the criterion; `None` if that cannot be decided.
    pub met: Option<bool>,
    told: FigureForm,
}

/// The form in which a figure is told.
#[derive(Clone, Debug, PartialEq)]
enum FigureForm {
    Value(f64),
    /// That it is this or more.
    AtLeast(f64),
    /// That it is less than this.
    Below(f64),
    /// That it is this or less, and how much of it this excess is, is not known.
    AtMost(f64, Excess),
    /// A percentile that is between these, or above the first, and what it takes to know more.
    Between(Option<f64>, Option<f64>, Option<TooFew>),
    /// Its value, and the verdict that decides.
    Beside(f64, Status),
    /// Its value over all subscribers, and of which one it is this or more.
    OfOne(f64, f64, String),
    /// Its value, on a machine that other programs kept busy.
    Crowded(f64),
    /// Why there is none to compare.
    Reason(String),
}

impl Bearing {
    /// The figure in as few words as can be, with `show` for values: `p99 <= 3.87 ms` where it has an [`Excess`].
    /// `None` where there is none.
    pub fn brief(&self, name: &str, show: impl Fn(f64) -> String) -> Option<String> {
        Some(match &self.told {
            FigureForm::Value(value)
            | FigureForm::Beside(value, _)
            | FigureForm::Crowded(value) => format!("{name} {}", show(*value)),
            FigureForm::AtLeast(value) | FigureForm::Between(Some(value), None, _) => {
                format!("{name} >= {}", show(*value))
            }
            FigureForm::OfOne(_, value, who) => format!("{name} of {who} >= {}", show(*value)),
            FigureForm::AtMost(value, _) | FigureForm::Between(None, Some(value), _) => {
                format!("{name} <= {}", show(*value))
            }
            FigureForm::Below(value) => format!("{name} < {}", show(*value)),
            FigureForm::Between(Some(from), Some(to), _) => {
                format!("{name} {} to {}", show(*from), show(*to))
            }
            FigureForm::Between(None, None, _) | FigureForm::Reason(_) => return None,
        })
    }

    /// The figure as `show` writes it, or why there is none to compare.
    pub fn figure(&self, show: impl Fn(f64) -> String) -> String {
        match &self.told {
            FigureForm::Value(value) => show(*value),
            FigureForm::AtLeast(value) => format!("{} or more", show(*value)),
            FigureForm::Below(value) => format!("below {}", show(*value)),
            FigureForm::AtMost(value, excess) => {
                let value = show(*value);
                let why = match excess {
                    Excess::Lateness => "the client's own lateness included",
                    Excess::WarmingUp => "it was falling",
                };
                format!("at most {value} ({why})")
            }
            FigureForm::Between(from, to, few) => {
                let lies = match (from, to) {
                    (Some(from), Some(to)) => {
                        format!("between {} and {}", show(*from), show(*to))
                    }
                    (Some(from), None) => format!("{} or more", show(*from)),
                    (None, Some(to)) => format!("{} or less", show(*to)),
                    (None, None) => "not measured".to_owned(),
                };
                let why = few.map(|few| few.to_string());
                let why = why.unwrap_or("more messages would tell".into());
                format!("{lies}: {why}")
            }
            FigureForm::Beside(value, status) => format!("{}, {}", show(*value), status.as_str()),
            FigureForm::OfOne(value, one, who) => {
                format!(
                    "{} over all, {} or more for {who}",
                    show(*value),
                    show(*one)
                )
            }
            FigureForm::Crowded(value) => format!(
                "{}, while other programs kept the machine busy",
                show(*value)
            ),
            FigureForm::Reason(reason) => reason.clone(),
        }
    }

    /// The figure: at least and at most this, both the same where it is known; without ends where there is none. Of the
    /// slowest subscriber where that decided.
    pub fn range(&self) -> (Option<f64>, Option<f64>) {
        match self.told {
            FigureForm::Value(value)
            | FigureForm::Beside(value, _)
            | FigureForm::Crowded(value) => (Some(value), Some(value)),
            FigureForm::AtLeast(value) | FigureForm::OfOne(_, value, _) => (Some(value), None),
            FigureForm::Below(value) | FigureForm::AtMost(value, _) => (None, Some(value)),
            FigureForm::Between(from, to, _) => (from, to),
            FigureForm::Reason(_) => (None, None),
        }
    }

    /// The upper bound of the figure, where no more than that is known of it.
    pub fn at_most(&self) -> Option<f64> {
        match self.told {
            FigureForm::Below(value) | FigureForm::AtMost(value, _) => Some(value),
            _ => None,
        }
    }
}

/// Judges a criterion by one trial. The first of these that applies:
///
/// - The verdict is compared in every trial.
/// - A valid trial is compared, by a percentile's [`Bounds`]: both must be on the same side of the criterion's value.
///   Undecided where they are not (too few messages), where it lacks the figure, or where it misses the limit while other
///   programs kept the machine busy. An upper bound on a percentile of latency is also compared with that of the slowest
///   subscriber, where this is certainly beyond it. A one-way time that clocks of two hosts are known too badly for meets
///   an upper bound that it is below at all events.
/// - A broken trial in which the system failed ([`system_failed`](pubgauge_figures::Verdict::system_failed)) fails an upper bound on latency (also of round trips and
///   acknowledgements), loss or duplicates, and a lower bound on a rate; any other broken one measured nothing that
///   can be compared, and is undecided.
/// - Counts ([`figure`] names such as `lost`) are compared.
/// - An overloaded or lossy trial fails such bounds too, whatever it measured.
/// - A host-bound trial is compared by its rates.
/// - A client-bound trial meets a lower bound on a rate that it reached nevertheless.
/// - A client-bound or host-bound trial, or one whose latency fell, meets an upper bound on a time that counts from when a
///   message was due, if that contains the client's lateness and nothing else was amiss ([`Verdict::latency_is_upper_bound`](pubgauge_figures::Verdict::latency_is_upper_bound)).
/// - All other trials that are not valid are undecided.
pub fn bearing(trial: &Trial, criterion: &CriterionSpec) -> Bearing {
    use Comparator::{AtLeast, AtMost, Equal, Greater, Less};
    let said = |met, told| Bearing { met, told };
    let because = |reason: String| said(None, FigureForm::Reason(reason));
    let Some((asked, window)) = Figure::in_window(&criterion.figure) else {
        return because(no_such_figure(&criterion.figure));
    };
    let status = trial.verdict.status;
    let found = asked.value_in(trial, criterion.filter.flow.as_deref(), window);
    let holds = |value: f64| criterion.comparison.holds(value, criterion.value);
    let compared = |value: f64| said(Some(holds(value)), FigureForm::Value(value));
    let upper = matches!(criterion.comparison, Less | AtMost | Equal);
    let lower = matches!(criterion.comparison, Greater | AtLeast);
    let on_its_better_side = match asked.better {
        Better::Less => upper,
        Better::More => lower,
    };
    let demands = asked.promised && on_its_better_side;
    let below = asked.unquoted_at_most(trial, criterion.filter.flow.as_deref(), window);
    let below = below.filter(|most| matches!(criterion.comparison, Less | AtMost) && holds(*most));
    let beside_verdict = |met| {
        let told = match found {
            Ok(value) => FigureForm::Beside(value, status),
            Err(Some(few)) => FigureForm::Reason(format!("{few}, {}", status.as_str())),
            Err(None) => FigureForm::Reason(format!("no such figure, {}", status.as_str())),
        };
        said(met, told)
    };
    let one = slowest(trial, criterion, window).filter(|one| {
        matches!(criterion.comparison, Less | AtMost) && !holds(one.at_least_ns as f64)
    });
    let bounds = asked.bounds(trial, criterion.filter.flow.as_deref(), window);
    let bounds = bounds.filter(|_| criterion.comparison != Equal);
    match (status, found) {
        (_, Ok(value)) if asked.unit == Unit::Verdict => compared(value),
        (Status::Valid, Ok(value))
            if !asked.of_any_trial && !holds(value) && trial.verdict.others_busy.is_some() =>
        {
            said(None, FigureForm::Crowded(value))
        }
        (Status::Valid, Ok(value)) if one.is_some_and(|_| holds(value)) => {
            let (one, who) = one.map_or((value, String::new()), |one| {
                (one.at_least_ns as f64, one.party.to_string())
            });
            said(Some(false), FigureForm::OfOne(value, one, who))
        }
        (Status::Valid, found) if bounds.is_some_and(|bounds| bounds != Bounds::default()) => {
            let Bounds { at_least, at_most } = bounds.unwrap_or_default();
            let [at_least, at_most] = [at_least, at_most].map(|end| end.map(|ns| ns as f64));
            let is_upper = matches!(criterion.comparison, Less | AtMost);
            let (meets, fails) = if is_upper {
                (at_most, at_least)
            } else {
                (at_least, at_most)
            };
            let met = if meets.is_some_and(holds) {
                Some(true)
            } else if fails.is_some_and(|end| !holds(end)) {
                Some(false)
            } else {
                None
            };
            let told = match (met, found) {
                (Some(_), Ok(value)) => FigureForm::Value(value),
                (Some(_), Err(_)) => at_least.map_or(FigureForm::Between(at_least, at_most, None), FigureForm::AtLeast),
                (None, _) => FigureForm::Between(at_least, at_most, found.err().flatten()),
            };
            said(met, told)
        }
        (Status::Valid, Ok(value)) => compared(value),
        (Status::Valid, Err(Some(few))) => because(format!("not measured: {few}")),
        (Status::Valid, Err(None)) => match (below, trial.one_way) {
            (Some(most), _) => said(Some(true), FigureForm::Below(most)),
            (None, Some(_)) => because("not measured: there was none, it is out of sight, or the clocks of the hosts are not known well enough for it".to_owned()),
            (None, None) => because("not measured: there was none, or it is out of sight".to_owned()),
        },
        (Status::Broken, _) => {
            let fails = (demands && trial.verdict.system_failed).then_some(false);
            said(fails, FigureForm::Reason("broken".into()))
        }
        (_, Ok(value)) if asked.of_any_trial => compared(value),
        (Status::Overloaded | Status::Lossy, _) if demands => beside_verdict(Some(false)),
        (Status::HostBound, Ok(value)) if asked.unit == Unit::PerSecond => compared(value),
        (Status::SettingBound | Status::ClientBound, Ok(value)) if lower && asked.unit == Unit::PerSecond => {
            said(holds(value).then_some(true), FigureForm::AtLeast(value))
        }
        (Status::HostBound | Status::ClientBound | Status::Unsteady, found)
            if asked.has_lateness
                && matches!(criterion.comparison, Less | AtMost)
                && trial.verdict.excess().is_some() =>
        {
            let most = match bounds {
                Some(bounds) => bounds.at_most.map(|ns| ns as f64),
                None => found.ok(),
            };
            // Between hosts, clocks may hide some of it.
            let error = trial.one_way.and_then(|one_way| one_way.bound_ns);
            let most = most.map(|most| most + error.unwrap_or(0) as f64);
            match most.filter(|most| holds(*most)).zip(trial.verdict.excess()) {
                Some((most, excess)) => said(Some(true), FigureForm::AtMost(most, excess)),
                None => beside_verdict(None),
            }
        }
        _ => beside_verdict(None),
    }
}

/// The subscriber, or group, that is slowest at the percentile of latency that a criterion asks for, if it asks for one of
/// the whole measurement: of the flow that it names, or of all.
fn slowest<'a>(
    trial: &'a Trial,
    criterion: &CriterionSpec,
    window: Option<&str>,
) -> Option<&'a SlowestParty> {
    let (distribution, percentile) = criterion.figure.split_once('.')?;
    let of_latency = ["latency_ns", "latency_from_send_ns"].contains(&distribution);
    let parties = trial
        .parties
        .as_ref()
        .filter(|_| of_latency && window.is_none())?;
    parties.slowest_at(percentile, criterion.filter.flow.as_deref())
}

fn no_such_figure(name: &str) -> String {
    format!("there is no figure named {name:?}")
}

/// Evaluates a criterion over the trials of a run: not met if a trial fails it (of repeats that the machine disturbed most
/// must, see [`failures_decide`]), undecided if a trial is undecided or none applies, met otherwise.
pub fn evaluate(trials: &[Trial], criterion: &CriterionSpec) -> CriterionOutcome {
    let outcome = |met, figures: String| CriterionOutcome {
        criterion: criterion.text.clone(),
        met,
        figures,
    };
    if criterion.catalogued_figure().is_none() {
        return outcome(None, no_such_figure(&criterion.figure));
    }
    let matching = trials
        .iter()
        .filter(|trial| criterion.filter.lets_through(trial));
    let mut said: Vec<(&Trial, Bearing)> = matching.map(|t| (t, bearing(t, criterion))).collect();
    outvote(&mut said);
    if said.is_empty() {
        return outcome(None, "no trial bears on it".to_owned());
    }
    let show = |(trial, bearing): &(&Trial, Bearing)| {
        let mut words = vec![
            format!("{} {}", trial.system.name, trial.system.version),
            trial.workload.name.clone(),
        ];
        if !["", "default"].contains(&trial.settings_name.as_str()) {
            words.push(trial.settings_name.clone());
        }
        words.extend(trial.axes.iter().map(|axis| {
            let name = axis.name.rsplit('.').next().unwrap_or(&axis.name);
            format!("{name} = {}", axis.value)
        }));
        let words = words.join(", ");
        format!(
            "{words}, repeat {}: {}",
            trial.repeat,
            bearing.figure(|value| criterion.format_value(value))
        )
    };
    for met in [Some(false), None] {
        let some: Vec<String> = said.iter().filter(|s| s.1.met == met).map(show).collect();
        if some.is_empty() {
            continue;
        }
        let more = match some.len().saturating_sub(5) {
            0 => String::new(),
            n => format!("; and {n} more"),
        };
        let shown = some[..some.len().min(5)].join("; ");
        let undecided = if met.is_none() { "cannot tell: " } else { "" };
        return outcome(met, format!("{undecided}{shown}{more}"));
    }
    // The trial that came nearest to failing is shown.
    let flow = criterion.filter.flow.as_deref();
    let distance = |trial: &Trial| {
        let value = figure(trial, flow, &criterion.figure);
        value.map_or(f64::INFINITY, |value| (value - criterion.value).abs())
    };
    let closest = said
        .iter()
        .min_by(|a, b| distance(a.0).total_cmp(&distance(b.0)));
    let closest = closest.map(show).unwrap_or_default();
    let all = match said.len() {
        1 => String::new(),
        n => format!("all {n} trials; closest: "),
    };
    outcome(Some(true), format!("{all}{closest}"))
}

/// Leaves failures undecided that repeats of the same cell outvote.
fn outvote(said: &mut [(&Trial, Bearing)]) {
    let failed = |(trial, bearing): &(&Trial, Bearing)| {
        (bearing.met == Some(false)).then_some((trial.cell.clone(), trial.id))
    };
    let failures: BTreeSet<(String, u32)> = said.iter().filter_map(failed).collect();
    let has_failed = |trial: &Trial| failures.contains(&(trial.cell.clone(), trial.id));
    let cells: BTreeSet<String> = failures.iter().map(|(cell, _)| cell.clone()).collect();
    for cell in cells {
        let repeats: Vec<&Trial> = said
            .iter()
            .map(|(trial, _)| *trial)
            .filter(|trial| trial.cell == cell)
            .collect();
        if !failures_decide(&repeats, has_failed) {
            let of_cell = said.iter_mut().filter(|(trial, _)| trial.cell == cell);
            let failed = of_cell.filter(|(_, bearing)| bearing.met == Some(false));
            failed.for_each(|(_, bearing)| bearing.met = None);
        }
    }
}

#[cfg(test)]
mod tests;
