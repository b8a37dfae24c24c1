//! The receiving half of a worker: what comes out of a fleet is stamped, checked and counted.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Sender;

use hdrhistogram::Histogram;
use pubgauge_driver::header::HEADER_LEN;
use pubgauge_driver::{
    Acknowledgement, Change, ClientId, Clock, Delivery, Events, Filler, Header, Kind, Nanos,
};
use pubgauge_workload::Exchange;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::assignment::{Brief, Timetable};
use crate::ledger::{Arrival, Ledger};
use crate::live::Live;
use crate::recording::FlowRecording;
use crate::times::{Interval, Measure, Times};

/// Where filled histograms go.
pub type Intervals = Sender<(Interval, Sender<Histogram<u64>>)>;

/// An answer that a ping-pong responder owes.
pub struct Reply {
    /// Who answers.
    pub client: ClientId,
    /// The question's header; the answer carries it back with [`Kind::Reply`].
    pub header: Header,
    /// The question's length.
    pub len: usize,
}

/// What one client receives as.
#[derive(Clone, Debug, Default)]
struct Seat {
    device: u32,
    /// Its parties, one for each flow in which it subscribes, with whether it is a group. Their
    /// streams do not overlap.
    parties: Box<[(u32, bool)]>,
    /// It answers ping-pong questions.
    responds: bool,
}

impl Seat {
    /// The party as which the client is entitled to `stream`.
    #[inline]
    fn party(&self, brief: &Brief, stream: u32) -> Option<(u32, bool)> {
        match *self.parties {
            [] => None,
            // Whether this one is entitled is asked by the ledger, once per stream.
            [only] => Some(only),
            _ => self
                .parties
                .iter()
                .find(|(party, _)| brief.audience.parties[*party as usize].is_entitled(stream))
                .copied(),
        }
    }
}

/// The receiving half of a worker.
pub struct Receiving {
    brief: Arc<Brief>,
    live: Arc<Live>,
    clock: Clock,
    epoch: Nanos,
    nonce: u8,
    filler: Arc<Filler>,
    seats: Vec<Seat>,
    ledger: Ledger,
    /// Arrival time of what is being reported, since the epoch.
    now: Nanos,
    window: (Nanos, Nanos),
    flows: Vec<FlowIn>,
    /// (party, stream) pairs of this worker that no sentinel has reached yet.
    pub unproven: FxHashSet<u64>,
    /// What happened to clients since it was last taken.
    pub changes: Vec<(ClientId, Change)>,
    /// Answers owed since they were last taken.
    pub replies: Vec<Reply>,
    /// Streams whose answer came since it was last taken.
    pub answered: Vec<u32>,
    /// Foreign deliveries.
    pub foreign: u64,
    /// Last values.
    pub retained: u64,
    /// Deliveries marked as repeated.
    pub redelivered: u64,
    received: u64,
}

/// One flow's incoming side.
struct FlowIn {
    counts: FlowRecording,
    times: Option<FlowTimes>,
    /// (unique, delivered, all delivered) as last shown.
    shown: (u64, u64, u64),
    /// Messages that the driver had accepted and the system rejected, and the deliveries that
    /// were therefore expected in vain.
    rejected: u64,
    rejected_deliveries: u64,
}

struct FlowTimes {
    latency: Times,
    from_send: Times,
    acknowledgement: Option<Times>,
    round_trip: Option<Times>,
}

/// Acknowledgement tags: stream, kind and a coarse send time that wraps every 18 minutes.
const TAG_TIME_BITS: u32 = 38;

/// Packs what is needed to time an acknowledgement. Send times keep 4 ns.
pub fn tag(stream: u32, kind: Kind, sent: Nanos) -> u64 {
    u64::from(stream) << 40
        | (kind as u64) << TAG_TIME_BITS
        | (sent >> 2 & ((1 << TAG_TIME_BITS) - 1))
}

impl Receiving {
    /// A receiving half. `seats` tells for each client (in order of connecting) its device.
    pub fn new(
        brief: Arc<Brief>,
        live: Arc<Live>,
        clock: Clock,
        epoch: Nanos,
        nonce: u8,
        filler: Arc<Filler>,
        devices: &[u32],
    ) -> Self {
        let mut parties_of: FxHashMap<u32, Vec<(u32, bool)>> = FxHashMap::default();
        for (p, party) in brief.audience.parties.iter().enumerate() {
            for (flow, subscriber) in &party.members {
                let device =
                    brief.workload.flows[*flow as usize].subscribers[*subscriber as usize].device;
                parties_of
                    .entry(device)
                    .or_default()
                    .push((p as u32, party.group.is_some()));
            }
        }
        let responders: FxHashSet<u32> = brief
            .workload
            .flows
            .iter()
            .filter(|flow| flow.exchange == Exchange::PingPong)
            .filter_map(|flow| Some(flow.subscribers.first()?.device))
            .collect();
        let seats: Vec<Seat> = devices
            .iter()
            .map(|device| Seat {
                device: *device,
                parties: parties_of.get(device).cloned().unwrap_or_default().into(),
                responds: responders.contains(device),
            })
            .collect();
        let mut unproven = FxHashSet::default();
        for (party, _) in seats.iter().flat_map(|s| &s.parties) {
            for stream in brief.audience.parties[*party as usize]
                .streams
                .iter()
                .cloned()
                .flatten()
            {
                unproven.insert(key(*party, stream));
            }
        }
        live.unproven.fetch_add(unproven.len() as u64, Relaxed);
        let flows = brief
            .workload
            .flows
            .iter()
            .map(|_| FlowIn {
                counts: FlowRecording::default(),
                times: None,
                shown: (0, 0, 0),
                rejected: 0,
                rejected_deliveries: 0,
            })
            .collect();
        Receiving {
            brief,
            live,
            clock,
            epoch,
            nonce,
            filler,
            seats,
            ledger: Ledger::default(),
            now: 0,
            window: (Nanos::MAX, Nanos::MAX),
            flows,
            unproven,
            changes: Vec::new(),
            replies: Vec::new(),
            answered: Vec::new(),
            foreign: 0,
            retained: 0,
            redelivered: 0,
            received: 0,
        }
    }

    /// Sets the measurement's window and makes room for its times.
    pub fn start(
        &mut self,
        table: &Timetable,
        out: &Intervals,
        acknowledges: bool,
        receives: bool,
    ) {
        self.window = (table.measure - self.epoch, table.end - self.epoch);
        let start = self.window.0;
        for (f, flow) in self.flows.iter_mut().enumerate() {
            let ping_pong = self.brief.is_ping_pong(f);
            let new = |measure| Times::new(f as u32, measure, start, table.interval, out.clone());
            if receives || acknowledges || ping_pong {
                flow.times = Some(FlowTimes {
                    latency: new(Measure::Latency),
                    from_send: new(Measure::LatencyFromSend),
                    acknowledgement: acknowledges.then(|| new(Measure::Acknowledgement)),
                    round_trip: ping_pong.then(|| new(Measure::RoundTrip)),
                });
            }
        }
    }

    /// The measurement ended earlier than planned.
    pub fn end_window(&mut self, end: Nanos) {
        self.window.1 = self.window.1.min(end.saturating_sub(self.epoch));
    }

    /// Whether any client of this worker subscribes.
    pub fn receives(&self) -> bool {
        self.seats.iter().any(|s| !s.parties.is_empty())
    }

    /// Shows the counters.
    pub fn show(&mut self) {
        for (flow, live) in self.flows.iter_mut().zip(&self.live.flows) {
            let c = &flow.counts;
            let all = c.delivered + c.warm_up_delivered;
            if all != flow.shown.2 {
                live.unique.fetch_add(c.unique - flow.shown.0, Relaxed);
                live.delivered
                    .fetch_add(c.delivered - flow.shown.1, Relaxed);
                live.all_delivered.fetch_add(all - flow.shown.2, Relaxed);
                flow.shown = (c.unique, c.delivered, all);
            }
        }
        if self.received > 0 {
            self.live
                .received
                .fetch_add(std::mem::take(&mut self.received), Relaxed);
        }
    }

    /// Ends the times and adds the counts to those of the sending half.
    pub fn finish(&mut self, sent: &mut [FlowRecording]) {
        for (mut flow, sent) in self.flows.drain(..).zip(sent) {
            if let Some(t) = flow.times {
                flow.counts.overflowed += t.latency.finish() + t.from_send.finish();
                flow.counts.overflowed += t.acknowledgement.map_or(0, Times::finish);
                flow.counts.overflowed += t.round_trip.map_or(0, Times::finish);
            }
            sent.add(&flow.counts);
            sent.refused += flow.rejected;
            sent.published -= flow.rejected;
            sent.expected -= flow.rejected_deliveries;
        }
    }

    #[inline]
    fn in_window(&self) -> bool {
        (self.window.0..self.window.1).contains(&self.now)
    }

    #[inline]
    fn measured(&mut self, client: ClientId, flow: usize, header: Header, payload: &[u8]) {
        let Some((party, grouped)) =
            self.seats[client.0 as usize].party(&self.brief, header.stream)
        else {
            self.foreign += 1;
            return;
        };
        let parties = &self.brief.audience.parties;
        let arrival = self.ledger.note(
            party,
            grouped.then_some(client),
            header.stream,
            header.sequence,
            || parties[party as usize].is_entitled(header.stream),
        );
        if arrival == Arrival::Foreign {
            self.foreign += 1;
            return;
        }
        let in_window = self.in_window();
        let (now, state) = (self.now, &mut self.flows[flow]);
        state.counts.delivered += 1;
        state.counts.arrived_in_window += u64::from(in_window);
        if self.brief.checked[flow]
            && !self
                .filler
                .matches(header.stream, header.sequence, &payload[HEADER_LEN..])
        {
            state.counts.corrupt += 1;
        }
        match arrival {
            Arrival::Duplicate => {
                state.counts.duplicated += 1;
                return;
            }
            Arrival::Reordered => state.counts.reordered += 1,
            _ => {}
        }
        state.counts.unique += 1;
        if now < header.intended {
            state.counts.negative += 1;
        }
        if let Some(times) = &mut state.times {
            let latency = now.saturating_sub(header.intended);
            times.latency.add(now, latency);
            times.from_send.add(now, latency.saturating_sub(header.lag));
        }
    }
}

/// A (party, stream) pair in one word.
#[inline]
fn key(party: u32, stream: u32) -> u64 {
    u64::from(party) << 32 | u64::from(stream)
}

impl Events for Receiving {
    #[inline]
    fn arrived(&mut self) {
        self.now = self.clock.now().saturating_sub(self.epoch);
    }

    #[inline]
    fn delivered(&mut self, client: ClientId, delivery: Delivery<'_>) {
        self.received += 1;
        if delivery.retained {
            self.retained += 1;
            return;
        }
        self.redelivered += u64::from(delivery.redelivered);
        let header = Header::decode(delivery.payload, self.nonce);
        let Some((header, flow)) = header.and_then(|h| Some((h, self.brief.flow_of(h.stream)?)))
        else {
            self.foreign += 1;
            return;
        };
        match header.kind {
            Kind::Measured => self.measured(client, flow, header, delivery.payload),
            Kind::WarmUp => {
                let in_window = self.in_window();
                let counts = &mut self.flows[flow].counts;
                counts.warm_up_delivered += 1;
                counts.arrived_in_window += u64::from(in_window);
            }
            Kind::Sentinel => {
                let party = self.seats[client.0 as usize].party(&self.brief, header.stream);
                if let Some((party, _)) = party
                    && self.unproven.remove(&key(party, header.stream))
                {
                    self.live.unproven.fetch_sub(1, Relaxed);
                }
                return;
            }
            Kind::Reply => {
                let info = self.brief.audience.streams[header.stream as usize];
                let asker = &self.brief.workload.flows[flow].publishers[info.publisher as usize];
                if self.seats[client.0 as usize].device != asker.device {
                    // A wildcard subscriber overhears the answers; they are not for it.
                    return;
                }
                self.answered.push(header.stream);
                let (now, start) = (self.now, self.window.0);
                if header.intended >= start
                    && let Some(round_trip) = self.flows[flow]
                        .times
                        .as_mut()
                        .and_then(|t| t.round_trip.as_mut())
                {
                    round_trip.add(now, now.saturating_sub(header.intended));
                }
                return;
            }
        }
        if self.seats[client.0 as usize].responds && self.brief.is_ping_pong(flow) {
            self.replies.push(Reply {
                client,
                header,
                len: delivery.payload.len(),
            });
        }
    }

    #[inline]
    fn acknowledged(&mut self, _: ClientId, tag: u64, answer: Acknowledgement) {
        let kind_bits = tag >> TAG_TIME_BITS & 3;
        if kind_bits != Kind::Measured as u64 {
            return;
        }
        let stream = (tag >> 40) as u32;
        let Some(flow) = self.brief.flow_of(stream) else {
            return;
        };
        let now = self.now;
        let state = &mut self.flows[flow];
        if let Acknowledgement::Rejected(_) = answer {
            state.rejected += 1;
            state.rejected_deliveries += u64::from(self.brief.audience.fan_out(stream));
            return;
        }
        let mask = (1u64 << TAG_TIME_BITS) - 1;
        let elapsed = (now >> 2).wrapping_sub(tag & mask) & mask;
        if let Some(times) = state
            .times
            .as_mut()
            .and_then(|t| t.acknowledgement.as_mut())
        {
            times.add(now, elapsed << 2);
        }
    }

    fn changed(&mut self, client: ClientId, change: Change) {
        self.changes.push((client, change));
    }
}
