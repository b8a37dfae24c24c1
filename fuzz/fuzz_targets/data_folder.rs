//! Any bytes as the files of a collector's own folder, and as a segment: verified, never a panic, and every window gives the
//! same messages.
#![no_main]

use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use pubgauge_collect::log::windows::SegmentReader;
use pubgauge_collect::verify::verify;

/// The files, in the order of their parts of the input.
const FILES: [&str; 5] = [
    "files.ndjson",
    "sessions.json",
    "mark",
    "log/stored",
    "log/0000000000000001.log",
];

fuzz_target!(|data: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let own = folder.path().join("collectors/c");
    std::fs::create_dir_all(own.join("log")).expect("room for it");
    // Parts end with two bytes that are rare in texts; the last part is the segment.
    let mut rest = data;
    for (nth, name) in FILES.iter().enumerate() {
        let end = rest.windows(2).position(|two| two == [0xff, 0xfe]);
        let (part, left) = match end {
            Some(end) if nth + 1 < FILES.len() => (&rest[..end], &rest[end + 2..]),
            _ => (rest, &rest[rest.len()..]),
        };
        std::fs::write(own.join(name), part).expect("room for it");
        rest = left;
    }
    match verify(folder.path()) {
        Ok(found) => drop(found),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let segment = std::fs::File::open(own.join(FILES[4])).expect("it was written");
    let reader = SegmentReader::open(&segment, 1).expect("it is short");
    let mut last = 0;
    let scanned = reader.read(|_, message| {
        assert!(message.seq > last, "out of order");
        last = message.seq;
        ControlFlow::Continue(())
    });
    assert!(scanned.expect("it is there").end <= reader.len);
});
