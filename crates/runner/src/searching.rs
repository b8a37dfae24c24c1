//! A search over stored trials: the finding of each, the next load, and the result. Pure: a search that
//! was cut off continues from the trials on disk.

mod bottleneck;
mod bursts;

use pubgauge_figures::criterion::{Comparator, CriterionSpec};
use pubgauge_figures::figure::{Figure, figure};
use pubgauge_figures::model::{PublisherWindow, Reason, Rule, Status, Trial};
use pubgauge_figures::search::{NoteOf, Purpose, Search, SearchNote, SearchStep, SearchTrial};
use pubgauge_results::criterion::bearing;
use pubgauge_search::{
    Axis, Faces, LimitEstimate, LimitedBy, Question, Step, StepOutcome, StepTaken, Wander,
    estimate_limit,
};

use bottleneck::{as_measured, gave_way};

/// Seconds that starting, connecting and stopping add to a trial's phases.
const AROUND_S: f64 = 1.0;
/// The next trial of search `number`, after the trials of the run.
pub fn next(
    question: &Question,
    axis: Axis,
    number: u32,
    trials: &[Trial],
    criteria: &[CriterionSpec],
) -> Step {
    let own = trials_of_search(axis, number, trials, criteria);
    pubgauge_search::next(question, &steps_taken(axis, &own))
}

/// A trial of a search, with its step and what it tells.
struct JudgedTrial<'a> {
    trial: &'a Trial,
    step: SearchStep,
    /// How much of the load the system delivered, in the load's unit.
    achieved: f64,
    finding: StepOutcome,
    why: Vec<String>,
}

/// The trials of a search.
fn trials_of_search<'a>(
    axis: Axis,
    number: u32,
    trials: &'a [Trial],
    criteria: &[CriterionSpec],
) -> Vec<JudgedTrial<'a>> {
    let own = trials.iter().filter_map(|trial| {
        let step = trial.search.filter(|step| step.search == number)?;
        let (finding, why) = judge_step(axis, trial, criteria);
        Some(JudgedTrial {
            trial,
            step,
            achieved: achieved(axis, trial, step.load),
            finding,
            why,
        })
    });
    own.collect()
}

fn steps_taken(axis: Axis, own: &[JudgedTrial<'_>]) -> Vec<StepTaken> {
    let one = |told: &JudgedTrial<'_>| StepTaken {
        step: match (told.step.purpose, told.step.load) {
            (_, None) | (Purpose::FlatOut, _) => Step::FlatOut,
            (Purpose::Short, Some(load)) => Step::Short(load),
            (Purpose::Long, Some(load)) => Step::Long(load),
            (Purpose::Cost, Some(load)) => Step::Cost(load),
        },
        offered: told.trial.messages.published_msgs_per_s,
        achieved: told.achieved,
        finding: told.finding,
        seconds: seconds(told.trial),
        cost: cost_s(told.trial).filter(|_| axis != Axis::Burst),
        took: clients_taken(axis, told),
    };
    own.iter().map(one).collect()
}

/// Processor time of client and system for a delivery, s.
fn cost_s(trial: &Trial) -> Option<f64> {
    let us = |name| figure(trial, None, name).filter(|us| *us > 0.0);
    let client = us("client-cpu-per-message")?;
    Some((client + us("system-cpu-per-message").unwrap_or(0.0)) / 1e6)
}

/// How long a trial took, s. Where that is not stored, it is about as long as its phases.
pub fn seconds(trial: &Trial) -> f64 {
    if trial.took_s > 0.0 {
        trial.took_s
    } else {
        AROUND_S
            + trial.connections.connect_s
            + trial.connections.ready_s
            + trial.duration_s
            + trial.drain.seconds
    }
}

/// The step of a search as a trial stores it; `None` at its end.
pub fn stored_step(number: u32, step: Step) -> Option<SearchStep> {
    let (purpose, load) = match step {
        Step::FlatOut => (Purpose::FlatOut, None),
        Step::Short(load) => (Purpose::Short, Some(load)),
        Step::Long(load) => (Purpose::Long, Some(load)),
        Step::Cost(load) => (Purpose::Cost, Some(load)),
        Step::End => return None,
    };
    Some(SearchStep {
        search: number,
        purpose,
        load,
    })
}

/// How long a system that keeps running needs to deliver what a trial has left in it and in the buffers
/// before it, s; otherwise the next trial would include that. At most 60 s.
pub fn settling_s(trial: &Trial) -> f64 {
    const MARGIN: f64 = 1.25;
    const MOST_S: f64 = 60.0;
    let left = trial.series.last().map_or(0, |last| last.traffic.backlog);
    let needed = left as f64 / trial.messages.delivered_msgs_per_s.max(1.0) * MARGIN;
    needed.min(MOST_S)
}

/// How much of a load the system delivered, in the load's unit.
fn achieved(axis: Axis, trial: &Trial, load: Option<f64>) -> f64 {
    // Where no measured message was taken, because earlier ones were still waiting, those of the warm-up tell
    // how many deliveries each has.
    let earlier = trial.at_start;
    let (messages, deliveries) = match trial.messages.published {
        0 => (earlier.published, earlier.delivered + earlier.backlog),
        // Deliveries of messages that were due while their publisher was not connected are expected too.
        published => (
            published + trial.messages.not_connected,
            trial.messages.expected,
        ),
    };
    let fan = match messages {
        0 => 1.0,
        messages => deliveries as f64 / messages as f64,
    };
    let taken = if fan > 0.0 {
        trial.messages.delivered_msgs_per_s / fan
    } else {
        0.0
    };
    match load.filter(|_| axis != Axis::Rate) {
        None => taken,
        Some(load) => {
            load * (taken / trial.messages.offered_msgs_per_s.max(f64::MIN_POSITIVE)).min(1.0)
        }
    }
}

/// The finding of a trial, and why it is not within what was asked for. A trial that was not steady is
/// compared with what was asked for as well: one whose varying latency stays below the limit is within, one
/// that exceeds it is beyond. A growing queue is not variation: such a trial is overloaded.
///
/// Where other programs left too little of the machine, or a hypervisor took time of it, a load beyond the limit may be
/// due to them: the finding is then that of a client-bound trial.
///
/// Of a search over bursts (`axis`) only this is asked: whether every burst arrived whole and in time. A
/// client that is busy handing bursts over does not count against it.
pub fn judge_step(
    axis: Axis,
    trial: &Trial,
    criteria: &[CriterionSpec],
) -> (StepOutcome, Vec<String>) {
    let (finding, why) = of_system(axis, trial, criteria, &trial.verdict.sentences());
    let stolen = trial.verdict.reason(Rule::TimeStolen);
    let by_others =
        (trial.verdict.others_busy.as_ref().or(stolen)).map(|reason| reason.text.clone());
    let Some(crowd) = by_others.filter(|_| finding == StepOutcome::Beyond) else {
        return (finding, why);
    };
    let others = trial.verdict.reasons.iter();
    let others =
        others.filter(|reason| ![Rule::OthersBusy, Rule::TimeStolen].contains(&reason.rule));
    let others: Vec<String> = others.map(Reason::to_string).collect();
    let (_, mut why) = of_system(axis, trial, criteria, &others);
    why.insert(0, crowd);
    (StepOutcome::Client, why)
}

/// `reasons` are those of the verdict that count.
fn of_system(
    axis: Axis,
    trial: &Trial,
    criteria: &[CriterionSpec],
    reasons: &[String],
) -> (StepOutcome, Vec<String>) {
    let reasons = reasons.to_vec();
    match trial.verdict.status {
        Status::Valid
        | Status::HostBound
        | Status::SettingBound
        | Status::TooShort
        | Status::Unsteady
        | Status::ClientBound
        | Status::Overloaded
        | Status::Lossy
            if axis == Axis::Burst =>
        {
            if let Some(told) = bursts::judge_bursts(trial, &reasons) {
                return told;
            }
        }
        // A client host of a given size is a part of what is asked about.
        Status::HostBound | Status::Overloaded | Status::Lossy => {
            return (StepOutcome::Beyond, reasons);
        }
        Status::Broken
            if !trial.circumstances.system_died.is_empty()
                || turned_away(axis, trial)
                || too_large(axis, trial) =>
        {
            return (StepOutcome::Beyond, reasons);
        }
        // A window of the settings holds the client back.
        Status::SettingBound => return (StepOutcome::Client, reasons),
        // A load that stayed within although others had the processors stays within without them.
        Status::ClientBound if !only_others(trial) => return (StepOutcome::Client, reasons),
        Status::Broken => return (StepOutcome::Nothing, reasons),
        // A rate that is known less exactly is where the search begins.
        Status::TooShort if !trial.workload.flat_out => return (StepOutcome::Nothing, reasons),
        Status::Valid | Status::TooShort | Status::Unsteady | Status::ClientBound => {}
    }
    // One copy of the trial for all criteria.
    let measured = as_measured(trial);
    let mut missed = Vec::new();
    let mut unknown = Vec::new();
    let on = criteria.iter().filter(|c| c.filter.lets_through(trial));
    for criterion in on {
        let bearing = bearing(&measured, criterion);
        let words = format!(
            "{}: {}",
            criterion.text,
            bearing.figure(|value| criterion.format_value(value))
        );
        match bearing.met {
            Some(true) => {}
            Some(false) => missed.push(words),
            None if all_within(&measured, criterion) => {}
            // Near the limit a percentile itself decides: a search repeats its trials there.
            None => match figure(
                &measured,
                criterion.filter.flow.as_deref(),
                &criterion.figure,
            ) {
                Some(value) if criterion.comparison.holds(value, criterion.value) => {}
                Some(_) => missed.push(words),
                None => unknown.push(words),
            },
        }
    }
    match (missed.is_empty(), unknown.is_empty()) {
        (false, _) => (StepOutcome::Beyond, missed),
        (true, false) => (StepOutcome::Nothing, unknown),
        (true, true) => (StepOutcome::Within, Vec::new()),
    }
}

/// Whether a search for a number of clients met a system that took some of them and not all, and not because the client
/// itself ran out of something.
fn turned_away(axis: Axis, trial: &Trial) -> bool {
    let connections = trial.connections;
    matches!(axis, Axis::Publishers | Axis::Subscribers)
        && trial.circumstances.exhausted.is_none()
        && (1..connections.planned).contains(&connections.made)
}

/// Whether a search for a size met one that the system does not take.
fn too_large(axis: Axis, trial: &Trial) -> bool {
    axis == Axis::Payload && trial.shortfall.too_large > 0
}

/// Whether nothing is held against a trial but that other programs had processors that the system waited for.
fn only_others(trial: &Trial) -> bool {
    let reasons = &trial.verdict.reasons;
    !reasons.is_empty() && reasons.iter().all(|reason| reason.rule == Rule::OthersBusy)
}

/// How many of the clients that are searched for were taken, where others of them were turned away.
fn clients_taken(axis: Axis, told: &JudgedTrial<'_>) -> Option<f64> {
    let trial = told.trial;
    let away = told.finding == StepOutcome::Beyond
        && trial.verdict.status == Status::Broken
        && turned_away(axis, trial);
    let connections = trial.connections;
    let took =
        told.step.load? - (connections.planned - connections.made.min(connections.planned)) as f64;
    (away && took >= 1.0).then_some(took)
}

/// Where there are too few messages for the percentile that a criterion limits: whether the largest value of all is
/// within that limit. A search that begins with few messages can go on.
fn all_within(measured: &Trial, criterion: &CriterionSpec) -> bool {
    let is_upper = matches!(criterion.comparison, Comparator::Less | Comparator::AtMost);
    Figure::in_window(&criterion.figure)
        .filter(|(figure, _)| is_upper && figure.quantile().is_some())
        .is_some_and(|(figure, window)| {
            let (of, _) = figure.name.split_once('.').unwrap_or((&figure.name, ""));
            let window = window.map_or(String::new(), |window| format!("@{window}"));
            let largest = CriterionSpec {
                figure: format!("{of}.max{window}"),
                ..criterion.clone()
            };
            bearing(measured, &largest).met == Some(true)
        })
}

/// The result of a search, from the trials of the run.
pub fn conclude(
    question: &Question,
    axis: Axis,
    number: u32,
    trials: &[Trial],
    criteria: &[CriterionSpec],
    template: Search,
) -> Search {
    let own = trials_of_search(axis, number, trials, criteria);
    let found = estimate_limit(question, &steps_taken(axis, &own));
    let gave_in = gave_in(&own, &found);
    Search {
        low: found.low,
        high: found.high,
        confirmed: found.confirmed,
        bound: found.bound,
        notes: notes(axis, question, &found, gave_in, &own),
        bursts: bursts::at_limit(axis, &found, &own),
        gave_way: gave_in.map(|told| gave_way(told.trial, &told.why, criteria)),
        trials: own
            .iter()
            .map(|told| SearchTrial {
                id: told.trial.id,
                purpose: told.step.purpose,
                load: told.step.load,
                achieved: told.achieved,
                finding: told.finding,
                why: told.why.clone(),
            })
            .collect(),
        ..template
    }
}

/// The trial that shows what limited the load: of those beyond the limit the nearest to it.
fn gave_in<'o, 'a>(
    own: &'o [JudgedTrial<'a>],
    found: &LimitEstimate,
) -> Option<&'o JudgedTrial<'a>> {
    let at = found.high.or(found.low)?;
    let wanted = match found.bound {
        LimitedBy::Client => StepOutcome::Client,
        _ => StepOutcome::Beyond,
    };
    let off = |load: f64| (load / at).ln().abs();
    let of = |wanted: StepOutcome| {
        let own = own.iter().filter(|told| told.step.purpose != Purpose::Cost);
        let own = own.filter(move |told| told.finding == wanted);
        let own = own.filter_map(|told| Some((told, told.step.load?)));
        own.min_by(|(_, a), (_, b)| off(*a).total_cmp(&off(*b)))
    };
    let (told, _) = of(wanted).or_else(|| of(StepOutcome::Nothing))?;
    Some(told)
}

/// The window that was the limit of a trial.
fn full_window<'a>(told: &JudgedTrial<'a>) -> Option<&'a PublisherWindow> {
    let bound = told.trial.verdict.has(Rule::WindowFull);
    told.trial.publisher_window.as_ref().filter(|_| bound)
}

/// How trials contradict each other.
fn two_faces(faces: &Faces, own: &[JudgedTrial<'_>]) -> String {
    let (failed, within) = (faces.failed, faces.within);
    let between = deciding(own).filter(|(_, load)| (failed..=within).contains(load));
    let (all, stayed) = between.fold((0_u32, 0_u32), |(all, stayed), (told, _)| {
        let one = u32::from(told.finding == StepOutcome::Within);
        (all + 1, stayed + one)
    });
    let carried = match faces.low {
        Some(low) => format!("It carries {low} in any case, and at times {within}"),
        None => {
            format!("It carries {within} at times, and no load was found that it always carries")
        }
    };
    format!(
        "the system is not the same from trial to trial: of {all} trials at {failed} to {within}, {stayed} stayed within \
         what was asked for and {} did not. {carried}: no one limit is both",
        all - stayed
    )
}

/// That trials below the lower end of the interval failed.
fn failed_below(low: f64, own: &[JudgedTrial<'_>]) -> Option<String> {
    let failed =
        deciding(own).filter(|(told, load)| *load < low && told.finding == StepOutcome::Beyond);
    let mut loads: Vec<f64> = failed.map(|(_, load)| load).collect();
    loads.sort_by(f64::total_cmp);
    let below = deciding(own).filter(|(_, load)| *load < low).count();
    let words: Vec<String> = loads.iter().map(f64::to_string).collect();
    (!loads.is_empty()).then(|| {
        format!(
            "{} of {below} trials below that did not stay within what was asked for: at {}",
            loads.len(),
            words.join(", ")
        )
    })
}

/// The trials that decide, with their loads.
fn deciding<'o, 'a>(
    own: &'o [JudgedTrial<'a>],
) -> impl Iterator<Item = (&'o JudgedTrial<'a>, f64)> {
    let deciding = own.iter().filter(|told| {
        let told_it = matches!(told.finding, StepOutcome::Within | StepOutcome::Beyond);
        told_it && told.step.purpose != Purpose::Cost
    });
    deciding.filter_map(|told| Some((told, told.step.load?)))
}

fn notes(
    axis: Axis,
    question: &Question,
    found: &LimitEstimate,
    gave_in: Option<&JudgedTrial<'_>>,
    own: &[JudgedTrial<'_>],
) -> Vec<SearchNote> {
    let mut notes = Vec::new();
    if let Some(at_limit) = bursts::at_limit(axis, found, own) {
        let text = bursts::describe_rate(&at_limit);
        notes.push(note(NoteOf::Bursts, text));
    }
    notes.extend(bound_note(question, found, gave_in, own));
    let mut add = |of, text: String| notes.push(note(of, text));
    if let Some(faces) = found.faces {
        add(NoteOf::TwoFaces, two_faces(&faces, own));
    } else if let Some(text) = found.low.and_then(|low| failed_below(low, own)) {
        add(NoteOf::FailedBelow, text);
    }
    if let Some(Wander { least, most, .. }) = found.wander {
        let so = match found.high {
            Some(_) => "the interval holds the limits at the slowest and at the fastest",
            None => "the limit was lower then",
        };
        add(
            NoteOf::CostVaried,
            format!(
                "client and system spent from {:.2} to {:.2} µs for a delivery, {:.0} % more at times: the machine, or the \
             system, was slower for a while; {so}",
                least * 1e6,
                most * 1e6,
                (most / least - 1.0) * 100.0
            ),
        );
    }
    if own
        .iter()
        .any(|told| told.trial.circumstances.earlier_trials > 0)
    {
        add(NoteOf::KeepRunning,
            "the system was not started anew between trials (keep-running): the interval is that of one start, \
             and another start may carry more or less"
                .to_owned(),
        );
    }
    if found.given_up {
        let why = own.last().and_then(|told| told.why.first());
        let why = why.map_or(String::new(), |why| format!(": {why}"));
        add(
            NoteOf::GivenUp,
            format!("the search was given up after trials in a row that told nothing{why}"),
        );
    }
    if found.low.is_none() && found.bound == LimitedBy::System {
        add(
            NoteOf::NoneWithin,
            "no load stayed within what was asked for".to_owned(),
        );
    }
    notes.extend(confirmation_note(found, own));
    let mut add = |of, text: String| notes.push(note(of, text));
    let died = gave_in.is_some_and(|told| !told.trial.circumstances.system_died.is_empty());
    if died {
        add(
            NoteOf::SystemEnded,
            "the system ended under a load beyond the limit".to_owned(),
        );
    }
    if found.low.is_none() && found.high.is_none() && !found.given_up {
        let why = own.last().and_then(|told| told.why.first());
        why.into_iter()
            .for_each(|why| add(NoteOf::LastTrial, why.clone()));
    }
    notes
}

fn note(of: NoteOf, text: impl Into<String>) -> SearchNote {
    SearchNote {
        of,
        text: text.into(),
    }
}

/// Why the interval has no upper end, or is wide, where the system is not the reason.
fn bound_note(
    question: &Question,
    found: &LimitEstimate,
    gave_in: Option<&JudgedTrial<'_>>,
    own: &[JudgedTrial<'_>],
) -> Option<SearchNote> {
    let spent = format!(
        "the search's {} trials or {:.0} s were spent",
        question.most_trials, question.most_seconds
    );
    let others = gave_in.is_some_and(|told| told.trial.verdict.others_busy.is_some());
    let found_note = match (found.bound, gave_in.and_then(full_window)) {
        (LimitedBy::System, _) => return None,
        (LimitedBy::Client, _) if others => note(
            NoteOf::OthersBusy,
            "other programs kept the machine busy above that: the system carries at least so much. A machine \
             that does nothing else would show more",
        ),
        (LimitedBy::Client, Some(full)) => note(
            NoteOf::Window,
            format!(
                "a window held the publishers back above that ({full}): the system carries at least so much. A larger \
                 window would show more"
            ),
        ),
        (LimitedBy::Client, None) => note(
            NoteOf::Client,
            "the client was the bottleneck above that: the system carries at least so much. More workers \
             (--publisher-workers, --subscriber-workers), processes (--processes) or processors would show \
             more",
        ),
        (LimitedBy::Budget, _) if found.given_up && !bursts::late(own) => return None,
        (LimitedBy::Budget, _) => match (found.low, found.high) {
            (Some(low), None) if low >= question.most => note(
                NoteOf::LargestCarried,
                "the largest load that is tried was not too much",
            ),
            (Some(_), None) if bursts::late(own) => note(NoteOf::BurstsLate, bursts::at_least()),
            (Some(low), Some(high)) => note(
                NoteOf::Wide,
                format!(
                    "the interval is {:.0} % wide: {spent} before it was narrower",
                    (high / low - 1.0) * 100.0
                ),
            ),
            (None, Some(high)) => note(
                NoteOf::AllTooMuch,
                format!(
                    "no load from {high} on stayed within: {spent} before a smaller one was tried"
                ),
            ),
            _ => note(
                NoteOf::Spent,
                "the search's trials or time were spent before anything could be told",
            ),
        },
    };
    Some(found_note)
}

/// How far long trials bear the interval out, where they do not.
fn confirmation_note(found: &LimitEstimate, own: &[JudgedTrial<'_>]) -> Option<SearchNote> {
    if found.long_only {
        return Some(note(
            NoteOf::LongOnly,
            "what short trials promised did not last: the interval is that of long trials alone",
        ));
    }
    if found.confirmed.is_some() || found.low.is_none() {
        return None;
    }
    let ran = own.iter().any(|told| told.step.purpose == Purpose::Long);
    Some(if ran {
        note(
            NoteOf::NotConfirmed,
            "no long trial near the lower end stayed within what was asked for",
        )
    } else {
        note(NoteOf::NoLongTrial, "no long trial was run to confirm it")
    })
}
