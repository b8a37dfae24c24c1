use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ::parquet::data_type::AsBytes;
use pubgauge_place::Access;

use super::*;
use crate::columns::TimeUnit;
use crate::files::{
    EventTime, Misplacement, Part, Partitioning, finish, partition_files, read_columns,
};
use crate::log::{Limits, Log};
use crate::manifest;
use crate::verify::verify;

const LIMITS: Limits = Limits {
    segment_bytes: 1 << 30,
    segment_age: Duration::from_secs(1000),
    reserve_bytes: 0,
};

/// 2026-11-26T07:00:00Z.
const SEVEN: i64 = 1_795_676_400_000_000_000;

fn by_site(most: usize) -> Layout {
    let site = Part::TopicLevel {
        name: "site".into(),
        nth: 1,
    };
    Layout {
        partitioning: Partitioning {
            parts: vec![site, Part::Date],
            most,
            ..Partitioning::default()
        },
        ..Layout::default()
    }
}

/// A closed segment of messages with these topics and payloads, whose numbers begin with `first`.
fn segment(folder: &Folder, first: u64, messages: &[(String, String)]) -> Closed {
    let (mut log, _) = Log::open(&folder.log(), Form::Parquet, LIMITS, first).unwrap();
    let mut frames = Vec::new();
    for (nth, (topic, payload)) in messages.iter().enumerate() {
        let message = Message {
            index: nth as u32,
            received_ns: SEVEN,
            topic,
            ..Message::numbered(first + nth as u64, payload.as_bytes())
        };
        message.append(log.mark(), &mut frames);
    }
    let end = first + messages.len() as u64;
    log.commit(&frames, first..end, 0).unwrap();
    log.rotate().unwrap().unwrap()
}

fn finished(folder: &Folder, closed: &Closed, layout: &Layout) -> Finished {
    finish(folder, closed, layout, &AtomicBool::new(false)).unwrap()
}

/// The numbers of the messages in each folder, with their topics.
fn stored(data: &Path) -> BTreeMap<String, Vec<(u64, String)>> {
    let mut all: BTreeMap<String, Vec<(u64, String)>> = BTreeMap::new();
    for path in partition_files(data).unwrap() {
        let folder = path.parent().unwrap().strip_prefix(data).unwrap();
        let rows = all.entry(folder.to_str().unwrap().to_owned()).or_default();
        read_columns(&path, |group| {
            for row in group {
                let topic = String::from_utf8(row.topic.as_bytes().to_vec()).unwrap();
                rows.push((row.seq, topic));
            }
        })
        .unwrap();
    }
    all
}

#[test]
fn a_segment_becomes_a_file_for_each_partition_and_is_whole() {
    let data = tempfile::tempdir().unwrap();
    let folder = Folder::open(data.path(), Some("c"), Access::Owner).unwrap();
    let sites = ["a", "b", "a", "..", "c", "b", "d", "a"];
    let message = |site: &&str| (format!("m/{site}"), String::new());
    let messages: Vec<_> = sites.iter().map(message).collect();
    let closed = segment(&folder, 1, &messages);
    let copy = std::fs::read(&closed.path).unwrap();
    let first = finished(&folder, &closed, &by_site(3));
    let of = |value: &str| format!("site={value}/date=2026-11-26");
    let numbers = |rows: &[(u64, &str)]| -> Vec<(u64, String)> {
        rows.iter()
            .map(|(seq, site)| (*seq, format!("m/{site}")))
            .collect()
    };
    let expected = BTreeMap::from([
        (of("a"), numbers(&[(1, "a"), (3, "a"), (8, "a")])),
        (of("b"), numbers(&[(2, "b"), (6, "b")])),
        (of(".."), numbers(&[(4, "..")])),
        (of("__other__"), numbers(&[(5, "c"), (7, "d")])),
    ]);
    assert_eq!(stored(data.path()), expected);
    assert_eq!(first.misplaced.number(Misplacement::TooMany), 2);
    assert!(first.files.iter().all(|file| file.among == Some((1, 8))));
    let found = verify(data.path()).unwrap();
    assert_eq!(
        (&found.faults[..], found.messages, found.files),
        (&[][..], 8, 4)
    );
    // After a kill, before the segment was removed.
    std::fs::write(&closed.path, copy).unwrap();
    assert_eq!(finished(&folder, &closed, &by_site(3)), first);
    assert_eq!(stored(data.path()), expected);
    assert_eq!(verify(data.path()).unwrap().faults, []);
    // What is missing among the others is told.
    std::fs::remove_file(data.path().join(&first.files[1].path)).unwrap();
    let faults = verify(data.path()).unwrap().faults;
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].what.contains("is missing"), "{faults:?}");
}

#[test]
fn a_number_that_no_file_has_is_told() {
    let data = tempfile::tempdir().unwrap();
    let folder = Folder::open(data.path(), Some("c"), Access::Owner).unwrap();
    let messages = ["a", "b", "a"].map(|site| (format!("m/{site}"), String::new()));
    let closed = segment(&folder, 1, &messages);
    finished(&folder, &closed, &by_site(9));
    // The list without the file of `b`, which is removed.
    let (entries, _) = manifest::read(folder.collectors_folder()).unwrap();
    let of_b = |entry: &manifest::Entry| matches!(entry, manifest::Entry::File(file) if file.path.starts_with("site=b"));
    let list = data.path().join("collectors/c/files.ndjson");
    std::fs::remove_file(list).unwrap();
    let rest: Vec<_> = entries
        .iter()
        .filter(|entry| !of_b(entry))
        .cloned()
        .collect();
    manifest::append(folder.collectors_folder(), &rest).unwrap();
    std::fs::remove_dir_all(data.path().join("site=b")).unwrap();
    let faults = verify(data.path()).unwrap().faults;
    let told: Vec<_> = faults.iter().map(|fault| &*fault.what).collect();
    assert_eq!(told, ["messages 2 to 2 are missing"]);
}

#[test]
fn wild_clocks_and_topics_make_no_more_files_than_are_asked_for() {
    let data = tempfile::tempdir().unwrap();
    let folder = Folder::open(data.path(), Some("c"), Access::Owner).unwrap();
    let mut layout = by_site(20);
    layout.partitioning.event_time = Some(EventTime {
        steps: vec!["ts".into()],
        unit: TimeUnit::S,
        within: Duration::from_secs(365 * 86_400),
    });
    let seven = SEVEN / 1_000_000_000;
    let messages: Vec<_> = (0..5000)
        .map(|nth| {
            let ts = match nth % 5 {
                0 => "\"9999-12-30T21:59:59Z\"".to_owned(),
                1 => "0".to_owned(),
                2 => (seven - nth * 14_400).to_string(),
                3 => (seven + nth * 14_400).to_string(),
                _ => "\"soon\"".to_owned(),
            };
            (format!("m/{}", nth % 1000), format!("{{\"ts\": {ts}}}"))
        })
        .collect();
    let closed = segment(&folder, 1, &messages);
    let finished = finished(&folder, &closed, &layout);
    assert_eq!(finished.files.len(), 21);
    let misplaced = |why| finished.misplaced.number(why);
    assert_eq!(misplaced(Misplacement::NoTime), 1000);
    // And those that are more than a year off.
    let far = (0..5000).filter(|nth| matches!(nth % 5, 2 | 3) && nth * 14_400 > 365 * 86_400);
    assert_eq!(misplaced(Misplacement::FarTime), 2000 + far.count() as u64);
    let all = stored(data.path());
    let other = &all["site=__other__/date=2026-11-26"];
    assert_eq!(misplaced(Misplacement::TooMany), other.len() as u64);
    let numbers: BTreeSet<u64> = all.values().flatten().map(|(seq, _)| *seq).collect();
    assert_eq!(numbers, (1..=5000).collect());
    assert_eq!(all.values().flatten().count(), 5000);
    assert_eq!(verify(data.path()).unwrap().faults, []);
}

/// A file that gets no message for a while keeps no buffer: of a segment that is longer than one, each file has a row group for
/// each.
#[test]
fn open_files_let_go_of_a_buffer_together() {
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    let data = tempfile::tempdir().unwrap();
    let folder = Folder::open(data.path(), Some("c"), Access::Owner).unwrap();
    let layout = by_site(9);
    let closed = Closed {
        path: data.path().join("none"),
        first_seq: 1,
        next_seq: 6,
    };
    let mut making = Making::new(&folder, (Form::Parquet, &layout), &closed);
    let mut seq = 1;
    for topics in [&["m/a", "m/b"][..], &["m/b", "m/b"], &["m/a"]] {
        let mut frames = Vec::new();
        for topic in topics {
            let message = Message {
                topic,
                received_ns: SEVEN,
                ..Message::numbered(seq, b"payload")
            };
            seq += 1;
            message.append(7, &mut frames);
        }
        let frames = Bytes::from(frames);
        for message in crate::message::Messages::new(7, &frames) {
            making.add(&frames, &message).unwrap();
        }
        // Of this one and whoever reads it alone: nobody holds the one before.
        let held = making.files.iter_mut().filter(|file| file.holds()).count();
        assert_eq!(held, topics.iter().collect::<BTreeSet<_>>().len());
    }
    let finished = making.finish().unwrap();
    let groups = finished.files.iter().map(|file| {
        let content = std::fs::read(data.path().join(&file.path)).unwrap();
        let reader = SerializedFileReader::new(Bytes::from(content)).unwrap();
        let groups = reader.metadata().row_groups().to_vec();
        groups.iter().map(|group| group.num_rows()).collect()
    });
    assert_eq!(groups.collect::<Vec<Vec<i64>>>(), [vec![1, 1], vec![1, 2]]);
}
