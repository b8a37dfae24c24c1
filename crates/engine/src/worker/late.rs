//! Clients that subscribe within the measurement, as the workload says.

use std::collections::VecDeque;

use pubgauge_driver::{ClientId, Nanos, Subscription};

use super::{ClientState, Worker};
use crate::timetable::Timetable;

/// Clients that subscribe between two polls, so that reading is not starved.
const PER_TURN: usize = 64;

/// The late subscribers among a worker's clients.
#[derive(Default)]
pub(super) struct LateClients {
    /// When each is to subscribe, clock time, in ascending order; only once the timetable is known.
    next: VecDeque<(Nanos, ClientId)>,
    /// By client; of those that are not late `None`. Empty where nobody is late.
    of: Vec<Option<LateStep>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LateStep {
    /// Its time has not come.
    Waits,
    /// It has asked for its subscriptions over the connection that it had.
    Asks,
    /// It asks once it is connected again.
    AsksLater,
    /// It has its subscriptions.
    Subscribed,
}

impl LateClients {
    /// The late ones among clients, in their order.
    pub fn new(late: impl Iterator<Item = bool>) -> LateClients {
        let of: Vec<Option<LateStep>> = late.map(|late| late.then_some(LateStep::Waits)).collect();
        let any = of.iter().any(Option::is_some);
        LateClients {
            of: if any { of } else { Vec::new() },
            ..LateClients::default()
        }
    }

    fn step(&self, client: ClientId) -> Option<LateStep> {
        self.of.get(client.0 as usize).copied().flatten()
    }

    fn set(&mut self, client: ClientId, step: LateStep) {
        if let Some(Some(of)) = self.of.get_mut(client.0 as usize) {
            *of = step;
        }
    }

    /// Whether a client is not to subscribe yet.
    pub fn waits(&self, client: ClientId) -> bool {
        self.step(client) == Some(LateStep::Waits)
    }

    /// Whether a client subscribes over the connection that it had: it does not come back.
    pub fn is_asking(&self, client: ClientId) -> bool {
        self.step(client) == Some(LateStep::Asks)
    }

    /// The connection of a client was lost.
    pub fn lost(&mut self, client: ClientId) {
        if self.is_asking(client) {
            self.set(client, LateStep::AsksLater);
        }
    }
}

impl Worker {
    /// Plans who subscribes when, for the measurement of `table`.
    pub(super) fn plan_late(&mut self, table: Timetable) {
        let devices = self.assignment.devices.iter();
        let brief = &self.context.brief;
        let mut next: Vec<(Nanos, ClientId)> = (0..)
            .map(ClientId)
            .zip(devices)
            .filter_map(|(client, device)| {
                Some((table.measure.saturating_add(brief.late(*device)?), client))
            })
            .collect();
        next.sort_unstable_by_key(|(at, client)| (*at, client.0));
        self.late.next = next.into();
    }

    /// Lets those subscribe whose time has come. Returns when to look again.
    pub(super) fn subscribe_late(&mut self, now: Nanos) -> Nanos {
        for _ in 0..PER_TURN {
            let Some((at, client)) = self.late.next.front().copied() else {
                return Nanos::MAX;
            };
            if self.table.is_some_and(|table| at >= table.end) {
                self.late.next.clear();
                return Nanos::MAX;
            }
            if at > now {
                return at;
            }
            self.late.next.pop_front();
            if self.clients[client.0 as usize] != ClientState::Up {
                self.late.set(client, LateStep::AsksLater);
                continue;
            }
            self.late.set(client, LateStep::Asks);
            let device = self.assignment.devices[client.0 as usize];
            let wanted: VecDeque<Subscription> = self.subscriptions(device).into();
            self.ask_for(client, wanted, &[]);
        }
        now
    }

    /// A late client begins to ask for its subscriptions.
    pub(super) fn note_asking(&mut self, client: ClientId, now: Nanos) {
        if matches!(
            self.late.step(client),
            Some(LateStep::Asks | LateStep::AsksLater)
        ) {
            self.receiving.late_asks(client, now);
        }
    }

    /// A client has its subscriptions: the last answer was read at `read`.
    pub(super) fn late_came_up(&mut self, client: ClientId, read: Nanos) {
        if matches!(
            self.late.step(client),
            Some(LateStep::Asks | LateStep::AsksLater)
        ) {
            self.late.set(client, LateStep::Subscribed);
            self.receiving.late_subscribed(client, read);
        }
    }
}
