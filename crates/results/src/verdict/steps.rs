//! Rates that are not one: a capacity that falls or rises within a measurement flat out.

use pubgauge_quantities::stats::{LinearFit, autocorrelation_factor, chance_beyond};

use super::thresholds;

/// A change of a rate within a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Change {
    /// Seconds from the start of the measurement at which the rate changed; absent: it did so all the time.
    pub at: Option<f64>,
    /// The rates before and after, or at first and at last, per second.
    pub from: f64,
    pub to: f64,
}

impl Change {
    /// The change as a share of the larger rate.
    pub fn share(&self) -> f64 {
        (self.from - self.to).abs() / self.from.max(self.to).max(f64::MIN_POSITIVE)
    }
}

/// The change of a rate that is material and beyond what its variation from record to record explains: a single step,
/// or a straight line. `rates` are (end of the record, s; rate per second), in ascending order.
pub(super) fn change(rates: &[(f64, f64)]) -> Option<Change> {
    if rates.len() < thresholds::RECORDS_ALONE {
        return None;
    }
    step(rates)
        .or_else(|| trend(rates))
        .filter(|change| change.share() >= thresholds::RATE_CHANGE)
}

/// The clearest step: two parts of two records each at least, and between them the record in which it happened. Of so
/// many places the chance is that of one, divided.
fn step(rates: &[(f64, f64)]) -> Option<Change> {
    let n = rates.len();
    let places = n - 4;
    let mut clearest: Option<(f64, Change)> = None;
    for k in 2..n - 2 {
        let (left, right) = (&rates[..k], &rates[k + 1..]);
        let (from, to) = (mean(left), mean(right));
        let residuals: Vec<f64> = (left.iter().map(|rate| rate.1 - from))
            .chain(right.iter().map(|rate| rate.1 - to))
            .collect();
        let square: f64 = residuals.iter().map(|r| r * r).sum();
        let freedom = (n - 3) as f64;
        let halves = 1.0 / left.len() as f64 + 1.0 / right.len() as f64;
        let error = (square / freedom * halves).sqrt() * autocorrelation_factor(&residuals);
        let errors = (from - to).abs() / error;
        let change = Change {
            at: Some(rates[k].0),
            from,
            to,
        };
        if clearest.is_none_or(|(most, _)| errors > most) {
            clearest = Some((errors, change));
        }
    }
    let (errors, change) = clearest?;
    let chance = 2.0 * chance_beyond(errors, (n - 3) as f64) * places as f64;
    (chance < thresholds::RATE_CHANGE_CHANCE).then_some(change)
}

/// A straight line.
fn trend(rates: &[(f64, f64)]) -> Option<Change> {
    let line = LinearFit::through(rates)?;
    let error = line.error * line.autocorrelation_factor(rates);
    let chance = 2.0 * chance_beyond(line.slope.abs() / error, (rates.len() - 2) as f64);
    let (first, last) = (rates[0].0, rates[rates.len() - 1].0);
    (chance < thresholds::RATE_CHANGE_CHANCE).then(|| Change {
        at: None,
        from: line.at(first),
        to: line.at(last),
    })
}

fn mean(rates: &[(f64, f64)]) -> f64 {
    rates.iter().map(|rate| rate.1).sum::<f64>() / rates.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(values: &[f64]) -> Vec<(f64, f64)> {
        (1..).map(f64::from).zip(values.iter().copied()).collect()
    }

    #[test]
    fn a_step_is_told_with_both_rates() {
        let found = change(&rates(&[
            100., 101., 99., 100., 95., 89., 90., 91., 90., 90.,
        ]));
        let found = found.expect("a step");
        assert_eq!(found.at, Some(5.0));
        assert!(
            (found.from - 100.0).abs() < 0.5 && (found.to - 90.0).abs() < 0.5,
            "{found:?}"
        );
    }

    #[test]
    fn what_varies_is_no_step() {
        assert_eq!(
            change(&rates(&[
                100., 110., 92., 105., 88., 99., 112., 95., 90., 104.
            ])),
            None
        );
        // A change that is clear, and small.
        assert_eq!(
            change(&rates(&[
                100., 100., 100., 100., 100., 96., 96., 96., 96., 96.
            ])),
            None
        );
    }

    #[test]
    fn a_line_is_a_change() {
        let falling: Vec<f64> = (0..10).map(|n| 100.0 - 2.0 * f64::from(n)).collect();
        assert!(change(&rates(&falling)).is_some());
    }
}
