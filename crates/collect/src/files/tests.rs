use super::partition::HOUR_NS;
use super::*;
use crate::columns::Undecoded;
use crate::config::Form;
use crate::log::{Limits, Log};
use crate::manifest;
use crate::message::Message;
use ::parquet::data_type::AsBytes;
use pubgauge_mqtt_codec::{PropertiesBuf, Property, QoS};
use pubgauge_place::Access;
use std::time::Duration;

const LIMITS: Limits = Limits {
    segment_bytes: 1 << 20,
    segment_age: Duration::from_secs(1000),
    reserve_bytes: 0,
};

/// A collector's folder with a closed segment of messages that were received at these times.
fn segment(data: &Path, form: Form, times: &[i64]) -> (Folder, Closed) {
    let folder = Folder::open(data, Some("c"), Access::Owner).unwrap();
    let (mut log, _) = Log::open(&folder.log(), form, LIMITS, 1).unwrap();
    let mut properties = PropertiesBuf::default();
    properties
        .push(Property::ContentType("text/plain"))
        .unwrap();
    properties.push(Property::UserProperty(("k", "v"))).unwrap();
    let mut frames = Vec::new();
    for (nth, &received_ns) in times.iter().enumerate() {
        let payload = [nth as u8, 0xff, b'"'];
        let message = Message {
            seq: nth as u64 + 1,
            index: nth as u32,
            received_ns,
            broker: "127.0.0.1:1883",
            topic: "a/\"ü\"",
            qos: QoS::AtLeastOnce,
            retain: nth % 2 == 0,
            dup: nth % 3 == 0,
            properties: if nth == 1 {
                properties.as_properties().as_bytes()
            } else {
                &[]
            },
            payload: if nth == 2 { b"text" } else { &payload },
        };
        message.append(log.mark(), &mut frames);
    }
    log.commit(&frames, 1..times.len() as u64 + 1, 0).unwrap();
    let closed = log.rotate().unwrap().unwrap();
    (folder, closed)
}

fn finish_all(folder: &Folder, closed: &Closed) -> Finished {
    let layout = Layout::default();
    finish(folder, closed, &layout, &AtomicBool::new(false)).unwrap()
}

/// 2026-11-26 07:00 UTC.
const SEVEN: i64 = 1_795_676_400_000_000_000;

#[test]
fn messages_become_parquet_by_hour_and_are_read_again() {
    let data = tempfile::tempdir().unwrap();
    let times = [
        SEVEN,
        SEVEN + 1_999,
        SEVEN + 5,
        SEVEN + HOUR_NS,
        SEVEN + HOUR_NS,
    ];
    let (folder, closed) = segment(data.path(), Form::Parquet, &times);
    let finished = finish_all(&folder, &closed);
    let paths: Vec<&str> = finished.files.iter().map(|file| &*file.path).collect();
    let stem = folder.stem();
    assert!(stem.starts_with("c."), "{stem}");
    assert_eq!(
        paths,
        [
            format!("date=2026-11-26/hour=07/{stem}-0000000000000001-0000000000000003.parquet"),
            format!("date=2026-11-26/hour=08/{stem}-0000000000000004-0000000000000005.parquet"),
        ]
    );
    assert!(!closed.path.exists(), "the segment is removed");
    let (entries, wrong) = manifest::read(folder.collectors_folder()).unwrap();
    let expected: Vec<Entry> = finished.files.iter().cloned().map(Entry::File).collect();
    assert_eq!((entries, wrong), (expected, vec![]));
    for file in &finished.files {
        let bytes = std::fs::read(data.path().join(&file.path)).unwrap();
        assert_eq!(
            (bytes.len() as u64, crc32fast::hash(&bytes)),
            (file.bytes, file.crc32)
        );
    }
    let mut rows = Vec::new();
    read_columns(&data.path().join(paths[0]), |group| rows.extend(group)).unwrap();
    let seqs: Vec<u64> = rows.iter().map(|row| row.seq).collect();
    assert_eq!(seqs, [1, 2, 3]);
    assert_eq!(rows[0].topic.as_bytes(), "a/\"ü\"".as_bytes());
    assert_eq!((rows[0].qos, rows[0].dup, rows[1].dup), (1, true, false));
    assert_eq!(rows[1].payload.as_bytes(), [1, 0xff, b'"']);
    assert_eq!(rows[2].payload.as_bytes(), b"text");
}

#[test]
fn parquet_has_times_and_properties_in_their_types() {
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::RowAccessor;
    let data = tempfile::tempdir().unwrap();
    let (folder, closed) = segment(data.path(), Form::Parquet, &[SEVEN + 1_999, SEVEN]);
    let finished = finish_all(&folder, &closed);
    let file = std::fs::File::open(data.path().join(&finished.files[0].path)).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let rows: Vec<_> = reader
        .get_row_iter(None)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(rows[0].get_timestamp_micros(0).unwrap(), SEVEN / 1000 + 1);
    assert_eq!(rows[0].get_long(1).unwrap(), SEVEN + 1_999);
    assert_eq!(rows[0].get_string(3).unwrap(), "127.0.0.1:1883");
    assert!(rows[0].get_bool(6).unwrap() && rows[0].get_string(8).is_err());
    assert_eq!(rows[1].get_string(8).unwrap(), "text/plain");
    assert_eq!(rows[1].get_string(9).unwrap(), "{\"user\":[[\"k\",\"v\"]]}");
}

#[test]
fn messages_become_lines_of_json() {
    let data = tempfile::tempdir().unwrap();
    let (folder, closed) = segment(data.path(), Form::Ndjson, &[SEVEN, SEVEN, SEVEN + 2_001]);
    let finished = finish_all(&folder, &closed);
    let text = std::fs::read_to_string(data.path().join(&finished.files[0].path)).unwrap();
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(lines[0]["received"], "2026-11-26T07:00:00.000000Z");
    assert_eq!(lines[0]["payload_base64"], "AP8i");
    assert_eq!(lines[1]["content_type"], "text/plain");
    assert_eq!(lines[1]["properties"]["user"][0][0], "k");
    assert_eq!(lines[2]["received"], "2026-11-26T07:00:00.000002Z");
    assert_eq!(
        (&lines[2]["payload"], &lines[2]["topic"]),
        (&"text".into(), &"a/\"ü\"".into())
    );
    let line: Line<'_> = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(line.payload().unwrap(), [0, 0xff, b'"']);
}

/// Columns of payloads such as {"watts": 5}.
fn watts(keep_raw: bool) -> Layout {
    use crate::columns::{Column, ColumnType, Columns, Source, TimeUnit};
    let column = |name: &str, of| Column {
        name: name.into(),
        source: Source::Pointer(vec![name.into()]),
        of,
        unit: TimeUnit::S,
        topics: None,
    };
    let columns = Columns {
        form: Some(crate::columns::Form::Json),
        keep_raw,
        columns: vec![
            column("watts", ColumnType::Double),
            column("count", ColumnType::Int64),
            column("unit", ColumnType::String),
            column("on", ColumnType::Boolean),
            column("at", ColumnType::Timestamp),
        ],
    };
    Layout {
        columns,
        ..Layout::default()
    }
}

const PAYLOADS: [&[u8]; 4] = [
    br#"{"watts": 1.5, "count": 3, "unit": "W", "on": true, "at": "2026-11-26T07:00:00Z"}"#,
    br#"{"watts": 2}"#,
    br#"{"watts": "two", "count": 4}"#,
    b"no JSON",
];

/// The file of messages with these payloads.
fn decoded_file(form: Form, layout: &Layout) -> Made {
    let mut frames = Vec::new();
    for (nth, payload) in PAYLOADS.into_iter().enumerate() {
        let message = Message {
            index: nth as u32,
            received_ns: SEVEN,
            ..Message::numbered(nth as u64 + 1, payload)
        };
        message.append(7, &mut frames);
    }
    let (mut made, finished) = in_memory("c", (form, layout), 7, &frames.into()).unwrap();
    let expected = Undecoded {
        form: 1,
        value: 1,
        missing: 1,
    };
    assert_eq!(finished.undecoded, expected);
    assert_eq!(made.len(), 1);
    made.remove(0)
}

#[test]
fn parquet_is_compressed_as_it_is_asked_for() {
    use crate::config::Compression;
    use ::parquet::basic::Compression as Written;
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    for (compression, written) in [
        (Compression::Snappy, Written::SNAPPY),
        (Compression::Zstd, Written::ZSTD(Default::default())),
        (Compression::Lz4, Written::LZ4_RAW),
        (Compression::None, Written::UNCOMPRESSED),
    ] {
        let mut layout = watts(true);
        layout.compression = compression;
        let made = decoded_file(Form::Parquet, &layout);
        let reader = SerializedFileReader::new(made.bytes.clone()).unwrap();
        for column in reader.metadata().row_group(0).columns() {
            let is_same =
                std::mem::discriminant(&column.compression()) == std::mem::discriminant(&written);
            assert!(is_same, "{compression:?}: {:?}", column.compression());
        }
        let mut payloads = Vec::new();
        read_columns_of(made.bytes, |group| {
            payloads.extend(group.into_iter().map(|row| row.payload.data().to_vec()))
        })
        .unwrap();
        assert_eq!(payloads, PAYLOADS);
    }
}

/// A row group holds slices of one buffer, so that no more than one is in memory.
#[test]
fn a_row_group_ends_with_its_buffer() {
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    let layout = Layout::default();
    let mut writer = writer::FormWriter::new(Form::Parquet, &layout, Vec::new()).unwrap();
    for first in [1, 3] {
        let mut frames = Vec::new();
        for seq in first..first + 2 {
            let message = Message {
                received_ns: SEVEN,
                ..Message::numbered(seq, b"payload")
            };
            message.append(7, &mut frames);
        }
        let frames = bytes::Bytes::from(frames);
        for message in crate::message::Messages::new(7, &frames) {
            writer.add(&frames, &message).unwrap();
        }
    }
    let (file, _) = writer.finish().unwrap();
    let reader = SerializedFileReader::new(bytes::Bytes::from(file)).unwrap();
    let groups = reader.metadata().row_groups().iter();
    let rows: Vec<i64> = groups.map(|group| group.num_rows()).collect();
    assert_eq!(rows, [2, 2]);
}

#[test]
fn decoded_payloads_are_columns_of_their_types() {
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::RowAccessor;
    for keep_raw in [true, false] {
        let made = decoded_file(Form::Parquet, &watts(keep_raw));
        assert_eq!(
            made.path,
            "date=2026-11-26/hour=07/c-0000000000000001-0000000000000004.parquet"
        );
        let reader = SerializedFileReader::new(made.bytes.clone()).unwrap();
        let rows: Vec<_> = reader
            .get_row_iter(None)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let decoded: Vec<bool> = rows.iter().map(|row| row.get_bool(11).unwrap()).collect();
        assert_eq!(decoded, [true, false, false, false]);
        assert_eq!(
            (
                rows[0].get_double(12).unwrap(),
                rows[0].get_long(13).unwrap()
            ),
            (1.5, 3)
        );
        assert_eq!(
            (
                rows[0].get_string(14).unwrap().as_str(),
                rows[0].get_bool(15).unwrap()
            ),
            ("W", true)
        );
        assert_eq!(rows[0].get_timestamp_micros(16).unwrap(), SEVEN / 1000);
        assert_eq!(
            (
                rows[1].get_double(12).unwrap(),
                rows[1].get_long(13).is_err()
            ),
            (2.0, true)
        );
        assert_eq!(
            (
                rows[2].get_double(12).is_err(),
                rows[2].get_long(13).unwrap()
            ),
            (true, 4)
        );
        // What was not decoded is there in any case.
        let mut payloads = Vec::new();
        read_columns_of(made.bytes, |group| {
            payloads.extend(group.into_iter().map(|row| row.payload.data().to_vec()))
        })
        .unwrap();
        let kept = |nth: usize| keep_raw || nth >= 1;
        let expected: Vec<Vec<u8>> = PAYLOADS
            .iter()
            .enumerate()
            .map(|(nth, payload)| {
                if kept(nth) {
                    payload.to_vec()
                } else {
                    Vec::new()
                }
            })
            .collect();
        assert_eq!(payloads, expected);
    }
}

#[test]
fn decoded_payloads_are_values_of_lines() {
    for keep_raw in [true, false] {
        let made = decoded_file(Form::Ndjson, &watts(keep_raw));
        let text = std::str::from_utf8(&made.bytes).unwrap();
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let expected = serde_json::json!({"watts": 1.5, "count": 3, "unit": "W", "on": true, "at": "2026-11-26T07:00:00.000000Z"});
        assert_eq!(
            (&lines[0]["values"], &lines[0]["decoded"]),
            (&expected, &true.into())
        );
        assert_eq!(lines[0].get("payload").is_some(), keep_raw);
        assert_eq!(
            (&lines[2]["values"], &lines[2]["decoded"]),
            (&serde_json::json!({"count": 4}), &false.into())
        );
        assert_eq!(
            (&lines[3]["values"], &lines[3]["payload"]),
            (&serde_json::json!({}), &"no JSON".into())
        );
        for line in text.lines() {
            let line: Line<'_> = serde_json::from_str(line).unwrap();
            assert!(line.payload().is_some());
        }
    }
}

#[test]
fn a_repeated_compaction_makes_the_same_files() {
    let data = tempfile::tempdir().unwrap();
    let times = [SEVEN, SEVEN, SEVEN + HOUR_NS];
    let (folder, closed) = segment(data.path(), Form::Parquet, &times);
    let kept = std::fs::read(&closed.path).unwrap();
    let first = finish_all(&folder, &closed);
    std::fs::write(&closed.path, &kept).unwrap();
    // Something that was left half done.
    std::fs::write(
        data.path()
            .join("date=2026-11-26/hour=08/.c-0000000000000003.tmp"),
        "x",
    )
    .unwrap();
    assert_eq!(finish_all(&folder, &closed), first);
    assert_eq!(partition_files(data.path()).unwrap().len(), 2);
}

#[test]
fn what_cannot_be_read_is_told_and_the_rest_is_kept() {
    let data = tempfile::tempdir().unwrap();
    let (folder, closed) = segment(data.path(), Form::Parquet, &[SEVEN; 5]);
    let mut bytes = std::fs::read(&closed.path).unwrap();
    let frame = (bytes.len() - crate::log::segment::HEADER_LEN) / 5;
    // In message 3 and in message 5.
    for at in [2, 4] {
        let place = crate::log::segment::HEADER_LEN + frame * at + frame / 2;
        bytes[place] ^= 4;
    }
    std::fs::write(&closed.path, bytes).unwrap();
    let finished = finish_all(&folder, &closed);
    assert_eq!(finished.damaged, [(3, 3), (5, 5)]);
    let file = &finished.files[0];
    assert_eq!((file.first, file.last, file.messages), (1, 4, 3));
}

#[test]
fn an_abandoned_compaction_keeps_the_segment() {
    let data = tempfile::tempdir().unwrap();
    let (folder, closed) = segment(data.path(), Form::Parquet, &[SEVEN; 5]);
    let error = finish(&folder, &closed, &Layout::default(), &AtomicBool::new(true)).unwrap_err();
    let Unfinished::Files(error) = error else {
        panic!("{error:?}");
    };
    assert_eq!(error.kind(), io::ErrorKind::Interrupted);
    assert!(closed.path.exists());
    std::fs::create_dir_all(data.path().join("date=x/hour=y")).unwrap();
    std::fs::write(data.path().join("date=x/hour=y/.c-1.tmp"), "").unwrap();
    std::fs::write(data.path().join("date=x/hour=y/.d-1.tmp"), "").unwrap();
    remove_partial(&folder).unwrap();
    let left = partition_files(data.path()).unwrap();
    assert_eq!(left, [data.path().join("date=x/hour=y/.d-1.tmp")]);
}
