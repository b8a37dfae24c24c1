//! The conductor leads the workers of one trial through its phases and adds up what they saw.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use pubgauge_driver::{
    Attempt, Clock, Driver, DriverError, Failure, Filler, Mark, Nanos, Resource, Settings, Target,
    Traits,
};
use pubgauge_workload::Until;

use crate::assignment::{Assignment, Brief, Role, Timetable, Workers, divide, interval_of, spread};
use crate::live::Live;
pub use crate::record::{
    Drain, DrainEnd, EncodedInterval, IntervalLatency, Moment, Outcome, TrialRecord,
};
use crate::recording::{FlowRecording, Recording};
use crate::series::{Cuts, Totals, add_up};
use crate::times::{Interval, Measure, histogram};
use crate::worker::{Command, Context, Report, Worker};

/// Messages under way at most, per flat-out flow, where the system has no back-pressure.
pub const DEFAULT_WINDOW: u32 = 10_000;

/// A trial, ready to run.
#[derive(Clone)]
pub struct TrialSpec {
    /// The workload and what follows from it.
    pub brief: Arc<Brief>,
    /// The driver.
    pub driver: Arc<dyn Driver>,
    /// The system, running.
    pub target: Target,
    /// What the application asks for: the trial's own settings first, then those of flows that have
    /// settings of their own.
    pub settings: Vec<Settings>,
    /// Real time, or simulated time; with simulated time a single worker runs on the calling
    /// thread.
    pub clock: Clock,
    /// How many threads.
    pub workers: Workers,
    /// Marks the trial's messages.
    pub mark: Mark,
    /// Real-time priority for the workers' threads, 1 to 99.
    pub realtime: Option<u8>,
    /// Processors for the workers' threads, in turn; empty: the scheduler chooses.
    pub pin_to: Vec<usize>,
    /// Called on each worker's thread before it opens its fleet: timer slack, processor,
    /// priority as the assignment says.
    pub prepare_thread: fn(&Assignment) -> Result<(), String>,
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

/// Someone who watches a trial from the conductor's thread.
pub trait Observer {
    /// A phase has begun.
    fn phase(&mut self, _phase: Phase, _now: Nanos) {}
    /// Called some hundred times a second. A returned text ends the trial: why it makes no sense
    /// to go on, such as a broker that died.
    fn tick(&mut self, _phase: Phase, _live: &Live, _now: Nanos) -> Option<String> {
        None
    }
}

/// Nobody watches.
pub struct Nobody;
impl Observer for Nobody {}

/// Runs one trial to its end. Setting `stop` ends it early, in order.
pub fn run(spec: &TrialSpec, observer: &mut dyn Observer, stop: &AtomicBool) -> TrialRecord {
    let mut conductor = Conductor::new(spec);
    let outcome = match conductor.perform(observer, stop) {
        Ok(()) => Outcome::Completed,
        Err(outcome) => outcome,
    };
    conductor.close(outcome, observer)
}

type Filled = (Interval, Sender<Histogram<u64>>);

struct Hand {
    commands: Sender<Command>,
    reports: Receiver<Report>,
    role: Role,
    thread: Option<JoinHandle<()>>,
    ready: bool,
    done: Option<Nanos>,
    gone: bool,
    closing: bool,
    recording: Option<Recording>,
}

struct Conductor<'a> {
    spec: &'a TrialSpec,
    epoch: Nanos,
    live: Arc<Live>,
    hands: Vec<Hand>,
    inline: Vec<Worker>,
    addresses: Vec<(u32, String)>,
    failure: Option<String>,
    exhausted: BTreeSet<Resource>,
    filled: Receiver<Filled>,
    times: BTreeMap<(u32, Measure), Histogram<u64>>,
    intervals: Vec<EncodedInterval>,
    by_interval: BTreeMap<u32, Histogram<u64>>,
    drain: Drain,
    table: Option<Timetable>,
    phase: Phase,
    connect_span: Nanos,
    prove_span: Nanos,
}

impl<'a> Conductor<'a> {
    fn new(spec: &'a TrialSpec) -> Self {
        let epoch = spec.clock.now();
        let live = Arc::new(Live::new(spec.brief.workload.flows.len()));
        let (intervals, filled) = channel();
        let assignments = assignments(spec);
        let context = Context {
            brief: spec.brief.clone(),
            driver: spec.driver.clone(),
            target: spec.target.clone(),
            settings: spec.settings.clone().into(),
            clock: spec.clock.clone(),
            epoch,
            live: live.clone(),
            filler: Arc::new(Filler::new(spec.brief.max_payload)),
            intervals,
            spread: spread(&spec.brief, &assignments),
        };
        let mut conductor = Conductor {
            spec,
            epoch,
            live,
            hands: Vec::new(),
            inline: Vec::new(),
            addresses: Vec::new(),
            failure: None,
            exhausted: BTreeSet::new(),
            filled,
            times: BTreeMap::new(),
            intervals: Vec::new(),
            by_interval: BTreeMap::new(),
            drain: Drain::default(),
            table: None,
            phase: Phase::Connect,
            connect_span: 0,
            prove_span: 0,
        };
        for assignment in assignments {
            conductor.engage(assignment, &context);
        }
        conductor
    }

    fn engage(&mut self, assignment: Assignment, context: &Context) {
        let (commands, orders) = channel();
        let (reports, reported) = channel();
        let role = assignment.role;
        let thread = match self.spec.clock {
            Clock::Virtual(_) => {
                match Worker::new(assignment, context.clone(), orders, reports) {
                    Ok(worker) => self.inline.push(worker),
                    Err(error) => self.fail(error.into()),
                }
                None
            }
            Clock::Monotonic => {
                let context = context.clone();
                let prepare_thread = self.spec.prepare_thread;
                let name = format!(
                    "{}-{}",
                    if role == Role::Publishers {
                        "pub"
                    } else {
                        "sub"
                    },
                    assignment.worker
                );
                let spawned = std::thread::Builder::new().name(name).spawn(move || {
                    let early = prepare_thread(&assignment);
                    match Worker::new(assignment, context, orders, reports.clone()) {
                        Ok(mut worker) => {
                            if let Err(error) = early {
                                let _ = reports.send(Report::Failed(error.into()));
                            }
                            while worker.step() {}
                        }
                        Err(error) => {
                            let _ = reports.send(Report::Failed(error.into()));
                        }
                    }
                });
                spawned
                    .map_err(|e| {
                        let what = "cannot start a worker thread";
                        self.fail(DriverError::of_io(what, Attempt::Start, &e).into());
                    })
                    .ok()
            }
        };
        self.hands.push(Hand {
            commands,
            reports: reported,
            role,
            thread,
            ready: false,
            done: None,
            gone: false,
            closing: false,
            recording: None,
        });
    }

    fn perform(&mut self, observer: &mut dyn Observer, stop: &AtomicBool) -> Result<(), Outcome> {
        let phases = self.spec.brief.workload.phases.clone();
        let began = self.spec.clock.now();
        let ready_by = began + phases.ready_within;
        self.enter(Phase::Connect, observer);
        if self.any(|traits| traits.publishers_first) {
            self.connect(Some(Role::Publishers));
            self.wait_ready(Some(Role::Publishers), ready_by, observer, stop)?;
            self.connect(Some(Role::Subscribers));
            self.wait_ready(Some(Role::Subscribers), ready_by, observer, stop)?;
            self.tell(None, &Command::Peers(self.addresses.clone()));
        } else {
            self.connect(None);
            self.wait_ready(None, ready_by, observer, stop)?;
        }
        let connected = self.spec.clock.now();
        self.connect_span = connected - began;

        if self.live.unproven.load(Relaxed) > 0
            && self.hands.iter().any(|h| h.role == Role::Publishers)
        {
            self.enter(Phase::Prove, observer);
            self.tell(None, &Command::Prove);
            loop {
                let missing = self.live.unproven.load(Relaxed);
                if missing == 0 {
                    break;
                }
                if self.spec.clock.now() > ready_by {
                    return Err(Outcome::NotReady(format!(
                        "{missing} of the publisher-to-subscriber paths carried no sentinel (a message that \
                         only proves that a subscriber receives) within {} s: the subscribers are \
                         connected, but messages do not reach them",
                        phases.ready_within as f64 / SECOND as f64
                    )));
                }
                self.pass_time(observer, stop)?;
            }
            self.prove_span = self.spec.clock.now() - connected;
        }

        let interval = interval_of(phases.measure.latest());
        let warm_up = self.spec.clock.now() + LEAD;
        let workload = self.spec.brief.workload.clone();
        let timetable = |measure| {
            let table = Timetable {
                warm_up,
                measure,
                end: measure + phases.measure.latest(),
                interval,
            };
            Cuts::quietly(table, &workload)
        };
        let mut table = timetable(warm_up + phases.warm_up.latest());
        self.table = Some(table);
        self.tell(None, &Command::Run(table));
        self.enter(Phase::WarmUp, observer);
        // The live counter does not tell sentinels apart; they ended with the command.
        let sentinels = self.live.sent.load(Relaxed);
        let mut ended_early = false;
        while self.spec.clock.now() < table.measure {
            self.pass_time(observer, stop)?;
            if let Until::Count(count, _) = phases.warm_up
                && !ended_early
                && self.live.sent.load(Relaxed) >= count + sentinels
                && self.spec.clock.now() + 50_000_000 < table.measure
            {
                ended_early = true;
                // A quarter of an interval is how much earlier it may begin than asked for here.
                table = timetable(self.spec.clock.now() + LEAD + interval / 4);
                self.table = Some(table);
                self.tell(None, &Command::Run(table));
            }
        }

        self.enter(Phase::Measure, observer);
        let by_count = matches!(phases.measure, Until::Count(..));
        loop {
            let now = self.spec.clock.now();
            if now >= table.end {
                break;
            }
            let publishers = self.hands.iter().filter(|h| h.role == Role::Publishers);
            if by_count && publishers.clone().all(|h| h.done.is_some()) {
                if let Some(done) = publishers.filter_map(|h| h.done).max() {
                    table.end = done.max(table.measure + 1);
                    self.table = Some(table);
                }
                break;
            }
            if let Err(outcome) = self.pass_time(observer, stop) {
                table.end = self.spec.clock.now().min(table.end).max(table.measure + 1);
                self.table = Some(table);
                self.tell(None, &Command::Stop(table.end));
                self.drain(observer, stop, SECOND);
                return Err(outcome);
            }
        }
        self.tell(None, &Command::Stop(table.end));
        self.enter(Phase::Drain, observer);
        self.drain(observer, stop, phases.drain_within);
        Ok(())
    }

    /// Waits until everything has come or is known to be lost, `within` at most.
    ///
    /// What is missing is lost if something later of its stream has come to the party, be it a
    /// sentinel that was sent after it; or if nothing has come for longer than the trial has ever
    /// been silent. What is missing otherwise when the time is over is still under way.
    fn drain(&mut self, observer: &mut dyn Observer, stop: &AtomicBool, within: Nanos) {
        let phases = &self.spec.brief.workload.phases;
        let (quiet, began) = (phases.drain_quiet, self.spec.clock.now());
        // Deliveries of any kind: repeated ones are waited for, and messages of the warm-up may still
        // stand before the measured ones.
        let mut last = (self.live.received.load(Relaxed), began);
        // The workers' last counters must be on show before they are believed.
        let settle = began + SETTLE;
        let mut closing = None;
        let may_repeat = self.any(|traits| traits.may_duplicate);
        let ended = loop {
            let (now, missing) = (self.spec.clock.now(), self.live.missing());
            let received = self.live.received.load(Relaxed);
            if received != last.0 {
                last = (received, now);
            }
            let silent = now - last.1;
            let silence = self.live.silence.load(Relaxed);
            if now > settle && missing.under_way == 0 {
                // Late ones: messages that were passed over, repeated ones where there are such.
                let repeats = may_repeat || self.live.repeated.load(Relaxed) > 0;
                let late = missing.passed_over > 0 || repeats;
                if !late || silent > quiet.max(2 * silence) {
                    break DrainEnd::Complete;
                }
            }
            // With every stream closed that can be closed, only groups can have something missing.
            let closed = closing.is_some_and(|since| now > since + SETTLE)
                && self.live.unproven.load(Relaxed) == 0;
            if closed && silent > quiet.max(2 * silence) {
                break DrainEnd::Silent;
            }
            if now > began + within {
                break if silent > quiet.max(silence) {
                    DrainEnd::Silent
                } else {
                    DrainEnd::CutShort
                };
            }
            let close_after = CLOSE_AFTER.max(2 * silence).min(quiet);
            if closing.is_none() && missing.under_way > 0 && silent > close_after {
                closing = Some(now);
                self.tell(None, &Command::CloseStreams(now));
            }
            if self.pass_time(observer, stop).is_err() {
                break DrainEnd::CutShort;
            }
        };
        self.drain = Drain {
            ended,
            span: self.spec.clock.now() - began,
        };
    }

    /// Whether something holds of the system under any of the settings.
    fn any(&self, holds: impl Fn(Traits) -> bool) -> bool {
        let mut settings = self.spec.settings.iter();
        settings.any(|settings| holds(self.spec.driver.traits(settings)))
    }

    fn connect(&mut self, role: Option<Role>) {
        let addresses = self.addresses.clone();
        self.tell(role, &Command::Connect(addresses));
    }

    fn wait_ready(
        &mut self,
        role: Option<Role>,
        until: Nanos,
        observer: &mut dyn Observer,
        stop: &AtomicBool,
    ) -> Result<(), Outcome> {
        while self
            .hands
            .iter()
            .any(|h| role.is_none_or(|r| r == h.role) && !h.ready)
        {
            if self.spec.clock.now() > until {
                let connected = self.live.connected.load(Relaxed);
                return Err(Outcome::NotReady(format!(
                    "only {connected} of {} clients were connected and subscribed within {} s",
                    self.spec.brief.workload.devices.len(),
                    self.spec.brief.workload.phases.ready_within as f64 / SECOND as f64
                )));
            }
            self.pass_time(observer, stop)?;
        }
        Ok(())
    }

    fn tell(&self, role: Option<Role>, command: &Command) {
        for hand in self
            .hands
            .iter()
            .filter(|h| role.is_none_or(|r| r == h.role))
        {
            // A worker that is gone has reported why, or shows as gone.
            let _ = hand.commands.send(command.clone());
        }
    }

    fn enter(&mut self, phase: Phase, observer: &mut dyn Observer) {
        self.phase = phase;
        observer.phase(phase, self.spec.clock.now());
    }

    /// Lets the workers work for some milliseconds and hears what they have to say.
    fn pass_time(&mut self, observer: &mut dyn Observer, stop: &AtomicBool) -> Result<(), Outcome> {
        if self.inline.is_empty() {
            std::thread::sleep(Duration::from_millis(2));
        }
        for worker in &mut self.inline {
            worker.step();
        }
        self.hear();
        self.collect();
        if stop.load(Relaxed) {
            return Err(Outcome::Interrupted);
        }
        let trouble = observer.tick(self.phase, &self.live, self.spec.clock.now());
        let trouble = trouble.or_else(|| self.failure.take());
        if let Some(why) = trouble.or_else(|| self.all_lost()) {
            return Err(match self.phase {
                Phase::Connect | Phase::Prove => Outcome::NotReady(why),
                _ => Outcome::Aborted(why),
            });
        }
        Ok(())
    }

    /// With every connection lost and none to be made again, nothing more can happen.
    fn all_lost(&self) -> Option<String> {
        let traffic = matches!(self.phase, Phase::Prove | Phase::WarmUp | Phase::Measure);
        let lost = self.live.lost.load(Relaxed);
        let all = self.spec.brief.workload.devices.len() as u64;
        let for_good = self.spec.brief.workload.phases.reconnect_after.is_none();
        (traffic && for_good && lost > 0 && lost == all)
            .then(|| format!("all {all} connections were lost"))
    }

    fn fail(&mut self, failure: Failure) {
        self.exhausted.extend(failure.exhausted);
        self.failure.get_or_insert(failure.why);
    }

    fn hear(&mut self) {
        let mut given_up = Vec::new();
        for hand in &mut self.hands {
            loop {
                match hand.reports.try_recv() {
                    Ok(Report::Ready(addresses)) => {
                        hand.ready = true;
                        self.addresses.extend(addresses);
                    }
                    Ok(Report::Failed(failure)) => {
                        self.exhausted.extend(failure.exhausted);
                        self.failure.get_or_insert(failure.why);
                    }
                    Ok(Report::Done(at)) => hand.done = Some(at),
                    Ok(Report::Stuck(positions)) => given_up.push(positions),
                    Ok(Report::Closing) => hand.closing = true,
                    Ok(Report::Recording(recording)) => hand.recording = Some(*recording),
                    Err(std::sync::mpsc::TryRecvError::Empty) => break,
                    Err(std::sync::mpsc::TryRecvError::Disconnected) => {
                        if hand.recording.is_none() && !hand.gone {
                            self.failure.get_or_insert(
                                "a worker ended before its time; this is a defect of pubgauge"
                                    .into(),
                            );
                        }
                        hand.gone = true;
                        break;
                    }
                }
            }
        }
        for positions in given_up {
            self.tell(None, &Command::GiveUp(positions));
        }
    }

    /// Merges and encodes the histograms that workers have filled, and gives them back empty.
    fn collect(&mut self) {
        let mut some = false;
        while let Ok((interval, give_back)) = self.filled.try_recv() {
            self.merge(interval, &give_back);
            some = true;
        }
        if let (true, Some((_, newest))) = (some, self.by_interval.last_key_value()) {
            self.live.latency.show(newest);
        }
    }

    fn merge(&mut self, interval: Interval, give_back: &Sender<Histogram<u64>>) {
        let Interval {
            flow,
            measure,
            number,
            mut values,
        } = interval;
        // Equal bounds by construction: adding cannot fail.
        let _ = self
            .times
            .entry((flow, measure))
            .or_insert_with(histogram)
            .add(&values);
        if measure == Measure::Latency || measure == Measure::RoundTrip {
            let _ = self
                .by_interval
                .entry(number)
                .or_insert_with(histogram)
                .add(&values);
        }
        let mut encoded = Vec::new();
        if V2Serializer::new().serialize(&values, &mut encoded).is_ok() {
            self.intervals.push(EncodedInterval {
                flow,
                measure,
                number,
                histogram: encoded,
            });
        }
        values.reset();
        let _ = give_back.send(values);
    }

    fn close(mut self, outcome: Outcome, observer: &mut dyn Observer) -> TrialRecord {
        self.enter(Phase::Close, observer);
        let now = self.spec.clock.now();
        if let (Some(table), true) = (&mut self.table, outcome != Outcome::Completed) {
            // Cut off: what was planned after this moment did not happen.
            table.end = table.end.min(now).max(table.measure);
        }
        // Everybody must know: in a brokerless system a client would take the end of its peer for
        // a lost connection.
        self.tell(None, &Command::Closing);
        self.await_hands(Duration::from_secs(1), |hand| hand.closing);
        // What lasts on a system (sessions, last values) is removed one by one.
        let devices = self.spec.brief.workload.devices.len() as u64;
        let patience = Duration::from_secs(2) + Duration::from_millis(devices);
        for role in [Role::Subscribers, Role::Publishers] {
            let until = self.spec.clock.now() + patience.as_nanos() as u64;
            self.tell(Some(role), &Command::Finish(until));
            self.await_hands(patience + Duration::from_secs(2), |hand| {
                hand.role != role || hand.recording.is_some()
            });
        }
        self.inline.clear();
        let mut recordings = Vec::new();
        for mut hand in self.hands.drain(..) {
            drop(hand.commands);
            if let (true, Some(thread)) =
                (hand.recording.is_some() || hand.gone, hand.thread.take())
            {
                // A panic has been reported as a worker that was gone.
                let _ = thread.join();
            }
            recordings.extend(hand.recording);
        }
        self.collect_rest();
        let mut flows = vec![FlowRecording::default(); self.spec.brief.workload.flows.len()];
        let mut series = vec![Vec::new(); flows.len()];
        for recording in &recordings {
            for (sum, part) in flows.iter_mut().zip(&recording.flows) {
                sum.add(part);
            }
            for (sum, part) in series.iter_mut().zip(&recording.series) {
                add_up(sum, part);
            }
            self.exhausted.extend(&recording.exhausted);
        }
        if self.drain.ended == DrainEnd::CutShort {
            flows.iter_mut().for_each(FlowRecording::cut_short);
        }
        let series = self.moments(series, now);
        let latency_by_interval = self
            .by_interval
            .iter()
            .map(|(number, h)| {
                let at = |q| h.value_at_quantile(q);
                (
                    *number,
                    IntervalLatency {
                        p50: at(0.5),
                        p99: at(0.99),
                        max: h.max(),
                    },
                )
            })
            .collect();
        TrialRecord {
            outcome,
            recordings,
            flows,
            times: std::mem::take(&mut self.times),
            intervals: std::mem::take(&mut self.intervals),
            latency_by_interval,
            series,
            drain: self.drain,
            table: self.table,
            epoch: self.epoch,
            exhausted: std::mem::take(&mut self.exhausted),
            planned: self.spec.brief.workload.devices.len() as u64,
            connect_span: self.connect_span,
            prove_span: self.prove_span,
        }
    }

    /// The series with its times; the last moment is `closed_at`.
    fn moments(&self, series: Vec<Vec<Totals>>, closed_at: Nanos) -> Vec<Moment> {
        let Some(table) = self.table else {
            return Vec::new();
        };
        let cuts = Cuts::new(table, &self.spec.brief.workload);
        let count = series.iter().map(Vec::len).max().unwrap_or(0);
        let moment = |n: usize| {
            let at = match n + 1 == count {
                true => closed_at,
                false => cuts.at(n as u32),
            };
            let last = |totals: &Vec<Totals>| totals.get(n).or(totals.last()).copied();
            Moment {
                at: at.saturating_sub(table.measure),
                flows: series.iter().map(|f| last(f).unwrap_or_default()).collect(),
            }
        };
        (0..count).map(moment).collect()
    }

    /// Waits until something holds of every worker that is not gone, for so long at most.
    fn await_hands(&mut self, patience: Duration, holds: impl Fn(&Hand) -> bool) {
        let patience = std::time::Instant::now() + patience;
        while self.hands.iter().any(|hand| !hand.gone && !holds(hand))
            && std::time::Instant::now() < patience
        {
            for worker in &mut self.inline {
                worker.step();
            }
            if self.inline.is_empty() {
                std::thread::sleep(Duration::from_millis(1));
            }
            self.hear();
            self.collect();
        }
    }

    fn collect_rest(&mut self) {
        self.collect();
        let interval_order = |i: &EncodedInterval| (i.number, i.flow, i.measure);
        self.intervals.sort_by_key(interval_order);
    }
}

const SECOND: Nanos = 1_000_000_000;
/// How long before something begins the workers are told.
const LEAD: Nanos = 20_000_000;
/// How soon the counters of workers are on show at the latest.
const SETTLE: Nanos = 25_000_000;
/// How long nothing must have come before streams are closed by sentinels, at least.
const CLOSE_AFTER: Nanos = 250_000_000;

/// The assignments of a trial: one for all with simulated time, else as asked.
fn assignments(spec: &TrialSpec) -> Vec<Assignment> {
    let mut assignments = match spec.clock {
        // One worker, and so one kind of settings: several would each move the time.
        Clock::Virtual(_) => vec![Assignment {
            worker: 0,
            role: Role::Publishers,
            devices: (0..spec.brief.workload.devices.len() as u32).collect(),
            settings: 0,
            mark: spec.mark,
            measured_limit: None,
            default_window: None,
            realtime: None,
            pin_to: None,
        }],
        Clock::Monotonic => divide(&spec.brief, spec.workers, spec.mark),
    };
    for (index, assignment) in assignments.iter_mut().enumerate() {
        let traits = spec
            .driver
            .traits(&spec.settings[assignment.settings as usize]);
        assignment.default_window = (!traits.back_pressure).then_some(DEFAULT_WINDOW);
        assignment.realtime = spec.realtime;
        assignment.pin_to =
            (!spec.pin_to.is_empty()).then(|| spec.pin_to[index % spec.pin_to.len()]);
    }
    if let Until::Count(count, _) = spec.brief.workload.phases.measure {
        limit(&mut assignments, count);
    }
    assignments
}

/// Shares a number of messages over the publishing workers by their devices.
fn limit(assignments: &mut [Assignment], count: u64) {
    let devices = |a: &Assignment| {
        if a.role == Role::Publishers {
            a.devices.len() as u64
        } else {
            0
        }
    };
    let all: u64 = assignments.iter().map(devices).sum();
    let (mut before, mut given) = (0u64, 0u64);
    for assignment in assignments
        .iter_mut()
        .filter(|a| a.role == Role::Publishers)
    {
        before += devices(assignment);
        let upto = (u128::from(count) * u128::from(before) / u128::from(all.max(1))) as u64;
        assignment.measured_limit = Some(upto - given);
        given = upto;
    }
}
