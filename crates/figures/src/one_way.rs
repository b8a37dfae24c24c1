//! Which one-way times between hosts with different clocks can be quoted.

use crate::distribution::Distribution;
use crate::host::OneWay;
use crate::model::Trial;

/// The largest share of a one-way time that its error bound may be for the time to be quoted.
pub const QUOTABLE_SHARE: f64 = 0.1;

fn is_quotable(value: f64, bound_ns: Option<u64>) -> bool {
    bound_ns.is_some_and(|bound| value > 0.0 && bound as f64 <= value * QUOTABLE_SHARE)
}

impl OneWay {
    /// Whether a one-way time, ns, can be quoted between these clocks.
    pub fn quotes(&self, ns: f64) -> bool {
        is_quotable(ns, self.bound_ns)
    }

    /// The upper bound of a one-way time that is not quoted, the error of the clocks included, ns: less than ten times their
    /// bound was measured. `None`: the bound is not known.
    pub fn unquoted_at_most(&self) -> Option<f64> {
        self.bound_ns
            .map(|bound| bound as f64 * (1.0 / QUOTABLE_SHARE + 1.0))
    }
}

impl Distribution {
    /// The one-way times that can be quoted between clocks that agree to within `bound_ns`: values of which that
    /// is at most [`QUOTABLE_SHARE`]. Others are absent; all are where the bound is not known.
    pub fn quotable_within(&self, bound_ns: Option<u64>) -> Distribution {
        let is_known = |value: f64| is_quotable(value, bound_ns);
        self.map(
            |time| Some(time).filter(|time| is_known(*time as f64)),
            |mean| Some(mean).filter(|mean| is_known(*mean)),
        )
    }
}

impl Trial {
    /// Removes one-way times that cannot be quoted between clocks that agree to within `bound_ns`; `None`: the
    /// bound is not known.
    pub fn one_way_within(&mut self, bound_ns: Option<u64>) {
        self.one_way = Some(OneWay { bound_ns });
        let quoted = |of: &mut Distribution| *of = of.quotable_within(bound_ns);
        quoted(&mut self.messages.latency_ns);
        quoted(&mut self.messages.latency_from_send_ns);
        for flow in &mut self.flows {
            quoted(&mut flow.messages.latency_ns);
            quoted(&mut flow.messages.latency_from_send_ns);
            if let Some(bursts) = &mut flow.bursts {
                for time in [&mut bursts.arrival_ns, &mut bursts.longest_arrival_ns] {
                    *time = time.filter(|time| is_quotable(*time as f64, bound_ns));
                }
            }
        }
        let flows = self.flows.iter_mut().flat_map(|flow| &mut flow.windows);
        for window in self.windows.iter_mut().chain(flows) {
            quoted(&mut window.messages.latency_ns);
            quoted(&mut window.messages.latency_from_send_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Messages;

    #[test]
    fn a_percentile_is_quoted_if_its_bound_is_a_tenth_at_most() {
        let times = Distribution {
            count: 1_000,
            min: Some(90),
            mean: Some(1_000.0),
            p50: Some(999),
            p90: Some(1_000),
            p99: Some(5_000),
            max: Some(9_000),
            ..Distribution::default()
        };
        let told = times.quotable_within(Some(100));
        assert_eq!(
            (told.count, told.min, told.mean),
            (1_000, None, Some(1_000.0))
        );
        assert_eq!((told.p50, told.p90), (None, Some(1_000)));
        assert_eq!((told.p99, told.max), (Some(5_000), Some(9_000)));
        assert_eq!(times.quotable_within(Some(0)), times);
        let nothing = times.quotable_within(None);
        assert_eq!(
            (nothing.count, nothing.mean, nothing.max),
            (1_000, None, None)
        );
    }

    #[test]
    fn the_round_trip_is_quoted_where_one_way_times_are_not() {
        let times = Distribution {
            count: 10,
            p50: Some(200_000),
            ..Distribution::default()
        };
        let mut trial = Trial {
            messages: Messages {
                latency_ns: times,
                round_trip_ns: Some(times),
                ..Messages::default()
            },
            ..Trial::default()
        };
        trial.one_way_within(Some(50_000));
        assert_eq!(trial.messages.latency_ns.p50, None);
        assert_eq!(trial.messages.round_trip_ns, Some(times));
        assert_eq!(
            trial.one_way,
            Some(OneWay {
                bound_ns: Some(50_000)
            })
        );
    }
}
