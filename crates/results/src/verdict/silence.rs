//! How long a system stood still within the measurement.

use pubgauge_figures::model::{SeriesRecord, Trial};

use super::thresholds;

/// The longest time for which nothing was delivered although several messages were under way, s. What the drain
/// waited for counts where a queue stood at the end of the measurement, until that came; single stragglers are none.
pub(super) fn silence(trial: &Trial) -> f64 {
    let longest = trial.longest_silence_ns as f64 / 1e9;
    // Beside them as many are under way as are delivered in the time that each usually takes.
    let usual = trial.messages.latency_ns.p50.unwrap_or(0) as f64 / 1e9;
    let few = thresholds::stragglers_at_most(trial.messages.expected)
        + usual * trial.messages.delivered_msgs_per_s;
    let known = trial.course.len() > 2 && trial.course_due.len() == trial.course.len();
    // A message that falls due to a publisher without a connection is in no backlog.
    if !known || trial.messages.not_connected > 0 {
        return longest;
    }
    // Less than two steps does not show.
    let steps = trial.course[2].0 - trial.course[0].0;
    let measured = longest.min(within_course(&trial.course, &trial.course_due).max(steps));
    if queue_at_end(trial) as f64 <= few {
        return measured;
    }
    let several = trial.silence_before_several_ns;
    several.map_or(longest, |ns| measured.max(ns as f64 / 1e9))
}

/// The longest time in a course for which nothing came while several messages waited, s, rounded up to its steps.
fn within_course(course: &[(f64, u64)], due: &[u64]) -> f64 {
    let come = |n: usize| due[n].saturating_sub(course[n].1);
    let last = course.len() - 1;
    let (mut longest, mut from) = (0.0_f64, 0);
    for n in 1..course.len() {
        if come(n) != come(from) {
            from = n;
        } else if course[n].1 > 1 {
            let (begins, ends) = (from.saturating_sub(1), (n + 1).min(last));
            longest = longest.max(course[ends].0 - course[begins].0);
        }
    }
    longest
}

/// Deliveries that were due when the measurement ended, and had not come.
pub(super) fn queue_at_end(trial: &Trial) -> u64 {
    let measured = |record: &&SeriesRecord| record.traffic.t_s <= trial.duration_s + 1e-9;
    let last = trial.series.iter().rfind(measured);
    last.map_or(0, |last| last.traffic.backlog + last.traffic.waiting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_counts_where_several_wait() {
        // One message a second; nothing comes from 3 s to 6 s.
        let due: Vec<u64> = (0..10).collect();
        let course = |backlog: [u64; 10]| -> Vec<(f64, u64)> {
            (0..10).map(|n| (n as f64, backlog[n])).collect()
        };
        assert_eq!(within_course(&course([0; 10]), &due), 0.0);
        let stood = within_course(&course([0, 0, 0, 0, 1, 2, 3, 0, 0, 0]), &due);
        assert!((3.0..=5.0).contains(&stood), "{stood}");
        // One of them comes late, the others in time.
        assert_eq!(
            within_course(&course([0, 0, 0, 1, 1, 1, 1, 1, 1, 1]), &due),
            0.0
        );
    }
}
