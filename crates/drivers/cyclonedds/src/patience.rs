//! Busy polling: whether to look again for a while before sleeping.
//!
//! Cyclone's receive thread takes messages from the socket and hands them to the fleet's thread;
//! waking the fleet's thread takes longer than the rest of a short round trip. Where answers come
//! at once, it polls instead of sleeping. Polling is CPU time in the figures, so it is bounded, and
//! only done while the last answer came within the bound.

use pubgauge_driver::Nanos;

/// How long to poll for an answer by default, ns.
const LIMIT: Nanos = 50_000;

/// Decides for one fleet.
#[derive(Debug)]
pub(crate) struct Patience {
    limit: Nanos,
    /// Whether to look before every sleep.
    always: bool,
    /// Something was sent since the last wait, which may be answered.
    asked: bool,
    /// The last answer came within the limit.
    quick: bool,
}

impl Patience {
    /// `limit` is how long to look before every sleep, ns; without one, only answers are looked
    /// for, and only while they come quickly.
    pub(crate) fn new(limit: Option<Nanos>) -> Self {
        Patience {
            limit: limit.unwrap_or(LIMIT),
            always: limit.is_some(),
            asked: false,
            quick: false,
        }
    }

    /// Something was sent.
    #[inline]
    pub(crate) fn sent(&mut self) {
        self.asked = true;
    }

    /// Until when to look before sleeping; `held_back` if there is no room to send.
    pub(crate) fn look_until(&self, now: Nanos, held_back: bool) -> Nanos {
        if self.always || (self.asked && self.quick && !held_back) {
            now.saturating_add(self.limit)
        } else {
            now
        }
    }

    /// A wait of so many ns has ended; says whether with messages.
    pub(crate) fn waited(&mut self, ns: Nanos, messages: bool) {
        if self.asked {
            self.quick = messages && ns <= self.limit;
            self.asked = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends and waits for so long; says for how long it would look.
    fn question(patience: &mut Patience, ns: Nanos) -> Nanos {
        patience.sent();
        let look = patience.look_until(1000, false) - 1000;
        patience.waited(ns, true);
        look
    }

    #[test]
    fn it_looks_only_while_answers_come_quickly() {
        let mut patience = Patience::new(None);
        assert_eq!(question(&mut patience, 30_000), 0, "not known yet");
        assert_eq!(question(&mut patience, 10_000), LIMIT);
        assert_eq!(question(&mut patience, 60_000), LIMIT);
        assert_eq!(question(&mut patience, 60_000), 0, "the last was slow");
    }

    #[test]
    fn who_only_listens_sleeps() {
        let mut patience = Patience::new(None);
        question(&mut patience, 1000);
        patience.waited(1000, true);
        assert_eq!(patience.look_until(7, false), 7);
    }

    #[test]
    fn nothing_is_looked_for_while_held_back_or_without_answers() {
        let mut patience = Patience::new(None);
        question(&mut patience, 1000);
        patience.sent();
        assert_eq!(patience.look_until(7, true), 7);
        patience.waited(1000, false);
        patience.sent();
        assert_eq!(patience.look_until(7, false), 7);
    }

    #[test]
    fn a_set_time_always_holds() {
        assert_eq!(Patience::new(Some(0)).look_until(7, false), 7);
        let mut patience = Patience::new(Some(9));
        patience.waited(100_000, false);
        assert_eq!(patience.look_until(7, true), 16);
    }
}
