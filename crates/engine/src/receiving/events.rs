//! The reports of a fleet, one delivery at a time: the message path.

use pubgauge_driver::header::HEADER_LEN;
use pubgauge_driver::{Acknowledgement, Change, ClientId, Delivery, Events, Header, Kind, Nanos};

use super::{Early, Entitlement, Manner, Receiving, Reply, TAG_TIME_BITS, key};
use crate::groups;
use crate::ledger::{Account, Arrival};
use crate::times::LONGEST;

/// Stands for those who ask in a ping-pong: the party of the ledger's accounts of answers.
const ASKERS: u32 = u32::MAX;

impl Receiving {
    /// Notes a measured or a warm-up message in the ledger and in the counts.
    #[inline]
    pub(super) fn message(
        &mut self,
        client: ClientId,
        flow: usize,
        header: Header,
        payload: &[u8],
        manner: Manner,
    ) {
        let receiver = &self.clients[client.0 as usize];
        let (back_at, absences) = (receiver.back_at, receiver.absences);
        let place = receiver.entitling_place(&self.brief, header.stream);
        let Some(Entitlement {
            party,
            number: of_party,
            member,
            apart,
        }) = place
        else {
            self.foreign += 1;
            return;
        };
        let account = Account {
            party,
            stream: header.stream,
            kind: header.kind,
        };
        let parties = &self.brief.audience.parties;
        let noted = self
            .ledger
            .note(account, member.map(|_| client), header.sequence, || {
                parties[party as usize].is_entitled(header.stream)
            });
        if noted.arrival == Arrival::Foreign {
            self.foreign += 1;
            return;
        }
        let first = noted.arrival != Arrival::Duplicate;
        if absences > 0 {
            self.after_absence(client, (flow, account), noted, &header);
        }
        // Its time is that of the absence.
        let backlog = header.intended < back_at;
        // Of groups on several workers the conductor counts it: it alone knows which copy was the first.
        let reordered = noted.arrival == Arrival::Reordered && apart.is_none();
        self.repeated += u64::from(!first);
        if self.flows[flow].window.is_some() && first {
            self.passed(
                flow,
                account,
                member.is_some(),
                noted.entry,
                header.sequence,
            );
        }
        let state = &mut self.flows[flow];
        let passed_over = |count: u64| count + u64::from(noted.skipped) - u64::from(noted.filled);
        if header.kind == Kind::WarmUp {
            state.counts.warm_up_delivered += 1;
            state.counts.warm_up_unique += u64::from(first);
            state.counts.warm_up_passed_over = passed_over(state.counts.warm_up_passed_over);
            if let Some(member) = apart.filter(|_| first) {
                self.gather(flow, account, member, header, (0, None));
            }
            return;
        }
        state.counts.messages.delivered += 1;
        if manner.lowered {
            // Of a publisher with other settings another quality may be promised.
            let device = self.clients[client.0 as usize].device;
            let settings = &self.brief.workload.flows[flow].settings;
            let same = self.brief.settings_of[device as usize] == *settings;
            state.counts.lowered += u64::from(same);
        }
        state.counts.misdirected += u64::from(!manner.on_topic);
        let mut number = 0;
        if let Some(parts) = &mut state.parts {
            number = parts.number(self.epoch + header.intended);
            let part = parts.current();
            part.delivered += 1;
            part.unique += u64::from(first);
            part.reordered += u64::from(reordered);
        }
        if self.brief.checked[flow] {
            state.compare_body(&self.filler, &header, payload, &self.brief.sizes[flow]);
        }
        if !first {
            return;
        }
        state.counts.messages.reordered += u64::from(reordered);
        state.counts.passed_over = passed_over(state.counts.passed_over);
        state.counts.messages.unique += 1;
        if let Some(member) = member {
            self.shares[member as usize].unique += 1;
        }
        if self.now < header.intended {
            state.counts.negative += 1;
        }
        let latency = self.now.saturating_sub(header.intended);
        let mut burst_number = None;
        if let Some(bursts) = &mut state.bursts {
            burst_number = bursts.number(self.epoch + header.intended);
            if let Some(burst) = burst_number.and_then(|number| bursts.get(number)) {
                burst.unique += 1;
                burst.arrived = burst.arrived.max(latency);
            }
        }
        let from_send = latency.saturating_sub(header.lag);
        if backlog {
            state.counts.messages.backlog += 1;
            self.party_times.count(of_party);
        } else {
            self.party_times
                .add(of_party, header.intended, latency, from_send);
        }
        if let Some(times) = state.times.as_mut().filter(|_| !backlog) {
            times.latency.add(latency, number);
            times.from_send.add(from_send, number);
        }
        if let Some(member) = apart {
            self.gather(flow, account, member, header, (number, burst_number));
        }
    }

    /// Notes a first delivery to a member of a group that has members on other workers too.
    #[inline(never)]
    fn gather(
        &mut self,
        flow: usize,
        account: Account,
        member: u32,
        header: Header,
        (part, burst): (usize, Option<u32>),
    ) {
        let place = groups::DeliveryClass {
            party: account.party,
            member,
            stream: account.stream,
            measured: account.kind == Kind::Measured,
            cut: self.series[flow].len() as u32,
            bound: self.by_bound[flow].len() as u32,
            part: part as u32,
            burst,
        };
        self.gathered.add(place, header.sequence);
    }

    /// Keeps a message that came before the timetable, which says where its times and counts belong.
    #[cold]
    pub(super) fn early(
        &mut self,
        client: ClientId,
        flow: usize,
        header: Header,
        payload: &[u8],
        manner: Manner,
    ) {
        self.early.push(Early {
            client,
            flow,
            header,
            payload: payload.into(),
            manner,
            at: self.now,
        });
    }

    /// Notes a sentinel: it proves that its stream reaches the party, or closes the stream.
    pub(super) fn sentinel(&mut self, client: ClientId, flow: usize, header: Header) {
        let place = self.clients[client.0 as usize].entitling_place(&self.brief, header.stream);
        let Some(Entitlement { party, member, .. }) = place else {
            return;
        };
        self.sentinels += 1;
        if header.intended < self.sentinels_from {
            return;
        }
        self.closing_received += u64::from(self.closing);
        if self.unproven_apart.remove(&key(party, header.stream)) {
            self.proven_apart.push((party, header.stream));
        }
        if !self.unproven.remove(&key(party, header.stream)) {
            return;
        }
        if self.closing && member.is_none() {
            let account = Account {
                party,
                stream: header.stream,
                kind: Kind::Measured,
            };
            // It carries how many measured messages were published before it.
            let passed_over = self.ledger.close(account, header.sequence, || true);
            let receiver = &self.clients[client.0 as usize];
            let (back_at, absences) = (receiver.back_at.min(self.now), receiver.absences);
            let (is_slow, is_late) = (receiver.slow, receiver.late);
            let entry = self.ledger.open(account, || true);
            let seen = entry.map_or(0, |entry| self.ledger.entry(entry).absences);
            let stream = (party, flow as u32, header.stream);
            let end = self.cuts.measurement_end().saturating_sub(self.epoch);
            let all = header.sequence;
            if is_late {
                if passed_over > 0 && !self.late_has_heard(entry) {
                    self.missed_by_late(stream, end, all, passed_over);
                }
            } else if passed_over > 0 && seen != absences && self.forgets {
                self.absences.gap(stream, back_at, end, all, passed_over);
            }
            if !is_slow && !is_late {
                self.flows[flow].counts.passed_over += u64::from(passed_over);
            }
        }
    }

    /// Notes that nothing came since the arrival before this one, or since this message was sent if
    /// that was later.
    #[cold]
    fn note_silence(&mut self, header: &Header) {
        let sent = header.intended + header.lag;
        let silence = self.gap.min(self.now.saturating_sub(sent));
        self.silence = self.silence.max(silence);
        if self.now >= self.measure_from && header.kind != Kind::Sentinel {
            // The delivery that ends it is counted already.
            let before = self.messages_received().saturating_sub(1);
            self.silences.note(silence, before);
            self.note_gap(self.heard, self.now);
        }
    }
}

impl Receiving {
    /// The header of a delivery, which may have come beside its payload, and the flow of its stream; `None` if it is none of
    /// this trial.
    #[inline]
    pub(super) fn own_header(
        &self,
        apart: Option<&[u8; HEADER_LEN]>,
        payload: &[u8],
    ) -> Option<(Header, usize)> {
        let header = match apart {
            Some(header) => Header::decode(header, self.mark),
            None => Header::decode(payload, self.mark),
        };
        let header = header.filter(|h| h.intended < self.now.saturating_add(LONGEST))?;
        let flow = self.brief.flow_of(header.stream)?;
        // Recorded contents alone have their header beside the payload.
        let is_odd = apart.is_some() && (self.brief.checked[flow] || header.kind == Kind::Reply);
        (!is_odd).then_some((header, flow))
    }

    /// An answer to a question of a ping-pong flow.
    fn reply(&mut self, client: ClientId, flow: usize, header: &Header, payload: &[u8]) {
        let info = self.brief.audience.streams[header.stream as usize];
        let asker = &self.brief.workload.flows[flow].publishers[info.publisher as usize];
        if self.clients[client.0 as usize].device != asker.device {
            // A wildcard subscriber gets the answers too; they are not for it.
            return;
        }
        self.answered
            .push((header.stream, self.epoch + header.intended));
        let now = self.now;
        let state = &mut self.flows[flow];
        let account = Account {
            party: ASKERS,
            stream: header.stream,
            kind: Kind::Reply,
        };
        if header.intended >= self.measure_from
            && let Some(round_trip) =
                state.times.as_mut().and_then(|t| t.round_trip.as_mut())
            // A repeated answer is none.
            && (self.ledger.note(account, None, header.sequence, || true)).arrival
                != Arrival::Duplicate
        {
            state.counts.answered += 1;
            let is_late = self.epoch + now >= self.cuts.measurement_end();
            state.counts.answered_late += u64::from(is_late);
            let asked = self.epoch + header.intended;
            let number = state.parts.as_mut().map_or(0, |parts| parts.number(asked));
            round_trip.add(now.saturating_sub(header.intended), number);
            // An answer has the question's length, and a body of ours whatever that contained.
            let sizes = &self.brief.sizes[flow];
            state.compare_body(&self.filler, header, payload, sizes);
        }
    }
}

impl Events for Receiving {
    #[inline]
    fn arrived(&mut self) {
        let now = self.clock.now();
        self.keep_time(now);
        self.note_heard();
        self.now = now.saturating_sub(self.epoch);
        self.gap = self.now.saturating_sub(self.heard);
    }

    #[cold]
    fn lowered(&mut self) {
        self.lowered = true;
    }

    #[cold]
    fn header(&mut self, header: &[u8; HEADER_LEN]) {
        self.header_apart = Some(*header);
    }

    #[inline]
    fn delivered(&mut self, client: ClientId, delivery: Delivery<'_>) {
        self.received += 1;
        if self.any_apart && self.delivered_apart(client, &delivery) {
            return;
        }
        let is_paced = self.any_paced && self.clients[client.0 as usize].is_paced();
        if is_paced {
            self.note_taken(client, false);
        }
        let lowered = std::mem::take(&mut self.lowered);
        let header_apart = self.header_apart.take();
        if delivery.retained {
            self.retained += 1;
            return;
        }
        self.redelivered += u64::from(delivery.redelivered);
        let Some((header, flow)) = self.own_header(header_apart.as_ref(), delivery.payload) else {
            self.take_in_other(client, delivery.payload);
            return;
        };
        if self.gap > self.silences.longest {
            self.note_silence(&header);
        }
        let on_topic = |topic: &str| topic == self.brief.topic_of(header.stream);
        let on_topic = delivery.topic.is_none_or(on_topic);
        let manner = Manner { on_topic, lowered };
        if let Some(taken) = self.taken.last_mut().filter(|_| is_paced) {
            taken.takes_time = matches!(header.kind, Kind::Measured | Kind::WarmUp);
        }
        match header.kind {
            Kind::Measured | Kind::WarmUp if self.measure_from == Nanos::MAX => {
                self.early(client, flow, header, delivery.payload, manner);
            }
            Kind::Measured | Kind::WarmUp => {
                self.message(client, flow, header, delivery.payload, manner);
            }
            Kind::Sentinel => {
                self.sentinel(client, flow, header);
                return;
            }
            Kind::Reply => {
                self.reply(client, flow, &header, delivery.payload);
                return;
            }
        }
        let state = &self.clients[client.0 as usize];
        if state.responds
            && let Some(party) = self.brief.audience.responder(header.stream)
            && (state.parties.iter()).any(|place| place.party == party)
        {
            self.replies.push(Reply {
                client,
                header,
                len: delivery.payload.len(),
            });
        }
    }

    #[inline]
    fn acknowledged(&mut self, client: ClientId, tag: u64, answer: Acknowledgement) {
        if let Some(answers) = self.answers.get_mut(client.0 as usize) {
            *answers += 1;
        }
        let kind_bits = tag >> TAG_TIME_BITS & 3;
        let measured = kind_bits == Kind::Measured as u64;
        let rejected = matches!(answer, Acknowledgement::Rejected(_));
        let mask = (1u64 << TAG_TIME_BITS) - 1;
        let elapsed = ((self.now >> 2).wrapping_sub(tag & mask) & mask) << 2;
        if !measured {
            self.fastest_acknowledgement = self.fastest_acknowledgement.min(elapsed);
            if kind_bits != Kind::WarmUp as u64 && !rejected {
                return;
            }
        }
        let stream = (tag >> 40) as u32;
        let Some(flow) = self.brief.flow_of(stream) else {
            return;
        };
        let now = self.now;
        let state = &mut self.flows[flow];
        let sent = (self.epoch + now).saturating_sub(elapsed);
        if let Acknowledgement::Rejected(code) = answer {
            state.note_rejection(code, measured);
            let deliveries = u64::from(self.brief.audience.fan_out(stream));
            if measured {
                state.rejected += 1;
                let slow = self.brief.audience.slow_fan_out(stream);
                state.rejected_slow += u64::from(slow);
                state.rejected_deliveries += deliveries;
                if let Some(parts) = &mut state.parts {
                    parts.rejected_at(sent, deliveries);
                }
            } else if kind_bits == Kind::WarmUp as u64 {
                state.warm_up_rejected_deliveries += deliveries;
            }
            return;
        }
        if !measured {
            return;
        }
        if let Some(times) = state
            .times
            .as_mut()
            .and_then(|t| t.acknowledgement.as_mut())
        {
            let number = state.parts.as_mut().map_or(0, |parts| parts.sent_at(sent));
            times.add(elapsed, number);
        }
    }

    fn changed(&mut self, client: ClientId, change: Change) {
        self.changes.push((self.epoch + self.now, client, change));
    }
}
