//! Bursts of messages back to back: how many arrived whole, and how fast they were handed over.

use pubgauge_figures::bursts::BurstFigures;
use pubgauge_quantities::lists::unique;
use pubgauge_quantities::shown;
use pubgauge_quantities::stats::mean;

use crate::summary::Cell;

/// A sentence on the bursts of a cell over all its trials, for each flow that sends bursts.
pub(crate) fn sentences(cell: &Cell<'_>) -> Vec<String> {
    let all = cell.trials.iter().flat_map(|trial| &trial.flows);
    let bursts = all.filter(|flow| flow.bursts.is_some());
    let flows = unique(bursts.map(|flow| flow.name.as_str()));
    let several = cell.trials.iter().any(|trial| trial.flows.len() > 1);
    let of_flow = |name: &&str| {
        let flows = cell.trials.iter().flat_map(|trial| &trial.flows);
        let named = flows.filter(|flow| flow.name == *name);
        let bursts: Vec<BurstFigures> = named.filter_map(|flow| flow.bursts).collect();
        let of = if several {
            format!("{}, {name}", cell.row)
        } else {
            cell.row.clone()
        };
        Some(format!("{of}: {}", describe_bursts(&bursts)?))
    };
    flows.iter().filter_map(of_flow).collect()
}

/// The bursts of several repeats: sums of counts, means of the other figures.
fn describe_bursts(bursts: &[BurstFigures]) -> Option<String> {
    let sum = |of: fn(&BurstFigures) -> u64| bursts.iter().map(of).sum::<u64>();
    let mean = |of: fn(&BurstFigures) -> Option<f64>| mean(bursts.iter().filter_map(of));
    let first = bursts.first()?;
    let (sent, whole, in_time) = (sum(|b| b.sent), sum(|b| b.whole), sum(|b| b.in_time));
    let messages = shown::count(first.messages);
    let mut words = format!("{whole} of {sent} bursts of {messages} messages arrived whole");
    if first.every_ns.is_some() {
        words.push_str(&format!(", {in_time} of them before the next began"));
    }
    if let Some(ns) = mean(|b| Some(b.hand_over_ns? as f64)) {
        words.push_str(&format!("; handed over within {}", shown::time(ns)));
    }
    if let (Some(msgs), Some(bytes)) = (mean(|b| b.msgs_per_s), mean(|b| b.bytes_per_s)) {
        let (msgs, bytes) = (shown::rate(msgs), shown::bytes(bytes as u64));
        words.push_str(&format!(", {msgs}, {bytes}/s"));
    }
    if let Some(ns) = mean(|b| Some(b.arrival_ns? as f64)) {
        words.push_str(&format!("; arrived after {} (medians)", shown::time(ns)));
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_added_up() {
        let one = BurstFigures {
            messages: 256,
            every_ns: Some(1_000_000_000),
            sent: 10,
            whole: 9,
            in_time: 8,
            hand_over_ns: Some(1_000_000),
            msgs_per_s: Some(256_000.0),
            bytes_per_s: Some(16_384_000.0),
            arrival_ns: Some(3_000_000),
            ..BurstFigures::default()
        };
        let two = BurstFigures {
            whole: 10,
            in_time: 10,
            hand_over_ns: Some(3_000_000),
            ..one
        };
        let words = describe_bursts(&[one, two]).expect("bursts");
        assert!(
            words.starts_with(
                "19 of 20 bursts of 256 messages arrived whole, 18 of them before the next began; \
                 handed over within 2.00 ms, 256"
            ),
            "{words}"
        );
        assert!(
            words.ends_with("arrived after 3.00 ms (medians)"),
            "{words}"
        );
        assert_eq!(super::describe_bursts(&[]), None);
    }
}
