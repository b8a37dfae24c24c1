//! Recordings as other tools write them, and as they come from elsewhere: packed, cut off, commented.

use super::*;
use crate::trace::{CutFile, PayloadText};

fn name(column: &str) -> TraceColumn {
    TraceColumn::Name(column.into())
}

/// Columns `time`, `device` and `size`.
fn named() -> TraceFormat {
    TraceFormat {
        time: name("time"),
        device: Some(name("device")),
        size: Some(name("size")),
        ..TraceFormat::default()
    }
}

fn formatted(path: PathBuf, format: TraceFormat) -> TraceSource {
    TraceSource {
        files: vec![path],
        format: Some(format),
        sort: false,
    }
}

/// Seconds since 1970 and sizes of the readings.
fn seen(trace: &Trace) -> Vec<(f64, u32)> {
    let at = |reading: &TraceReading| (trace.start + reading.at as i64) as f64 / 1e9;
    trace.readings.iter().map(|r| (at(r), r.size)).collect()
}

fn read(source: &TraceSource) -> Trace {
    Trace::read(source).unwrap_or_else(|error| panic!("{error}"))
}

const FIRST: f64 = 1_767_225_600.0;

#[test]
fn byte_order_marks_are_no_text() {
    let folder = Folder::new();
    let line = r#"{"time":"2026-01-01T00:00:00Z","device":"d1","size":64}"#;
    let ndjson = format!("\u{feff}{line}\n{line}\n");
    let list = format!("\u{feff}[{line},\n {line}]\n");
    let csv = "\u{feff}time,device,size\n2026-01-01T00:00:00Z,d1,64\n2026-01-01T00:00:00Z,d1,64\n";
    for (file, content) in [("a.ndjson", &*ndjson), ("a.json", &list), ("a.csv", csv)] {
        let trace = read(&plain(folder.file(file, content)));
        assert_eq!(seen(&trace), [(FIRST, 64), (FIRST, 64)], "{file}");
        assert_eq!(trace.remarks, Remarks::default(), "{file}");
        let packed = read(&plain(folder.file("p.gz", gzip(content.as_bytes()))));
        assert_eq!(packed.readings, trace.readings);
    }
    // Places count from behind the mark.
    let wrong = folder.complaint(&plain(folder.file("w.csv", csv.replace("64\n", "x\n"))));
    assert!(
        wrong.starts_with("w.csv:2:25: `x` is not a size"),
        "{wrong}"
    );
}

#[test]
fn lists_of_objects_are_read_object_by_object() {
    let folder = Folder::new();
    let list = r#"[
  {"topic": "rtl/A/7", "payload": {"z": 20.40, "a": "] \" }"}, "qos": 0, "retain": true,
   "timestamp": 1761414298.845932, "time_delta": 0.07},
  {"topic": "rtl/A/9", "payload": [1, 2], "qos": 2, "retain": false, "timestamp": 1761414299.1}
]
"#;
    let format = TraceFormat {
        time: name("timestamp"),
        device: Some(name("topic")),
        topic: Some(name("topic")),
        payload: Some(name("payload")),
        qos: Some(name("qos")),
        retain: Some(name("retain")),
        ..TraceFormat::default()
    };
    let trace = read(&formatted(folder.file("a.json", list), format));
    assert_eq!(trace.devices, ["rtl/A/7", "rtl/A/9"]);
    assert_eq!(trace.start, 1_761_414_298_845_932_000);
    let payload = |n: usize| {
        trace
            .payload(&trace.readings[n])
            .map(|p| String::from_utf8_lossy(p).into_owned())
    };
    assert_eq!(payload(0).as_deref(), Some(r#"{"z":20.40,"a":"] \" }"}"#));
    assert_eq!(payload(1).as_deref(), Some("[1,2]"));
    let manner = |n: usize| trace.readings[n].manner();
    assert_eq!((manner(0).qos, manner(0).retain), (Some(0), Some(true)));
    assert_eq!((manner(1).qos, manner(1).retain), (Some(2), Some(false)));
    assert_eq!(trace.remarks.ignored, ["time_delta"]);
    // Without a format it is said which fields there are.
    let said = folder.complaint(&plain(folder.file("b.json", list)));
    assert!(
        said.starts_with("b.json:2:3: there is no `time`; the object has `topic`, `payload`"),
        "{said}"
    );
    for (content, says) in [
        (
            "[1, 2]",
            "a.json:1:2: the list has something else than objects",
        ),
        ("[]", "a.json:1:1: there is no reading"),
        (
            "[{\"time\":1,\"device\":\"a\",\"size\":1}] x",
            "a.json:1:36: something follows the list",
        ),
        (
            "[\n{\"time\":1,",
            "a.json:2:10: the list is cut off before a whole object",
        ),
        (
            "[{\"time\":1,\"device\":\"a\",\"size\":1},\n {\"time\":}]",
            "a.json:2:10: expected value",
        ),
    ] {
        let said = folder.complaint(&plain(folder.file("a.json", content)));
        assert!(said.starts_with(says), "{content}: {said}");
    }
}

/// mosquitto_sub writes local time, a Z and the offset; `%j` has payloads as text, `%J` as JSON without white space.
#[test]
fn what_mosquitto_sub_writes_is_read_as_it_is() {
    let folder = Folder::new();
    let lines = r#"{"tst":"2026-05-06T22:12:00.000000Z+0100","topic":"g/1","qos":0,"retain":0,"payloadlen":15,"payload":"{\"z\": 1, \"a\":2}"}
{"tst":"2026-05-06T22:12:01.500000Z+0100","topic":"g/2","qos":1,"retain":1,"payloadlen":6,"mid":1,"payload":"\"q\" ü"}
{"tst":"2026-05-06T22:12:02.000000Z+0100","topic":"g/2","qos":1,"retain":1,"payloadlen":13,"payload":{"z":1,"a":2}}
{"tst":"2026-05-06T22:12:02.500000Z+0100","topic":"g/2","qos":1,"retain":1,"payloadlen":15,"payload":{"z":1,"a":2}}
"#;
    let trace = read(&plain(folder.file("m.ndjson", lines)));
    assert_eq!(trace.start, 1_778_101_920_000_000_000);
    assert_eq!(trace.devices, ["g/1", "g/2"]);
    assert_eq!(trace.topics, ["g/1", "g/2"]);
    let payload = |n: usize| {
        trace
            .payload(&trace.readings[n])
            .map(|p| String::from_utf8_lossy(p).into_owned())
    };
    assert_eq!(payload(0).as_deref(), Some("{\"z\": 1, \"a\":2}"));
    assert_eq!(payload(1).as_deref(), Some("\"q\" ü"));
    assert_eq!(payload(2).as_deref(), Some("{\"z\":1,\"a\":2}"));
    // White space that `%J` left out: what was sent is not known.
    assert_eq!(payload(3), None);
    assert_eq!(trace.remarks.other_length, 1);
    assert_eq!(trace.remarks.ignored, ["mid"]);
    assert!(trace.remarks.device_is_topic);
    let manner = trace.readings[1].manner();
    assert_eq!((manner.qos, manner.retain), (Some(1), Some(true)));
    // Written in the plain format, it is the same.
    let mut written = Vec::new();
    trace.write_plain(&mut written).expect("in memory");
    let again = read(&plain(folder.file("m.csv", &written)));
    assert_eq!(again.checksum(), trace.checksum());
    assert_eq!(again.readings, trace.readings);
}

#[test]
fn other_forms_are_called_by_their_names() {
    let folder = Folder::new();
    let wide = |big: bool, mark: &str| -> Vec<u8> {
        let text = format!("{mark}time,device,size\n");
        let units = text.encode_utf16();
        units
            .flat_map(|u| {
                if big {
                    u.to_be_bytes()
                } else {
                    u.to_le_bytes()
                }
            })
            .collect()
    };
    for (content, says) in [
        (wide(false, "\u{feff}"), "text in UTF-16"),
        (wide(true, "\u{feff}"), "text in UTF-16"),
        (wide(false, ""), "text in UTF-16"),
        (wide(true, ""), "text in UTF-16"),
        (b"BZh91AY&SY".to_vec(), "compressed with bzip2"),
        (b"PK\x03\x04\x14\0".to_vec(), "a zip archive"),
        (b"\x28\xb5\x2f\xfd\0".to_vec(), "compressed with zstd"),
        (b"\xfd7zXZ\0\0".to_vec(), "compressed with xz"),
        (b"PAR1abcd".to_vec(), "Parquet"),
    ] {
        let said = folder.complaint(&plain(folder.file("x", &content)));
        assert!(said.starts_with(&format!("x: this is {says}")), "{said}");
        let said = folder.complaint(&plain(folder.file("x.gz", gzip(&content))));
        assert!(
            said.starts_with(&format!("x.gz: what is in it is {says}")),
            "{said}"
        );
    }
}

#[test]
fn times_as_loggers_write_them() {
    let folder = Folder::new();
    let format = |time_format: Option<TimeFormat>| TraceFormat {
        time_format,
        ..named()
    };
    let us = "time,device,size\n1761414298845000,d1,64\n1761414299845000,d2,64\n";
    let trace = read(&formatted(
        folder.file("us.csv", us),
        format(Some(TimeFormat::EpochUs)),
    ));
    assert_eq!(
        seen(&trace),
        [(1_761_414_298.845, 64), (1_761_414_299.845, 64)]
    );
    // Date and time apart, with dots.
    let apart = "date;time;device;size\n01.02.2026;08:30:05;d1;64\n01.02.2026;08:30:07;d2;64\n";
    let with_date = TraceFormat {
        delimiter: Some(';'),
        date: Some(name("date")),
        ..format(Some(TimeFormat::DmyHms))
    };
    let trace = read(&formatted(
        folder.file("apart.csv", apart),
        with_date.clone(),
    ));
    assert_eq!(seen(&trace), [(1_769_934_605.0, 64), (1_769_934_607.0, 64)]);
    assert_eq!(trace.remarks, Remarks::default());
    let zoned = TraceFormat {
        time_zone: Some(serde_json::from_str("\"+01:00\"").expect("an offset")),
        time_format: Some(TimeFormat::Pattern("%d.%m.%Y %H:%M:%S".into())),
        ..with_date
    };
    let trace = read(&formatted(folder.file("apart.csv", apart), zoned));
    assert_eq!(seen(&trace)[0].0, 1_769_931_005.0);
    let decimal = TraceFormat {
        delimiter: Some(';'),
        decimal: Some(','),
        on_change: vec![OnChange {
            column: name("v"),
            absolute: Some(0.5),
            relative: None,
        }],
        ..named()
    };
    let comma = "time;device;size;v\n1761414298,845;d1;64;1,5\n1761414299,845;d1;64;1,7\n1761414300,0;d1;65;2,0\n";
    let trace = read(&formatted(folder.file("comma.csv", comma), decimal));
    assert_eq!(
        seen(&trace),
        [(1_761_414_298.845, 64), (1_761_414_300.0, 65)]
    );
    assert_eq!(trace.remarks.unchanged, 1);
    // Days of spreadsheets are taken as such, or refused; never as seconds.
    let serial = folder.file(
        "serial.csv",
        "time,device,size\n46023.25,d1,64\n46023.5,d1,65\n",
    );
    let said = folder.complaint(&plain(serial.clone()));
    assert!(
        said.starts_with("serial.csv:2:1: `46023.25` may be a serial date"),
        "{said}"
    );
    let trace = read(&formatted(
        serial.clone(),
        format(Some(TimeFormat::SerialDate)),
    ));
    assert_eq!(seen(&trace), [(1_767_247_200.0, 64), (1_767_268_800.0, 65)]);
    let trace = read(&formatted(serial, format(Some(TimeFormat::EpochS))));
    assert_eq!(seen(&trace), [(46_023.25, 64), (46_023.5, 65)]);
}

/// Planted: readings each second, across the hour at the end of summer time, which clocks showed twice.
#[test]
fn local_times_are_told_apart_by_their_order_where_clocks_were_set_back() {
    let folder = Folder::new();
    // 2026-10-25 00:59:58 UTC is 02:59:58 in Berlin, two seconds before its clocks are set back.
    let csv = "time,device,size\n2026-10-25 02:59:58,a,20\n2026-10-25 02:59:59,a,21\n\
               2026-10-25 02:00:00,a,22\n2026-10-25 02:00:01,a,23\n2026-10-25 03:00:00,a,24\n";
    let path = folder.file("dst.csv", csv);
    let format = |zone: Option<&str>| TraceFormat {
        time_format: Some(TimeFormat::YmdHms),
        time_zone: zone.map(|zone| serde_json::from_str(&format!("\"{zone}\"")).expect("a zone")),
        ..named()
    };
    let trace = read(&formatted(path.clone(), format(Some("Europe/Berlin"))));
    let first = 1_792_889_998.0;
    let expected = [(0.0, 20), (1.0, 21), (2.0, 22), (3.0, 23), (3602.0, 24)];
    assert_eq!(seen(&trace), expected.map(|(at, size)| (first + at, size)));
    assert_eq!(trace.remarks.twice, [2, 2]);
    let said = folder.complaint(&formatted(path.clone(), format(None)));
    assert!(
        said.contains("set back") && said.contains("`time-zone`"),
        "{said}"
    );
    let mut sorted = formatted(path, format(Some("Europe/Berlin")));
    sorted.sort = true;
    let said = folder.complaint(&sorted);
    assert!(
        said.starts_with("dst.csv:2:1: clocks of this zone showed this time twice"),
        "{said}"
    );
    sorted.format = Some(format(None));
    let trace = read(&sorted);
    assert_eq!(
        (trace.remarks.out_of_order, trace.remarks.furthest_ns),
        (2, 3_599_000_000_000)
    );
    let never = folder.file("never.csv", "time,device,size\n2026-03-29 02:30:00,a,20\n");
    let said = folder.complaint(&formatted(never, format(Some("Europe/Berlin"))));
    assert!(said.contains("never showed this time"), "{said}");
    let epoch = TraceFormat {
        time_format: Some(TimeFormat::EpochS),
        ..format(Some("Europe/Berlin"))
    };
    let said = folder.complaint(&formatted(
        folder.file("e.csv", "time,device,size\n1,a,20\n"),
        epoch,
    ));
    assert!(said.contains("of use to local times alone"), "{said}");
}

#[test]
fn comments_and_further_headers_are_passed_over() {
    let folder = Folder::new();
    let logger = "# station: roof, \"open\ntime,device,size\n2026-01-01T00:00:00Z,roof,24\n# restart\n\
                  2026-01-01T00:00:01Z,roof,25\n\n#\ntime,device,size\n2026-01-01T00:00:02Z,roof,26\n";
    let format = TraceFormat {
        comment: Some('#'),
        ..named()
    };
    let trace = read(&formatted(
        folder.file("logger.csv", logger),
        format.clone(),
    ));
    assert_eq!(
        seen(&trace),
        [(FIRST, 24), (FIRST + 1.0, 25), (FIRST + 2.0, 26)]
    );
    let wrong = logger.replace("roof,26", "roof,much");
    let said = folder.complaint(&formatted(folder.file("wrong.csv", wrong), format.clone()));
    assert!(
        said.starts_with("wrong.csv:9:27: `much` is not a size"),
        "{said}"
    );
    let skipping = TraceFormat {
        skip_lines: Some(2),
        ..named()
    };
    let text = "station roof\nW/m2,\"\ntime,device,size\n2026-01-01T00:00:00Z,roof,24\n2026-01-01T00:00:01Z,roof,x\n";
    let said = folder.complaint(&formatted(folder.file("skip.csv", text), skipping.clone()));
    assert!(
        said.starts_with("skip.csv:5:27: `x` is not a size"),
        "{said}"
    );
    let trace = read(&formatted(
        folder.file("skip.csv", text.replace(",x", ",9")),
        skipping,
    ));
    assert_eq!(seen(&trace), [(FIRST, 24), (FIRST + 1.0, 9)]);
    let objects = "# a comment\n{\"time\": 0, \"device\": \"a\", \"size\": 20}\n# another\n";
    let trace = read(&formatted(folder.file("c.ndjson", objects), format));
    assert_eq!(trace.readings.len(), 1);
    // Influx writes a table for each field, each with its annotations and its header.
    let influx = "#group,false,false\n#datatype,string,long\n,time,device,size\n,2026-01-01T00:00:00Z,a,20\n\n\
                  #group,false,false\n,time,device,size\n,2026-01-01T00:00:01Z,b,21\n";
    let format = TraceFormat {
        comment: Some('#'),
        ..named()
    };
    let trace = read(&formatted(folder.file("influx.csv", influx), format));
    assert_eq!(seen(&trace), [(FIRST, 20), (FIRST + 1.0, 21)]);
    assert_eq!(trace.remarks.ignored, ["number 1"]);
}

/// Without a header nobody says whether what follows a payload belongs to it.
#[test]
fn payloads_are_never_cut_in_silence() {
    let folder = Folder::new();
    let format = |columns: Option<u32>| TraceFormat {
        header: Some(false),
        time: TraceColumn::Number(1),
        device: Some(TraceColumn::Number(2)),
        payload: Some(TraceColumn::Number(3)),
        columns,
        ..TraceFormat::default()
    };
    let open = "2026-05-01T10:00:00Z,a,{\"v\":1,\"u\":2}\n";
    let said = folder.complaint(&formatted(folder.file("a.csv", open), format(None)));
    assert!(
        said.starts_with("a.csv:1:31: the line has 4 columns where 3 are expected; a text with the delimiter in it stands in quotes"),
        "{said}"
    );
    assert!(said.contains("`columns` says how many"), "{said}");
    let closed = "2026-05-01T10:00:00Z,a,\"{\"\"v\"\":1,\"\"u\"\":2}\"\n";
    let trace = read(&formatted(folder.file("b.csv", closed), format(None)));
    assert_eq!(
        trace.payload(&trace.readings[0]).map(|p| &p[..]),
        Some(&b"{\"v\":1,\"u\":2}"[..])
    );
    let further = "2026-05-01T10:00:00Z,a,ON,7\n";
    let trace = read(&formatted(folder.file("c.csv", further), format(Some(4))));
    assert_eq!(
        trace.payload(&trace.readings[0]).map(|p| &p[..]),
        Some(&b"ON"[..])
    );
    assert_eq!(trace.remarks.ignored, ["number 4"]);
}

#[test]
fn payloads_that_are_no_text() {
    let folder = Folder::new();
    let format = |payload_as: PayloadText| TraceFormat {
        time: name("time"),
        device: Some(name("device")),
        payload: Some(name("payload")),
        payload_as: Some(payload_as),
        ..TraceFormat::default()
    };
    for (form, text, bad) in [
        (PayloadText::Hex, "00fF80", "0g"),
        (PayloadText::Base64, "AP+A", "A"),
    ] {
        let csv = format!("time,device,payload\n1,a,{text}\n");
        let trace = read(&formatted(folder.file("a.csv", csv), format(form)));
        assert_eq!(
            trace.payload(&trace.readings[0]).map(|p| &p[..]),
            Some(&[0, 255, 128][..])
        );
        assert_eq!(trace.readings[0].size, 3);
        let csv = format!("time,device,payload\n1,a,{bad}\n");
        let said = folder.complaint(&formatted(folder.file("b.csv", csv), format(form)));
        assert!(
            said.starts_with("b.csv:2:5: this is no payload as"),
            "{said}"
        );
        // A written recording reads back byte by byte.
        let mut written = Vec::new();
        trace.write_plain(&mut written).expect("in memory");
        let again = read(&plain(folder.file("c.csv", &written)));
        assert_eq!(again.checksum(), trace.checksum());
    }
}

#[test]
fn what_is_whole_of_a_file_that_was_cut_off_is_kept() {
    let folder = Folder::new();
    let cut = |file: &str, line: u64, what: &'static str| CutFile {
        file: folder.0.path().join(file),
        line,
        what,
    };
    for (file, content, line, what) in [
        ("a.csv", "time,device,size\n1,a,20\n2,a", 3, "the file"),
        ("b.csv", "time,device,size\n1,a,20\n2,a,", 3, "the file"),
        (
            "c.csv",
            "time,device,payload\n1,a,hello\n2,a,\"hel",
            3,
            "the file",
        ),
        (
            "d.csv",
            "time,device,payload\n1,a,hello\n2,a,{\"t\":2",
            3,
            "the file",
        ),
        (
            "e.ndjson",
            "{\"time\":1,\"device\":\"a\",\"size\":20}\n{\"time\":2,\"dev",
            2,
            "the file",
        ),
        (
            "f.json",
            "[{\"time\":1,\"device\":\"a\",\"size\":20},\n{\"time\":2,\"dev",
            2,
            "the list",
        ),
        (
            "g.json",
            "[{\"time\":1,\"device\":\"a\",\"size\":20}",
            1,
            "the list",
        ),
    ] {
        let trace = read(&plain(folder.file(file, content)));
        assert_eq!(trace.readings.len(), 1, "{file}");
        assert_eq!(trace.remarks.cut, [cut(file, line, what)], "{file}");
        assert!(
            trace.remarks.sentences()[0].contains("ends in the middle"),
            "{file}"
        );
    }
    // A gzip file that is cut off within its first bytes.
    let whole = gzip(b"time,device,size\n1,a,20\n2,a,21\n");
    let mut kept = Vec::new();
    for length in 18..whole.len() - 8 {
        if let Ok(trace) = Trace::read(&plain(folder.file("h.csv.gz", &whole[..length]))) {
            assert_eq!(trace.remarks.cut.len(), 1);
            kept.push(trace.readings.len());
        }
    }
    assert!(kept.is_sorted() && kept.contains(&1), "{kept:?}");
    // Blank lines before the first object.
    let late = format!(
        "{}{{\"time\":1,\"device\":\"a\",\"size\":20}}\n",
        "\n".repeat(100)
    );
    assert_eq!(
        read(&plain(folder.file("l.ndjson", late))).readings.len(),
        1
    );
    // Wrong anywhere else it is no cut.
    for content in [
        "time,device,size\n1,a,20\n2,a,x\n",
        "time,device,size\n1,a,x",
        "time,device,size\n1,a,20\n2,a,\"x\n3,a,20\n4,a,20",
    ] {
        folder.complaint(&plain(folder.file("x.csv", content)));
    }
}

#[test]
fn each_cause_is_counted_and_each_column_that_is_not_used_is_named() {
    let folder = Folder::new();
    let lines = r#"{"time":"2026-05-01T10:00:00Z","device":"a","size":20,"v":1,"note":"x"}
{"time":"2026-05-01T10:00:01Z","device":"a","size":20}
{"time":"2026-05-01T10:00:02Z","device":"a","size":20,"v":1}
"#;
    let format = TraceFormat {
        skip_incomplete: Some(true),
        drop_repeats: Some(name("v")),
        ..named()
    };
    let trace = read(&formatted(folder.file("a.ndjson", lines), format));
    assert_eq!((trace.remarks.unchanged, trace.remarks.incomplete), (1, 1));
    assert_eq!(
        trace.remarks.sentences(),
        [
            "left out: 1 as unchanged, 1 because they lack a field",
            "nothing is taken from: `note`"
        ]
    );
    let csv = "time,device,size,qos,retain,colour\n1,a,20,1,0,red\n";
    let trace = read(&plain(folder.file("a.csv", csv)));
    assert_eq!(trace.remarks.ignored, ["colour"]);
    assert_eq!(trace.readings[0].manner().qos, Some(1));
    let wrong = folder.complaint(&plain(folder.file("b.csv", csv.replace(",1,0,", ",3,0,"))));
    assert!(
        wrong.starts_with("b.csv:2:8: `3` is no quality of service"),
        "{wrong}"
    );
    let numbered = TraceFormat {
        size: Some(TraceColumn::Number(2)),
        ..named()
    };
    let said = folder.complaint(&formatted(folder.file("n.ndjson", lines), numbered));
    assert!(
        said.starts_with("n.ndjson:1:1: column number 2: the fields of objects have names"),
        "{said}"
    );
}
