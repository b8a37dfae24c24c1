//! A queue that grows, in figures and in words.

use std::fmt;

use pubgauge_figures::model::{Evidence, Reason, Rule};

use super::thresholds;

/// A queue that grew by more than chance and by enough to matter, or that would grow without end.
pub(super) struct Growth {
    /// The flow whose queue it is, where it is one of several.
    pub flow: Option<String>,
    pub kind: Kind,
    pub from: f64,
    pub to: f64,
    pub seconds: f64,
}

pub(super) enum Kind {
    /// Growth of the backlog where it was lowest, in messages: as a share of what was due; its end in
    /// seconds of traffic; and median latency first and last where that rose too.
    Backlog {
        share: f64,
        in_seconds: f64,
        latency: Option<(f64, f64)>,
    },
    /// Growth of the backlog, in messages, under a load that changes: how much was due at first and at last, per second; the
    /// growth of how late deliveries were as a share of the time; and how late they were at its end, s.
    Changing {
        rates: [f64; 2],
        share: f64,
        late: f64,
    },
    /// Growth of the backlog, in messages, that is small but in a straight line.
    Slow,
    /// Growth of median latency, in nanoseconds, in a straight line.
    Latency,
}

/// The finding from a delay that grew in a straight line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum DelayGrowth {
    /// A queue: it grows as time passes, from next to nothing when the load began.
    Queue,
    /// A queue, or a path that became slower: so many more seconds would tell.
    Unclear { needs_s: f64 },
    /// Neither: it grew by less than any load is exact.
    Nothing,
}

impl DelayGrowth {
    /// Of a delay that grew from one value to another, s, within `seconds`, after the load had lasted for `before`
    /// seconds. A queue grew meanwhile too: what remains of the delay without that is what the path takes.
    pub fn classify((from, to): (f64, f64), seconds: f64, before: f64) -> DelayGrowth {
        let share = (to - from) / seconds;
        let path = (from - share * before).max(0.0);
        // Whether it grew before it was measured is not known: a good part of the growth has to be seen.
        let doubled = (thresholds::QUEUE_FACTOR * path).max(thresholds::QUEUE_SEEN * from);
        if to >= doubled || share >= thresholds::QUEUE_SHARE {
            DelayGrowth::Queue
        } else if share < thresholds::DRIFT_SHARE {
            DelayGrowth::Nothing
        } else {
            // A quarter more than it takes to double.
            DelayGrowth::Unclear {
                needs_s: 1.25 * (doubled - to) / share,
            }
        }
    }
}

impl Growth {
    /// Why it is a growing queue.
    pub(super) fn reason(&self) -> Reason {
        let reason =
            Reason::new(Rule::QueueGrew, self.to_string()).figure(Evidence::GrownFor, self.seconds);
        match self.kind {
            Kind::Latency => reason
                .figure(Evidence::FirstLatency, self.from)
                .figure(Evidence::LastLatency, self.to),
            Kind::Backlog { .. } | Kind::Changing { .. } | Kind::Slow => reason
                .figure(Evidence::FirstBacklog, self.from)
                .figure(Evidence::LastBacklog, self.to),
        }
    }
}

impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to, seconds) = (self.from, self.to, self.seconds);
        // Time until it doubles, after the end, at the rate at which it grew.
        let twice = to * seconds / (to - from);
        if let Some(flow) = &self.flow {
            write!(f, "flow `{flow}`: ")?;
        }
        match self.kind {
            Kind::Backlog {
                share,
                in_seconds,
                latency,
            } => {
                write!(
                    f,
                    "the backlog grew from {from:.0} to {to:.0} messages in {seconds:.2} s: {:.1} % \
                     of what was due then, {in_seconds:.2} s of traffic at its end",
                    share * 100.0,
                )?;
                if let Some((first, last)) = latency {
                    write!(
                        f,
                        "; median latency rose from {:.3} to {:.3} ms",
                        first / 1e6,
                        last / 1e6
                    )?;
                }
                Ok(())
            }
            Kind::Changing {
                rates: [first, last],
                share,
                late,
            } => write!(
                f,
                "the backlog grew from {from:.0} to {to:.0} messages in {seconds:.2} s, in which {first:.0} deliveries a \
                 second were due at first and {last:.0} at last: {:.1} % of what was due then, which came {late:.2} s late \
                 at its end",
                share * 100.0
            ),
            Kind::Slow => write!(
                f,
                "the backlog grew in a straight line from {from:.0} to {to:.0} messages in \
                 {seconds:.2} s: it would be twice as long in {twice:.0} s"
            ),
            Kind::Latency => write!(
                f,
                "median latency rose in a straight line from {:.3} to {:.3} ms in {seconds:.2} s: it \
                 would be twice as long in {twice:.0} s",
                from / 1e6,
                to / 1e6
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_grows_from_nothing() {
        // 0.7 % too much for 10 s before and 10 s within; the same over a path of 20 ms.
        assert_eq!(
            DelayGrowth::classify((0.070, 0.140), 10.0, 10.0),
            DelayGrowth::Queue
        );
        assert_eq!(
            DelayGrowth::classify((0.034, 0.104), 10.0, 2.0),
            DelayGrowth::Queue
        );
        // A path that becomes slower by half, from 200 and from 5 ms.
        let slower = DelayGrowth::classify((0.200, 0.300), 10.0, 2.0);
        assert!(
            matches!(slower, DelayGrowth::Unclear { needs_s } if (5.0..20.0).contains(&needs_s)),
            "{slower:?}"
        );
        assert_eq!(
            DelayGrowth::classify((0.005, 0.0075), 10.0, 2.0),
            DelayGrowth::Nothing
        );
        // A third too much behind a queue of minutes.
        assert_eq!(
            DelayGrowth::classify((60.0, 62.5), 10.0, 0.0),
            DelayGrowth::Queue
        );
    }
}
