//! The sending half of a worker: what is due, what is blocked, what was taken.

mod paces;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use pubgauge_driver::header::HEADER_LEN;
use pubgauge_driver::{
    ClientId, Clock, Filler, Fleet, Header, Kind, Nanos, Payload, Publish, TopicId,
};
use pubgauge_workload::{Due, Exchange, Flow, Schedule};
use rustc_hash::FxHashMap;

use crate::assignment::{Brief, Timetable};
use crate::live::Live;
use crate::receiving::{Intervals, tag};
use crate::recording::FlowRecording;
use crate::times::{Measure, Times};

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
    /// The system takes no more from it just now.
    blocked: bool,
}

/// A stream's way out.
struct Outlet {
    topic: TopicId,
    /// Next sequence number of measured, warm-up and sentinel messages.
    next: [u32; 3],
}

/// What a flow's share on this worker sends, and how.
struct Sender {
    flow: u32,
    schedule: Schedule,
    pace: Pace,
    /// Its publishers, as positions in `Sending::locals`.
    locals: Range<u32>,
    shard_start: u32,
    /// When the schedule's time 0 is, and when sending ends.
    origin: Nanos,
    end: Nanos,
    /// The flow has a place of its own in time, counted from the start of the measurement.
    own_time: bool,
}

enum Pace {
    /// By due time; the next one is looked ahead.
    Due(Option<Due>),
    /// As fast as possible: positions in `Sending::locals` that are not blocked.
    FlatOut {
        ready: Vec<u32>,
        at: usize,
        window: Option<u64>,
        stuck: Option<(u64, Nanos)>,
        forgiven: u64,
        /// Size of a message that was held back: it is the next to go, or back-pressure would
        /// choose among the sizes.
        held: Option<u32>,
    },
    /// One question at a time for each publisher: (position, when asked).
    PingPong {
        idle: Vec<u32>,
        asked: FxHashMap<u32, Nanos>,
    },
}

/// The sending half of a worker.
pub struct Sending {
    brief: Arc<Brief>,
    live: Arc<Live>,
    clock: Clock,
    epoch: Nanos,
    nonce: u8,
    filler: Arc<Filler>,
    locals: Vec<Local>,
    outlets: Vec<Outlet>,
    by_client: FxHashMap<u32, Vec<u32>>,
    waiting: FxHashMap<u32, VecDeque<(Nanos, Due)>>,
    waiting_count: u64,
    shown_waiting: u64,
    senders: Vec<Sender>,
    flows: Vec<FlowRecording>,
    shown: Vec<(u64, u64, u64)>,
    lag: Vec<Option<Times>>,
    table: Option<Timetable>,
    measured_limit: Option<u64>,
    measured: u64,
    /// When the last message of a limited measurement was handed over.
    pub done_at: Option<Nanos>,
    /// Sentinels published.
    pub sentinels: u64,
    sentinel_at: usize,
    sentinel_next: Nanos,
    sentinel_pause: Nanos,
    reply_topics: FxHashMap<u32, TopicId>,
    sent: u64,
}

impl Sending {
    /// A sending half without publishers.
    pub fn new(
        brief: Arc<Brief>,
        live: Arc<Live>,
        clock: Clock,
        epoch: Nanos,
        nonce: u8,
        filler: Arc<Filler>,
        measured_limit: Option<u64>,
    ) -> Self {
        let flows = brief.workload.flows.len();
        Sending {
            brief,
            live,
            clock,
            epoch,
            nonce,
            filler,
            locals: Vec::new(),
            outlets: Vec::new(),
            by_client: FxHashMap::default(),
            waiting: FxHashMap::default(),
            waiting_count: 0,
            shown_waiting: 0,
            senders: Vec::new(),
            flows: vec![FlowRecording::default(); flows],
            shown: vec![(0, 0, 0); flows],
            lag: (0..flows).map(|_| None).collect(),
            table: None,
            measured_limit,
            measured: 0,
            done_at: None,
            sentinels: 0,
            sentinel_at: 0,
            sentinel_next: 0,
            sentinel_pause: 50_000_000,
            reply_topics: FxHashMap::default(),
            sent: 0,
        }
    }

    /// Makes the publishers of this worker's devices known. `clients` gives each device's client.
    ///
    /// # Errors
    /// A topic that the system cannot express.
    pub fn advertise(
        &mut self,
        fleet: &mut dyn Fleet,
        clients: &FxHashMap<u32, ClientId>,
    ) -> Result<(), String> {
        let brief = self.brief.clone();
        for (f, flow) in brief.workload.flows.iter().enumerate() {
            for (p, publisher) in flow.publishers.iter().enumerate() {
                let Some(client) = clients.get(&publisher.device) else {
                    continue;
                };
                let local = self.locals.len() as u32;
                self.locals.push(Local {
                    client: *client,
                    flow: f as u32,
                    first_stream: brief.audience.first_stream(f as u32, p as u32),
                    first_outlet: self.outlets.len() as u32,
                    topics: publisher.topics.len() as u32,
                    turn: 0,
                    blocked: false,
                });
                self.by_client.entry(client.0).or_default().push(local);
                for topic in &publisher.topics {
                    let topic = fleet.advertise(*client, topic).map_err(|e| e.to_string())?;
                    self.outlets.push(Outlet {
                        topic,
                        next: [0; 3],
                    });
                }
            }
            let responder = flow
                .subscribers
                .first()
                .and_then(|s| clients.get(&s.device));
            if let (Exchange::PingPong, Some(client)) = (flow.exchange, responder) {
                for (stream, topic) in brief
                    .streams_of(f)
                    .zip(flow.publishers.iter().flat_map(|p| &p.topics))
                {
                    let topic = fleet
                        .advertise(*client, &reply_topic(topic))
                        .map_err(|e| e.to_string())?;
                    self.reply_topics.insert(stream, topic);
                }
            }
        }
        Ok(())
    }

    /// Whether this worker has publishers.
    pub fn publishes(&self) -> bool {
        !self.locals.is_empty()
    }

    /// Sends sentinels, some at a time, in rounds with growing pauses; when to go on.
    pub fn send_sentinels(&mut self, fleet: &mut dyn Fleet) -> Nanos {
        let mut now = self.clock.now();
        if now < self.sentinel_next {
            return self.sentinel_next;
        }
        let brief = self.brief.clone();
        for _ in 0..PER_TURN {
            let Some(local) = self.locals.get(self.sentinel_at) else {
                self.sentinel_at = 0;
                self.sentinel_next = now + self.sentinel_pause;
                self.sentinel_pause = (self.sentinel_pause * 2).min(1_000_000_000);
                return self.sentinel_next;
            };
            let (topics, first) = (local.topics, local.first_stream);
            for topic in 0..topics {
                if brief.audience.fan_out(first + topic) == 0 {
                    continue;
                }
                now = self.clock.now();
                if self.hand_over(
                    fleet,
                    self.sentinel_at as u32,
                    topic,
                    Kind::Sentinel,
                    now,
                    now,
                    HEADER_LEN as u32,
                    None,
                ) == Publish::Accepted
                {
                    self.sentinels += 1;
                }
            }
            self.sentinel_at += 1;
        }
        now
    }

    /// Prepares for the timetable.
    ///
    /// # Errors
    /// A schedule that cannot be made (a trace that cannot be read).
    pub fn start(
        &mut self,
        table: Timetable,
        default_window: Option<u32>,
        out: &Intervals,
    ) -> Result<(), String> {
        let brief = self.brief.clone();
        if self.table.replace(table).is_some() {
            // The warm-up ended by count: the measurement begins earlier than first planned.
            for sender in &mut self.senders {
                let flow = &brief.workload.flows[sender.flow as usize];
                (sender.origin, sender.end) = span(flow, sender.own_time, table);
                self.lag[sender.flow as usize] = Some(Times::new(
                    sender.flow,
                    Measure::SendLag,
                    table.measure - self.epoch,
                    table.interval,
                    out.clone(),
                ));
            }
            return Ok(());
        }
        let mut at = 0;
        while at < self.locals.len() {
            // A sender serves a run of publishers that are neighbours in their flow.
            let (flow, first) = (self.locals[at].flow, self.publisher_of(at));
            let mut len = 1;
            while at + len < self.locals.len()
                && self.locals[at + len].flow == flow
                && self.publisher_of(at + len) == first + len as u32
            {
                len += 1;
            }
            self.add_sender(
                &brief.workload.flows[flow as usize],
                flow,
                first,
                at as u32,
                len as u32,
                table,
                default_window,
            )?;
            at += len;
        }
        for sender in &self.senders {
            self.lag[sender.flow as usize].get_or_insert_with(|| {
                Times::new(
                    sender.flow,
                    Measure::SendLag,
                    table.measure - self.epoch,
                    table.interval,
                    out.clone(),
                )
            });
        }
        Ok(())
    }

    fn publisher_of(&self, local: usize) -> u32 {
        self.brief.audience.streams[self.locals[local].first_stream as usize].publisher
    }

    #[allow(clippy::too_many_arguments)]
    fn add_sender(
        &mut self,
        flow: &Flow,
        number: u32,
        first_publisher: u32,
        first_local: u32,
        len: u32,
        table: Timetable,
        default_window: Option<u32>,
    ) -> Result<(), String> {
        let seed =
            self.brief.workload.seed ^ (u64::from(number) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut schedule = Schedule::try_new(flow, first_publisher..first_publisher + len, seed)
            .map_err(|e| format!("flow `{}`: {e}", flow.name))?;
        // A flow with a place of its own in time has no warm-up.
        let own_time = flow.start_offset > 0 || flow.active_for.is_some();
        let (origin, end) = span(flow, own_time, table);
        let everyone: Vec<u32> = (first_local..first_local + len).collect();
        let pace = match (flow.arrivals.is_flat_out(), flow.exchange) {
            (true, Exchange::PingPong) => Pace::PingPong {
                idle: everyone,
                asked: FxHashMap::default(),
            },
            (true, Exchange::OneWay) => Pace::FlatOut {
                ready: everyone,
                at: 0,
                window: flow.window.or(default_window).map(u64::from),
                stuck: None,
                forgiven: 0,
                held: None,
            },
            (false, _) => Pace::Due(schedule.next()),
        };
        self.senders.push(Sender {
            flow: number,
            schedule,
            pace,
            locals: first_local..first_local + len,
            shard_start: first_publisher,
            origin,
            end,
            own_time,
        });
        Ok(())
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
        let state = &self.locals[local as usize];
        let stream = state.first_stream + topic;
        let outlet = &mut self.outlets[(state.first_outlet + topic) as usize];
        let sequence = outlet.next[kind as usize];
        let lag = now.saturating_sub(intended);
        let header = Header {
            kind,
            intended: intended.saturating_sub(self.epoch),
            lag,
            stream,
            sequence,
        }
        .encode(self.nonce);
        let body = match content {
            Some(content) => content.get(HEADER_LEN..).unwrap_or_default(),
            None => self.filler.body(stream, sequence, size as usize),
        };
        let sent = now.saturating_sub(self.epoch);
        let outcome = fleet.publish(
            state.client,
            outlet.topic,
            Payload {
                head: &header,
                body,
            },
            tag(stream, kind, sent),
        );
        let counts = &mut self.flows[state.flow as usize];
        match outcome {
            Publish::Accepted => {
                outlet.next[kind as usize] = sequence.wrapping_add(1);
                self.sent += 1;
                match kind {
                    Kind::Measured => {
                        counts.published += 1;
                        counts.expected += u64::from(self.brief.audience.fan_out(stream));
                        if let Some(times) = &mut self.lag[state.flow as usize] {
                            times.add(sent, lag);
                        }
                    }
                    Kind::WarmUp => {
                        counts.warm_up_published += 1;
                        counts.warm_up_expected += u64::from(self.brief.audience.fan_out(stream));
                    }
                    _ => {}
                }
                if self
                    .table
                    .is_some_and(|t| (t.measure..t.end).contains(&now))
                {
                    counts.accepted_in_window += 1;
                }
            }
            Publish::Refused(_) if kind == Kind::Measured => counts.refused += 1,
            _ => {}
        }
        outcome
    }

    fn all_expected(&self, flow: usize) -> u64 {
        self.flows[flow].expected + self.flows[flow].warm_up_expected
    }

    fn mean_fan_out(&self, flow: u32) -> u32 {
        let streams = self.brief.streams_of(flow as usize);
        self.brief
            .audience
            .streams
            .get(streams.start as usize)
            .map_or(0, |_| self.brief.audience.fan_out(streams.start))
    }

    /// Shows the counters.
    pub fn show(&mut self) {
        for f in 0..self.flows.len() {
            let all = self.all_expected(f);
            let (flow, live, shown) = (&self.flows[f], &self.live.flows[f], &mut self.shown[f]);
            if all != shown.2 || flow.published != shown.0 {
                live.published.fetch_add(flow.published - shown.0, Relaxed);
                live.expected.fetch_add(flow.expected - shown.1, Relaxed);
                live.all_expected.fetch_add(all - shown.2, Relaxed);
                *shown = (flow.published, flow.expected, all);
            }
        }
        if self.sent > 0 {
            self.live
                .sent
                .fetch_add(std::mem::take(&mut self.sent), Relaxed);
        }
        if self.waiting_count != self.shown_waiting
            && let Some(first) = self.live.flows.first()
        {
            // One figure for the whole worker: the conductor only looks at the sum. Wraps round
            // to subtract.
            first
                .waiting
                .fetch_add(self.waiting_count.wrapping_sub(self.shown_waiting), Relaxed);
            self.shown_waiting = self.waiting_count;
        }
    }

    /// The measurement is over: what is still waiting was not sent, and nothing else will be.
    pub fn stop(&mut self) {
        self.senders.clear();
        let Some(table) = self.table else { return };
        for (local, queue) in self.waiting.drain() {
            let flow = self.locals[local as usize].flow as usize;
            self.flows[flow].not_sent +=
                queue.iter().filter(|(at, _)| *at >= table.measure).count() as u64;
        }
        self.waiting_count = 0;
    }

    /// Ends the times and gives the counts.
    pub fn finish(&mut self) -> Vec<FlowRecording> {
        for (flow, lag) in self.flows.iter_mut().zip(self.lag.drain(..)) {
            flow.overflowed += lag.map_or(0, Times::finish);
        }
        std::mem::take(&mut self.flows)
    }
}

/// When a flow's schedule begins and when it ends. A flow with a place of its own in time is
/// placed from the start of the measurement and has no warm-up.
fn span(flow: &Flow, own_time: bool, table: Timetable) -> (Nanos, Nanos) {
    let origin = if own_time {
        table.measure + flow.start_offset
    } else {
        table.warm_up
    };
    (
        origin,
        flow.active_for
            .map_or(table.end, |span| table.end.min(origin.saturating_add(span))),
    )
}

/// Where a responder answers messages of `topic`.
pub fn reply_topic(topic: &str) -> String {
    format!("{topic}/reply")
}
