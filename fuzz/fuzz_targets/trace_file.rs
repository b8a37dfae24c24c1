//! Any bytes as a recorded trace, plain or gzip, CSV or NDJSON: read or refused, never a panic.
#![no_main]

use std::io::Write;

use libfuzzer_sys::fuzz_target;
use pubgauge_workload::trace::{Trace, TraceSource};

fuzz_target!(|data: &[u8]| {
    for suffix in [".csv", ".ndjson", ".csv.gz"] {
        let mut file = tempfile::Builder::new()
            .suffix(suffix)
            .tempfile()
            .expect("a temporary file");
        file.write_all(data).expect("room for it");
        let source = TraceSource {
            files: vec![file.path().to_owned()],
            ..TraceSource::default()
        };
        match Trace::read(&source) {
            Ok(trace) => assert!(!trace.readings.is_empty()),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});
