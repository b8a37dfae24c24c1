//! How many streams a further round of sentinels has, and which: of those that a party has not heard, no more at once
//! than came before.

use std::collections::BTreeSet;

use crate::receiving::first_from;

/// Streams of the second round at most, and of the one after a round of which something did not come. Where a client's queue
/// drops what is beyond its length (ZeroMQ: 1,000 messages by default), a larger round loses the same streams each time.
const FEWEST: u32 = 512;
/// Streams of a later round at most.
const MOST: u32 = 1 << 16;

/// Further rounds, in which the streams that are missing have their turns.
pub(super) struct SentinelRounds {
    /// Workers that were asked which streams are missing and have not told.
    pub(super) asked: BTreeSet<u32>,
    /// The reports of the others.
    pub(super) told: BTreeSet<u32>,
    /// The first stream of the next round.
    pub(super) from: u32,
    /// How many streams it may have.
    pub(super) most: u32,
    /// Streams of the newest round, the first one being all.
    pub(super) streams: u64,
    /// How many (party, stream) pairs were missing when it went out.
    missing: u64,
}

impl Default for SentinelRounds {
    fn default() -> SentinelRounds {
        SentinelRounds {
            asked: BTreeSet::new(),
            told: BTreeSet::new(),
            from: 0,
            most: FEWEST,
            streams: u64::MAX,
            missing: u64::MAX,
        }
    }
}

impl SentinelRounds {
    /// Takes in which streams are missing at a worker.
    pub(super) fn take(&mut self, worker: u32, streams: &[u32]) {
        if self.asked.remove(&worker) {
            self.told.extend(streams);
        }
    }

    /// The next round, of what is missing.
    pub(super) fn round(&mut self) -> Vec<u32> {
        let missing = std::mem::take(&mut self.told).into_iter().collect();
        let round = first_from(missing, self.from, self.most as usize);
        self.from = round.last().map_or(0, |last| last.wrapping_add(1));
        self.streams = round.len() as u64;
        round
    }

    /// Decides how many streams the next round may have, `missing` pairs being unproven now.
    pub(super) fn grow(&mut self, missing: u64) {
        let came = self.missing.saturating_sub(missing);
        let all_came = self.missing < u64::MAX && came >= self.streams;
        self.most = if all_came {
            self.most.saturating_mul(2).min(MOST)
        } else {
            FEWEST
        };
        self.missing = missing;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of 10,000 streams over a queue that takes so many of each round: how many rounds prove all.
    fn rounds(queue: usize) -> usize {
        let mut missing: BTreeSet<u32> = (0..10_000).collect();
        let mut again = SentinelRounds::default();
        missing = missing.split_off(&(queue as u32));
        let mut rounds = 1;
        while !missing.is_empty() {
            again.grow(missing.len() as u64);
            again.told = missing.clone();
            for stream in again.round().iter().take(queue) {
                missing.remove(stream);
            }
            rounds += 1;
            assert!(rounds <= 10_000, "{} are never proven", missing.len());
        }
        rounds
    }

    #[test]
    fn every_stream_is_proven_whatever_the_queue_holds() {
        assert_eq!(rounds(10_000), 1);
        // 9,000 in rounds of 512 and 1,000 at most.
        assert!((9..=18).contains(&rounds(1000)), "{}", rounds(1000));
        assert!((99..=101).contains(&rounds(100)), "{}", rounds(100));
        assert_eq!(rounds(1), 10_000);
    }

    #[test]
    fn a_stream_that_never_comes_does_not_keep_the_others_from_their_turns() {
        let mut missing: BTreeSet<u32> = (0..2000).collect();
        let mut again = SentinelRounds::default();
        for _ in 0..5 {
            again.grow(missing.len() as u64);
            again.told = missing.clone();
            for stream in again.round() {
                if stream >= 600 {
                    missing.remove(&stream);
                }
            }
        }
        assert_eq!(missing, (0..600).collect());
    }
}
