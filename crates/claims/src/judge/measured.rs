//! The values of a point of one side, and what is judged of them by themselves: estimates and counts.

use pubgauge_figures::rule::Count;
use pubgauge_quantities::shown;
use pubgauge_quantities::stats::{Estimate, Lacks};

use crate::curve::{FEWEST, too_few};
use crate::finding::{Finding, Lack, Outcome};

/// The values of one point of one side.
#[derive(Clone, Debug)]
pub(super) enum Measured {
    /// Repeats with their numbers; the deliveries that were expected in each, where known; and the seconds
    /// of each.
    Repeats {
        values: Vec<(u32, f64)>,
        expected: f64,
        windows: Vec<(u32, Vec<f64>)>,
    },
    /// Repeats of which some, or all, are lower bounds only: the client was their limit.
    AtLeast(Vec<(u32, f64)>),
    /// Repeats of which some, or all, are upper bounds only: a quota stopped a host, which lengthened them.
    AtMost(Vec<(u32, f64)>),
    /// A limit's interval.
    Between(f64, f64),
}

/// Why lower bounds do not suffice.
pub(super) fn at_least(repeats: usize) -> Lack {
    format!("the client was the limit: {repeats} repeats say *at least*, too few are valid").into()
}

/// Why upper bounds do not suffice.
pub(super) fn at_most() -> Lack {
    "a host's quota stopped it for up to a period at a time, and times below ten periods contain these stops: measure it \
     where no host is held"
        .into()
}

/// Why no ratio can be taken where the figure of some repeats is 0; `None` where none is.
pub(super) fn zeros(values: &[(u32, f64)]) -> Option<Lack> {
    let zeros = values.iter().filter(|(_, value)| *value <= 0.0).count();
    let why = || {
        let all = values.len();
        format!("one side is 0 in {zeros} of {all} repeats: no ratio can be taken").into()
    };
    (zeros > 0).then(why)
}

/// A sum of points, each times its factor: by repeats, or of intervals of limits.
pub(super) fn estimate(
    terms: &[(f64, &Result<Measured, Lack>)],
    logs: bool,
    paired: bool,
) -> Result<Estimate, Lack> {
    let scale = |value: f64| if logs { value.ln() } else { value };
    let mut repeats: Vec<(f64, Vec<(u32, f64)>)> = Vec::new();
    let (mut low, mut high, mut limits) = (0.0, 0.0, 0);
    let mut lacks = Lacks::default();
    for (factor, measured) in terms {
        let measured = measured.as_ref().map_err(Lack::clone)?;
        if let Measured::AtLeast(_) = measured {
            lacks.high |= *factor > 0.0;
            lacks.low |= *factor < 0.0;
        }
        if let Measured::AtMost(_) = measured {
            lacks.low |= *factor > 0.0;
            lacks.high |= *factor < 0.0;
        }
        match measured {
            Measured::Between(from, to) => {
                let (from, to) = (factor * scale(*from), factor * scale(*to));
                low += from.min(to);
                high += from.max(to);
                limits += 1;
            }
            Measured::Repeats { values, .. }
            | Measured::AtLeast(values)
            | Measured::AtMost(values) => {
                if values.len() < FEWEST {
                    return Err(too_few(values.len()));
                }
                if let Some(lack) = zeros(values).filter(|_| logs) {
                    return Err(lack);
                }
                let scaled = values
                    .iter()
                    .map(|(repeat, value)| (*repeat, scale(*value)));
                repeats.push((*factor, scaled.collect()));
            }
        }
    }
    if limits == terms.len() {
        return Ok(Estimate::Between { low, high });
    }
    if !paired {
        let plain: Vec<(f64, Vec<f64>)> = repeats
            .iter()
            .map(|(factor, values)| (*factor, values.iter().map(|(_, v)| *v).collect()))
            .collect();
        let terms: Vec<(f64, &[f64])> = plain.iter().map(|(f, v)| (*f, &v[..])).collect();
        return Ok(Estimate::contrast(&terms).without_ends(lacks));
    }
    let of = |repeat: u32| {
        repeats.iter().try_fold(0.0, |sum, (factor, values)| {
            let value = values.iter().find(|(r, _)| *r == repeat)?.1;
            Some(sum + factor * value)
        })
    };
    let first = repeats
        .first()
        .map(|(_, values)| &values[..])
        .unwrap_or_default();
    let sums: Vec<f64> = first.iter().filter_map(|(repeat, _)| of(*repeat)).collect();
    if sums.len() < FEWEST {
        Err(too_few(sums.len()))
    } else {
        Ok(Estimate::mean_of(&sums).without_ends(lacks))
    }
}

/// The judge of counts: exact, in every repeat. Where nothing was counted, the figures say how large the share
/// may still be (rule of three).
pub(super) fn count(measured: &Result<Measured, Lack>, wanted: Count) -> Finding {
    let (values, expected) = match measured {
        Err(lack) => return lack.clone().into(),
        Ok(Measured::Between(..)) => return Finding::cannot_tell("a limit is no count"),
        Ok(Measured::AtLeast(values)) => return at_least(values.len()).into(),
        Ok(Measured::AtMost(_)) => return at_most().into(),
        Ok(Measured::Repeats {
            values, expected, ..
        }) => (values, *expected),
    };
    let digits = shown::number;
    let total: f64 = values.iter().map(|(_, value)| value).sum();
    let ours = if total == 0.0 && expected > 0.0 {
        format!(
            "0 of {}: a share of at most {}",
            digits(expected),
            digits(3.0 / expected)
        )
    } else {
        let shown: Vec<String> = values.iter().map(|(_, v)| digits(*v)).collect();
        shown.join(", ")
    };
    let fits = |value: f64| match wanted {
        Count::Exactly(number) => value == number,
        Count::Above(number) => value > number,
    };
    if let Some((repeat, value)) = values.iter().find(|(_, value)| !fits(*value)) {
        let reason = format!("{} in repeat {repeat}", digits(*value));
        return Finding::new(Outcome::DoesNotHold, reason, ours);
    }
    if values.len() < FEWEST {
        Finding {
            ours,
            ..too_few(values.len()).into()
        }
    } else {
        Finding::new(Outcome::Holds, "", ours)
    }
}
