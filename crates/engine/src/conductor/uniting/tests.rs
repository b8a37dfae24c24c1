use std::sync::Arc;
use std::sync::mpsc::channel;

use proptest::prelude::*;
use pubgauge_driver::{ClientId, Clock, Delivery, Events, Filler, Header, Mark, Target};
use pubgauge_simulator::SimulatedDriver;
use pubgauge_workload::{Arrivals, Window, Workload};

use super::*;
use crate::assignment::{Assignment, Role};
use crate::context::Context;
use crate::groups::on_several;
use crate::receiving::Receiving;
use crate::recording::tests::recording;
use crate::reports::Outbox;
use crate::timetable::Timetable;

const MARK: Mark = Mark::from_seed(3);
const MEMBERS: u32 = 4;
/// Length of a record of the series, ns.
const RECORD: u64 = 1_000;
/// The record in which the first delivery comes, later than the last message was due.
const FIRST: u64 = 50;

/// A delivery: to which member, of which stream, of the warm-up (else measured), and its sequence number.
type Step = (u32, u32, bool, u32);

/// Two publishers that send bursts, a group of four, and windows.
fn workload() -> Workload {
    let every = Some(20 * RECORD);
    let mut workload = Workload::fan(2, MEMBERS, Arrivals::Bursts { messages: 5, every });
    for member in &mut workload.flows[0].subscribers {
        member.group = Some("team".into());
    }
    let window = |name: &str, from, to| Window {
        name: name.into(),
        from,
        to,
    };
    let windows = [
        window("a", 5 * RECORD + 7, 40 * RECORD),
        window("b", 20 * RECORD, 70 * RECORD),
    ];
    workload.phases.windows = windows.into();
    workload
}

/// What workers with these members, by their index, see and hand in of deliveries that come in this order, one in
/// each record of the series.
fn seen(steps: &[Step], workers: &[Vec<u32>]) -> (Sums, Vec<u64>) {
    let brief = Brief::new(workload()).unwrap();
    let (sender, _reports) = channel();
    let assignment = |(worker, members): (u32, &Vec<u32>)| Assignment {
        worker,
        role: Role::Subscribers,
        devices: members.iter().map(|member| 2 + member).collect(),
        settings: 0,
        broker: 0,
        host: 0,
        mark: MARK,
        default_window: None,
        client: Default::default(),
        pin_to: None,
    };
    let assignments: Vec<Assignment> = (0..).zip(workers).map(assignment).collect();
    let apart = on_several(&brief, &assignments);
    let clock = Clock::virtual_at(0);
    let context = Context {
        driver: Arc::new(SimulatedDriver),
        target: Target::default(),
        settings: Arc::from([]),
        clock: clock.clone(),
        epoch: 0,
        filler: Arc::new(Filler::new(brief.max_payload)),
        spread: Arc::from([1, 1]),
        apart: apart.clone(),
        brief: brief.clone(),
    };
    let table = Timetable {
        warm_up: 0,
        measure: RECORD,
        end: 200 * RECORD,
        interval: RECORD,
        steps: 1,
    };
    let mut receivings: Vec<Receiving> = (assignments.iter())
        .map(|assignment| {
            let mut receiving = Receiving::new(&context, assignment);
            let out = Outbox::new(assignment.worker, sender.clone());
            receiving.start(table, &out, false, &[None]);
            receiving
        })
        .collect();
    let mut uniting = Apart::new(&brief, &apart);
    for (number, (member, stream, warm_up, sequence)) in (0..).zip(steps) {
        clock.advance_to((FIRST + number) * RECORD);
        let kind = if *warm_up {
            Kind::WarmUp
        } else {
            Kind::Measured
        };
        let header = Header {
            intended: u64::from(*sequence) * RECORD + u64::from(*stream),
            kind,
            stream: *stream,
            sequence: *sequence,
            lag: 0,
        };
        let payload = header.encode(MARK);
        let has = |members: &Vec<u32>| members.iter().position(|m| m == member);
        let mut places = workers.iter().map(has).enumerate();
        let (worker, client) = places.find_map(|(w, c)| Some((w, c?))).unwrap();
        let receiving = &mut receivings[worker];
        receiving.arrived();
        receiving.delivered(
            ClientId(client as u32),
            Delivery {
                payload: &payload,
                topic: None,
                retained: false,
                redelivered: false,
            },
        );
        // Some hand in later than others.
        if number % 7 == 3 * worker as u64 {
            uniting.take(&receiving.take_gathered(true)).unwrap();
        }
    }
    clock.advance_to((FIRST + steps.len() as u64) * RECORD);
    let finished = receivings.iter_mut().zip(&assignments);
    let mut recordings: Vec<Recording> = finished
        .map(|(receiving, assignment)| {
            receiving.arrived();
            uniting.take(&receiving.take_gathered(true)).unwrap();
            let mut recording = recording();
            recording.worker = assignment.worker;
            recording.parts = vec![FlowParts::default()];
            receiving.finish_parts(&mut recording.parts);
            recording.bursts = receiving.finish_bursts();
            recording.series = receiving.finish(&mut recording.flows);
            recording.members = receiving.finish_shares();
            recording
        })
        .collect();
    let mut sums = Sums::add_up(&recordings, 1);
    uniting.settle(&brief, &mut sums, &mut recordings);
    let mut members: Vec<_> = recordings.iter().flat_map(|r| &r.members).collect();
    members.sort_by_key(|member| member.subscriber);
    (sums, members.iter().map(|member| member.unique).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Lost, repeated, reordered and passed over messages are those that one worker sees, and so is the series.
    #[test]
    fn a_group_on_several_workers_is_counted_as_on_one(
        steps in prop::collection::vec((0..MEMBERS, 0u32..2, any::<bool>(), 0u32..40), 0..90),
        workers in prop_oneof![
            Just(vec![vec![0, 1], vec![2, 3]]),
            Just(vec![vec![3, 0, 2], vec![1]]),
            Just(vec![vec![0], vec![1], vec![2], vec![3]]),
        ],
    ) {
        let (mut one, alone) = seen(&steps, &[vec![0, 1, 2, 3]]);
        let (mut several, apart) = seen(&steps, &workers);
        prop_assert_eq!(apart, alone);
        prop_assert_eq!(one.flows[0].messages.timed_again, 0);
        // Of a message that came to two workers, the time of each copy is taken.
        let again = std::mem::take(&mut several.flows[0].messages.timed_again);
        prop_assert!(again <= one.flows[0].messages.duplicated());
        let parts = several.parts[0].of.iter_mut();
        let by_part: u64 = parts.map(|part| std::mem::take(&mut part.timed_again)).sum();
        prop_assert_eq!(by_part, again);
        for sums in [&mut one, &mut several] {
            sums.bursts[0].iter_mut().for_each(|burst| burst.arrived = 0);
        }
        prop_assert_eq!(several.flows, one.flows);
        prop_assert_eq!(several.series, one.series);
        prop_assert_eq!(several.parts, one.parts);
        prop_assert_eq!(several.bursts, one.bursts);
    }
}

#[test]
fn a_message_that_two_workers_got_is_repeated_and_counted_once() {
    let steps = [(0, 0, false, 0), (2, 0, false, 1), (3, 0, false, 0)];
    let (sums, shares) = seen(&steps, &[vec![0, 1], vec![2, 3]]);
    let counts = &sums.flows[0];
    assert_eq!(
        (
            counts.messages.unique,
            counts.distinct,
            counts.messages.duplicated()
        ),
        (2, 2, 1)
    );
    assert_eq!(
        (counts.messages.delivered, counts.messages.timed_again),
        (3, 1)
    );
    assert_eq!(shares, [1, 0, 1, 0]);
    let unique: Vec<u64> = sums.series[0].iter().map(|totals| totals.unique).collect();
    let came = FIRST as usize;
    assert_eq!(unique[came - 1..came + 3], [0, 1, 2, 2]);
}

/// A worker that says of each stream that it got a message a billion later takes 128 MB for each.
#[test]
fn numbers_far_beyond_what_came_are_refused() {
    let far = |stream| {
        let place = DeliveryClass {
            party: 0,
            member: 0,
            stream,
            measured: true,
            cut: 0,
            bound: 0,
            part: 0,
            burst: None,
        };
        Got::new(place, [crate::groups::MOST_MESSAGES - 1])
    };
    let mut apart = Apart::default();
    apart.take(&[far(0)]).unwrap();
    let why = apart.take(&[far(1), far(2)]).unwrap_err();
    assert!(why.contains("gaps of more than 256 MiB"), "{why}");
    assert!(apart.gaps <= MOST_GAPS);
    // What came before is no gap.
    apart.take(&[far(0)]).unwrap();
    assert_eq!(apart.repeated_deliveries(), 1);
}
