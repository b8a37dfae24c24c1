//! What a run measures next: the trials of its plan one by one, the next step of its searches, or the next
//! of the rounds in which cells are compared. Pure but for what this host can open: a run that was cut off
//! goes on from what is stored.

use std::collections::BTreeMap;

use pubgauge_results::criterion::{Comparison, CriterionSpec, Filter};
use pubgauge_results::model::Trial;
use pubgauge_results::search::{Bound, Purpose, Search, SearchStep};
use pubgauge_results::store::RunFolder;
use pubgauge_runner::searching::{self, stored_step};
use pubgauge_search::{Question, Step};
use pubgauge_study::{Axis, Plan, PlannedTrial, SearchPlan};
use pubgauge_workload::SECOND;

use crate::args::ClientArgs;
use crate::exit::Ending;
use crate::pairs::Pairs;
use crate::prepare::Prepared;
use crate::{capacity, criteria};

/// The 99th percentile of latency that a search stays within where its study says nothing of latency, ns.
const P99_NS: f64 = 100e6;

/// A trial to run.
pub struct Proposal {
    /// The trial.
    pub trial: PlannedTrial,
    /// Its place in a search.
    pub search: Option<SearchStep>,
    /// Processes on each side, if one process is not enough for it.
    pub processes: Option<u32>,
}

/// Decides what is measured next.
pub struct Proposer<'a> {
    prepared: &'a Prepared,
    client: ClientArgs,
    /// Criteria as trials are evaluated by.
    pub criteria: Vec<CriterionSpec>,
    /// For each trial of the plan whose value is searched for: the largest load that fits this host.
    fits: BTreeMap<u32, (f64, Option<String>)>,
    processes: Option<u32>,
    /// What is compared with what.
    pub pairs: Option<Pairs>,
}

impl<'a> Proposer<'a> {
    /// Over a plan, for trials of which so many processes are enough.
    ///
    /// # Errors
    /// If not even the smallest load of a search fits this host, or nothing can be compared that should be.
    pub fn new(
        prepared: &'a Prepared,
        client: &ClientArgs,
        processes: Option<u32>,
    ) -> Result<Proposer<'a>, Ending> {
        let mut proposer = Proposer {
            criteria: specs(&prepared.plan),
            prepared,
            client: client.clone(),
            fits: BTreeMap::new(),
            processes,
            pairs: Pairs::of(&prepared.plan)?,
        };
        if let Some(search) = &prepared.plan.search {
            for trial in &prepared.plan.trials {
                let fits = proposer.largest(search, trial)?;
                proposer.fits.insert(trial.order, fits);
            }
        }
        Ok(proposer)
    }

    /// What to measure after what is stored; `None` at the end.
    ///
    /// # Errors
    /// If a load is not possible.
    pub fn next(&self, folder: &RunFolder) -> Result<Option<Proposal>, Ending> {
        let plan = &self.prepared.plan;
        if let (Some(_), Some(pairs)) = (plan.rounds(), &self.pairs) {
            let done = &folder.results().trials;
            return Ok(pairs.next(done).map(|(at, round)| {
                let mut trial = plan.trials[at].clone();
                (trial.repeat, trial.order) = (round, done.len() as u32);
                Proposal {
                    trial,
                    search: None,
                    processes: self.processes,
                }
            }));
        }
        let Some(search) = &plan.search else {
            let left = |trial: &&PlannedTrial| !folder.has(trial.order, &trial.cell);
            return Ok(plan.trials.iter().find(left).map(|trial| Proposal {
                trial: trial.clone(),
                search: None,
                processes: self.processes,
            }));
        };
        let done = &folder.results().trials;
        for (number, template) in (0..).zip(&plan.trials) {
            let question = self.question(search, template);
            let step = searching::next(&question, search.axis.name(), number, done, &self.criteria);
            let Some(stored) = stored_step(number, step) else {
                continue;
            };
            let length = match step {
                Step::Long(_) => search.long,
                _ => search.short,
            };
            let mut trial = search
                .at(template, stored.load, length)
                .map_err(Ending::bad_input)?;
            let cell = |other: &&Trial| other.cell == trial.cell;
            trial.repeat = done.iter().filter(cell).count() as u32 + 1;
            trial.order = done.len() as u32;
            return Ok(Some(Proposal {
                processes: self.processes_for(&trial)?,
                search: Some(stored),
                trial,
            }));
        }
        Ok(None)
    }

    /// What the searches have found so far.
    pub fn searches(&self, done: &[Trial]) -> Vec<Search> {
        let plan = &self.prepared.plan;
        let Some(search) = &plan.search else {
            return Vec::new();
        };
        let one = |(number, template): (u32, &PlannedTrial)| {
            let mine = |trial: &&Trial| trial.search.is_some_and(|step| step.search == number);
            let first = done.iter().find(mine)?;
            let about = Search {
                system: first.system.name.clone(),
                settings: template.settings_name.clone(),
                workload: template.workload.name.clone(),
                axes: first
                    .axes
                    .iter()
                    .filter(|a| a.name != search.axis.name())
                    .cloned()
                    .collect(),
                axis: search.axis.name().into(),
                ..Search::default()
            };
            let question = self.question(search, template);
            let axis = search.axis.name();
            let mut found =
                searching::conclude(&question, axis, number, done, &self.criteria, about);
            // A load that this host cannot even ask for is the client's limit.
            if let Some((most, Some(why))) = self.fits.get(&template.order)
                && found.high.is_none()
                && found.low == Some(*most)
            {
                found.bound = Bound::Client;
                found.notes = vec![format!("more than {most} does not fit this host: {why}")];
            }
            Some(found)
        };
        (0..).zip(&plan.trials).filter_map(one).collect()
    }

    fn question(&self, search: &SearchPlan, template: &PlannedTrial) -> Question {
        let (least, most) = search.axis.range();
        let fits = self
            .fits
            .get(&template.order)
            .map_or(most, |(most, _)| *most);
        Question {
            flat_out: search.axis == Axis::Rate,
            whole: search.axis != Axis::Rate,
            start: fits.min(match search.axis {
                Axis::Rate => 100.0,
                Axis::Payload | Axis::Burst => 64.0,
                _ => 1.0,
            }),
            least,
            most: fits,
            width: search.width,
            most_trials: search.trials as usize,
            most_seconds: search.budget as f64 / SECOND as f64,
        }
    }

    /// The largest load of a search that this host can ask for, and what is short beyond it.
    fn largest(
        &self,
        search: &SearchPlan,
        template: &PlannedTrial,
    ) -> Result<(f64, Option<String>), Ending> {
        let (least, most) = search.axis.range();
        if search.axis == Axis::Rate {
            return Ok((most, None));
        }
        let fits = |load: f64| {
            let trial = search
                .at(template, Some(load), search.short)
                .map_err(Ending::bad_input)?;
            self.processes_for(&trial).map(|_| ())
        };
        let Err(mut why) = fits(most) else {
            return Ok((most, None));
        };
        fits(least)?;
        let (mut low, mut high) = (least, most);
        while high - low > 1.0_f64.max(0.01 * low) {
            let middle = ((low + high) / 2.0).floor();
            match fits(middle) {
                Ok(()) => low = middle,
                Err(error) => (high, why) = (middle, error),
            }
        }
        let why = why.message.lines().next().unwrap_or_default().to_owned();
        Ok((low, Some(why)))
    }

    fn processes_for(&self, trial: &PlannedTrial) -> Result<Option<u32>, Ending> {
        capacity::check([trial], &self.prepared.systems, &self.client)
    }
}

/// Criteria of a plan, and what searches keep to beside them.
pub fn specs(plan: &Plan) -> Vec<CriterionSpec> {
    let mut specs: Vec<CriterionSpec> = plan
        .criteria
        .iter()
        .map(|c| criteria::spec(c, plan))
        .collect();
    let of_time = |spec: &CriterionSpec| {
        spec.figure.contains("latency") || spec.figure.contains("round_trip")
    };
    // A burst takes as long as it takes.
    let of_rates = |search: &SearchPlan| search.axis != Axis::Burst;
    if plan.search.as_ref().is_some_and(of_rates) && !specs.iter().any(of_time) {
        specs.push(default_criterion());
    }
    specs
}

/// What every search keeps to whose study says nothing of latency.
pub fn default_criterion() -> CriterionSpec {
    CriterionSpec {
        text: "latency p99 <= 100 ms (every search without a criterion on latency)".into(),
        figure: "latency_ns.p99".into(),
        comparison: Comparison::AtMost,
        value: P99_NS,
        filter: Filter::default(),
    }
}

/// How far a search is, in one line.
pub fn so_far(search: &Search) -> String {
    let show = |load: f64| match search.axis.as_str() {
        "rate" => format!(
            "{} msg/s",
            pubgauge_report::units::count(load.round() as u64)
        ),
        "payload" => format!("{load} B"),
        "burst" => format!("{load} messages"),
        axis => format!("{load} {axis}"),
    };
    let last = search.trials.last();
    let told = last.map_or("", |trial| match (trial.purpose, trial.finding) {
        (Purpose::FlatOut | Purpose::Cost, _) => "",
        (_, pubgauge_results::search::Finding::Within) => "within; ",
        (_, pubgauge_results::search::Finding::Beyond) => "beyond; ",
        (_, pubgauge_results::search::Finding::Client) => "client-bound; ",
        (_, pubgauge_results::search::Finding::Nothing) => "tells nothing; ",
    });
    match (search.low, search.high) {
        (Some(low), Some(high)) => format!("{told}limit between {} and {}", show(low), show(high)),
        (Some(low), None) => format!("{told}limit above {}", show(low)),
        (None, Some(high)) => format!("{told}limit below {}", show(high)),
        (None, None) => format!("{told}limit not known yet"),
    }
}
