//! Figures as OpenMetrics text (version 1.0), which Prometheus and similar programs read.
//! <https://prometheus.io/docs/specs/om/open_metrics_spec/>

use std::io;

use pubgauge_figures::figure::{Figure, Times, Unit};
use pubgauge_figures::model::{AxisValue, Distribution, Results, Status, Trial};
use pubgauge_figures::search::Search;
use pubgauge_openmetrics::{MetricType, Text};

/// Writes the figures of a run: a sample for each trial that counts, so that none has the labels of another. Times are in
/// seconds.
///
/// # Errors
/// If writing fails.
pub fn write_run(run: &str, results: &Results, out: &mut dyn io::Write) -> io::Result<()> {
    let mut text = Text::default();
    let trials: Vec<(Named, &Trial)> = results
        .counted()
        .map(|trial| (Named::new(run, results, trial), trial))
        .collect();
    text.family(
        "pubgauge_trial",
        MetricType::Info,
        "",
        "What was measured on what, and the software that did it.",
    );
    for (named, trial) in &trials {
        let more = [
            ("version", trial.system.version.as_str()),
            ("pubgauge_version", &results.machine.pubgauge_version),
            ("machine", &results.machine.cpu_model),
            ("kernel", &results.machine.kernel),
        ];
        text.sample("_info", &named.labels(), &more, 1.0);
    }
    text.pass_on(out)?;
    text.family(
        "pubgauge_verdict",
        MetricType::StateSet,
        "",
        "Whether the figures of the trial can be trusted.",
    );
    for (named, trial) in &trials {
        for status in Status::ALL {
            let more = [("pubgauge_verdict", status.as_str())];
            let is = f64::from(trial.verdict.status == status);
            text.sample("", &named.labels(), &more, is);
        }
    }
    text.pass_on(out)?;
    for figure in Figure::all() {
        if let Some(family) = Family::for_figure(figure) {
            figure_of_trials(&mut text, figure, &family, &trials);
            text.pass_on(out)?;
        }
    }
    for times in Times::of_trials() {
        let name = format!("pubgauge_{}_seconds", times.name.replace('-', "_"));
        let mut is_begun = false;
        for (named, trial) in &trials {
            if let Some(distribution) = times.distribution(trial) {
                if !is_begun {
                    text.family(&name, MetricType::Summary, "seconds", &times.sentence());
                    is_begun = true;
                }
                summary(&mut text, named, distribution);
            }
        }
        text.pass_on(out)?;
    }
    searches(&mut text, run, results);
    out.write_all(text.finish().as_bytes())
}

/// A sample of each trial that has the figure; nothing where none has it.
fn figure_of_trials(text: &mut Text, figure: &Figure, family: &Family, trials: &[(Named, &Trial)]) {
    let suffix = match family.kind {
        MetricType::Counter => "_total",
        _ => "",
    };
    let mut is_begun = false;
    for (named, trial) in trials {
        if let Ok(value) = figure.value_in(trial, None, None) {
            if !is_begun {
                text.family(&family.name, family.kind, family.unit, &figure.sentence());
                is_begun = true;
            }
            text.sample(suffix, &named.labels(), &[], value * family.scale);
        }
    }
}

/// A figure of a search: its family's name and help text, and its value.
type OfSearch = (&'static str, &'static str, fn(&Search) -> Option<f64>);

/// Figures of a search, in the unit of its axis.
const LIMITS: [OfSearch; 3] = [
    (
        "pubgauge_search_low",
        "Lower end of the 95 % interval of the limit, in the unit of the axis.",
        |s| s.low,
    ),
    (
        "pubgauge_search_high",
        "Upper end of the 95 % interval of the limit, in the unit of the axis.",
        |s| s.high,
    ),
    (
        "pubgauge_search_confirmed",
        "The load that a long trial stayed within, in the unit of the axis.",
        |s| s.confirmed,
    ),
];

/// The limits that were found; no family in a run without searches.
fn searches(text: &mut Text, run: &str, results: &Results) {
    if results.searches.is_empty() {
        return;
    }
    for (name, help, of) in LIMITS {
        text.family(name, MetricType::Gauge, "", help);
        for (number, search) in results.searches.iter().enumerate() {
            let number = number.to_string();
            let labels = [
                ("run", run),
                ("study", &results.study.name),
                ("system", &search.system),
                ("workload", &search.workload),
                ("settings", &search.settings),
            ];
            let varied = axis_labels(&search.axes);
            let varied = varied.iter().map(|(name, value)| (&**name, &**value));
            let own = [("search", &*number), ("axis", search.axis.name())];
            let more: Vec<(&str, &str)> = varied.chain(own).collect();
            if let Some(value) = of(search) {
                text.sample("", &labels, &more, value);
            }
        }
    }
}

/// A label for each axis of the grid: `axis_payload="64B"`.
fn axis_labels(axes: &[AxisValue]) -> Vec<(String, String)> {
    let labels = axes.iter();
    let labels = labels.map(|axis| (axis_name(&axis.name), axis.value.clone()));
    labels.collect()
}

/// The name of an axis as part of a label or a column: `axis_settings_safe_in_flight`.
pub(crate) fn axis_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("axis_{}", name.chars().map(plain).collect::<String>())
}

/// Values of axes as one text: `payload=64B, rate=5k/s`.
pub(crate) fn axes(axes: &[AxisValue]) -> String {
    let pairs = axes.iter();
    let pairs: Vec<String> = pairs.map(|a| format!("{}={}", a.name, a.value)).collect();
    pairs.join(", ")
}

fn summary(text: &mut Text, named: &Named, d: &Distribution) {
    const QUANTILES: [(&str, f64); 5] = [
        ("0.5", 0.5),
        ("0.9", 0.9),
        ("0.99", 0.99),
        ("0.999", 0.999),
        ("0.9999", 0.9999),
    ];
    for (name, quantile) in QUANTILES {
        if let Some(ns) = d.quotable(quantile) {
            text.sample("", &named.labels(), &[("quantile", name)], ns as f64 / 1e9);
        }
    }
    text.sample("_count", &named.labels(), &[], d.count as f64);
    if let Some(mean) = d.mean {
        let sum = mean * d.count as f64 / 1e9;
        text.sample("_sum", &named.labels(), &[], sum);
    }
}

/// The labels of a trial.
struct Named {
    labels: Vec<(String, String)>,
}

impl Named {
    fn new(run: &str, results: &Results, trial: &Trial) -> Named {
        // Trials of a search differ only in load, and several may have the same load.
        let step = trial.search.into_iter().flat_map(|step| {
            let load = step.load.map_or(String::new(), |load| load.to_string());
            let number = step.search.to_string();
            [
                ("search", number),
                ("load", load),
                ("trial", trial.id.to_string()),
            ]
        });
        let labels = [
            ("run", run.to_owned()),
            ("study", results.study.name.clone()),
            ("system", trial.system.name.clone()),
            ("workload", trial.workload.name.clone()),
            ("settings", trial.settings_name.clone()),
        ];
        let owned = |(name, value): (&str, String)| (name.to_owned(), value);
        let repeat = ("repeat", trial.repeat.to_string());
        let after = [repeat].into_iter().chain(step).map(owned);
        let labels = labels.into_iter().map(owned);
        Named {
            labels: labels
                .chain(axis_labels(&trial.axes))
                .chain(after)
                .collect(),
        }
    }

    fn labels(&self) -> Vec<(&str, &str)> {
        let pairs = self.labels.iter();
        pairs
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect()
    }
}

/// The family of a figure: its name, its type and its unit, and the number of base units that the figure's unit is.
struct Family {
    name: String,
    kind: MetricType,
    unit: &'static str,
    scale: f64,
}

impl Family {
    /// `None` for times of messages and for the verdict, which have families of their own kind.
    fn for_figure(figure: &Figure) -> Option<Family> {
        use MetricType::{Counter, Gauge};
        if figure.is_statistic() {
            return None;
        }
        let (kind, end, unit, scale) = match figure.unit {
            Unit::Messages => (Counter, "messages", "", 1.0),
            Unit::Deliveries => (Counter, "deliveries", "", 1.0),
            Unit::PerSecond => (Gauge, "messages_per_second", "", 1.0),
            Unit::BytesPerSecond => (Gauge, "bytes_per_second", "", 1.0),
            Unit::Nanoseconds => (Gauge, "seconds", "seconds", 1e-9),
            Unit::Seconds => (Gauge, "seconds", "seconds", 1.0),
            Unit::MicrosecondsPerMessage => (Gauge, "seconds", "seconds", 1e-6),
            Unit::Cores => (Gauge, "cores", "", 1.0),
            Unit::Bytes => (Gauge, "bytes", "bytes", 1.0),
            Unit::Share => (Gauge, "ratio", "ratio", 1.0),
            Unit::Count => (Gauge, "", "", 1.0),
            Unit::Verdict => return None,
        };
        let name = &*figure.name;
        let stem = ["-rate", "-share", "-time", "-bytes"]
            .into_iter()
            .find_map(|said| name.strip_suffix(said).filter(|_| !end.is_empty()))
            .unwrap_or(name);
        let mut name = format!("pubgauge_{}", stem.replace(['-', '.'], "_"));
        if stem != end && !end.is_empty() {
            name.push('_');
            name.push_str(end);
        }
        Some(Family {
            name,
            kind,
            unit,
            scale,
        })
    }
}
