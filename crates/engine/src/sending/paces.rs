//! When messages go out: by schedule, flat out, or one question at a time; and what happens to those
//! that the system does not take at once.

use std::collections::VecDeque;
use std::ops::Range;

use pubgauge_driver::header::HEADER_LEN;
use pubgauge_driver::{ClientId, Fleet, Header, Kind, Nanos, Payload, Publish, Refusal};
use pubgauge_workload::{Arrivals, Due, Gate};
use rustc_hash::FxHashMap;

use super::{FlatOut, FlowWindow, PER_TURN, Sending, SendingPace, Whereabouts};
use crate::receiving::Reply;
use crate::reports::Positions;

/// Flat-out messages that share one reading of the clock, at most.
const PER_STAMP: u32 = 64;
/// For how long they share it, ns: so much later than told may one of them have left, and the time of one call more.
const STAMP_WITHIN: Nanos = 10_000;
/// Messages are handed over for no longer than this between two polls, ns, and one call more: commands must be seen, the
/// end of the measurement among them.
const TURN_WITHIN: Nanos = 5_000_000;
/// Most scheduled messages handed over between two polls, so that reading is not starved.
const DUE_PER_TURN: u32 = 1024;
/// A ping-pong question without an answer is given up after this long.
const ANSWER_WITHIN: Nanos = 1_000_000_000;
/// A worker reports that a window is full without anything coming back after this long, and again
/// each time as long has passed.
pub(super) const STUCK_AFTER: Nanos = 1_000_000_000;
/// How soon a full window is looked at again.
const WINDOW_AGAIN: Nanos = 50_000;

impl Sending {
    /// Hands over what is due. Returns when the next message is due ([`Nanos::MAX`]: none is, or all
    /// wait for the system; now or earlier: at once).
    ///
    /// Scheduled messages are gathered: those that fall due within [`ClientSetup::pacing_within`] of
    /// the first are sent together, whatever else wakes the worker meanwhile.
    ///
    /// [`ClientSetup::pacing_within`]: pubgauge_setup::ClientSetup::pacing_within
    pub fn send_due(&mut self, fleet: &mut dyn Fleet) -> Nanos {
        let gathering = self.client.pacing_within > 0 && self.clock.now() < self.leave_at;
        let mut next = Nanos::MAX;
        let mut leave_at = Nanos::MAX;
        for index in 0..self.senders.len() {
            // Out of its place while it works, because it shares `self` with `hand_over`.
            let (mut pace, sender, waits) = {
                let sender = &mut self.senders[index];
                (
                    std::mem::replace(&mut sender.pace, SendingPace::Due(None)),
                    (sender.flow, sender.origin, sender.end),
                    sender.turn.is_some(),
                )
            };
            let due = match &mut pace {
                // A burst that waits begins when it is announced, whatever is gathered beside it.
                SendingPace::Due(ahead) if waits => {
                    self.send_scheduled(fleet, index, sender, ahead)
                }
                SendingPace::Due(_) if gathering => self.leave_at,
                SendingPace::Due(ahead) => {
                    let at = match self.send_scheduled(fleet, index, sender, ahead) {
                        Nanos::MAX => Nanos::MAX,
                        0 => 0,
                        // A message that is due before the end of the measurement is sent before it ends.
                        due => due.saturating_add(self.client.pacing_within).min(sender.2),
                    };
                    leave_at = leave_at.min(at);
                    at
                }
                SendingPace::FlatOut(state) => self.send_flat_out(fleet, index, sender, state),
                SendingPace::PingPong { idle, asked } => {
                    self.send_questions(fleet, index, sender, idle, asked)
                }
            };
            self.senders[index].pace = pace;
            next = next.min(due);
        }
        if !gathering {
            self.leave_at = leave_at;
        }
        next
    }

    /// Hands over what is due of a schedule. Returns when the next message is due, 0 if messages that
    /// are due already may be left.
    fn send_scheduled(
        &mut self,
        fleet: &mut dyn Fleet,
        index: usize,
        (flow, origin, end): (u32, Nanos, Nanos),
        ahead: &mut Option<Due>,
    ) -> Nanos {
        let Some(table) = self.table else {
            return Nanos::MAX;
        };
        let mut now = self.clock.now();
        let began = now;
        for _ in 0..DUE_PER_TURN {
            let Some(due) = ahead.as_ref() else {
                return Nanos::MAX;
            };
            if now >= self.until || now - began >= TURN_WITHIN {
                return 0;
            }
            let intended = origin.saturating_add(due.at);
            if intended >= end {
                *ahead = None;
                return Nanos::MAX;
            }
            let turn = self.senders[index].turn.as_ref();
            if turn.is_some_and(|turn| intended > turn.burst) {
                self.burst_over(index, now);
                return Nanos::MAX;
            }
            if intended > now {
                now = self.clock.now();
                if intended > now {
                    return intended;
                }
            }
            let sender = &mut self.senders[index];
            let Some(due) = std::mem::replace(ahead, sender.schedule.next()) else {
                return Nanos::MAX;
            };
            let Some(local) = sender.local(due.publisher) else {
                continue;
            };
            let measured = intended >= table.measure;
            let place = self.locals[local as usize].place;
            if place == Whereabouts::Away {
                self.flows[flow as usize].messages.away += u64::from(measured);
                continue;
            }
            if measured {
                self.offer(flow, intended);
                self.burst_due(flow, intended);
            }
            let returns = place == Whereabouts::Returning;
            let blocked = self.locals[local as usize].blocked;
            let queued = returns || blocked && self.waiting.contains_key(&local);
            if queued || !self.try_scheduled(fleet, local, intended, &due, now) {
                self.locals[local as usize].blocked = true;
                self.waiting_deliveries[flow as usize] += self.deliveries(local, due.topic);
                self.waiting
                    .entry(local)
                    .or_default()
                    .push_back((intended, due));
                self.waiting_count += 1;
            } else {
                now = self.clock.now();
                self.burst_handed(flow, intended, now);
            }
        }
        0
    }

    /// Hands over a scheduled message; false if it must wait.
    fn try_scheduled(
        &mut self,
        fleet: &mut dyn Fleet,
        local: u32,
        intended: Nanos,
        due: &Due,
        now: Nanos,
    ) -> bool {
        let Some(table) = self.table else { return true };
        let kind = table.kind_at(intended);
        let outcome = self.hand_over(
            fleet,
            local,
            due.topic,
            kind,
            intended,
            now,
            due.size,
            due.content.as_deref(),
        );
        match outcome {
            Publish::Blocked => return false,
            Publish::Accepted => self.burst_taken(local, intended, now, due),
            Publish::Refused(_) => {}
        }
        true
    }

    fn send_flat_out(
        &mut self,
        fleet: &mut dyn Fleet,
        index: usize,
        (flow, origin, end): (u32, Nanos, Nanos),
        FlatOut {
            ready,
            at,
            window,
            held,
            per_stamp,
        }: &mut FlatOut,
    ) -> Nanos {
        let Some(table) = self.table else {
            return Nanos::MAX;
        };
        let brief = self.brief.clone();
        let arrivals: &Arrivals = &brief.workload.flows[flow as usize].arrivals;
        let mut left = PER_TURN;
        let mut turn_began = None;
        let mut shared: Option<(Nanos, u32)> = None;
        while left > 0 {
            let now = self.clock.now();
            if let Some((began, messages)) = shared {
                // Some libraries take a few ns for a message, others 20 us.
                let each = (now - began) / Nanos::from(messages);
                *per_stamp = (STAMP_WITHIN / each.max(1)).clamp(1, PER_STAMP.into()) as u32;
            }
            if now - *turn_began.get_or_insert(now) >= TURN_WITHIN {
                break;
            }
            if now < origin {
                return origin;
            }
            if now >= end {
                return Nanos::MAX;
            }
            if let Gate::Shut(until) = arrivals.flat_out_at(now - origin) {
                // Nothing is to be sent: the bound holds nobody back.
                if let Some((since, _)) = window.as_mut().and_then(|bound| bound.without.take()) {
                    self.add_held_back(flow, since..now, ready.len() as u64);
                }
                return origin.saturating_add(until);
            }
            let room = match window {
                None => PER_STAMP,
                Some(bound) => self.room(flow, bound, now, ready.len() as u64),
            };
            let granted = room.min(*per_stamp).min(left);
            if granted == 0 {
                return now + WINDOW_AGAIN;
            }
            left -= granted;
            shared = Some((now, granted));
            let mut tokens = 0;
            let kind = table.kind_at(now);
            let (mut ended, mut full) = (false, false);
            for _ in 0..granted {
                if ready.is_empty() {
                    ended = true;
                    break;
                }
                if *at >= ready.len() {
                    *at = 0;
                }
                let local = ready[*at];
                let size = match held
                    .take()
                    .or_else(|| Some(self.senders[index].schedule.next()?.size))
                {
                    Some(size) => size,
                    None => {
                        ended = true;
                        break;
                    }
                };
                let turn = self.locals[local as usize].turn;
                match self.hand_over(fleet, local, turn, kind, now, now, size, None) {
                    Publish::Accepted => {
                        let state = &mut self.locals[local as usize];
                        if window.is_some() {
                            tokens += u64::from(self.spread[(state.first_stream + turn) as usize]);
                        }
                        state.turn = if turn + 1 == state.topics {
                            0
                        } else {
                            turn + 1
                        };
                        *at += 1;
                        if kind == Kind::Measured {
                            self.offer(flow, now);
                        }
                    }
                    Publish::Blocked => {
                        *held = Some(size);
                        self.locals[local as usize].blocked = true;
                        ready.swap_remove(*at);
                    }
                    Publish::Refused(why) => {
                        if kind == Kind::Measured {
                            self.offer(flow, now);
                        }
                        // A lost connection would be tried again at full speed: its publisher pauses
                        // until the client is connected again.
                        if why == Refusal::NotConnected {
                            self.locals[local as usize].blocked = true;
                            ready.swap_remove(*at);
                        } else {
                            *at += 1;
                            full = true;
                            break;
                        }
                    }
                }
            }
            if window.is_some() {
                self.tokens[flow as usize] -= tokens;
            }
            if ended {
                return Nanos::MAX;
            }
            // Drops of full queues are no reason to drop more before they were served.
            if full {
                return now + WINDOW_AGAIN;
            }
        }
        // More at once, unless every publisher is held back.
        if ready.is_empty() { Nanos::MAX } else { 0 }
    }

    /// For how many messages there are tokens of a flow's window; `ready`: publishers that wait for them.
    fn room(&mut self, flow: u32, bound: &mut FlowWindow, now: Nanos, ready: u64) -> u32 {
        let room = self.tokens[flow as usize] / bound.tokens;
        if room > 0 {
            if let Some((since, _)) = bound.without.take() {
                self.add_held_back(flow, since..now, ready);
            }
            return room.min(u64::from(PER_STAMP)) as u32;
        }
        let (since, told) = *bound.without.get_or_insert((now, now));
        if now - told >= STUCK_AFTER {
            bound.without = Some((since, now));
            let positions = self.positions(flow);
            self.stuck.push((now - since, positions));
        }
        0
    }

    /// How much was sent of each stream of a flow.
    pub(super) fn positions(&self, flow: u32) -> Positions {
        let locals = self.locals.iter().filter(|local| local.flow == flow);
        locals
            .flat_map(|local| {
                let outlets = &self.outlets[local.first_outlet as usize..][..local.topics as usize];
                (local.first_stream..).zip(outlets.iter().map(|outlet| outlet.next))
            })
            .filter(|(_, sent)| *sent != [0, 0])
            .collect()
    }

    /// Deliveries that a publisher's message to one of its topics should cause.
    pub(super) fn deliveries(&self, local: u32, topic: u32) -> u64 {
        let stream = self.locals[local as usize].first_stream + topic;
        u64::from(self.brief.audience.fan_out(stream))
    }

    fn send_questions(
        &mut self,
        fleet: &mut dyn Fleet,
        index: usize,
        (flow, origin, end): (u32, Nanos, Nanos),
        idle: &mut Vec<u32>,
        asked: &mut FxHashMap<u32, Nanos>,
    ) -> Nanos {
        let Some(table) = self.table else {
            return Nanos::MAX;
        };
        let now = self.clock.now();
        if now < origin {
            return origin;
        }
        if now >= end {
            return Nanos::MAX;
        }
        asked.retain(|local, at| {
            let late = *at + ANSWER_WITHIN < now;
            if late {
                idle.push(*local);
            }
            !late
        });
        let mut blocked = Vec::new();
        while let Some(local) = idle.pop() {
            let Some(due) = self.senders[index].schedule.next() else {
                return Nanos::MAX;
            };
            let turn = self.locals[local as usize].turn;
            let now = self.clock.now();
            let kind = table.kind_at(now);
            match self.hand_over(fleet, local, turn, kind, now, now, due.size, None) {
                Publish::Accepted => {
                    let state = &mut self.locals[local as usize];
                    state.turn = (turn + 1) % state.topics;
                    asked.insert(local, now);
                    if kind == Kind::Measured {
                        self.offer(flow, now);
                    }
                }
                // Tried again at the next turn of the loop.
                Publish::Blocked => blocked.push(local),
                Publish::Refused(why) => {
                    if kind == Kind::Measured {
                        self.offer(flow, now);
                    }
                    match why {
                        // It asks again once it is connected.
                        Refusal::NotConnected => self.locals[local as usize].blocked = true,
                        _ => blocked.push(local),
                    }
                }
            }
        }
        let again = if blocked.is_empty() {
            ANSWER_WITHIN
        } else {
            1_000_000
        };
        idle.append(&mut blocked);
        self.clock.now() + again
    }

    /// Notes that questions, each by its stream and when it was asked, were answered: their publishers may ask again. An
    /// answer to a question that was given up is none to the one after it.
    pub fn answered(&mut self, questions: &mut Vec<(u32, Nanos)>) {
        for (stream, at) in questions.drain(..) {
            for sender in &mut self.senders {
                let info = self.brief.audience.streams[stream as usize];
                if info.flow != sender.flow {
                    continue;
                }
                // An answer to another publisher may be received too.
                let local = sender.local(info.publisher);
                if let SendingPace::PingPong { idle, asked } = &mut sender.pace
                    && let Some(local) = local.filter(|local| asked.get(local) == Some(&at))
                {
                    asked.remove(&local);
                    idle.push(local);
                }
            }
        }
    }

    /// Answers ping-pong questions at once.
    pub fn answer(&mut self, fleet: &mut dyn Fleet, replies: &mut Vec<Reply>) {
        for reply in replies.drain(..) {
            let asked = (reply.client.0, reply.header.stream);
            let Some(topic) = self.reply_topics.get(&asked) else {
                continue;
            };
            let header = Header {
                kind: Kind::Reply,
                ..reply.header
            }
            .encode(self.mark);
            let body = self.filler.body(
                reply.header.stream,
                reply.header.sequence,
                reply.len.max(HEADER_LEN),
            );
            // An answer that is not taken shows as an unanswered question.
            if fleet.publish(
                reply.client,
                *topic,
                Payload {
                    head: &header,
                    body,
                },
                u64::MAX,
            ) == Publish::Accepted
            {
                self.flows[self.brief.flow_of(reply.header.stream).unwrap_or(0)].replies += 1;
                if let Some(accepted) = self.accepted.get_mut(reply.client.0 as usize) {
                    *accepted += 1;
                }
            }
        }
    }

    /// A client takes messages again: first those that waited.
    pub fn writable(&mut self, fleet: &mut dyn Fleet, client: ClientId) {
        let connected = self.clock.now();
        for at in self.of_client(client) {
            self.outage_ends(self.by_client[at].1, connected);
        }
        self.retry(fleet, client);
    }

    /// Where the publishers of a client are in `by_client`.
    fn of_client(&self, client: ClientId) -> Range<usize> {
        let first = |client: u32| self.by_client.partition_point(|(of, _)| *of < client);
        first(client.0)..first(client.0 + 1)
    }

    /// A client leaves: nothing more falls due to its publishers.
    pub fn leave(&mut self, client: ClientId) {
        self.move_to(client, Whereabouts::Away);
    }

    /// A client is coming back: what falls due to its publishers waits until it is connected.
    pub fn come_back(&mut self, client: ClientId) {
        self.move_to(client, Whereabouts::Returning);
    }

    /// A client is connected again.
    pub fn came_back(&mut self, client: ClientId) {
        self.move_to(client, Whereabouts::Here);
    }

    fn move_to(&mut self, client: ClientId, place: Whereabouts) {
        for at in self.of_client(client) {
            let local = self.by_client[at].1;
            self.locals[local as usize].place = place;
        }
    }

    /// Whether a client has messages that wait for the system, or, with so many `answered`, that it has not acknowledged.
    pub fn awaits_answers(&self, client: ClientId, answered: u64) -> bool {
        let accepted = self.accepted.get(client.0 as usize).copied();
        let unanswered = self.acknowledges && accepted.is_some_and(|accepted| accepted > answered);
        let waits = |at: usize| self.waiting.contains_key(&self.by_client[at].1);
        unanswered || self.of_client(client).any(waits)
    }

    /// Offers again what waits for a client: it takes messages again; or its connection is lost, so that they are refused
    /// and none is kept for later.
    pub fn retry(&mut self, fleet: &mut dyn Fleet, client: ClientId) {
        for at in self.of_client(client) {
            let local = self.by_client[at].1;
            let was_blocked = std::mem::replace(&mut self.locals[local as usize].blocked, false);
            while let Some((intended, due)) =
                self.waiting.get_mut(&local).and_then(VecDeque::pop_front)
            {
                let now = self.clock.now();
                let flow = self.locals[local as usize].flow as usize;
                let deliveries = self.deliveries(local, due.topic);
                self.keep_time(now);
                self.waiting_count -= 1;
                self.waiting_deliveries[flow] -= deliveries;
                if !self.try_scheduled(fleet, local, intended, &due, now) {
                    if let Some(queue) = self.waiting.get_mut(&local) {
                        queue.push_front((intended, due));
                    }
                    self.waiting_count += 1;
                    self.waiting_deliveries[flow] += deliveries;
                    self.locals[local as usize].blocked = true;
                    break;
                }
                if self.bursts[flow].is_some() {
                    let now = self.clock.now();
                    self.burst_handed(flow as u32, intended, now);
                }
            }
            if !self.locals[local as usize].blocked {
                self.waiting.remove(&local);
            }
            for sender in &mut self.senders {
                if !was_blocked || !sender.locals.contains(&local) {
                    continue;
                }
                // A publisher is blocked exactly while it is not among the ready ones, or may not ask.
                match &mut sender.pace {
                    SendingPace::FlatOut(state) => state.ready.push(local),
                    SendingPace::PingPong { idle, .. } => idle.push(local),
                    SendingPace::Due(_) => {}
                }
            }
        }
    }
}
