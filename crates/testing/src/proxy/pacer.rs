//! When queued bytes may pass: a pure function of what has passed before.

use super::rules::Rate;

/// Longest time that one piece of bytes takes at the rate, in seconds.
const PIECE_S: f64 = 0.0005;

/// The schedule of a rate. A busy period begins when something is ready and all before it is done.
#[derive(Debug, Default)]
pub(super) struct Pacer {
    rate: Option<Rate>,
    /// When the busy period began.
    start: u64,
    /// Bytes or messages that have passed in it.
    units: u64,
}

impl Pacer {
    pub(super) fn new(rate: Option<Rate>) -> Pacer {
        Pacer {
            rate,
            ..Pacer::default()
        }
    }

    /// When so many units of this busy period are done, rounded up: never early.
    fn done(&self, units: u64) -> u64 {
        match self.rate {
            None => self.start,
            Some(rate) => self.start + (units as f64 * 1e9 / rate.per_s()).ceil() as u64,
        }
    }

    /// Changes the rate from `now` on. Units begun at the old rate are finished, but take no longer
    /// than one unit at the new rate.
    pub(super) fn change(&mut self, rate: Option<Rate>, now: u64) {
        if rate == self.rate {
            return;
        }
        let free = self.done(self.units);
        *self = Pacer {
            rate,
            start: now,
            units: 0,
        };
        self.start = free.clamp(now, self.done(1));
    }

    /// How many of the `len` bytes at the head pass next, and when. `ready`: when they may pass at
    /// the earliest. `behind`: the link has not been idle before them, although it looks so.
    pub(super) fn next(&mut self, len: u32, publish: bool, ready: u64, behind: bool) -> (u32, u64) {
        let Some(rate) = self.rate else {
            return (len, ready);
        };
        if matches!(rate, Rate::MessagesPerS(_)) && !publish {
            return (len, ready);
        }
        if !behind && self.done(self.units) < ready {
            (self.start, self.units) = (ready, 0);
        }
        match rate {
            Rate::MessagesPerS(_) => (len, self.done(self.units).max(ready)),
            Rate::BytesPerS(per_s) => {
                let piece = len.min((per_s * PIECE_S).max(1.0) as u32);
                let due = self.done(self.units + u64::from(piece));
                (piece, due.max(ready))
            }
        }
    }

    /// Notes that so many bytes have passed.
    pub(super) fn passed(&mut self, len: u32, publish: bool) {
        match self.rate {
            None => {}
            Some(Rate::MessagesPerS(_)) => self.units += u64::from(publish),
            Some(Rate::BytesPerS(_)) => self.units += u64::from(len),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When each of some items passes in full that are ready at these times.
    fn passes(pacer: &mut Pacer, items: &[(u32, u64)], behind: bool) -> Vec<u64> {
        let pass = |&(len, ready): &(u32, u64)| {
            let (mut left, mut at) = (len, 0);
            while left > 0 {
                let (n, due) = pacer.next(left, true, ready, behind);
                assert!(n > 0 && due >= at && due >= ready);
                pacer.passed(n, true);
                (left, at) = (left - n, due);
            }
            at
        };
        items.iter().map(pass).collect()
    }

    #[test]
    fn the_kth_message_of_a_busy_period_passes_at_its_start_and_k_intervals() {
        let mut pacer = Pacer::new(Some(Rate::MessagesPerS(3.0)));
        let at = passes(&mut pacer, &[(10, 500); 4], false);
        assert_eq!(at, [500, 333_333_834, 666_667_167, 1_000_000_500]);
        let million = passes(&mut pacer, &vec![(10, 500); 3_000_000], false);
        assert_eq!(million[2_999_999], 1_000_001_000_000_500);
    }

    #[test]
    fn an_idle_link_saves_nothing_up() {
        let mut pacer = Pacer::new(Some(Rate::MessagesPerS(1000.0)));
        let ready = [0, 0, 9_000_000, 9_100_000, 11_000_000].map(|at| (1, at));
        let at = passes(&mut pacer, &ready, false);
        assert_eq!(at, [0, 1_000_000, 9_000_000, 10_000_000, 11_000_000]);
    }

    #[test]
    fn what_was_held_back_is_made_up_for() {
        let mut pacer = Pacer::new(Some(Rate::MessagesPerS(1000.0)));
        passes(&mut pacer, &[(1, 7)], false);
        let at = passes(&mut pacer, &[(1, 2_500_000); 3], true);
        assert_eq!(at, [2_500_000, 2_500_000, 3_000_007]);
    }

    #[test]
    fn bytes_pass_when_the_last_of_a_piece_is_due() {
        let mut pacer = Pacer::new(Some(Rate::BytesPerS(10_000.0)));
        assert_eq!(pacer.next(1_000, false, 0, false), (5, 500_000));
        let at = passes(
            &mut pacer,
            &[(1_000, 0), (1, 0), (100, 1_000_000_000)],
            false,
        );
        assert_eq!(at, [100_000_000, 100_100_000, 1_010_000_000]);
        let mut slow = Pacer::new(Some(Rate::BytesPerS(0.5)));
        assert_eq!(slow.next(9, false, 0, false), (1, 2_000_000_000));
    }

    #[test]
    fn other_packets_take_no_time_at_a_rate_of_messages() {
        let mut pacer = Pacer::new(Some(Rate::MessagesPerS(1.0)));
        passes(&mut pacer, &[(1, 0)], false);
        assert_eq!(pacer.next(9, false, 3, false), (9, 3));
        pacer.passed(9, false);
        assert_eq!(pacer.next(9, true, 3, false), (9, 1_000_000_000));
    }

    #[test]
    fn another_rate_holds_from_then_on() {
        let mut pacer = Pacer::new(Some(Rate::MessagesPerS(1.0)));
        passes(&mut pacer, &[(1, 0)], false);
        pacer.change(Some(Rate::MessagesPerS(1000.0)), 500);
        assert_eq!(passes(&mut pacer, &[(1, 0)], false), [1_000_500]);
        pacer.change(None, 600);
        assert_eq!(pacer.next(1, true, 700, false), (1, 700));
    }
}
