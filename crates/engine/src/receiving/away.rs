//! Clients that leave and come back, and what reaches them afterwards.

use pubgauge_driver::{ClientId, Header, Kind, Nanos};
use rustc_hash::FxHashMap;

use super::Receiving;
use crate::absences::PresenceRecording;
use crate::ledger::{Account, Arrival, Noted};
use crate::timetable::Timetable;

impl Receiving {
    /// A client leaves. What still comes until its connection has ended comes in time.
    pub fn leave(&mut self) {
        self.absences.note_leave();
    }

    /// A client whose connection has ended begins to connect again: what comes to it from now on comes after an absence.
    pub fn begin_return(&mut self, client: ClientId) {
        let state = &mut self.clients[client.0 as usize];
        state.back_at = Nanos::MAX;
        state.absences += 1;
        state.awaits_first = true;
    }

    /// A client is connected again, with its subscriptions; its last answer was read at this time of the clock.
    pub fn come_back(&mut self, client: ClientId, read: Nanos) {
        let state = &mut self.clients[client.0 as usize];
        state.back_at = read.saturating_sub(self.epoch);
        self.absences.note_return();
    }

    /// Acknowledgements that a client has got, where clients come and go.
    pub fn answered(&self, client: ClientId) -> u64 {
        self.answers.get(client.0 as usize).copied().unwrap_or(0)
    }

    /// The comings and goings of its clients. To be asked after [`Receiving::finish`].
    pub fn finish_presence(&mut self) -> PresenceRecording {
        self.absences.finish()
    }

    /// Counts what subscribers have missed by being away; by party. To be asked before [`Receiving::finish`].
    pub fn count_missed(&mut self, table: Option<Timetable>) -> FxHashMap<u32, u64> {
        let mut of_parties = FxHashMap::default();
        let missed = self.absences.missed(&self.brief, table, self.epoch);
        for ((party, flow), deliveries) in missed {
            // Nothing was due to a late subscriber before it was there.
            if !self.brief.audience.parties[party as usize].is_late() {
                self.flows[flow as usize].counts.messages.missed += deliveries;
            }
            *of_parties.entry(party).or_default() += deliveries;
        }
        of_parties
    }

    /// Notes a delivery to a subscriber that was away before.
    #[cold]
    pub(super) fn after_absence(
        &mut self,
        client: ClientId,
        (flow, account): (usize, Account),
        noted: Noted,
        header: &Header,
    ) {
        let receiver = &mut self.clients[client.0 as usize];
        let back_at = receiver.back_at.min(self.now);
        if std::mem::take(&mut receiver.awaits_first) {
            self.absences.first_message(self.now - back_at);
        }
        let absences = receiver.absences;
        let measured = account.kind == Kind::Measured;
        if measured && header.intended < receiver.back_at && noted.arrival != Arrival::Duplicate {
            self.absences.backlog(self.now - back_at);
        }
        let entry = self.ledger.entry(noted.entry);
        let before = std::mem::replace(&mut entry.absences, absences);
        if before != absences && noted.skipped > 0 && self.forgets && measured {
            let stream = (account.party, flow as u32, account.stream);
            (self.absences).gap(
                stream,
                back_at,
                header.intended,
                header.sequence,
                noted.skipped,
            );
        }
    }
}
