//! Clients that come and go, as the workload says.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pubgauge_driver::{ClientId, Nanos};
use pubgauge_workload::presence::{Absences, Presence};

use super::{ClientState, Worker};
use crate::timetable::Timetable;
use crate::wills::HowEnded;

/// Clients that leave or come back between two polls, so that reading is not starved.
const PER_TURN: usize = 64;
/// Clients that connect again at once when all are called back after the measurement: no system is to stand a rush that the
/// workload does not have. As many connect at once at the beginning.
const CALLED_AT_ONCE: usize = 64;
/// How long a client that leaves in order waits for the acknowledgements of what it has sent, ns.
const PATIENCE: Nanos = 1_000_000_000;
/// How soon it looks again, and how soon one comes back whose connection has not ended yet, ns.
const AGAIN: Nanos = 1_000_000;
/// Pause before a client that was turned away when it came back tries again, ns.
pub(super) const RETRY: Nanos = 500_000_000;

/// The comings and goings of a worker's clients.
#[derive(Default)]
pub(super) struct Presences {
    /// The next steps, by time.
    next: BinaryHeap<Reverse<(Nanos, u32, Step)>>,
    /// By client; of those that stay `None`.
    of: Vec<Option<Goer>>,
    /// Everybody is called back: nobody leaves any more.
    over: bool,
    /// How many are connecting again.
    returning: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// The client leaves: it sends no more.
    Leave,
    /// Its connection ends, once all that it has sent is acknowledged, or this time has come.
    EndConnection { by: Nanos },
    /// It comes back.
    Return,
}

/// A client that comes and goes.
struct Goer {
    absences: Absences,
    /// The end of its present absence, clock time.
    back_at: Nanos,
    vanishes: bool,
    whereabouts: Whereabouts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whereabouts {
    Here,
    Leaving,
    /// Its connection is being closed.
    Closing,
    Away,
    /// It is connecting again.
    Returning,
}

impl Presences {
    /// When the next client leaves or comes back; [`Nanos::MAX`]: none does.
    pub fn next_at(&self) -> Nanos {
        self.next.peek().map_or(Nanos::MAX, |Reverse((at, ..))| *at)
    }

    /// Whether this client is coming back, and was not connected again yet.
    pub fn is_returning(&self, client: ClientId) -> bool {
        self.whereabouts(client) == Some(Whereabouts::Returning)
    }

    /// Whether a connection of this client is not to be had: it is away, or leaves.
    pub fn is_gone(&self, client: ClientId) -> bool {
        matches!(
            self.whereabouts(client),
            Some(Whereabouts::Closing | Whereabouts::Away)
        )
    }

    fn whereabouts(&self, client: ClientId) -> Option<Whereabouts> {
        let goer = self.of.get(client.0 as usize)?.as_ref()?;
        Some(goer.whereabouts)
    }

    fn set(&mut self, client: ClientId, whereabouts: Whereabouts) {
        if let Some(Some(goer)) = self.of.get_mut(client.0 as usize) {
            let before = std::mem::replace(&mut goer.whereabouts, whereabouts);
            self.returning += usize::from(whereabouts == Whereabouts::Returning);
            self.returning -= usize::from(before == Whereabouts::Returning);
        }
    }

    /// The connection of a client that left has ended.
    pub fn closed(&mut self, client: ClientId) {
        if self.whereabouts(client) == Some(Whereabouts::Closing) {
            self.set(client, Whereabouts::Away);
        }
    }

    /// A client that came back was turned away, and tries again.
    pub fn turned_away(&mut self, client: ClientId, now: Nanos) {
        self.set(client, Whereabouts::Away);
        self.next
            .push(Reverse((now + RETRY, client.0, Step::Return)));
    }
}

impl Worker {
    /// Plans who leaves when, for the measurement of `table`.
    pub(super) fn plan_absences(&mut self, table: Timetable) {
        let brief = &self.context.brief;
        let seed = brief.workload.seed;
        let of = self.assignment.devices.iter().map(|device| {
            let presence: &Presence = brief.presence_of(*device)?;
            let absences = presence.absences(seed, *device);
            Some(Goer {
                absences,
                back_at: 0,
                vanishes: presence.vanishes,
                whereabouts: Whereabouts::Here,
            })
        });
        self.presences = Presences {
            of: of.collect(),
            ..Presences::default()
        };
        for client in 0..self.presences.of.len() {
            self.plan_next_absence(ClientId(client as u32), table);
        }
    }

    fn plan_next_absence(&mut self, client: ClientId, table: Timetable) {
        let now = self.context.clock.now();
        let Some(Some(goer)) = self.presences.of.get_mut(client.0 as usize) else {
            return;
        };
        // Absences that are over already, because the system was long in taking it back, are left out.
        for absence in goer.absences.by_ref() {
            let from = table.measure.saturating_add(absence.from);
            if from >= table.end {
                return;
            }
            if from >= now {
                goer.back_at = table.measure.saturating_add(absence.to);
                let step = Reverse((from, client.0, Step::Leave));
                self.presences.next.push(step);
                return;
            }
        }
    }

    /// Lets clients leave and come back that are to by now.
    pub(super) fn come_and_go(&mut self, now: Nanos) {
        for _ in 0..PER_TURN {
            if self.presences.next_at() > now {
                return;
            }
            let Some(Reverse((_, client, step))) = self.presences.next.pop() else {
                return;
            };
            let client = ClientId(client);
            match step {
                Step::Leave => self.leave(client, now),
                Step::EndConnection { by } => self.end_connection(client, by, now),
                // Answers are read before the next one connects: else they would count as late.
                Step::Return if self.come_back(client, now) => return,
                Step::Return => {}
            }
        }
    }

    fn leave(&mut self, client: ClientId, now: Nanos) {
        if self.presences.over {
            return;
        }
        if self.clients[client.0 as usize] != ClientState::Up {
            // Its connection is lost, and made again as the study says.
            if let Some(table) = self.table {
                self.plan_next_absence(client, table);
            }
            return;
        }
        self.presences.set(client, Whereabouts::Leaving);
        self.sending.leave(client);
        self.end_connection(client, now + PATIENCE, now);
    }

    /// Ends the connection of a client that leaves, if all that it has sent is acknowledged or its patience is over.
    fn end_connection(&mut self, client: ClientId, by: Nanos, now: Nanos) {
        let waits = now < by && self.awaits_answers(client);
        let Some(Some(goer)) = self.presences.of.get_mut(client.0 as usize) else {
            return;
        };
        if self.clients[client.0 as usize] != ClientState::Up {
            goer.whereabouts = Whereabouts::Here;
            self.sending.came_back(client);
            if let Some(table) = self.table {
                self.plan_next_absence(client, table);
            }
            return;
        }
        let vanishes = goer.vanishes;
        if !vanishes && waits {
            let step = Step::EndConnection { by };
            self.presences
                .next
                .push(Reverse((now + AGAIN, client.0, step)));
            return;
        }
        let back_at = goer.back_at.max(now);
        goer.whereabouts = if vanishes {
            Whereabouts::Away
        } else {
            Whereabouts::Closing
        };
        self.clients[client.0 as usize] = ClientState::Down;
        self.receiving.leave();
        let how = if vanishes {
            HowEnded::Cut
        } else {
            HowEnded::InOrder
        };
        self.note_end(client, how, self.context.clock.now());
        if vanishes {
            self.fleet.abort(client);
        } else {
            self.fleet.disconnect(client);
        }
        let back_at = if self.presences.over { now } else { back_at };
        (self.presences.next).push(Reverse((back_at, client.0, Step::Return)));
    }

    fn awaits_answers(&self, client: ClientId) -> bool {
        let answered = self.receiving.answered(client);
        self.sending.awaits_answers(client, answered)
    }

    /// Has a client come back, or try later; whether it has begun to connect.
    fn come_back(&mut self, client: ClientId, now: Nanos) -> bool {
        match self.presences.whereabouts(client) {
            Some(Whereabouts::Closing) => {
                let step = Reverse((now + AGAIN, client.0, Step::Return));
                self.presences.next.push(step);
            }
            Some(Whereabouts::Away)
                if self.presences.over && self.presences.returning >= CALLED_AT_ONCE =>
            {
                let step = Reverse((now + AGAIN, client.0, Step::Return));
                self.presences.next.push(step);
            }
            Some(Whereabouts::Away) => {
                self.presences.set(client, Whereabouts::Returning);
                self.sending.come_back(client);
                self.receiving.begin_return(client);
                self.connections.begin(client, self.context.clock.now());
                if let Err(error) = self.reconnect(client) {
                    self.fail(error.into());
                }
                return true;
            }
            _ => {}
        }
        false
    }

    /// A client is connected again, and has its subscriptions: it was read at `read`.
    pub(super) fn came_back(&mut self, client: ClientId, read: Nanos) {
        if !self.presences.is_returning(client) {
            return;
        }
        self.presences.set(client, Whereabouts::Here);
        self.receiving.come_back(client, read);
        self.sending.came_back(client);
        if let (Some(table), false) = (self.table, self.presences.over) {
            self.plan_next_absence(client, table);
        }
    }

    /// Calls everybody back who is away: the measurement is over.
    pub(super) fn call_back(&mut self, now: Nanos) {
        if std::mem::replace(&mut self.presences.over, true) {
            return;
        }
        let steps = std::mem::take(&mut self.presences.next);
        let called = steps
            .into_iter()
            .map(|Reverse((at, client, step))| match step {
                Step::Return => Reverse((now, client, step)),
                step => Reverse((at, client, step)),
            });
        self.presences.next = called.collect();
    }
}
