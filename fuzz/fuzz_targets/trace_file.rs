//! Any bytes as a recorded trace, CSV or JSON, packed or not, in the plain format and in others: read or refused, never a
//! panic; what is read can be written and is read again as it was.
#![no_main]

use std::io::Write;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use pubgauge_workload::trace::{
    OnChange, PayloadText, TimeFormat, Trace, TraceColumn, TraceFormat, TraceSource,
};

fn name(column: &str) -> TraceColumn {
    TraceColumn::Name(column.into())
}

/// Columns by name and by number, with most of what a format can ask for.
fn formats() -> [Option<TraceFormat>; 4] {
    let named = TraceFormat {
        time: name("time"),
        device: Some(name("device")),
        ..TraceFormat::default()
    };
    let objects = TraceFormat {
        topic: Some(name("topic")),
        payload: Some(name("/payload/0")),
        payload_as: Some(PayloadText::Base64),
        qos: Some(name("qos")),
        skip_incomplete: Some(true),
        comment: Some('#'),
        ..named.clone()
    };
    let local = TraceFormat {
        delimiter: Some(';'),
        date: Some(name("date")),
        time_format: Some(TimeFormat::DmyHms),
        decimal: Some(','),
        size_bytes: Some(20),
        on_change: vec![OnChange {
            column: name("size"),
            absolute: Some(1.0),
            relative: Some(0.1),
        }],
        ..named
    };
    let numbered = TraceFormat {
        header: Some(false),
        skip_lines: Some(1),
        comment: Some('#'),
        time: TraceColumn::Number(1),
        time_format: Some(TimeFormat::Pattern("%Y-%m-%d %H:%M:%S%.f".into())),
        payload: Some(TraceColumn::Number(2)),
        payload_as: Some(PayloadText::Hex),
        ..TraceFormat::default()
    };
    [None, Some(objects), Some(local), Some(numbered)]
}

fn read(path: &Path, format: Option<TraceFormat>, sort: bool) -> Option<Trace> {
    let source = TraceSource {
        files: vec![path.to_owned()],
        format,
        sort,
    };
    match Trace::read(&source) {
        Ok(trace) => {
            assert!(!trace.readings.is_empty());
            assert!(trace.remarks.sentences().iter().all(|s| !s.is_empty()));
            Some(trace)
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

fn stored(data: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(data).expect("room for it");
    file
}

fuzz_target!(|data: &[u8]| {
    let file = stored(data);
    for format in formats() {
        let sort = format.is_some();
        let Some(trace) = read(file.path(), format, sort) else {
            continue;
        };
        let mut written = Vec::new();
        trace.write_plain(&mut written).expect("memory for it");
        let again = read(stored(&written).path(), None, false).expect("what was written is read");
        assert_eq!(again.start, trace.start);
        assert_eq!(again.readings.len(), trace.readings.len());
        for (a, b) in again.readings.iter().zip(&trace.readings) {
            assert_eq!((a.at, a.size, a.manner()), (b.at, b.size, b.manner()));
            assert_eq!(
                again.topic(a),
                trace.topic(b).filter(|topic| !topic.is_empty())
            );
            let device = |trace: &Trace, device: u32| trace.devices[device as usize].clone();
            assert_eq!(device(&again, a.device), device(&trace, b.device));
        }
    }
});
