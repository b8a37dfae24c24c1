//! Subscribers, and groups that share: what is known of each becomes a few figures of the worst.

use std::collections::{BTreeMap, BTreeSet};

use pubgauge_engine::conductor::TrialRecord;
use pubgauge_engine::parties::{PartyRecording, bucket_from, lower};
use pubgauge_figures::party::{PartyCourse, PartyFigures, PartyLoss, PartyName, SlowestParty};
use pubgauge_workload::Workload;

/// Courses that are kept.
const MOST_RISING: usize = 16;
/// Rise of a latency as a share of the time that passed, from which its course is kept. The verdict asks for more.
const RISES: f64 = 0.01;
/// Percentiles of which the slowest party is named.
const PERCENTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99_9", 0.999)];
/// Chance among all parties that a percentile is lower than said.
const CHANCE: f64 = 0.01;

/// The parties of a trial; `None` where it has fewer than two. `one_clock`: latencies are of one clock, and can be told of
/// each party.
pub fn of_trial(
    workload: &Workload,
    record: &TrialRecord,
    one_clock: bool,
) -> Option<PartyFigures> {
    let workers = || record.recordings.iter().map(|recording| &recording.parties);
    let mut parties: BTreeMap<u32, PartyRecording> = BTreeMap::new();
    let mut handed_in = 0;
    let (mut fastest, mut slot) = (Vec::new(), 0);
    for of_worker in workers().filter(|of_worker| of_worker.slot > 0) {
        slot = of_worker.slot;
        lower(&mut fastest, &of_worker.lowest);
        for party in &of_worker.of {
            handed_in += 1;
            match parties.get_mut(&party.party) {
                Some(known) => known.add(party),
                None => {
                    parties.insert(party.party, party.clone());
                }
            }
        }
    }
    // A group has members on several workers.
    let again = handed_in - parties.len() as u64;
    let count = workers().map(|of_worker| of_worker.count).sum::<u64>() - again;
    if count < 2 || slot == 0 {
        return None;
    }
    let name = |party: &PartyRecording| name(workload, party.first);
    let mut rising: Vec<(u64, &PartyRecording)> = parties
        .values()
        .map(|party| (rise(&party.lowest, &fastest), party))
        .filter(|(rise, _)| *rise as f64 >= RISES * record.duration() as f64 * 2.0 / 3.0)
        .collect();
    rising.sort_by_key(|(rise, party)| (std::cmp::Reverse(*rise), party.party));
    let rising: Vec<PartyCourse> = rising
        .into_iter()
        .take(MOST_RISING)
        .map(|(_, party)| PartyCourse {
            party: name(party),
            deliveries: party.unique,
            lowest_ns: party.lowest.clone(),
        })
        .collect();
    let losing = || parties.values().filter(|party| party.passed_over > 0);
    let lost_most = losing().max_by_key(|party| (party.passed_over, party.party));
    Some(PartyFigures {
        count,
        slot_s: slot as f64 / 1e9,
        lowest_ns: if rising.is_empty() {
            Vec::new()
        } else {
            fastest
        },
        rising,
        lost_most: lost_most.map(|party| PartyLoss {
            party: name(party),
            lost: party.passed_over,
            deliveries: party.unique,
            others: losing().count() as u64 - 1,
        }),
        slowest: if one_clock {
            let parties = &parties;
            let flows: BTreeSet<_> = parties.values().map(|party| party.first.0).collect();
            let each = flows.into_iter().flat_map(move |flow| {
                let of_flow = move || parties.values().filter(move |party| party.first.0 == flow);
                PERCENTILES
                    .into_iter()
                    .filter_map(move |(percentile, quantile)| {
                        slowest(of_flow(), quantile, count, percentile, name)
                    })
            });
            each.collect()
        } else {
            Vec::new()
        },
    })
}

/// The name of a party whose first member is this subscriber, as (index into the flows, index into the flow's subscribers).
pub fn name(workload: &Workload, (flow, subscriber): (u32, u32)) -> PartyName {
    let flow = &workload.flows[flow as usize];
    let subscriber = &flow.subscribers[subscriber as usize];
    let device = workload.devices.get(subscriber.device as usize);
    let brokers = workload.devices.iter().map(|device| device.broker).max();
    let several = |number: Option<u32>| number.is_some_and(|number| number > 0);
    PartyName {
        name: (subscriber.group.clone())
            .or(device.map(|device| device.name.clone()))
            .unwrap_or_default(),
        is_group: subscriber.group.is_some(),
        flow: (workload.flows.len() > 1).then(|| flow.name.clone()),
        broker: device
            .map(|device| device.broker + 1)
            .filter(|_| several(brokers)),
    }
}

/// By how much a course rose beyond that of the fastest party, from the lowest of its first third to that of its last, ns.
fn rise(course: &[Option<u64>], fastest: &[Option<u64>]) -> u64 {
    let beyond: Vec<Option<u64>> = course
        .iter()
        .zip(fastest)
        .map(|(own, fastest)| Some((*own)?.saturating_sub((*fastest)?)))
        .collect();
    let third = beyond.len() / 3;
    let lowest = |part: &[Option<u64>]| part.iter().flatten().copied().min();
    let ends = (
        lowest(&beyond[..third]),
        lowest(&beyond[beyond.len() - third..]),
    );
    match ends {
        (Some(first), Some(last)) => last.saturating_sub(first),
        _ => 0,
    }
}

/// The party of which a quantile of the latencies is highest for certain.
fn slowest<'a>(
    parties: impl Iterator<Item = &'a PartyRecording>,
    quantile: f64,
    count: u64,
    percentile: &str,
    name: impl Fn(&PartyRecording) -> PartyName,
) -> Option<SlowestParty> {
    let chance = CHANCE / count as f64;
    let at_least = parties.filter_map(|party| Some((at_least(party, quantile, chance)?, party)));
    let (at_least_ns, party) = at_least.max_by_key(|(at_least, party)| (*at_least, party.party))?;
    Some(SlowestParty {
        percentile: percentile.to_owned(),
        party: name(party),
        deliveries: party.unique,
        at_least_ns,
    })
}

/// The lower bound of a quantile of a party's latencies: the largest bound that so many of them exceed that, were the
/// quantile lower, this would come with no more than `chance`. Lost messages are later than all.
fn at_least(party: &PartyRecording, quantile: f64, chance: f64) -> Option<u64> {
    let counted: u64 = party
        .latencies
        .iter()
        .map(|(_, count)| u64::from(*count))
        .sum();
    if counted == 0 {
        return None;
    }
    let all = counted + party.passed_over;
    let mut beyond = party.passed_over;
    for (bucket, count) in party.latencies.iter().rev() {
        beyond += u64::from(*count);
        if chance_of(beyond, all, 1.0 - quantile) <= chance {
            return Some(bucket_from(*bucket));
        }
    }
    None
}

/// The chance that `hits` or more of `all` come out where each has the chance `each`, at the most (Chernoff's bound).
fn chance_of(hits: u64, all: u64, each: f64) -> f64 {
    let (n, share) = (all as f64, hits as f64 / all as f64);
    if share <= each {
        return 1.0;
    }
    let term = |p: f64, q: f64| if p > 0.0 { p * (p / q).ln() } else { 0.0 };
    let distance = term(share, each) + term(1.0 - share, 1.0 - each);
    (-n * distance).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_late_message_of_a_few_does_not_make_a_percentile_late() {
        // Bucket 100 begins at 2.6 ms.
        let party = |late: u32, all: u32| PartyRecording {
            latencies: vec![(3, all - late), (100, late)],
            ..PartyRecording::default()
        };
        let slow = |late, all, parties: f64| {
            at_least(&party(late, all), 0.99, CHANCE / parties) == Some(bucket_from(100))
        };
        assert!(!slow(1, 20, 100.0));
        assert!(slow(6, 20, 100.0));
        assert!(!slow(10, 1_000, 1.0));
        assert!(slow(40, 1_000, 100.0));
        assert!(slow(20, 20, 1_000.0));
        let lossy = PartyRecording {
            passed_over: 50,
            latencies: vec![(3, 1_000)],
            ..PartyRecording::default()
        };
        assert_eq!(at_least(&lossy, 0.99, 1e-4), Some(bucket_from(3)));
    }
}
