//! The offset between the monotonic clocks of two hosts, with a hard bound.
//!
//! An [`Exchange`] is a question and its answer with four readings: sent (near clock), received and
//! answered (far clock), heard (near clock). Nothing arrives before it was sent, so each exchange bounds
//! the offset from both sides, whatever the delays and however unequal they are. [`fit`] finds all
//! courses of the offset that pass between all these bounds and whose drift, and the change of it, stay
//! within [`Caps`]; the fit is their middle and its bound half their spread. If there is no such course a
//! clock was set, or drifts more than the caps allow: [`FitError::Contradiction`] says when.
//!
//! The estimate is pure. [`udp`] makes the exchanges: a [`udp::Server`] that answers, and a
//! [`udp::Client`] that asks, on the clocks that they are given.

#![forbid(unsafe_code)]

mod band;
mod exchange;
mod fit;
mod region;
pub mod udp;

pub use band::{Fit, Line, Offset};
pub use exchange::Exchange;
pub use fit::{Break, Caps, FitError, fit, fit_over};

/// The largest share of a percentile that its bound may be if the percentile is to be quoted.
pub const QUOTABLE_SHARE: f64 = 0.1;

/// Whether a percentile of one-way latency, in ns, may be quoted although it is only known to within
/// `bound_ns` on either side: the bound is at most [`QUOTABLE_SHARE`] of it. Where not, the round trip is
/// quoted, which needs one clock only. A latency of zero or less is never quotable.
///
/// ```
/// assert!(pubgauge_clock::quotable(1_840_000, 60_000));
/// assert!(!pubgauge_clock::quotable(210_000, 60_000));
/// ```
pub fn quotable(percentile_ns: i64, bound_ns: u64) -> bool {
    percentile_ns > 0 && bound_ns as f64 <= percentile_ns as f64 * QUOTABLE_SHARE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_is_quotable_and_more_is_not() {
        assert!(quotable(1_000, 100));
        assert!(!quotable(1_000, 101));
        assert!(quotable(1, 0));
        assert!(!quotable(0, 0));
        assert!(!quotable(-1_000, 10));
        assert!(!quotable(i64::MAX, u64::MAX));
    }
}
