//! Trials that did not run as planned, and trials that measured nothing.

use super::findings::Findings;
use super::{client, thresholds};
use crate::model::Rule;
use crate::model::{Connections, Status, Trial};

/// Rules on the trial itself. Where the client is the reason, the trial is client-bound: the system
/// is not to blame.
pub(super) fn broken(trial: &Trial, client: &client::Load, findings: &mut Findings) {
    let circumstances = &trial.circumstances;
    // A client without descriptors or ports, or one that was stalled while servers waited for it.
    let by_client = match &circumstances.exhausted {
        Some(what) => Some(format!("the client ran out of {what}")),
        None => client.stalled.clone(),
    };
    let blame = |findings: &mut Findings, rule, text: String| match &by_client {
        Some(why) => findings.add(rule, Status::ClientBound, format!("{text}: {why}")),
        None => findings.add(rule, Status::Broken, text),
    };
    if let Some(why) = &circumstances.not_run {
        let text = format!("not run as planned: {why}");
        match circumstances.exhausted {
            Some(_) => blame(findings, Rule::NotRun, text),
            None => findings.add(Rule::NotRun, Status::Broken, text),
        }
    }
    for death in &circumstances.system_died {
        let reason = format!("the system ended during the trial: {death}");
        findings.add(Rule::SystemDied, Status::Broken, reason);
    }
    let Connections {
        planned,
        made,
        lost,
        remade,
        ..
    } = trial.connections;
    if made < planned {
        let reason = format!("{made} of {planned} connections were made");
        blame(findings, Rule::Unconnected, reason);
    }
    if lost > 0 && !circumstances.disconnects_allowed {
        let told = circumstances.not_run.as_deref().unwrap_or_default();
        // What the driver said of the first of them: what a server sent, or that it hung up.
        let first = trial.errors.first().filter(|why| !told.contains(*why));
        let first = first.map_or(String::new(), |why| format!("; first of all {why}"));
        let reason =
            format!("{lost} of {planned} connections were lost, {remade} made again{first}");
        blame(findings, Rule::ConnectionsLost, reason);
    }
    let mut add = |rule, reason: String| findings.add(rule, Status::Broken, reason);
    let odd = &trial.odd;
    if odd.foreign > 0 {
        let what = "deliveries were not of this trial or not for that subscriber";
        add(Rule::Foreign, format!("{} {what}", odd.foreign));
    }
    if odd.corrupt > 0 {
        let reason = format!("{} deliveries had a damaged body", odd.corrupt);
        add(Rule::Corrupt, reason);
    }
    for check in trial.checks.iter().filter(|check| check.disagrees()) {
        let counts = check.counts.iter();
        let counts: Vec<String> = counts.map(|(who, n)| format!("{n} by {who}")).collect();
        let reason = format!("{}: {}", check.what, counts.join(", "));
        add(Rule::CountsDiffer, reason);
    }
    if circumstances.not_run.is_some() {
        return;
    }
    if trial.duration_s <= 0.0 {
        let reason = "nothing was measured: the measurement lasted 0 s".to_owned();
        add(Rule::NothingMeasured, reason);
        return;
    }
    nothing(trial, &by_client, findings);
    let mut add = |rule, reason: String| findings.add(rule, Status::Broken, reason);
    // With a clock error too large for the median, arrivals before the sending time are normal.
    let clocks_count = trial.one_way.is_none() || trial.latency_ns.p50.is_some();
    let &Trial {
        offered,
        published,
        refused,
        not_connected,
        not_sent,
        expected,
        delivered,
        duplicated,
        under_way,
        lost,
        ..
    } = trial;
    if clocks_count && odd.negative as f64 > thresholds::NEGATIVE_SHARE * delivered.max(1) as f64 {
        let early = format!("{} of {delivered} deliveries", odd.negative);
        let reason = format!("{early} came before they were sent: the clocks cannot be trusted");
        add(Rule::Clocks, reason);
    }
    let unique = delivered.checked_sub(duplicated);
    if unique.map(|unique| unique + under_way + lost) != Some(expected) {
        let reason = format!(
            "the counts do not add up: {delivered} delivered - {duplicated} duplicated + {under_way} under way \
             + {lost} lost is not {expected} expected"
        );
        add(Rule::CountsDiffer, reason);
    }
    if published + refused + not_connected + not_sent != offered {
        let reason = format!(
            "the counts do not add up: {published} published + {refused} refused + {not_connected} not connected \
             + {not_sent} not sent is not {offered} offered"
        );
        add(Rule::CountsDiffer, reason);
    }
}

/// Trials in which nothing was due, nothing was taken or nothing arrived.
fn nothing(trial: &Trial, by_client: &Option<String>, findings: &mut Findings) {
    let &Trial {
        offered,
        published,
        expected,
        ..
    } = trial;
    if published == 0 && (offered > 0 || trial.workload.flat_out) {
        let due = match offered {
            0 => "no message".to_owned(),
            offered => format!("none of {offered} messages"),
        };
        // Messages of the warm-up are still being delivered.
        let backlog = trial.at_start.backlog;
        let busy = backlog > 0 && trial.series.iter().any(|s| s.delivered > 0);
        let tried = trial.not_tried < offered || trial.workload.flat_out;
        let (status, because) = match (by_client, busy) {
            (Some(why), _) => (Status::ClientBound, format!(": {why}")),
            (None, _) if !tried && !trial.circumstances.system_in_client => {
                let because = ": the client offered it none of them, because it was behind";
                (Status::ClientBound, because.to_owned())
            }
            (None, true) => {
                let still = format!("it still had {backlog} deliveries of the warm-up to make");
                let because = format!(": {still} when the measurement began");
                (Status::Overloaded, because)
            }
            (None, false) => (Status::Broken, String::new()),
        };
        let reason = format!("the system took {due} in the measurement{because}");
        findings.add(Rule::NothingTaken, status, reason);
    } else if offered == 0 && trial.workload.publishers > 0 {
        let seconds = trial.duration_s;
        let reason = format!("nothing was measured: no message was due within {seconds} s");
        findings.add(Rule::NothingMeasured, Status::Broken, reason);
    }
    if expected > 0 && trial.lost == expected {
        let reason = format!("none of {expected} expected deliveries arrived");
        findings.add(Rule::NothingArrived, Status::Broken, reason);
    }
}
