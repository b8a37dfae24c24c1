//! One question and its answer.

/// Four readings of two clocks, in ns of each clock's own origin, in the order in which they were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The question was about to be sent, near clock.
    pub sent: u64,
    /// The question had been received, far clock.
    pub received: u64,
    /// The answer was about to be sent, far clock.
    pub answered: u64,
    /// The answer had been received, near clock.
    pub heard: u64,
}

impl Exchange {
    /// The offset (far minus near) was at most this when the near clock read [`sent`](Self::sent), ns:
    /// the far clock was read later.
    pub fn upper(&self) -> i128 {
        i128::from(self.received) - i128::from(self.sent)
    }

    /// The offset was at least this when the near clock read [`heard`](Self::heard), ns: the far clock
    /// was read earlier.
    pub fn lower(&self) -> i128 {
        i128::from(self.answered) - i128::from(self.heard)
    }

    /// Time that question and answer were under way, both together, ns. Below zero if a clock was set
    /// within the exchange.
    pub fn under_way(&self) -> i128 {
        self.upper() - self.lower()
    }

    /// Both clocks went forward, and neither has gone for more than 292 years.
    pub(crate) fn is_possible(&self) -> bool {
        self.sent <= self.heard
            && self.received <= self.answered
            && i64::try_from(self.heard).is_ok()
            && i64::try_from(self.answered).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Far clock 1000 ns ahead, 30 ns there, 5 ns at work, 200 ns back.
    #[test]
    fn an_exchange_bounds_the_offset_from_both_sides() {
        let exchange = Exchange {
            sent: 100,
            received: 1_130,
            answered: 1_135,
            heard: 335,
        };
        assert_eq!(exchange.upper(), 1_030);
        assert_eq!(exchange.lower(), 800);
        assert_eq!(exchange.under_way(), 230);
        assert!(exchange.is_possible());
    }

    #[test]
    fn clocks_that_went_back_are_impossible() {
        let good = Exchange {
            sent: 1,
            received: 1,
            answered: 1,
            heard: 1,
        };
        assert!(good.is_possible());
        assert!(!Exchange { heard: 0, ..good }.is_possible());
        assert!(
            !Exchange {
                answered: 0,
                ..good
            }
            .is_possible()
        );
        let heard = u64::MAX;
        assert!(!Exchange { heard, ..good }.is_possible());
    }
}
