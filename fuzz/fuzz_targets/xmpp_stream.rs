//! Any bytes as what an XMPP server says, in one piece and in two: no panic, and the same result.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pubgauge_driver_xmpp::read_stream;

fuzz_target!(|data: &[u8]| {
    let Some((cut, stream)) = data.split_first() else {
        return;
    };
    let (first, rest) = stream.split_at(usize::from(*cut).min(stream.len()));
    assert_eq!(
        read_stream(&[first, rest]).ok(),
        read_stream(&[stream]).ok()
    );
});
