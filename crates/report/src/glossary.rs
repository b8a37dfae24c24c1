//! A one-line explanation of every term that a reader may not know: shown on hover, and printed in
//! full on paper.

use pubgauge_figures::Status;

use crate::carries::Carries;

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

/// The meanings of the figures, by the headings of columns.
pub const FIGURES: [(&str, &str); 20] = [
    (
        "round trip",
        "From when a question should have been sent to the arrival of its answer.",
    ),
    (
        "processor time",
        "Processor time of client and system together for one delivery: only together can a broker and a library be compared.",
    ),
    (
        "verdict",
        "Whether the figures of a trial can be trusted, by written rules.",
    ),
    (
        "delivered",
        "Messages that arrived at subscribers per second of the measurement; repeated ones count once. Where nobody subscribes, those that the system took.",
    ),
    (
        "latency",
        "From when a message should have been sent to its arrival at the subscriber, on one clock; the client's own lateness is in it.",
    ),
    (
        "p50",
        "Median latency: half of the deliveries were at most this late.",
    ),
    ("p90", "Nine of ten deliveries were at most this late."),
    (
        "p99",
        "99 of 100 deliveries were at most this late; shown from 299 messages on.",
    ),
    (
        "p99.9",
        "999 of 1000 deliveries were at most this late; shown from 2,995 messages on.",
    ),
    (
        "p99.99",
        "9999 of 10000 deliveries were at most this late; shown from 29,956 messages on.",
    ),
    (
        "lost",
        "Deliveries that were due and never came, over all repeats.",
    ),
    (
        "duplicated",
        "Deliveries of a message that the subscriber had already got, over all repeats.",
    ),
    (
        "reordered",
        "Deliveries overtaken by a later message of the same publisher and topic, over all repeats.",
    ),
    (
        "refused",
        "Messages that the system or its client library did not take, over all repeats.",
    ),
    (
        "not sent",
        "Messages that were due but could not be handed over before the end, over all repeats.",
    ),
    (
        "under way",
        "Deliveries that were still coming when the trial ended: neither delivered nor lost; their latencies are not known.",
    ),
    (
        "system CPU",
        "Processor time of the system's own processes for one delivery, µs; none of its own: the system works inside the client, or its processes are out of sight.",
    ),
    (
        "client CPU",
        "Processor time of publishers and subscribers with their libraries for one delivery, µs.",
    ),
    (
        "system memory",
        "Largest resident memory of the system's processes during the measurement.",
    ),
    (
        "reference broker",
        "pubgauge's own minimal broker: no product, but the ceiling that the others are held against.",
    ),
];

/// The meaning of a figure; empty for one without an entry.
pub fn figure(name: &str) -> &'static str {
    let found = FIGURES.iter().find(|(figure, _)| *figure == name);
    found.map_or("", |(_, meaning)| meaning)
}
