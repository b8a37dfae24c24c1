//! Any bytes as what a NATS server says: no panic, and what came whole is the same if more follows.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pubgauge_driver::DriverError;
use pubgauge_driver_nats::operation_len;

/// How many operations came whole, and how many bytes they had.
fn read_stream(bytes: &[u8]) -> Result<(usize, usize), DriverError> {
    const MAX_PAYLOAD: usize = 1000;
    let (mut operations, mut at) = (0, 0);
    while let Some(len) = operation_len(&bytes[at..], MAX_PAYLOAD)? {
        operations += 1;
        at += len;
    }
    Ok((operations, at))
}

fuzz_target!(|data: &[u8]| {
    if let Ok((operations, whole)) = read_stream(data) {
        assert!(whole <= data.len());
        assert_eq!(read_stream(&data[..whole]), Ok((operations, whole)));
    }
});
