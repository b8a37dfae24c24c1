//! Deliveries to subscribers that come late: counted apart, in the measures of nobody else.

use pubgauge_driver::{ClientId, Delivery, Header, Kind, Nanos};
use rustc_hash::FxHashMap;

use super::Receiving;
use crate::late::LateRecording;
use crate::ledger::{Account, Arrival};

/// The absence from which a late subscriber comes: it was never there before.
const BEFORE: u32 = 1;

impl Receiving {
    /// A late subscriber asks for its first subscription.
    pub fn late_asks(&mut self, client: ClientId, now: Nanos) {
        let now = now.saturating_sub(self.epoch);
        let of = self.clients[client.0 as usize].parties.first();
        let state = of.and_then(|place| self.late.of.get_mut(&place.party));
        if let Some(late) = state {
            late.asked.get_or_insert(now);
        }
    }

    /// A late subscriber has all its subscriptions; the last answer was read at this time of the clock.
    pub fn late_subscribed(&mut self, client: ClientId, read: Nanos) {
        let read = read.saturating_sub(self.epoch);
        let of = self.clients[client.0 as usize].parties.first();
        let state = of.and_then(|place| self.late.of.get_mut(&place.party));
        if let Some(late) = state {
            late.subscribed.get_or_insert(read);
        }
    }

    /// Takes in a delivery to a slow or a late subscriber; false if the client is neither.
    pub(super) fn delivered_apart(&mut self, client: ClientId, delivery: &Delivery<'_>) -> bool {
        let receiver = &self.clients[client.0 as usize];
        if receiver.slow {
            self.delivered_to_slow(client, delivery);
        } else if receiver.late {
            self.delivered_to_late(client, delivery);
        } else {
            return false;
        }
        true
    }

    /// Takes in a delivery to a late subscriber.
    #[cold]
    pub(super) fn delivered_to_late(&mut self, client: ClientId, delivery: &Delivery<'_>) {
        // That something comes to a late subscriber does not show that the system still serves the others.
        self.received_before += 1;
        let header_apart = self.header_apart.take();
        self.lowered = false;
        self.redelivered += u64::from(delivery.redelivered);
        let own = self.own_header(header_apart.as_ref(), delivery.payload);
        let Some((header, flow)) = own else {
            if delivery.retained {
                self.retained += 1;
            } else {
                self.take_in_other(client, delivery.payload);
            }
            return;
        };
        if delivery.retained {
            self.last_value(client, header.stream);
            return;
        }
        match header.kind {
            Kind::Sentinel => self.sentinel(client, flow, header),
            Kind::Measured | Kind::WarmUp => {
                self.late_message(client, flow, header, delivery.payload);
            }
            Kind::Reply => {}
        }
    }

    fn last_value(&mut self, client: ClientId, stream: u32) {
        let place = self.clients[client.0 as usize].entitling_place(&self.brief, stream);
        let entitled = place.filter(|place| {
            let party = &self.brief.audience.parties[place.party as usize];
            party.is_entitled(stream)
        });
        match entitled {
            Some(place) => {
                let within = self.is_within();
                self.late.last_value(place.party, stream, self.now, within);
            }
            None => self.foreign += 1,
        }
    }

    /// Whether the measurement has not ended.
    fn is_within(&self) -> bool {
        self.now < self.cuts.measurement_end().saturating_sub(self.epoch)
    }

    fn late_message(&mut self, client: ClientId, flow: usize, header: Header, payload: &[u8]) {
        let place = self.clients[client.0 as usize].entitling_place(&self.brief, header.stream);
        let Some(place) = place else {
            self.foreign += 1;
            return;
        };
        let measured = header.kind == Kind::Measured;
        let account = Account {
            party: place.party,
            stream: header.stream,
            kind: header.kind,
        };
        let party = &self.brief.audience.parties[place.party as usize];
        let entitled = || party.is_entitled(header.stream);
        let noted = self.ledger.note(account, None, header.sequence, entitled);
        match noted.arrival {
            Arrival::Foreign => {
                self.foreign += 1;
                return;
            }
            Arrival::Duplicate => {
                if let Some(late) = self.late.of.get_mut(&place.party) {
                    late.counts.duplicated += 1;
                }
                return;
            }
            _ => {}
        }
        let entry = self.ledger.entry(noted.entry);
        let before = std::mem::replace(&mut entry.absences, BEFORE);
        if before != BEFORE && noted.skipped > 0 && measured {
            let of = (place.party, flow as u32, header.stream);
            let (until, sent) = (header.intended, header.sequence);
            self.missed_by_late(of, until, sent, noted.skipped);
        }
        if measured && self.brief.checked[flow] {
            let sizes = &self.brief.sizes[flow];
            self.flows[flow].compare_body(&self.filler, &header, payload, sizes);
        }
        let (sent, within) = (header.intended + header.lag, self.is_within());
        (self.late).message(place.party, measured, sent, self.now, within);
    }

    /// Notes the messages of a stream that did not come to a late party, and that were published before the first that did, or
    /// before the end where none did.
    pub(super) fn missed_by_late(
        &mut self,
        of: (u32, u32, u32),
        until: Nanos,
        sent: u32,
        messages: u32,
    ) {
        let late = self.late.of.get(&of.0);
        let since = late.and_then(|late| late.subscribed).unwrap_or(Nanos::MAX);
        let since = since.min(self.now);
        self.absences.gap(of, since, until, sent, messages);
    }

    /// Whether a delivery of this stream has come to a late party, which then misses nothing that comes later.
    pub(super) fn late_has_heard(&mut self, entry: Option<u32>) -> bool {
        entry.is_some_and(|entry| self.ledger.entry(entry).absences == BEFORE)
    }

    /// The deliveries to its late subscribers, which were late for so many. To be asked before [`Receiving::finish`].
    pub fn finish_late(&mut self, missed: &FxHashMap<u32, u64>) -> LateRecording {
        if self.late.of.is_empty() {
            return LateRecording::default();
        }
        let (mut passed_over, mut open) = (FxHashMap::default(), FxHashMap::default());
        for (account, passed) in self.ledger.passed_over() {
            if account.kind == Kind::Measured {
                *passed_over.entry(account.party).or_default() += u64::from(passed);
            }
        }
        if self.closing {
            for key in &self.unproven {
                *open.entry((key >> 32) as u32).or_default() += 1;
            }
        } else {
            for party in self.late.of.keys() {
                let streams = self.brief.audience.parties[*party as usize].stream_count();
                open.insert(*party, streams);
            }
        }
        self.late.finish(&passed_over, missed, &open)
    }
}
