//! What the system counted itself, compared with what its clients say.

use pubgauge_engine::assignment::Brief;
use pubgauge_engine::conductor::{Outcome, TrialRecord};
use pubgauge_engine::recording::{FlowRecording, Recording, Traffic};
use pubgauge_results::model::CountCheck;
use pubgauge_testbed::{Count, Counted};

/// What the clients of a system say, or those of one of its brokers.
pub struct Ours {
    traffic: Traffic,
    sentinels: u64,
}

impl Ours {
    /// Of all brokers.
    pub fn of_all(record: &TrialRecord) -> Self {
        Ours::of(record.recordings.iter())
    }

    /// Of one broker.
    pub fn of_broker(record: &TrialRecord, broker: u32) -> Self {
        Ours::of(record.recordings.iter().filter(|r| r.broker == broker))
    }

    fn of<'a>(recordings: impl Iterator<Item = &'a Recording>) -> Self {
        let mut ours = Ours {
            traffic: Traffic::default(),
            sentinels: 0,
        };
        for recording in recordings {
            ours.traffic.add(&recording.traffic);
            ours.sentinels += recording.sentinels;
        }
        ours
    }
}

/// Both comparisons, as far as the system keeps the counts.
pub fn checks(
    brief: &Brief,
    record: &TrialRecord,
    ours: &Ours,
    name: &str,
    counted: &Counted,
) -> Vec<CountCheck> {
    let Ours { traffic, sentinels } = ours;
    // Sentinels that may have been under way when the fleets closed: neither side knows of each
    // whether the other had it.
    let closing = traffic.closing_due.saturating_sub(traffic.closing_received);
    // Messages that take last values away as a client closes: not every system counts them, and
    // whoever is still there hears them.
    let parting = traffic.parting;
    let published = counted.published.as_ref().map(|count| {
        // Where only what was routed is counted, sentinels from before the subscriptions are not.
        let early = match count {
            Count::Routed(_) => *sentinels,
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
        || (0..brief.audience.streams.len() as u32).any(|s| brief.audience.fan_out(s) == 0);
    let why = match counted.published {
        Some(Count::Routed(_)) if unheard() => {
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

/// Whether a reading agrees already, so that no other is needed.
pub fn agree(brief: &Brief, record: &TrialRecord, ours: &Ours, counted: &Counted) -> bool {
    let checks = checks(brief, record, ours, "", counted);
    checks.iter().all(|check| !check.disagrees())
}

fn check(
    what: &str,
    (who, ours): (&str, u64),
    tolerance: u64,
    (name, count): (&str, &Count),
) -> CountCheck {
    let (theirs, not_compared) = match count {
        Count::Messages(n) | Count::Routed(n) => (Some(*n), None),
        Count::NotComparable(why) => (None, Some(format!("not comparable {why}"))),
        Count::NotRead(why) => (None, Some(format!("not read: {why}"))),
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
    if record.outcome != Outcome::Completed {
        return Some("the trial was not run to its end".into());
    }
    if sum(|r| r.lost) > 0 {
        return Some("connections were lost: what was sent again is counted again".into());
    }
    let under_way = record.flows.iter().any(|flow| flow.under_way > 0);
    if under_way || sum(|r| r.unsettled) > 0 {
        return Some("messages were still under way when the clients closed".into());
    }
    // The drain waits for measured messages alone; where none was taken, it is over at once.
    let on_their_way = |flow: &FlowRecording| {
        flow.unique == 0 && flow.warm_up_expected > flow.warm_up_unique + flow.warm_up_passed_over
    };
    if record.flows.iter().any(on_their_way) {
        return Some("messages of the warm-up had not come when the clients closed".into());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts of the warm-up may differ by what was on its way when nothing else was waited for.
    #[test]
    fn a_warm_up_that_never_ended_is_not_compared() {
        let mut record = TrialRecord::nothing(Outcome::Completed, 1);
        assert_eq!(incomparable(&record), None);
        let flow = &mut record.flows[0];
        (flow.warm_up_expected, flow.warm_up_unique) = (66_881, 65_518);
        let why = incomparable(&record).expect("a reason");
        assert!(why.contains("warm-up"), "{why}");
        // What was passed over is lost, and awaited no longer.
        record.flows[0].warm_up_passed_over = 1_363;
        assert_eq!(incomparable(&record), None);
        // Messages of the measurement came: those before them have come, or are lost.
        let flow = &mut record.flows[0];
        (flow.warm_up_passed_over, flow.unique) = (0, 1);
        assert_eq!(incomparable(&record), None);
    }
}
