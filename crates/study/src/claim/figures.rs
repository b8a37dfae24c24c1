//! Figures of claims: their names, and their values with units.

use pubgauge_figures::figure::{Figure, Unit, capabilities};
use pubgauge_quantities::spelling::did_you_mean;
use pubgauge_quantities::{Rate, Size, Span};

use crate::window;

/// Figures that every trial has second by second (or, in a measurement below 10 s, tenth by tenth).
const SERIES: [&str; 7] = [
    "latency.p50",
    "latency.p90",
    "latency.p99",
    "latency-from-send.p90",
    "latency.max",
    "published-rate",
    "delivered-rate",
];

/// Statistics of a series, after a dot: the coefficient of variation; the last quarter over the
/// first.
const OF_SERIES: [&str; 2] = ["cv", "growth"];

/// The series that a figure is about, if it is one of [`OF_SERIES`].
fn series(name: &str) -> Option<&str> {
    let (series, of) = name.rsplit_once('.')?;
    OF_SERIES.contains(&of).then_some(series)
}

pub(super) fn check_figure(name: &str) -> Result<(), String> {
    if let Some(named) = capabilities(name) {
        return named.map(drop).map_err(|error| error.to_string());
    }
    for one in name.split('/').map(str::trim) {
        if one == "verdict" {
            return Err(
                "a verdict is no figure of claims; `verdicts` says which trials count".into(),
            );
        }
        if let Some(series) = series(one) {
            if SERIES.contains(&series) {
                continue;
            }
            let all = SERIES.join(", ");
            return Err(format!(
                "`{series}` has no series; `.cv` and `.growth` are figures of {all}"
            ));
        }
        let (name, _) = window::split(one);
        let names = || Figure::all().iter().map(|figure| &*figure.name);
        match Figure::all().iter().find(|figure| figure.name == name) {
            Some(figure) => window::check_figure(figure, one)?,
            None => {
                let near = did_you_mean(name, names());
                return Err(format!("`{name}` is not a figure{near}"));
            }
        }
    }
    Ok(())
}

pub(super) fn number(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|n| n.is_finite());
    number.ok_or_else(|| format!("`{text}` is not a number"))
}

/// A share: `5%`, 0 and more.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    let share = text
        .trim()
        .strip_suffix('%')
        .and_then(|p| p.trim().parse::<f64>().ok());
    let share = share
        .filter(|p| (0.0..1000.0).contains(p))
        .map(|p| p / 100.0);
    share.ok_or_else(|| format!("`{text}` is no percentage; expected one such as \"5%\""))
}

/// A value of a figure, with the figure's unit.
pub(super) fn quantity(figure: &str, text: &str) -> Result<f64, String> {
    let wrong = |e: pubgauge_quantities::UnitError| e.to_string();
    // A quotient, a statistic of a series and a number of capabilities are plain numbers.
    let Some((figure, _)) = Figure::in_window(figure) else {
        return number(text);
    };
    match figure.unit {
        Unit::Nanoseconds => {
            let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
            let span = text.trim_start_matches('-').parse::<Span>();
            Ok(sign * span.map_err(wrong)?.0 as f64)
        }
        Unit::PerSecond => match text.parse::<Rate>().map_err(wrong)? {
            Rate::All(per_s) => Ok(per_s),
            _ => Err("expected a rate over all, such as \"10k/s\"".into()),
        },
        Unit::Bytes => match text.parse::<Size>() {
            Ok(size) => Ok(size.0 as f64),
            Err(error) => number(text).map_err(|_| wrong(error)),
        },
        Unit::Share => percent(text),
        _ => number(text),
    }
}
