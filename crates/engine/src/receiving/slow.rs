//! Deliveries to slow subscribers: counted apart, in the measures of nobody else.

use pubgauge_driver::{ClientId, Delivery, Header, Kind, Nanos};

use super::{Manner, Receiving, Taken};
use crate::ledger::{Account, Arrival};
use crate::recording::SlowRecording;

impl Receiving {
    /// Takes in a delivery to a slow subscriber.
    #[cold]
    pub(super) fn delivered_to_slow(&mut self, client: ClientId, delivery: &Delivery<'_>) {
        // That something comes to a slow subscriber does not show that the system still serves the others.
        self.received_before += 1;
        let header_apart = self.header_apart.take();
        self.lowered = false;
        let own = self.own_header(header_apart.as_ref(), delivery.payload);
        let own = own.filter(|_| !delivery.retained);
        // It takes its time for nothing but messages of the measurement.
        let measured = own.is_some_and(|(header, _)| header.kind == Kind::Measured);
        self.note_taken(client, measured);
        self.redelivered += u64::from(delivery.redelivered);
        let Some((header, flow)) = own else {
            if delivery.retained {
                self.retained += 1;
            } else {
                self.take_in_other(client, delivery.payload);
            }
            return;
        };
        let manner = Manner {
            on_topic: true,
            lowered: false,
        };
        match header.kind {
            Kind::Sentinel => self.sentinel(client, flow, header),
            Kind::Measured if self.measure_from == Nanos::MAX => {
                self.early(client, flow, header, delivery.payload, manner);
            }
            Kind::Measured => self.slow_message(client, flow, header, delivery.payload),
            Kind::WarmUp | Kind::Reply => {}
        }
    }

    /// Notes a measured message to a slow subscriber.
    pub(super) fn slow_message(
        &mut self,
        client: ClientId,
        flow: usize,
        header: Header,
        payload: &[u8],
    ) {
        let place = self.clients[client.0 as usize].entitling_place(&self.brief, header.stream);
        let Some(place) = place else {
            self.foreign += 1;
            return;
        };
        let account = Account {
            party: place.party,
            stream: header.stream,
            kind: Kind::Measured,
        };
        let party = &self.brief.audience.parties[place.party as usize];
        let entitled = || party.is_entitled(header.stream);
        let noted = self.ledger.note(account, None, header.sequence, entitled);
        let state = &mut self.flows[flow];
        match noted.arrival {
            Arrival::Foreign => {
                self.foreign += 1;
                return;
            }
            Arrival::Duplicate => {
                state.counts.slow.duplicated += 1;
                return;
            }
            _ => {}
        }
        if self.brief.checked[flow] {
            state.compare_body(&self.filler, &header, payload, &self.brief.sizes[flow]);
        }
        let of = self.slow.party(place.party, party.members[0]);
        let end = self.cuts.measurement_end().saturating_sub(self.epoch);
        if self.now < end {
            of.taken += 1;
            state.counts.slow.taken += 1;
            self.slow.time(self.now.saturating_sub(header.intended));
        } else {
            of.behind += 1;
            state.counts.slow.behind += 1;
        }
    }

    /// Notes that a client, whose application takes its time, has a delivery.
    pub(super) fn note_taken(&mut self, client: ClientId, takes_time: bool) {
        self.taken.push(Taken {
            client,
            at: self.epoch + self.now,
            takes_time,
        });
    }

    /// Whether what comes to a client is told apart because it is slow.
    pub fn is_slow(&self, client: ClientId) -> bool {
        self.clients[client.0 as usize].slow
    }

    /// Time that a client's application takes for each message; `None` if it does not take its time.
    pub fn takes(&self, client: ClientId) -> Option<Nanos> {
        self.clients[client.0 as usize].takes
    }

    /// A slow subscriber's connection was ended by others.
    pub fn slow_disconnected(&mut self, client: ClientId) {
        let of = self.clients[client.0 as usize].parties.first();
        if let Some(place) = of.copied() {
            let members = &self.brief.audience.parties[place.party as usize].members;
            self.slow.party(place.party, members[0]).disconnects += 1;
        }
    }

    /// The deliveries to its slow subscribers.
    pub fn finish_slow(&mut self) -> SlowRecording {
        let parties = &self.brief.audience.parties;
        for member in &self.parties {
            let party = &parties[member.party as usize];
            if party.is_slow() {
                self.slow.party(member.party, party.members[0]);
            }
        }
        let measured = (self.ledger.passed_over())
            .filter(|(account, _)| account.kind == Kind::Measured)
            .map(|(account, passed)| (account.party, passed));
        self.slow.finish(measured)
    }
}
