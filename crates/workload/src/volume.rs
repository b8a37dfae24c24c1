//! How much goes into a system and out of it each second, and whether anything falls due at all.

use crate::audience::Audience;
use crate::model::{Arrivals, Exchange, Flow, Sizes, Workload};
use crate::popularity::shares;
use crate::schedule::Schedule;
use crate::units::{Nanos, SECOND};

/// The load offered to a system each second, on average, by the flows with a schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Volume {
    /// Messages a second into the system.
    pub messages_in: f64,
    /// Bytes of payload a second into the system.
    pub bytes_in: f64,
    /// Deliveries a second out of it.
    pub messages_out: f64,
    /// Bytes of payload a second out of it.
    pub bytes_out: f64,
}

/// How much goes into a system and out of it, on average over the time for which the flows send, and where that is most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Volumes {
    pub mean: Volume,
    /// The largest volumes of the flows together: the mean, unless a rate changes over time. Flows need not have theirs at one
    /// time, so that it is no less than the most at any moment.
    pub peak: Volume,
}

impl Volumes {
    /// Those of a workload; `None` if a flow is flat out, replays a trace, or waits for the burst before: no rate is known
    /// before it runs.
    pub fn estimate(workload: &Workload, audience: &Audience) -> Option<Volumes> {
        let mut all = Volumes::default();
        let measure = workload.phases.measure.latest();
        for (f, flow) in (0..).zip(&workload.flows) {
            if flow.publishers.is_empty() {
                continue;
            }
            let (mean, size) = (mean_rate(flow, measure)?, mean_size(&flow.size)?);
            let peak = match &flow.arrivals {
                Arrivals::Varying { curve, .. } => curve.peak_per_s(flow.sends_for(measure)),
                _ => mean,
            };
            let fan_out = mean_fan_out(flow, f, audience);
            for (volume, per_s) in [(&mut all.mean, mean), (&mut all.peak, peak)] {
                // A question comes back as an answer of its size.
                let ways = match flow.exchange {
                    Exchange::OneWay => 0.0,
                    Exchange::PingPong => per_s,
                };
                let deliveries = per_s * fan_out + ways;
                volume.messages_in += per_s + ways;
                volume.bytes_in += (per_s + ways) * size;
                volume.messages_out += deliveries;
                volume.bytes_out += deliveries * size;
            }
        }
        Some(all)
    }
}

/// Messages a second of a flow while it is active, mean over its bursts and their pauses, and over the `measure` of a rate
/// that changes.
fn mean_rate(flow: &Flow, measure: Nanos) -> Option<f64> {
    match flow.arrivals {
        Arrivals::Periodic { per_s } | Arrivals::Poisson { per_s } => Some(per_s),
        Arrivals::Varying { ref curve, .. } => Some(curve.mean_per_s(flow.sends_for(measure))),
        Arrivals::OnOff { per_s, on, off } => Some(per_s? * on as f64 / (on + off) as f64),
        Arrivals::Bursts { messages, every } => {
            let each = f64::from(messages) * flow.publishers.len() as f64;
            Some(each * SECOND as f64 / every? as f64)
        }
        Arrivals::FlatOut | Arrivals::Replay(_) => None,
    }
}

/// Bytes of a message, on average, without the ends that are cut off.
fn mean_size(sizes: &Sizes) -> Option<f64> {
    Some(match sizes {
        Sizes::Fixed { bytes } => f64::from(*bytes),
        Sizes::List { bytes } => {
            bytes.iter().map(|b| f64::from(*b)).sum::<f64>() / bytes.len() as f64
        }
        Sizes::Uniform { min, max } => (f64::from(*min) + f64::from(*max)) / 2.0,
        Sizes::Normal { mean, .. } => *mean,
        Sizes::LogNormal {
            median, sigma, max, ..
        } => (median * (sigma * sigma / 2.0).exp()).min(f64::from(*max)),
        Sizes::Recorded => return None,
    })
}

/// Deliveries of a message, mean over the topics of each publisher, as often as it uses them, and over publishers, which take
/// turns.
fn mean_fan_out(flow: &Flow, number: u32, audience: &Audience) -> f64 {
    let each = (0..).zip(&flow.publishers).map(|(p, publisher)| {
        let first = audience.first_stream(number, p);
        let topics = publisher.topics.len() as u32;
        let shares = shares(flow.topic_zipf, topics);
        let all = (first..).zip(shares);
        all.map(|(stream, share)| f64::from(audience.listeners(stream)) * share)
            .sum::<f64>()
    });
    each.sum::<f64>() / flow.publishers.len() as f64
}

/// Expected messages of a flow below which its schedule is asked whether one of them is due in the measurement.
const FEW: f64 = 10.0;

impl Workload {
    /// Whether no message falls due within the measurement, by the schedules of all flows: the warm-up has what is due,
    /// or it is due later. False where that is not known before it runs.
    pub fn is_silent(&self) -> bool {
        let publishing = || self.flows.iter().filter(|flow| !flow.publishers.is_empty());
        publishing().next().is_some() && publishing().all(|flow| self.is_silent_in(flow))
    }

    fn is_silent_in(&self, flow: &Flow) -> bool {
        if let Arrivals::Varying { curve, random } = &flow.arrivals {
            let span = flow.sends_for(self.phases.measure.latest());
            return !random && curve.messages_within(span) == 0;
        }
        // Draws differ from worker to worker, so that only even spacing is known.
        if !matches!(flow.arrivals, Arrivals::Periodic { .. }) {
            return false;
        }
        let (warm_up, measure) = (self.phases.warm_up.latest(), self.phases.measure.latest());
        let (from, to) = match flow.start_offset.or(flow.active_for.map(|_| 0)) {
            Some(offset) => (0, measure.saturating_sub(offset)),
            None => (warm_up, warm_up + measure),
        };
        let seconds = to.saturating_sub(from) as f64 / SECOND as f64;
        if mean_rate(flow, measure).is_some_and(|per_s| per_s * seconds > FEW) {
            return false;
        }
        let everybody: Vec<u32> = (0..flow.publishers.len() as u32).collect();
        let Ok(mut schedule) = Schedule::try_new(flow, everybody, 0) else {
            return false;
        };
        let next = schedule.find(|due| due.at >= from);
        next.is_none_or(|due| due.at >= to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::RateCurve;
    use crate::model::Until;

    fn volume(workload: &Workload) -> Option<Volume> {
        volumes(workload).map(|volumes| volumes.mean)
    }

    fn volumes(workload: &Workload) -> Option<Volumes> {
        Volumes::estimate(workload, &Audience::new(workload).unwrap())
    }

    #[test]
    fn a_rate_that_changes_has_a_mean_and_a_peak() {
        let curve = RateCurve::ramp(0.0, 200.0, 10 * SECOND);
        let random = false;
        let curve = Box::new(curve);
        let mut workload = Workload::fan(1, 3, Arrivals::Varying { curve, random });
        workload.phases.measure = Until::Time(10 * SECOND);
        let told = volumes(&workload).unwrap();
        assert_eq!(
            (told.mean.messages_in, told.mean.messages_out),
            (100.0, 300.0)
        );
        assert_eq!(
            (told.peak.messages_in, told.peak.messages_out),
            (200.0, 600.0)
        );
        workload.flows[0].active_for = Some(5 * SECOND);
        assert_eq!(volumes(&workload).unwrap().peak.messages_in, 100.0);
        assert!(!workload.is_silent());
    }

    /// 100 publishers to 100 subscribers, 100/s in all, 200 MB each.
    #[test]
    fn messages_and_bytes_are_counted_both_ways() {
        let mut workload = Workload::fan(100, 100, Arrivals::Periodic { per_s: 100.0 });
        workload.flows[0].size = Sizes::Fixed { bytes: 200_000_000 };
        let told = volume(&workload).unwrap();
        assert_eq!((told.messages_in, told.messages_out), (100.0, 10_000.0));
        assert_eq!((told.bytes_in, told.bytes_out), (20e9, 2e12));
        workload.flows[0].arrivals = Arrivals::OnOff {
            per_s: Some(100.0),
            on: SECOND,
            off: 3 * SECOND,
        };
        assert_eq!(volume(&workload).unwrap().messages_in, 25.0);
        workload.flows[0].arrivals = Arrivals::FlatOut;
        assert_eq!(volume(&workload), None);
    }

    /// One message every 14.4 minutes over all; the first falls due as the flow begins.
    #[test]
    fn a_measurement_without_a_message_is_known() {
        let rate = |per_s| {
            let mut workload = Workload::fan(100, 1, Arrivals::Periodic { per_s });
            workload.phases.warm_up = Until::Time(SECOND);
            workload.phases.measure = Until::Time(3 * SECOND);
            workload
        };
        let seldom = 100.0 / 86_400.0;
        assert!(rate(seldom).is_silent());
        assert!(!rate(1.0).is_silent());
        assert!(!rate(0.5).is_silent());
        let mut at_once = rate(seldom);
        at_once.flows[0].start_offset = Some(0);
        assert!(!at_once.is_silent());
        let mut one_of_two = rate(seldom);
        let quick = rate(10.0).flows[0].clone();
        one_of_two.flows.push(quick);
        assert!(!one_of_two.is_silent());
        let mut listening = rate(seldom);
        listening.flows[0].publishers.clear();
        assert!(!listening.is_silent());
    }
}
