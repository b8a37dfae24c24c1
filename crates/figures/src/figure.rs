//! The figures of a trial by their names: what each is measured in, which direction is better, where it can be asked
//! for, and how it comes out of a trial. A new figure is one entry of the catalogue.

mod catalogue;
mod column;
mod costs;
mod counted;
mod entry;
mod messages;
mod scope;
mod times;

use std::collections::HashMap;
use std::sync::LazyLock;

use pubgauge_driver::{Capability, UnknownCapability};

pub use self::column::{FigureColumn, Shown};
pub use self::entry::per_message;
use self::scope::Scope;
use crate::distribution::{Bounds, Distribution, TooFew};
use crate::model::Trial;
pub use crate::unit::Unit;
use crate::window::{self, in_window};

/// Which direction is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Less is better.
    Less,
    /// More is better.
    More,
}

/// A figure of a trial.
#[derive(Debug)]
pub struct Figure {
    /// Its name in studies, for example `latency.p99.9`, `delivered-rate`.
    pub name: String,
    /// Its name in `results.json`, for example `latency_ns.p99_9`, `delivered_msgs_per_s`.
    pub recorded: String,
    /// Its unit.
    pub unit: Unit,
    /// Which direction is better.
    pub better: Better,
    /// Its meaning, in a few words.
    pub says: &'static str,
    /// Whether it holds whatever the verdict, as counts do.
    pub of_any_trial: bool,
    /// Whether a trial in which the system failed does not meet a criterion that bounds it: from above where less is
    /// better (latency, loss), from below where more is (rates).
    pub promised: bool,
    /// Whether it counts from when a message was due and ends where the client has it, so that whatever the client takes
    /// itself makes it larger: a client that is late measures an upper bound.
    pub has_lateness: bool,
    /// It is a time that a delivery took.
    pub of_delivery: bool,
    /// How the table of results shows it; `None`: the tables of trials alone have it.
    pub column: Option<FigureColumn>,
    /// Times that flows and windows have, too; true for all other figures.
    of_parts: bool,
    value: FigureSource,
}

/// Where the value of a figure comes from.
#[derive(Clone, Copy, Debug)]
enum FigureSource {
    /// A trial, one of its flows or a window.
    OfPart(fn(&Scope<'_>) -> Option<f64>),
    /// A statistic of times of a trial, a flow or a window.
    Time(
        for<'a> fn(&Scope<'a>) -> Option<&'a Distribution>,
        Statistic,
    ),
    /// A whole trial alone.
    OfTrial(fn(&Trial) -> Option<f64>),
    /// A whole trial alone, where the study had it counted.
    OnRequest(fn(&Trial) -> Option<f64>),
    /// More than the trial: its workload, or the search that it belongs to.
    Elsewhere { of_windows: bool },
}

/// A statistic of a distribution.
#[derive(Clone, Copy, Debug)]
enum Statistic {
    Min,
    Mean,
    Quantile(f64),
    Max,
}

impl Statistic {
    fn value_in(self, distribution: &Distribution) -> Result<f64, Option<TooFew>> {
        let time = |ns: Option<u64>| ns.map(|ns| ns as f64);
        let value = match self {
            Statistic::Min => time(distribution.min),
            Statistic::Mean => distribution.mean,
            Statistic::Max => time(distribution.max),
            Statistic::Quantile(quantile) => {
                distribution.check_count(quantile).map_err(Some)?;
                time(distribution.quotable(quantile))
            }
        };
        value.ok_or(None)
    }
}

static FIGURES: LazyLock<Vec<Figure>> = LazyLock::new(catalogue::all);

static BY_NAME: LazyLock<HashMap<String, usize>> = LazyLock::new(|| {
    let names = |(nth, figure): (usize, &Figure)| {
        [&figure.name, &figure.recorded].map(|name| (alike(name), nth))
    };
    FIGURES.iter().enumerate().flat_map(names).collect()
});

impl PartialEq for Figure {
    fn eq(&self, other: &Figure) -> bool {
        self.name == other.name
    }
}

impl Figure {
    /// All figures.
    pub fn all() -> &'static [Figure] {
        &FIGURES
    }

    /// The figure of this name, as in studies or as in `results.json`, without a window.
    pub fn named(name: &str) -> Option<&'static Figure> {
        Some(&FIGURES[*BY_NAME.get(&alike(name))?])
    }

    /// The figure of this name, and the window after `@`; `None` as well for a quotient of two figures.
    pub fn in_window(name: &str) -> Option<(&'static Figure, Option<&str>)> {
        let (base, window) = window::split(name);
        let figure = Figure::named(base).filter(|_| !name.contains('/'))?;
        Some((figure, window))
    }

    /// The figures that criteria can ask for: those of one trial.
    pub fn of_criteria() -> impl Iterator<Item = &'static Figure> {
        Figure::all()
            .iter()
            .filter(|figure| figure.is_of_one_trial())
    }

    /// Whether it comes out of a trial by itself. Criteria are about such figures, claims about all.
    pub fn is_of_one_trial(&self) -> bool {
        !matches!(self.value, FigureSource::Elsewhere { .. })
    }

    /// The figures that the table of results has, in their order.
    pub fn of_columns() -> Vec<(&'static Figure, FigureColumn)> {
        let figures = Figure::all().iter();
        let mut columns: Vec<_> = figures
            .filter_map(|figure| Some((figure, figure.column?)))
            .collect();
        columns.sort_by_key(|(_, column)| column.place);
        columns
    }

    /// Its meaning as a sentence.
    pub fn sentence(&self) -> String {
        sentence(self.says)
    }

    /// The share that it is a quantile for, of times; `None` for all other figures.
    pub fn quantile(&self) -> Option<f64> {
        match self.value {
            FigureSource::Time(_, Statistic::Quantile(quantile)) => Some(quantile),
            _ => None,
        }
    }

    /// Whether the tables of all trials have it. They have four statistics of times: their tail says more than the rest.
    pub fn is_of_tables(&self) -> bool {
        match self.value {
            FigureSource::Time(_, Statistic::Quantile(quantile)) => {
                [0.5, 0.99, 0.999].contains(&quantile)
            }
            FigureSource::Time(_, statistic) => matches!(statistic, Statistic::Max),
            FigureSource::Elsewhere { .. } => false,
            _ => self.unit != Unit::Verdict,
        }
    }

    /// Its value in tables of all trials: counts in full.
    pub fn value_in_full(&self, value: f64) -> String {
        match self.unit {
            Unit::Messages | Unit::Deliveries => format!("{value}"),
            unit => unit.format(value),
        }
    }

    /// Whether it is one of several statistics of the same times.
    pub fn is_statistic(&self) -> bool {
        matches!(self.value, FigureSource::Time(..))
    }

    /// The figures that are counted where the study asks for it.
    pub fn on_request() -> impl Iterator<Item = &'static Figure> {
        let counted = |figure: &&Figure| matches!(figure.value, FigureSource::OnRequest(_));
        Figure::all().iter().filter(counted)
    }

    /// Whether it changes where system calls are slowed by being counted: rates, times, processor time and shares of
    /// it.
    pub fn is_of_speed(&self) -> bool {
        match self.unit {
            Unit::Nanoseconds
            | Unit::PerSecond
            | Unit::BytesPerSecond
            | Unit::Seconds
            | Unit::Cores
            | Unit::MicrosecondsPerMessage => true,
            Unit::Share => !self.of_any_trial,
            Unit::Messages | Unit::Deliveries | Unit::Bytes | Unit::Count | Unit::Verdict => false,
        }
    }

    /// Whether a window of the measurement has it, too.
    pub fn of_windows(&self) -> bool {
        match self.value {
            FigureSource::OfPart(_) | FigureSource::Time(..) => self.of_parts,
            FigureSource::OfTrial(_) | FigureSource::OnRequest(_) => false,
            FigureSource::Elsewhere { of_windows } => of_windows,
        }
    }

    /// Whether one of several flows has it, too.
    pub fn of_flows(&self) -> bool {
        self.of_parts && matches!(self.value, FigureSource::OfPart(_) | FigureSource::Time(..))
    }

    /// Its value in a trial, or in one of its flows, or in a window of either.
    ///
    /// # Errors
    /// There is none; with the reason, where it is a percentile of too few values.
    pub fn value_in(
        &self,
        trial: &Trial,
        flow: Option<&str>,
        window: Option<&str>,
    ) -> Result<f64, Option<TooFew>> {
        let scope = scope_of(trial, flow, window).ok_or(None)?;
        let whole = flow.is_none() && window.is_none();
        match self.value {
            FigureSource::OfPart(value) => value(&scope).ok_or(None),
            FigureSource::Time(distribution, statistic) => {
                statistic.value_in(distribution(&scope).ok_or(None)?)
            }
            FigureSource::OfTrial(value) | FigureSource::OnRequest(value) if whole => {
                value(trial).ok_or(None)
            }
            _ => Err(None),
        }
    }

    /// Where a percentile of a trial, or of one of its flows, or of a window of either, lies; `None` for all other figures.
    pub fn bounds(
        &self,
        trial: &Trial,
        flow: Option<&str>,
        window: Option<&str>,
    ) -> Option<Bounds> {
        let FigureSource::Time(distribution, Statistic::Quantile(quantile)) = self.value else {
            return None;
        };
        distribution(&scope_of(trial, flow, window)?)?.bounds(quantile)
    }

    /// The upper bound of a time that is absent because the clocks of two hosts are not known well enough to quote it, ns;
    /// `None` for all other figures.
    pub fn unquoted_at_most(
        &self,
        trial: &Trial,
        flow: Option<&str>,
        window: Option<&str>,
    ) -> Option<f64> {
        let FigureSource::Time(distribution, statistic) = self.value else {
            return None;
        };
        let scope = scope_of(trial, flow, window)?;
        let times = distribution(&scope)?;
        // Of what did not come nothing is known.
        let is_whole = times.count > 0 && times.censored == 0;
        (is_whole && statistic.value_in(times) == Err(None))
            .then(|| trial.one_way?.unquoted_at_most())
            .flatten()
    }
}

/// A trial, one of its flows, or a window of either.
fn scope_of<'t>(trial: &'t Trial, flow: Option<&str>, window: Option<&str>) -> Option<Scope<'t>> {
    Some(match (flow, window) {
        (None, None) => Scope::from(trial),
        (Some(name), None) => {
            let own = Scope::from(trial.flows.iter().find(|flow| flow.name == name)?);
            if trial.flows.len() > 1 {
                return Some(own);
            }
            // The system worked for the trial's only flow alone.
            Scope {
                system_cpu_s: trial.system_cpu_s,
                ..own
            }
        }
        (flow, Some(name)) => Scope::from(in_window(trial, flow, name)?),
    })
}

/// Words as a sentence.
fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).chain(['.']).collect()
}

/// Times of which a trial has a distribution.
pub struct Times {
    /// The beginning of the names of its statistics: `latency` of `latency.p99`.
    pub name: &'static str,
    /// Their name in `results.json`.
    recorded: &'static str,
    distribution: for<'a> fn(&Scope<'a>) -> Option<&'a Distribution>,
    says: &'static str,
    /// A system that failed does not meet an upper bound on them.
    promised: bool,
    /// Flows and windows have them, too.
    of_parts: bool,
    /// They count from when a message was due.
    from_due: bool,
    /// They are those of a delivery.
    of_delivery: bool,
}

impl Times {
    /// The times of trials.
    pub fn of_trials() -> impl Iterator<Item = Times> {
        times::TIMES.into_iter()
    }

    /// Their meaning as a sentence.
    pub fn sentence(&self) -> String {
        sentence(self.says)
    }

    /// Those of a trial; `None` where there are none.
    pub fn distribution<'t>(&self, trial: &'t Trial) -> Option<&'t Distribution> {
        (self.distribution)(&Scope::from(trial))
    }
}

/// A figure of a trial or of one of its flows by its name, as in studies or as in `results.json`, with the window after
/// `@`. `None` if there is no such figure, or the trial has no value for it.
pub fn figure(trial: &Trial, flow: Option<&str>, name: &str) -> Option<f64> {
    let (figure, window) = Figure::in_window(name)?;
    figure.value_in(trial, flow, window).ok()
}

/// The capabilities that the figure `supports A, B` counts: how many of them a system has itself. `None`: the name is
/// that of another figure. An error: one of them does not exist; the text names those that do.
pub fn capabilities(name: &str) -> Option<Result<Vec<Capability>, UnknownCapability>> {
    let list = name.strip_prefix("supports ")?;
    Some(list.split(',').map(|one| one.trim().parse()).collect())
}

/// A name in which `_` stands for the `-` and the `.` of studies.
fn alike(name: &str) -> String {
    match name.split_once('.') {
        Some((of, statistic)) => {
            format!("{}.{}", of.replace('_', "-"), statistic.replace('_', "."))
        }
        None => name.replace('_', "-"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Messages;

    #[test]
    fn names_are_unique_and_stand_for_one_another() {
        for (n, figure) in Figure::all().iter().enumerate() {
            assert_eq!(Figure::named(&figure.name), Some(figure));
            assert_eq!(Figure::named(&figure.recorded), Some(figure));
            let before = &Figure::all()[..n];
            assert!(
                !before.iter().any(|other| other.name == figure.name),
                "{}",
                figure.name
            );
        }
        for (recorded, name) in [
            ("latency_ns.p99", "latency.p99"),
            ("latency_ns.p99_9", "latency.p99.9"),
            ("latency_from_send_ns.max", "latency-from-send.max"),
            ("delivered_msgs_per_s", "delivered-rate"),
            ("not_sent", "not-sent"),
            ("lost_share", "loss-share"),
            ("client_cpu_total_s", "client-cpu"),
            ("system_rss_bytes@during", "system-memory@during"),
            ("loss_share", "loss-share"),
            ("latency.p99_9", "latency.p99.9"),
        ] {
            let figure = Figure::in_window(recorded).map(|(figure, _)| &*figure.name);
            assert_eq!(figure, Some(window::split(name).0));
        }
        assert_eq!(Figure::named("latency"), None);
        assert_eq!(Figure::named("latency_ns"), None);
    }

    /// 100 deliveries took 1 to 100 ms, and 50 never came: they are beyond all of these, but not among what was delivered.
    #[test]
    fn what_was_delivered_alone_has_a_percentile_of_its_own() {
        let mut times = hdrhistogram::Histogram::<u64>::new(3).unwrap();
        (1..=100u64).for_each(|ms| times.record(ms * 1_000_000).unwrap());
        for (censored, of_all, of_delivered) in [(0, Some(90.0), 90.0), (50, None, 90.0)] {
            let trial = Trial {
                messages: Messages {
                    latency_from_send_ns: Distribution::censored(&times, censored),
                    ..Messages::default()
                },
                ..Trial::default()
            };
            let ms = |name: &str| {
                let value = Figure::named(name).unwrap().value_in(&trial, None, None);
                value.ok().map(|ns| (ns / 1e6).round())
            };
            assert_eq!(ms("latency-from-send.p90"), of_all);
            assert_eq!(ms("delivered-latency-from-send.p90"), Some(of_delivered));
        }
    }

    /// Of messages that a system did not take, none is known to have been kept.
    #[test]
    fn nothing_is_lost_where_nothing_was_taken_is_no_finding() {
        for (offered, published, lost) in [(10, 10, Some(0.0)), (10, 0, None), (0, 0, Some(0.0))] {
            let trial = Trial {
                messages: Messages {
                    offered,
                    published,
                    ..Messages::default()
                },
                ..Trial::default()
            };
            let value = |name: &str| {
                let figure = Figure::named(name).unwrap();
                figure.value_in(&trial, None, None).ok()
            };
            assert_eq!(value("lost"), lost, "{published} of {offered}");
            assert_eq!(value("loss-free").is_some(), lost.is_some());
        }
    }

    #[test]
    fn capabilities_are_counted_by_name() {
        let two = capabilities("supports multicast, pattern:point-to-point").unwrap();
        let words: Vec<String> = two.unwrap().iter().map(Capability::to_string).collect();
        assert_eq!(words, ["multicast", "pattern:point-to-point"]);
        assert!(capabilities("supports multicast, luck").unwrap().is_err());
        assert_eq!(capabilities("lost"), None);
    }

    /// A line of the table for each figure; one line for all statistics of a distribution.
    fn table() -> String {
        let mut lines = vec!["| figure | unit | better | windows | asked in | what it is |\n|---|---|---|---|---|---|".to_owned()];
        let mut before: Option<&str> = None;
        for figure in Figure::all() {
            let (name, statistics) = match (figure.value, figure.name.split_once('.')) {
                (FigureSource::Time(..), Some((name, _))) if before == Some(name) => continue,
                (FigureSource::Time(..), Some((name, _))) => {
                    before = Some(name);
                    (name, ".min .mean .p50 .p90 .p99 .p99.9 .p99.99 .max")
                }
                _ => (&*figure.name, ""),
            };
            let statistics: String = statistics
                .split(' ')
                .filter(|s| !s.is_empty())
                .map(|s| format!(" `{s}`"))
                .collect();
            let better = if figure.better == Better::Less {
                "less"
            } else {
                "more"
            };
            let windows = if figure.of_windows() { "yes" } else { "" };
            let asked = if figure.is_of_one_trial() {
                "criteria, claims"
            } else {
                "claims"
            };
            let unit = if figure.unit == Unit::Verdict {
                "verdict"
            } else {
                figure.unit.symbol()
            };
            lines.push(format!(
                "| `{name}`{statistics} | {unit} | {better} | {windows} | {asked} | {} |",
                figure.says
            ));
        }
        lines.join("\n")
    }

    #[test]
    fn the_documented_table_is_the_catalogue() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (before, rest) = page
            .split_once("<!-- figures -->")
            .expect("a mark of the table");
        let (_, after) = rest
            .split_once("<!-- end of figures -->")
            .expect("a mark of its end");
        let made = format!(
            "{before}<!-- figures -->\n\n{}\n\n<!-- end of figures -->{after}",
            table()
        );
        if std::env::var_os("PUBGAUGE_RENEW").is_some() {
            std::fs::write(path, made).unwrap();
        } else {
            assert!(
                made == page,
                "docs/results.md differs: run this test with PUBGAUGE_RENEW=1"
            );
        }
    }

    /// Every figure comes out of a trial that has everything, under both of its names.
    #[test]
    fn criteria_ask_for_what_trials_have() {
        for name in [
            "connect-time",
            "ready-time",
            "largest-member-share",
            "publishers-blocked",
            "cpu-per-message",
            "system-memory-per-connection",
            "connections.lost",
        ] {
            assert!(
                Figure::named(name).is_some_and(Figure::is_of_one_trial),
                "{name}"
            );
        }
        let times = Distribution {
            count: 30_000,
            min: Some(1),
            mean: Some(2.0),
            p50: Some(2),
            p90: Some(3),
            p99: Some(4),
            p99_9: Some(5),
            p99_99: Some(6),
            max: Some(7),
            ..Distribution::default()
        };
        let trial = Trial {
            messages: Messages {
                latency_ns: times,
                acknowledgement_ns: Some(times),
                ..Messages::default()
            },
            ..Trial::default()
        };
        for (name, wanted) in [
            ("min", 1.0),
            ("mean", 2.0),
            ("p90", 3.0),
            ("p99.99", 6.0),
            ("max", 7.0),
        ] {
            for of in ["latency", "acknowledgement"] {
                assert_eq!(
                    super::figure(&trial, None, &format!("{of}.{name}")),
                    Some(wanted)
                );
            }
        }
        let few = Trial {
            messages: Messages {
                latency_ns: Distribution {
                    count: 2_994,
                    ..times
                },
                ..Messages::default()
            },
            ..Trial::default()
        };
        let p999 = Figure::named("latency.p99.9")
            .unwrap()
            .value_in(&few, None, None);
        assert_eq!(
            p999,
            Err(Some(TooFew {
                count: 2_994,
                needed: 2_995
            }))
        );
    }
}
