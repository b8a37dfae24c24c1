//! Rates that are not one: a capacity that falls or rises within a measurement flat out.

use std::fmt;

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

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (self.from, self.to);
        match self.at {
            Some(at) => write!(
                f,
                "{from:.0} msgs/s were delivered until about {at:.1} s, and {to:.0} msgs/s from then on"
            ),
            None => write!(
                f,
                "the delivery rate went from {from:.0} to {to:.0} msgs/s in a straight line"
            ),
        }
    }
}

/// Whether a rate changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Changed {
    /// It did, by more than its variation from record to record explains.
    Yes(Change),
    /// So few records do not tell a change from chance.
    Unclear(Change),
    /// No change that is material, or none that is not well explained by chance.
    No,
}

/// Whether a rate changed by enough to matter: in a single step, or in a straight line. `rates` are (end of the record,
/// s; rate per second), in ascending order.
pub(super) fn changed(rates: &[(f64, f64)]) -> Changed {
    if rates.len() < thresholds::RECORDS_ALONE {
        return Changed::No;
    }
    let clearest = [step(rates), trend(rates)].into_iter().flatten();
    let material = clearest.filter(|(_, change)| change.share() >= thresholds::RATE_CHANGE);
    let Some((chance, change)) = material.min_by(|a, b| a.0.total_cmp(&b.0)) else {
        return Changed::No;
    };
    let few = rates.len() < thresholds::RATE_CHANGE_RECORDS;
    let told = if few {
        thresholds::RATE_CHANGE_CHANCE_OF_FEW
    } else {
        thresholds::RATE_CHANGE_CHANCE
    };
    if chance < told {
        Changed::Yes(change)
    } else if few && chance < thresholds::RATE_CHANGE_DOUBT {
        Changed::Unclear(change)
    } else {
        Changed::No
    }
}

/// The clearest step, and its chance: two parts of two records each at least, and between them the record in which it
/// happened. Of so many places the chance is that of one, multiplied.
fn step(rates: &[(f64, f64)]) -> Option<(f64, Change)> {
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
    Some((chance, change))
}

/// A straight line, and its chance.
fn trend(rates: &[(f64, f64)]) -> Option<(f64, Change)> {
    let line = LinearFit::through(rates)?;
    let error = line.error * line.autocorrelation_factor(rates);
    let chance = 2.0 * chance_beyond(line.slope.abs() / error, (rates.len() - 2) as f64);
    let (first, last) = (rates[0].0, rates[rates.len() - 1].0);
    let change = Change {
        at: None,
        from: line.value_at(first),
        to: line.value_at(last),
    };
    Some((chance, change))
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
        let found = changed(&rates(&[
            100., 101., 99., 100., 95., 89., 90., 91., 90., 90.,
        ]));
        let Changed::Yes(found) = found else {
            panic!("{found:?}");
        };
        assert_eq!(found.at, Some(5.0));
        assert!(
            (found.from - 100.0).abs() < 0.5 && (found.to - 90.0).abs() < 0.5,
            "{found:?}"
        );
    }

    #[test]
    fn what_varies_is_no_step() {
        assert_eq!(
            changed(&rates(&[
                100., 110., 92., 105., 88., 99., 112., 95., 90., 104.
            ])),
            Changed::No
        );
        // A change that is clear, and small.
        assert_eq!(
            changed(&rates(&[
                100., 100., 100., 100., 100., 96., 96., 96., 96., 96.
            ])),
            Changed::No
        );
    }

    #[test]
    fn a_few_records_do_not_tell_a_step_from_chance() {
        let found = changed(&rates(&[
            100., 107., 95., 101., 100., 88., 91., 84., 93., 86.,
        ]));
        assert!(matches!(found, Changed::Unclear(_)), "{found:?}");
    }

    #[test]
    fn a_line_is_a_change() {
        let falling: Vec<f64> = (0..10).map(|n| 100.0 - 2.0 * f64::from(n)).collect();
        let found = changed(&rates(&falling));
        assert!(matches!(found, Changed::Yes(_)), "{found:?}");
    }
}
