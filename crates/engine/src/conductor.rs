//! The conductor leads the workers of one trial through its phases and adds up what they saw.

mod again;
mod checked;
mod collected;
mod collecting;
mod draining;
mod handle;
mod proving;
mod sentinel_rounds;
mod uniting;
mod workers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::time::Instant;

use pubgauge_driver::{Clock, Driver, Failure, Mark, Nanos, Resource, Settings, Target, Traits};
use pubgauge_setup::ClientSetup;
use pubgauge_workload::{Flow, Until};

use self::collected::Collected;
use self::handle::{Inbox, WorkerHandle};
use self::sentinel_rounds::SentinelRounds;
use self::uniting::Apart;
use crate::assignment::{Assignment, Brief, Role, Workers, divide, spread};
use crate::bursts::BurstGate;
use crate::groups::on_several;
use crate::link::{Here, Order, PrepareThread, Secrets, VERSION, WorkerSite};
use crate::live::Live;
pub use crate::record::{Drain, DrainEnd, IntervalLatency, Moment, TrialEnd, TrialRecord};
use crate::reports::{Command, Outbox};
use crate::series::Cuts;
use crate::timetable::{Timetable, steps_of};
use crate::window::Tokens;
use crate::worker::{window, windows};

/// Messages under way at most, per flat-out flow, where the system has no back-pressure.
pub const DEFAULT_WINDOW: u32 = 10_000;

/// A trial, ready to run.
#[derive(Clone)]
pub struct TrialSpec {
    /// The workload and what follows from it.
    pub brief: Arc<Brief>,
    pub driver: Arc<dyn Driver>,
    /// The system, running: each of its brokers, in the order in which
    /// [`pubgauge_workload::Device::broker`] counts. With simulated time there is one.
    pub targets: Vec<Target>,
    /// The application's demands: the trial's own settings first, then those of flows that have
    /// settings of their own.
    pub settings: Vec<Settings>,
    /// Real time, or simulated time; with simulated time there is a single worker, whose place is
    /// [`Here`].
    pub clock: Clock,
    /// How many threads.
    pub workers: Workers,
    /// Marks the trial's messages.
    pub mark: Mark,
    /// How each worker works.
    pub client: ClientSetup,
    /// Processors for the workers' threads, in turn; empty: the scheduler chooses.
    pub pin_to: Vec<usize>,
    /// Where the workers run.
    pub place: Arc<dyn WorkerSite>,
}

impl TrialSpec {
    /// A trial in this process ([`Here`]) with one worker on each side, default settings, a mark that
    /// no other trial has, and each message sent at its own time.
    pub fn local(
        brief: Arc<Brief>,
        driver: Arc<dyn Driver>,
        targets: Vec<Target>,
        clock: Clock,
        prepare_thread: PrepareThread,
    ) -> TrialSpec {
        let (known, own) = (brief.clone(), driver.clone());
        let place = Here::new(known, own, &targets[..], clock.clone(), prepare_thread);
        TrialSpec {
            brief,
            driver,
            targets,
            settings: vec![Settings::default()],
            clock,
            workers: Workers::default(),
            mark: Mark::random(),
            client: ClientSetup::default(),
            pin_to: Vec::new(),
            place: Arc::new(place),
        }
    }
}

/// Where a trial is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Clients connect and subscribe.
    Connect,
    /// Sentinels prove that every subscriber receives.
    Prove,
    /// Traffic that is not measured yet.
    WarmUp,
    /// The measurement.
    Measure,
    /// Waiting for what is still under way.
    Drain,
    /// Connections are being closed.
    Close,
}

/// Watches a trial from the conductor's thread.
pub trait Observer {
    /// A phase has begun.
    fn phase(&mut self, _phase: Phase, _now: Nanos) {}
    /// Called some hundred times a second. A returned text ends the trial: why it cannot go on, such
    /// as a broker that died.
    fn tick(&mut self, _phase: Phase, _live: &Live, _now: Nanos) -> Option<String> {
        None
    }
    /// Whether the measurement has lasted long enough: then it ends at the next bound of its series, earlier than planned, and
    /// the trial goes on to its drain. Asked as often as [`Observer::tick`] is called within it.
    fn has_enough(&mut self, _live: &Live, _now: Nanos) -> bool {
        false
    }
}

/// An observer that ignores the trial.
pub struct Nobody;
impl Observer for Nobody {}

/// Runs one trial to its end. Setting `stop` ends it early, in order.
pub fn run(spec: &TrialSpec, observer: &mut dyn Observer, stop: &AtomicBool) -> TrialRecord {
    let mut conductor = Conductor::new(spec);
    let outcome = match conductor.perform(observer, stop) {
        Ok(()) => TrialEnd::Completed,
        Err(outcome) => outcome,
    };
    conductor.close(outcome, observer)
}

struct Conductor<'a> {
    spec: &'a TrialSpec,
    epoch: Nanos,
    inbox: Inbox,
    workers: Vec<WorkerHandle>,
    /// When it last looked for reports.
    looked: Instant,
    /// Broker by broker: its workers, and how many connections they have.
    brokers: BTreeMap<u32, (Vec<usize>, u64)>,
    live: Live,
    /// Windows, flow by flow.
    tokens: Vec<Option<Tokens>>,
    /// Bursts that wait for one another, flow by flow.
    burst_gates: Vec<Option<BurstGate>>,
    addresses: Vec<(u32, String)>,
    failure: Option<String>,
    exhausted: BTreeSet<Resource>,
    collected: Collected,
    /// Groups with members on several workers.
    apart: Apart,
    again: SentinelRounds,
    drain: Drain,
    table: Option<Timetable>,
    phase: Phase,
    connect_span: Nanos,
    prove_span: Nanos,
}

impl<'a> Conductor<'a> {
    fn new(spec: &'a TrialSpec) -> Self {
        let (sender, inbox) = channel();
        let assignments = assignments(spec);
        let mut conductor = Conductor {
            spec,
            epoch: spec.clock.now(),
            inbox,
            workers: Vec::new(),
            looked: Instant::now(),
            brokers: BTreeMap::new(),
            live: Live::default(),
            tokens: Vec::new(),
            burst_gates: Vec::new(),
            addresses: Vec::new(),
            failure: None,
            exhausted: BTreeSet::new(),
            collected: Collected::default(),
            apart: Apart::default(),
            again: SentinelRounds::default(),
            drain: Drain::default(),
            table: None,
            phase: Phase::Connect,
            connect_span: 0,
            prove_span: 0,
        };
        let spread = spread(&spec.brief, &assignments);
        let apart = on_several(&spec.brief, &assignments);
        conductor.apart = Apart::new(&spec.brief, &apart);
        conductor.tokens = tokens(spec, &assignments, &spread);
        conductor.burst_gates = burst_gates(spec, &assignments);
        for assignment in assignments {
            let role = assignment.role;
            let broker = conductor.brokers.entry(assignment.broker).or_default();
            broker.0.push(assignment.worker as usize);
            broker.1 += assignment.devices.len() as u64;
            let outbox = Outbox::new(assignment.worker, sender.clone());
            let Some(target) = spec.targets.get(assignment.broker as usize) else {
                conductor.workers.push(WorkerHandle::new(None, role));
                let (broker, there) = (assignment.broker + 1, spec.targets.len());
                conductor.fail(format!("there is no broker {broker}: there are {there}").into());
                continue;
            };
            let order = Order {
                version: VERSION,
                assignment,
                workload: spec.brief.workload.clone(),
                driver: spec.driver.name().to_owned(),
                target: target.clone(),
                settings: spec.settings.clone().into(),
                epoch: conductor.epoch,
                spread: spread.clone(),
                apart: apart.clone(),
            };
            let secrets = Secrets::take_from(target);
            match spec.place.start(order, secrets, outbox) {
                Ok(link) => conductor.workers.push(WorkerHandle::new(Some(link), role)),
                Err(error) => {
                    // The place in the list is its number.
                    conductor.workers.push(WorkerHandle::new(None, role));
                    conductor.fail(error.into());
                }
            }
        }
        conductor
    }

    fn fail(&mut self, failure: Failure) {
        self.exhausted.extend(failure.exhausted);
        self.failure.get_or_insert(failure.why);
    }

    fn perform(&mut self, observer: &mut dyn Observer, stop: &AtomicBool) -> Result<(), TrialEnd> {
        self.make_ready(observer, stop)?;
        let table = self.warm_up(observer, stop)?;
        self.measure(table, observer, stop)?;
        self.enter(Phase::Drain, observer);
        let within = self.spec.brief.workload.phases.drain_within;
        self.drain(observer, stop, within);
        Ok(())
    }

    /// Has all clients connect, and waits until every path is proven.
    fn make_ready(
        &mut self,
        observer: &mut dyn Observer,
        stop: &AtomicBool,
    ) -> Result<(), TrialEnd> {
        let began = self.spec.clock.now();
        let ready_by = began + self.spec.brief.workload.phases.ready_within;
        self.enter(Phase::Connect, observer);
        if self.any(|traits| traits.publishers_first) {
            self.connect(Some(Role::Publishers), ready_by, observer, stop)?;
            self.connect(Some(Role::Subscribers), ready_by, observer, stop)?;
            self.command(None, &Command::Peers(self.addresses.clone()));
        } else {
            self.connect(None, ready_by, observer, stop)?;
        }
        self.connect_span = self.spec.clock.now() - began;
        self.prove(ready_by, observer, stop)
    }

    /// The timetable of a warm-up that begins at `warm_up` and of a measurement that begins at `measure`, or up to a quarter
    /// of a record earlier.
    fn timetable(&self, warm_up: Nanos, measure: Nanos) -> Timetable {
        let workload = &self.spec.brief.workload;
        let phases = &workload.phases;
        let table = Timetable {
            warm_up,
            measure,
            end: measure + phases.measure.latest(),
            interval: phases.record_length(),
            steps: steps_of(phases),
        };
        Cuts::quietly(table, workload)
    }

    /// Tells all workers a timetable.
    fn announce(&mut self, table: Timetable) {
        self.table = Some(table);
        self.command(None, &Command::Run(table));
    }

    /// Has traffic begin, and waits until the measurement does, whose timetable it gives.
    fn warm_up(
        &mut self,
        observer: &mut dyn Observer,
        stop: &AtomicBool,
    ) -> Result<Timetable, TrialEnd> {
        let length = self.spec.brief.workload.phases.warm_up;
        let lead = self.spec.place.lead();
        let begin = self.spec.clock.now() + lead;
        let mut table = self.timetable(begin, begin + length.latest());
        self.announce(table);
        self.hand_out();
        self.enter(Phase::WarmUp, observer);
        // The live counter does not tell sentinels apart; they ended with the command.
        let sentinels = self.live.sent;
        let mut ended_early = false;
        while self.spec.clock.now() < table.measure {
            self.pass_time(observer, stop)?;
            if let Until::Count(count, _) = length
                && !ended_early
                && self.live.sent >= count + sentinels
                && self.spec.clock.now() + 2 * lead < table.measure
            {
                ended_early = true;
                // A quarter of a record is how much earlier it may begin than asked for here.
                let measure = self.spec.clock.now() + lead + table.interval / 4;
                table = self.timetable(begin, measure);
                self.announce(table);
            }
        }
        Ok(table)
    }

    /// Waits until the measurement has ended: by the timetable, or earlier by count or because the observer has enough.
    fn measure(
        &mut self,
        mut table: Timetable,
        observer: &mut dyn Observer,
        stop: &AtomicBool,
    ) -> Result<(), TrialEnd> {
        let length = self.spec.brief.workload.phases.measure;
        let lead = self.spec.place.lead();
        self.enter(Phase::Measure, observer);
        let mut end_told = false;
        // Observation begins with the measurement, not a glance later.
        let mut passed = self.look(observer, stop);
        loop {
            if let Err(outcome) = passed {
                table.end = self.spec.clock.now().min(table.end).max(table.measure + 1);
                self.table = Some(table);
                self.command(None, &Command::Stop(table.end));
                self.drain(observer, stop, SECOND);
                return Err(outcome);
            }
            let now = self.spec.clock.now();
            if now >= table.end {
                break;
            }
            let is_reached = matches!(length, Until::Count(count, _) if self.live.offered >= count);
            if !end_told
                && now + lead < table.end
                && (is_reached || observer.has_enough(&self.live, now))
            {
                end_told = true;
                // Told before it comes: all workers count up to it, and traffic goes on until then.
                table.end = Cuts::new(table, &self.spec.brief.workload).end_near(now + lead);
                self.table = Some(table);
                self.command(None, &Command::Stop(table.end));
            }
            passed = self.pass_time(observer, stop);
        }
        if !end_told {
            self.command(None, &Command::Stop(table.end));
        }
        Ok(())
    }

    /// Whether something holds of the system under any of the settings.
    fn any(&self, holds: impl Fn(Traits) -> bool) -> bool {
        let mut settings = self.spec.settings.iter();
        settings.any(|settings| holds(self.spec.driver.traits(settings)))
    }

    /// Has the workers of one side, or all, connect their clients, and waits until they have.
    fn connect(
        &mut self,
        role: Option<Role>,
        until: Nanos,
        observer: &mut dyn Observer,
        stop: &AtomicBool,
    ) -> Result<(), TrialEnd> {
        let addresses = self.addresses.clone();
        self.command(role, &Command::Connect(addresses));
        while self
            .workers
            .iter()
            .any(|h| role.is_none_or(|r| r == h.role) && !h.ready)
        {
            if self.spec.clock.now() > until {
                // Each time that one was connected counts, also before it was lost.
                let connected = self.live.connected.saturating_sub(self.live.lost);
                return Err(TrialEnd::NotReady(format!(
                    "only {connected} of {} clients were connected and subscribed within {} s",
                    self.spec.brief.workload.devices.len(),
                    self.spec.brief.workload.phases.ready_within as f64 / SECOND as f64
                )));
            }
            self.pass_time(observer, stop)?;
        }
        Ok(())
    }

    fn enter(&mut self, phase: Phase, observer: &mut dyn Observer) {
        self.phase = phase;
        observer.phase(phase, self.spec.clock.now());
    }

    /// With every connection to a broker lost and none to be made again, nothing more can happen there.
    fn all_lost(&self) -> Option<String> {
        let traffic = matches!(self.phase, Phase::Prove | Phase::WarmUp | Phase::Measure);
        let for_good = self.spec.brief.workload.phases.reconnect_after.is_none();
        if !traffic || !for_good || self.live.lost == 0 {
            return None;
        }
        let lost = |numbers: &[usize]| -> u64 {
            let handles = numbers
                .iter()
                .filter_map(|number| self.workers.get(*number));
            handles.map(|handle| handle.counters.lost).sum()
        };
        let mut brokers = self.brokers.iter();
        let (broker, (_, all)) = brokers.find(|(_, (numbers, all))| lost(numbers) == *all)?;
        Some(match self.spec.targets.len() {
            0 | 1 => format!("all {all} connections were lost"),
            count => format!(
                "all {all} connections to broker {} of {count} were lost",
                broker + 1
            ),
        })
    }
}

const SECOND: Nanos = 1_000_000_000;

/// The workers with publishers of a flow.
fn publishing(spec: &TrialSpec, assignments: &[Assignment], flow: usize) -> Vec<usize> {
    let publishes = |assignment: &&Assignment| {
        let devices = assignment.devices.iter();
        let mut links = devices.flat_map(|d| spec.brief.links(*d));
        links.any(|link| !link.subscribes && link.flow as usize == flow)
    };
    let workers = assignments.iter().filter(publishes);
    workers.map(|a| a.worker as usize).collect()
}

/// The gate of each flow whose bursts wait for one another.
fn burst_gates(spec: &TrialSpec, assignments: &[Assignment]) -> Vec<Option<BurstGate>> {
    let flows = spec.brief.workload.flows.iter().enumerate();
    let gate = |(f, flow): (usize, &Flow)| {
        let waits = flow.arrivals.bursts_wait();
        waits.then(|| BurstGate::new(publishing(spec, assignments, f), spec.place.notice()))
    };
    flows.map(gate).collect()
}

/// The tokens of each flow with a window.
fn tokens(spec: &TrialSpec, assignments: &[Assignment], spread: &[u16]) -> Vec<Option<Tokens>> {
    let brief = &spec.brief;
    let mut bounds = vec![None; brief.workload.flows.len()];
    for assignment in assignments {
        let windows = windows(&brief.workload, assignment.default_window);
        for (bound, window) in bounds.iter_mut().zip(windows) {
            // Workers with other settings have other defaults.
            *bound = (*bound).max(window);
        }
    }
    let of_flow = |(flow, bound): (usize, Option<u32>)| {
        if brief.workload.flows[flow].arrivals.bursts_wait() {
            return None;
        }
        let streams =
            &spread[brief.streams_of(flow).start as usize..][..brief.streams_of(flow).len()];
        let each = u64::from(*streams.iter().max()?);
        let workers = publishing(spec, assignments, flow);
        let bound = bound.filter(|_| each > 0)?;
        Some(Tokens::new(u64::from(bound), each, workers))
    };
    bounds.into_iter().enumerate().map(of_flow).collect()
}

/// The assignments of a trial: one for all with simulated time, else as asked.
fn assignments(spec: &TrialSpec) -> Vec<Assignment> {
    let mut assignments = match spec.clock {
        // One worker, and so one kind of settings: several would each move the time.
        Clock::Virtual(_) => vec![Assignment {
            worker: 0,
            role: Role::Publishers,
            devices: (0..spec.brief.workload.devices.len() as u32).collect(),
            settings: 0,
            broker: 0,
            host: 0,
            mark: spec.mark,
            default_window: None,
            client: ClientSetup::default(),
            pin_to: None,
        }],
        Clock::Monotonic | Clock::Converted(_) => {
            let windowed = |flow: &Flow| window(flow, default_window(spec, flow.settings));
            let flows = spec.brief.workload.flows.iter();
            let windowed: Vec<bool> = flows.map(|flow| windowed(flow).is_some()).collect();
            divide(&spec.brief, spec.workers, spec.mark, &windowed)
        }
    };
    for (index, assignment) in assignments.iter_mut().enumerate() {
        assignment.default_window = default_window(spec, assignment.settings);
        assignment.client = spec.client;
        assignment.pin_to =
            (!spec.pin_to.is_empty()).then(|| spec.pin_to[index % spec.pin_to.len()]);
    }
    assignments
}

/// The window of flat-out flows that name none, under the settings of this number.
fn default_window(spec: &TrialSpec, settings: u32) -> Option<u32> {
    let traits = spec.driver.traits(&spec.settings[settings as usize]);
    (!traits.back_pressure).then_some(DEFAULT_WINDOW)
}
