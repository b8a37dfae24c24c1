//! A worker: one thread, one loop, one fleet. Due sends first, then poll until the next is due.

pub mod clients;
mod late;
mod paced;
mod presence;
mod wills;

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, TryRecvError};

use pubgauge_driver::{
    ClientId, Clock, DriverError, Failure, Fleet, FleetConfig, Nanos, Resource, Subscription,
    Traits, shortened,
};
use pubgauge_workload::{Arrivals, Flow, Workload};
use rustc_hash::FxHashMap;

use self::late::LateClients;
use self::paced::PacedClients;
use self::presence::Presences;
use crate::assignment::Assignment;
use crate::bursts::BurstRecording;
use crate::connecting::{Connections, TurnedAway};
pub use crate::context::Context;
use crate::counts::{add_all, add_each};
use crate::descriptors::make_room;
use crate::failures::{FailureKind, Failures};
use crate::heartbeat::Heartbeat;
use crate::live::{FlowCounters, LiveCounters};
use crate::pulse::{Pulse, Stalls};
use crate::receiving::Receiving;
use crate::recording::Recording;
use crate::reports::Outbox;
pub use crate::reports::{Command, Positions, Report};
use crate::sending::Sending;
use crate::series::add_up;
use crate::timetable::{NAP, Timetable};
use crate::usage::{Usage, UsageReading, threads};
use crate::wills::WillLog;

/// How often a worker reports what it has counted.
const TOLD_EVERY: Nanos = 10_000_000;
/// How often a worker reports at the least, even if nothing has changed, so that it does not seem to hang.
const TOLD_AT_LEAST: Nanos = 500_000_000;
/// A reading of the measurement's start that comes later than this is replaced by the one before.
const LATE_READING: Nanos = 5_000_000;
/// How often the worker's use of processors is read in the warm-up.
const READ_EVERY: Nanos = 50_000_000;

/// The bound on messages under way of a flow, where it has one: flat out, and where a burst waits for the one before.
pub fn window(flow: &Flow, default_window: Option<u32>) -> Option<u32> {
    match flow.arrivals {
        Arrivals::Bursts {
            messages,
            every: None,
        } => Some(messages.saturating_mul(flow.publishers.len() as u32)),
        ref arrivals if arrivals.is_flat_out() => flow.window.or(default_window),
        _ => None,
    }
}

/// The windows of each flow.
pub fn windows(workload: &Workload, default_window: Option<u32>) -> Vec<Option<u32>> {
    let flows = workload.flows.iter();
    flows.map(|flow| window(flow, default_window)).collect()
}

/// Threads that appear while a fleet is opened belong to its library; one fleet at a time.
static OPENING: Mutex<()> = Mutex::new(());

#[derive(Clone, Copy, PartialEq, Eq)]
enum WorkerPhase {
    Waiting,
    Connecting,
    Connected,
    Proving,
    Running,
    Draining,
    ClosingStreams,
    Over,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ClientState {
    New,
    Connecting { again: bool },
    Subscribing(u32),
    Up,
    Down,
}

/// A worker. [`Worker::step`] is one turn of its loop.
pub struct Worker {
    assignment: Assignment,
    context: Context,
    traits: Traits,
    fleet: Box<dyn Fleet>,
    helpers: Vec<u32>,
    commands: Receiver<Command>,
    outbox: Outbox,
    /// When it last reported what it has counted, and what that was.
    told: (Nanos, LiveCounters),
    counters: LiveCounters,
    sending: Sending,
    receiving: Receiving,
    phase: WorkerPhase,
    clients: Vec<ClientState>,
    client_of: FxHashMap<u32, ClientId>,
    /// Subscriptions of clients that have more than are asked for at once.
    to_subscribe: FxHashMap<ClientId, VecDeque<Subscription>>,
    peers: Vec<(u32, String)>,
    addresses: Vec<(u32, String)>,
    begun: usize,
    connecting: usize,
    up: usize,
    connected: u64,
    stopped: bool,
    /// The end of the measurement, and until when what was due by then may leave.
    stopping: Option<(Nanos, Nanos)>,
    first_connect: Option<Nanos>,
    connections: Connections,
    /// Clients that were turned away while all are connecting.
    turned_away: TurnedAway,
    next_connect: Nanos,
    connect_reading: UsageReading,
    connect_usage: Usage,
    table: Option<Timetable>,
    /// The newest reading of the warm-up.
    warm_up_reading: Option<UsageReading>,
    start_reading: Option<UsageReading>,
    usage: Option<Usage>,
    pulse: Pulse,
    /// Where calls of the system's library may sleep.
    heart: Option<Heartbeat>,
    reconnects: VecDeque<(Nanos, ClientId)>,
    presences: Presences,
    paced: PacedClients,
    late: LateClients,
    wills: WillLog,
    made: u64,
    lost: u64,
    remade: u64,
    closing: bool,
    failures: Failures,
    exhausted: BTreeSet<Resource>,
}

/// A worker's fleet, and the threads that came with it.
struct Opened {
    fleet: Box<dyn Fleet>,
    /// Threads of the driver's library.
    helpers: Vec<u32>,
    heart: Option<Heartbeat>,
}

impl Opened {
    /// Opens the fleet of a worker, one at a time in a process: threads that are new then are those of its library.
    fn open(
        context: &Context,
        assignment: &Assignment,
        traits: Traits,
    ) -> Result<Opened, DriverError> {
        let _one_at_a_time = OPENING
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if !matches!(context.clock, Clock::Virtual(_)) {
            make_room(context.brief.workload.devices.len());
        }
        let before = threads();
        let fleet = context.driver.open(FleetConfig {
            target: context.target.clone(),
            settings: context.settings[assignment.settings as usize].clone(),
            clock: context.clock.clone(),
            max_payload: context.brief.max_payload,
            clients: assignment.devices.len(),
            worker: assignment.worker,
        })?;
        let mut helpers = Vec::new();
        if fleet.has_threads() {
            helpers = threads();
            helpers.retain(|tid| !before.contains(tid));
        }
        // Begun here, so that no worker takes it for a thread of its library.
        let beats = traits.publish_sleeps;
        let heart = beats.then(|| Heartbeat::begin(&context.clock));
        Ok(Opened {
            fleet,
            helpers,
            heart: heart.transpose()?,
        })
    }
}

impl Worker {
    /// A worker on the calling thread.
    ///
    /// # Errors
    /// When the driver cannot open a fleet.
    pub fn new(
        assignment: Assignment,
        context: Context,
        commands: Receiver<Command>,
        outbox: Outbox,
    ) -> Result<Self, DriverError> {
        let settings = &context.settings[assignment.settings as usize];
        let traits = context.driver.traits(settings);
        let Opened {
            fleet,
            helpers,
            heart,
        } = Opened::open(&context, &assignment, traits)?;
        // SAFETY: gettid takes no argument and cannot fail.
        let own = unsafe { libc::gettid() } as u32;
        outbox.send(Report::Hello {
            process: std::process::id(),
            threads: helpers.iter().copied().chain([own]).collect(),
        });
        let mut sending = Sending::new(&context, &assignment);
        if traits.publish_sleeps {
            sending.time_calls();
        }
        let receiving = Receiving::new(&context, &assignment);
        let workload = &context.brief.workload;
        let share = assignment.share(workload);
        let turned_away = TurnedAway::new(workload.phases.ready_within, share);
        let late = assignment.devices.iter();
        let late = LateClients::new(late.map(|device| context.brief.late(*device).is_some()));
        let of_devices = assignment.devices.iter().map(|device| {
            let described = &context.brief.workload.devices[*device as usize];
            (*device, described.will.as_deref())
        });
        let wills = WillLog::new(of_devices);
        let mut devices = assignment.devices.iter();
        let takes_time = devices.any(|device| context.brief.takes(*device).is_some());
        Ok(Worker {
            pulse: Pulse::new(&context.clock),
            heart,
            clients: vec![ClientState::New; assignment.devices.len()],
            assignment,
            context,
            traits,
            fleet,
            helpers,
            commands,
            outbox,
            told: (0, LiveCounters::default()),
            counters: LiveCounters::default(),
            sending,
            receiving,
            phase: WorkerPhase::Waiting,
            client_of: FxHashMap::default(),
            to_subscribe: FxHashMap::default(),
            peers: Vec::new(),
            addresses: Vec::new(),
            begun: 0,
            connecting: 0,
            up: 0,
            connected: 0,
            stopped: false,
            stopping: None,
            first_connect: None,
            connections: Connections::default(),
            turned_away,
            next_connect: 0,
            connect_reading: UsageReading::default(),
            connect_usage: Usage::default(),
            table: None,
            warm_up_reading: None,
            start_reading: None,
            usage: None,
            reconnects: VecDeque::new(),
            presences: Presences::default(),
            paced: PacedClients::new(takes_time),
            late,
            wills,
            made: 0,
            lost: 0,
            remade: 0,
            closing: false,
            failures: Failures::default(),
            exhausted: BTreeSet::new(),
        })
    }

    /// One turn of the loop; false once the recording is given.
    pub fn step(&mut self) -> bool {
        // Before the commands: the end of the measurement may be among them.
        let measurement = self.measurement();
        self.pulse.beat(self.context.clock.now(), &measurement);
        self.sending.accounted(self.pulse.accounts());
        self.take_commands();
        let now = self.context.clock.now();
        self.sending.keep_time(now);
        self.receiving.keep_time(now);
        let mut until = now + NAP;
        match self.phase {
            WorkerPhase::Over => return false,
            WorkerPhase::Connecting => until = until.min(self.connect_some(now)),
            WorkerPhase::Proving | WorkerPhase::ClosingStreams => {
                until = until.min(self.sending.send_sentinels(&mut *self.fleet));
            }
            WorkerPhase::Running => until = until.min(self.run(now)),
            _ => {}
        }
        if let Some((at, client)) = self.reconnects.front().copied() {
            if at <= now {
                self.reconnects.pop_front();
                self.connections.begin(client, self.context.clock.now());
                if let Err(error) = self.reconnect(client) {
                    self.note(FailureKind::Other, None, error.into());
                }
            } else {
                until = until.min(at);
            }
        }
        if self.presences.next_at() < Nanos::MAX {
            if self.table.is_some_and(|table| now >= table.end) {
                self.call_back(now);
            }
            self.come_and_go(now);
            until = until.min(self.presences.next_at());
        }
        until = until.min(self.pace_clients(now));
        until = until.min(self.subscribe_late(now));
        self.pulse.sleeps(until);
        if let Err(error) = self.fleet.poll(until, &mut self.receiving) {
            self.fail(error.into());
            return true;
        }
        if !self.receiving.taken.is_empty() {
            self.note_taken();
        }
        if !self.receiving.changes.is_empty() {
            self.take_changes();
        }
        let (sending, receiving) = (&mut self.sending, &mut self.receiving);
        sending.answer(&mut *self.fleet, &mut receiving.replies);
        sending.answered(&mut receiving.answered);
        self.report();
        true
    }

    /// Reports the tokens that came back, and every 10 ms what was counted.
    fn report(&mut self) {
        for (flow, tokens) in self.receiving.passed_since(false) {
            self.outbox.send(Report::Passed(flow, tokens));
        }
        for (flow, tokens) in self.sending.bursts_sent.drain(..) {
            self.outbox.send(Report::BurstSent(flow, tokens));
        }
        for (since, positions) in self.sending.stuck.drain(..) {
            self.outbox.send(Report::Stuck(since, positions));
        }
        let now = self.context.clock.now();
        if now >= self.told.0 + TOLD_EVERY {
            self.tell_counters(now);
        }
    }

    /// Reports what was counted, if that has changed or the last report is 0.5 s old.
    fn tell_counters(&mut self, now: Nanos) {
        for (flow, tokens) in self.receiving.passed_since(true) {
            self.outbox.send(Report::Passed(flow, tokens));
        }
        let proven = self.receiving.take_proven_apart();
        if !proven.is_empty() {
            self.outbox.send(Report::Proven(proven));
        }
        // Before the counters, so that the conductor never takes a repeated delivery for a missing one.
        let got = self.receiving.take_gathered(self.stopped || self.closing);
        if !got.is_empty() {
            self.outbox.send(Report::Got(got));
        }
        let flows = self.context.brief.workload.flows.len();
        let counters = &mut self.counters;
        counters.flows.resize(flows, FlowCounters::default());
        counters.connected = self.connected;
        counters.lost = self.lost;
        counters.stopped = self.stopped;
        if self.stopped {
            counters.wills_until = self.wills.awaited_until();
        }
        counters.unsettled = self.fleet.unsettled();
        self.sending.count(counters);
        self.receiving.count(counters);
        if *counters != self.told.1 || now >= self.told.0 + TOLD_AT_LEAST {
            self.outbox
                .send(Report::Counters(Box::new(counters.clone())));
            self.told.0 = now;
            self.told.1.clone_from(counters);
        }
    }

    fn take_commands(&mut self) {
        loop {
            match self.commands.try_recv() {
                Ok(Command::Connect(peers)) => {
                    self.peers = peers;
                    self.phase = WorkerPhase::Connecting;
                    self.connect_reading = self.reading_of_threads();
                }
                Ok(Command::Peers(peers)) => {
                    let known = std::mem::replace(&mut self.peers, peers);
                    self.hear_late_peers(&known);
                }
                Ok(Command::Prove) => {
                    self.sending.begin_round();
                    if self.phase != WorkerPhase::ClosingStreams {
                        self.phase = WorkerPhase::Proving;
                    }
                }
                Ok(Command::TellUnproven(from, most)) => {
                    let streams = self.receiving.unproven_streams(from, most as usize);
                    self.outbox.send(Report::Unproven(streams));
                }
                Ok(Command::ProveAgain(streams)) => self.sending.prove_again(&streams),
                Ok(Command::Run(table)) => self.begin_traffic(table),
                Ok(Command::Stop(end)) => self.end_at(end),
                Ok(Command::CloseStreams(from)) => {
                    self.stop();
                    self.receiving.close_streams(from);
                    self.sending.close_streams();
                    self.phase = WorkerPhase::ClosingStreams;
                }
                Ok(Command::GiveUp(positions)) => self.receiving.give_up(&positions),
                Ok(Command::Grant(flow, tokens)) => self.sending.grant(flow, tokens),
                Ok(Command::Burst(flow, at)) => self.sending.begin_burst(flow, at),
                Ok(Command::Closing) => {
                    self.closing = true;
                    self.reconnects.clear();
                    self.presences = Presences::default();
                    self.late = LateClients::default();
                    self.outbox.send(Report::Closing);
                }
                Ok(Command::Finish(until)) => self.finish(until),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    // The conductor is gone: the recording has no reader.
                    self.fleet.close(self.context.clock.now());
                    self.phase = WorkerPhase::Over;
                    return;
                }
            }
        }
    }

    /// Begins traffic by this timetable, or goes on by it in place of another.
    fn begin_traffic(&mut self, table: Timetable) {
        self.table = Some(table);
        let acknowledges = self.traits.acknowledges;
        let window = self.assignment.default_window;
        let windows = windows(&self.context.brief.workload, window);
        let awaits = acknowledges && self.sending.publishes();
        self.receiving.start(table, &self.outbox, awaits, &windows);
        let started = self
            .sending
            .start(table, window, acknowledges, &self.outbox);
        if let Err(error) = started {
            self.fail(error.into());
        }
        self.phase = WorkerPhase::Running;
        self.plan_absences(table);
        self.plan_late(table);
    }

    /// The measurement ends at `end`, or has ended.
    fn end_at(&mut self, end: Nanos) {
        if let Some(table) = &mut self.table {
            table.end = table.end.min(end);
        }
        if self.context.clock.now() >= end {
            self.close_window();
        }
        let until = self.sending.end_at(end);
        self.receiving.end_at(end);
        self.stopping = Some((end, until));
        if self.phase != WorkerPhase::Running || self.context.clock.now() >= until {
            self.stop();
        }
    }

    /// Sends nothing more, if the measurement has ended: what was due and has not left is not sent.
    fn stop(&mut self) {
        if let Some((end, _)) = self.stopping.take() {
            self.sending.stop(end);
            self.phase = WorkerPhase::Draining;
            self.stopped = true;
            self.tell_counters(self.context.clock.now());
        }
    }

    /// Ends the count of the measurement's processor time.
    fn close_window(&mut self) {
        // A worker that stood still from the warm-up on has no reading of the start.
        let start = self.start_reading.or(self.warm_up_reading);
        if let (None, Some(start)) = (&self.usage, start) {
            let Stalls {
                within,
                longest,
                longest_wait,
                ..
            } = self.stalls();
            self.usage = Some(Usage {
                own_stalled: within,
                longest_stall: longest,
                longest_wait,
                ..self.reading().since(&start)
            });
        }
    }

    fn reading(&self) -> UsageReading {
        let mut reading = self.reading_of_threads();
        reading.stood_still = self.stalls().outside;
        reading
    }

    /// The times of its own thread and of all threads of its clients.
    fn reading_of_threads(&self) -> UsageReading {
        let mut threads = self.helpers.clone();
        threads.extend(self.fleet.later_threads());
        UsageReading::take(&self.context.clock, &threads)
    }

    fn stalls(&self) -> Stalls {
        let heart = self.heart.as_ref();
        heart.map_or_else(
            || self.pulse.stalls(),
            |heart| heart.stalls(&self.measurement()),
        )
    }

    fn measurement(&self) -> Range<Nanos> {
        self.table.map_or(0..0, |table| table.measure..table.end)
    }

    fn run(&mut self, now: Nanos) -> Nanos {
        let Some(table) = self.table else { return now };
        let mut until = Nanos::MAX;
        if self.start_reading.is_none() {
            if now >= table.measure {
                // A late reading would leave out what came before it: a stall across the start.
                let before = self.warm_up_reading.take();
                let before = before.filter(|_| now >= table.measure + LATE_READING);
                self.start_reading = Some(before.unwrap_or_else(|| self.reading()));
            } else {
                until = table.measure;
                let due = |reading: UsageReading| now >= reading.taken_at() + READ_EVERY;
                if self.warm_up_reading.is_none_or(due) {
                    self.warm_up_reading = Some(self.reading());
                }
            }
        } else if self.usage.is_none() {
            if now >= table.end {
                self.close_window();
            } else {
                until = table.end;
            }
        }
        let next = self.sending.send_due(&mut *self.fleet);
        if let Some((end, deadline)) = self.stopping {
            // Messages that a full system holds back are not sent, unless they are the end of a batch.
            let batch = self.assignment.client.pacing_within > 0 && self.sending.waits();
            let left = next != Nanos::MAX || batch || now < end;
            if !left || self.context.clock.now() >= deadline {
                self.stop();
            }
            until = until.min(deadline);
        }
        until.min(next)
    }

    /// Notes a failure of a client, or of the whole fleet.
    fn note(&mut self, kind: FailureKind, client: Option<ClientId>, error: Failure) {
        self.exhausted.extend(error.exhausted);
        let device = client.map(|client| self.assignment.devices[client.0 as usize]);
        let devices = &self.context.brief.workload.devices;
        let name = device.map_or_else(String::new, |device| devices[device as usize].describe());
        self.failures.note(kind, &name, error.why);
    }

    fn fail(&mut self, error: Failure) {
        self.tell_failed(error.clone());
        self.note(FailureKind::Other, None, error);
    }

    fn tell_failed(&self, error: Failure) {
        let told = Failure {
            why: shortened(error.why),
            ..error
        };
        self.outbox.send(Report::Failed(told));
    }

    fn finish(&mut self, until: Nanos) {
        self.stop();
        if self.phase == WorkerPhase::Running {
            let now = self.context.clock.now();
            if let Some(table) = &mut self.table {
                table.end = table.end.min(now);
            }
            self.close_window();
            self.sending.stop(now);
        }
        let closed_at = self.context.clock.now();
        let unsettled = self.fleet.unsettled();
        let grants = self.fleet.grants();
        let wire = self.fleet.wire_bytes();
        self.tell_counters(closed_at);
        self.fleet.close(until);
        if let Some(left) = self.fleet.left_behind() {
            self.note(FailureKind::Other, None, left.into());
        }
        let mut traffic = self.receiving.traffic(self.sending.traffic());
        traffic.parting = self.fleet.parting_messages();
        let mut parts = self.sending.finish_parts();
        self.receiving.finish_parts(&mut parts);
        let (mut flows, mut series) = self.sending.finish();
        let mut bursts = self.sending.finish_bursts();
        let arrived = self.receiving.finish_bursts();
        add_each(&mut bursts, &arrived, |sum, part| {
            add_all(sum, part, BurstRecording::add);
        });
        let [early_rejections, rejections] =
            [false, true].map(|measured| self.receiving.rejections(measured));
        let missed = self.receiving.count_missed(self.table);
        let parties = self.receiving.finish_parties(&missed);
        let slow = self.receiving.finish_slow();
        let late = self.receiving.finish_late(&missed);
        let wills = self.wills.finish(self.receiving.heard_wills());
        let received = self.receiving.finish(&mut flows);
        add_each(&mut series, &received, |sum, part| add_up(sum, part));
        let members = self.receiving.finish_shares();
        let end = self.table.map_or(0, |table| table.end);
        let failures = std::mem::take(&mut self.failures);
        let recording = Recording {
            members,
            parties,
            worker: self.assignment.worker,
            role: self.assignment.role,
            broker: self.assignment.broker,
            host: self.assignment.host,
            flows,
            series,
            bursts,
            parts,
            closed_at,
            silences: self.receiving.finish_silences(),
            gaps: self.receiving.finish_gaps(end),
            outages: self.sending.finish_outages(),
            sentinels: self.sending.sentinels,
            traffic,
            foreign: self.receiving.foreign,
            retained: self.receiving.retained,
            redelivered: self.receiving.redelivered,
            usage: self.usage.unwrap_or_default(),
            connect_usage: self.connect_usage,
            wire,
            made: self.made,
            lost: self.lost,
            remade: self.remade,
            unsettled,
            rejections,
            early_rejections,
            grants,
            fastest_acknowledgement: self.receiving.fastest_acknowledgement(),
            exhausted: std::mem::take(&mut self.exhausted),
            connecting: self.connections.finish(),
            presence: self.receiving.finish_presence(),
            slow,
            busiest_application: self.paced.busiest(),
            late,
            wills,
            failures: failures.each,
            more_failures: failures.more,
        };
        self.outbox.send(Report::Recording(Box::new(recording)));
        self.phase = WorkerPhase::Over;
    }
}
