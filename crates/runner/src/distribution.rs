//! Distributions of times that know what is missing, and rates.

use hdrhistogram::Histogram;
use pubgauge_engine::recording::FlowRecording;
use pubgauge_engine::times::{Measure, histogram};
use pubgauge_figures::model::Distribution;
use pubgauge_workload::{Exchange, Flow};

/// A rate over so many seconds; 0 where there were none.
pub(crate) fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        count as f64 / seconds
    } else {
        0.0
    }
}

/// How many times of each measure there would be if all that was due had happened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Due {
    /// Deliveries of the messages that were due, and second ones that were timed.
    pub(crate) deliveries: u64,
    pub(crate) messages: u64,
    /// Of these, messages that were taken and not acknowledged, where the system acknowledges.
    pub(crate) unacknowledged: u64,
    /// Questions of ping-pong flows.
    pub(crate) questions: u64,
}

impl Due {
    pub(crate) fn from_flow(flow: &Flow, counts: &FlowRecording) -> Due {
        Due {
            deliveries: (counts.messages.expected
                + counts.messages.untaken_deliveries
                + counts.messages.timed_again)
                .saturating_sub(counts.messages.missed + counts.messages.backlog),
            messages: counts.messages.offered,
            unacknowledged: counts.unacknowledged,
            questions: match flow.exchange {
                Exchange::PingPong => counts.messages.offered,
                Exchange::OneWay => 0,
            },
        }
    }

    pub(crate) fn add(&mut self, other: &Due) {
        self.deliveries += other.deliveries;
        self.messages += other.messages;
        self.unacknowledged += other.unacknowledged;
        self.questions += other.questions;
    }
}

/// The distribution of times of one measure. Those of messages that were due but did not come, or did not even
/// leave, are larger than all.
pub(crate) fn distribution<'a>(
    times: impl IntoIterator<Item = &'a Histogram<u64>>,
    measure: Measure,
    due: &Due,
) -> Distribution {
    let mut all = histogram();
    for some in times {
        // Equal bounds by construction.
        let _ = all.add(some);
    }
    let beyond = |due: u64| due.saturating_sub(all.len());
    let censored = match measure {
        Measure::Latency | Measure::LatencyFromSend => beyond(due.deliveries),
        Measure::SendLag => beyond(due.messages),
        Measure::RoundTrip => beyond(due.questions),
        Measure::Acknowledgement => due.unacknowledged,
    };
    let messages = match measure {
        // Deliveries of one message are not independent of one another.
        Measure::Latency | Measure::LatencyFromSend if due.messages > 0 => due.messages,
        _ => all.len() + censored,
    };
    Distribution::of_messages(&all, censored, messages)
}
