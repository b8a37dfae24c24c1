use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

mod forms;

use super::convert::device_of_name;
use super::*;
use crate::schedule::{Replay, ReplayMode, Schedule};
use crate::tests_support::flow;
use crate::{Arrivals, Due, Flow, SECOND, Sizes};

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Folder(TempDir::new().expect("a folder"))
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, content).expect("written");
        path
    }

    /// The message about a trace that cannot be read, without the folder.
    fn complaint(&self, source: &TraceSource) -> String {
        let error = Trace::read(source).expect_err("wrong").to_string();
        error.replace(&format!("{}/", self.0.path().display()), "")
    }
}

fn plain(path: PathBuf) -> TraceSource {
    TraceSource {
        files: vec![path],
        ..TraceSource::default()
    }
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).expect("in memory");
    encoder.finish().expect("in memory")
}

#[test]
fn plain_csv_and_ndjson_say_the_same() {
    let folder = Folder::new();
    let csv = "time,device,topic,size,payload\n\
        2023-06-13T03:11:46Z,a,t/1,20,\n1686625907.5,b,t/2,5,hello\n2023-06-13T03:11:48Z,a,t/1,20,\n";
    let ndjson = r#"{"time": "2023-06-13T03:11:46Z", "device": "a", "topic": "t/1", "size": 20}

{"time": 1686625907.5, "device": "b", "topic": "t/2", "payload": "hello"}
{"time": "2023-06-13T03:11:48Z", "device": "a", "topic": "t/1", "size": 20}
"#;
    let from_csv = Trace::read(&plain(folder.file("a.csv", csv))).expect("sound");
    let from_ndjson =
        Trace::read(&plain(folder.file("a.ndjson.gz", gzip(ndjson.as_bytes())))).expect("sound");
    for trace in [&from_csv, &from_ndjson] {
        assert_eq!(trace.devices, ["a", "b"]);
        assert_eq!(trace.start, 1_686_625_906_000_000_000);
        let at: Vec<u64> = trace.readings.iter().map(|r| r.at).collect();
        assert_eq!(at, [0, 3 * SECOND / 2, 2 * SECOND]);
        assert_eq!(trace.topic(&trace.readings[1]), Some("t/2"));
        assert_eq!(
            trace.payload(&trace.readings[1]).map(|p| &p[..]),
            Some(&b"hello"[..])
        );
        assert_eq!(trace.below_minimum, 1);
        assert_eq!(
            trace.of_device(0).map(|r| r.size).collect::<Vec<_>>(),
            [20, 20]
        );
    }
}

#[test]
fn what_is_written_reads_back() {
    let folder = Folder::new();
    let csv = "time,device,topic,size\n0,a,t,20\n1.25,\"b,c\",,30\n";
    let first = Trace::read(&plain(folder.file("a.csv", csv))).expect("sound");
    let mut written = Vec::new();
    first.write_plain(&mut written).expect("in memory");
    let second = Trace::read(&plain(folder.file("b.csv", &written))).expect("sound");
    assert_eq!((first.devices, first.start), (second.devices, second.start));
    assert_eq!(first.readings, second.readings);
}

#[test]
fn a_reading_takes_24_bytes() {
    assert_eq!(size_of::<TraceReading>(), 24);
}

#[test]
fn files_are_merged_in_time_order() {
    let folder = Folder::new();
    let source = TraceSource {
        files: vec![
            folder.file(
                "m-1_x.csv",
                "01/02/2012 00:00:00;5\n01/02/2012 00:00:10;6\n",
            ),
            folder.file("m-2_x.csv", "01/02/2012 00:00:05;-7.5\n"),
        ],
        format: Some(TraceFormat {
            delimiter: Some(';'),
            header: Some(false),
            time: TraceColumn::Number(1),
            time_format: Some(TimeFormat::DmyHms),
            device_from_file: Some("m-{device}_*".into()),
            size_of_json: Some(BTreeMap::from([
                ("d".to_string(), TraceColumn::Name("$device".into())),
                ("t".to_string(), TraceColumn::Name("$time".into())),
                ("v".to_string(), TraceColumn::Number(2)),
            ])),
            ..TraceFormat::default()
        }),
        sort: false,
    };
    let trace = Trace::read(&source).expect("sound");
    assert_eq!(trace.devices, ["1", "2"]);
    let order: Vec<u32> = trace.readings.iter().map(|r| r.device).collect();
    assert_eq!(order, [0, 1, 0]);
    let json = r#"{"d":"1","t":1328054400,"v":5}"#;
    assert_eq!(trace.readings[0].size as usize, json.len());
    assert_eq!(trace.readings[1].size as usize, json.len() + 3);
}

#[test]
fn disorder_is_refused_or_sorted() {
    let folder = Folder::new();
    let mut source = plain(folder.file("a.csv", "time,device,size\n10,a,20\n12,a,20\n11,a,21\n"));
    assert_eq!(
        folder.complaint(&source),
        "a.csv:4:1: time runs backwards: 1970-01-01T00:00:11Z comes after 1970-01-01T00:00:12Z\n  \
         hint: `sort = true` in the study's trace (`--sort` of `pubgauge trace convert`) sorts the readings"
    );
    source.sort = true;
    let trace = Trace::read(&source).expect("sorted");
    assert_eq!(trace.readings[1].size, 21);
}

#[test]
fn mistakes_are_placed() {
    let folder = Folder::new();
    let complaint = |content: &str| folder.complaint(&plain(folder.file("x.csv", content)));
    assert_eq!(complaint(""), "x.csv:1:1: the file is empty");
    assert_eq!(
        complaint("time,device,size\n"),
        "x.csv:1:1: there is no reading in the trace"
    );
    let missing = complaint("time,unit,bytes\n1,2,3\n");
    assert!(
        missing.starts_with(
            "x.csv:1:1: missing column: `device`, `size`; there is `time`, `unit`, `bytes`"
        ),
        "{missing}"
    );
    assert!(missing.contains("[trace.NAME.format]"), "{missing}");
    let size = complaint("time,device,size\n1,a,20\n2,a,big\n");
    assert_eq!(
        size,
        "x.csv:3:5: `big` is not a size; expected a whole number of bytes"
    );
    let negative = complaint("time,device,size\n1,a,20\n2,a,-1\n");
    assert!(
        negative.starts_with("x.csv:3:5: `-1` is not a size"),
        "{negative}"
    );
    let huge = complaint("time,device,size\n1,a,4294967295\n");
    assert_eq!(
        huge,
        "x.csv:2:5: 4294967295 bytes are no possible message: the largest has 268435455"
    );
    let short = complaint("time,device,size\n1,a\n");
    assert!(
        short.starts_with("x.csv:2:4: the line has 2 columns where 3 are needed"),
        "{short}"
    );
    let cut = complaint("time,device,payload\n1,d1,{\"t\":1,\"h\":2}\n");
    assert!(
        cut.starts_with("x.csv:2:13: the line has 4 columns where the header names 3"),
        "{cut}"
    );
    let time = complaint("time,device,size\nnoon,a,20\n");
    assert!(
        time.starts_with("x.csv:2:1: `noon` is not a time; expected RFC 3339"),
        "{time}"
    );
    let json = complaint("{\"time\": 1, \"device\": \"a\"}\n");
    assert!(
        json.starts_with("x.csv:1:1: there is neither `size` nor `payload`"),
        "{json}"
    );
    let json = complaint("{\"time\": 1, \"device\": \"a\", \"size\": 20}\n{\"time\": }\n");
    assert!(json.starts_with("x.csv:2:10: expected value"), "{json}");
    let none = folder.complaint(&plain(folder.0.path().join("none.csv")));
    assert!(
        none.starts_with("none.csv: cannot be opened: No such file"),
        "{none}"
    );
    let binary = folder.complaint(&plain(folder.file("b.csv", [0xff, 0xfd, 0, 1])));
    assert!(binary.starts_with("b.csv:1:1: missing column"), "{binary}");
}

#[test]
fn a_record_without_an_end_is_given_up() {
    let folder = Folder::new();
    for begin in [
        "time,device,size\n1,a,20\n1,\"",
        "time,device,size\n1,a,20\n1,",
    ] {
        let content = begin.to_owned() + &"x,".repeat(20 << 19);
        let said = folder.complaint(&plain(folder.file("x.csv", content)));
        assert!(
            said.starts_with("x.csv:3:1: the record that begins here is longer than 16 MiB"),
            "{said}"
        );
    }
    // As many records as one may take are no reason.
    let many = "time,device,size\n".to_owned() + &"1,a,20\n".repeat(3 << 20);
    let trace = Trace::read(&plain(folder.file("y.csv", many))).unwrap();
    assert_eq!(trace.readings.len(), 3 << 20);
}

#[test]
fn mistakes_are_placed_whatever_ends_the_lines_before() {
    let folder = Folder::new();
    for (content, place) in [
        ("time,device,size\r\n1,a,20\r\n2,a,big\r\n", "3:5"),
        ("time,device,size\n\n\n1,a,20\n\n2,a,big\n", "6:5"),
        ("\r\n\r\ntime,device,size\r\n\r\n1,a,big", "5:5"),
        ("time,device,size\r1,a,20\r2,a,big\r", "3:5"),
        (
            "time,device,size\n1,\"a\nb\",20\n\"2\",\"a\"\",\",big\n",
            "4:12",
        ),
        ("time,device,size\n1,\"a\r\nb\",big\n", "3:4"),
        ("time,device,size\n1,a\"b,big\n", "2:7"),
    ] {
        let bytes = content.as_bytes();
        for (name, file) in [
            ("x.csv", folder.file("x.csv", bytes)),
            ("x.csv.gz", folder.file("x.csv.gz", gzip(bytes))),
        ] {
            let complaint = folder.complaint(&plain(file));
            let expected = format!("{name}:{place}: `big` is not a size");
            assert!(complaint.starts_with(&expected), "{content:?}: {complaint}");
        }
    }
}

#[test]
fn half_a_gzip_says_how_far_it_went() {
    let folder = Folder::new();
    let mut csv = String::from("time,device,size\n");
    for second in 0..100_000 {
        csv.push_str(&format!("{second},device-{},20\n", second * 7919 % 1000));
    }
    let none = folder.complaint(&plain(
        folder.file("no.csv.gz", "this is no gzip file at all"),
    ));
    assert!(none.starts_with("no.csv.gz:1:1: "), "{none}");
    let whole = gzip(csv.as_bytes());
    let half = folder.file("half.csv.gz", &whole[..whole.len() / 2]);
    let trace = Trace::read(&plain(half)).expect("half of it is whole");
    let [cut] = &trace.remarks.cut[..] else {
        panic!("{:?}", trace.remarks)
    };
    assert_eq!(
        (cut.line, cut.what),
        (trace.readings.len() as u64 + 1, "the gzip file")
    );
    assert!((10_000..90_000).contains(&cut.line), "{cut:?}");
    for (n, reading) in trace.readings.iter().enumerate() {
        assert_eq!(reading.at, n as u64 * SECOND);
        let device = &trace.devices[reading.device as usize];
        assert_eq!(*device, format!("device-{}", n * 7919 % 1000));
    }
    // Before a whole reading there is nothing to keep.
    let little = folder.complaint(&plain(folder.file("little.csv.gz", &whole[..12])));
    assert!(
        little.contains("the gzip file ends in the middle, before a whole reading"),
        "{little}"
    );
}

#[test]
fn repeats_and_small_changes_are_left_out() {
    let folder = Folder::new();
    let path = folder.file(
        "x.csv",
        "t,d,v,h\n1,a,100,x\n2,a,101,x\n3,b,100,x\n4,a,104,y\n5,a,105,y\n6,a,99,z\n7,a,99,z\n",
    );
    let with = |change: fn(&mut TraceFormat)| {
        let mut format = TraceFormat {
            time: TraceColumn::Name("t".into()),
            device: Some(TraceColumn::Name("d".into())),
            size_bytes: Some(20),
            ..TraceFormat::default()
        };
        change(&mut format);
        let source = TraceSource {
            files: vec![path.clone()],
            format: Some(format),
            sort: false,
        };
        let trace = Trace::read(&source).expect("sound");
        let kept: Vec<u64> = trace.readings.iter().map(|r| r.at / SECOND + 1).collect();
        assert_eq!(kept.len() as u64 + trace.remarks.left_out(), 7);
        kept
    };
    assert_eq!(
        with(|f| f.drop_repeats = Some(TraceColumn::Name("h".into()))),
        [1, 3, 4, 6]
    );
    // The larger of 2 and 5 % has to be reached: 5 after 100.
    assert_eq!(
        with(|f| f.on_change = vec![OnChange {
            column: TraceColumn::Name("v".into()),
            absolute: Some(2.0),
            relative: Some(0.05)
        }]),
        [1, 3, 5, 6]
    );
    assert_eq!(
        with(|f| f.on_change = vec![OnChange {
            column: TraceColumn::Number(3),
            absolute: None,
            relative: None
        }]),
        [1, 2, 3, 4, 5, 6]
    );
}

/// Days in files of their own: what was kept last of a device counts in the next file as well.
#[test]
fn send_on_change_goes_on_from_file_to_file() {
    let folder = Folder::new();
    let name = |column: &str| TraceColumn::Name(column.into());
    let day = |first: u32| format!("time,device,size,v\n{first},a,20,5\n{},a,20,5\n", first + 1);
    let source = TraceSource {
        files: vec![folder.file("1.csv", day(1)), folder.file("2.csv", day(3))],
        format: Some(TraceFormat {
            time: name("time"),
            device: Some(name("device")),
            size: Some(name("size")),
            on_change: vec![OnChange {
                column: name("v"),
                absolute: Some(1.0),
                relative: None,
            }],
            ..TraceFormat::default()
        }),
        sort: false,
    };
    let trace = Trace::read(&source).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((trace.readings.len(), trace.remarks.left_out()), (1, 3));
}

#[test]
fn devices_from_file_names() {
    let device = |pattern: &str, name: &str| device_of_name(pattern, Path::new(name));
    assert_eq!(device("{device}.csv", "x/a.csv").as_deref(), Some("a"));
    assert_eq!(
        device("*__{device}_2012*.gz", "TV__dev_1_2012.gz").as_deref(),
        Some("dev_1")
    );
    assert_eq!(
        device("{device}_*.csv", "a_b_c.csv").as_deref(),
        Some("a_b")
    );
    assert_eq!(
        device("{device}_x{device}.csv", "a_xb.csv").as_deref(),
        Some("ab")
    );
    assert_eq!(device("m-{device}.csv", "n-1.csv"), None);
}

/// A trace of three devices: a every second, b every 2 s, c once.
fn three(folder: &Folder) -> TraceSource {
    let mut csv = String::from("time,device,size\n");
    for second in 0..10 {
        csv.push_str(&format!("{second},a,{}\n", 100 + second));
        if second % 2 == 0 {
            csv.push_str(&format!("{second},b,8\n"));
        }
        if second == 5 {
            csv.push_str("5,c,300\n");
        }
    }
    plain(folder.file("three.csv", csv))
}

fn replaying(source: TraceSource, publishers: usize, change: impl Fn(&mut Replay)) -> Flow {
    let mut replay = Replay {
        source,
        ..Replay::default()
    };
    change(&mut replay);
    Flow {
        arrivals: Arrivals::Replay(replay.into()),
        size: Sizes::Recorded,
        ..flow(
            (0..publishers).map(|p| vec![format!("t/{p}")]).collect(),
            vec![],
        )
    }
}

/// A payload that is not as long as the size beside it is not sent: the message has the size.
#[test]
fn sizes_count_where_payloads_have_another_length() {
    let folder = Folder::new();
    let csv = "time,device,size,payload\n0,a,500,\n1,a,40,hello\n2,a,20,12345678901234567890\n";
    let source = plain(folder.file("a.csv", csv));
    let flow = replaying(source, 1, |replay| replay.looped = false);
    let sent: Vec<(u32, Option<usize>)> = Schedule::new(&flow, 0..1, 1)
        .map(|due| (due.size, due.content.map(|content| content.len())))
        .collect();
    assert_eq!(sent, [(500, None), (40, None), (20, Some(20))]);
}

#[test]
fn another_trace_than_the_planned_one_is_told() {
    let folder = Folder::new();
    let source = plain(folder.file("a.csv", "time,device,size\n0,a,20\n"));
    let checksum = Some(Trace::read(&source).expect("sound").checksum());
    let replay = Replay {
        source,
        checksum,
        ..Replay::default()
    };
    replay.open().expect("the same");
    folder.file("a.csv", "time,device,size\n0,a,21\n");
    let error = replay.open().expect_err("another").to_string();
    assert!(error.contains("another trace"), "{error}");
}

/// NDJSON as a network server writes it: fields by their names and by JSON Pointers.
#[test]
fn objects_of_any_form_are_read_by_their_fields() {
    let folder = Folder::new();
    let line = |ms: u64, t: &str| {
        format!(r#"{{"at": {ms}, "who": {{"id": "d1"}}, "bytes": 23, "decoded": {{{t}}}}}"#)
    };
    let text = [
        line(1_672_867_882_661, r#""t": 7"#),
        line(1_672_867_883_000, r#""t": 7.2, "more": [1]"#),
        line(1_672_867_884_000, r#""h": 80"#),
        String::new(),
        line(1_672_867_885_000, r#""t": 8.5"#),
    ];
    let name = |column: &str| TraceColumn::Name(column.into());
    let mut source = TraceSource {
        files: vec![folder.file("a.ndjson.gz", gzip(text.join("\n").as_bytes()))],
        format: Some(TraceFormat {
            time: name("at"),
            time_format: Some(TimeFormat::EpochMs),
            device: Some(name("/who/id")),
            size: Some(name("bytes")),
            on_change: vec![OnChange {
                column: name("/decoded/t"),
                absolute: Some(1.0),
                relative: None,
            }],
            ..TraceFormat::default()
        }),
        sort: false,
    };
    assert_eq!(
        folder.complaint(&source),
        "a.ndjson.gz:3:1: the object has no `/decoded/t`; it has `at`, `who`, `bytes`, `decoded`\n  hint: \
         `skip-incomplete = true` leaves out objects that lack a field"
    );
    source.format.as_mut().expect("there").skip_incomplete = Some(true);
    let trace = Trace::read(&source).unwrap_or_else(|error| panic!("{error}"));
    let at: Vec<u64> = trace.readings.iter().map(|r| r.at / 1_000_000).collect();
    assert_eq!((at, trace.remarks.left_out()), (vec![0, 2339], 2));
    assert_eq!(
        (trace.devices.join(" "), trace.readings[0].size),
        ("d1".into(), 23)
    );
    let wrong = line(1, r#""t": "warm""#);
    source.files = vec![folder.file("b.ndjson", wrong)];
    assert_eq!(
        folder.complaint(&source),
        "b.ndjson:1:1: `/decoded/t`: `warm` is not a number, which `on-change` needs"
    );
    source.format.as_mut().expect("there").delimiter = Some(';');
    source.files = vec![folder.file("c.ndjson", "{\"at\": 1")];
    assert!(folder.complaint(&source).starts_with("c.ndjson:1:"));
}

#[test]
fn a_tape_is_played_as_recorded() {
    let folder = Folder::new();
    let flow = replaying(three(&folder), 3, |replay| {
        replay.looped = false;
        replay.speed = 2.0;
    });
    let dues: Vec<Due> = Schedule::new(&flow, 0..3, 1).collect();
    assert_eq!(dues.len(), 16);
    let a: Vec<(u64, u32)> = dues
        .iter()
        .filter(|d| d.publisher == 0)
        .map(|d| (d.at, d.size))
        .collect();
    let expected: Vec<(u64, u32)> = (0..10).map(|s| (s * SECOND / 2, 100 + s as u32)).collect();
    assert_eq!(a, expected);
    // Sizes of 8 B are padded.
    assert!(
        dues.iter()
            .filter(|d| d.publisher == 1)
            .all(|d| d.size == 16)
    );
}

/// Of more publishers than devices each plays the tape once, also one that begins behind its last reading.
#[test]
fn a_tape_that_is_not_looped_ends_for_all() {
    let folder = Folder::new();
    let tape = plain(folder.file("two.csv", "time,device,size\n0,a,64\n10,a,64\n"));
    let flow = replaying(tape, 3, |replay| replay.looped = false);
    let dues: Vec<Due> = Schedule::new(&flow, 0..3, 1).take(100).collect();
    for publisher in 0..3 {
        let own = dues.iter().filter(|due| due.publisher == publisher);
        assert_eq!(own.count(), 2, "{publisher}: {dues:?}");
    }
}

/// Messages due when the flow ends are not sent any more, as with every other kind of arrivals.
#[test]
fn a_tape_ends_before_the_end_of_its_flow() {
    let folder = Folder::new();
    let mut flow = replaying(three(&folder), 3, |_| {});
    flow.active_for = Some(2 * SECOND);
    let a = Schedule::new(&flow, 0..1, 1).map(|due| due.at);
    assert_eq!(a.collect::<Vec<_>>(), [0, SECOND]);
}

#[test]
fn a_loop_goes_on_after_a_gap() {
    let folder = Folder::new();
    let flow = replaying(three(&folder), 3, |_| {});
    let c: Vec<u64> = Schedule::new(&flow, 2..3, 1)
        .take(3)
        .map(|d| d.at)
        .collect();
    // 9 s long, and 15 gaps between 16 readings: 0.6 s.
    let lap = 9_600_000_000;
    assert_eq!(c, [5 * SECOND, 5 * SECOND + lap, 5 * SECOND + 2 * lap]);
}

#[test]
fn shards_of_a_tape_make_the_whole() {
    let folder = Folder::new();
    for publishers in [1, 2, 3, 5, 8] {
        for mode in [
            ReplayMode::Tape,
            ReplayMode::Drawn {
                interval: 3 * SECOND,
            },
        ] {
            let flow = replaying(three(&folder), publishers as usize, |replay| {
                replay.mode = mode
            });
            let end = 60 * SECOND;
            let of = |shard: Range<u32>| {
                let dues = Schedule::new(&flow, shard, 9).take_while(|d| d.at < end);
                let mut dues: Vec<_> = dues.map(|d| (d.at, d.publisher, d.size)).collect();
                assert!(dues.is_sorted_by_key(|d| d.0));
                dues.sort_unstable();
                dues
            };
            let mut parts = of(0..publishers / 2);
            parts.extend(of(publishers / 2..publishers));
            parts.sort_unstable();
            let whole = of(0..publishers);
            assert_eq!(parts, whole);
            let heard: std::collections::HashSet<u32> = whole.iter().map(|d| d.1).collect();
            assert_eq!(heard.len(), publishers as usize, "all play");
        }
    }
}

#[test]
fn copies_of_a_device_do_not_play_in_step() {
    let folder = Folder::new();
    let flow = replaying(three(&folder), 6, |_| {});
    let of = |publisher: u32| {
        let dues = Schedule::new(&flow, 0..6, 1).filter(move |d| d.publisher == publisher);
        dues.take(10).map(|d| d.size).collect::<Vec<_>>()
    };
    let (first, copy) = (of(0), of(3));
    assert_eq!(first[0], 100);
    assert_ne!(first, copy);
    let sorted = |mut sizes: Vec<u32>| {
        sizes.sort_unstable();
        sizes
    };
    assert_eq!(sorted(first), sorted(copy), "one lap has the same readings");
}

#[test]
fn draws_keep_rates_and_the_shape_of_the_day() {
    let folder = Folder::new();
    // An hour with a message every second, then an hour with one every 10 s and other sizes.
    let mut csv = String::from("time,device,size\n");
    for second in 0..3600 {
        csv.push_str(&format!("{second},a,{}\n", 100 + second % 10));
    }
    for tens in 360..720 {
        csv.push_str(&format!("{},a,{}\n", tens * 10, 500 + tens % 10));
    }
    let source = plain(folder.file("day.csv", csv));
    let flow = replaying(source, 50, |replay| {
        replay.mode = ReplayMode::Drawn {
            interval: 900 * SECOND,
        }
    });
    let dues: Vec<Due> = Schedule::new(&flow, 0..50, 4)
        .take_while(|d| d.at < 7200 * SECOND)
        .collect();
    // 3,960 a lap and publisher; all positions are equally likely, so all see both hours.
    let expected = 50.0 * 3960.0;
    assert!(
        (dues.len() as f64 / expected - 1.0).abs() < 0.02,
        "{}",
        dues.len()
    );
    let small = dues.iter().filter(|d| d.size < 200).count() as f64 / dues.len() as f64;
    assert!((small / (3600.0 / 3960.0) - 1.0).abs() < 0.01, "{small}");
    // Nobody sends what another sends.
    let of = |publisher: u32| {
        dues.iter()
            .filter(|d| d.publisher == publisher)
            .map(|d| (d.at, d.size))
            .take(50)
            .collect::<Vec<_>>()
    };
    assert_ne!(of(0), of(1));
}

#[test]
fn an_open_trace_is_shared() {
    let folder = Folder::new();
    let source = three(&folder);
    let first = Trace::open(&source).expect("sound");
    let second = Trace::open(&source).expect("sound");
    assert!(Arc::ptr_eq(&first, &second));
}
