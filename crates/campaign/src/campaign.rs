//! The trials of a run, one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use pubgauge_driver::Tls;
use pubgauge_figures::comparison::PairComparison;
use pubgauge_figures::model::Trial;
use pubgauge_figures::search::{NotMeasured, Search};
use pubgauge_figures::{Results, on_request};
use pubgauge_hosts::Hosts;
use pubgauge_results::criterion::evaluate;
use pubgauge_results::store::{RunFolder, TrialFiles};
use pubgauge_runner::searching::settling_s;
use pubgauge_runner::{
    ClientConfig, Environment, Job, Kept, OwnCost, ResolvedSettings, TrialRequest, perform,
};
use pubgauge_study::PlannedTrial;
use pubgauge_testbed::{SystemKind, Testbed, machine_facts};

use crate::hosts::{gather_again, place_workers, resolve_sides};
use crate::networks::Networks;
use crate::prepared::axes;
use crate::proposer::evaluated;
use crate::{
    Chosen, ClientOptions, Error, Prepared, Proposal, Proposer, RepeatsForecast, capacity,
};

/// Receives the progress of a campaign.
pub trait Watch: pubgauge_runner::Watch {
    fn trial_begins(&mut self, trial: &PlannedTrial);
    /// A trial is over, and will be stored.
    fn done(&mut self, trial: &Trial);
    /// Something else is worth telling.
    fn note(&mut self, note: Note<'_>);
}

/// Events of a run beside its trials.
#[derive(Clone, Copy, Debug)]
pub enum Note<'a> {
    /// The system of the next trial keeps running, and has something left of its last one for so long.
    Settling(Duration),
    /// A network comes up for the first time, and its bare links are measured.
    BareNetwork,
    /// A host that was lost is back, in words.
    HostIsBack(&'a str),
    /// Why something that was to be counted is not; each reason once.
    NotCounted(&'a str),
    /// A round is over: the comparisons, and the round's number.
    Compared(&'a [PairComparison], u32),
    /// A step of a search is over.
    Searched(&'a Search),
    /// Cells are measured again, because claims are undecided: what that would take.
    Undecided(&'a RepeatsForecast),
    /// A cell has no trial.
    NotMeasured(&'a NotMeasured),
    /// A system that was kept running has ended, and not in order.
    Ended(&'a str),
}

/// The parts of a run that leads its trials.
pub struct Campaign<'a> {
    /// Plan and systems.
    pub prepared: &'a Prepared,
    /// Chooses the next trial.
    pub proposer: &'a Proposer<'a>,
    /// How the client works.
    pub client: &'a ClientOptions,
    /// Starts systems.
    pub testbed: Testbed,
    /// How systems are reached by TLS.
    pub tls: Option<Tls>,
    /// Other hosts that have the workers.
    pub hosts: Option<Arc<Hosts>>,
    /// The cost of a message for pubgauge itself, where the machine was calibrated.
    pub own_cost: Option<OwnCost>,
    /// Folder of the systems' folders.
    pub scratch: &'a Path,
    /// Set when the user wants to end.
    pub stop: &'a Arc<AtomicBool>,
}

impl<'a> Campaign<'a> {
    /// Measures what is not done yet, storing each trial before the next begins. Systems that it has started are stopped at
    /// the end.
    ///
    /// # Errors
    /// If it cannot go on; what was measured is stored.
    pub fn run(self, folder: &mut RunFolder, watch: &mut dyn Watch) -> Result<(), Error> {
        let (proposer, stop) = (self.proposer, self.stop);
        let mut measuring = Measuring::new(self, folder);
        let mut not_counted = BTreeSet::new();
        while !stop.load(Relaxed) {
            let Some(proposal) = next(proposer, folder.results(), watch)? else {
                break;
            };
            let measured = measuring.measure(&proposal, watch)?;
            folder.on_networks(measuring.networks.infos().to_vec());
            let Some((trial, files)) = measured else {
                break;
            };
            watch.done(&trial);
            for why in on_request::not_counted(&trial) {
                if not_counted.insert(why.clone()) {
                    watch.note(Note::NotCounted(&why));
                }
            }
            folder
                .append_trial(trial, &files)
                .map_err(Error::not_valid)?;
            after_a_round(proposer, &proposal, folder, watch)?;
            after_a_step(proposer, &proposal, folder, watch)?;
        }
        conclude(proposer, stop.load(Relaxed), folder, watch)?;
        for words in measuring.kept.stop() {
            watch.note(Note::Ended(&words));
        }
        Ok(())
    }
}

/// The next trial of the plan, or after it the next repeat for an undecided claim.
fn next(
    proposer: &Proposer<'_>,
    results: &Results,
    watch: &mut dyn Watch,
) -> Result<Option<Proposal>, Error> {
    if let Some(proposal) = proposer.next(&results.trials)? {
        return Ok(Some(proposal));
    }
    let again = proposer.propose_repeat(results);
    let before = results.trials.last().map_or(0, |trial| trial.round);
    if again
        .as_ref()
        .is_some_and(|proposal| proposal.round > before)
    {
        watch.note(Note::Undecided(&proposer.forecast(results)));
    }
    Ok(again)
}

/// Evaluates the criteria and claims of a run over its trials, and completes its results.
///
/// # Errors
/// If they cannot be written.
pub fn judge(proposer: &Proposer<'_>, folder: &mut RunFolder) -> Result<(), Error> {
    // Trials of searches are judged there; one that was measured again in its round does not count.
    let measured: Vec<Trial> = folder.results().standing().cloned().collect();
    let criteria = evaluated(proposer.plan(), &proposer.criteria);
    let criteria = criteria.map(|spec| evaluate(&measured, spec)).collect();
    let whole = proposer.whole_rounds(folder.results());
    let judged = pubgauge_conclusions::claims::judge(&whole, &proposer.plan().claims);
    drop(whole);
    folder.judged(judged);
    folder.finish(criteria).map_err(Error::not_valid)
}

/// Networks and hosts that stay up between trials.
struct Measuring<'a> {
    prepared: &'a Prepared,
    client: &'a ClientOptions,
    hosts: Option<Arc<Hosts>>,
    environment: Environment<'a>,
    /// The system that the last trial has left running.
    kept: Kept,
    networks: Networks,
    /// When a system that keeps running has nothing left of its last trial, by system.
    settled: BTreeMap<String, Instant>,
}

impl<'a> Measuring<'a> {
    fn new(campaign: Campaign<'a>, folder: &RunFolder) -> Measuring<'a> {
        let facts = machine_facts();
        Measuring {
            prepared: campaign.prepared,
            client: campaign.client,
            hosts: campaign.hosts,
            environment: Environment {
                testbed: campaign.testbed,
                scratch: campaign.scratch,
                client: ClientConfig::default(),
                tls: campaign.tls,
                stop: campaign.stop.clone(),
                cores: facts.cores,
                quota_cores: facts.quota_cores,
                own_cost: campaign.own_cost,
            },
            kept: Kept::default(),
            networks: Networks::new(&folder.results().networks),
            settled: BTreeMap::new(),
        }
    }

    /// Measures one trial; `None` if the user ended the run before it was measured whole.
    fn measure(
        &mut self,
        proposal: &Proposal,
        watch: &mut dyn Watch,
    ) -> Result<Option<(Trial, TrialFiles)>, Error> {
        let begun = Instant::now();
        let trial = &proposal.trial;
        let none = || Error::not_valid(format!("there is no system {}", trial.system));
        let chosen = self.prepared.systems.get(&trial.system).ok_or_else(none)?;
        if let Some(until) = self.settled.remove(&trial.system) {
            self.settle(until, watch);
        }
        if let Some(hosts) = &self.hosts {
            let mut say = |words: &str| watch.note(Note::HostIsBack(words));
            if !gather_again(hosts, &self.environment.stop, &mut say)? {
                return Ok(None);
            }
        }
        let network = match self.hosts {
            Some(_) => None,
            None => self
                .networks
                .bring_up(trial, || watch.note(Note::BareNetwork))?,
        };
        watch.trial_begins(trial);
        self.environment.client = self.client_of(proposal, chosen)?;
        let of_flows = trial.of_flows.iter();
        let asked = TrialRequest {
            id: trial.order,
            cell: trial.cell.clone(),
            system: trial.system.clone(),
            settings: ResolvedSettings {
                settings: (*trial.settings).clone(),
                mappings: self.prepared.mappings(trial),
            },
            of_flows: of_flows.map(|own| chosen.resolved(own)).collect(),
            settings_name: trial.settings_name.clone(),
            axes: axes(trial),
            repeat: trial.repeat,
            round: proposal.round,
            search: proposal.search,
            limit_share: proposal.limit_share.clone(),
        };
        let job = Job {
            asked,
            begun,
            system: &chosen.file,
            variant: chosen.variant.as_deref(),
            driver: chosen.driver.clone(),
            setup: self.client.setup(&trial.setup),
            workload: &trial.workload.in_repeat(trial.repeat),
            ends_once_hopeless: proposal.ends_once_hopeless,
            network,
        };
        let (done, files) = perform(&job, &self.environment, &self.kept, watch);
        // An interrupted trial is not stored: --resume measures it whole. An interruption in the drain cuts that short, and
        // ends the system.
        let ran = &done.circumstances;
        let whole = ran.not_run.is_none() && ran.system_died.is_empty() && !done.drain.cut_short;
        if self.environment.stop.load(Relaxed) && !whole {
            return Ok(None);
        }
        if chosen.file.kind == SystemKind::External || trial.setup.keep_running {
            let left = Duration::from_secs_f64(settling_s(&done));
            let system = trial.system.clone();
            self.settled.insert(system, Instant::now() + left);
        }
        Ok(Some((done, files)))
    }

    /// How the client works in a trial, and where.
    fn client_of(&self, proposal: &Proposal, chosen: &Chosen) -> Result<ClientConfig, Error> {
        let (trial, options) = (&proposal.trial, self.client);
        let options = ClientOptions {
            processes: capacity::processes(trial, chosen, options, proposal.processes),
            ..options.clone()
        };
        let program = self.environment.testbed.program();
        let mut client = options.client(program, trial.setup.client_limits);
        if let Some(hosts) = &self.hosts {
            let sides = resolve_sides(hosts, trial)?;
            client.workers = place_workers(client.workers, &sides);
            client.hosts = Some((hosts.clone(), sides));
        } else if let Some((publishers, subscribers)) = trial.setup.worker_hosts() {
            client.workers.publisher_hosts = publishers;
            client.workers.subscriber_hosts = subscribers;
        }
        Ok(client)
    }

    /// Waits until a system that keeps running has, as far as can be known, nothing left of a trial.
    fn settle(&self, until: Instant, watch: &mut dyn Watch) {
        let left = until.saturating_duration_since(Instant::now());
        if left >= Duration::from_secs(1) {
            watch.note(Note::Settling(left));
        }
        while Instant::now() < until && !self.environment.stop.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Stores the comparisons of a run in rounds after each of its trials.
fn after_a_round(
    proposer: &Proposer<'_>,
    proposal: &Proposal,
    folder: &mut RunFolder,
    watch: &mut dyn Watch,
) -> Result<(), Error> {
    let (Some(_), Some(pairs)) = (proposer.plan().rounds(), &proposer.pairs) else {
        return Ok(());
    };
    let trials = &folder.results().trials;
    let (round, next) = (proposal.trial.repeat, pairs.next(trials));
    let (comparisons, planned) = (pairs.so_far(trials), trials.len() as u32);
    if next.is_none_or(|(_, next)| next > round) {
        watch.note(Note::Compared(&comparisons, round));
    }
    folder
        .compared(comparisons, planned + 1)
        .map_err(Error::not_valid)
}

/// Stores the results of searches after each of the trials.
fn after_a_step(
    proposer: &Proposer<'_>,
    proposal: &Proposal,
    folder: &mut RunFolder,
    watch: &mut dyn Watch,
) -> Result<(), Error> {
    if proposer.plan().search.is_none() && !proposer.is_led() {
        return Ok(());
    }
    let searches = store_findings(proposer, folder)?;
    let own = proposal
        .search
        .and_then(|step| searches.get(step.search as usize));
    if let Some(search) = own {
        watch.note(Note::Searched(search));
    }
    Ok(())
}

/// Stores what comparisons and searches came to.
fn conclude(
    proposer: &Proposer<'_>,
    is_cut_off: bool,
    folder: &mut RunFolder,
    watch: &mut dyn Watch,
) -> Result<(), Error> {
    if let Some(pairs) = &proposer.pairs {
        let (trials, study) = (&folder.results().trials, &folder.results().study);
        let planned = match proposer.plan().rounds() {
            // One more than there are, until the comparisons end.
            Some(_) => trials.len() as u32 + u32::from(pairs.next(trials).is_some()),
            None => study.planned_trials,
        };
        let comparisons = pairs.so_far(trials);
        folder
            .compared(comparisons, planned)
            .map_err(Error::not_valid)?;
    }
    if (proposer.plan().search.is_some() || proposer.is_led()) && !is_cut_off {
        store_findings(proposer, folder)?;
        for cell in &folder.results().not_measured {
            watch.note(Note::NotMeasured(cell));
        }
    }
    Ok(())
}

/// Stores the results of searches so far, with the number of planned trials and the cells not
/// measured.
fn store_findings(proposer: &Proposer<'_>, folder: &mut RunFolder) -> Result<Vec<Search>, Error> {
    let trials = &folder.results().trials;
    let searches = proposer.searches(trials);
    let (planned, not_measured) = (proposer.planned(trials), proposer.not_measured(trials));
    let told = folder.store_plan(searches.clone(), not_measured, planned);
    told.map_err(Error::not_valid)?;
    Ok(searches)
}
