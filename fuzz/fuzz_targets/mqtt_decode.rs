//! Any bytes through the MQTT decoder, in both versions: no panic, and what was decoded must
//! encode to something that decodes to the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pubgauge_mqtt_codec::{Packet, Version, decode};

const MAX: usize = 1 << 20;

fuzz_target!(|data: &[u8]| {
    for version in [Version::V311, Version::V5] {
        let mut rest = data;
        while let Ok(Some((packet, consumed))) = decode(rest, version, MAX) {
            let version = match packet {
                Packet::Connect(connect) => connect.version,
                _ => version,
            };
            let mut again = Vec::new();
            packet
                .encode(version, &mut again)
                .expect("what was decoded can be encoded");
            let (back, _) = decode(&again, version, usize::MAX)
                .expect("what was encoded is valid")
                .expect("and whole");
            assert_eq!(back, packet);
            rest = &rest[consumed..];
        }
    }
});
