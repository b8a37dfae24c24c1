//! Searches for a limit as they are shown: their names, and their results in few words.

use pubgauge_figures::figure::per_message;
use pubgauge_figures::search::{
    Axis, GaveWay, LimitedBy, NoteOf, Purpose, Search, SearchTrial, StepOutcome,
};
use pubgauge_figures::{Results, System, Trial};
use pubgauge_quantities::lists::{grouped, names, unique};
use pubgauge_quantities::shown;
use pubgauge_quantities::stats::mean;

use crate::naming;
use crate::summary::{Cell, Summary, WorkloadCells};
use crate::{answers, workload};

/// The text in place of the confirmed load where no long trial stayed within what was asked.
const NOT_CONFIRMED: &str = "not confirmed";
/// Share of the confirmed load (or of the limit) below which a trial for the cost counts as one at
/// 50 %, else as one at 90 %.
const HALF: f64 = 0.7;

/// One search.
pub(crate) struct Sought<'a> {
    /// Its number in the run, from 0.
    pub number: usize,
    pub search: &'a Search,
    /// Its name among all searches of the run.
    pub label: String,
    /// Its name among the searches that it is compared with.
    pub row: String,
    /// Place of the system in [`Summary::systems`].
    pub system_index: usize,
    /// Whether it is of the reference broker.
    pub reference: bool,
    /// The trials, in the order in which they ran.
    pub tried: Vec<Tried<'a>>,
}

/// One trial of a search.
pub(crate) struct Tried<'a> {
    /// Its entry in the search.
    pub step: &'a SearchTrial,
    /// Its figures.
    pub trial: Option<&'a Trial>,
}

/// Searches of one workload over one axis, which are compared with each other.
pub(crate) struct SearchGroup<'s, 'a> {
    /// The workload in one line, without what was searched for.
    pub words: String,
    /// The demands, in words.
    pub asked: Vec<String>,
    /// Whether pubgauge's default applies to some of them.
    pub by_default: bool,
    /// The searches.
    pub members: Vec<&'s Sought<'a>>,
}

/// The searches of a run, in its order.
pub(crate) fn searches_of<'a>(results: &'a Results, summary: &Summary<'_>) -> Vec<Sought<'a>> {
    let each = results.searches.iter().enumerate().map(|(number, search)| {
        let tried = search.trials.iter().map(|step| Tried {
            step,
            trial: results.trials.iter().find(|trial| trial.id == step.id),
        });
        Sought {
            number,
            search,
            label: String::new(),
            row: String::new(),
            system_index: summary.position(&search.system),
            reference: pubgauge_conclusions::is_reference(&search.system),
            tried: tried.collect(),
        }
    });
    let mut all: Vec<Sought<'a>> = each.collect();
    name(&mut all);
    all
}

/// The workload and the axis, which searches that are compared with each other have in common.
fn compared_by(search: &Search) -> (&str, Axis) {
    (&search.workload, search.axis)
}

/// Names searches like rows of the table: by what differs, first among those that are compared. A
/// search is no cell, so each is represented by a trial without its load: its own trials have the
/// loads too.
fn name(all: &mut [Sought<'_>]) {
    let stand_ins = all.iter().map(|sought| {
        let search = sought.search;
        let first = sought.tried.iter().find_map(|tried| tried.trial);
        Trial {
            system: System {
                name: search.system.clone(),
                version: first.map_or(String::new(), |t| t.system.version.clone()),
            },
            settings_name: search.settings.clone(),
            axes: search.axes.clone(),
            mappings: first.map_or(Vec::new(), |t| t.mappings.clone()),
            ..Trial::default()
        }
    });
    let stand_ins: Vec<Trial> = stand_ins.collect();
    let first = all.first().map(|sought| sought.search);
    let differs = |same: fn(&Search, &Search) -> bool| {
        let mut searches = all.iter().map(|sought| sought.search);
        searches.any(|search| first.is_some_and(|first| !same(first, search)))
    };
    let workloads = differs(|a, b| a.workload == b.workload);
    let axes = differs(|a, b| a.axis == b.axis);
    let numbered = all.iter().enumerate();
    let groups = grouped(numbered.map(|(at, sought)| (compared_by(sought.search), at)));
    for ((workload, axis), alike) in groups {
        let mut cells: Vec<_> = alike
            .iter()
            .map(|at| Cell::from_trial(&stand_ins[*at]))
            .collect();
        naming::name(&mut cells);
        for (at, cell) in alike.into_iter().zip(cells) {
            let (workload, axis) = (workloads.then_some(workload), axes.then(|| axis.name()));
            let parts = [&cell.label[..]].into_iter().chain(workload).chain(axis);
            all[at].label = parts.collect::<Vec<_>>().join(", ");
            all[at].row = cell.label;
        }
    }
}

/// Searches that are compared with each other, in the order of the run.
pub(crate) fn groups<'s, 'a>(results: &Results, all: &'s [Sought<'a>]) -> Vec<SearchGroup<'s, 'a>> {
    let groups = grouped(
        all.iter()
            .map(|sought| (compared_by(sought.search), sought)),
    );
    let group = |(_, members): (_, Vec<&'s Sought<'a>>)| {
        let search = members[0].search;
        let cells = members.iter().filter_map(|sought| sought.stand_in());
        let workload = WorkloadCells {
            name: search.workload.clone(),
            flat_out: false,
            points: vec![naming::GridPoint::default()],
            cells: cells.map(Cell::from_trial).collect(),
        };
        let (mut asked, mut by_default) = answers::demands_in_words(results, &workload);
        if search.axis == Axis::Burst {
            // A search over bursts has no default limit of latency.
            if std::mem::take(&mut by_default) {
                asked.clear();
            }
            let whole = "every burst arrives whole, before the next one begins";
            asked.insert(0, whole.to_owned());
        }
        SearchGroup {
            words: if workload.cells.is_empty() {
                search.workload.clone()
            } else {
                workload::words_without(&workload, Some(search.axis))
            },
            asked,
            by_default,
            members,
        }
    };
    groups.into_iter().map(group).collect()
}

impl<'a> Sought<'a> {
    /// A trial that represents what all of them were asked for: one with a load, because flat out
    /// nothing is asked of latency.
    fn stand_in(&self) -> Option<&'a Trial> {
        let paced = self.tried.iter().filter(|tried| tried.step.load.is_some());
        paced.chain(&self.tried).find_map(|tried| tried.trial)
    }

    /// Its trials, as the table of all trials shows them.
    pub fn workload(&self) -> WorkloadCells<'a> {
        let cells = self.tried.iter().filter_map(|tried| {
            let mut cell = Cell::from_trial(tried.trial?);
            cell.label = format!(
                "{}, {}",
                self.load_of(tried.step),
                purpose(tried.step.purpose)
            );
            cell.row.clone_from(&cell.label);
            Some(cell)
        });
        WorkloadCells {
            name: format!("the search on {}", self.label),
            flat_out: false,
            points: vec![naming::GridPoint::default()],
            cells: cells.collect(),
        }
    }

    /// The load of a trial: `41.2k msg/s`, `flat out`.
    pub fn load_of(&self, step: &SearchTrial) -> String {
        step.load
            .map_or("flat out".to_owned(), |load| self.load(load))
    }

    /// A load with its unit: `41.2k msg/s`, `1.20 KiB`, `120 publishers`.
    pub fn load(&self, value: f64) -> String {
        self.search.axis.format_load(value)
    }

    /// A load without its unit, unless it is one of size.
    fn amount(&self, value: f64) -> String {
        self.search.axis.amount(value)
    }

    /// The limit with its interval: `41.2k to 44.8k msg/s`, `at least 96k msg/s (client)`, `none:
    /// 1 msg/s was too much`, `below 10k msg/s (budget)`.
    pub fn limit(&self) -> String {
        let search = self.search;
        let bound = match search.bound {
            LimitedBy::System => "",
            LimitedBy::Client if search.notes.iter().any(|note| note.of == NoteOf::Window) => {
                " (window)"
            }
            LimitedBy::Client => " (client)",
            LimitedBy::Budget => " (budget)",
        };
        match (search.low, search.high) {
            (Some(low), Some(high)) => {
                format!("{} to {}{bound}", self.amount(low), self.load(high))
            }
            (Some(low), None) => format!("at least {}{bound}", self.load(low)),
            (None, high) => {
                let beyond = self.tried.iter().map(|tried| tried.step);
                let beyond = beyond.filter(|step| step.finding == StepOutcome::Beyond);
                let least = beyond.filter_map(|step| step.load).min_by(f64::total_cmp);
                match least.or(high) {
                    // Smaller loads were not tried.
                    Some(load) if search.bound == LimitedBy::Budget => {
                        format!("below {}{bound}", self.load(load))
                    }
                    Some(load) => format!("none: {} was too much{bound}", self.load(load)),
                    None => format!("not known{bound}"),
                }
            }
        }
    }

    /// The load that a long trial stayed within, and how long that was measured: `41.2k for 60 s`; where none
    /// did, [`NOT_CONFIRMED`]. `None`: no limit was found that could be confirmed.
    pub fn confirmed(&self) -> Option<String> {
        let Some(confirmed) = self.search.confirmed else {
            return self.search.low.map(|_| NOT_CONFIRMED.to_owned());
        };
        let long = self.tried.iter().rev().find(|tried| {
            let step = tried.step;
            let there = step
                .load
                .is_some_and(|load| (load / confirmed - 1.0).abs() < 1e-6);
            there && step.purpose == Purpose::Long && step.finding == StepOutcome::Within
        });
        let lasted = long
            .and_then(|tried| tried.trial)
            .map(|trial| trial.duration_s);
        let lasted = lasted.map_or(String::new(), |s| format!(" for {} s", shown::brief(s)));
        Some(self.amount(confirmed) + &lasted)
    }

    /// The load that counts as the limit where loads are shown as shares of it: the middle of the
    /// interval (geometric mean), or the load that the system carries at least.
    pub fn middle(&self) -> Option<f64> {
        match (self.search.low, self.search.high) {
            (Some(low), Some(high)) => Some((low * high).sqrt()),
            (low, _) => low,
        }
    }

    /// Processor time of the system per delivery, ns, at about `share` of the limit (0.5, 0.9); of the
    /// client where the system works inside it. Only of trials within what was asked.
    pub fn cost_ns(&self, share: f64) -> Option<f64> {
        let whole = self.search.confirmed.or(self.middle())?;
        let fits = |tried: &&Tried<'_>| {
            let step = tried.step;
            step.purpose == Purpose::Cost
                && step.finding == StepOutcome::Within
                && step
                    .load
                    .is_some_and(|load| (load / whole < HALF) == (share < HALF))
        };
        let figures = self.tried.iter().filter(fits).filter_map(|tried| {
            let trial = tried.trial?;
            let seconds = if trial.system_in_client() {
                trial.client_cpu_s.total()
            } else {
                trial.system_cpu_s?
            };
            Some(per_message(seconds, trial)? * 1e3)
        });
        mean(figures)
    }

    /// Whether the system works inside the client, so that its cost is the client's.
    pub fn in_client(&self) -> bool {
        let mut trials = self.tried.iter().filter_map(|tried| tried.trial);
        trials.any(Trial::system_in_client)
    }
}

/// Whose cost it is where the system works inside the client; empty if none of these does.
pub(crate) fn cost_words(members: &[&Sought<'_>]) -> String {
    let inside = members.iter().filter(|sought| sought.in_client());
    let inside = unique(inside.map(|sought| sought.row.as_str()));
    match &inside[..] {
        [] => String::new(),
        [one] => format!("{one} works inside the client: its cost is the client's processor time."),
        all => format!(
            "{} work inside the client: their cost is the client's processor time.",
            all.join(", ")
        ),
    }
}

/// The notes of searches, each once, with the names of its searches.
pub(crate) fn notes(members: &[&Sought<'_>]) -> Vec<String> {
    let notes = members.iter().flat_map(|sought| {
        let notes = sought.search.notes.iter();
        notes.map(|note| (&note.text, sought.row.as_str()))
    });
    let words = grouped(notes).into_iter();
    words
        .map(|(note, labels)| format!("{}: {note}", names(labels)))
        .collect()
}

/// The limit of the load, with its figure: `thread 98 %`.
pub(crate) fn gave_way(gave_way: &GaveWay) -> String {
    let figure = gave_way.unit.show_in_full(gave_way.figure);
    format!("{} {figure}", gave_way.what.name())
}

/// The words for findings, with their meanings.
pub(crate) const FINDINGS: [(StepOutcome, &str, &str); 4] = [
    (
        StepOutcome::Within,
        "within",
        "A trial of a search that stayed within everything that was asked.",
    ),
    (
        StepOutcome::Beyond,
        "beyond",
        "A trial of a search in which the system did not stay within what was asked.",
    ),
    (
        StepOutcome::Client,
        "client",
        "A trial of a search in which the client was the bottleneck: the system may carry more.",
    ),
    (
        StepOutcome::Nothing,
        "nothing",
        "A trial of a search that tells nothing of its load: it was not steady, or broken.",
    ),
];

/// The word for a finding, and its meaning.
pub(crate) fn finding(finding: StepOutcome) -> (&'static str, &'static str) {
    let found = FINDINGS.iter().find(|(known, _, _)| *known == finding);
    found.map_or(("", ""), |(_, word, meaning)| (word, meaning))
}

/// The word for what a trial of a search is for.
pub(crate) fn purpose(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::FlatOut => "flat out",
        Purpose::Short => "short",
        Purpose::Long => "long",
        Purpose::Cost => "cost",
    }
}
