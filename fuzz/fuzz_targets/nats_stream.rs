//! Any bytes as what a NATS server says: no panic, and what came whole is the same if more follows.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pubgauge_driver_nats::read_stream;

fuzz_target!(|data: &[u8]| {
    const MAX_PAYLOAD: usize = 1000;
    if let Ok((operations, whole)) = read_stream(data, MAX_PAYLOAD) {
        assert!(whole <= data.len());
        assert_eq!(read_stream(&data[..whole], MAX_PAYLOAD), Ok((operations, whole)));
    }
});
