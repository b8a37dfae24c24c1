//! Tidy tables: a row for each observation, a column for each variable, the same columns for every
//! run ([`without_empty_columns`](crate::without_empty_columns) leaves those out that a run has nothing in), units in the names. Every row names its run, trial and cell, so that tables can be joined,
//! and those of several runs concatenated.

use hdrhistogram::Histogram;
use pubgauge_figures::figure::Figure;
use pubgauge_figures::group::extremes;
use pubgauge_figures::histogram::{Interval, clean_tag, merge};
use pubgauge_figures::model::{Distribution, FlowFigures, Results, SeriesRecord, Trial};
use pubgauge_figures::window::WindowFigures;
use serde_json::Value;

use crate::flat::Flat;
use crate::openmetrics::{axes, axis_name};
use crate::table::{CellType, ExportColumn, RowError, Table};

/// The names of the tables, in order.
pub const NAMES: [&str; 6] = [
    "trials",
    "flows",
    "windows",
    "series",
    "percentiles",
    "searches",
];

/// Histogram logs whose percentiles are in the table `percentiles`: (log, measure).
pub const LOGS: [(&str, &str); 5] = [
    ("latency", "latency"),
    ("latency-from-send", "latency_from_send"),
    ("send-lag", "send_lag"),
    ("acknowledgement", "acknowledgement"),
    ("round-trip", "round_trip"),
];

/// Percentiles in the table `percentiles`; those with less than one value beyond them are left out.
pub const PERCENTILES: [f64; 17] = [
    0.0, 1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99, 99.995,
    99.999, 100.0,
];

/// A run, with its name in the rows.
#[derive(Clone, Copy)]
pub struct NamedRun<'a> {
    /// Name of its folder.
    pub name: &'a str,
    /// Its results.
    pub results: &'a Results,
}

/// The contents of a row beside the columns that identify trials and axes: its own cells, and the record of the others.
type RowPart = (Vec<Value>, Value);

impl<'a> NamedRun<'a> {
    /// A row for each trial, with every single figure of `results.json`.
    pub fn trials(&self) -> Table<'a> {
        let flat = Flat::columns_of::<Trial>(&[
            "id",
            "cell",
            "system",
            "settings_name",
            "workload.name",
            "repeat",
            "verdict",
            "search",
        ]);
        let own = [
            ("search", CellType::Integer),
            ("search_purpose", CellType::Text),
            ("search_load", CellType::Real),
            ("qos", CellType::Integer),
            ("reasons", CellType::Text),
            ("errors", CellType::Text),
            ("lost_share", CellType::Real),
            ("smallest_member_share", CellType::Real),
            ("largest_member_share", CellType::Real),
        ];
        let counted = Figure::on_request().map(|of| (&*of.recorded, CellType::Real));
        let own = own.into_iter().chain(counted);
        self.table("trials", own, flat, |trial| {
            let step = trial.search;
            let members = extremes(&trial.groups);
            let own: [Value; 9] = [
                step.map(|step| step.search).into(),
                serialized(step.map(|step| step.purpose)),
                step.and_then(|step| step.load).into(),
                qos(trial).into(),
                trial.verdict.sentences().join("; ").into(),
                errors(trial).join("; ").into(),
                share(trial.shortfall.lost, trial.messages.expected),
                members.map(|(smallest, _)| smallest).into(),
                members.map(|(_, largest)| largest).into(),
            ];
            let counted = Figure::on_request().map(|of| of.value_in(trial, None, None).ok().into());
            Ok(vec![(
                own.into_iter().chain(counted).collect(),
                serialized(trial),
            )])
        })
    }

    /// A row for each flow of each trial.
    pub fn flows(&self) -> Table<'a> {
        let flat = Flat::columns_of::<FlowFigures>(&["name"]);
        let own = [("flow", CellType::Text), ("lost_share", CellType::Real)];
        self.table("flows", own, flat, |trial| {
            let part = |flow: &FlowFigures| {
                let own = vec![
                    flow.name.as_str().into(),
                    share(flow.shortfall.lost, flow.messages.expected),
                ];
                (own, serialized(flow))
            };
            Ok(trial.flows.iter().map(part).collect())
        })
    }

    /// A row for each window of each trial, and of each flow where there are several; a row without a
    /// flow is of all flows.
    pub fn windows(&self) -> Table<'a> {
        let flat = Flat::columns_of::<WindowFigures>(&["name"]);
        let own = [
            ("window", CellType::Text),
            ("flow", CellType::Text),
            ("lost_share", CellType::Real),
        ];
        self.table("windows", own, flat, |trial| {
            let all = trial.windows.iter().map(|window| (None::<&str>, window));
            let of_flows = trial.flows.iter().flat_map(|flow| {
                let windows = flow.windows.iter();
                windows.map(move |window| (Some(flow.name.as_str()), window))
            });
            let part = |(flow, window): (Option<&str>, &WindowFigures)| {
                let lost = window
                    .lost
                    .map(|lost| share(lost, window.messages.expected));
                let own = vec![window.name.as_str().into(), flow.into(), lost.into()];
                (own, serialized(window))
            };
            Ok(all.chain(of_flows).map(part).collect())
        })
    }

    /// A row for each record of each trial's series.
    pub fn series(&self) -> Table<'a> {
        let flat = Flat::columns_of::<SeriesRecord>(&["t_s"]);
        let own = [
            ("t_s", CellType::Real),
            ("length_s", CellType::Real),
            ("phase", CellType::Text),
        ];
        self.table("series", own, flat, |trial| {
            let mut before = 0.0;
            let part = |second: &SeriesRecord| {
                let phase = if second.traffic.t_s > trial.duration_s + 1e-6 {
                    "drain"
                } else {
                    "measure"
                };
                let length = second.traffic.t_s - before;
                before = second.traffic.t_s;
                let own = vec![second.traffic.t_s.into(), length.into(), phase.into()];
                let mut record = serialized(second);
                // A record in which nothing measured came has latencies of 0.
                for (name, value) in record.as_object_mut().into_iter().flatten() {
                    if name.starts_with("latency_") && value.as_u64() == Some(0) {
                        *value = Value::Null;
                    }
                }
                (own, record)
            };
            Ok(trial.series.iter().map(part).collect())
        })
    }

    /// A row for each percentile of each measure of each flow, from the histogram logs that `log`
    /// gives for a trial and a name; rows without a flow are all flows together, where there are
    /// several. An error of `log` is one of the rows.
    pub fn percentiles<E: Into<RowError>>(
        &self,
        mut log: impl FnMut(u32, &str) -> Result<Vec<Interval>, E> + 'a,
    ) -> Table<'a> {
        let own = [
            ("flow", CellType::Text),
            ("measure", CellType::Text),
            ("percentile", CellType::Real),
            ("value_ns", CellType::Integer),
            ("count", CellType::Integer),
        ];
        let none = Flat::columns_of::<()>(&[]);
        self.table("percentiles", own, none, move |trial| {
            let mut rows = Vec::new();
            for (name, measure) in LOGS {
                let intervals = log(trial.id, name).map_err(Into::into)?;
                rows.extend(percentiles_of(trial, measure, &intervals));
            }
            Ok(rows)
        })
    }

    /// A row for each search for a limit. Loads are in the unit of its `axis`: messages a second,
    /// bytes, or a count.
    pub fn searches(&self) -> Table<'a> {
        let run = *self;
        let rows = (0u32..).zip(&run.results.searches);
        let rows = rows.map(move |(number, search)| {
            let record = serialized(search);
            let cell = |(name, _, path): &(&str, CellType, &str)| match *name {
                "run" => run.name.into(),
                "study" => run.results.study.name.as_str().into(),
                "search" => number.into(),
                "axes" => axes(&search.axes).into(),
                "notes" => (search
                    .notes
                    .iter()
                    .map(|note| &*note.text)
                    .collect::<Vec<_>>())
                .join("; ")
                .into(),
                "trials" => search.trials.len().into(),
                _ => record.pointer(path).cloned().unwrap_or_default(),
            };
            Ok(SEARCHES.iter().map(cell).collect())
        });
        Table {
            name: "searches",
            columns: (SEARCHES.into_iter())
                .map(|(name, kind, _)| column((name, kind)))
                .collect(),
            rows: Box::new(rows),
        }
    }

    /// A table of parts of trials: the columns that identify trials, then `own`, then the columns of `flat`. The rows of
    /// a trial are made when they are asked for, so that no table is ever held whole.
    fn table(
        &self,
        name: &'static str,
        own: impl IntoIterator<Item = (&'static str, CellType)>,
        flat: Flat,
        mut parts: impl FnMut(&'a Trial) -> Result<Vec<RowPart>, RowError> + 'a,
    ) -> Table<'a> {
        let axes = self.axes();
        let of_axes = axes.iter().map(|name| ExportColumn {
            name: axis_name(name),
            kind: CellType::Text,
        });
        let keys = KEYS.into_iter().map(column).chain(of_axes);
        let own = own.into_iter().map(column);
        let columns: Vec<ExportColumn> = keys.chain(own).chain(flat.columns()).collect();
        let (run, width) = (*self, columns.len());
        let rows = self.results.trials.iter().flat_map(move |trial| {
            let row = |(own, record): RowPart| {
                let row: Vec<Value> = (run.keys(trial, &axes).into_iter().chain(own))
                    .chain(flat.cells(&record))
                    .collect();
                debug_assert_eq!(row.len(), width);
                Ok(row)
            };
            match parts(trial) {
                Ok(parts) => parts.into_iter().map(row).collect(),
                Err(error) => vec![Err(error)],
            }
        });
        Table {
            name,
            columns,
            rows: Box::new(rows),
        }
    }

    /// The cells that identify a trial, and its values on the run's axes.
    fn keys(&self, trial: &Trial, axes: &[&str]) -> Vec<Value> {
        let verdict = trial.verdict.status.as_str();
        let keys: [Value; KEYS.len()] = [
            self.name.into(),
            self.results.study.name.as_str().into(),
            trial.id.into(),
            trial.cell.as_str().into(),
            trial.system.name.as_str().into(),
            trial.system.version.as_str().into(),
            trial.settings_name.as_str().into(),
            trial.workload.name.as_str().into(),
            trial.repeat.into(),
            verdict.into(),
        ];
        let axes = axes.iter().map(|name| {
            let axis = trial.axes.iter().find(|axis| axis.name == *name);
            Value::from(axis.map(|axis| axis.value.as_str()))
        });
        keys.into_iter().chain(axes).collect()
    }

    /// The axes of the run's grid, in the order in which they first appear.
    fn axes(&self) -> Vec<&'a str> {
        let mut names: Vec<&str> = Vec::new();
        for axis in self.results.trials.iter().flat_map(|trial| &trial.axes) {
            if !names.contains(&axis.name.as_str()) {
                names.push(&axis.name);
            }
        }
        names
    }
}

/// The percentiles of one measure of a trial, from its log.
fn percentiles_of(trial: &Trial, measure: &str, intervals: &[Interval]) -> Vec<RowPart> {
    let mut rows = Vec::new();
    let tags: Vec<&str> = intervals.iter().filter_map(|i| i.tag.as_deref()).collect();
    let flows = trial.flows.iter();
    let flows: Vec<&FlowFigures> = flows
        .filter(|f| tags.contains(&clean_tag(&f.name).as_str()))
        .collect();
    let each = flows.iter().map(|flow| Some(*flow));
    let all = (flows.len() != 1).then_some(None);
    for flow in each.chain(all) {
        let of = |i: &&Interval| flow.is_none_or(|f| i.tag.as_ref() == Some(&clean_tag(&f.name)));
        let parts = intervals.iter().filter(of).map(|i| &i.histogram);
        let Some(values) = merge(parts) else { continue };
        let own = flow.and_then(|flow| of_flow(flow, measure));
        let all = of_trial(trial, measure).map_or(0, |of| of.censored);
        // Of acknowledgements it is known of all flows together alone.
        let censored = match (own, flow) {
            (Some(own), _) => own.censored,
            (None, Some(_)) if trial.flows.len() > 1 && all > 0 => continue,
            (None, _) => all,
        };
        for (percentile, value) in quoted(&values, censored) {
            let own = vec![
                flow.map(|f| f.name.as_str()).into(),
                measure.into(),
                percentile.into(),
                value.into(),
                values.len().into(),
            ];
            rows.push((own, Value::Null));
        }
    }
    rows
}

/// The quality of service of MQTT that messages were published with, as the driver says; absent for a protocol that has none.
/// The failures of clients, systems and hosts in words.
fn errors(trial: &Trial) -> Vec<String> {
    let clients = trial.client_failures.iter().map(ToString::to_string);
    clients.chain(trial.errors.iter().cloned()).collect()
}

fn qos(trial: &Trial) -> Option<u8> {
    trial.mappings.iter().find_map(|mapping| mapping.qos)
}

/// The distribution of a measure of [`LOGS`] over a trial.
fn of_trial<'t>(trial: &'t Trial, measure: &str) -> Option<&'t Distribution> {
    match measure {
        "latency" => Some(&trial.messages.latency_ns),
        "latency_from_send" => Some(&trial.messages.latency_from_send_ns),
        "send_lag" => Some(&trial.messages.send_lag_ns),
        "acknowledgement" => trial.messages.acknowledgement_ns.as_ref(),
        "round_trip" => trial.messages.round_trip_ns.as_ref(),
        _ => None,
    }
}

/// A distribution of one flow.
fn of_flow<'f>(flow: &'f FlowFigures, measure: &str) -> Option<&'f Distribution> {
    match measure {
        "latency" => Some(&flow.messages.latency_ns),
        "latency_from_send" => Some(&flow.messages.latency_from_send_ns),
        "send_lag" => Some(&flow.messages.send_lag_ns),
        "round_trip" => flow.messages.round_trip_ns.as_ref(),
        _ => None,
    }
}

/// The columns that identify trials.
const KEYS: [(&str, CellType); 10] = [
    ("run", CellType::Text),
    ("study", CellType::Text),
    ("trial", CellType::Integer),
    ("cell", CellType::Text),
    ("system", CellType::Text),
    ("system_version", CellType::Text),
    ("settings", CellType::Text),
    ("workload", CellType::Text),
    ("repeat", CellType::Integer),
    ("verdict", CellType::Text),
];

/// The columns of searches, and where each stands in a search of `results.json`; empty: nowhere.
const SEARCHES: [(&str, CellType, &str); 21] = [
    ("run", CellType::Text, ""),
    ("study", CellType::Text, ""),
    ("search", CellType::Integer, ""),
    ("system", CellType::Text, "/system"),
    ("settings", CellType::Text, "/settings"),
    ("workload", CellType::Text, "/workload"),
    ("axes", CellType::Text, ""),
    ("axis", CellType::Text, "/axis"),
    ("low", CellType::Real, "/low"),
    ("high", CellType::Real, "/high"),
    ("confirmed", CellType::Real, "/confirmed"),
    ("bound", CellType::Text, "/bound"),
    ("gave_way", CellType::Text, "/gave_way/what"),
    ("gave_way_figure", CellType::Real, "/gave_way/figure"),
    ("gave_way_unit", CellType::Text, "/gave_way/unit"),
    ("notes", CellType::Text, ""),
    ("trials", CellType::Integer, ""),
    ("bursts_sent", CellType::Integer, "/bursts/sent"),
    ("bursts_whole", CellType::Integer, "/bursts/whole"),
    ("burst_msgs_per_s", CellType::Real, "/bursts/msgs_per_s"),
    ("burst_arrival_ns", CellType::Integer, "/bursts/arrival_ns"),
];

/// Whether a column of this name identifies a trial.
pub(crate) fn is_key(name: &str) -> bool {
    KEYS.iter().any(|(key, _)| *key == name)
}

fn column((name, kind): (&str, CellType)) -> ExportColumn {
    ExportColumn {
        name: name.to_owned(),
        kind,
    }
}

/// A value as `results.json` writes it.
fn serialized(of: impl serde::Serialize) -> Value {
    serde_json::to_value(of).unwrap_or_default()
}

fn share(part: u64, whole: u64) -> Value {
    (whole > 0).then(|| part as f64 / whole as f64).into()
}

/// The percentiles of a histogram that can be quoted, where `censored` larger values are missing:
/// those with at least one value beyond them, and among the values seen.
fn quoted(values: &Histogram<u64>, censored: u64) -> impl Iterator<Item = (f64, u64)> + '_ {
    let all = values.len() + censored;
    PERCENTILES.into_iter().filter_map(move |percentile| {
        let share = percentile / 100.0;
        let beyond = all as f64 * (1.0 - share);
        let edge = percentile == 0.0 || percentile == 100.0;
        let rank = ((share * all as f64).ceil() as u64).max(1);
        let seen = match percentile {
            0.0 => !values.is_empty(),
            _ => rank <= values.len() && rank > 0,
        };
        if !seen || !edge && beyond < 1.0 - 1e-9 {
            return None;
        }
        let value = match (percentile, censored) {
            (0.0, _) => values.min(),
            (100.0, _) => values.max(),
            (_, 0) => values.value_at_quantile(share),
            _ => values.value_at_quantile(rank as f64 / values.len() as f64),
        };
        Some((percentile, value.min(values.max())))
    })
}
