//! From a study to the list of trials.

mod cell_trials;

use std::collections::BTreeSet;
use std::sync::Arc;

use pubgauge_figures::rule::Claim;
use pubgauge_strict_toml::{InvalidInput, Node, Problem};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use self::cell_trials::{CellContext, CellTrials};
use crate::cells::Cell;
use crate::clash::Clash;
use crate::file::{StudyFile, Systems, TrialOrder, WorkloadFile};
use crate::known::PlanOptions;
use crate::places::restored;
use crate::planned::{MAX_TRIALS, Plan, PlannedTrial};
use crate::resolve;
use crate::study::{Study, path_fault};
use crate::unknown_name::no_such_system;

impl Study {
    /// The claims alone, to judge a run that was measured before their rules were changed.
    ///
    /// # Errors
    /// Everything that is wrong with the file and its claims.
    pub fn claims_alone(&self) -> Result<Vec<Claim>, InvalidInput> {
        let mut problems = Vec::new();
        let claims = self.claims(&self.file()?, &mut problems);
        if problems.is_empty() {
            Ok(claims)
        } else {
            Err(InvalidInput { problems })
        }
    }

    /// Plans the study: every combination of system, settings, workload and grid values, repeated
    /// and put in order. Reads the traces that it replays; starts nothing.
    ///
    /// # Errors
    /// Everything that is wrong with the study, at once as far as possible.
    pub fn plan(&self, options: &PlanOptions) -> Result<Plan, InvalidInput> {
        self.check_scales()?;
        let base = self.file()?;
        let mut problems = Vec::new();
        let systems = self.systems(&base, options, &mut problems);
        let criteria = self.criteria(&base, &mut problems);
        let claims = self.claims(&base, &mut problems);
        self.check_names(&base, &systems, &mut problems);
        let compare = self.compare(&base, options.repeats, &mut problems);
        self.check_crossing(&base, options, &mut problems);
        let search = self.search(&base.search, &mut problems);
        let cells = self.cells(&mut problems);
        let bare = self.without_grids();
        let seed = u64::from(base.seed.unwrap_or(1));
        let (loads, sought) = self.open_loads(&cells, &bare, seed, &mut problems);
        if !problems.is_empty() {
            return Err(InvalidInput { problems });
        }
        let context = CellContext {
            study: self,
            base: &base,
            options,
            systems: &systems,
            search,
            bare: &bare,
            sought: &sought,
            seed,
            rounds: compare.as_ref().is_some_and(|c| c.precision.is_some()),
        };
        let mut planned = CellTrials::default();
        for (cell, loads) in cells.iter().zip(&loads) {
            planned.add(&context, cell, loads)?;
        }
        let rounds = context.rounds;
        let CellTrials {
            mut trials,
            traces: mut held,
            notes: mut all_notes,
        } = planned;
        self.check_shares(&trials)?;
        let mut found = Vec::new();
        let recordings = resolve::recordings(&base, &self.folder, &mut found);
        if !found.is_empty() {
            return Err(self.clashed(&self.tree, &found));
        }
        if trials.is_empty() {
            return Err(self.nothing_left(all_notes));
        }
        let order = if rounds {
            TrialOrder::Listed
        } else {
            base.order.unwrap_or(TrialOrder::Random)
        };
        if let (true, Some(repeats)) = (rounds, base.repeats) {
            all_notes.insert(format!(
                "repeats = {repeats} counts for nothing: with a precision the run decides how often each cell is measured"
            ));
        }
        in_order(&mut trials, order, seed);
        held.dedup_by(|a, b| Arc::ptr_eq(a, b));
        let resolved = as_toml(&base)?;
        Ok(Plan {
            name: base.name,
            question: base.question,
            seed,
            shuffled: order == TrialOrder::Random,
            repeats: trials.iter().map(|t| t.repeat).max().unwrap_or(1),
            scale: self.scale.clone(),
            criteria,
            claims,
            recordings,
            unsupported: Vec::new(),
            notes: all_notes.into_iter().collect(),
            resolved: restored(&resolved, &self.tree),
            search: search.filter(|_| trials.iter().any(|trial| trial.seeks().is_some())),
            trials,
            compare,
            traces: held,
        })
    }

    /// That every workload is left out, with the reasons.
    fn nothing_left(&self, notes: BTreeSet<String>) -> InvalidInput {
        let left_out: Vec<String> = notes.into_iter().collect();
        let message = format!("nothing is left to run: {}", left_out.join("; "));
        InvalidInput::single(self.problem(&self.tree, &["workload"], message, None))
    }

    /// The tree of a cell.
    fn of_cell(&self, cell: &Cell<'_>, bare: &Node) -> Result<Node, InvalidInput> {
        cell.tree(bare).map_err(|(axis, fault)| {
            let message = path_fault(&cell.axes[axis].0, &fault);
            InvalidInput::single(self.problem(&self.tree, &["grid"], message, None))
        })
    }

    pub(crate) fn problem(
        &self,
        tree: &Node,
        path: &[&str],
        message: String,
        hint: Option<String>,
    ) -> Problem {
        self.sources.problem(Some(tree.locate(path)), message, hint)
    }

    /// More trials than a run may have, at the place of the repeats that make them, else of the grid.
    fn too_many(
        &self,
        nth: usize,
        workload: &WorkloadFile,
        base: &StudyFile,
        options: &PlanOptions,
    ) -> InvalidInput {
        let message =
            format!("there would be more than {MAX_TRIALS} trials, the most that a run may have");
        let nth = nth.to_string();
        let path: &[&str] = match (options.repeats, workload.repeats, base.repeats) {
            (Some(repeats), ..) if repeats > 1 => {
                return InvalidInput::plain(&format!("--repeats {repeats}"), message, None);
            }
            (None, Some(_), _) => &["workload", &nth, "repeats"],
            (None, None, Some(_)) => &["repeats"],
            _ => &["grid"],
        };
        InvalidInput::single(self.problem(&self.tree, path, message, None))
    }

    pub(crate) fn clashed(&self, tree: &Node, found: &[Clash]) -> InvalidInput {
        let mut problems: Vec<Problem> = found
            .iter()
            .map(|clash| {
                let path: Vec<&str> = clash.path.iter().map(String::as_str).collect();
                self.problem(tree, &path, clash.message.clone(), clash.hint.clone())
            })
            .collect();
        problems.dedup();
        InvalidInput { problems }
    }

    /// The systems to run on.
    fn systems(
        &self,
        base: &StudyFile,
        options: &PlanOptions,
        problems: &mut Vec<Problem>,
    ) -> Vec<String> {
        let from_flag = !options.on.is_empty();
        let names: &[String] = match &base.systems {
            _ if from_flag => &options.on[..],
            None => &options.known.found,
            Some(Systems::One(name)) => match name.as_str() {
                "available" => &options.known.found,
                "available-variants" => &options.known.found_variants,
                "first-look" => &options.known.first_look,
                _ => std::slice::from_ref(name),
            },
            Some(Systems::Many(names)) => names,
        };
        let mut unique: Vec<String> = Vec::new();
        for (nth, name) in names.iter().enumerate() {
            let known = &options.known.all;
            let number = nth.to_string();
            let mut wrong = |message: String, hint: Option<String>| {
                if from_flag {
                    let flag = format!("--on {name}");
                    problems.extend(InvalidInput::plain(&flag, message, hint.as_deref()).problems);
                } else {
                    problems.push(self.problem(&self.tree, &["systems", &number], message, hint));
                }
            };
            if unique.contains(name) {
                wrong(format!("system `{name}` is listed twice"), None);
            } else if !name.contains("://") && !known.is_empty() && !known.contains(name) {
                let (message, hint) = no_such_system(name, known);
                wrong(message, Some(hint));
            }
            unique.push(name.clone());
        }
        if names.is_empty() {
            let message = "there is no system to run on".to_string();
            let hint = "`pubgauge systems` lists what is known and how to install it".to_string();
            problems.push(self.problem(&self.tree, &["systems"], message, Some(hint)));
        }
        unique
    }
}

/// A study as it is stored beside its results.
fn as_toml(base: &StudyFile) -> Result<String, InvalidInput> {
    toml::to_string(base).map_err(|error| {
        let message = format!("cannot be stored as TOML: {error}");
        InvalidInput::plain(&base.name, message, None)
    })
}

/// Puts trials in order: all first repeats, then all second ones, and so on; shuffled within each.
/// Drift over time then affects all systems alike, and an interrupted run has complete repeats.
fn in_order(trials: &mut [PlannedTrial], order: TrialOrder, seed: u64) {
    // In place, unlike a stable sort.
    trials.sort_unstable_by_key(|trial| (trial.repeat, trial.listed));
    for repeat in trials.chunk_by_mut(|a, b| a.repeat == b.repeat) {
        for (listed, trial) in (0..).zip(repeat) {
            trial.listed = listed;
        }
    }
    if order == TrialOrder::Random {
        let mut draws = StdRng::seed_from_u64(seed);
        for repeat in trials.chunk_by_mut(|a, b| a.repeat == b.repeat) {
            repeat.shuffle(&mut draws);
        }
    }
    for (order, trial) in (0..).zip(trials) {
        trial.order = order;
    }
}
