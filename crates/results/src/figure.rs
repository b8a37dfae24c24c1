//! The figures of a trial by their names: what each is measured in, which direction is better, and where it can be
//! asked for.

use std::sync::LazyLock;

use pubgauge_driver::Capability;

use self::Better::{Less, More};
use self::Unit::{
    Bytes, Count, Messages, MicrosecondsPerMessage, PerSecond, Seconds, Share, Verdict,
};
use crate::criterion::recorded_name;
use crate::window;

/// What a figure is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of messages.
    Messages,
    /// Messages per second.
    PerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// Seconds of processor time.
    Seconds,
    /// Microseconds of processor time for a message.
    MicrosecondsPerMessage,
    /// Bytes.
    Bytes,
    /// 0 to 1; a count over a count.
    Share,
    /// A number, plain or per message or byte.
    Count,
    /// One of [`crate::model::Status::ALL`].
    Verdict,
}

impl Unit {
    /// Whether such a figure changes where system calls are slowed by being counted.
    pub fn is_of_speed(self) -> bool {
        matches!(
            self,
            Unit::Nanoseconds | Unit::PerSecond | Unit::Seconds | Unit::MicrosecondsPerMessage
        )
    }

    /// Its symbol, for machines.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "ns",
            Unit::PerSecond => "1/s",
            Unit::Seconds => "s",
            Unit::MicrosecondsPerMessage => "us",
            Unit::Bytes => "B",
            Unit::Messages | Unit::Share | Unit::Count | Unit::Verdict => "1",
        }
    }
}

/// Which direction is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Less is better.
    Less,
    /// More is better.
    More,
}

/// Where a figure can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// In criteria and in claims.
    InCriteria,
    /// In claims alone.
    InClaims,
}

/// A figure of a trial.
#[derive(Debug, PartialEq, Eq)]
pub struct Figure {
    /// Its name in studies, for example `latency.p99.9`, `delivered-rate`.
    pub name: String,
    /// Its name in `results.json`, for example `latency_ns.p99_9`, `delivered_msgs_per_s`.
    pub recorded: String,
    /// What it is measured in.
    pub unit: Unit,
    /// Which direction is better.
    pub better: Better,
    /// Where it can be asked for.
    pub asked: Asked,
    /// Whether a window of the measurement has it, too.
    pub of_windows: bool,
}

/// A figure that is not one of a distribution: name, unit, better direction, and whether windows have it.
type Plain = (&'static str, Unit, Better, bool);

/// Those that criteria and claims ask for.
const OF_CRITERIA: [Plain; 20] = [
    ("published", Messages, More, true),
    ("refused", Messages, Less, true),
    ("not-connected", Messages, Less, true),
    ("not-sent", Messages, Less, true),
    ("under-way", Messages, Less, true),
    ("delivered", Messages, More, true),
    ("lost", Messages, Less, true),
    ("duplicated", Messages, Less, true),
    ("reordered", Messages, Less, true),
    ("offered-rate", PerSecond, More, true),
    ("published-rate", PerSecond, More, true),
    ("delivered-rate", PerSecond, More, true),
    ("loss-share", Share, Less, true),
    ("client-cpu", Seconds, Less, false),
    ("system-cpu", Seconds, Less, true),
    ("client-memory", Bytes, Less, false),
    ("system-memory", Bytes, Less, false),
    ("client-cpu-share", Share, Less, false),
    ("system-cpu-share", Share, Less, false),
    ("verdict", Verdict, Less, false),
];

/// Those that claims alone ask for.
const OF_CLAIMS: [Plain; 25] = [
    ("cpu-per-message", MicrosecondsPerMessage, Less, false),
    (
        "client-cpu-per-message",
        MicrosecondsPerMessage,
        Less,
        false,
    ),
    (
        "system-cpu-per-message",
        MicrosecondsPerMessage,
        Less,
        false,
    ),
    ("duplicated-share", Share, Less, true),
    ("reordered-share", Share, Less, false),
    ("expected", Messages, More, true),
    ("delivered-bytes-rate", Bytes, More, true),
    ("system-busiest-thread", Count, Less, false),
    ("publishers-cpu", Count, Less, false),
    (
        "publishers-cpu-per-message",
        MicrosecondsPerMessage,
        Less,
        false,
    ),
    ("publishers-load", Share, Less, false),
    ("subscribers-load", Share, Less, false),
    ("smallest-member-share", Share, More, false),
    ("largest-member-share", Share, Less, false),
    ("client-syscalls-per-message", Count, Less, false),
    ("system-syscalls-per-message", Count, Less, false),
    ("client-send-calls-per-message", Count, Less, false),
    ("client-receive-calls-per-message", Count, Less, false),
    ("system-sync-calls", Count, Less, false),
    ("system-sync-calls-per-message", Count, Less, false),
    ("system-written-bytes", Bytes, Less, false),
    ("interface-bytes-per-payload-byte", Count, Less, false),
    ("interface-packets-per-message", Count, Less, false),
    ("interface-overhead-per-message", Bytes, Less, false),
    ("limit", Count, More, false),
];

/// Distributions of times, each of which has the statistics below.
const DISTRIBUTIONS: [&str; 5] = [
    "latency",
    "latency-from-send",
    "send-lag",
    "round-trip",
    "acknowledgement",
];

const STATISTICS: [&str; 8] = ["min", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"];

/// Statistics of times that only claims ask for, and whether windows have them.
const TIMES_OF_CLAIMS: [(&str, bool); 7] = [
    ("latency.p70", false),
    ("latency.p97", false),
    ("half-round-trip.mean", true),
    ("half-round-trip.p50", true),
    ("half-round-trip.p90", true),
    ("half-round-trip.p99", true),
    ("half-round-trip.max", true),
];

static FIGURES: LazyLock<Vec<Figure>> = LazyLock::new(|| {
    let figure = |name: String, unit, better, asked, of_windows| Figure {
        recorded: recorded_name(&name),
        name,
        unit,
        better,
        asked,
        of_windows,
    };
    let time = |name, asked, windows| figure(name, Unit::Nanoseconds, Better::Less, asked, windows);
    let plain = |figures: &'static [Plain], asked| {
        let figures = figures.iter().copied();
        figures.map(move |(name, unit, better, windows)| {
            figure(name.to_owned(), unit, better, asked, windows)
        })
    };
    let names = DISTRIBUTIONS
        .iter()
        .flat_map(|of| STATISTICS.map(|statistic| format!("{of}.{statistic}")));
    let times = names.map(|name| time(name, Asked::InCriteria, true));
    let of_claims = TIMES_OF_CLAIMS
        .iter()
        .map(|(name, windows)| time((*name).to_owned(), Asked::InClaims, *windows));
    plain(&OF_CRITERIA, Asked::InCriteria)
        .chain(plain(&OF_CLAIMS, Asked::InClaims))
        .chain(times)
        .chain(of_claims)
        .collect()
});

impl Figure {
    /// All figures.
    pub fn all() -> &'static [Figure] {
        &FIGURES
    }

    /// The figure of this name, as in studies or as in `results.json`, without a window.
    pub fn named(name: &str) -> Option<&'static Figure> {
        let name = alike(name);
        let is = |figure: &&Figure| {
            [&figure.name, &figure.recorded]
                .map(|n| alike(n))
                .contains(&name)
        };
        Figure::all().iter().find(is)
    }

    /// The figures that criteria can ask for.
    pub fn of_criteria() -> impl Iterator<Item = &'static Figure> {
        Figure::all()
            .iter()
            .filter(|figure| figure.asked == Asked::InCriteria)
    }
}

/// The capabilities that the figure `supports A, B` counts: how many of them a system has itself. `None`: the name is
/// that of another figure. An error: one of them does not exist; the text names those that do.
pub fn capabilities(name: &str) -> Option<Result<Vec<Capability>, String>> {
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

/// A figure's name in studies, also for the one that it has in `results.json`. A window after `@` is kept, and a
/// name of no figure is returned as it is.
pub fn study_name(name: &str) -> String {
    let (base, window) = window::split(name);
    let base = Figure::named(base).map_or(base, |figure| &figure.name);
    match window {
        Some(window) => format!("{base}@{window}"),
        None => base.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::criterion::is_figure;

    #[test]
    fn names_are_unique_and_stand_for_one_another() {
        for (n, figure) in Figure::all().iter().enumerate() {
            assert_eq!(Figure::named(&figure.name), Some(figure));
            assert_eq!(Figure::named(&figure.recorded), Some(figure));
            assert_eq!(study_name(&figure.recorded), figure.name);
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
            assert_eq!(study_name(recorded), name);
        }
        assert_eq!(Figure::named("latency"), None);
        assert_eq!(Figure::named("latency_ns"), None);
    }

    #[test]
    fn capabilities_are_counted_by_name() {
        let two = capabilities("supports multicast, pattern:point-to-point").unwrap();
        let words: Vec<String> = two.unwrap().iter().map(Capability::to_string).collect();
        assert_eq!(words, ["multicast", "pattern:point-to-point"]);
        assert!(capabilities("supports multicast, luck").unwrap().is_err());
        assert_eq!(capabilities("lost"), None);
    }

    #[test]
    fn criteria_ask_for_what_trials_have_and_windows_for_what_they_have() {
        for figure in Figure::of_criteria() {
            assert!(is_figure(&figure.recorded), "{figure:?}");
            let of_window = is_figure(&format!("{}@during", figure.recorded));
            assert!(of_window || !figure.of_windows, "{figure:?}");
        }
    }
}
