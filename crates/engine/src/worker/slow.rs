//! Subscribers whose applications are slow: as long as the measurement lasts, each is handed one message at a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pubgauge_driver::{ClientId, Nanos};
use rustc_hash::FxHashMap;

use super::{ClientState, Worker};

/// The slow subscribers of a worker.
pub(super) struct SlowClients {
    phase: SlowPhase,
    /// When those who are busy are free, by time. An entry counts if it is that of `busy`.
    free_at: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Until when each is busy, by client.
    busy: FxHashMap<u32, Nanos>,
    /// Those who wait for a message: since when, and since when their fleet knows.
    waiting: FxHashMap<u32, (Nanos, Nanos)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SlowPhase {
    /// There is nobody slow, or nobody any more.
    Nobody,
    /// The measurement has not begun.
    Before,
    Measuring,
}

impl SlowClients {
    /// Nobody is busy yet. `any`: whether the worker has slow subscribers at all.
    pub fn new(any: bool) -> SlowClients {
        SlowClients {
            phase: if any {
                SlowPhase::Before
            } else {
                SlowPhase::Nobody
            },
            free_at: BinaryHeap::new(),
            busy: FxHashMap::default(),
            waiting: FxHashMap::default(),
        }
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
}

impl Worker {
    /// Lets those who are free take their next message. Returns when to look again.
    pub(super) fn pace_slow(&mut self, now: Nanos) -> Nanos {
        let Some(table) = self.table.filter(|_| self.slow.phase != SlowPhase::Nobody) else {
            return Nanos::MAX;
        };
        if now >= table.end {
            // All that is kept for them comes now, and what does not come never will.
            self.slow = SlowClients::new(false);
            self.each_slow(|worker, client| worker.take_at_most(client, None));
            return Nanos::MAX;
        }
        if now < table.measure {
            return table.measure;
        }
        if self.slow.phase == SlowPhase::Before {
            self.slow.phase = SlowPhase::Measuring;
            self.each_slow(|worker, client| worker.let_take(client, table.measure, now));
        }
        while let Some((client, since)) = self.slow.next_free(now) {
            self.let_take(ClientId(client), since, now);
        }
        let next = self.slow.free_at.peek();
        next.map_or(table.end, |Reverse((at, _))| table.end.min(*at))
    }

    fn each_slow(&mut self, act: impl Fn(&mut Worker, ClientId)) {
        for client in (0..self.clients.len() as u32).map(ClientId) {
            if self.receiving.takes(client).is_some() {
                act(self, client);
            }
        }
    }

    fn let_take(&mut self, client: ClientId, since: Nanos, now: Nanos) {
        if self.clients[client.0 as usize] == ClientState::Up {
            self.slow.waiting.insert(client.0, (since, now));
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
        let mut taken = std::mem::take(&mut self.receiving.slow.delivered);
        for (client, at, measured) in taken.drain(..) {
            let Some(takes) = self.receiving.takes(client) else {
                continue;
            };
            let takes = if measured { takes } else { 0 };
            if self.slow.phase != SlowPhase::Measuring {
                continue;
            }
            let begun = match self.slow.waiting.remove(&client.0) {
                // The worker was late to say so by as much: it has not made the application slower.
                Some((since, told)) => since.max(at.saturating_sub(told - since)),
                // A unit of the protocol had several.
                None => match self.slow.busy.get(&client.0) {
                    Some(busy) => *busy,
                    None => continue,
                },
            };
            self.slow.set_busy(client.0, begun + takes);
        }
        self.receiving.slow.delivered = taken;
    }

    /// A client is connected again.
    pub(super) fn slow_came_back(&mut self, client: ClientId, now: Nanos) {
        if self.slow.phase == SlowPhase::Measuring && self.receiving.takes(client).is_some() {
            self.slow.busy.remove(&client.0);
            self.let_take(client, now, now);
        }
    }
}
