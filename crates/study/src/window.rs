//! Named spans of the measurement, and checks of them.

use pubgauge_figures::figure::Figure;
use pubgauge_quantities::Span;
use pubgauge_workload::{Phases, Until};

use crate::clash::{Clash, Clashes};
use crate::file::{FlowFile, PhasesFile, PresenceOf, StudyFile, WorkloadFile};
use crate::phases::{check_record, resolve_phases};
use crate::search::{SHORT, SearchPlan};
use crate::unknown_name::not_of_study;

/// Most windows of a workload: each worker keeps histograms of each.
const MOST: usize = 32;

/// Checks the windows of a workload where they are written; `searched` says how its search proceeds, if it is searched.
pub(crate) fn check_of(
    study: &PhasesFile,
    workload: &WorkloadFile,
    index: usize,
    searched: Option<SearchPlan>,
    found: &mut Vec<Clash>,
) {
    let number = index.to_string();
    let own = ["workload", &number, "phases"];
    let base = if workload.phases.window.is_empty() {
        &["phases"][..]
    } else {
        &own
    };
    let mut phases = resolve_phases(study, &workload.phases);
    // All trials of a search have the windows: those without a length of their own, and the confirming one.
    if let (Some(search), Until::Time(length)) = (searched, phases.measure) {
        let is_given = workload.phases.measure.is_some() || study.measure.is_some();
        let length = if is_given { length } else { SHORT };
        phases.measure = Until::Time(length.min(search.long));
    }
    let mut clashes = Clashes::new(base, found);
    let absent = |flow: &FlowFile| {
        let presence = flow.presence.as_ref();
        presence.is_some_and(|presence| presence.of != Some(PresenceOf::Publishers))
    };
    if !phases.windows.is_empty() && workload.flow.iter().any(absent) {
        clashes.add(
            "window",
            "subscribers come and go (`presence`): what they get late belongs to no window",
        );
    }
    check(&phases, &mut clashes);

    let base = if workload.phases.record.is_none() {
        &["phases"][..]
    } else {
        &own
    };
    check_record(&phases, &mut Clashes::new(base, found));
}

fn check(phases: &Phases, clashes: &mut Clashes<'_>) {
    let windows = &phases.windows;
    if windows.len() > MOST {
        let message = format!("a measurement has at most {MOST} windows");
        clashes.add("window", message);
        return;
    }
    for (nth, window) in windows.iter().enumerate() {
        let number = nth.to_string();
        let mut clashes = clashes.below(&["window", &number]);
        if !is_name(&window.name) {
            let message = format!(
                "`{}` is no name of a window: small letters, digits and `-`, the first a letter",
                window.name
            );
            clashes.hinted("name", message, Some("such as \"during\"".into()));
        }
        if windows[..nth].iter().any(|other| other.name == window.name) {
            let message = format!("`{}` is there twice; names must differ", window.name);
            clashes.add("name", message);
        }
        if window.to <= window.from {
            let message = format!(
                "the window ends at {}, and begins at {}: it has no length",
                Span(window.to),
                Span(window.from)
            );
            clashes.hinted("to", message, Some("`to` is later than `from`".into()));
        }
        match phases.measure {
            Until::Time(end) if window.to > end => {
                let message = format!(
                    "the window ends at {}, but the measurement lasts {}",
                    Span(window.to),
                    Span(end)
                );
                let hint =
                    "make the measurement longer (`phases.measure`), or the window end with it";
                clashes.hinted("to", message, Some(hint.into()));
            }
            Until::Time(_) => {}
            Until::Count(..) => {
                let message = "a window needs a measurement of a length that is known beforehand";
                let hint =
                    "give `measure` a duration, such as \"90s\", instead of a number of messages";
                clashes.hinted("to", message, Some(hint.into()));
            }
        }
    }
}

/// Whether a window can have this name, so that it can stand after the `@` of a figure.
fn is_name(name: &str) -> bool {
    let may = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(may)
}

/// A figure's name without its window, and the window.
pub(crate) fn split(figure: &str) -> (&str, Option<&str>) {
    match figure.split_once('@') {
        Some((figure, window)) => (figure, Some(window)),
        None => (figure, None),
    }
}

/// Checks the figure of `figure@window`: windows do not have all figures.
pub(crate) fn check_figure(figure: &Figure, name: &str) -> Result<(), String> {
    let (name, Some(window)) = split(name) else {
        return Ok(());
    };
    if figure.of_windows() {
        Ok(())
    } else {
        Err(format!(
            "`{name}` is of the whole measurement; the window `{window}` has counts, rates, times, loss-share and system-cpu"
        ))
    }
}

/// The error in the windows that a figure, or a quotient of two, names; `None` if all exist.
pub(crate) fn unknown(figure: &str, study: &StudyFile) -> Option<String> {
    let own = study.workload.iter().map(|workload| &workload.phases);
    let phases = std::iter::once(&study.phases).chain(own);
    let names: Vec<&str> = phases.flat_map(|p| &p.window).map(|w| &*w.name).collect();
    let mut named = figure.split('/').filter_map(|one| split(one.trim()).1);
    let wrong = named.find(|name| !names.contains(name))?;
    if names.is_empty() {
        return Some(format!(
            "the study has no window `{wrong}`; add [[phases.window]] with `name`, `from` and `to`"
        ));
    }
    Some(not_of_study(wrong, "no window", &names))
}
