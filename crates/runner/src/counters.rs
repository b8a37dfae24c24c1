//! The system's own counts, compared with those of its clients.

use pubgauge_engine::assignment::Brief;
use pubgauge_engine::conductor::{TrialEnd, TrialRecord};
use pubgauge_engine::recording::{FlowRecording, Recording, Traffic};
use pubgauge_figures::model::CountCheck;
use pubgauge_testbed::{SystemCount, SystemCounts};

/// The counts of all clients of a system, or of those of one of its brokers.
pub struct Ours {
    traffic: Traffic,
    sentinels: u64,
}

impl Ours {
    /// The counts of one broker's clients, or of all.
    pub fn from_record(record: &TrialRecord, broker: Option<u32>) -> Self {
        let mut ours = Ours {
            traffic: Traffic::default(),
            sentinels: 0,
        };
        let counted = |r: &&Recording| broker.is_none_or(|broker| r.broker == broker);
        for recording in record.recordings.iter().filter(counted) {
            ours.traffic.add(&recording.traffic);
            ours.sentinels += recording.sentinels;
        }
        ours
    }
}

/// Both comparisons, where the system keeps the counts.
pub fn checks(
    brief: &Brief,
    record: &TrialRecord,
    ours: &Ours,
    name: &str,
    counted: &SystemCounts,
) -> Vec<CountCheck> {
    let Ours { traffic, sentinels } = ours;
    // Sentinels that may have been under way when the fleets closed: neither side knows of each
    // whether the other received it.
    let closing = traffic.closing_due.saturating_sub(traffic.closing_received);
    // Messages that remove last values as a client closes: not every system counts them, and
    // clients that are still connected receive them.
    let parting = traffic.parting;
    let published = counted.published.as_ref().map(|count| {
        // Where only routed messages are counted, sentinels from before the subscriptions are not.
        let early = match count {
            SystemCount::Routed(_) => *sentinels,
            _ => 0,
        };
        let ours = ("the publishers", traffic.handed_over);
        let tolerance = closing.max(early) + parting;
        check("messages published differ", ours, tolerance, (name, count))
    });
    let delivered = counted.delivered.as_ref().map(|count| {
        let ours = ("the subscribers", traffic.received);
        let tolerance = closing + parting * brief.workload.devices.len() as u64;
        check("deliveries differ", ours, tolerance, (name, count))
    });
    let unheard =
        || (0..brief.audience.streams.len() as u32).any(|s| brief.audience.listeners(s) == 0);
    let why = match counted.published {
        Some(SystemCount::Routed(_)) if unheard() => {
            Some("it does not count what nobody is subscribed to".into())
        }
        _ => incomparable(record),
    };
    let mut checks: Vec<CountCheck> = published.into_iter().chain(delivered).collect();
    for check in &mut checks {
        check.not_compared = check.not_compared.take().or_else(|| why.clone());
    }
    checks
}

/// Whether the counts agree already, so that no further reading is needed.
pub fn agree(brief: &Brief, record: &TrialRecord, ours: &Ours, counted: &SystemCounts) -> bool {
    let checks = checks(brief, record, ours, "", counted);
    checks.iter().all(|check| !check.disagrees())
}

fn check(
    what: &str,
    (who, ours): (&str, u64),
    tolerance: u64,
    (name, count): (&str, &SystemCount),
) -> CountCheck {
    let (theirs, not_compared) = match count {
        SystemCount::Messages(n) | SystemCount::Routed(n) => (Some(*n), None),
        SystemCount::NotComparable(why) => (None, Some(format!("not comparable {why}"))),
        SystemCount::NotRead(why) => (None, Some(format!("not read: {why}"))),
    };
    let mut counts = vec![(who.to_owned(), ours)];
    counts.extend(theirs.map(|n| (name.to_owned(), n)));
    CountCheck {
        what: what.to_owned(),
        counts,
        tolerance,
        not_compared,
    }
}

/// Why the counts of a trial may differ without a fault.
fn incomparable(record: &TrialRecord) -> Option<String> {
    let sum = |of: fn(&Recording) -> u64| -> u64 { record.recordings.iter().map(of).sum() };
    if record.outcome != TrialEnd::Completed {
        return Some("the trial was not run to its end".into());
    }
    if sum(|r| r.presence.left) > 0 {
        return Some("clients came and went: what was sent again is counted again".into());
    }
    if sum(|r| r.slow.of.iter().map(|of| of.passed_over).sum()) > 0 {
        return Some(
            "slow subscribers did not get all: systems differ in whether they count what they drop"
                .into(),
        );
    }
    if sum(|r| r.late.of.iter().map(|of| of.lost).sum()) > 0 {
        return Some(
            "late subscribers did not get all: systems differ in whether they count what they drop"
                .into(),
        );
    }
    if sum(|r| r.lost) > 0 {
        return Some("connections were lost: what was sent again is counted again".into());
    }
    let under_way = record.flows.iter().any(|flow| flow.under_way > 0);
    if under_way || sum(|r| r.unsettled) > 0 {
        return Some("messages were still under way when the clients closed".into());
    }
    // The drain waits only for measured messages; where none was taken, it ends at once.
    let on_their_way = |flow: &FlowRecording| {
        flow.messages.unique == 0
            && flow.warm_up_expected > flow.warm_up_unique + flow.warm_up_passed_over
    };
    if record.flows.iter().any(on_their_way) {
        return Some("messages of the warm-up had not come when the clients closed".into());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts of the warm-up may differ by messages under way that the drain did not wait for.
    #[test]
    fn a_warm_up_that_never_ended_is_not_compared() {
        let mut record = TrialRecord::nothing(TrialEnd::Completed, 1);
        assert_eq!(incomparable(&record), None);
        let flow = &mut record.flows[0];
        (flow.warm_up_expected, flow.warm_up_unique) = (66_881, 65_518);
        let why = incomparable(&record).expect("a reason");
        assert!(why.contains("warm-up"), "{why}");
        // Messages that were overtaken are lost, and no longer awaited.
        record.flows[0].warm_up_passed_over = 1_363;
        assert_eq!(incomparable(&record), None);
        // Messages of the measurement arrived: those before them have arrived, or are lost.
        let flow = &mut record.flows[0];
        (flow.warm_up_passed_over, flow.messages.unique) = (0, 1);
        assert_eq!(incomparable(&record), None);
    }
}
