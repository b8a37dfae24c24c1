//! Finished files in folders by the topics of strangers.

use std::collections::BTreeSet;
use std::path::Path;

use pubgauge_collect::{Notice, files};
use pubgauge_driver::Reliability;

use crate::common::*;

const BY_SITE: &str =
    "[files]\npartition = [\"site={topic level 2}\", \"date\"]\nmost-partitions = 10";

fn rest(partition: &str) -> String {
    format!("topics = [\"t/#\"]\nname = \"c\"\n{partition}")
}

/// Topics of whoever wants to choose a path.
const TOPICS: [&str; 8] = [
    "t/north",
    "t/..",
    "t/../../../etc/passwd",
    "t/%2E%2E%2F",
    "t/collectors",
    "t/a=b",
    "t//c",
    "t/__other__",
];

/// All folders and files below a folder, by their paths.
fn tree(folder: &Path) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap().map(Result::unwrap) {
            let below = entry.path().strip_prefix(folder).unwrap().to_owned();
            all.insert(below.to_str().unwrap().to_owned());
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
            }
        }
    }
    all
}

#[test]
fn topics_of_strangers_choose_no_path_and_nothing_is_lost() {
    let broker = Broker::start();
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("within/data");
    std::fs::create_dir(place.path().join("within")).unwrap();
    let collecting = Collecting::begin(config(&data, &[broker.url()], &rest(BY_SITE)));
    collecting.connected(1);
    let mut publisher = Publisher::on(&broker, Reliability::AtLeastOnce);
    let mut sent = BTreeSet::new();
    for _ in 0..3 {
        for topic in TOPICS {
            sent.extend(publisher.publish(topic, 2, 100));
        }
    }
    for nth in 0..30 {
        sent.extend(publisher.publish(&format!("t/{nth}"), 1, 100));
    }
    collecting.stored(sent.len() as u64);
    let status = collecting.status.clone();
    let told = |notice: &Notice| matches!(notice, Notice::Misplaced { .. });
    let summary = {
        let notices = |collecting: &Collecting| collecting.notices().iter().any(told);
        assert!(!notices(&collecting), "nothing is in files yet");
        collecting.end()
    };
    assert_eq!(summary.messages, sent.len() as u64);
    assert_eq!(numbers(&data).into_keys().collect::<BTreeSet<_>>(), sent);
    assert!(numbers(&data).into_values().all(|count| count == 1));
    // `..` is one folder, whatever follows; beside the eight values two of the thirty fit.
    let sites = std::fs::read_dir(&data).unwrap();
    let names = sites.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let sites: BTreeSet<String> = names.filter(|name| name.starts_with("site=")).collect();
    let expected = [
        "site=north",
        "site=..",
        "site=%252E%252E%252F",
        "site=collectors",
        "site=a%3Db",
        "site=__HIVE_DEFAULT_PARTITION__",
        "site=%5F_other__",
        "site=0",
        "site=1",
        "site=2",
        "site=__other__",
    ];
    assert_eq!(sites, expected.map(str::to_owned).into());
    let too_many = status.misplaced[files::Misplacement::TooMany as usize].get();
    assert_eq!(too_many, 27);
    all_is_well(&data);
    let beside = tree(place.path());
    let is_within = |path: &&String| !path.starts_with("within/data");
    let outside: Vec<_> = beside.iter().filter(is_within).collect();
    assert_eq!(outside, ["within"]);
}

/// The collector is killed when files are made and not listed, and started with other partitions.
#[test]
fn files_that_were_not_listed_are_made_anew_in_other_folders() {
    let broker = Broker::start();
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let begin = |partition: &str| {
        let collecting = Collecting::begin(config(&data, &[broker.url()], &rest(partition)));
        collecting.connected(1);
        collecting
    };
    let collecting = begin(BY_SITE);
    let mut publisher = Publisher::on(&broker, Reliability::AtLeastOnce);
    let mut sent = BTreeSet::new();
    for _ in 0..5 {
        for topic in TOPICS {
            sent.extend(publisher.publish(topic, 3, 100));
        }
    }
    collecting.stored(sent.len() as u64);
    let segment = data.join("collectors/c/log/0000000000000001.log");
    let log = std::fs::read(&segment).unwrap();
    collecting.end();
    let made = finished(&data).len();
    assert_eq!(made, 7);
    // As it was before the list was written.
    std::fs::write(&segment, log).unwrap();
    std::fs::remove_file(data.join("collectors/c/files.ndjson")).unwrap();
    let collecting = begin("");
    until("it is made into files", || {
        collecting.status.files.get() == 1
    });
    collecting.end();
    assert_eq!(numbers(&data).into_keys().collect::<BTreeSet<_>>(), sent);
    assert!(numbers(&data).into_values().all(|count| count == 1));
    assert_eq!(finished(&data).len(), 1);
    all_is_well(&data);
}

/// Rows that lie among the numbers of other files are moved, and are found where they are.
#[cfg(feature = "upload")]
#[test]
fn partitions_are_moved_and_what_is_missing_there_is_told() {
    use pubgauge_collect::{Config, verify};
    use pubgauge_testing::object_store::ObjectStore;

    let broker = Broker::start();
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let store = ObjectStore::start();
    let upload = store.upload("s3://fleet/raw", &data.with_extension("env"));
    let with_upload = |partition: &str| -> Config {
        let rest = format!("stop-within = \"60s\"\n{}\n{upload}", rest(partition));
        config(&data, &[broker.url()], &rest)
    };
    let collecting = Collecting::begin(with_upload(BY_SITE));
    collecting.connected(1);
    let mut publisher = Publisher::on(&broker, Reliability::AtLeastOnce);
    for _ in 0..4 {
        for topic in TOPICS {
            publisher.publish(topic, 1, 100);
        }
    }
    collecting.stored(32);
    let summary = collecting.end();
    assert!(summary.complete && summary.not_uploaded == 0, "{summary:?}");
    let left: Vec<_> = tree(&data)
        .into_iter()
        .filter(|path| path.contains('='))
        .collect();
    assert_eq!(left, Vec::<String>::new(), "emptied folders are removed");
    let verified = |fetch| verify::verify_with(&data, look(&data, fetch), &mut |_| {}).unwrap();
    let told = verified(false);
    assert_eq!((&told.faults[..], &told.not_seen[..]), (&[][..], &[][..]));
    assert_eq!((told.files_elsewhere, told.messages_elsewhere), (7, 32));
    let read = verified(true);
    assert_eq!((&read.faults[..], read.messages), (&[][..], 32));
    // A line of the list is gone, and with it a file that others know nothing of.
    let list = data.join("collectors/c/files.ndjson");
    let text = std::fs::read_to_string(&list).unwrap();
    let lines: Vec<_> = text
        .lines()
        .filter(|line| !line.contains("site=north"))
        .collect();
    std::fs::write(&list, lines.join("\n") + "\n").unwrap();
    let faults = verified(false).faults;
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!(faults[0].what, "of messages 1 to 32, 4 are missing");
}
