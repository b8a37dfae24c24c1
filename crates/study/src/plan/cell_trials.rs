//! The trials of a study's cells.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pubgauge_strict_toml::{InvalidInput, Node};
use pubgauge_workload::{SECOND, Trace, Until, Workload};

use crate::cells::{Cell, Crossed, add_trials, crossed};
use crate::clash::{Clash, Clashes};
use crate::file::{NamedSettings, StudyFile, WorkloadFile};
use crate::known::PlanOptions;
use crate::load::OpenLoad;
use crate::placing;
use crate::planned::{MAX_TRIALS, PlannedTrial};
use crate::resolve::{self, Traces};
use crate::search::{self, SearchPlan};
use crate::study::Study;
use crate::window;

/// The parts of a study that all its cells have in common.
pub(super) struct CellContext<'a> {
    pub(super) study: &'a Study,
    pub(super) base: &'a StudyFile,
    pub(super) options: &'a PlanOptions,
    pub(super) systems: &'a [String],
    pub(super) search: Option<SearchPlan>,
    /// [`Study::without_grids`].
    pub(super) bare: &'a Node,
    /// The workloads of which a load is searched for, as indices.
    pub(super) sought: &'a [usize],
    pub(super) seed: u64,
    /// The run decides how often each cell is measured.
    pub(super) rounds: bool,
}

/// The trials of the cells so far.
#[derive(Default)]
pub(super) struct CellTrials {
    pub(super) trials: Vec<PlannedTrial>,
    /// Traces that the trials replay.
    pub(super) traces: Vec<Arc<Trace>>,
    pub(super) notes: BTreeSet<String>,
}

/// A workload of a cell, as an index, with what it is crossed with.
type CellWorkload = (usize, Crossed, Arc<Workload>);

/// Clashes and notes of the workloads of a cell.
#[derive(Default)]
struct Findings {
    clashes: Vec<Clash>,
    notes: Vec<String>,
}

impl CellTrials {
    /// Adds the trials of a cell, of which these loads are open.
    ///
    /// # Errors
    /// Everything that is wrong with the cell.
    pub(super) fn add(
        &mut self,
        context: &CellContext<'_>,
        cell: &Cell<'_>,
        loads: &BTreeMap<usize, Arc<OpenLoad>>,
    ) -> Result<(), InvalidInput> {
        let tree = context.study.of_cell(cell, context.bare)?;
        let file = context.study.decode(&tree)?;
        let mut findings = Findings::default();
        let mut traces = Traces::new(&file.trace, &context.study.folder);
        let parts = (&file.phases, &file.client, &file.testbed);
        resolve::check_parts(parts, &mut Clashes::new(&[], &mut findings.clashes));
        let variants = file.variants();
        let mut workloads: Vec<CellWorkload> = Vec::new();
        for index in cell.workloads.iter().copied() {
            let crossed = match context.crossed(&file.workload[index], index, &variants) {
                Ok(crossed) => crossed,
                Err(why) => {
                    findings.notes.push(why);
                    continue;
                }
            };
            let open = loads.contains_key(&index);
            let resolved = context.workload(&file, index, open, &mut traces, &mut findings);
            workloads.push((index, crossed, resolved.into()));
        }
        let mut clashes = findings.clashes;
        // Several workloads may have the same windows.
        let mut known = BTreeSet::new();
        clashes.retain(|clash| known.insert((clash.path.clone(), clash.message.clone())));
        clashes.splice(0..0, traces.found.drain(..));
        self.traces.append(&mut traces.open);
        self.notes.extend(std::mem::take(&mut traces.notes));
        if !clashes.is_empty() {
            return Err(context.study.clashed(&tree, &clashes));
        }
        self.notes.extend(findings.notes);
        for workload in &workloads {
            let load = loads.get(&workload.0);
            self.add_placed(context, (cell, &tree, &file), workload, load)?;
        }
        Ok(())
    }

    /// Adds the trials of a workload of a cell, on the brokers of each of its systems.
    fn add_placed(
        &mut self,
        context: &CellContext<'_>,
        (cell, tree, file): (&Cell<'_>, &Node, &StudyFile),
        (nth, crossed, workload): &CellWorkload,
        load: Option<&Arc<OpenLoad>>,
    ) -> Result<(), InvalidInput> {
        let written = &file.workload[*nth];
        let more = crossed.trials().saturating_add(self.trials.len() as u64);
        if more > MAX_TRIALS as u64 {
            return Err(context
                .study
                .too_many(*nth, written, context.base, context.options));
        }
        let topology = written.topology.merge_over(&file.topology);
        let asked = topology.brokers;
        let brokers = |system: &str| placing::brokers_of(system, asked, &context.options.known);
        let counts = crossed.systems.iter().map(|system| brokers(system));
        let over = placing::first_unplaceable(workload, counts, &topology).map_err(|clash| {
            context
                .study
                .clashed(tree, &[clash.of_workload(file, *nth)])
        })?;
        self.notes.extend(placing::crossings(over.values()));
        let placed = |system: &str| {
            let count = brokers(system);
            (count, &over[&count])
        };
        add_trials(file, (*nth, load), cell, crossed, placed, &mut self.trials);
        Ok(())
    }
}

impl CellContext<'_> {
    /// The systems and settings of a workload, and how often it is repeated; or why it is left out.
    fn crossed(
        &self,
        workload: &WorkloadFile,
        index: usize,
        variants: &[NamedSettings],
    ) -> Result<Crossed, String> {
        // Beside other workloads a search is made once by default: its interval shows what repeats
        // would.
        let beside = self.sought.len() < self.base.workload.len();
        let seeks = self.sought.contains(&index);
        crossed(workload, self.systems, variants, |own| {
            if seeks && beside {
                own.unwrap_or(1)
            } else if self.rounds {
                // A template for each cell: the run decides how often it is measured.
                1
            } else {
                let repeats = self.options.repeats.or(own).or(self.base.repeats);
                repeats.unwrap_or(1)
            }
        })
    }

    /// A workload of a cell as plain data. `open`: a load of it is open.
    fn workload(
        &self,
        file: &StudyFile,
        index: usize,
        open: bool,
        traces: &mut Traces<'_>,
        findings: &mut Findings,
    ) -> Workload {
        let Findings { clashes, notes } = findings;
        let workload = &file.workload[index];
        let seeks = self.sought.contains(&index);
        let own = (&workload.phases, &workload.client, &workload.testbed);
        let place = ["workload", &index.to_string()];
        resolve::check_parts(own, &mut Clashes::new(&place, clashes));
        resolve::check_bed(file, index, clashes);
        let searched = self.search.filter(|_| seeks);
        window::check_of(&file.phases, workload, index, searched, clashes);
        let pacing = workload.client(&file.client).pacing_within;
        notes.extend(pacing.map(|span| {
            format!(
                "scheduled messages leave up to {span} after they are due (pacing-within): latency \
                 from the intended time contains that; latency from the actual send stands beside it"
            )
        }));
        let seed = self.seed.wrapping_add(index as u64);
        let said = (&mut *clashes, &mut *notes);
        let mut resolved = resolve::workload(workload, index, &file.phases, seed, traces, said);
        let measure = (workload.phases.measure.as_ref()).or(file.phases.measure.as_ref());
        if seeks && measure.is_none() {
            resolved.phases.measure = Until::Time(search::SHORT);
            resolved.stretch_curves();
        }
        if !seeks && !open && resolved.is_silent() {
            let seconds = |until: &Until| until.latest() as f64 / SECOND as f64;
            let phases = &resolved.phases;
            notes.push(format!(
                "{}: no message falls due within the measurement of {} s, after {} s of warm-up: nothing would be \
                 measured; a longer measure or a higher rate has some",
                resolved.name,
                seconds(&phases.measure),
                seconds(&phases.warm_up),
            ));
        }
        resolved
    }
}
