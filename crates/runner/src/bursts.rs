//! Figures of bursts of messages back to back.

use pubgauge_engine::bursts::BurstRecording;
use pubgauge_figures::bursts::BurstFigures;
use pubgauge_quantities::stats::median;
use pubgauge_workload::{Arrivals, Flow};

/// The figures of the bursts of a flow; `None` if it sends none.
pub(crate) fn figures(flow: &Flow, recorded: &[BurstRecording]) -> Option<BurstFigures> {
    let Arrivals::Bursts { messages, every } = flow.arrivals else {
        return None;
    };
    // Where bursts are due at fixed times, only the last can be cut off: others were merely late.
    // A measurement by count ends before all that it has room for.
    let last_begun = recorded.iter().rposition(|burst| burst.due > 0);
    let last = |n: usize| every.is_none() || Some(n) == last_begun;
    let began = recorded.iter().enumerate().filter(|(_, b)| b.due > 0);
    let (cut_off, sent): (Vec<_>, Vec<_>) = began.partition(|(n, b)| b.unsent > 0 && last(*n));
    let sent: Vec<&BurstRecording> = sent.into_iter().map(|(_, burst)| burst).collect();
    let whole = || sent.iter().filter(|burst| burst.is_whole());
    let in_time = |burst: &&&BurstRecording| every.is_none_or(|every| burst.arrived < every);
    let hand_over = |burst: &BurstRecording| {
        let (from, upto) = burst.handed?;
        Some(upto - from)
    };
    let per_s = |of: fn(&BurstRecording) -> u64| {
        let rates = sent.iter().filter_map(|burst| {
            let ns = hand_over(burst).filter(|ns| *ns > 0)?;
            Some(of(burst) as f64 * 1e9 / ns as f64)
        });
        median(rates, f64::total_cmp)
    };
    let heard = whole().filter(|burst| burst.expected > 0);
    let arrivals = heard.map(|burst| burst.arrived);
    Some(BurstFigures {
        messages: u64::from(messages) * flow.publishers.len() as u64,
        every_ns: every,
        sent: sent.len() as u64,
        cut_off: cut_off.len() as u64,
        whole: whole().count() as u64,
        in_time: whole().filter(in_time).count() as u64,
        hand_over_ns: median(sent.iter().filter_map(|burst| hand_over(burst)), u64::cmp),
        msgs_per_s: per_s(|burst| burst.taken),
        bytes_per_s: per_s(|burst| burst.bytes),
        arrival_ns: median(arrivals.clone(), u64::cmp),
        longest_arrival_ns: arrivals.max(),
    })
}
