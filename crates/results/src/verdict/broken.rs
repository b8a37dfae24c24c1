//! Trials that did not run as planned, and trials that measured nothing.

use pubgauge_figures::model::{
    ClientFailure, Connections, Evidence, FailureKind, Reason, Rule, Status, Trial,
};
use pubgauge_figures::{Messages, Shortfall};

use super::findings::Findings;
use super::{acknowledgements, client, thresholds};

/// Rules on the trial itself. Where the client is the reason, the trial is client-bound: the system
/// is not to blame.
pub(super) fn broken(trial: &Trial, client: &client::Load, findings: &mut Findings) {
    let circumstances = &trial.circumstances;
    // A client without descriptors or ports, or one that was stalled while servers waited for it.
    let by_client = match &circumstances.exhausted {
        Some(what) => Some(format!("the client ran out of {what}")),
        None => client.stopped.clone(),
    };
    not_as_planned(trial, by_client.as_deref(), findings);
    odd_deliveries(trial, findings);
    if circumstances.not_run.is_some() {
        return;
    }
    if trial.duration_s <= 0.0 {
        let text = "nothing was measured: the measurement lasted 0 s";
        let reason = Reason::new(Rule::NothingMeasured, text);
        let reason = reason.figure(Evidence::Measured, trial.duration_s);
        findings.add(Status::Broken, reason);
        return;
    }
    nothing(trial, &by_client, findings);
    odd_clocks(trial, findings);
    counts_that_do_not_add_up(trial, findings);
}

/// A run that ended early, servers that ended, and connections that were not made or were lost. `by_client` says why the client
/// is the reason, if it is.
fn not_as_planned(trial: &Trial, by_client: Option<&str>, findings: &mut Findings) {
    let circumstances = &trial.circumstances;
    let blame = |findings: &mut Findings, mut reason: Reason| match by_client {
        Some(why) => {
            reason.text = format!("{}: {why}", reason.text);
            findings.blame_client(reason);
        }
        None => findings.add(Status::Broken, reason),
    };
    if let Some(why) = &circumstances.not_run {
        let kinds = [FailureKind::Rejected, FailureKind::Subscription];
        let words = most_frequent_failure(trial, &kinds);
        let reason = Reason::new(Rule::NotRun, format!("not run as planned: {why}{words}"));
        match circumstances.exhausted {
            Some(_) => blame(findings, reason),
            None => findings.add(Status::Broken, reason),
        }
    }
    for death in &circumstances.system_died {
        let text = format!("the system ended during the trial: {death}");
        findings.add(Status::Broken, Reason::new(Rule::SystemDied, text));
    }
    let Connections {
        planned,
        made,
        lost,
        remade,
        ..
    } = trial.connections;
    if made < planned {
        let words = most_frequent_failure(trial, &[FailureKind::Refused]);
        let text = format!("{made} of {planned} connections were made{words}");
        let reason = Reason::new(Rule::Unconnected, text);
        blame(
            findings,
            reason
                .count(Evidence::ConnectionsMade, made)
                .count(Evidence::ConnectionsPlanned, planned),
        );
    }
    // The fate of slow subscribers is told apart.
    let slow = trial.slow.as_ref().map_or(0, |slow| slow.disconnects);
    let lost = lost.saturating_sub(slow);
    if lost > 0 && !circumstances.disconnects_allowed {
        let words = most_frequent_failure(trial, &[FailureKind::Lost]);
        let text = format!("{lost} of {planned} connections were lost, {remade} made again{words}");
        let reason = Reason::new(Rule::ConnectionsLost, text);
        blame(findings, reason.count(Evidence::ConnectionsLost, lost));
    }
}

/// Deliveries that are nobody's or damaged, and counts on which those who counted disagree.
fn odd_deliveries(trial: &Trial, findings: &mut Findings) {
    let mut add = |reason| findings.add(Status::Broken, reason);
    let odd = &trial.odd;
    if odd.foreign > 0 {
        let what = "deliveries were not of this trial or not for that subscriber";
        let reason = Reason::new(Rule::Foreign, format!("{} {what}", odd.foreign));
        add(reason.count(Evidence::Foreign, odd.foreign));
    }
    if odd.corrupt > 0 {
        let text = match odd.compared - odd.compared_whole.min(odd.compared) {
            0 => format!("{} deliveries had a damaged body", odd.corrupt),
            ends => format!(
                "{} deliveries had a damaged body, at least: of {ends} large ones only the ends were compared",
                odd.corrupt
            ),
        };
        add(Reason::new(Rule::Corrupt, text).count(Evidence::Corrupt, odd.corrupt));
    }
    for check in trial.checks.iter().filter(|check| check.disagrees()) {
        let counts = check.counts.iter();
        let counts: Vec<String> = counts.map(|(who, n)| format!("{n} by {who}")).collect();
        let text = format!("{}: {}", check.what, counts.join(", "));
        let counts = check.counts.iter();
        let reason = Reason::new(Rule::CountsDiffer, text);
        add(counts.fold(reason, |reason, (who, n)| reason.counted_by(who, *n)));
    }
}

/// Deliveries that came before they were sent.
fn odd_clocks(trial: &Trial, findings: &mut Findings) {
    // With a clock error too large for the median, arrivals before the sending time are normal.
    let clocks_count = trial.one_way.is_none() || trial.messages.latency_ns.p50.is_some();
    let (negative, delivered) = (trial.odd.negative, trial.messages.delivered);
    let share = negative as f64 / delivered.max(1) as f64;
    if clocks_count && share > thresholds::NEGATIVE_SHARE {
        let early = format!("{negative} of {delivered} deliveries");
        let text = format!("{early} came before they were sent: the clocks cannot be trusted");
        let reason = Reason::new(Rule::Clocks, text);
        let reason = reason.limited(Evidence::EarlyShare, share, thresholds::NEGATIVE_SHARE);
        findings.add(Status::Broken, reason);
    }
}

/// Messages and deliveries of which the fates, added up, are not as many.
fn counts_that_do_not_add_up(trial: &Trial, findings: &mut Findings) {
    let mut add = |reason| findings.add(Status::Broken, reason);
    let &Messages {
        offered,
        published,
        refused,
        not_connected,
        not_sent,
        expected,
        delivered,
        duplicated,
        missed,
        ..
    } = &trial.messages;
    let &Shortfall {
        under_way, lost, ..
    } = &trial.shortfall;
    let unique = delivered.checked_sub(duplicated);
    // Nobody expects what was rejected; a system that delivers it all the same makes more of it than there was to be.
    let rejected: u64 = trial.shortfall.rejections.iter().map(|r| r.messages).sum();
    let unforeseen = rejected * u64::from(trial.workload.subscribers.max(1));
    let found = unique.map(|unique| unique + missed + under_way + lost);
    if !found.is_some_and(|found| (expected..=expected + unforeseen).contains(&found)) {
        let text = format!(
            "the counts do not add up: {delivered} delivered - {duplicated} duplicated + {missed} missed + {under_way} \
             under way + {lost} lost is not {expected} expected"
        );
        let reason = Reason::new(Rule::CountsDiffer, text);
        let terms = [
            (Evidence::Delivered, delivered),
            (Evidence::Duplicated, duplicated),
            (Evidence::Missed, missed),
            (Evidence::UnderWay, under_way),
            (Evidence::Lost, lost),
            (Evidence::Expected, expected),
        ];
        add(counted(reason, &terms));
    }
    if published + refused + not_connected + not_sent != offered {
        let text = format!(
            "the counts do not add up: {published} published + {refused} refused + {not_connected} not connected \
             + {not_sent} not sent is not {offered} offered"
        );
        let reason = Reason::new(Rule::CountsDiffer, text);
        let terms = [
            (Evidence::Published, published),
            (Evidence::Refused, refused),
            (Evidence::NotConnected, not_connected),
            (Evidence::NotSent, not_sent),
            (Evidence::Offered, offered),
        ];
        add(counted(reason, &terms));
    }
}

/// The most frequent failure of clients of these kinds, as the end of a clause, unless the trial's end tells it already.
fn most_frequent_failure(trial: &Trial, kinds: &[FailureKind]) -> String {
    let end = trial.circumstances.not_run.as_deref().unwrap_or_default();
    let of_kind = |failure: &&ClientFailure| kinds.contains(&failure.kind);
    let each = trial.client_failures.iter().filter(of_kind);
    // Of those that are as frequent the first.
    let most = each.reduce(|most, next| if next.count > most.count { next } else { most });
    most.filter(|failure| !end.contains(&failure.why))
        .map_or(String::new(), |failure| format!("; {failure}"))
}

/// With all of these counts.
fn counted(reason: Reason, counts: &[(Evidence, u64)]) -> Reason {
    let all = counts.iter();
    all.fold(reason, |reason, (figure, count)| {
        reason.count(*figure, *count)
    })
}

/// Why messages were refused, if any was.
fn refused_because(trial: &Trial) -> Option<String> {
    let all = trial.messages.refused;
    if all > 0 && trial.shortfall.too_large == all {
        return Some(acknowledgements::too_large(trial));
    }
    (all > 0).then(|| acknowledgements::by_whom(trial, &trial.shortfall, all))
}

/// Trials in which nothing was due, nothing was taken or nothing arrived.
fn nothing(trial: &Trial, by_client: &Option<String>, findings: &mut Findings) {
    let &Messages {
        offered,
        published,
        expected,
        ..
    } = &trial.messages;
    if published == 0 && (offered > 0 || trial.workload.flat_out) {
        let due = match offered {
            0 => "no message".to_owned(),
            offered => format!("none of {offered} messages"),
        };
        // Messages of the warm-up are still being delivered.
        let backlog = trial.at_start.backlog;
        let busy = backlog > 0 && trial.series.iter().any(|s| s.traffic.delivered > 0);
        let tried = trial.shortfall.not_tried < offered || trial.workload.flat_out;
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
            (None, false) => match refused_because(trial) {
                Some(why) => (Status::Broken, format!(": {why}")),
                None => (Status::Broken, String::new()),
            },
        };
        let text = format!("the system took {due} in the measurement{because}");
        let reason = Reason::new(Rule::NothingTaken, text);
        findings.add(
            status,
            reason
                .count(Evidence::Published, published)
                .count(Evidence::Offered, offered),
        );
    } else if offered == 0 && trial.workload.publishers > 0 {
        let seconds = trial.duration_s;
        let text = format!("nothing was measured: no message was due within {seconds} s");
        let reason = Reason::new(Rule::NothingMeasured, text).count(Evidence::Offered, offered);
        findings.add(Status::Broken, reason);
    }
    if expected > 0 && trial.shortfall.lost == expected {
        let (status, because) = match by_client {
            Some(why) => (Status::ClientBound, format!(": {why}")),
            None => (Status::Broken, String::new()),
        };
        let text = format!("none of {expected} expected deliveries arrived{because}");
        let reason = Reason::new(Rule::NothingArrived, text).count(Evidence::Expected, expected);
        findings.add(status, reason);
    }
}
