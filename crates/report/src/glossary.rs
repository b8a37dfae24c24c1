//! A one-line explanation of every term that a reader may not know: shown on hover, and printed in
//! full on paper.

use std::sync::LazyLock;

use pubgauge_conclusions::Carries;
use pubgauge_figures::figure::{Figure, Unit};
use pubgauge_figures::{Distribution, Status};
use pubgauge_quantities::shown;

/// The meaning of a verdict.
pub fn verdict(status: Status) -> &'static str {
    match status {
        Status::Valid => {
            "The figures describe the system: steady, nothing lost, the client not the limit."
        }
        Status::TooShort => {
            "The measurement was too short to tell whether the system carries the load: the reason says how long would do."
        }
        Status::Unsteady => {
            "No steady state: rate or latency wandered, so no figure stands for the whole."
        }
        Status::HostBound => {
            "A client host of the given size was at the end of it: a rate is that of such a host, latencies are not quoted."
        }
        Status::SettingBound => {
            "A window of the settings held publishers back while the system had room: a rate is a lower bound, latencies are not quoted."
        }
        Status::ClientBound => {
            "The measuring client, or the machine it shares with the system, was the limit: a rate is a lower bound, latencies are not quoted."
        }
        Status::Overloaded => {
            "More was offered than the system carried: its queue grew. A rate is what it carried under overload; latencies are not quoted."
        }
        Status::Lossy => "Messages were lost or repeated against what the settings promise.",
        Status::Broken => "The trial did not run as planned: no figure of it counts.",
    }
}

/// The meaning of an answer to "does it carry your load?".
pub fn carries(carries: Carries) -> &'static str {
    match carries {
        Carries::Yes => "Every repeat met everything that was asked.",
        Carries::No => {
            "At least one repeat did not meet what was asked, and the system was at fault."
        }
        Carries::CannotTell => {
            "The figures do not say: the client or the machine was the limit, there was no steady state, or too little was measured."
        }
    }
}

/// Terms that are no figure of the table of results.
const TERMS: [(&str, &str); 5] = [
    (
        "verdict",
        "Whether the figures of a trial can be trusted, by written rules.",
    ),
    (
        "latency",
        "From when a message should have been sent to its arrival at the subscriber, on one clock; the client's own lateness is in it.",
    ),
    (
        "round trip",
        "From when a question should have been sent to the arrival of its answer.",
    ),
    (
        "processor time",
        "Processor time of client and system together for one delivery: only together can a broker and a library be compared.",
    ),
    (
        "reference broker",
        "pubgauge's own minimal broker: no product, but the ceiling that the others are held against.",
    ),
];

static FIGURES: LazyLock<Vec<(&str, String)>> = LazyLock::new(|| {
    let columns = Figure::of_columns().into_iter();
    let columns = columns.map(|(figure, column)| (column.name, meaning(figure)));
    let terms = TERMS.map(|(name, meaning)| (name, meaning.to_owned()));
    terms.into_iter().chain(columns).collect()
});

/// The meanings of terms and figures, by the headings of columns.
pub fn figures() -> impl Iterator<Item = (&'static str, &'static str)> {
    FIGURES.iter().map(|(name, meaning)| (*name, &**meaning))
}

/// The meaning of a figure; empty for one without an entry.
pub fn figure(name: &str) -> &'static str {
    let found = figures().find(|(figure, _)| *figure == name);
    found.map_or("", |(_, meaning)| meaning)
}

/// The meaning of a figure of the table of results. Counts are sums over repeats there.
fn meaning(figure: &Figure) -> String {
    match (figure.quantile(), figure.unit) {
        (Some(quantile), _) => percentile(quantile),
        (None, Unit::Messages | Unit::Deliveries) => {
            format!(
                "{}, over all repeats.",
                figure.sentence().trim_end_matches('.')
            )
        }
        (None, _) => figure.sentence(),
    }
}

/// The meaning of a percentile of latency, and from how many messages on it is quoted.
fn percentile(quantile: f64) -> String {
    if quantile == 0.5 {
        return "Median latency: half of the deliveries were at most this late.".into();
    }
    let of = (1.0 / (1.0 - quantile)).round();
    let needed = Distribution::default().check_count(quantile).err();
    let needed = needed.map_or(0, |few| few.needed);
    format!(
        "{} of {} deliveries were at most this late; shown from {} messages on.",
        shown::count(of as u64 - 1),
        shown::count(of as u64),
        shown::count(needed),
    )
}
