//! Windows: how many messages of a flow may be under way at once, to the message.
//!
//! A message is under way from when it is accepted until every party has it, or something later of
//! its stream. Publishing workers take a token for each message from the flow's [`Window`] and for
//! each worker with subscribers on which it will be under way; those give it back. So the bound holds over any
//! number of workers; with subscribers on several workers a message may hold several tokens, and
//! fewer messages than the bound may then be under way.

use std::sync::atomic::{AtomicU64, Ordering};

use pubgauge_driver::Kind;
use rustc_hash::FxHashMap;

use crate::ledger::Ledger;

/// The tokens of one flow, shared by all workers.
#[derive(Debug, Default)]
pub struct Window {
    taken: AtomicU64,
    given_back: AtomicU64,
}

impl Window {
    /// Takes `tokens` for each of as many messages as the bound of `most` messages allows, at most
    /// `wanted`: for how many.
    pub fn take(&self, most: u64, tokens: u64, wanted: u32) -> u32 {
        let mut taken = self.taken.load(Ordering::Relaxed);
        loop {
            // Given back first: what is given back meanwhile leaves room for more.
            let open = taken.saturating_sub(self.given_back.load(Ordering::Acquire));
            let room = most.saturating_sub(open).div_ceil(tokens);
            let messages = room.min(u64::from(wanted));
            if messages == 0 {
                return 0;
            }
            let (order, again) = (Ordering::AcqRel, Ordering::Relaxed);
            let after = taken + messages * tokens;
            match self.taken.compare_exchange_weak(taken, after, order, again) {
                Ok(_) => return messages as u32,
                Err(now) => taken = now,
            }
        }
    }

    /// Returns tokens that were taken for messages that were not sent.
    pub fn untake(&self, tokens: u64) {
        if tokens > 0 {
            self.taken.fetch_sub(tokens, Ordering::AcqRel);
        }
    }

    /// Gives tokens back for messages that are no longer under way.
    pub fn give_back(&self, tokens: u64) {
        self.given_back.fetch_add(tokens, Ordering::Release);
    }

    /// Tokens given back so far.
    pub fn given_back(&self) -> u64 {
        self.given_back.load(Ordering::Acquire)
    }
}

/// How far all of this worker's parties are with a stream that several of them hear.
struct Level {
    /// Messages that none of them waits for.
    passed: u32,
    /// Parties that have passed no more than these.
    behind: u32,
    /// Their accounts, as far as they are open.
    entries: Vec<u32>,
}

/// Which messages of flows with a window are no longer under way on this worker.
#[derive(Default)]
pub struct Progress {
    levels: FxHashMap<u64, Level>,
}

impl Progress {
    /// Notes that account `number` has passed the first `upto` messages of a stream; how many
    /// messages all parties of this worker have passed now that they had not before. `parties`
    /// counts them; absent: only one party hears the stream.
    pub fn pass(
        &mut self,
        ledger: &mut Ledger,
        number: u32,
        (stream, kind): (u32, Kind),
        parties: Option<impl FnOnce() -> u32>,
        upto: u32,
    ) -> u64 {
        let entry = ledger.entry(number);
        let before = entry.passed;
        entry.passed = upto.max(before);
        let Some(parties) = parties else {
            return u64::from(entry.passed - before);
        };
        let key = (kind as u64) << 32 | u64::from(stream);
        let level = self.levels.entry(key).or_insert_with(|| Level {
            passed: 0,
            behind: parties(),
            entries: Vec::new(),
        });
        if before == 0 && !level.entries.contains(&number) {
            level.entries.push(number);
        }
        if before > level.passed || upto <= before {
            return 0;
        }
        level.behind -= 1;
        if level.behind > 0 {
            return 0;
        }
        let passed = level.entries.iter().map(|n| ledger.entry(*n).passed);
        let lowest = passed.min().unwrap_or(0);
        let passed = u64::from(lowest - std::mem::replace(&mut level.passed, lowest));
        let at_level = |n: &&u32| ledger.entry(**n).passed == lowest;
        level.behind = level.entries.iter().filter(at_level).count() as u32;
        passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Account;
    use proptest::prelude::*;

    #[test]
    fn a_window_gives_no_more_than_its_bound() {
        let window = Window::default();
        assert_eq!(window.take(3, 1, 64), 3);
        assert_eq!(window.take(3, 1, 64), 0);
        window.give_back(2);
        assert_eq!(window.take(3, 1, 1), 1);
        window.untake(1);
        assert_eq!(window.take(3, 1, 64), 2);
        assert_eq!(window.given_back(), 2);
    }

    #[test]
    fn with_two_receiving_workers_a_message_holds_two_tokens() {
        let window = Window::default();
        assert_eq!(window.take(1, 2, 64), 1);
        window.give_back(1);
        assert_eq!(window.take(1, 2, 64), 0, "one worker still waits for it");
        window.give_back(1);
        assert_eq!(window.take(1, 2, 64), 1);
    }

    proptest! {
        /// Parties pass the messages of one stream at their own pace, in leaps or singly.
        #[test]
        fn a_message_is_passed_when_the_last_party_has_it(
            parties in 1u32..5, alone: bool, leaps in prop::collection::vec((0u32..5, 0u32..4), 0..200),
        ) {
            let (mut ledger, mut progress) = (Ledger::default(), Progress::default());
            let parties = if alone { 1 } else { parties };
            let mut at = vec![0u32; parties as usize];
            let mut passed = 0;
            for (party, leap) in leaps {
                let party = party % parties;
                at[party as usize] += leap;
                let account = Account { party, stream: 9, kind: Kind::Measured };
                let number = ledger.open(account, || true).expect("entitled");
                let upto = at[party as usize];
                passed += progress.pass(
                    &mut ledger, number, (9, Kind::Measured), (!alone).then_some(|| parties), upto,
                );
                prop_assert_eq!(passed, u64::from(at.iter().copied().min().unwrap_or(0)));
            }
        }
    }
}
