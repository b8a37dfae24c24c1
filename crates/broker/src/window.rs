//! QoS 1 and 2 messages in flight to one client, by packet identifier (MQTT 5
//! sections 4.3 and 4.4).

use std::collections::VecDeque;
use std::rc::Rc;

use crate::message::StoredMessage;

/// Packet identifiers go from 1 to this.
const IDS: u64 = 65_535;

/// A message to be delivered to one session, as it must be sent to it.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    pub message: Rc<StoredMessage>,
    /// Quality of service of this delivery.
    pub qos: u8,
    /// Retain flag of this delivery.
    pub retain: bool,
    /// Identifiers of the subscriptions that it matches.
    pub ids: Box<[u32]>,
}

/// Stage of the exchange about one packet identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// PUBLISH at QoS 1 sent, PUBACK due.
    PubAckDue,
    /// PUBLISH at QoS 2 sent, PUBREC due.
    PubRecDue,
    /// PUBREL sent, PUBCOMP due.
    PubCompDue,
    /// Complete, but an older one is not.
    Done,
}

#[derive(Debug)]
struct OpenExchange {
    stage: Stage,
    /// Must be sent (again) on this connection.
    resend: bool,
    /// Kept for sending again where the session outlives the connection.
    delivery: Option<Delivery>,
}

/// The exchanges of one session that are not complete, oldest first.
///
/// Identifiers are assigned in order, so an entry is found by subtraction. The
/// cost: the span from the oldest open exchange to the newest is at most
/// 65,535, whatever was acknowledged in between.
#[derive(Debug, Default)]
pub(crate) struct ExchangeWindow {
    entries: VecDeque<OpenExchange>,
    /// Number of exchanges before the first in `entries`.
    first: u64,
    /// Entries that are not `Done`.
    open: usize,
    /// Those among them that wait to be sent again, the first of them not before
    /// exchange number `resend_from`.
    resend_left: usize,
    resend_from: u64,
}

/// The identifier of the `n`th exchange.
fn id_of(n: u64) -> u16 {
    (n % IDS) as u16 + 1
}

impl ExchangeWindow {
    /// Exchanges not complete.
    #[cfg(test)]
    pub(crate) fn open(&self) -> usize {
        self.open
    }

    /// Whether another exchange may begin.
    pub(crate) fn has_room(&self, maximum: u16) -> bool {
        self.open < usize::from(maximum) && (self.entries.len() as u64) < IDS
    }

    /// Begins an exchange and returns its packet identifier. `delivery` is sent
    /// again if the client reconnects without having answered.
    pub(crate) fn begin(&mut self, qos: u8, delivery: Option<Delivery>) -> u16 {
        let stage = if qos == 1 {
            Stage::PubAckDue
        } else {
            Stage::PubRecDue
        };
        let id = id_of(self.first + self.entries.len() as u64);
        self.entries.push_back(OpenExchange {
            stage,
            resend: false,
            delivery,
        });
        self.open += 1;
        id
    }

    /// Moves an exchange from stage `due` to `next`. False if it is not at
    /// `due`, so that the client's answer belongs to no exchange.
    pub(crate) fn advance(&mut self, id: u16, due: Stage, next: Stage) -> bool {
        let Some(at) = self.position(id) else {
            return false;
        };
        let entry = &mut self.entries[at];
        if entry.stage != due {
            return false;
        }
        entry.stage = next;
        entry.delivery = None;
        if next == Stage::Done {
            self.open -= 1;
            self.resend_left -= usize::from(entry.resend);
            self.trim();
        }
        true
    }

    /// The stage of an exchange.
    pub(crate) fn stage(&self, id: u16) -> Option<Stage> {
        self.position(id).map(|at| self.entries[at].stage)
    }

    /// Marks everything open to be sent again, as a new connection must.
    pub(crate) fn reconnect(&mut self) {
        for entry in self.entries.iter_mut().filter(|e| e.stage != Stage::Done) {
            entry.resend = true;
        }
        self.resend_left = self.open;
        self.resend_from = self.first;
    }

    /// The next exchange to resume, oldest first, with at most `maximum` in
    /// flight on this connection: identifier, stage, and the message unless
    /// only a PUBREL is to be sent.
    pub(crate) fn next_resend(&mut self, maximum: u16) -> Option<(u16, Stage, Option<Delivery>)> {
        if self.resend_left == 0 || self.open - self.resend_left >= usize::from(maximum) {
            return None;
        }
        let mut n = self.resend_from.max(self.first);
        loop {
            let entry = self.entries.get_mut((n - self.first) as usize)?;
            if entry.resend && entry.stage != Stage::Done {
                entry.resend = false;
                self.resend_left -= 1;
                self.resend_from = n + 1;
                return Some((id_of(n), entry.stage, entry.delivery.clone()));
            }
            n += 1;
        }
    }

    /// Whether an exchange waits to be resumed.
    pub(crate) fn resending(&self) -> bool {
        self.resend_left > 0
    }

    fn position(&self, id: u16) -> Option<usize> {
        let wanted = u64::from(id.checked_sub(1)?);
        let at = (wanted + IDS - self.first % IDS) % IDS;
        ((at as usize) < self.entries.len()).then_some(at as usize)
    }

    fn trim(&mut self) {
        while self.entries.front().is_some_and(|e| e.stage == Stage::Done) {
            self.entries.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn delivery() -> Delivery {
        let message = Rc::new(StoredMessage::for_test("a", b"x"));
        Delivery {
            message,
            qos: 1,
            retain: false,
            ids: Box::default(),
        }
    }

    #[test]
    fn identifiers_go_round_and_are_never_0_or_twice() {
        let mut window = ExchangeWindow::default();
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..IDS {
            assert!(window.has_room(u16::MAX));
            assert!(seen.insert(window.begin(1, None)));
        }
        assert!(!window.has_room(u16::MAX) && !seen.contains(&0));
        assert!(window.advance(1, Stage::PubAckDue, Stage::Done));
        assert_eq!(window.begin(1, None), 1);
    }

    #[test]
    fn a_reconnect_resends_in_order_within_the_maximum() {
        let mut window = ExchangeWindow::default();
        for qos in [1, 2, 2, 1] {
            window.begin(qos, Some(delivery()));
        }
        assert!(window.advance(3, Stage::PubRecDue, Stage::PubCompDue));
        assert!(window.advance(1, Stage::PubAckDue, Stage::Done));
        window.reconnect();
        let (id, stage, d) = window.next_resend(2).unwrap();
        assert_eq!((id, stage, d.is_some()), (2, Stage::PubRecDue, true));
        let (id, stage, d) = window.next_resend(2).unwrap();
        assert_eq!((id, stage, d.is_some()), (3, Stage::PubCompDue, false));
        assert!(window.next_resend(2).is_none() && window.resending());
        assert!(window.advance(3, Stage::PubCompDue, Stage::Done));
        assert_eq!(window.next_resend(2).unwrap().0, 4);
        assert!(!window.resending());
    }

    proptest! {
        #[test]
        fn the_window_agrees_with_a_map(steps in prop::collection::vec((0u8..4, any::<u16>()), 1..400)) {
            let mut window = ExchangeWindow::default();
            let mut map: BTreeMap<u16, Stage> = BTreeMap::new();
            for (what, pick) in steps {
                let id = map.keys().nth(usize::from(pick) % map.len().max(1)).copied().unwrap_or(pick);
                match what {
                    0 | 1 => {
                        let qos = 1 + what;
                        let id = window.begin(qos, None);
                        let stage = if qos == 1 { Stage::PubAckDue } else { Stage::PubRecDue };
                        prop_assert!(map.insert(id, stage).is_none());
                    }
                    2 => {
                        let moved = window.advance(id, Stage::PubRecDue, Stage::PubCompDue);
                        prop_assert_eq!(moved, map.get(&id) == Some(&Stage::PubRecDue));
                        if moved {
                            map.insert(id, Stage::PubCompDue);
                        }
                    }
                    _ => {
                        let due = map.get(&id).copied().unwrap_or(Stage::PubAckDue);
                        let moved = due != Stage::PubRecDue && window.advance(id, due, Stage::Done);
                        prop_assert_eq!(moved, map.contains_key(&id) && due != Stage::PubRecDue);
                        if moved {
                            map.remove(&id);
                        }
                    }
                }
                prop_assert_eq!(window.open(), map.len());
            }
        }
    }
}
