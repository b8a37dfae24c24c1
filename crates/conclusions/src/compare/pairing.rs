//! Which cells of two runs, or of one, belong together.

use std::collections::BTreeSet;
use std::fmt;

use pubgauge_figures::{Results, Trial, processors};
use pubgauge_quantities::lists::{grouped, names};
use pubgauge_quantities::shown;

/// The part of a run that is one side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Only this system.
    pub system: Option<String>,
    /// Only this variant of the settings.
    pub settings: Option<String>,
}

/// Two cells to compare.
#[derive(Clone, Debug)]
pub struct Pair<'a> {
    /// The workload, and what else both have in common.
    pub title: String,
    /// Repeats of A.
    pub a: Vec<&'a Trial>,
    /// Repeats of B.
    pub b: Vec<&'a Trial>,
    /// Whether the repeats were measured in turns: all first ones, then all second ones, and so on.
    pub interleaved: bool,
}

/// All pairs, and the cells without a partner.
#[derive(Clone, Debug)]
pub struct Pairing<'a> {
    /// The pairs, in the order of A.
    pub pairs: Vec<Pair<'a>>,
    /// Cells and sides that are not compared.
    pub not_compared: Vec<NotCompared>,
    /// Differences between the sides apart from what is compared.
    pub remarks: Vec<String>,
}

/// Cells and sides that are not compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCompared {
    /// The cell, or the side.
    pub what: String,
    pub why: WhyNot,
}

/// Why something is not compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyNot {
    /// B has no such cell.
    OnlyInA,
    /// A has no such cell.
    OnlyInB,
    /// Another workload under the same name: that of A, and that of B.
    OtherWorkload(Box<[String; 2]>),
    /// So many trials of searches differ in load: they are no repeats of a cell.
    OfSearches(usize),
}

impl fmt::Display for NotCompared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.what)?;
        match &self.why {
            WhyNot::OnlyInA => f.write_str("only in A"),
            WhyNot::OnlyInB => f.write_str("only in B"),
            WhyNot::OtherWorkload(each) => {
                let [a, b] = &**each;
                write!(
                    f,
                    "another workload under the same name: {a} in A, {b} in B"
                )
            }
            WhyNot::OfSearches(trials) => write!(f, "{trials} trials of searches for a limit"),
        }
    }
}

/// Why there is nothing to compare.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Nothing {
    /// A chosen system or variant of the settings is not in the run.
    #[error("{side} has no {what} `{name}`\n  hint: it has {}", list(.there))]
    NoSuch {
        /// `A` or `B`.
        side: &'static str,
        /// `system`, `settings` or `workload`.
        what: &'static str,
        /// The name that was asked for.
        name: String,
        there: Vec<String>,
    },
    /// Both sides are the same trials.
    #[error("A and B are the same trials\n  hint: {}", name_choice(.systems, .settings))]
    SameTrials {
        /// The systems of the run.
        systems: Vec<String>,
        /// Its variants of the settings.
        settings: Vec<String>,
    },
    /// No cell of A has a partner.
    #[error("A and B have no cell in common that could be compared{}", lines(.why))]
    NoPair {
        /// Cell by cell, why.
        why: Vec<NotCompared>,
    },
}

fn list(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    }
}

fn name_choice(systems: &[String], settings: &[String]) -> String {
    match (systems, settings) {
        ([a, b, ..], _) => format!("name two systems of the run: --systems {a},{b}"),
        (_, [a, b, ..]) => format!("name two settings of the run: --settings {a},{b}"),
        _ => "name a second run".to_owned(),
    }
}

fn lines(why: &[NotCompared]) -> String {
    why.iter().map(|line| format!("\n  {line}")).collect()
}

/// The properties of a cell that must be equal on both sides.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CellKey {
    pub(super) workload: String,
    system: String,
    settings: String,
    /// Values of the grid's axes.
    pub(super) axes: Vec<String>,
}

impl CellKey {
    /// That of a trial, with all of them.
    pub(super) fn new(trial: &Trial) -> CellKey {
        CellKey {
            workload: trial.workload.name.clone(),
            system: trial.system.name.clone(),
            settings: trial.settings_name.clone(),
            axes: (trial.axes.iter())
                .map(|axis| format!("{} = {}", axis.name, axis.value))
                .collect(),
        }
    }

    /// The workload, and what else it has.
    pub(super) fn title(&self) -> String {
        let parts = [&self.workload, &self.system, &self.settings];
        listed(parts.into_iter().chain(&self.axes))
    }

    /// The system and the variant of the settings.
    pub(super) fn row(&self) -> String {
        listed([&self.system, &self.settings].into_iter())
    }
}

/// The parts that say something.
fn listed<'a>(parts: impl Iterator<Item = &'a String>) -> String {
    names(
        parts
            .filter(|part| !part.is_empty() && *part != "default")
            .map(String::as_str),
    )
}

/// Pairs the cells of two runs: those with the same workload, system, settings and axes. Where
/// choices name systems or settings, these need not be equal on both sides; nor need the systems,
/// if each side has only one.
///
/// # Errors
/// If a choice names nothing, or nothing can be compared.
pub fn pair<'a>(
    runs: [&'a Results; 2],
    choices: [&Choice; 2],
    workload: Option<&str>,
) -> Result<Pairing<'a>, Nothing> {
    const SIDES: [&str; 2] = ["A", "B"];
    let searched = SIDES.into_iter().zip(runs).filter_map(|(side, run)| {
        let of_searches = run.trials.iter().filter(|t| run.is_of_search(t)).count();
        (of_searches > 0).then(|| NotCompared {
            what: side.to_owned(),
            why: WhyNot::OfSearches(of_searches),
        })
    });
    let searched: Vec<NotCompared> = searched.collect();
    let mut sides: Vec<Vec<&Trial>> = Vec::new();
    for ((side, run), choice) in SIDES.into_iter().zip(runs).zip(choices) {
        let compared = |trial: &&Trial| !run.is_of_search(trial);
        let all: Vec<&Trial> = run.counted().filter(compared).collect();
        if all.is_empty() && !searched.is_empty() {
            return Err(Nothing::NoPair { why: searched });
        }
        let chosen = narrowed(side, "system", all, choice.system.as_deref(), system)?;
        let chosen = narrowed(
            side,
            "settings",
            chosen,
            choice.settings.as_deref(),
            settings,
        )?;
        sides.push(narrowed(side, "workload", chosen, workload, |t| {
            &t.workload.name
        })?);
    }
    let same_run = std::ptr::eq(runs[0], runs[1]);
    if same_run
        && sides[0]
            .iter()
            .any(|t| sides[1].iter().any(|o| std::ptr::eq(*t, *o)))
    {
        return Err(Nothing::SameTrials {
            systems: names_of(&runs[0].trials, system),
            settings: names_of(&runs[0].trials, settings),
        });
    }
    let systems = [0, 1].map(|side| names_of(sides[side].iter().copied(), system));
    let apart = systems[0].len() == 1 && systems[1].len() == 1;
    let key = |trial: &Trial, own: &Choice, other: &Choice| {
        let mut key = CellKey::new(trial);
        if apart || own.system != other.system {
            key.system.clear();
        }
        if own.settings != other.settings {
            key.settings.clear();
        }
        key
    };
    // The cells of each side, in the order of their first trials.
    let cells = [0, 1].map(|side| {
        let (own, other) = (choices[side], choices[1 - side]);
        let trials = sides[side].iter();
        grouped(trials.map(|&trial| (key(trial, own, other), trial)))
    });
    let mut pairing = Pairing {
        pairs: Vec::new(),
        not_compared: searched,
        remarks: remarks(runs, &systems, &sides),
    };
    for (key, a) in &cells[0] {
        let title = key.title();
        let partner = cells[1].iter().find(|(other, _)| other == key);
        let apart = match partner {
            Some((_, b)) => other_workload(a[0], b[0]),
            None => Some(WhyNot::OnlyInA),
        };
        match (apart, partner) {
            (Some(why), _) => pairing.not_compared.push(NotCompared { what: title, why }),
            (None, None) => {}
            (None, Some((_, b))) => pairing.pairs.push(Pair {
                title,
                interleaved: same_run && in_turns(a, b),
                a: a.clone(),
                b: b.clone(),
            }),
        }
    }
    let only = cells[1]
        .iter()
        .filter(|(key, _)| !cells[0].iter().any(|(k, _)| k == key));
    let only = only.map(|(key, _)| NotCompared {
        what: key.title(),
        why: WhyNot::OnlyInB,
    });
    pairing.not_compared.extend(only);
    if pairing.pairs.is_empty() {
        let why = pairing.not_compared;
        return Err(Nothing::NoPair { why });
    }
    Ok(pairing)
}

fn system(trial: &Trial) -> &str {
    &trial.system.name
}

fn settings(trial: &Trial) -> &str {
    &trial.settings_name
}

/// The trials with a chosen name.
fn narrowed<'a>(
    side: &'static str,
    what: &'static str,
    trials: Vec<&'a Trial>,
    name: Option<&str>,
    of: impl Fn(&Trial) -> &str,
) -> Result<Vec<&'a Trial>, Nothing> {
    let Some(name) = name else { return Ok(trials) };
    let chosen: Vec<&Trial> = trials.iter().copied().filter(|t| of(t) == name).collect();
    if !chosen.is_empty() {
        Ok(chosen)
    } else {
        Err(Nothing::NoSuch {
            side,
            what,
            name: name.to_owned(),
            there: names_of(trials, of),
        })
    }
}

fn names_of<'a>(
    trials: impl IntoIterator<Item = &'a Trial>,
    of: impl Fn(&Trial) -> &str,
) -> Vec<String> {
    let names: BTreeSet<&str> = trials.into_iter().map(of).collect();
    names.into_iter().map(str::to_owned).collect()
}

/// The trial of each repeat that counts: the last, because a run in rounds repeats spoilt ones.
pub(super) fn standing<'a>(trials: impl Iterator<Item = &'a Trial>) -> Vec<&'a Trial> {
    let mut standing: Vec<&Trial> = Vec::new();
    for trial in trials {
        match standing.iter_mut().find(|t| t.repeat == trial.repeat) {
            Some(earlier) => *earlier = trial,
            None => standing.push(trial),
        }
    }
    standing
}

/// Whether the trials of both, in the order in which they ran, are in the order of their repeats.
fn in_turns(a: &[&Trial], b: &[&Trial]) -> bool {
    let mut all: Vec<(u32, u32)> = a.iter().chain(b).map(|t| (t.id, t.repeat)).collect();
    all.sort_unstable();
    all.is_sorted_by_key(|(_, repeat)| *repeat)
}

/// Why two workloads of one name differ; `None` if they are alike.
fn other_workload(a: &Trial, b: &Trial) -> Option<WhyNot> {
    let (a, b) = (workload_words(a), workload_words(b));
    (a != b).then(|| WhyNot::OtherWorkload([a, b].into()))
}

/// The workload of a trial, by which those of one name are told apart.
pub(super) fn workload_words(trial: &Trial) -> String {
    let w = &trial.workload;
    format!(
        "{} -> {}, {} topics, {}, {}",
        w.publishers, w.subscribers, w.topics, w.payload, w.arrivals
    )
}

/// Differences between two runs apart from what is compared.
fn remarks(runs: [&Results; 2], systems: &[Vec<String>; 2], sides: &[Vec<&Trial>]) -> Vec<String> {
    let facts = |side: usize| {
        let (machine, trials) = (&runs[side].machine, &sides[side]);
        let lengths = trials.iter().map(|t| format!("{:.1} s", t.duration_s));
        let lengths: Vec<String> = lengths.collect::<BTreeSet<_>>().into_iter().collect();
        let of_run = [
            ("the processor", machine.cpu_model.clone()),
            (
                "the number of processors",
                shown::three_decimals(processors::available(machine.cores, machine.quota_cores)),
            ),
            ("the kernel", machine.kernel.clone()),
            ("the version of pubgauge", machine.pubgauge_version.clone()),
            ("the length of the measurement", lengths.join(", ")),
        ];
        let of_run = of_run.map(|(what, fact)| (what.to_owned(), fact));
        let both = systems[0].iter().filter(|name| systems[1].contains(name));
        let versions = both.map(|name| {
            let of = trials.iter().find(|t| t.system.name == *name);
            let version = of.map_or(String::new(), |t| t.system.version.clone());
            (format!("the version of {name}"), version)
        });
        of_run.into_iter().chain(versions).collect::<Vec<_>>()
    };
    let both = facts(0).into_iter().zip(facts(1));
    let different = both.filter(|((_, a), (_, b))| a != b);
    different
        .map(|((what, a), (_, b))| format!("{what} differs: {a} in A, {b} in B"))
        .collect()
}
