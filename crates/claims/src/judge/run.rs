//! The measurements of a run, as claims see them.

use std::collections::{BTreeMap, BTreeSet};

use pubgauge_figures::rule::{CellFilter, ClaimRule, admits};

use crate::curve::too_few;
use crate::finding::Lack;

/// The measurements of a run.
pub struct MeasuredRun<'a> {
    pub trials: Vec<Observation<'a>>,
    /// The limits that its searches found.
    pub limits: Vec<SearchedLimit>,
    /// Cells that it could not measure.
    pub absent: Vec<Absent>,
    /// Of each cell that ran on a network between hosts, what that network is, in the words of claims. Cells that are
    /// not listed ran on one host.
    pub networks: BTreeMap<CellKey, Vec<String>>,
    /// Whether what was undecided was repeated in rounds, and judged after each: see [`Observation::round`].
    pub in_rounds: bool,
    /// The scale at which the study was run, if that is not the whole study.
    pub scale: Option<String>,
    /// The day on which it began, as `2026-11-30`; `None` where that is not known.
    pub day: Option<String>,
    /// The rule of each claim in words when it began, by the claim's name; empty where that was not stored.
    pub claim_rules: BTreeMap<String, String>,
    /// A figure's value with its unit.
    pub show: &'a dyn Fn(&str, f64) -> String,
}

impl MeasuredRun<'_> {
    /// The trials of cells that a filter lets through, without those that show nothing of the system.
    pub(super) fn trials_of(&self, filter: &CellFilter) -> Result<Vec<&Observation<'_>>, Lack> {
        let all = || self.trials.iter().filter(|t| t.cell.passes(filter));
        let telling: Vec<&Observation<'_>> = all().filter(|t| t.void.is_none()).collect();
        if !telling.is_empty() {
            return Ok(telling);
        }
        Err(match all().find_map(|t| t.void.clone()) {
            Some(why) => Lack { why, ..too_few(0) },
            None => self.not_measured_for(filter).into(),
        })
    }

    /// Why nothing is known of a cell that the run does not have.
    fn not_measured_for(&self, filter: &CellFilter) -> String {
        let absent = self.absent.iter().find(|absent| absent.cell.passes(filter));
        match absent {
            Some(absent) => absent.reason.clone(),
            None => self.not_measured(),
        }
    }

    /// The reason for a cell that the run does not name either.
    pub(super) fn not_measured(&self) -> String {
        match &self.scale {
            Some(scale) => format!("not measured at scale {scale}"),
            None => "not measured in this run".to_owned(),
        }
    }

    /// The systems it has, once or more.
    pub(super) fn systems(&self) -> impl Iterator<Item = &String> {
        self.cells().map(|cell| &cell.system)
    }

    /// The properties that the networks of all measured cells of these rules share, in the words of claims; empty where one
    /// of the cells ran on one host. Of rules without a measured cell, what any network of the run is.
    pub(super) fn network_of(&self, rules: &[&ClaimRule]) -> Vec<&str> {
        let filters: Vec<CellFilter> = (rules.iter())
            .flat_map(|rule| {
                let sides = rule.sides.iter().chain(&rule.against);
                let alternatives = sides.flat_map(|side| &side.alternatives);
                alternatives.map(|filter| rule.cells(filter))
            })
            .collect();
        let about = |cell: &&CellKey| filters.iter().any(|filter| cell.passes(filter));
        let trials = self.trials.iter().map(|trial| &trial.cell);
        let measured = trials.chain(self.limits.iter().map(|limit| &limit.cell));
        let words = |cell: &CellKey| {
            let words = self.networks.get(cell).into_iter().flatten();
            words.map(String::as_str).collect::<BTreeSet<&str>>()
        };
        let common = measured.filter(about).map(words).reduce(|a, b| &a & &b);
        let any = || self.networks.values().flatten().map(String::as_str);
        common
            .unwrap_or_else(|| any().collect())
            .into_iter()
            .collect()
    }

    /// The cells that it has, once or more, measured or not.
    pub(super) fn cells(&self) -> impl Iterator<Item = &CellKey> {
        let trials = self.trials.iter().map(|trial| &trial.cell);
        let limits = self.limits.iter().map(|limit| &limit.cell);
        trials
            .chain(limits)
            .chain(self.absent.iter().map(|absent| &absent.cell))
    }
}

/// The cell that repeats have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellKey {
    pub system: String,
    /// Name of the variant of the settings.
    pub settings: String,
    pub workload: String,
    /// Axes of the grid with their values.
    pub axes: Vec<(String, String)>,
}

/// One trial.
pub struct Observation<'a> {
    pub cell: CellKey,
    /// Its number among the repeats.
    pub repeat: u32,
    /// The round of repeats that it belongs to, where what is undecided is repeated: 0 is that of the plan. Each round
    /// is a look at the data, so that later ones need a higher confidence.
    pub round: u32,
    /// Its verdict, as in `results.json`.
    pub verdict: String,
    /// Why it shows nothing of the system, whichever verdicts a rule counts: a hypervisor slowed the machine, say. `None`
    /// where it does.
    pub void: Option<String>,
    pub figures: &'a dyn Figures,
}

impl Observation<'_> {
    /// Whether it shows the system's limit. Those must not be left out: the rest would flatter it.
    pub(super) fn shows_limit_of_system(&self) -> bool {
        ["overloaded", "lossy", "broken"].contains(&&*self.verdict)
    }
}

/// The figures of a trial.
pub trait Figures {
    /// A figure, or a flow's own, by its name in studies; `None` where the trial does not show it.
    fn figure(&self, flow: Option<&str>, name: &str) -> Option<f64>;

    /// A figure, or a flow's own, second by second of the measurement; empty where there is no such series.
    fn windows(&self, flow: Option<&str>, name: &str) -> Vec<f64>;

    /// Whether something that was done in this trial alone, such as counting its system calls, changes a figure:
    /// it is then not compared with that of trials without.
    fn is_slowed(&self, _name: &str) -> bool {
        false
    }

    /// Whether a value of a figure is a time that contains the stops of a host which a quota holds, and so an upper bound:
    /// one below ten of the quota's periods.
    fn is_stretched(&self, _name: &str, _value: f64) -> bool {
        false
    }
}

/// A cell that a run could not measure, or of which it is not known what it measured there.
#[derive(Clone, Debug)]
pub struct Absent {
    pub cell: CellKey,
    /// Why nothing can be decided by it, in a sentence.
    pub reason: String,
}

/// The limit that a search found.
#[derive(Clone, Debug)]
pub struct SearchedLimit {
    pub cell: CellKey,
    /// Lower bound of its 95 % interval.
    pub low: f64,
    /// Upper bound; infinite where the system carries at least `low`.
    pub high: f64,
}

impl CellKey {
    /// Its value of a key of a filter: `system`, `settings`, `workload`, or an axis by its whole name or the
    /// last part of it.
    pub(super) fn value(&self, key: &str) -> Option<&str> {
        match key {
            "system" => Some(&self.system),
            "settings" => Some(&self.settings),
            "workload" => Some(&self.workload),
            key => {
                let named = |name: &str| name == key || name.rsplit('.').next() == Some(key);
                let axis = self.axes.iter().find(|(name, _)| named(name));
                axis.map(|(_, value)| value.as_str())
            }
        }
    }

    pub(crate) fn passes(&self, filter: &CellFilter) -> bool {
        filter
            .iter()
            .filter(|(key, _)| *key != "flow")
            .all(|(key, values)| {
                self.value(key)
                    .is_some_and(|value| values.iter().any(|allowed| admits(allowed, value)))
            })
    }
}
