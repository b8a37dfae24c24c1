//! Phases of a trial.

use pubgauge_quantities::{Rate, Span};
use pubgauge_workload::{Phases, Until, Window};

use crate::clash::Clashes;
use crate::file::{PhasesFile, UntilFile};

/// The study's phases, with the workload's own on top.
pub(crate) fn resolve_phases(study: &PhasesFile, own: &PhasesFile) -> Phases {
    let default = Phases::default();
    let span = |own: Option<Span>, study: Option<Span>, default: u64| {
        own.or(study).map_or(default, |span| span.0)
    };
    let until = |own: &Option<UntilFile>, study: &Option<UntilFile>, default: Until| match own
        .as_ref()
        .or(study.as_ref())
    {
        None => default,
        Some(UntilFile::Time(span)) => Until::Time(span.0),
        Some(UntilFile::Count(count)) => Until::Count(count.messages, count.within.0),
    };
    Phases {
        connect_per_s: match own.connect_rate.or(study.connect_rate) {
            None | Some(Rate::Max) => None,
            Some(Rate::All(per_s) | Rate::Each(per_s)) => Some(per_s),
        },
        ready_within: span(own.ready_within, study.ready_within, default.ready_within),
        warm_up: until(&own.warm_up, &study.warm_up, default.warm_up),
        measure: until(&own.measure, &study.measure, default.measure),
        record: own.record.or(study.record).map(|span| span.0),
        drain_quiet: span(own.drain_quiet, study.drain_quiet, default.drain_quiet),
        drain_within: span(own.drain_within, study.drain_within, default.drain_within),
        reconnect_after: own
            .reconnect_after
            .or(study.reconnect_after)
            .map(|span| span.0),
        disconnects_allowed: own.allow_disconnects.or(study.allow_disconnects) == Some(true),
        losses_allowed: own.allow_losses.or(study.allow_losses) == Some(true),
        windows: windows(study, own),
    }
}

/// The windows of a workload: its own, or else the study's.
fn windows(study: &PhasesFile, own: &PhasesFile) -> Vec<Window> {
    let windows = if own.window.is_empty() {
        &study.window
    } else {
        &own.window
    };
    let window = windows.iter().map(|window| Window {
        name: window.name.clone(),
        from: window.from.0,
        to: window.to.0,
    });
    window.collect()
}

/// Checks that a measurement has as many records as a verdict needs, and no more than there is room for.
pub(crate) fn check_record(phases: &Phases, clashes: &mut Clashes<'_>) {
    let Some(record) = phases.record else {
        return;
    };
    let length = phases.measure.latest();
    let shortest = length.div_ceil(Phases::MOST_RECORDS);
    let shortest = shortest.max(Phases::SHORTEST_RECORD);
    let longest = length / Phases::FEWEST_RECORDS;
    if (shortest..=longest).contains(&record) {
        return;
    }
    let message = format!(
        "a measurement of {} would have {} records of {}; expected {} to {} of them, of {} or longer",
        Span(length),
        length / record.max(1),
        Span(record),
        Phases::FEWEST_RECORDS,
        Phases::MOST_RECORDS,
        Span(Phases::SHORTEST_RECORD)
    );
    let hint = if shortest <= longest {
        format!("a span from {} to {}", Span(shortest), Span(longest))
    } else {
        "leave it out, or make the measurement longer (`phases.measure`)".to_owned()
    };
    clashes.hinted("record", message, Some(hint));
}
