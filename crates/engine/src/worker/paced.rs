//! Subscribers whose applications take their time: each is handed one message at a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pubgauge_driver::{ClientId, Nanos};
use rustc_hash::FxHashMap;

use super::{ClientState, Worker};
use crate::receiving::Taken;
use crate::timetable::Timetable;

/// The subscribers of a worker whose applications take their time.
pub(super) struct PacedClients {
    /// From when to when each of them is handed one message at a time.
    phase: PacedPhase,
    /// When those who are busy are free, by time. An entry counts if it is that of `busy`.
    free_at: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Until when each is busy, by client.
    busy: FxHashMap<u32, Nanos>,
    /// Those who wait for a message: since when, and since when their fleet knows.
    waiting: FxHashMap<u32, (Nanos, Nanos)>,
    /// For how long each has been busy within the measurement, by client.
    busy_for: FxHashMap<u32, Nanos>,
}

/// Who is handed one message at a time. Those of a flow whose subscribers all take their time are from the warm-up on, to the end
/// of the trial; slow ones are while the measurement lasts, and are told apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PacedPhase {
    /// There is nobody who takes time.
    Nobody,
    /// Traffic has not begun.
    Before,
    /// Those of a flow that takes its time, in the warm-up.
    WarmUp,
    /// These and slow ones.
    Measurement,
    /// Those of a flow that takes its time, after the measurement.
    Drain,
}

impl PacedClients {
    /// Nobody is busy yet. `any`: whether an application of a worker's clients takes its time at all.
    pub fn new(any: bool) -> PacedClients {
        PacedClients {
            phase: if any {
                PacedPhase::Before
            } else {
                PacedPhase::Nobody
            },
            free_at: BinaryHeap::new(),
            busy: FxHashMap::default(),
            waiting: FxHashMap::default(),
            busy_for: FxHashMap::default(),
        }
    }

    /// The longest time for which one of those who are not slow was busy within the measurement; `None` without any.
    pub fn busiest(&self) -> Option<Nanos> {
        self.busy_for.values().max().copied()
    }

    fn set_busy(&mut self, client: u32, until: Nanos) {
        self.busy.insert(client, until);
        self.free_at.push(Reverse((until, client)));
    }

    /// Who is free by `now`, and since when.
    fn next_free(&mut self, now: Nanos) -> Option<(u32, Nanos)> {
        while let Some(Reverse((at, client))) = self.free_at.peek().copied()
            && at <= now
        {
            self.free_at.pop();
            if self.busy.get(&client) == Some(&at) {
                self.busy.remove(&client);
                return Some((client, at));
            }
        }
        None
    }

    /// Nothing is awaited of a client, nor is it busy.
    fn forget(&mut self, client: u32) {
        self.busy.remove(&client);
        self.waiting.remove(&client);
    }
}

impl Worker {
    /// Lets those who are free take their next message. Returns when to look again.
    pub(super) fn pace_clients(&mut self, now: Nanos) -> Nanos {
        let Some(table) = self
            .table
            .filter(|_| self.paced.phase != PacedPhase::Nobody)
        else {
            return Nanos::MAX;
        };
        let next_phase = self.change_pace(&table, now);
        while let Some((client, since)) = self.paced.next_free(now) {
            self.let_take(ClientId(client), since, now);
        }
        let next = self.paced.free_at.peek();
        next.map_or(next_phase, |Reverse((at, _))| next_phase.min(*at))
    }

    /// Begins with those who are handed one message at a time from now on, and ends with those who are no longer. Returns when
    /// that is next to be done.
    fn change_pace(&mut self, table: &Timetable, now: Nanos) -> Nanos {
        if self.paced.phase == PacedPhase::Before && now >= table.warm_up {
            self.paced.phase = PacedPhase::WarmUp;
            self.each_paced(false, |worker, client| {
                worker.paced.busy_for.insert(client.0, 0);
                worker.let_take(client, table.warm_up, now);
            });
        }
        if self.paced.phase == PacedPhase::WarmUp && now >= table.measure {
            self.paced.phase = PacedPhase::Measurement;
            self.each_paced(true, |worker, client| {
                worker.let_take(client, table.measure, now);
            });
        }
        if self.paced.phase == PacedPhase::Measurement && now >= table.end {
            self.paced.phase = PacedPhase::Drain;
            // All that is kept for slow ones comes now, and what does not come never will.
            self.each_paced(true, |worker, client| {
                worker.paced.forget(client.0);
                worker.take_at_most(client, None);
            });
        }
        match self.paced.phase {
            PacedPhase::Before => table.warm_up,
            PacedPhase::WarmUp => table.measure,
            PacedPhase::Measurement => table.end,
            PacedPhase::Nobody | PacedPhase::Drain => Nanos::MAX,
        }
    }

    /// Those whose applications take their time and that are slow, or are not.
    fn each_paced(&mut self, slow: bool, act: impl Fn(&mut Worker, ClientId)) {
        for client in (0..self.clients.len() as u32).map(ClientId) {
            if self.receiving.takes(client).is_some() && self.receiving.is_slow(client) == slow {
                act(self, client);
            }
        }
    }

    fn let_take(&mut self, client: ClientId, since: Nanos, now: Nanos) {
        if self.clients[client.0 as usize] == ClientState::Up {
            self.paced.waiting.insert(client.0, (since, now));
            self.take_at_most(client, Some(1));
        }
    }

    fn take_at_most(&mut self, client: ClientId, messages: Option<u32>) {
        if let Err(error) = self.fleet.take_at_most(client, messages) {
            self.fail(error.into());
        }
    }

    /// Those who have just taken a message are busy with it.
    pub(super) fn note_taken(&mut self) {
        let mut all = std::mem::take(&mut self.receiving.taken);
        for taken in all.drain(..) {
            let Taken {
                client,
                at,
                takes_time,
            } = taken;
            let Some(takes) = self.receiving.takes(client) else {
                continue;
            };
            let takes = if takes_time { takes } else { 0 };
            let begun = match self.paced.waiting.remove(&client.0) {
                // The worker was late to say so by as much: it has not made the application slower.
                Some((since, told)) => since.max(at.saturating_sub(told - since)),
                // A unit of the protocol had several.
                None => match self.paced.busy.get(&client.0) {
                    Some(busy) => *busy,
                    None => continue,
                },
            };
            self.paced.set_busy(client.0, begun + takes);
            self.add_busy(client, begun, takes);
        }
        self.receiving.taken = all;
    }

    /// A client's application is busy from `begun` on: its time within the measurement counts, unless it is slow.
    fn add_busy(&mut self, client: ClientId, begun: Nanos, takes: Nanos) {
        let (Some(table), Some(busy_for)) = (self.table, self.paced.busy_for.get_mut(&client.0))
        else {
            return;
        };
        let until = (begun + takes).min(table.end);
        *busy_for += until.saturating_sub(begun.max(table.measure));
    }

    /// A client is connected again.
    pub(super) fn paced_came_back(&mut self, client: ClientId, now: Nanos) {
        let paced = match self.paced.phase {
            PacedPhase::Nobody | PacedPhase::Before => false,
            PacedPhase::Measurement => true,
            PacedPhase::WarmUp | PacedPhase::Drain => !self.receiving.is_slow(client),
        };
        if paced && self.receiving.takes(client).is_some() {
            self.paced.forget(client.0);
            self.let_take(client, now, now);
        }
    }
}
