//! Checks of a worker's reports: it may be on another host, and whatever it says there is an index into nothing of ours.

use crate::assignment::Brief;
use crate::connecting::ConnectRecording;
use crate::failures::{ClientFailure, Failures};
use crate::groups::Got;
use crate::link::allowance::{MOST_THREADS, most_cuts, most_parts, most_records};
use crate::parties::{self, PartiesRecording, PartyRecording};
use crate::recording::{MemberRecording, Recording};
use crate::reports::Report;
use crate::times::Measure;
use pubgauge_workload::Workload;

/// Most tokens that come back at once.
const MOST_TOKENS: u64 = 1 << 24;
/// Most bytes of an address or of an error.
const MOST_TEXT: usize = 64 << 10;
/// Deliveries to one party, at the most: ten million a second for a year.
const MOST_DELIVERIES: u64 = 1 << 48;

/// Checks the indices and the lengths of a report of the trial of `brief`.
///
/// # Errors
/// The value that is out of range.
pub(super) fn check(report: &Report, brief: &Brief) -> Result<(), &'static str> {
    let workload = &brief.workload;
    let flows = workload.flows.len();
    let is_flow = |flow: u32| (flow as usize) < flows;
    let holds = match report {
        Report::Hello { threads, .. } => threads.len() <= MOST_THREADS,
        Report::Counters(counters) => counters.flows.len() <= flows,
        Report::Passed(flow, tokens) | Report::BurstSent(flow, tokens) => {
            is_flow(*flow) && *tokens <= MOST_TOKENS
        }
        Report::Interval(interval) => {
            is_flow(interval.flow)
                && (interval.number as usize) < most_records(workload)
                && interval.part as usize <= 2 * workload.phases.windows.len()
        }
        Report::Ready(addresses) => {
            let devices = workload.devices.len();
            let is_one = |(device, address): &(u32, String)| {
                (*device as usize) < devices && address.len() <= MOST_TEXT
            };
            addresses.len() <= devices && addresses.iter().all(is_one)
        }
        Report::Stuck(_, positions) => {
            let streams = brief.stream_count();
            positions.len() <= streams as usize && positions.iter().all(|(s, _)| *s < streams)
        }
        Report::Proven(pairs) => pairs.iter().all(|(party, _)| is_group(*party, brief)),
        Report::Unproven(streams) => {
            let count = brief.stream_count();
            streams.len() <= count as usize && streams.iter().all(|stream| *stream < count)
        }
        Report::Got(pieces) => pieces.iter().all(|got| is_delivery(got, brief)),
        Report::Recording(recording) => return of_recording(recording, brief),
        Report::Failed(_) | Report::Closing => true,
        Report::Gone(_) => true,
    };
    if holds {
        Ok(())
    } else {
        Err("it reports of what the trial does not have")
    }
}

/// Histograms that a worker hands in of one record at the most: one of each measure of each flow, and, in measurements with
/// windows, of each part. Twice that, because the last record may be handed in once more.
pub(super) fn most_of_record(workload: &Workload) -> usize {
    2 * Measure::ALL.len() * workload.flows.len() * most_parts(&workload.phases)
}

fn is_group(party: u32, brief: &Brief) -> bool {
    let party = brief.audience.parties.get(party as usize);
    party.is_some_and(|party| party.group.is_some())
}

fn is_delivery(got: &Got, brief: &Brief) -> bool {
    let place = &got.place;
    let is_to_member = || {
        let party = &brief.audience.parties[place.party as usize];
        (place.member as usize) < party.members.len() && party.is_entitled(place.stream)
    };
    is_group(place.party, brief) && is_to_member() && got.is_sound()
}

fn of_recording(recording: &Recording, brief: &Brief) -> Result<(), &'static str> {
    let workload = &brief.workload;
    let flows = workload.flows.len();
    let is_member = |member: &MemberRecording| {
        let flow = workload.flows.get(member.flow as usize);
        flow.is_some_and(|flow| (member.subscriber as usize) < flow.subscribers.len())
    };
    let lists = [
        recording.flows.len(),
        recording.series.len(),
        recording.bursts.len(),
        recording.parts.len(),
    ];
    let of_parts = |parts: &crate::parts::FlowParts| parts.of.len().max(parts.by.len());
    let (most_parts, most_cuts) = (most_parts(&workload.phases), most_cuts(workload));
    if lists.iter().any(|length| *length > flows)
        || recording.series.iter().any(|of| of.len() > most_cuts)
        || recording.parts.iter().map(of_parts).any(|n| n > most_parts)
        || !recording.members.iter().all(is_member)
    {
        return Err("its recording is of another trial");
    }
    if !are_parties(&recording.parties, brief) {
        return Err("its recording has parties that the trial does not have");
    }
    let streams = brief.stream_count();
    let codes = usize::from(u16::MAX) + 1;
    let rejections = [&recording.rejections, &recording.early_rejections];
    if recording.grants.len() > Recording::MOST_GRANTS
        || rejections.iter().any(|of| of.len() > flows * codes)
        || rejections
            .into_iter()
            .flatten()
            .any(|r| r.flow as usize >= flows)
    {
        return Err("its recording has rejections or grants that the trial cannot have");
    }
    if recording.connecting.interruptions.len() > ConnectRecording::MOST_INTERRUPTIONS
        || recording.gaps.len() > Recording::MOST_GAPS
        || recording.outages.len() > Recording::MOST_OUTAGES
        || recording.outages.iter().any(|o| o.stream >= streams)
    {
        return Err("its recording has outages of publishers that the trial does not have");
    }
    let long = |failure: &ClientFailure| failure.why.len().max(failure.first.len()) > MOST_TEXT;
    if recording.failures.iter().any(long) || recording.failures.len() > Failures::MOST {
        Err("its recording has more failures than are kept")
    } else {
        Ok(())
    }
}

/// Whether a trial can have these parties, and numbers of which the sums over all workers are numbers too.
fn are_parties(of: &PartiesRecording, brief: &Brief) -> bool {
    let parties = &brief.audience.parties;
    let is_party = |party: &PartyRecording| {
        let known = parties.get(party.party as usize);
        known.is_some_and(|known| known.members.first() == Some(&party.first))
            && party.unique.max(party.passed_over) <= MOST_DELIVERIES
            && party.lowest.len() <= parties::SLOTS
            && party.latencies.len() <= parties::BUCKETS
            && party
                .latencies
                .iter()
                .all(|(bucket, _)| (*bucket as usize) < parties::BUCKETS)
    };
    of.count <= parties.len() as u64
        && of.of.len() as u64 <= of.count
        && of.lowest.len() <= parties::SLOTS
        && of.of.iter().all(is_party)
}

#[cfg(test)]
mod tests {
    use pubgauge_workload::{Arrivals, Workload};

    use super::*;
    use crate::groups;
    use crate::live::{FlowCounters, LiveCounters};
    use crate::recording::tests::recording;
    use crate::recording::{FlowRecording, Outage};
    use crate::times::{Interval, Measure, histogram};

    /// Of a trial of one flow with a publisher and a subscriber, one stream, and no windows.
    #[test]
    fn what_the_trial_does_not_have_is_refused() {
        let rate = Arrivals::Periodic { per_s: 10.0 };
        let brief = Brief::new(Workload::fan(1, 1, rate)).unwrap();
        let interval = |flow, number, part| {
            Report::Interval(Interval {
                flow,
                measure: Measure::Latency,
                number,
                part,
                values: histogram().into(),
            })
        };
        let counters = |flows| {
            Report::Counters(Box::new(LiveCounters {
                flows: vec![FlowCounters::default(); flows],
                ..LiveCounters::default()
            }))
        };
        let of = |change: fn(&mut Recording)| {
            let mut recording = recording();
            change(&mut recording);
            Report::Recording(Box::new(recording))
        };
        let member = |flow, subscriber| MemberRecording {
            party: 0,
            flow,
            subscriber,
            unique: 1,
        };
        let with = |member| {
            let mut recording = recording();
            recording.members.push(member);
            Report::Recording(Box::new(recording))
        };
        let party = |change: fn(&mut PartyRecording)| {
            let mut party = PartyRecording::default();
            change(&mut party);
            let mut recording = recording();
            recording.parties.count = 1;
            recording.parties.of.push(party);
            Report::Recording(Box::new(recording))
        };
        let mut in_group = Workload::fan(1, 1, Arrivals::Periodic { per_s: 10.0 });
        in_group.flows[0].subscribers[0].group = Some("team".into());
        let grouped = Brief::new(in_group).unwrap();
        let got = |party, member, stream, sequence| {
            let place = groups::DeliveryClass {
                party,
                member,
                stream,
                measured: true,
                cut: 0,
                bound: 0,
                part: 0,
                burst: None,
            };
            Report::Got(vec![Got::new(place, [sequence])])
        };
        assert_eq!(check(&got(0, 0, 0, 7), &grouped), Ok(()));
        assert_eq!(check(&Report::Proven(vec![(0, 0)]), &grouped), Ok(()));
        for wrong in [
            got(1, 0, 0, 7),
            got(0, 1, 0, 7),
            got(0, 0, 1, 7),
            got(0, 0, 0, groups::MOST_MESSAGES),
            Report::Proven(vec![(1, 0)]),
        ] {
            assert!(check(&wrong, &grouped).is_err(), "{wrong:?}");
        }
        let address = |device: u32, length| Report::Ready(vec![(device, "a".repeat(length))]);
        for fine in [
            interval(0, 79, 0),
            counters(1),
            Report::Passed(0, 1),
            address(1, 20),
            Report::Stuck(1, vec![(0, [1, 1])]),
            Report::Unproven(vec![0]),
            of(|_| {}),
            with(member(0, 0)),
            party(|_| {}),
        ] {
            assert_eq!(check(&fine, &brief), Ok(()), "{fine:?}");
        }
        for wrong in [
            interval(1, 0, 0),
            interval(u32::MAX, 0, 0),
            interval(0, u32::MAX, 0),
            interval(0, 100, 0),
            interval(0, 0, 1),
            counters(2),
            Report::Passed(1, 1),
            Report::Passed(0, u64::MAX),
            Report::BurstSent(7, 1),
            // The trial has no group.
            got(0, 0, 0, 7),
            address(2, 20),
            address(0, 1 << 20),
            Report::Stuck(1, vec![(1, [1, 1])]),
            Report::Unproven(vec![1]),
            Report::Unproven(vec![0, 0]),
            Report::Stuck(1, vec![(0, [1, 1]); 2]),
            of(|recording| recording.flows.push(FlowRecording::default())),
            of(|recording| recording.series.push(Vec::new())),
            of(|recording| recording.failures = vec![ClientFailure::default(); 51]),
            of(|recording| {
                recording.outages.push(Outage {
                    stream: 1,
                    from: 0,
                    to: 1,
                })
            }),
            of(|recording| recording.gaps = vec![(0, 1); Recording::MOST_GAPS + 1]),
            with(member(1, 0)),
            with(member(0, 1)),
            with(member(0, u32::MAX)),
            party(|party| party.party = 1),
            party(|party| party.first = (0, 1)),
            party(|party| party.unique = u64::MAX),
            party(|party| party.passed_over = u64::MAX),
            party(|party| party.lowest = vec![None; parties::SLOTS + 1]),
            party(|party| party.latencies = vec![(parties::BUCKETS as u32, 1)]),
            of(|recording| recording.parties.count = 2),
        ] {
            assert!(check(&wrong, &brief).is_err(), "{wrong:?}");
        }
    }
}
