//! Every figure of a trial: one entry for each.

use super::column::FigureColumn;
use super::entry::{OfTrial, of_whole_trial};
use super::times::TIMES;
use super::{Better::Less, Figure, FigureSource, Statistic, Unit, costs, counted, messages};
use crate::model::Trial;

const STATISTICS: [(&str, &str, Statistic); 8] = [
    ("min", "min", Statistic::Min),
    ("mean", "mean", Statistic::Mean),
    ("p50", "p50", Statistic::Quantile(0.5)),
    ("p90", "p90", Statistic::Quantile(0.9)),
    ("p99", "p99", Statistic::Quantile(0.99)),
    ("p99.9", "p99_9", Statistic::Quantile(0.999)),
    ("p99.99", "p99_99", Statistic::Quantile(0.9999)),
    ("max", "max", Statistic::Max),
];

/// The columns of latency, by statistic.
const OF_LATENCY: [(&str, FigureColumn); 4] = [
    (
        "p50",
        FigureColumn::new("p50", 1, ["latency", "p50"], 7).always(),
    ),
    ("p99", FigureColumn::new("p99", 2, ["", "p99"], 7).always()),
    ("p99.9", FigureColumn::new("p99.9", 3, ["", "p99.9"], 7)),
    (
        "p99.99",
        FigureColumn::new("p99.99", 4, ["", "p99.99"], 7).from(120),
    ),
];

/// Percentiles of latency without a field of their own.
const OF_ECDF: [(&str, &str, OfTrial); 2] = [
    ("latency.p70", "latency_ns.p70", |t| quantile(t, 0.7)),
    ("latency.p97", "latency_ns.p97", |t| quantile(t, 0.97)),
];

pub(super) fn all() -> Vec<Figure> {
    let time = |name: String, recorded: String, says, promised, value| Figure {
        name,
        recorded,
        unit: Unit::Nanoseconds,
        better: Less,
        says,
        of_any_trial: false,
        promised,
        has_lateness: false,
        of_delivery: true,
        column: None,
        of_parts: true,
        value,
    };
    let mut all = Vec::new();
    for times in TIMES {
        all.extend(STATISTICS.map(|(name, field, statistic)| {
            let value = FigureSource::Time(times.distribution, statistic);
            let plain = time(
                format!("{}.{name}", times.name),
                format!("{}.{field}", times.recorded),
                times.says,
                times.promised,
                value,
            );
            Figure {
                has_lateness: times.from_due,
                of_delivery: times.of_delivery,
                of_parts: times.of_parts,
                column: OF_LATENCY
                    .iter()
                    .find(|(statistic, _)| times.name == "latency" && *statistic == name)
                    .map(|(_, column)| *column),
                ..plain
            }
        }));
    }
    let latency = TIMES[0].says;
    all.extend(OF_ECDF.map(|(name, recorded, value)| {
        time(
            name.into(),
            recorded.into(),
            latency,
            true,
            of_whole_trial(value),
        )
    }));
    let entries = [messages::ENTRIES, costs::ENTRIES, counted::ENTRIES];
    let plain = entries.into_iter().flatten().map(|entry| Figure {
        name: entry.name.into(),
        recorded: entry.recorded.into(),
        unit: entry.unit,
        better: entry.better,
        says: entry.says,
        of_any_trial: entry.of_any_trial,
        promised: entry.promised,
        has_lateness: false,
        of_delivery: false,
        column: entry.column,
        of_parts: true,
        value: entry.value,
    });
    all.extend(plain);
    all
}

/// The next larger latency whose share of the distribution function is stored exactly, of some 200 points spread evenly
/// over the logarithm of the value. Deliveries that were still under way count as later ones. `None` where no value
/// lies beyond it.
fn quantile(trial: &Trial, share: f64) -> Option<f64> {
    if trial.messages.latency_ns.check_count(share).is_err() {
        return None;
    }
    let mut reached = trial.latency_ecdf.iter().filter(|(_, at)| *at >= share);
    let found = reached.next().map(|(ns, _)| *ns as f64);
    // Between hosts with clocks of their own as the other percentiles.
    found.filter(|ns| trial.one_way.is_none_or(|one_way| one_way.quotes(*ns)))
}
