use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use ::parquet::file::reader::{FileReader, SerializedFileReader};
use proptest::prelude::*;
use pubgauge_mqtt_codec::QoS;
use pubgauge_place::{Access, OpenFolder};

use super::plan::Source;
use super::*;
use crate::columns::{self, Column, ColumnType, Columns};
use crate::config::{Compression, Form};
use crate::file_name::name_parts;
use crate::files::{self, EventTime, Layout, Partitioning, partition_files};
use crate::folder::{self, Folder};
use crate::log::{Limits, Log};
use crate::manifest::{self, Entry, FileEntry, LIST};
use crate::message::Message;
use crate::store::StoreAddress;
use crate::verify::merged::find_since;
use crate::verify::{Counted, Sequences, SequencesFound, file, verify, verify_each};

const LIMITS: Limits = Limits {
    segment_bytes: 1 << 20,
    segment_age: Duration::from_secs(1000),
    reserve_bytes: 0,
};

/// 2026-11-26 07:00 UTC, and long after it, whenever this test runs.
const SEVEN_S: i64 = 1_795_676_400;
const LATER_S: i64 = 4 * SEVEN_S;

/// Which folders messages become files in.
#[derive(Clone, Copy, Debug)]
enum Folders {
    Hour,
    Site,
    KindAndDate,
    EventHour,
}

impl Folders {
    fn partitioning(self) -> Partitioning {
        let level = |name: &str| files::Part::TopicLevel {
            name: name.into(),
            nth: 1,
        };
        let default = Partitioning::default();
        match self {
            Folders::Hour => default,
            Folders::Site => Partitioning {
                parts: vec![level("site")],
                most: 3,
                ..default
            },
            Folders::KindAndDate => Partitioning {
                parts: vec![level("kind"), files::Part::Date],
                ..default
            },
            Folders::EventHour => Partitioning {
                event_time: Some(EventTime {
                    steps: vec!["at".into()],
                    unit: columns::TimeUnit::S,
                    within: Duration::from_secs(10 * 3600),
                }),
                ..default
            },
        }
    }
}

/// Messages of one segment: the hour of each message after seven, and how it becomes files.
#[derive(Clone, Debug)]
struct Part {
    form: Form,
    hours: Vec<u8>,
    has_columns: bool,
    compression: Compression,
    folders: Folders,
}

impl Part {
    fn of(form: Form, hours: &[u8]) -> Part {
        Part {
            form,
            hours: hours.to_vec(),
            has_columns: false,
            compression: Compression::Snappy,
            folders: Folders::Hour,
        }
    }

    fn within(self, folders: Folders) -> Part {
        Part { folders, ..self }
    }
}

/// Finished files of a collector, one segment after the other.
fn fill(data: &Path, name: &str, parts: &[Part]) -> Folder {
    let folder = Folder::open(data, Some(name), Access::Owner).unwrap();
    let (entries, _) = manifest::read(folder.collectors_folder()).unwrap();
    let mut next = manifest::next_seq(&entries);
    for part in parts {
        finish(&folder, &mut next, part);
    }
    folder
}

fn finish(folder: &Folder, next: &mut u64, part: &Part) {
    let (mut log, _) = Log::open(&folder.log(), part.form, LIMITS, *next).unwrap();
    put(folder, &mut log, next, part);
}

fn put(folder: &Folder, log: &mut Log, next: &mut u64, part: &Part) {
    let first = *next;
    let mut frames = Vec::new();
    for (index, hour) in part.hours.iter().enumerate() {
        // Every third is of an hour of its own, and every fifth tells no time.
        let at = SEVEN_S + 3600 * (*next % 3) as i64;
        let payload = match *next % 5 {
            0 => format!("{{\"v\": {}}}", *next % 7).repeat(1 + *next as usize % 3),
            _ => format!(
                "{{\"v\": {}, \"at\": {at}, \"n\": {}}}",
                *next % 7,
                *next / 3
            ),
        };
        let topic = format!("t/{}", *next % 5);
        let message = Message {
            seq: *next,
            index: index as u32,
            received_ns: (SEVEN_S + i64::from(*hour) * 3600) * 1_000_000_000 + *next as i64,
            broker: "127.0.0.1:1883",
            topic: &topic,
            qos: QoS::AtLeastOnce,
            retain: next.is_multiple_of(4),
            dup: false,
            properties: &[],
            payload: payload.as_bytes(),
        };
        message.append(log.mark(), &mut frames);
        *next += 1;
    }
    log.commit(&frames, first..*next, 0).unwrap();
    let closed = log.rotate().unwrap().unwrap();
    let mut columns = Columns::default();
    if part.has_columns {
        let column = Column {
            name: "v".into(),
            source: columns::Source::pointer("/v").unwrap(),
            of: ColumnType::Int64,
            unit: crate::config::TimeUnit::S,
            topics: None,
        };
        columns = Columns {
            form: Some(columns::Form::Json),
            keep_raw: true,
            columns: vec![column],
        };
    }
    let layout = Layout {
        columns,
        compression: part.compression,
        partitioning: part.folders.partitioning(),
    };
    files::finish(folder, &closed, &layout, &AtomicBool::new(false)).unwrap();
}

/// Each row that a reader finds, as text, by its file's collector and by its number.
type Rows = BTreeMap<(String, u64), Vec<String>>;

/// Rows that a reader finds who takes all files of all partitions; in each of them numbers rise.
fn rows(data: &Path) -> std::io::Result<Rows> {
    let mut rows = Rows::new();
    for path in partition_files(data)? {
        let name = path.file_name().unwrap().to_str().unwrap();
        let Some((stem, .., form)) = name_parts(name) else {
            continue;
        };
        let mut found = Vec::new();
        match form {
            Form::Parquet => {
                let reader = SerializedFileReader::new(std::fs::File::open(&path)?).unwrap();
                for row in reader.get_row_iter(None).unwrap() {
                    let row = row.unwrap();
                    let columns: Vec<_> = row.get_column_iter().collect();
                    let seq = columns[2].1.to_string().parse().unwrap();
                    found.push((seq, row.to_string()));
                }
            }
            Form::Ndjson => {
                for line in std::fs::read_to_string(&path)?.lines() {
                    let value: serde_json::Value = serde_json::from_str(line).unwrap();
                    found.push((value["seq"].as_u64().unwrap(), line.to_owned()));
                }
            }
        }
        assert!(found.is_sorted_by(|a, b| a.0 < b.0), "{name}");
        for (seq, row) in found {
            rows.entry((stem.to_owned(), seq)).or_default().push(row);
        }
    }
    Ok(rows)
}

/// All that is hidden in a data folder: folders that are in no partition's place, and partial files.
fn hidden(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in folder.read_dir().unwrap().map(Result::unwrap) {
        let path = entry.path();
        if entry.file_name().to_str().unwrap().starts_with('.') {
            found.push(path);
        } else if entry.file_type().unwrap().is_dir() && entry.file_name() != "collectors" {
            found.extend(self::hidden(&path));
        }
    }
    found
}

/// All messages, and the numbers in payloads, as verification tells them.
#[derive(Debug, PartialEq)]
struct Ledger {
    /// Topics and payloads, with their numbers, as often as they are there.
    messages: BTreeMap<(u64, Vec<u8>, u32), u64>,
    by_qos: [u64; 3],
    sequence: SequencesFound,
}

fn ledger(data: &Path) -> Ledger {
    let mut messages = BTreeMap::new();
    let mut sequences = Sequences::new("/n", &["topic".into()]).unwrap();
    let found = verify_each(data, &mut |one| {
        let key = (one.seq, one.topic.to_vec(), crc32fast::hash(one.payload));
        *messages.entry(key).or_default() += 1;
        sequences.add(one);
    });
    let found = found.unwrap();
    assert_eq!(found.faults, []);
    Ledger {
        messages,
        by_qos: found.by_qos,
        sequence: sequences.findings(),
    }
}

fn compacted(data: &Path, target_bytes: u64) -> Compacted {
    let options = CompactOptions {
        target_bytes,
        ..CompactOptions::default()
    };
    let stop = AtomicBool::new(false);
    in_steps(data, options, LATER_S, &stop, (&|_| {}, Duration::ZERO)).unwrap()
}

const ALL: u64 = 1 << 30;

fn part() -> impl Strategy<Value = Part> {
    let form = prop_oneof![3 => Just(Form::Parquet), 1 => Just(Form::Ndjson)];
    let compression = prop_oneof![Just(Compression::Snappy), Just(Compression::Zstd)];
    let hours = prop::collection::vec(prop_oneof![6 => 0..1u8, 1 => 0..3u8], 1..12);
    let folders = prop_oneof![
        Just(Folders::Hour),
        Just(Folders::Site),
        Just(Folders::KindAndDate),
        Just(Folders::EventHour)
    ];
    (form, hours, prop::bool::weighted(0.2), compression, folders).prop_map(
        |(form, hours, has_columns, compression, folders)| Part {
            form,
            hours,
            has_columns,
            compression,
            folders,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_reader_finds_the_same_rows_and_a_second_time_there_is_nothing_to_do(
        one in prop::collection::vec(part(), 1..16),
        other in prop::collection::vec(part(), 1..8),
        target in prop_oneof![Just(ALL), 3000..12_000u64],
    ) {
        let data = tempfile::tempdir().unwrap();
        drop(fill(data.path(), "one", &one));
        drop(fill(data.path(), "other", &other));
        let before = rows(data.path()).unwrap();
        let told = ledger(data.path());
        let files_before = partition_files(data.path()).unwrap().len() as u64;
        let done = compacted(data.path(), target);
        prop_assert_eq!((&done.left, &done.faults), (&vec![], &vec![]));
        prop_assert_eq!(rows(data.path()).unwrap(), before.clone());
        let files_after = partition_files(data.path()).unwrap().len() as u64;
        prop_assert_eq!(files_after, files_before - done.files + done.merged_files);
        let found = verify(data.path()).unwrap();
        prop_assert_eq!((found.faults, found.files), (vec![], files_after));
        prop_assert_eq!(found.messages, before.len() as u64);
        prop_assert_eq!(ledger(data.path()), told);
        prop_assert_eq!(hidden(data.path()), Vec::<PathBuf>::new());
        if target == ALL {
            prop_assert_eq!(compacted(data.path(), target), Compacted::default());
        }
    }
}

/// Two collectors with three segments each, the last of which is of two hours.
fn two(data: &Path, folders: Folders) {
    let part = Part::of(Form::Parquet, &[0, 0, 0]).within(folders);
    let rest = Part::of(Form::Parquet, &[0, 1]).within(folders);
    drop(fill(
        data,
        "one",
        &[part.clone(), part.clone(), rest.clone()],
    ));
    drop(fill(data, "other", &[part.clone(), part, rest]));
}

#[test]
fn whenever_it_is_killed_each_message_is_there_once_and_the_next_one_finishes() {
    // The steps of each partition: begun, one written, linked, one announced, exchanged, one listed, removed, and
    // three more where it has files of both collectors.
    for (folders, steps) in [
        (Folders::Hour, 10),
        (Folders::Site, 30),
        (Folders::KindAndDate, 30),
        (Folders::EventHour, 30),
    ] {
        killed_at_each_step(folders, steps);
    }
}

fn killed_at_each_step(folders: Folders, all: u64) {
    let kill_at = |data: &Path, nth: u64| {
        let count = AtomicU64::new(0);
        let steps = |step: CompactStep| {
            let now = count.fetch_add(1, SeqCst);
            assert!(now != nth, "killed at {step:?}");
        };
        let stop = AtomicBool::new(false);
        let run = || {
            in_steps(
                data,
                CompactOptions::default(),
                LATER_S,
                &stop,
                (&steps, Duration::ZERO),
            )
        };
        let killed = catch_unwind(AssertUnwindSafe(run)).is_err();
        (killed, count.load(SeqCst))
    };
    let data = tempfile::tempdir().unwrap();
    two(data.path(), folders);
    assert_eq!(kill_at(data.path(), u64::MAX), (false, all), "{folders:?}");
    let files = partition_files(data.path()).unwrap().len();
    for nth in 0..all {
        let data = tempfile::tempdir().unwrap();
        two(data.path(), folders);
        let (before, told) = (rows(data.path()).unwrap(), ledger(data.path()));
        assert!(kill_at(data.path(), nth).0);
        let whole = |when: &str| {
            let when = format!("{when}, {folders:?}, step {nth}");
            assert_eq!(rows(data.path()).unwrap(), before, "{when}");
            assert_eq!(ledger(data.path()), told, "{when}");
        };
        whole("killed");
        // A collector that starts now removes nothing and makes nothing twice.
        drop(fill(data.path(), "one", &[]));
        whole("collected");
        let done = compacted(data.path(), ALL);
        assert_eq!((&done.left, &done.faults), (&vec![], &vec![]));
        whole("merged");
        assert_eq!(partition_files(data.path()).unwrap().len(), files);
        assert_eq!(hidden(data.path()), Vec::<PathBuf>::new());
        // Files that were finished so can be merged with more.
        let more = Part::of(Form::Parquet, &[0, 0, 0]).within(folders);
        drop(fill(data.path(), "one", &[more]));
        assert!(compacted(data.path(), ALL).merged_files > 0);
        let all: u64 = ledger(data.path()).messages.values().sum();
        assert_eq!(all, before.len() as u64 + 3, "{folders:?}, step {nth}");
    }
}

/// Has all threads of a test end once one of them does, even by a panic.
struct EndsOthers<'a>(&'a AtomicBool);

impl Drop for EndsOthers<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

fn wait_for(over: &AtomicBool, holds: impl Fn() -> bool) {
    while !holds() && !over.load(SeqCst) {
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_collector_at_work_and_a_reader_are_not_disturbed() {
    let data = tempfile::tempdir().unwrap();
    let part = Part::of(Form::Parquet, &[0, 0, 0]);
    let folder = fill(data.path(), "one", &[part.clone(), part.clone()]);
    let finished = AtomicU64::new(6);
    let over = AtomicBool::new(false);
    let looks = AtomicU64::new(0);
    let merged = AtomicU64::new(0);
    let merges = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ends = EndsOthers(&over);
            // A log that is open all the time, as that of a collector is.
            let mut next = 7;
            let (mut log, _) = Log::open(&folder.log(), Form::Parquet, LIMITS, next).unwrap();
            // As long as it takes until both have had their turns.
            while next < 100 || looks.load(SeqCst) < 20 || merged.load(SeqCst) < 20 {
                put(&folder, &mut log, &mut next, &part);
                finished.store(next - 1, SeqCst);
                // Six files for each turn of the others, who would not be through with more of them.
                wait_for(&over, || next < 18 * (merges.load(SeqCst) + 2));
                if over.load(SeqCst) {
                    return;
                }
            }
        });
        // Something is to be read from the third file on.
        wait_for(&over, || finished.load(SeqCst) > 6);
        scope.spawn(|| {
            let _ends = EndsOthers(&over);
            while !over.load(SeqCst) {
                let done = compacted(data.path(), 20_000);
                assert_eq!(done.faults, []);
                merged.fetch_add(done.merged_files, SeqCst);
                merges.fetch_add(1, SeqCst);
                let looked = looks.load(SeqCst);
                wait_for(&over, || looks.load(SeqCst) > looked);
            }
        });
        scope.spawn(|| {
            let _ends = EndsOthers(&over);
            while !over.load(SeqCst) {
                let hour = || std::fs::metadata(data.path().join("date=2026-11-26/hour=07"));
                let number = |hour: std::io::Result<std::fs::Metadata>| hour.unwrap().ino();
                let (at_least, before) = (finished.load(SeqCst), number(hour()));
                // A file that was listed before the exchange, and opened behind it, is not found: that is told. And a
                // thread that stands still between opening a folder and listing it is no reader.
                let Some(rows) = rows(data.path()).ok().filter(|_| number(hour()) == before) else {
                    continue;
                };
                for (nth, ((_, seq), copies)) in rows.iter().enumerate() {
                    assert_eq!((nth as u64 + 1, 1), (*seq, copies.len()));
                }
                assert!(rows.len() as u64 >= at_least);
                looks.fetch_add(1, SeqCst);
            }
        });
        scope.spawn(|| {
            let _ends = EndsOthers(&over);
            while !over.load(SeqCst) {
                assert_eq!(verify(data.path()).unwrap().faults, []);
            }
        });
    });
    let all = finished.load(SeqCst);
    let found = verify(data.path()).unwrap();
    assert_eq!((found.faults, found.messages), (vec![], all));
}

#[test]
fn what_must_not_be_merged_is_left_and_told() {
    let part = Part::of(Form::Parquet, &[0, 0, 0]);
    let fresh = || {
        let data = tempfile::tempdir().unwrap();
        let folder = fill(
            data.path(),
            "one",
            &[part.clone(), part.clone(), part.clone()],
        );
        (data, folder)
    };
    let left = |done: &Compacted, words: &str| {
        assert_eq!(done.merged_files, 0, "{done:?}");
        assert!(done.left[0].what.contains(words), "{done:?}");
    };
    // Files that may be in a store already.
    let (data, folder) = fresh();
    let to = StoreAddress {
        url: "s3://fleet/raw".into(),
        endpoint: None,
        region: None,
    };
    folder.list(&[Entry::Uploading { to: to.clone() }]).unwrap();
    left(&compacted(data.path(), ALL), "to a store");
    // One that begins to move them meanwhile.
    let (data, folder) = fresh();
    let begin = |step: CompactStep| {
        if step == CompactStep::Written {
            folder.list(&[Entry::Uploading { to: to.clone() }]).unwrap();
        }
    };
    let steps: (Steps<'_>, _) = (&begin, Duration::ZERO);
    let stop = AtomicBool::new(false);
    let done = in_steps(
        data.path(),
        CompactOptions::default(),
        LATER_S,
        &stop,
        steps,
    )
    .unwrap();
    left(&done, "to a store now");
    // A collector that holds nothing while it changes names.
    let (data, _folder) = fresh();
    std::fs::remove_file(data.path().join("collectors/.changing")).unwrap();
    left(
        &compacted(data.path(), ALL),
        "of a version that knows nothing",
    );
    // A link among the files.
    let (data, _folder) = fresh();
    let hour = data.path().join("date=2026-11-26/hour=07");
    std::os::unix::fs::symlink("/etc/passwd", hour.join("link.parquet")).unwrap();
    left(&compacted(data.path(), ALL), "symbolic link");
    // Hours that have not ended so long ago.
    let (data, _folder) = fresh();
    let stop = AtomicBool::new(false);
    let at = |now_s| compact(data.path(), CompactOptions::default(), now_s, &stop).unwrap();
    assert_eq!(at(SEVEN_S + 7199), Compacted::default());
    assert_eq!(at(SEVEN_S + 7200).merged_files, 1);
    // A day that has not ended, and files in folders that tell no time.
    for (folders, over_s) in [
        (Folders::KindAndDate, SEVEN_S + 18 * 3600),
        (Folders::Site, SEVEN_S + 7200),
    ] {
        let data = tempfile::tempdir().unwrap();
        drop(fill(
            data.path(),
            "one",
            &vec![part.clone().within(folders); 4],
        ));
        let made = std::time::UNIX_EPOCH + Duration::from_secs((SEVEN_S + 3600) as u64);
        for path in partition_files(data.path()).unwrap() {
            let file = std::fs::File::options().write(true).open(path).unwrap();
            file.set_modified(made).unwrap();
        }
        let at = |now_s| compact(data.path(), CompactOptions::default(), now_s, &stop).unwrap();
        assert_eq!(at(over_s - 1), Compacted::default(), "{folders:?}");
        assert!(at(over_s).merged_files > 1, "{folders:?}");
    }
    // Folders beside the files of a partition.
    let (data, _folder) = fresh();
    std::fs::create_dir(data.path().join("date=2026-11-26/hour=07/site=a")).unwrap();
    left(
        &compacted(data.path(), ALL),
        "has folders, such as \"site=a\"",
    );
}

#[test]
fn numbers_of_other_files_lie_between_those_of_a_merged_one() {
    let data = tempfile::tempdir().unwrap();
    let part = Part::of(Form::Parquet, &[0; 5]);
    let folder = fill(
        data.path(),
        "one",
        &vec![part.clone().within(Folders::KindAndDate); 3],
    );
    assert_eq!(compacted(data.path(), ALL).merged_files, 5);
    let listed = || {
        let (entries, _) = manifest::read(folder.collectors_folder()).unwrap();
        let files = manifest::files(&entries, &|_| false);
        let about = |(file, _): (&FileEntry, _)| (file.first, file.last, file.messages, file.among);
        files.into_values().map(about).collect::<Vec<_>>()
    };
    let every_fifth = |first| (first, first + 10, 3, Some((1, 15)));
    let expected = [5, 1, 2, 3, 4].map(every_fifth);
    assert_eq!(listed(), expected);
    // One that cannot be read lacks what the others leave over, and nothing else is told.
    let damaged = partition_files(data.path()).unwrap().remove(1);
    std::fs::write(&damaged, "x").unwrap();
    let faults = verify(data.path()).unwrap().faults;
    assert!(
        faults.len() == 1 && faults[0].what.contains("1 bytes instead"),
        "{faults:?}"
    );
}

#[test]
fn files_are_not_merged_among_more_numbers_than_are_kept_when_they_are_read() {
    let file = |first: u64, last: u64, among| Source {
        entry: FileEntry {
            path: String::new(),
            bytes: 1,
            crc32: 0,
            first,
            last,
            messages: 1,
            among,
        },
        name: String::new(),
        stem: String::new(),
        form: Form::Parquet,
    };
    let lengths = |sources| -> Vec<usize> {
        let runs = plan::runs(0, sources, ALL);
        runs.iter().map(|run| run.sources.len()).collect()
    };
    let (third, many) = (plan::MOST_AMONG / 3, 10 * plan::MOST_AMONG);
    let segment = |nth: u64| {
        let (first, last) = (1 + nth * third, (nth + 1) * third);
        file(first + 1, last - 1, Some((first, last)))
    };
    assert_eq!(lengths((0..7).map(segment).collect()), [3, 3]);
    let whole = |nth: u64| file(1 + nth * many, (nth + 1) * many, None);
    assert_eq!(lengths((0..7).map(whole).collect()), [7]);
    // A gap, and numbers that two files have.
    assert_eq!(lengths(vec![file(1, 2, None), file(5, 6, None)]), [2]);
    assert_eq!(lengths(vec![file(1, 5, None), file(5, 6, None)]), [0; 0]);
}

#[test]
fn a_file_that_is_being_written_goes_on_where_the_others_are() {
    let part = Part::of(Form::Ndjson, &[0, 0, 0]);
    let data = tempfile::tempdir().unwrap();
    let _folder = fill(data.path(), "one", &[part.clone(), part.clone()]);
    let hour = data.path().join("date=2026-11-26/hour=07");
    let partial = hour.join(".one-0000000000000007.tmp");
    let mut file = std::fs::File::create(&partial).unwrap();
    file.write_all(b"begun, ").unwrap();
    let before = std::fs::metadata(&hour).unwrap().ino();
    assert_eq!(compacted(data.path(), ALL).merged_files, 1);
    assert_ne!(std::fs::metadata(&hour).unwrap().ino(), before);
    file.write_all(b"and ended").unwrap();
    assert_eq!(std::fs::read(&partial).unwrap(), b"begun, and ended");
}

#[test]
fn a_damaged_file_stays_as_it_is_and_is_told() {
    let part = Part::of(Form::Parquet, &[0, 0, 0]);
    let data = tempfile::tempdir().unwrap();
    drop(fill(data.path(), "one", &vec![part; 5]));
    let damaged = partition_files(data.path()).unwrap().swap_remove(2);
    let mut bytes = std::fs::read(&damaged).unwrap();
    bytes[40] ^= 1;
    std::fs::write(&damaged, &bytes).unwrap();
    let done = compacted(data.path(), ALL);
    assert_eq!((done.files, done.merged_files), (4, 2));
    assert!(done.faults[0].what.contains("checksum"), "{done:?}");
    assert_eq!(std::fs::read(&damaged).unwrap(), bytes);
    let faults = verify(data.path()).unwrap().faults;
    assert_eq!(faults.len(), 1, "{faults:?}");
}

#[test]
fn files_whose_segment_may_become_files_again_are_not_merged() {
    let part = Part::of(Form::Parquet, &[0, 0, 0]);
    let data = tempfile::tempdir().unwrap();
    let folder = fill(data.path(), "one", &[part.clone(), part.clone()]);
    let (entries, _) = manifest::read(folder.collectors_folder()).unwrap();
    let before = rows(data.path()).unwrap();
    // Killed before the segment was removed: the files are made again at the next start.
    let mut next = 4;
    let (mut log, _) = Log::open(&folder.log(), Form::Parquet, LIMITS, next).unwrap();
    let segments = crate::log::segment::list(&folder.log()).unwrap();
    let first = segments[0].0;
    assert!(first > 6, "{segments:?}");
    let header = folder.log().read(&segments[0].1, 1 << 20).unwrap();
    drop(log.rotate());
    next = 4;
    let again = crate::log::segment::file_name(next);
    folder.log().write(&again, header).unwrap();
    assert_eq!(compacted(data.path(), ALL), Compacted::default());
    folder.log().remove_file(&again).unwrap();
    assert_eq!(compacted(data.path(), ALL).files, 2);
    assert_eq!(rows(data.path()).unwrap(), before);
    assert_eq!(entries.len(), 2);
}

#[test]
fn a_merged_file_that_is_there_again_or_gone_is_told() {
    let data = tempfile::tempdir().unwrap();
    two(data.path(), Folders::Hour);
    let source = partition_files(data.path()).unwrap().remove(0);
    let bytes = std::fs::read(&source).unwrap();
    compacted(data.path(), ALL);
    assert_eq!(verify(data.path()).unwrap().faults, []);
    std::fs::write(&source, bytes).unwrap();
    let faults = verify(data.path()).unwrap().faults;
    assert!(
        faults.len() == 1 && faults[0].what.contains("is there again"),
        "{faults:?}"
    );
    std::fs::remove_file(&source).unwrap();
    let merged = partition_files(data.path()).unwrap().remove(0);
    std::fs::remove_file(merged).unwrap();
    let faults = verify(data.path()).unwrap().faults;
    assert!(
        faults.len() == 1 && faults[0].what == "is missing",
        "{faults:?}"
    );
}

#[test]
fn a_file_that_was_merged_since_the_list_was_read_is_found_in_its_own_folder() {
    for folders in [Folders::Hour, Folders::KindAndDate, Folders::EventHour] {
        let data = tempfile::tempdir().unwrap();
        two(data.path(), folders);
        let top = OpenFolder::open(data.path()).unwrap();
        let own = top.inside("collectors").unwrap().inside("one").unwrap();
        let (entries, _) = manifest::read(&own).unwrap();
        compacted(data.path(), ALL);
        let listed = manifest::files(&entries, &|_| false).into_values();
        for (gone, _) in listed.filter(|(file, _)| !folder::holds(&top, file)) {
            let (into, content) = find_since(&top, &own, gone).unwrap();
            let mut numbers = Vec::new();
            let mut take = |one: Counted<'_>| numbers.push(one.seq);
            file::read(content, &into, &mut take).unwrap();
            numbers.retain(|seq| (gone.first..=gone.last).contains(seq));
            assert_eq!(numbers.len() as u64, gone.messages, "{gone:?} {into:?}");
        }
    }
}

#[test]
fn a_list_of_a_stranger_leads_nowhere_else() {
    let all = tempfile::tempdir().unwrap();
    let data = all.path().join("data");
    two(&data, Folders::Hour);
    let outside = all.path().join("outside.parquet");
    std::fs::write(&outside, "theirs").unwrap();
    let list = data.join("collectors/one").join(LIST);
    let good = std::fs::read_to_string(&list).unwrap();
    let before = rows(&data).unwrap();
    let evil = good.replacen("date=2026-11-26/hour=07/", "date=x/../", 1)
        + "{\"merging\":{\"into\":{\"path\":\"../outside.parquet\",\"bytes\":6,\"crc32\":0,\"first\":1,\"last\":2,\"messages\":2},\"from\":[\"../../x\"]}}\n";
    std::fs::write(&list, evil).unwrap();
    let done = compacted(&data, ALL);
    assert_eq!(done.left, []);
    assert_eq!(rows(&data).unwrap(), before);
    assert_eq!(std::fs::read(&outside).unwrap(), b"theirs");
}
