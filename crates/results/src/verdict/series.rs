//! What the second-by-second records say: a growing backlog, a wandering rate or latency.
//!
//! Records may be shorter than a second and few; each rule says what it needs.

use std::fmt;

use super::{measured, thresholds};
use crate::model::{Second, Trial};

/// Records from which the slope of a line through them has a meaningful error.
const FEW: usize = 4;

/// A backlog that grew by more than chance and by enough to matter.
pub(super) struct Growth {
    from: f64,
    to: f64,
    seconds: f64,
    share: f64,
    in_seconds: f64,
    latency: Option<(f64, f64)>,
}

impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the backlog grew from {:.0} to {:.0} messages in {:.2} s: {:.1} % of what was due \
             then, {:.2} s of traffic at its end",
            self.from,
            self.to,
            self.seconds,
            self.share * 100.0,
            self.in_seconds
        )?;
        if let Some((first, last)) = self.latency {
            write!(
                f,
                "; median latency rose from {:.3} to {:.3} ms",
                first / 1e6,
                last / 1e6
            )?;
        }
        Ok(())
    }
}

/// Whether the backlog grew over the measurement. What stands in buffers from the first record
/// on (a full socket buffer flat out) is no growth. Needs two records.
pub(super) fn backlog_growth(trial: &Trial) -> Option<Growth> {
    let records = measured(trial);
    let (first, last) = (records.first()?, records.last()?);
    if records.len() < 2 {
        return None;
    }
    let points: Vec<(f64, f64)> = records
        .iter()
        .map(|(_, second)| (second.t_s, second.backlog as f64))
        .collect();
    let growth = last.1.backlog as f64 - first.1.backlog as f64;
    let seconds = last.1.t_s - first.1.t_s;
    if growth < thresholds::BACKLOG_FLOOR || !rises(&points) {
        return None;
    }
    let delivered: u64 = records[1..]
        .iter()
        .map(|(_, second)| second.delivered)
        .sum();
    let due = delivered as f64 + growth;
    let share = growth / due.max(1.0);
    let rate = delivered as f64 / seconds.max(f64::MIN_POSITIVE);
    let in_seconds = last.1.backlog as f64 / rate.max(1.0);
    // Few records cannot tell a queue from messages that were just under way when the last one
    // was closed (a fleet that reports on the full second). A queue delays what passes through
    // it: by Little's law about as long as it takes to empty.
    let longest_ns = last.1.latency_max_ns as f64;
    if records.len() < FEW
        && longest_ns > 0.0
        && longest_ns < thresholds::QUEUE_DELAY_SHARE * in_seconds * 1e9
    {
        return None;
    }
    let latency = quarters(&records).filter(|(first, last)| {
        *last > thresholds::LATENCY_FACTOR * first && last - first > thresholds::LATENCY_FLOOR_NS
    });
    let material = share > thresholds::BACKLOG_SHARE
        || share > thresholds::BACKLOG_SHARE_MINOR
            && (latency.is_some() || in_seconds > thresholds::BACKLOG_SECONDS);
    material.then_some(Growth {
        from: first.1.backlog as f64,
        to: last.1.backlog as f64,
        seconds,
        share,
        in_seconds,
        latency,
    })
}

/// Whether points rise by more than chance: the least-squares slope against its standard error
/// from four points on, otherwise every step upwards.
fn rises(points: &[(f64, f64)]) -> bool {
    if points.len() < FEW {
        return points.windows(2).all(|pair| pair[1].1 > pair[0].1);
    }
    let n = points.len() as f64;
    let mean_x = points.iter().map(|p| p.0).sum::<f64>() / n;
    let mean_y = points.iter().map(|p| p.1).sum::<f64>() / n;
    let sxx: f64 = points.iter().map(|p| (p.0 - mean_x).powi(2)).sum();
    let sxy: f64 = points.iter().map(|p| (p.0 - mean_x) * (p.1 - mean_y)).sum();
    if sxx <= 0.0 {
        return false;
    }
    let slope = sxy / sxx;
    let residual: f64 = points
        .iter()
        .map(|p| (p.1 - mean_y - slope * (p.0 - mean_x)).powi(2))
        .sum();
    let error = (residual / (n - 2.0) / sxx).sqrt();
    slope > thresholds::SLOPE_SIGNIFICANCE * error && slope > 0.0
}

/// Median latency of the first and of the last quarter of the records (at least one each), each
/// the mean of the records' medians weighted by deliveries. `None` without deliveries in both.
fn quarters(records: &[(f64, Second)]) -> Option<(f64, f64)> {
    if records.len() < 2 {
        return None;
    }
    let quarter = (records.len() / 4).max(1);
    let mean = |part: &[(f64, Second)]| {
        let count: u64 = part.iter().map(|(_, second)| second.delivered).sum();
        let sum: f64 = part
            .iter()
            .map(|(_, second)| second.latency_p50_ns as f64 * second.delivered as f64)
            .sum();
        (count > 0).then(|| sum / count as f64)
    };
    Some((
        mean(&records[..quarter])?,
        mean(&records[records.len() - quarter..])?,
    ))
}

/// Why the delivery rate is not steady, if it is not.
///
/// Flat out the deliveries themselves are looked at; paced, what is delivered against what was
/// published in the same record, since a schedule of a few devices is lumpy by itself.
pub(super) fn rate_unsteady(trial: &Trial) -> Option<String> {
    let records = measured(trial);
    let delivered: u64 = records.iter().map(|(_, second)| second.delivered).sum();
    let published: u64 = records.iter().map(|(_, second)| second.published).sum();
    let seconds: f64 = records.iter().map(|(length, _)| length).sum();
    if records.len() < 4 || delivered == 0 || seconds <= 0.0 {
        return None;
    }
    let mean = delivered as f64 / seconds;
    let fan_out = delivered as f64 / published.max(1) as f64;
    // The rate of each record as a share of the mean rate.
    let shares: Vec<f64> = records
        .iter()
        .map(|(length, second)| {
            let surplus = if trial.workload.flat_out || published == 0 {
                0.0
            } else {
                second.published as f64 * fan_out - mean * length
            };
            (second.delivered as f64 - surplus) / length / mean
        })
        .collect();
    let half = shares.len() / 2;
    let average = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let (first, second) = (
        average(&shares[..half]),
        average(&shares[shares.len() - half..]),
    );
    let differ = (first - second).abs() / first.max(second).max(f64::MIN_POSITIVE);
    // Two halves of `count` messages each differ by chance too: three standard deviations.
    let chance = 3.0 * (4.0 / delivered as f64).sqrt();
    let short = seconds < thresholds::SHORT_S;
    let limit = if short {
        thresholds::HALVES_DIFFER_SHORT
    } else {
        thresholds::HALVES_DIFFER
    };
    if differ > limit.max(chance) {
        return Some(format!(
            "the first half delivered {:.0} msgs/s and the second {:.0} msgs/s: {:.0} % apart \
             (limit {:.0} %)",
            first * mean,
            second * mean,
            differ * 100.0,
            limit * 100.0
        ));
    }
    if short {
        return None;
    }
    let n = shares.len() as f64;
    let centre = average(&shares);
    let variance = shares
        .iter()
        .map(|share| (share - centre).powi(2))
        .sum::<f64>()
        / (n - 1.0);
    let by_chance = n / delivered as f64;
    let variation = (variance - by_chance).max(0.0).sqrt() / centre.max(f64::MIN_POSITIVE);
    (variation > thresholds::RATE_VARIATION).then(|| {
        format!(
            "the delivery rate varied by {:.0} % around {:.0} msgs/s over {} records (limit {:.0} %)",
            variation * 100.0,
            mean,
            shares.len(),
            thresholds::RATE_VARIATION * 100.0
        )
    })
}

/// Why latency is not steady, if it is not. Needs [`thresholds::SHORT_S`] seconds.
pub(super) fn latency_unsteady(trial: &Trial) -> Option<String> {
    let records = measured(trial);
    let seconds: f64 = records.iter().map(|(length, _)| length).sum();
    if records.len() < 4 || seconds < thresholds::SHORT_S {
        return None;
    }
    let (first, last) = quarters(&records)?;
    let (low, high) = if first < last {
        (first, last)
    } else {
        (last, first)
    };
    (high > thresholds::LATENCY_FACTOR * low && high - low > thresholds::LATENCY_FLOOR_NS).then(
        || {
            format!(
                "median latency went from {:.3} ms in the first quarter to {:.3} ms in the last \
             (limit: a factor of {})",
                first / 1e6,
                last / 1e6,
                thresholds::LATENCY_FACTOR
            )
        },
    )
}
