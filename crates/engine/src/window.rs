//! Windows: how many messages of a flow may be under way at once, to the message.
//!
//! A message is under way from when it is accepted until every party has it, or something later of
//! its stream. It takes a token of its flow for each worker with subscribers on which it will be
//! under way; those report tokens back. The conductor holds the tokens and hands them to the
//! publishing workers ([`Tokens`]), so that the bound holds over any number of workers. With
//! subscribers on several workers a message holds several tokens, and fewer messages than the bound
//! may then be under way.

use pubgauge_driver::Kind;
use rustc_hash::FxHashMap;

use crate::ledger::Ledger;

/// The tokens of one flow, as the conductor hands them out.
#[derive(Debug)]
pub struct Tokens {
    /// The most tokens that one message takes.
    each: u64,
    /// Held by no worker.
    free: u64,
    /// Workers with publishers of the flow.
    workers: Vec<usize>,
    /// The worker that is next among those that hold equally many.
    turn: usize,
}

impl Tokens {
    /// One token for each of `messages`, and `each` at the least, so that one message can go; for
    /// these workers.
    pub fn new(messages: u64, each: u64, workers: Vec<usize>) -> Self {
        Tokens {
            each,
            free: messages.max(each),
            workers,
            turn: 0,
        }
    }

    /// Tokens come back.
    pub fn give_back(&mut self, tokens: u64) {
        self.free = self.free.saturating_add(tokens);
    }

    /// Hands out what is free, a message's worth at a time to the worker that holds least unused,
    /// in turn where several do. Returns what each worker gets. `unused`: what a worker holds.
    pub fn hand_out(&mut self, unused: impl Fn(usize) -> u64) -> Vec<(usize, u64)> {
        let held = |worker: &usize| (*worker, unused(*worker));
        let before: Vec<(usize, u64)> = self.workers.iter().map(held).collect();
        let mut after = before.clone();
        while self.free >= self.each && !after.is_empty() {
            let count = after.len();
            let in_turn = (0..count).map(|n| (n + self.turn) % count);
            let next = in_turn.min_by_key(|n| after[*n].1).unwrap_or(0);
            // All of it at once where there is only one.
            let tokens = match count {
                1 => self.free,
                _ => self.each,
            };
            after[next].1 += tokens;
            self.free -= tokens;
            self.turn = (next + 1) % count;
        }
        let more = before.iter().zip(&after).map(|(b, a)| (b.0, a.1 - b.1));
        more.filter(|(_, tokens)| *tokens > 0).collect()
    }
}

/// How far all of this worker's parties are with a stream that several of them hear.
struct Level {
    /// Messages that all of them have passed.
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
    /// Notes that account `number` has passed the first `upto` messages of a stream. Returns how
    /// many messages all parties of this worker have passed now that they had not before. `parties`
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
    fn one_worker_gets_all_tokens() {
        let mut tokens = Tokens::new(3, 1, vec![4]);
        assert_eq!(tokens.hand_out(|_| 0), [(4, 3)]);
        assert_eq!(tokens.hand_out(|_| 0), []);
        tokens.give_back(2);
        assert_eq!(tokens.hand_out(|_| 0), [(4, 2)]);
    }

    #[test]
    fn tokens_go_to_whoever_holds_least() {
        let mut tokens = Tokens::new(1, 1, vec![0, 1]);
        assert_eq!(tokens.hand_out(|_| 0), [(0, 1)]);
        tokens.give_back(1);
        assert_eq!(tokens.hand_out(|_| 0), [(1, 1)], "in turn");
        tokens.give_back(1);
        // Worker 0 is held back by the system and uses nothing.
        assert_eq!(
            tokens.hand_out(|worker| 5 * u64::from(worker == 0)),
            [(1, 1)]
        );
    }

    #[test]
    fn a_message_that_takes_two_tokens_waits_for_both() {
        let mut tokens = Tokens::new(1, 2, vec![0]);
        assert_eq!(tokens.hand_out(|_| 0), [(0, 2)]);
        tokens.give_back(1);
        assert_eq!(tokens.hand_out(|_| 0), []);
        tokens.give_back(1);
        assert_eq!(tokens.hand_out(|_| 0), [(0, 2)]);
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
