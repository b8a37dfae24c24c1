//! The messages of a trial, of one of its flows and of a window, by the engine's counts and times.

use pubgauge_engine::recording::{FlowRecording, MessageCounts};
use pubgauge_engine::series::Totals;
use pubgauge_engine::times::Measure;
use pubgauge_figures::{Distribution, Messages, Shortfall};

use crate::distribution::per_second;

/// The messages that were due in so many `seconds`, with the `times` of each measure, and the rates of all that `passed`
/// meanwhile.
pub(crate) fn messages(
    due: &MessageCounts,
    passed: &Totals,
    seconds: f64,
    times: impl Fn(Measure) -> Distribution,
) -> Messages {
    let per_s = |count| per_second(count, seconds);
    let if_any = |measure| Some(times(measure)).filter(|times| times.count > 0);
    let round_trip = if_any(Measure::RoundTrip);
    Messages {
        offered: due.offered,
        published: due.published,
        refused: due.refused,
        not_connected: due.not_connected,
        not_sent: due.not_sent,
        expected: due.expected + due.unconnected_deliveries,
        delivered: due.delivered,
        duplicated: due.duplicated(),
        reordered: due.reordered,
        away: due.away,
        backlog: due.backlog,
        missed: due.missed,
        offered_msgs_per_s: per_s(due.offered),
        published_msgs_per_s: per_s(passed.published),
        delivered_msgs_per_s: per_s(passed.unique),
        latency_ns: times(Measure::Latency),
        latency_from_send_ns: times(Measure::LatencyFromSend),
        send_lag_ns: times(Measure::SendLag),
        acknowledgement_ns: if_any(Measure::Acknowledgement),
        half_round_trip_ns: round_trip.as_ref().map(Distribution::halved),
        round_trip_ns: round_trip,
    }
}

/// Messages that did not come or go, as far as the counts of the clients tell.
pub(crate) fn shortfall(counts: &FlowRecording) -> Shortfall {
    Shortfall {
        not_tried: counts.not_tried,
        too_large: counts.too_large,
        dropped: counts.dropped,
        lost: counts.lost() + counts.messages.unconnected_deliveries,
        under_way: counts.under_way,
        ..Shortfall::default()
    }
}
