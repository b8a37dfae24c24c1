//! Slow subscribers: what became of their messages, over all workers.

use pubgauge_engine::conductor::DrainEnd;
use pubgauge_engine::recording::SlowParty;
use pubgauge_figures::party::PartyName;
use pubgauge_figures::slow::{SlowFigures, SlowSubscriber};
use pubgauge_workload::{Subscriber, Workload};

use crate::parties;
use crate::record_sums::RecordSums;

/// Subscribers that are named.
const MOST_NAMED: usize = 100;
/// Share of what was due to a subscriber from which it fell behind.
const BEHIND_SHARE: f64 = 0.01;

/// The slow subscribers of a trial; `None` where there are none.
pub fn of_trial(sums: &RecordSums<'_>) -> Option<SlowFigures> {
    let recordings = sums.record.recordings.iter();
    let parties: Vec<&SlowParty> = recordings.flat_map(|r| &r.slow.of).collect();
    if parties.is_empty() {
        return None;
    }
    let counts = &sums.sum.slow;
    let each = each_due(sums.workload, &parties, counts.expected);
    let cut_short = sums.record.drain.ended == DrainEnd::CutShort;
    let of: Vec<Fate> = (parties.iter())
        .map(|party| Fate::new(party, each, cut_short))
        .collect();
    let missing = (counts.expected).saturating_sub(counts.taken + counts.behind);
    let under_way = match each {
        Some(_) => of.iter().map(|fate| fate.under_way).sum(),
        None if cut_short => {
            missing.saturating_sub(of.iter().map(|fate| fate.of.passed_over).sum())
        }
        None => 0,
    };
    let mut behind: Vec<&Fate> = of.iter().filter(|fate| fate.fell_behind()).collect();
    behind.sort_by_key(|fate| std::cmp::Reverse((fate.of.disconnects, fate.not_taken())));
    Some(SlowFigures {
        subscribers: of.len() as u64,
        fell_behind: behind.len() as u64,
        expected: counts.expected,
        taken: counts.taken,
        behind: counts.behind,
        lost: missing.saturating_sub(under_way),
        under_way,
        duplicated: counts.duplicated,
        disconnects: of.iter().map(|fate| fate.of.disconnects).sum(),
        latency_ns: sums.slow_latency(),
        of: (behind.into_iter().take(MOST_NAMED))
            .map(|fate| fate.figures(sums.workload))
            .collect(),
    })
}

/// How many deliveries were due to each of the slow subscribers, where all of them hear the same.
fn each_due(workload: &Workload, parties: &[&SlowParty], expected: u64) -> Option<u64> {
    let heard = |party: &&SlowParty| {
        let subscriber = subscriber(workload, party);
        let broker = workload.devices[subscriber.device as usize].broker;
        (broker, &subscriber.filters)
    };
    let first = parties.first().map(heard)?;
    let same = parties.iter().all(|party| heard(party) == first);
    same.then(|| expected / parties.len() as u64)
}

fn subscriber<'a>(workload: &'a Workload, party: &SlowParty) -> &'a Subscriber {
    let (flow, subscriber) = party.subscriber;
    &workload.flows[flow as usize].subscribers[subscriber as usize]
}

/// The fate of the messages to one slow subscriber.
struct Fate {
    of: SlowParty,
    /// `None` where it is not known how many were due to it.
    lost: Option<u64>,
    under_way: u64,
}

impl Fate {
    fn new(party: &SlowParty, due: Option<u64>, cut_short: bool) -> Fate {
        let missing = due.map(|due| due.saturating_sub(party.taken + party.behind));
        // Nothing is on its way to who was thrown out.
        let comes = cut_short && party.disconnects == 0;
        let under_way = match missing {
            Some(missing) if comes => missing.saturating_sub(party.passed_over),
            _ => 0,
        };
        let known = (party.disconnects == 0).then_some(party.passed_over);
        Fate {
            of: *party,
            lost: missing.map(|missing| missing - under_way).or(known),
            under_way,
        }
    }

    fn not_taken(&self) -> u64 {
        self.of.behind + self.lost.unwrap_or(self.of.passed_over) + self.under_way
    }

    fn fell_behind(&self) -> bool {
        let not_taken = self.not_taken();
        let due = self.of.taken + not_taken;
        self.of.disconnects > 0 || not_taken > 1 && not_taken as f64 > BEHIND_SHARE * due as f64
    }

    fn figures(&self, workload: &Workload) -> SlowSubscriber {
        SlowSubscriber {
            party: self.name(workload),
            taken: self.of.taken,
            behind: self.of.behind,
            lost: self.lost,
            disconnects: self.of.disconnects,
        }
    }

    fn name(&self, workload: &Workload) -> PartyName {
        parties::name(workload, self.of.subscriber)
    }
}
