//! Trials that did not run as planned, and trials that measured nothing.

use super::findings::{Findings, Rule};
use super::{client, thresholds};
use crate::model::{Status, Trial};

/// Rules on the trial itself. Where the client is the reason, the trial is client-bound: the system
/// is not to blame.
pub(super) fn broken(trial: &Trial, client: &client::Load, findings: &mut Findings) {
    let circumstances = &trial.circumstances;
    // A client without descriptors or ports, or one that was stalled while servers waited for it.
    let by_client = match &circumstances.exhausted {
        Some(what) => Some(format!("the client ran out of {what}")),
        None => client.stalled.clone(),
    };
    let blame = |text: String| match &by_client {
        Some(why) => (Status::ClientBound, format!("{text}: {why}")),
        None => (Status::Broken, text),
    };
    let mut add = |rule, (status, reason): (Status, String)| findings.add(rule, status, reason);
    if let Some(why) = &circumstances.not_run {
        let text = format!("not run as planned: {why}");
        let ended = match circumstances.exhausted {
            Some(_) => blame(text),
            None => (Status::Broken, text),
        };
        add(Rule::NotRun, ended);
    }
    let broken = |reason: String| (Status::Broken, reason);
    for death in &circumstances.system_died {
        add(
            Rule::SystemDied,
            broken(format!("the system ended during the trial: {death}")),
        );
    }
    let connections = &trial.connections;
    if connections.made < connections.planned {
        add(
            Rule::Unconnected,
            blame(format!(
                "{} of {} connections were made",
                connections.made, connections.planned
            )),
        );
    }
    if connections.lost > 0 && !circumstances.disconnects_allowed {
        add(
            Rule::ConnectionsLost,
            blame(format!(
                "{} of {} connections were lost, {} made again",
                connections.lost, connections.planned, connections.remade
            )),
        );
    }
    let odd = &trial.odd;
    if odd.foreign > 0 {
        add(
            Rule::Foreign,
            broken(format!(
                "{} deliveries were not of this trial or not for that subscriber",
                odd.foreign
            )),
        );
    }
    if odd.corrupt > 0 {
        let reason = format!("{} deliveries had a damaged body", odd.corrupt);
        add(Rule::Corrupt, broken(reason));
    }
    for check in trial.checks.iter().filter(|check| check.disagrees()) {
        let counts: Vec<String> = check
            .counts
            .iter()
            .map(|(who, count)| format!("{count} by {who}"))
            .collect();
        add(
            Rule::CountsDiffer,
            broken(format!("{}: {}", check.what, counts.join(", "))),
        );
    }
    if circumstances.not_run.is_some() {
        return;
    }
    if trial.duration_s <= 0.0 {
        let reason = "nothing was measured: the measurement lasted 0 s".to_owned();
        add(Rule::NothingMeasured, broken(reason));
        return;
    }
    nothing(trial, &by_client, &mut add);
    // With a clock error too large for the median, arrivals before the sending time are normal.
    let clocks_count = trial.one_way.is_none() || trial.latency_ns.p50.is_some();
    if clocks_count
        && odd.negative as f64 > thresholds::NEGATIVE_SHARE * trial.delivered.max(1) as f64
    {
        add(
            Rule::Clocks,
            broken(format!(
                "{} of {} deliveries came before they were sent: the clocks cannot be trusted",
                odd.negative, trial.delivered
            )),
        );
    }
    let unique = trial.delivered.checked_sub(trial.duplicated);
    let known = unique.map(|unique| unique + trial.under_way + trial.lost);
    if known != Some(trial.expected) {
        add(
            Rule::CountsDiffer,
            broken(format!(
                "the counts do not add up: {} delivered - {} duplicated + {} under way + {} lost is \
                 not {} expected",
                trial.delivered, trial.duplicated, trial.under_way, trial.lost, trial.expected
            )),
        );
    }
    if trial.published + trial.refused + trial.not_sent != trial.offered {
        add(
            Rule::CountsDiffer,
            broken(format!(
                "the counts do not add up: {} published + {} refused + {} not sent is not {} offered",
                trial.published, trial.refused, trial.not_sent, trial.offered
            )),
        );
    }
}

/// Trials in which nothing was due, nothing was taken or nothing arrived.
fn nothing(
    trial: &Trial,
    by_client: &Option<String>,
    add: &mut impl FnMut(Rule, (Status, String)),
) {
    // Messages of the warm-up are still being delivered.
    let busy = trial.at_start.backlog > 0 && trial.series.iter().any(|s| s.delivered > 0);
    let status = match (by_client, busy) {
        (Some(_), _) => Status::ClientBound,
        (None, true) => Status::Overloaded,
        (None, false) => Status::Broken,
    };
    let because = match (by_client, busy) {
        (Some(why), _) => format!(": {why}"),
        (None, true) => format!(
            ": it still had {} deliveries of the warm-up to make when the measurement began",
            trial.at_start.backlog
        ),
        (None, false) => String::new(),
    };
    if trial.published == 0 && (trial.offered > 0 || trial.workload.flat_out) {
        let due = match trial.offered {
            0 => "no message".to_owned(),
            offered => format!("none of {offered} messages"),
        };
        let reason = format!("the system took {due} in the measurement{because}");
        add(Rule::NothingTaken, (status, reason));
    } else if trial.offered == 0 && trial.workload.publishers > 0 {
        add(
            Rule::NothingMeasured,
            (
                Status::Broken,
                format!(
                    "nothing was measured: no message was due within {} s",
                    trial.duration_s
                ),
            ),
        );
    }
    if trial.expected > 0 && trial.lost == trial.expected {
        add(
            Rule::NothingArrived,
            (
                Status::Broken,
                format!("none of {} expected deliveries arrived", trial.expected),
            ),
        );
    }
}
