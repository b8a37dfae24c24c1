use std::collections::BTreeMap;

use super::*;
use crate::tests_support::{flow, workload};
use crate::{Audience, LastWill, Schedule, TraceSource, schedule::Replay};
use proptest::prelude::*;

fn periodic(mut flow: Flow, per_s: f64) -> Flow {
    flow.arrivals = Arrivals::Periodic { per_s };
    flow
}

fn topics(numbers: impl Iterator<Item = u32>) -> Vec<String> {
    numbers.map(|n| format!("t/{n}")).collect()
}

/// The broker of each stream and of each subscriber is where its connection is.
fn is_apart(workload: &Workload, audience: &Audience) -> bool {
    let broker = |device: u32| workload.devices[device as usize].broker;
    let of_stream = |stream: u32| {
        let info = audience.streams[stream as usize];
        let flow = &workload.flows[info.flow as usize];
        broker(flow.publishers[info.publisher as usize].device)
    };
    audience.parties.iter().all(|party| {
        let of_party = |(flow, subscriber): &(u32, u32)| {
            broker(workload.flows[*flow as usize].subscribers[*subscriber as usize].device)
        };
        let own: Vec<u32> = party.members.iter().map(of_party).collect();
        let heard = party
            .streams
            .iter()
            .flat_map(|range| range.clone())
            .map(of_stream);
        own.windows(2).all(|two| two[0] == two[1]) && heard.into_iter().all(|b| b == own[0])
    })
}

/// What is due in the first messages of a flow, with the deliveries that it is to have: by time and
/// topic.
fn due(workload: &Workload, messages: usize) -> BTreeMap<(u64, String), u32> {
    let audience = workload.check().expect("sound");
    assert!(is_apart(workload, &audience));
    let mut due = BTreeMap::new();
    for (f, flow) in workload.flows.iter().enumerate() {
        let all = 0..flow.publishers.len() as u32;
        for message in Schedule::new(flow, all, 7).take(messages) {
            let publisher = &flow.publishers[message.publisher as usize];
            let topic = publisher.topics[message.topic as usize].clone();
            let stream = audience.first_stream(f as u32, message.publisher) + message.topic;
            *due.entry((message.at, topic)).or_default() += audience.fan_out(stream);
        }
    }
    due
}

proptest! {
    /// Whoever publishes and hears what: over several brokers each message has its time, its topic
    /// and its deliveries.
    #[test]
    fn the_same_messages_are_due_and_delivered(
        brokers in 1u32..6,
        rounds in 1u32..4,
        publishers in 1u32..12,
        spans in any::<bool>(),
        filters in prop::collection::vec(0u32..9, 1..6),
        shared in any::<bool>(),
    ) {
        let count = brokers * rounds;
        // Each publisher has all topics, or one.
        let of = |p: u32| if spans { topics(0..count) } else { topics(std::iter::once(p % count)) };
        let subscribers = filters.iter().map(|n| {
            let filter = match n {
                0 => "#".to_owned(),
                1 => "t/+".to_owned(),
                2 => "nobody/publishes/this".to_owned(),
                n => format!("t/{n}"),
            };
            (vec![filter], shared.then(|| format!("team-{n}")))
        });
        let publishers: Vec<Vec<String>> = (0..publishers.max(if spans { 1 } else { count }))
            .map(of)
            .collect();
        let one = workload(vec![periodic(flow(publishers, subscribers.collect()), 1000.0)]);
        let several = one.spread_over(brokers).expect("can be split");
        prop_assert_eq!(due(&several, 500), due(&one, 500));
        let numbers: std::collections::BTreeSet<u32> =
            several.devices.iter().map(|device| device.broker).collect();
        prop_assert_eq!(numbers, (0..brokers).collect());
        let names: std::collections::BTreeSet<&str> =
            several.devices.iter().map(|device| device.name.as_str()).collect();
        prop_assert_eq!(names.len(), several.devices.len());
        let devices = several.devices.iter().filter(|d| d.connection_of.is_none()).count();
        prop_assert_eq!(devices, one.devices.len());
    }
}

/// Before, a burst had its messages on each broker of its publisher.
#[test]
fn bursts_are_shared_by_the_brokers_of_a_publisher() {
    let bursts = |messages: u32| {
        let mut bursts = flow(vec![topics(0..4)], vec![(vec!["t/#".into()], None)]);
        let every = Some(100_000_000);
        bursts.arrivals = Arrivals::Bursts { messages, every };
        workload(vec![bursts])
    };
    for brokers in [2, 4] {
        let over = bursts(100).spread_over(brokers).expect("can be split");
        assert_eq!(over.flows[0].publishers.len(), brokers as usize);
        assert_eq!(due(&over, 400), due(&bursts(100), 400));
    }
    let over = bursts(7).spread_over(2).expect("can be split");
    let every = Some(100_000_000);
    let messages = 4;
    assert_eq!(over.flows[0].arrivals, Arrivals::Bursts { messages, every });
}

#[test]
fn who_publishes_and_hears_has_one_connection_to_each_broker() {
    let mut both = workload(vec![flow(
        vec![vec!["a".into(), "b".into()], vec!["c".into()]],
        vec![(vec!["a".into(), "c".into()], None)],
    )]);
    // The first publisher is the subscriber too.
    both.flows[0].subscribers[0].device = 0;
    let over = both.spread_over(2).expect("flat out");
    let names: Vec<(&str, u32)> = over
        .devices
        .iter()
        .map(|d| (d.name.as_str(), d.broker))
        .collect();
    assert_eq!(
        names,
        [
            ("publisher-0", 0),
            ("publisher-0-b2", 1),
            ("publisher-1", 0),
            ("subscriber-2", 0)
        ]
    );
    let subscribers = &over.flows[0].subscribers;
    assert_eq!(subscribers.len(), 1);
    assert_eq!(
        (subscribers[0].device, &subscribers[0].filters[..]),
        (0, &["a".to_owned(), "c".into()][..])
    );
    assert_eq!(over.devices[1].connection_of, Some(0));
}

#[test]
fn a_group_is_one_on_each_broker() {
    let member = || (vec!["t/#".to_owned()], Some("team".to_owned()));
    let one = workload(vec![flow(
        topics(0..4).into_iter().map(|t| vec![t]).collect(),
        vec![member(), member()],
    )]);
    let over = one.spread_over(2).expect("flat out");
    let audience = over.check().expect("sound");
    assert_eq!(audience.parties.len(), 2);
    assert!(
        audience
            .parties
            .iter()
            .all(|party| party.members.len() == 2)
    );
    assert!(is_apart(&over, &audience));
}

#[test]
fn what_would_be_another_workload_is_refused() {
    let plain = |flow: Flow| workload(vec![flow]);
    let spanning = flow(vec![topics(0..3)], vec![(vec!["#".into()], None)]);
    let uneven = plain(periodic(spanning.clone(), 10.0))
        .spread_over(2)
        .expect_err("3 over 2");
    assert!(
        matches!(
            uneven,
            PlacementError::Uneven {
                topics: 3,
                brokers: 2,
                ..
            }
        ),
        "{uneven}"
    );
    let few = plain(spanning.clone())
        .spread_over(4)
        .expect_err("one would be idle");
    assert_eq!(
        few.to_string(),
        "workload `test` has 3 topics, and each topic lives on one broker: 1 of 4 brokers would carry nothing"
    );
    let mut asked = spanning.clone();
    asked.exchange = Exchange::PingPong;
    assert!(matches!(
        plain(asked).spread_over(3),
        Err(PlacementError::PingPong(_))
    ));
    let mut recorded = spanning.clone();
    recorded.arrivals = Arrivals::Replay(Box::new(Replay {
        source: TraceSource::default(),
        ..Replay::default()
    }));
    assert!(matches!(
        plain(recorded).spread_over(3),
        Err(PlacementError::Recorded { .. })
    ));
    let mut willing = plain(spanning.clone());
    willing.devices[0].will = Some(Box::new(LastWill {
        topic: "gone".into(),
        bytes: 16,
        retain: false,
        qos: None,
        delay_s: 0,
    }));
    assert!(matches!(
        willing.spread_over(3),
        Err(PlacementError::Will(_))
    ));
    for count in [0, MOST_BROKERS + 1] {
        let error = plain(spanning.clone())
            .spread_over(count)
            .expect_err("out of range");
        assert!(matches!(error, PlacementError::Count(_)), "{error}");
        assert!(error.hint().contains("1 to 64"));
    }
}

#[test]
fn a_hundred_thousand_publishers_divide_well() {
    let publishers = (0..100_000)
        .map(|n| topics(std::iter::once(n % 60)))
        .collect();
    let subscribers = (0..60)
        .map(|n| (topics(std::iter::once(n)), None))
        .collect();
    let one = workload(vec![periodic(flow(publishers, subscribers), 100_000.0)]);
    let over = one.spread_over(6).expect("one topic each");
    assert_eq!(over.devices.len(), one.devices.len());
    let of = |broker: u32| over.devices.iter().filter(|d| d.broker == broker).count();
    for broker in 0..6 {
        assert!((16_660..16_680).contains(&of(broker)), "{}", of(broker));
    }
}

/// Of so many pairs: each of the nodes' pairs has its share, all cross where there are few, and who hears whom stays.
#[test]
fn a_cluster_carries_every_pair_of_nodes() {
    for (nodes, pairs) in [(3, 9), (2, 8), (4, 16), (3, 2)] {
        let topic = |n: u32| vec![format!("t/{n}")];
        let subscribers = (0..pairs).map(|n| (topic(n), None));
        let plain = workload(vec![flow(
            (0..pairs).map(topic).collect(),
            subscribers.collect(),
        )]);
        let dealt = plain.dealt_over(nodes).expect("nodes");
        let mut carried: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        let (of_flow, broker) = (&dealt.flows[0], |device: u32| {
            dealt.devices[device as usize].broker
        });
        for (publisher, subscriber) in of_flow.publishers.iter().zip(&of_flow.subscribers) {
            *carried
                .entry((broker(publisher.device), broker(subscriber.device)))
                .or_default() += 1;
        }
        let crossing: u32 = carried
            .iter()
            .filter(|((from, to), _)| from != to)
            .map(|(_, count)| count)
            .sum();
        if pairs % (nodes * nodes) == 0 {
            assert_eq!(carried.len() as u32, nodes * nodes);
            assert!(
                carried.values().all(|n| *n == pairs / (nodes * nodes)),
                "{carried:?}"
            );
        } else {
            assert_eq!(crossing, pairs, "{carried:?}");
        }
        let audience = dealt.check().expect("sound");
        let streams = |audience: &Audience| -> Vec<_> {
            audience
                .parties
                .iter()
                .map(|party| party.streams.clone())
                .collect()
        };
        assert_eq!(streams(&audience), streams(&plain.check().expect("sound")));
        assert_eq!(
            dealt.crossings(&audience),
            (u64::from(pairs), u64::from(crossing))
        );
    }
}

#[test]
fn crossings_are_those_of_each_path() {
    let publishers = (0..7).map(|n| topics(n..n + 1 + n % 3));
    let publishers: Vec<Vec<String>> = publishers.collect();
    let hears = |filters: &[&str]| filters.iter().map(|f| (*f).to_owned()).collect::<Vec<_>>();
    let subscribers = [&["#"][..], &["t/1", "t/4"], &["t/+"], &["t/3"], &["u/#"]];
    let subscribers = subscribers.map(|filters| (hears(filters), None));
    let members = [(); 2].map(|()| (hears(&["t/#"]), Some("g".to_owned())));
    let all: Vec<_> = subscribers.into_iter().chain(members).collect();
    let dealt = workload(vec![flow(publishers, all)])
        .dealt_over(3)
        .expect("nodes");
    let audience = dealt.check().expect("sound");
    let node = |device: u32| dealt.devices[device as usize].broker;
    let (mut paths, mut crossing) = (0, 0);
    for party in audience
        .parties
        .iter()
        .filter(|party| party.group.is_none())
    {
        let subscriber = &dealt.flows[0].subscribers[party.members[0].1 as usize];
        for stream in party.streams.iter().cloned().flatten() {
            let info = audience.streams[stream as usize];
            let publisher = &dealt.flows[0].publishers[info.publisher as usize];
            paths += 1;
            crossing += u64::from(node(publisher.device) != node(subscriber.device));
        }
    }
    assert!(crossing > 0 && crossing < paths);
    assert_eq!(dealt.crossings(&audience), (paths, crossing));
    assert_eq!(dealt.dealt_over(1).unwrap_err(), PlacementError::Nodes(1));
}
