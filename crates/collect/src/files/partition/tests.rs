use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::file_name::is_folder;

fn by_site() -> Partitioning {
    let name = "site".to_owned();
    Partitioning {
        parts: vec![Part::TopicLevel { name, nth: 1 }, Part::Date],
        ..Partitioning::default()
    }
}

fn by_event(unit: TimeUnit) -> Partitioning {
    Partitioning {
        event_time: Some(EventTime {
            steps: vec!["ts".into()],
            unit,
            within: Duration::from_secs(365 * 86_400),
        }),
        ..Partitioning::default()
    }
}

/// 2026-11-26T07:30:00Z.
const RECEIVED: i64 = 1_795_678_200_000_000_000;

fn message<'a>(topic: &'a str, payload: &'a [u8]) -> Message<'a> {
    Message {
        topic,
        received_ns: RECEIVED,
        ..Message::numbered(1, payload)
    }
}

fn folder(partitioning: &Partitioning, message: &Message<'_>) -> (String, Misplaced) {
    let mut misplaced = Misplaced::default();
    (partitioning.folder(message, &mut misplaced), misplaced)
}

#[test]
fn levels_of_topics_are_names_within_the_folder() {
    let long = format!("a/{}", "x".repeat(161));
    let fits = "x".repeat(160);
    let long_when_encoded = format!("a/{}", "é".repeat(27));
    for (topic, value, is_long) in [
        ("a/north/b", "north", 0),
        ("a/north", "north", 0),
        ("a/..", "..", 0),
        ("a/../../etc", "..", 0),
        ("a/x=y", "x%3Dy", 0),
        ("a/x\\y z%", "x%5Cy%20z%25", 0),
        ("a/\u{1}é", "%01%C3%A9", 0),
        ("a/__other__", "%5F_other__", 0),
        ("a//b", NO_VALUE, 0),
        ("a", NO_VALUE, 0),
        (&format!("a/{fits}"), &fits, 0),
        (&long, OTHER, 1),
        (&long_when_encoded, OTHER, 1),
    ] {
        let (folder, misplaced) = folder(&by_site(), &message(topic, b""));
        assert_eq!(folder, format!("site={value}/date=2026-11-26"), "{topic}");
        assert_eq!(
            misplaced.number(Misplacement::LongLevel),
            is_long,
            "{topic}"
        );
    }
}

#[test]
fn event_times_are_taken_as_they_are_written_and_others_go_by_arrival() {
    let arrival = "date=2026-11-26/hour=07";
    let one = |why| {
        let mut misplaced = Misplaced::default();
        misplaced.count(why);
        misplaced
    };
    let well = Misplaced::default();
    let no_time = one(Misplacement::NoTime);
    let far = one(Misplacement::FarTime);
    for (unit, payload, expected, counted) in [
        (
            TimeUnit::S,
            r#"{"ts": "2026-11-25T23:59:59.9Z"}"#,
            "date=2026-11-25/hour=23",
            well,
        ),
        (
            TimeUnit::S,
            r#"{"ts": "2026-11-26T01:00:00+05:00"}"#,
            "date=2026-11-25/hour=20",
            well,
        ),
        (
            TimeUnit::S,
            r#"{"ts": 1795651200}"#,
            "date=2026-11-26/hour=00",
            well,
        ),
        (
            TimeUnit::S,
            r#"{"ts": 1795651199.5}"#,
            "date=2026-11-25/hour=23",
            well,
        ),
        (
            TimeUnit::Ms,
            r#"{"ts": 1795651200000}"#,
            "date=2026-11-26/hour=00",
            well,
        ),
        (
            TimeUnit::Us,
            r#"{"ts": 1795651200000000}"#,
            "date=2026-11-26/hour=00",
            well,
        ),
        (
            TimeUnit::Ns,
            r#"{"ts": 1795651199999999999}"#,
            "date=2026-11-25/hour=23",
            well,
        ),
        (
            TimeUnit::S,
            r#"{"ts": "9999-12-30T21:59:59Z"}"#,
            arrival,
            far,
        ),
        (TimeUnit::S, r#"{"ts": 0}"#, arrival, far),
        // Seconds where there should be milliseconds.
        (TimeUnit::Ms, r#"{"ts": 1795651200}"#, arrival, far),
        (TimeUnit::S, r#"{"ts": 1e300}"#, arrival, no_time),
        (TimeUnit::S, r#"{"ts": "yesterday"}"#, arrival, no_time),
        (TimeUnit::S, r#"{"ts": null}"#, arrival, no_time),
        (TimeUnit::S, r#"{"at": 1795651200}"#, arrival, no_time),
        (TimeUnit::S, "no JSON", arrival, no_time),
        (TimeUnit::S, "", arrival, no_time),
        // Beyond what a timestamp can be.
        (
            TimeUnit::S,
            r#"{"ts": "9999-12-31T23:59:59Z"}"#,
            arrival,
            no_time,
        ),
        (TimeUnit::S, "\u{1}", arrival, no_time),
    ] {
        let found = folder(&by_event(unit), &message("a/b", payload.as_bytes()));
        assert_eq!(found, (expected.to_owned(), counted), "{payload}");
    }
    let cbor = b"\xa1\x62ts\x1a\x6b\x07\x7a\x80";
    let (found, _) = folder(&by_event(TimeUnit::S), &message("a/b", cbor));
    assert_eq!(found, "date=2026-11-26/hour=00");
}

/// Sorts messages, and returns how many lie in each folder, how many were open at the most, and what was misplaced.
fn sorted(
    partitioning: &Partitioning,
    messages: &[(String, i64)],
) -> (BTreeMap<String, Vec<usize>>, usize, Misplaced) {
    let mut open = OpenFiles::new(partitioning);
    let mut complete: Vec<(String, usize)> = Vec::new();
    let mut most = 0;
    for (topic, received_ns) in messages {
        let mut message = message(topic, b"");
        message.received_ns = *received_ns;
        let create = |folder: &str| Ok((folder.to_owned(), 0));
        let file = open.file_for(&message, create, &mut |file| {
            complete.push(file);
            Ok(())
        });
        file.unwrap().1 += 1;
        most = most.max(open.iter_mut().count());
    }
    let misplaced = open.misplaced;
    complete.extend(open.into_open());
    let mut files: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (folder, count) in complete {
        files.entry(folder).or_default().push(count);
    }
    (files, most, misplaced)
}

#[test]
fn by_arrival_one_file_is_open_at_a_time() {
    // The clock is set back in between.
    let messages = [0, 0, 1, 0].map(|hour| ("a/b".to_owned(), RECEIVED + hour * HOUR_NS));
    let (files, most, misplaced) = sorted(&Partitioning::default(), &messages);
    let expected = [
        ("date=2026-11-26/hour=07".to_owned(), vec![2, 1]),
        ("date=2026-11-26/hour=08".to_owned(), vec![1]),
    ];
    assert_eq!(files, BTreeMap::from(expected));
    assert_eq!((most, misplaced), (1, Misplaced::default()));
}

#[test]
fn folders_beyond_the_most_share_one_which_is_counted() {
    let partitioning = Partitioning {
        most: 3,
        ..by_site()
    };
    let sites = ["a", "b", "a", "c", "d", "e", "a", "d"];
    let messages = sites.map(|site| (format!("m/{site}"), RECEIVED));
    let (files, most, misplaced) = sorted(&partitioning, &messages);
    let each = [("a", 3), ("b", 1), ("c", 1), ("__other__", 3)];
    let expected = each.map(|(site, count)| (format!("site={site}/date=2026-11-26"), vec![count]));
    assert_eq!(files, BTreeMap::from(expected));
    assert_eq!((most, misplaced.number(Misplacement::TooMany)), (4, 3));
}

proptest! {
    /// Whatever topics are called and whenever messages come.
    #[test]
    fn each_folder_is_within_and_their_number_is_bounded(
        messages in prop::collection::vec((any::<String>(), any::<i64>()), 0..200),
        most in 1usize..20,
    ) {
        let topics = messages.into_iter().map(|(topic, at)| (format!("x/{topic}"), at));
        let messages: Vec<_> = topics.collect();
        let partitioning = Partitioning { most, ..by_site() };
        let (files, open, misplaced) = sorted(&partitioning, &messages);
        prop_assert!(open <= most + 1);
        for folder in files.keys() {
            let names: Vec<_> = folder.split('/').collect();
            prop_assert_eq!(names.len(), 2);
            prop_assert!(names.iter().all(|name| is_folder(name)), "{}", folder);
        }
        let all: usize = files.values().flatten().sum();
        prop_assert_eq!(all, messages.len());
        prop_assert!(misplaced.number(Misplacement::TooMany) as usize <= all);
    }
}
