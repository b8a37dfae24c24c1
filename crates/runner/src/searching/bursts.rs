//! The search for the largest burst of messages back to back that arrives whole.

use pubgauge_figures::bursts::BurstFigures;
use pubgauge_figures::model::{Status, Trial};
use pubgauge_search::{Axis, LimitEstimate, StepOutcome};

use super::JudgedTrial;

/// Words for bursts that took too long.
const LATE: &str = "had not arrived whole when the next one began";

/// Why bursts of a trial, or the flows beside them, are beyond the limit or give no finding; `None` if all
/// bursts arrived whole and in time.
pub(super) fn judge_bursts(
    trial: &Trial,
    reasons: &[String],
) -> Option<(StepOutcome, Vec<String>)> {
    let flows = trial.flows.iter();
    let failed = flows.filter_map(|flow| Some((flow, flow.bursts.filter(|b| !b.all_in_time())?)));
    let Some((flow, bursts)) =
        failed.max_by_key(|(flow, _)| flow.shortfall.lost + flow.messages.refused)
    else {
        let beside = trial.flows.iter().any(|flow| flow.bursts.is_none());
        let suffered = match trial.verdict.status {
            Status::Lossy => true,
            Status::Overloaded => beside,
            _ => false,
        };
        return suffered.then(|| (StepOutcome::Beyond, reasons.to_vec()));
    };
    let (lost, refused) = (flow.shortfall.lost, flow.messages.refused);
    let not_whole = bursts.sent - bursts.whole;
    if lost + refused > 0 {
        let of_client = trial.verdict.status == Status::ClientBound;
        let mut why = vec![format!(
            "{not_whole} of {} bursts of {} messages did not arrive whole: {lost} deliveries were lost, \
             {refused} messages refused",
            bursts.sent, bursts.messages
        )];
        if of_client {
            why.extend_from_slice(reasons);
        }
        let finding = if of_client {
            StepOutcome::Client
        } else {
            StepOutcome::Beyond
        };
        return Some((finding, why));
    }
    let why = match bursts.sent {
        0 => "no burst began in the measurement".to_owned(),
        sent => format!(
            "nothing was lost, but {} of {sent} bursts of {} messages {LATE}",
            sent - bursts.in_time,
            bursts.messages
        ),
    };
    Some((StepOutcome::Nothing, vec![why]))
}

/// The bursts of a search for the largest one: of the longest trial at the largest burst within the
/// limit.
pub(super) fn at_limit(
    axis: Axis,
    found: &LimitEstimate,
    own: &[JudgedTrial<'_>],
) -> Option<BurstFigures> {
    let low = found.low.filter(|_| axis == Axis::Burst)?;
    let within = own.iter().filter(|told| {
        told.step.load.is_some_and(|load| load <= low) && told.finding == StepOutcome::Within
    });
    let at = within.max_by(|a, b| {
        let load = a.step.load.partial_cmp(&b.step.load);
        let longer = || a.trial.duration_s.total_cmp(&b.trial.duration_s);
        load.unwrap_or(std::cmp::Ordering::Equal).then_with(longer)
    });
    at?.trial.flows.iter().find_map(|flow| flow.bursts)
}

/// Whether bursts took too long without a loss.
pub(super) fn late(own: &[JudgedTrial<'_>]) -> bool {
    own.iter().any(|told| {
        told.finding == StepOutcome::Nothing && told.why.iter().any(|why| why.ends_with(LATE))
    })
}

/// The publishers' rate at the limit of bursts, in words.
pub(super) fn describe_rate(bursts: &BurstFigures) -> String {
    let of = format!("a burst of {} messages", bursts.messages);
    let came = bursts.arrival_ns.map_or(String::new(), |ns| {
        format!(" and had arrived after {:.3} ms", ns as f64 / 1e6)
    });
    match (bursts.hand_over_ns, bursts.msgs_per_s, bursts.bytes_per_s) {
        (Some(ns), Some(per_s), Some(bytes)) => format!(
            "{of} was handed over within {:.3} ms, which is {per_s:.0} msg/s and {bytes:.0} B/s,{came} \
             (medians of {} bursts)",
            ns as f64 / 1e6,
            bursts.sent
        ),
        _ => format!("{of} was handed over in no time that could be told{came}"),
    }
}

/// A note on a limit beyond which bursts took too long.
pub(super) fn at_least() -> String {
    format!(
        "the system carries at least so much: larger bursts {LATE}, but nothing of them was lost, as where a \
         system holds its publishers back. A longer `burst-every`, or none, would show more"
    )
}
