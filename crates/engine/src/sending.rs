//! The sending half of a worker: what is due, what is blocked, what was taken.

mod bursts;
mod ending;
mod outages;
mod outlets;
mod paces;
mod sentinels;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use pubgauge_driver::header::HEADER_LEN;
use pubgauge_driver::{
    ClientId, Clock, Filler, Fleet, Header, Kind, Mark, Nanos, Payload, Publish, TopicId,
};
use pubgauge_setup::ClientSetup;
use pubgauge_workload::{Arrivals, Due, Exchange, Flow, Schedule};
use rustc_hash::FxHashMap;

use crate::assignment::{Assignment, Brief};
use crate::bursts::Bursts;
use crate::calls::Calls;
use crate::context::Context;
use crate::histograms::Times;
use crate::live::LiveCounters;
use crate::parts::{self, Parts};
use crate::receiving::tag;
use crate::recording::{FlowRecording, Outage, Traffic};
use crate::reports::{Outbox, Positions};
use crate::series::{Cuts, Passed, Totals};
use crate::times::Measure;
use crate::timetable::{GRACE, Timetable};
use outlets::Outlet;

/// Flat-out messages between two polls.
const PER_TURN: u32 = 256;

/// One publisher of one flow, on this worker.
struct Local {
    client: ClientId,
    flow: u32,
    /// Its streams have consecutive numbers from here.
    first_stream: u32,
    /// Its topics, as positions in `Sending::outlets`.
    first_outlet: u32,
    topics: u32,
    /// Topic of its next flat-out message.
    turn: u32,
    /// Where its client is.
    place: Whereabouts,
    /// The system takes no more from it just now.
    blocked: bool,
    /// Since when the system has not taken a message of it.
    blocked_since: Option<Nanos>,
    /// Since when measured messages have been due to it while it is not connected.
    out_since: Option<Nanos>,
}

/// Where the client of a publisher is that comes and goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Whereabouts {
    #[default]
    Here,
    /// Nothing falls due to it.
    Away,
    /// It is connecting again: what falls due waits.
    Returning,
}

/// The sending of a flow's share on this worker.
struct Sender {
    flow: u32,
    schedule: Schedule,
    pace: SendingPace,
    /// Its publishers, as positions in `Sending::locals`.
    locals: Range<u32>,
    /// Positions of its publishers by their numbers in the flow, from `first_publisher` on.
    local_of: Box<[u32]>,
    first_publisher: u32,
    /// When the schedule's time 0 is, and when sending ends.
    origin: Nanos,
    end: Nanos,
    /// Where a burst waits for the one before.
    turn: Option<BurstTurn>,
}

/// The present burst of a flow whose bursts wait for one another.
struct BurstTurn {
    /// When the burst began, or begins, that is sent now.
    burst: Nanos,
    /// Since when all of it is handed over, and when that was reported last.
    over: Option<(Nanos, Nanos)>,
}

impl Sender {
    /// The measurement begins at another time than first planned, and the flow's rate over time with it. The message that
    /// was looked ahead is the curve's first, if it would be due after that.
    fn begin_curve(&mut self, table: Timetable, flow: &Flow) {
        let begins = table.measure.saturating_sub(self.origin);
        if begins == 0 || !matches!(flow.arrivals, Arrivals::Varying { .. }) {
            return;
        }
        self.schedule.begin_curve_at(begins);
        if let SendingPace::Due(ahead) = &mut self.pace
            && ahead.as_ref().is_none_or(|due| due.at >= begins)
        {
            *ahead = self.schedule.next();
        }
    }

    /// The position in `Sending::locals` of a publisher, if it is on this worker.
    fn local(&self, publisher: u32) -> Option<u32> {
        let at = publisher.checked_sub(self.first_publisher)?;
        let local = *self.local_of.get(at as usize)?;
        (local != u32::MAX).then_some(local)
    }
}

enum SendingPace {
    /// By due time; the next one is looked ahead.
    Due(Option<Due>),
    /// As fast as possible.
    FlatOut(FlatOut),
    /// One question at a time for each publisher: (position, when asked).
    PingPong {
        idle: Vec<u32>,
        asked: FxHashMap<u32, Nanos>,
    },
}

/// How far a flow is that sends as fast as possible.
struct FlatOut {
    /// Positions in `Sending::locals` that are not blocked.
    ready: Vec<u32>,
    at: usize,
    window: Option<FlowWindow>,
    /// Size of a message that was held back: it is the next to go, or back-pressure would
    /// choose among the sizes.
    held: Option<u32>,
    /// Messages that share one reading of the clock: as many as leave within some microseconds.
    per_stamp: u32,
}

/// A bound on the messages of a flow under way.
struct FlowWindow {
    /// Tokens that one message takes at most, see [`crate::window`].
    tokens: u64,
    /// Since when there have been no tokens, and when that was reported last.
    without: Option<(Nanos, Nanos)>,
}

/// The sending half of a worker.
pub struct Sending {
    brief: Arc<Brief>,
    clock: Clock,
    epoch: Nanos,
    mark: Mark,
    filler: Arc<Filler>,
    locals: Vec<Local>,
    outlets: Vec<Outlet>,
    /// Clients with their publishers, as positions in `locals`; sorted.
    by_client: Vec<(u32, u32)>,
    waiting: FxHashMap<u32, VecDeque<(Nanos, Due)>>,
    waiting_count: u64,
    senders: Vec<Sender>,
    flows: Vec<FlowRecording>,
    /// Deliveries of messages that wait, flow by flow.
    waiting_deliveries: Vec<u64>,
    /// Tokens of each flow's window that this worker holds.
    tokens: Vec<u64>,
    /// Messages of each flow by the windows of the measurement, where that has some.
    parts: Vec<Option<Parts>>,
    /// Bursts of each flow, where it sends such.
    bursts: Vec<Option<Bursts>>,
    /// Of each flow whose bursts wait: tokens that the messages of this one took.
    burst_tokens: Vec<u64>,
    /// Flows of which a burst that others wait for was handed over, with the tokens that it took.
    pub bursts_sent: Vec<(u32, u64)>,
    cuts: Cuts,
    series: Vec<Vec<Totals>>,
    /// Flow by flow, what was sent by each bound of a window.
    by_bound: Vec<Vec<Totals>>,
    /// On how many workers each stream's messages will be under way.
    spread: Arc<[u16]>,
    lag: Vec<Option<Times>>,
    table: Option<Timetable>,
    client: ClientSetup,
    /// When messages that fall due meanwhile are sent.
    leave_at: Nanos,
    /// Until when messages that are due may leave.
    until: Nanos,
    /// Sentinels published.
    pub sentinels: u64,
    /// The deliveries that they should cause.
    sentinels_due: u64,
    /// The two counts when the first sentinel that closes its stream was to go out.
    before_closing: Option<(u64, u64)>,
    /// Of a round of sentinels, the topics that have none yet: (position in `locals`, topics).
    round: VecDeque<(u32, Range<u32>)>,
    /// Flows whose window has been full for long without anything coming back: for how long, ns, and
    /// what was sent of them.
    pub stuck: Vec<(Nanos, Positions)>,
    /// By client and stream.
    reply_topics: FxHashMap<(u32, u32), TopicId>,
    /// Messages and sentinels accepted.
    sent: u64,
    /// Likewise by client, answers included, where clients come and go.
    accepted: Vec<u64>,
    /// Whether the system acknowledges messages.
    acknowledges: bool,
    /// The longest outages of publishers.
    outages: Vec<Outage>,
    /// Where the system's library sleeps in some calls of publish.
    calls: Option<Calls>,
}

impl Sending {
    /// A sending half without publishers.
    pub fn new(context: &Context, assignment: &Assignment) -> Self {
        let flows = context.brief.workload.flows.len();
        Sending {
            brief: context.brief.clone(),
            clock: context.clock.clone(),
            epoch: context.epoch,
            mark: assignment.mark,
            filler: context.filler.clone(),
            locals: Vec::new(),
            outlets: Vec::new(),
            by_client: Vec::new(),
            waiting: FxHashMap::default(),
            waiting_count: 0,
            senders: Vec::new(),
            flows: vec![FlowRecording::default(); flows],
            waiting_deliveries: vec![0; flows],
            tokens: vec![0; flows],
            parts: (0..flows).map(|_| None).collect(),
            bursts: (0..flows).map(|_| None).collect(),
            burst_tokens: vec![0; flows],
            bursts_sent: Vec::new(),
            cuts: Cuts::none(),
            series: vec![Vec::new(); flows],
            by_bound: vec![Vec::new(); flows],
            spread: context.spread.clone(),
            lag: (0..flows).map(|_| None).collect(),
            table: None,
            client: assignment.client,
            leave_at: 0,
            until: Nanos::MAX,
            sentinels: 0,
            sentinels_due: 0,
            before_closing: None,
            round: VecDeque::new(),
            stuck: Vec::new(),
            reply_topics: FxHashMap::default(),
            sent: 0,
            accepted: vec![0; context.brief.counted_clients(assignment)],
            acknowledges: false,
            outages: Vec::new(),
            calls: None,
        }
    }

    /// Calls of publish may sleep: each is timed.
    pub fn time_calls(&mut self) {
        self.calls = Some(Calls::new(&self.clock));
    }

    /// Takes a newer reading of the kernel's times of the thread, running and waiting, ns.
    pub fn accounted(&mut self, accounts: Nanos) {
        if let Some(calls) = &mut self.calls {
            calls.accounted(accounts);
        }
    }

    /// Whether this worker has publishers.
    pub fn publishes(&self) -> bool {
        !self.locals.is_empty()
    }

    /// Prepares for the timetable. `acknowledges`: the system acknowledges messages.
    ///
    /// # Errors
    /// A schedule that cannot be made (a trace that cannot be read).
    pub fn start(
        &mut self,
        table: Timetable,
        default_window: Option<u32>,
        acknowledges: bool,
        out: &Outbox,
    ) -> Result<(), String> {
        let brief = self.brief.clone();
        self.acknowledges = acknowledges;
        self.cuts = Cuts::new(table, &brief.workload);
        self.leave_at = 0;
        self.until = table.end + GRACE + self.client.pacing_within;
        let phases = &brief.workload.phases;
        self.parts.fill_with(|| Parts::new(table, phases));
        if self.publishes() {
            let flows = brief.workload.flows.iter();
            self.bursts = flows.map(|flow| Bursts::new(table, flow)).collect();
        }
        if self.table.replace(table).is_some() {
            // The warm-up ended by count: the measurement begins earlier than first planned.
            for sender in &mut self.senders {
                let flow = &brief.workload.flows[sender.flow as usize];
                (sender.origin, sender.end) = table.span(flow);
                if let Some(turn) = &mut sender.turn {
                    turn.burst = sender.origin;
                }
                sender.begin_curve(table, flow);
            }
            return Ok(());
        }
        // One sender for all publishers of a flow: they are consecutive, in ascending order.
        let locals = std::mem::take(&mut self.locals);
        let mut first = 0;
        for run in locals.chunk_by(|a, b| a.flow == b.flow) {
            let publisher =
                |local: &Local| brief.audience.streams[local.first_stream as usize].publisher;
            let publishers = run.iter().map(publisher).collect();
            self.add_sender(
                &brief,
                run[0].flow,
                first,
                publishers,
                (table, default_window),
            )?;
            first += run.len() as u32;
        }
        self.locals = locals;
        for sender in &self.senders {
            let parts = parts::count(phases);
            let new = || Times::new(sender.flow, Measure::SendLag, parts, out.clone());
            self.lag[sender.flow as usize].get_or_insert_with(new);
        }
        Ok(())
    }

    fn add_sender(
        &mut self,
        brief: &Brief,
        number: u32,
        first_local: u32,
        publishers: Vec<u32>,
        (table, default_window): (Timetable, Option<u32>),
    ) -> Result<(), String> {
        let flow = &brief.workload.flows[number as usize];
        let seed = brief.workload.seed_of(number);
        let locals = first_local..first_local + publishers.len() as u32;
        let (first, last) = (publishers[0], publishers[publishers.len() - 1]);
        let mut local_of = vec![u32::MAX; (last - first) as usize + 1];
        for (local, publisher) in locals.clone().zip(&publishers) {
            local_of[(publisher - first) as usize] = local;
        }
        let mut schedule = Schedule::try_new(flow, publishers, seed)
            .map_err(|e| format!("flow `{}`: {e}", flow.name))?;
        let (origin, end) = table.span(flow);
        schedule.begin_curve_at(table.measure.saturating_sub(origin));
        let everyone: Vec<u32> = locals.clone().collect();
        let pace = match (flow.arrivals.is_flat_out(), flow.exchange) {
            (true, Exchange::PingPong) => SendingPace::PingPong {
                idle: everyone,
                asked: FxHashMap::default(),
            },
            (true, Exchange::OneWay) => SendingPace::FlatOut(FlatOut {
                ready: everyone,
                at: 0,
                window: self.bound(number, flow.window.or(default_window)),
                held: None,
                per_stamp: 1,
            }),
            (false, _) => SendingPace::Due(schedule.next()),
        };
        self.senders.push(Sender {
            flow: number,
            schedule,
            pace,
            locals,
            local_of: local_of.into(),
            first_publisher: first,
            origin,
            end,
            turn: flow.arrivals.bursts_wait().then_some(BurstTurn {
                burst: origin,
                over: None,
            }),
        });
        Ok(())
    }

    /// The bound on messages under way of a flow; `None` if it has no subscribers.
    fn bound(&self, flow: u32, window: Option<u32>) -> Option<FlowWindow> {
        let streams = self.brief.streams_of(flow as usize);
        let tokens = streams.map(|stream| self.spread[stream as usize]).max()?;
        window.filter(|_| tokens > 0).map(|_| FlowWindow {
            tokens: u64::from(tokens),
            without: None,
        })
    }

    /// Takes the totals of every record that ended by `now`.
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
            for flow in 0..self.flows.len() {
                let totals = self.totals(flow);
                match passed {
                    Passed::Bound => self.by_bound[flow].push(totals),
                    _ => self.series[flow].push(totals),
                }
                if let (Passed::Record(record), Some(lag)) = (passed, &mut self.lag[flow]) {
                    lag.cut(record);
                }
            }
        }
    }

    fn totals(&self, flow: usize) -> Totals {
        let counts = &self.flows[flow];
        Totals {
            published: counts.messages.published + counts.warm_up_published,
            due: counts.messages.expected + counts.warm_up_expected,
            waiting: self.waiting_deliveries[flow],
            ..Totals::default()
        }
    }

    #[allow(clippy::too_many_arguments)]
    #[inline]
    fn hand_over(
        &mut self,
        fleet: &mut dyn Fleet,
        local: u32,
        topic: u32,
        kind: Kind,
        intended: Nanos,
        now: Nanos,
        size: u32,
        content: Option<&[u8]>,
    ) -> Publish {
        self.keep_time(now);
        let state = &self.locals[local as usize];
        let stream = state.first_stream + topic;
        let outlet = &mut self.outlets[(state.first_outlet + topic) as usize];
        // A sentinel carries how many measured messages were published before it.
        let counted = match kind {
            Kind::WarmUp => kind,
            _ => Kind::Measured,
        };
        let sequence = outlet.next[counted as usize];
        let lag = now.saturating_sub(intended);
        let header = Header {
            kind,
            intended: intended.saturating_sub(self.epoch),
            lag,
            stream,
            sequence,
        }
        .encode(self.mark);
        let body = match content {
            // The end of it: of contents that travel whole, all.
            Some(content) => {
                let body = (size as usize).saturating_sub(HEADER_LEN);
                &content[content.len().saturating_sub(body)..]
            }
            None => self.filler.body(stream, sequence, size as usize),
        };
        let to = match kind {
            Kind::Sentinel => outlet.sentinels,
            _ => outlet.topic,
        };
        let sent = now.saturating_sub(self.epoch);
        let began = self.calls.as_ref().map(Calls::start_time);
        let outcome = fleet.publish(
            state.client,
            to,
            Payload {
                head: &header,
                body,
            },
            tag(stream, kind, sent),
        );
        if let (Some(calls), Some(began)) = (&mut self.calls, began)
            && let Some(slept) = calls.returned(began)
        {
            self.add_held_back(self.locals[local as usize].flow, slept, 1);
        }
        if outcome == Publish::Blocked || self.locals[local as usize].blocked_since.is_some() {
            self.held_back(local, outcome, now);
        }
        let state = &self.locals[local as usize];
        let outlet = &mut self.outlets[(state.first_outlet + topic) as usize];
        let counts = &mut self.flows[state.flow as usize];
        match outcome {
            Publish::Accepted => {
                self.sent += 1;
                if let Some(accepted) = self.accepted.get_mut(state.client.0 as usize) {
                    *accepted += 1;
                }
                match kind {
                    Kind::Measured => {
                        outlet.next[0] = sequence.wrapping_add(1);
                        counts.messages.published += 1;
                        counts.never_acknowledged += u64::from(!outlet.acknowledged);
                        let expected = u64::from(self.brief.audience.fan_out(stream));
                        counts.messages.expected += expected;
                        let slow = self.brief.audience.slow_fan_out(stream);
                        counts.slow.expected += u64::from(slow);
                        let mut number = 0;
                        if let Some(parts) = &mut self.parts[state.flow as usize] {
                            number = parts.number(intended);
                            let part = parts.current();
                            part.published += 1;
                            part.expected += expected;
                        }
                        if let Some(times) = &mut self.lag[state.flow as usize] {
                            times.add(lag, number);
                        }
                    }
                    Kind::WarmUp => {
                        outlet.next[1] = sequence.wrapping_add(1);
                        counts.warm_up_published += 1;
                        counts.warm_up_expected += u64::from(self.brief.audience.fan_out(stream));
                    }
                    _ => {}
                }
            }
            Publish::Refused(why) if kind == Kind::Measured => {
                self.refused(local, stream, intended, why);
            }
            _ => {}
        }
        outcome
    }

    /// Notes that the system did not take a message of a publisher, or that it takes them again.
    #[cold]
    fn held_back(&mut self, local: u32, outcome: Publish, now: Nanos) {
        let state = &mut self.locals[local as usize];
        if outcome == Publish::Blocked {
            // `now` may be older: messages that are sent together share a reading of the clock.
            let clock = &self.clock;
            state.blocked_since.get_or_insert_with(|| clock.now());
        } else if let Some(since) = state.blocked_since.take() {
            let flow = state.flow;
            self.add_held_back(flow, since..now, 1);
        }
    }

    /// Adds a span for which some publishers of a flow were held back, as far as it lies in the measurement.
    fn add_held_back(&mut self, flow: u32, span: Range<Nanos>, publishers: u64) {
        let Some(table) = self.table else { return };
        let to = span.end.min(table.end);
        let ns = to.saturating_sub(span.start.max(table.measure));
        self.flows[flow as usize].held_back += ns * publishers;
    }

    /// The messages handed over so far, of any kind.
    pub fn traffic(&self) -> Traffic {
        let (sentinels, due) = (self.sentinels, self.sentinels_due);
        let (before, due_before) = self.before_closing.unwrap_or((sentinels, due));
        Traffic {
            handed_over: self.sent + self.flows.iter().map(|flow| flow.replies).sum::<u64>(),
            closing_sentinels: sentinels - before,
            closing_due: due - due_before,
            ..Traffic::default()
        }
    }

    /// Writes its counts into `counters`.
    pub fn count(&self, counters: &mut LiveCounters) {
        counters.sent = self.sent;
        counters.sentinels_due = self.sentinels_due;
        let held = self.tokens.iter();
        let asks = self
            .brief
            .workload
            .flows
            .iter()
            .map(|f| f.exchange == Exchange::PingPong);
        let flows = self.flows.iter().zip(asks);
        for (((flow, asks), tokens), counted) in flows.zip(held).zip(&mut counters.flows) {
            counted.asked = u64::from(asks) * flow.messages.published;
            counted.offered = flow.messages.offered;
            counted.expected = flow.messages.expected;
            counted.slow_expected = flow.slow.expected;
            counted.unused = *tokens;
            let answered = flow.messages.published - flow.never_acknowledged;
            counted.unacknowledged = u64::from(self.acknowledges) * answered;
        }
    }

    /// More messages of a flow may be under way.
    pub fn grant(&mut self, flow: u32, tokens: u64) {
        self.tokens[flow as usize] += tokens;
    }

    /// Notes that a measured message is due.
    #[inline]
    fn offer(&mut self, flow: u32, intended: Nanos) {
        self.flows[flow as usize].messages.offered += 1;
        if let Some(parts) = &mut self.parts[flow as usize] {
            parts.due_at(intended).offered += 1;
        }
    }
}

/// The topic on which a responder answers messages of `topic`.
pub fn reply_topic(topic: &str) -> String {
    format!("{topic}/reply")
}
