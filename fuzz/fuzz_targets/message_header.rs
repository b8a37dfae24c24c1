//! Any bytes as a message: foreign or decoded, and what is decoded encodes to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pubgauge_driver::header::HEADER_LEN;
use pubgauge_driver::{Header, Mark};

fuzz_target!(|data: &[u8]| {
    for mark in [0, 21, 63].map(Mark::from_seed) {
        if let Some(header) = Header::decode(data, mark) {
            let again =
                Header::decode(&header.encode(mark), mark).expect("what was encoded is ours");
            // The lag is a rounded code: its middle may round once, never twice.
            assert_eq!(Header { lag: 0, ..again }, Header { lag: 0, ..header });
            assert!(data.len() >= HEADER_LEN);
        }
    }
});
