use super::*;
use crate::tests_support::{flow, workload};
use proptest::prelude::*;

fn topics(n: usize) -> Vec<Vec<String>> {
    (0..n).map(|i| vec![format!("t/{i}")]).collect()
}

#[test]
fn pairs() {
    let n = 100_000;
    let filters = (0..n).map(|i| (vec![format!("t/{i}")], None)).collect();
    let audience = Audience::new(&workload(vec![flow(topics(n), filters)])).expect("sound");
    assert_eq!(audience.streams.len(), n);
    assert_eq!(audience.parties.len(), n);
    for (i, party) in audience.parties.iter().enumerate() {
        assert_eq!(
            &party.streams[..],
            std::slice::from_ref(&(i as u32..i as u32 + 1))
        );
        assert_eq!(party.members, [(0, i as u32)]);
    }
    assert!((0..n as u32).all(|s| audience.fan_out(s) == 1));
}

#[test]
fn everything_to_a_hundred() {
    let filters = (0..100).map(|_| (vec!["#".to_string()], None)).collect();
    let audience = Audience::new(&workload(vec![flow(topics(10_000), filters)])).expect("sound");
    assert_eq!(audience.parties.len(), 100);
    assert!(audience.parties.iter().all(|p| p.stream_count() == 10_000));
    assert!((0..10_000).all(|s| audience.fan_out(s) == 100));
    assert!(Arc::ptr_eq(
        &audience.parties[0].streams,
        &audience.parties[99].streams
    ));
}

#[test]
fn filters_reach_other_flows() {
    let first = flow(vec![vec!["a/x".into(), "b/x".into()]], vec![]);
    let second = flow(
        vec![vec!["a/y".into()]],
        vec![(vec!["a/+".into()], None), (vec!["b/#".into()], None)],
    );
    let audience = Audience::new(&workload(vec![first, second])).expect("sound");
    assert_eq!(&audience.parties[0].streams[..], &[0..1, 2..3]);
    assert_eq!(audience.parties[1].streams.len(), 1);
    assert_eq!(audience.first_stream(1, 0), 2);
    assert_eq!(audience.party_of(1, 1), 1);
    assert_eq!(
        (0..3).map(|s| audience.fan_out(s)).collect::<Vec<_>>(),
        [1, 1, 1]
    );
    assert!(audience.parties[0].is_entitled(2) && !audience.parties[0].is_entitled(1));
}

#[test]
fn groups_share() {
    let members = |n| (0..n).map(|_| (vec!["t/#".to_string()], Some("g".to_string())));
    let mut subscribers: Vec<_> = members(3).collect();
    subscribers.push((vec!["t/0".into()], None));
    let audience = Audience::new(&workload(vec![flow(topics(2), subscribers)])).expect("sound");
    assert_eq!(audience.parties.len(), 2);
    assert_eq!(audience.parties[0].members, [(0, 0), (0, 1), (0, 2)]);
    assert_eq!(audience.fan_out(0), 2);
    assert_eq!(audience.fan_out(1), 1);
}

#[test]
fn what_cannot_be_attributed_is_refused() {
    let overlap = flow(topics(1), vec![(vec!["t/#".into(), "t/0".into()], None)]);
    let error = Audience::new(&workload(vec![overlap])).expect_err("overlap");
    assert!(
        matches!(&error, AudienceError::Overlap { topic, .. } if topic == "t/0"),
        "{error}"
    );

    // One connection, two flows.
    let mut both = workload(vec![
        flow(topics(1), vec![(vec!["t/#".into()], None)]),
        flow(vec![], vec![(vec!["#".into()], None)]),
    ]);
    both.flows[1].subscribers[0].device = both.flows[0].subscribers[0].device;
    let error = Audience::new(&both).expect_err("overlap");
    assert!(matches!(error, AudienceError::Overlap { .. }));

    let mixed = flow(
        topics(1),
        vec![
            (vec!["t/0".into()], Some("g".into())),
            (vec!["t/0".into(), "u".into()], Some("g".into())),
        ],
    );
    assert_eq!(
        Audience::new(&workload(vec![mixed])).expect_err("mixed"),
        AudienceError::MixedGroup("g".into())
    );
}

#[test]
fn nobody_is_fine() {
    let audience = Audience::new(&workload(vec![flow(topics(3), vec![])])).expect("sound");
    assert_eq!(audience.fan_out(2), 0);
    let audience = Audience::new(&workload(vec![flow(
        vec![],
        vec![(vec!["#".into()], None)],
    )]))
    .expect("sound");
    assert_eq!(audience.parties[0].stream_count(), 0);
}

fn level() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "a!", "", "aa"]).prop_map(str::to_string)
}

fn topic() -> impl Strategy<Value = String> {
    prop::collection::vec(level(), 1..4).prop_map(|levels| levels.join("/"))
}

fn filter() -> impl Strategy<Value = String> {
    let level = prop_oneof![3 => level(), 1 => Just("+".to_string())];
    (prop::collection::vec(level, 0..4), any::<bool>()).prop_map(|(mut levels, all)| {
        if all || levels.is_empty() {
            levels.push("#".into());
        }
        levels.join("/")
    })
}

proptest! {
    /// The clever search agrees with asking every filter about every topic.
    #[test]
    fn agrees_with_brute_force(
        topics in prop::collection::vec(topic(), 0..20),
        filters in prop::collection::vec(filter(), 0..8),
    ) {
        let publishers = topics.iter().map(|t| vec![t.clone()]).collect();
        let subscribers = filters.iter().map(|f| (vec![f.clone()], None)).collect();
        let audience = Audience::new(&workload(vec![flow(publishers, subscribers)])).expect("sound");
        for (stream, topic) in topics.iter().enumerate() {
            let mut entitled = 0;
            for (party, filter) in audience.parties.iter().zip(&filters) {
                prop_assert_eq!(party.is_entitled(stream as u32), filter.matches_topic(topic), "{} {}", filter, topic);
                entitled += u32::from(filter.matches_topic(topic));
            }
            prop_assert_eq!(audience.fan_out(stream as u32), entitled);
        }
    }
}
