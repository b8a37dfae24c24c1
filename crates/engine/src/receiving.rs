//! The receiving half of a worker: what comes out of a fleet is timed, checked and counted.

mod away;
mod bodies;
mod ending;
mod enrolment;
mod events;
mod flow;
mod late;
mod silences;
mod slow;
mod under_way;
mod wills;

use std::sync::Arc;

use pubgauge_driver::header::HEADER_LEN;
use pubgauge_driver::{Change, ClientId, Clock, Filler, Header, Kind, Mark, Nanos, Session};
use rustc_hash::FxHashSet;

use crate::absences::AbsenceLog;
use crate::assignment::{Assignment, Brief};
use crate::bursts::Bursts;
use crate::context::Context;
use crate::groups::{Gathered, Got};
use crate::histograms::Times;
use crate::late::LateLog;
use crate::ledger::Ledger;
use crate::live::LiveCounters;
use crate::parties::PartyTimes;
use crate::parts::{self, Parts};
use crate::recording::{MemberRecording, Recording, Traffic};
use crate::reports::Outbox;
use crate::series::{Cuts, Passed, Totals};
use crate::slow::SlowLog;
use crate::times::Measure;
use crate::timetable::Timetable;
use crate::wills::HeardWills;
use crate::window::Progress;
use enrolment::Enrolment;
use flow::{FlowIn, FlowTimes};
use silences::Silences;

/// An answer that a ping-pong responder owes.
pub struct Reply {
    /// Who answers.
    pub client: ClientId,
    /// The question's header; the answer carries it back with [`Kind::Reply`].
    pub header: Header,
    /// The question's length.
    pub len: usize,
}

/// A delivery to a client whose application takes its time.
pub struct Taken {
    /// The client.
    pub client: ClientId,
    /// When it came, by the clock.
    pub at: Nanos,
    /// The application takes time for it: it is no sentinel, say.
    pub takes_time: bool,
}

/// A change of a client, and when what came last before it was read, by the clock.
pub type TimedChange = (Nanos, ClientId, Change);

/// The role in which one client receives.
#[derive(Clone, Debug, Default)]
struct ReceivingClient {
    device: u32,
    /// Its parties, one for each flow in which it subscribes. Their streams do not overlap.
    parties: Box<[Entitlement]>,
    /// It answers ping-pong questions.
    responds: bool,
    /// When it was back from its last absence, since the epoch: the largest number while it is coming back, 0 if it never was
    /// away.
    back_at: Nanos,
    /// Time that its application takes for each message, ns, where it takes its time.
    takes: Option<Nanos>,
    /// It is slow: what comes to it is told apart.
    slow: bool,
    /// It subscribes within the measurement.
    late: bool,
    /// How often it was away.
    absences: u32,
    /// Nothing has come to it since it was back.
    awaits_first: bool,
}

/// A client's place in a party.
#[derive(Clone, Copy, Debug)]
struct Entitlement {
    party: u32,
    /// The party's index into [`Receiving::parties`].
    number: u32,
    /// Its index into [`Receiving::shares`] where the party is a group.
    member: Option<u32>,
    /// Its index into the party's members, where the party has members on other workers too.
    apart: Option<u32>,
}

impl ReceivingClient {
    /// Whether what comes to it is told apart.
    fn is_apart(&self) -> bool {
        self.slow || self.late
    }

    /// Whether its application takes its time as all of its flow do.
    fn is_paced(&self) -> bool {
        self.takes.is_some() && !self.slow
    }

    /// The place by which the client is entitled to `stream`.
    #[inline]
    fn entitling_place(&self, brief: &Brief, stream: u32) -> Option<Entitlement> {
        let entitled = |place: &&Entitlement| {
            let party = &brief.audience.parties[place.party as usize];
            party.is_entitled(stream)
        };
        match *self.parties {
            [] => None,
            // Whether this one is entitled is asked by the ledger, once per stream.
            [only] => Some(only),
            _ => self.parties.iter().find(entitled).copied(),
        }
    }
}

/// The receiving half of a worker.
pub struct Receiving {
    brief: Arc<Brief>,
    clock: Clock,
    epoch: Nanos,
    mark: Mark,
    filler: Arc<Filler>,
    clients: Vec<ReceivingClient>,
    /// Parties with members on this worker.
    parties: Vec<Member>,
    /// The deliveries to each member of a group.
    shares: Vec<MemberRecording>,
    /// The latencies of each party.
    party_times: PartyTimes,
    /// The deliveries to members of groups that have members on other workers too.
    gathered: Gathered,
    ledger: Ledger,
    progress: Progress,
    /// The system keeps nothing for subscribers that are away.
    forgets: bool,
    absences: AbsenceLog,
    /// Some of its clients are slow or late.
    any_apart: bool,
    /// The applications of some that are not slow take their time.
    any_paced: bool,
    slow: SlowLog,
    /// Deliveries to clients whose applications take their time, since they were last paced.
    pub taken: Vec<Taken>,
    late: LateLog,
    wills: HeardWills,
    /// Acknowledgements by client, where clients come and go.
    answers: Vec<u64>,
    /// Arrival time of what is being reported, since the epoch.
    now: Nanos,
    /// When the last delivery before `now` arrived, since the epoch.
    heard: Nanos,
    /// `received` after the read before this one.
    received_before: u64,
    /// How long before `now` the last delivery arrived.
    gap: Nanos,
    silence: Nanos,
    silences: Silences,
    /// The longest gaps between arrivals in the measurement: from and to, since the epoch.
    gaps: Vec<(Nanos, Nanos)>,
    cuts: Cuts,
    series: Vec<Vec<Totals>>,
    /// Flow by flow, what had come by each bound of a window.
    by_bound: Vec<Vec<Totals>>,
    flows: Vec<FlowIn>,
    /// (party, stream) pairs of this worker that no sentinel has reached yet.
    pub unproven: FxHashSet<u64>,
    /// The pairs that no sentinel has reached yet of groups that have members on other workers too: a sentinel
    /// reaches one member of a group.
    unproven_apart: FxHashSet<u64>,
    /// Of these, pairs that were reached since they were last taken.
    proven_apart: Vec<(u32, u32)>,
    /// The sentinels awaited now were sent at or after this time, since the epoch.
    sentinels_from: Nanos,
    /// They close their streams.
    closing: bool,
    /// Deliveries of sentinels.
    sentinels: u64,
    /// Of those that close streams.
    closing_received: u64,
    /// When the measurement begins, since the epoch; the largest number until the timetable is known.
    measure_from: Nanos,
    /// Messages that came before the timetable: a publishing worker may know it earlier.
    early: Vec<Early>,
    /// Changes of clients since they were last taken.
    pub changes: Vec<TimedChange>,
    /// Answers owed since they were last taken.
    pub replies: Vec<Reply>,
    /// Streams whose answer came since it was last taken.
    pub answered: Vec<(u32, Nanos)>,
    /// Shortest time to the acknowledgement of a message that is not measured, ns; the largest number without one.
    fastest_acknowledgement: Nanos,
    /// Foreign deliveries.
    pub foreign: u64,
    /// Last values.
    pub retained: u64,
    /// Deliveries marked as repeated.
    pub redelivered: u64,
    /// The delivery that is reported next came with a lower quality of service than is promised.
    lowered: bool,
    /// The header of the delivery that is reported next, where it came beside its payload.
    header_apart: Option<[u8; HEADER_LEN]>,
    /// Deliveries of any kind.
    received: u64,
    repeated: u64,
}

/// How a message was delivered, as far as the system tells.
#[derive(Clone, Copy, Debug)]
struct Manner {
    /// On the topic that it was published on.
    on_topic: bool,
    /// With a lower quality of service than is promised.
    lowered: bool,
}

/// A message that came before the timetable.
struct Early {
    client: ClientId,
    flow: usize,
    header: Header,
    payload: Box<[u8]>,
    manner: Manner,
    /// When it came, since the epoch.
    at: Nanos,
}

/// A party with members on this worker.
struct Member {
    party: u32,
    grouped: bool,
    /// It has members on other workers too.
    apart: bool,
}

/// Reports of returned tokens while as many messages arrive as a full window holds.
const TOLD_PER_WINDOW: u64 = 64;

/// Acknowledgement tags: stream, kind and a coarse send time that wraps every 18 minutes.
const TAG_TIME_BITS: u32 = 38;

/// Packs what is needed to time an acknowledgement. Send times have a resolution of 4 ns.
pub fn tag(stream: u32, kind: Kind, sent: Nanos) -> u64 {
    u64::from(stream) << 40
        | (kind as u64) << TAG_TIME_BITS
        | (sent >> 2 & ((1 << TAG_TIME_BITS) - 1))
}

impl Receiving {
    /// A receiving half. Clients are connected in the order of the assignment's devices.
    pub fn new(context: &Context, assignment: &Assignment) -> Self {
        let brief = context.brief.clone();
        let devices = &assignment.devices;
        let gathered = Gathered::for_groups(&context.apart);
        let Enrolment {
            clients,
            parties,
            shares,
        } = Enrolment::enrol(&brief, devices, &gathered);
        let flows = brief.workload.flows.len();
        let settings = context.settings.get(assignment.settings as usize);
        let session = settings.and_then(|settings| settings.session);
        let keeps = |flow: usize| {
            let settings = brief.workload.flows[flow].settings as usize;
            context.settings.get(settings).and_then(|s| s.last_value) == Some(true)
        };
        let late = LateLog::new(&brief, parties.iter().map(|member| member.party), keeps);
        let watchers = brief.workload.will_watchers().devices();
        let mut receiving = Receiving {
            brief: brief.clone(),
            clock: context.clock.clone(),
            epoch: context.epoch,
            mark: assignment.mark,
            filler: context.filler.clone(),
            any_apart: clients.iter().any(ReceivingClient::is_apart),
            any_paced: clients.iter().any(ReceivingClient::is_paced),
            clients,
            parties,
            shares,
            party_times: PartyTimes::default(),
            gathered,
            ledger: Ledger::default(),
            forgets: session != Some(Session::Durable),
            absences: AbsenceLog::default(),
            slow: SlowLog::default(),
            taken: Vec::new(),
            late,
            wills: HeardWills::new(
                devices
                    .iter()
                    .map(|device| (*device, watchers.contains(device))),
            ),
            answers: vec![0; brief.counted_clients(assignment)],
            progress: Progress::default(),
            now: 0,
            heard: 0,
            received_before: 0,
            gap: 0,
            silence: 0,
            silences: Silences::default(),
            gaps: Vec::new(),
            cuts: Cuts::none(),
            series: vec![Vec::new(); flows],
            by_bound: vec![Vec::new(); flows],
            flows: (0..flows).map(|_| FlowIn::default()).collect(),
            unproven: FxHashSet::default(),
            unproven_apart: FxHashSet::default(),
            proven_apart: Vec::new(),
            sentinels_from: 0,
            closing: false,
            sentinels: 0,
            closing_received: 0,
            measure_from: Nanos::MAX,
            early: Vec::new(),
            changes: Vec::new(),
            replies: Vec::new(),
            answered: Vec::new(),
            fastest_acknowledgement: Nanos::MAX,
            foreign: 0,
            retained: 0,
            redelivered: 0,
            lowered: false,
            header_apart: None,
            received: 0,
            repeated: 0,
        };
        let parties = brief.audience.parties.as_slice();
        receiving.await_sentinels(0, |member| !parties[member.party as usize].is_late());
        receiving
    }

    /// The wills that came to its clients.
    pub(crate) fn heard_wills(&mut self) -> &mut HeardWills {
        &mut self.wills
    }

    /// Awaits a sentinel on each stream of each party for which `wanted` holds, sent at `from`
    /// (since the epoch) or later.
    fn await_sentinels(&mut self, from: Nanos, wanted: impl Fn(&Member) -> bool) {
        self.sentinels_from = from;
        self.unproven.clear();
        self.unproven_apart.clear();
        for member in self.parties.iter().filter(|member| wanted(member)) {
            let streams = &self.brief.audience.parties[member.party as usize].streams;
            let unproven = if member.apart {
                &mut self.unproven_apart
            } else {
                &mut self.unproven
            };
            let streams = streams.iter().cloned().flatten();
            unproven.extend(streams.map(|stream| key(member.party, stream)));
        }
    }

    /// Sentinels that are sent at `from` (clock time) or later close streams: whatever was published
    /// before one of them and has not come when it comes is passed over. Members of a group overtake each other: a sentinel
    /// that came to one of them tells that the system has come so far, and closes nothing.
    pub fn close_streams(&mut self, from: Nanos) {
        let from = from.saturating_sub(self.epoch);
        self.closing = true;
        self.proven_apart.clear();
        let parties = self.brief.audience.parties.iter();
        let unheard: FxHashSet<u32> = (0..)
            .zip(parties)
            .filter(|(number, party)| party.is_late() && !self.late.has_subscribed(*number))
            .map(|(number, _)| number)
            .collect();
        self.await_sentinels(from, |member| !unheard.contains(&member.party));
    }

    /// Makes room for the times of the measurement. `windows` has for each flow the bound on its
    /// messages under way, if any.
    pub fn start(
        &mut self,
        table: Timetable,
        out: &Outbox,
        acknowledges: bool,
        windows: &[Option<u32>],
    ) {
        self.cuts = Cuts::new(table, &self.brief.workload);
        self.measure_from = table.measure - self.epoch;
        let receives = self.receives();
        let length = self.brief.workload.phases.measure.latest();
        self.party_times = PartyTimes::new(self.parties.len(), self.measure_from, length);
        let parts = parts::count(&self.brief.workload.phases);
        for (f, flow) in self.flows.iter_mut().enumerate() {
            flow.window = windows[f];
            let bursts = || Bursts::new(table, &self.brief.workload.flows[f]);
            flow.bursts = receives.then(bursts).flatten();
            flow.parts = Parts::new(table, &self.brief.workload.phases);
            let ping_pong = self.brief.is_ping_pong(f);
            let new = |measure| Times::new(f as u32, measure, parts, out.clone());
            if receives || acknowledges || ping_pong {
                flow.times = Some(FlowTimes {
                    latency: new(Measure::Latency),
                    from_send: new(Measure::LatencyFromSend),
                    acknowledgement: acknowledges.then(|| new(Measure::Acknowledgement)),
                    round_trip: ping_pong.then(|| new(Measure::RoundTrip)),
                });
            }
        }
        for early in std::mem::take(&mut self.early) {
            let now = std::mem::replace(&mut self.now, early.at);
            let Early {
                client,
                flow,
                header,
                payload,
                manner,
                ..
            } = early;
            if self.is_slow(client) {
                self.slow_message(client, flow, header, &payload);
            } else {
                self.message(client, flow, header, &payload, manner);
            }
            self.now = now;
        }
    }

    /// The measurement ended earlier than planned.
    pub fn end_at(&mut self, end: Nanos) {
        self.cuts.end_at(end);
    }

    /// Takes the totals of every record that ended by `now` (clock time).
    #[inline]
    pub fn keep_time(&mut self, now: Nanos) {
        if self.cuts.is_due(now) {
            self.cut(now);
        }
    }

    #[cold]
    fn cut(&mut self, now: Nanos) {
        while self.cuts.is_due(now) {
            let passed = self.cuts.pass();
            let kept = match passed {
                Passed::Bound => &mut self.by_bound,
                _ => &mut self.series,
            };
            for (flow, kept) in self.flows.iter_mut().zip(kept) {
                kept.push(flow.totals());
                if let Passed::Record(record) = passed {
                    flow.each_time(|times| times.cut(record));
                }
            }
        }
    }

    /// Shortest time from sending to the acknowledgement of a message that is not measured, ns.
    pub fn fastest_acknowledgement(&self) -> Option<Nanos> {
        Some(self.fastest_acknowledgement).filter(|ns| *ns != Nanos::MAX)
    }

    /// Whether any client of this worker subscribes.
    pub fn receives(&self) -> bool {
        !self.parties.is_empty()
    }

    /// Writes its counts into `counters`.
    pub fn count(&self, counters: &mut LiveCounters) {
        for (flow, counted) in self.flows.iter().zip(&mut counters.flows) {
            counted.unique = flow.counts.messages.unique;
            counted.passed_over = flow.counts.passed_over;
            counted.answered = flow.counts.answered;
            counted.slow_unique = flow.counts.slow.taken + flow.counts.slow.behind;
            counted.unacknowledged = counted.unacknowledged.saturating_sub(flow.settled());
        }
        counters.unproven = self.unproven.len() as u64;
        counters.received = self.received;
        counters.sentinels_received = self.sentinels;
        counters.repeated = self.repeated;
        counters.silence = self.silence;
        counters.closing = self.closing;
    }

    /// Takes what has passed of flows with a window since the last time: (flow, messages). Unless
    /// `all`, only of flows of which at least a 64th of the window has passed.
    pub fn passed_since(&mut self, all: bool) -> impl Iterator<Item = (u32, u64)> {
        let flows = self.flows.iter_mut().enumerate();
        flows.filter_map(move |(f, flow)| {
            let worth = if all {
                1
            } else {
                (u64::from(flow.window?) / TOLD_PER_WINDOW).max(1)
            };
            let some = flow.window.is_some() && flow.done >= worth;
            some.then(|| (f as u32, std::mem::take(&mut flow.done)))
        })
    }

    /// The deliveries so far, of any kind, added to what was `sent`.
    pub fn traffic(&self, sent: Traffic) -> Traffic {
        Traffic {
            received: self.received,
            closing_received: self.closing_received,
            ..sent
        }
    }

    /// Deliveries so far that are no sentinels.
    fn messages_received(&self) -> u64 {
        self.received.saturating_sub(self.sentinels)
    }

    /// Notes when the last delivery came, where the last read had one: a read may have brought
    /// answers of the server alone (MQTT's CONNACK, SUBACK), and they end no silence.
    #[inline]
    fn note_heard(&mut self) {
        if self.received != self.received_before {
            self.received_before = self.received;
            self.heard = self.now;
        }
    }

    /// Notes a gap between arrivals, since the epoch, if it is one of the longest of the measurement.
    fn note_gap(&mut self, from: Nanos, to: Nanos) {
        let from = from.max(self.measure_from);
        if to <= from {
            return;
        }
        if self.gaps.len() < Recording::MOST_GAPS {
            self.gaps.push((from, to));
            return;
        }
        let shortest = self.gaps.iter_mut().min_by_key(|(from, to)| *to - *from);
        if let Some(shortest) = shortest.filter(|gap| gap.1 - gap.0 < to - from) {
            *shortest = (from, to);
        }
    }

    /// Takes what members of groups got that have members on other workers too, as [`Gathered::take`].
    pub fn take_gathered(&mut self, all: bool) -> Vec<Got> {
        self.gathered.take(all)
    }

    /// Takes the (group, stream) pairs that a sentinel has reached since the last time, of these groups.
    pub fn take_proven_apart(&mut self) -> Vec<(u32, u32)> {
        std::mem::take(&mut self.proven_apart)
    }

    /// The streams on which a party here has heard no sentinel: `most` of them, those from `from` on first.
    pub fn unproven_streams(&self, from: u32, most: usize) -> Vec<u32> {
        first_from(
            self.unproven.iter().map(|key| *key as u32).collect(),
            from,
            most,
        )
    }
}

/// `most` of these streams, each once: those from `from` on first, in ascending order.
pub(crate) fn first_from(mut streams: Vec<u32>, from: u32, most: usize) -> Vec<u32> {
    streams.sort_unstable_by_key(|stream| (*stream < from, *stream));
    streams.dedup();
    streams.truncate(most);
    streams
}

/// A (party, stream) pair in one word.
#[inline]
fn key(party: u32, stream: u32) -> u64 {
    u64::from(party) << 32 | u64::from(stream)
}
