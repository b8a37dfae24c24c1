//! Hostile bytes: never a panic, never a packet that its own encoder would not accept.

use crate::common;

use common::{any_packet, encode_from_parts};
use proptest::prelude::*;
use pubgauge_mqtt_codec::*;

/// Decodes as a connection would, packet after packet; everything found must encode again to
/// something that decodes to the same.
fn survive(mut bytes: &[u8], version: Version) {
    while let Ok(Some((packet, consumed))) = decode(bytes, version, 1 << 20) {
        assert!(consumed > 0 && consumed <= bytes.len());
        let version = match packet {
            Packet::Connect(connect) => connect.version,
            _ => version,
        };
        let again = encode_from_parts(&packet, version);
        let (back, _) = decode(&again, version, MAX_PACKET_LEN)
            .expect("what was decoded and encoded is valid")
            .expect("and whole");
        assert_eq!(back, packet);
        bytes = &bytes[consumed..];
    }
    let _ = decode_publish(bytes, version, 1 << 20);
}

fn versions() -> impl Strategy<Value = Version> {
    prop_oneof![Just(Version::V311), Just(Version::V5)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn random_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200), version in versions()) {
        survive(&bytes, version);
    }

    #[test]
    fn random_bodies_do_no_harm(
        kind in 1u8..16, flags in prop_oneof![Just(0u8), Just(2), 0u8..16],
        body in prop::collection::vec(prop_oneof![Just(0u8), 0u8..6, any::<u8>()], 0..120),
        version in versions(),
    ) {
        let mut bytes = vec![kind << 4 | flags, body.len() as u8];
        bytes.extend(body);
        survive(&bytes, version);
    }

    #[test]
    fn a_packet_with_a_few_bytes_changed_does_no_harm(
        owned in versions().prop_flat_map(any_packet),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..4), 1..5),
        other in versions(),
    ) {
        let mut wire = Vec::new();
        owned.packet().encode(owned.version, &mut wire).unwrap();
        for (at, value, how) in changes {
            if wire.is_empty() {
                break;
            }
            let at = at.index(wire.len());
            match how {
                0 => wire[at] = value,
                1 => wire[at] ^= 1 << (value & 7),
                2 => wire.insert(at, value),
                _ => {
                    wire.remove(at);
                }
            }
        }
        survive(&wire, owned.version);
        survive(&wire, other);
    }
}

/// One case for each rule that a peer can break, with the words and the section of the answer.
#[test]
fn each_broken_rule_is_named() {
    use Version::{V5, V311};
    let connect = |flags: u8, tail: &[u8]| {
        let mut body = b"\0\x04MQTT\x04".to_vec();
        body.extend([flags, 0, 60]);
        body.extend(tail);
        let mut packet = vec![0x10, body.len() as u8];
        packet.extend(body);
        packet
    };
    let cases: Vec<(Version, Vec<u8>, &str, &str)> = vec![
        (V5, vec![0x00], "packet type 0", "§2.1.2"),
        (V5, vec![0x36], "QoS 3", "§3.3.1.2"),
        (V5, vec![0x38], "DUP", "§3.3.1.1"),
        (V5, vec![0x60], "flags", "§2.1.3"),
        (V5, vec![0x80], "flags", "§2.1.3"),
        (
            V5,
            vec![0x30, 0xff, 0xff, 0xff, 0xff],
            "longer than four bytes",
            "§1.5.5",
        ),
        (
            V5,
            vec![0x30, 0xff, 0xff, 0xff, 0x7f],
            "larger than allowed",
            "§3.1.2.11.4",
        ),
        (V311, vec![0x30, 3, 0, 5, b'a'], "ends before", "§2.2.3"),
        (
            V311,
            vec![0x30, 2, 0, 0],
            "neither topic name nor",
            "§3.3.2.1",
        ),
        (
            V5,
            vec![0x30, 3, 0, 0, 0],
            "neither topic name nor",
            "§3.3.2.1",
        ),
        (V311, vec![0x30, 3, 0, 1, b'#'], "wildcard", "§3.3.2.1"),
        (V311, vec![0x30, 3, 0, 1, 0], "U+0000", "§3.3.2.1"),
        (V311, vec![0x30, 3, 0, 1, 0xff], "not UTF-8", "§1.5.4"),
        (
            V311,
            vec![0x32, 5, 0, 1, b'a', 0, 0],
            "identifier is 0",
            "§2.2.1",
        ),
        (
            V5,
            vec![0x30, 6, 0, 1, b'a', 2, 0x11, 0],
            "ends before",
            "§2.1.4",
        ),
        (
            V5,
            vec![0x30, 9, 0, 1, b'a', 5, 0x11, 0, 0, 0, 0],
            "does not belong",
            "§2.2.2.2",
        ),
        (
            V5,
            vec![0x30, 8, 0, 1, b'a', 4, 1, 0, 1, 0],
            "twice",
            "§2.2.2.2",
        ),
        (
            V5,
            vec![0x30, 6, 0, 1, b'a', 2, 0x7f, 0],
            "unknown property",
            "§2.2.2.2",
        ),
        (
            V5,
            vec![0x30, 7, 0, 1, b'a', 3, 0x23, 0, 0],
            "alias is 0",
            "§3.3.2.3.4",
        ),
        (V5, vec![0x30, 6, 0, 1, b'a', 2, 1, 2], "0 or 1", "§2.2.2.2"),
        (V5, vec![0x40, 3, 0, 1, 0x11], "reason code", "§2.4"),
        (V311, vec![0x40, 3, 0, 1, 0], "goes on after", "§2.2.3"),
        (V311, vec![0x90, 3, 0, 1, 3], "reason code", "§3.9.3"),
        (V5, vec![0x90, 3, 0, 1, 0], "without a code", "§3.9.3"),
        (
            V311,
            vec![0x82, 2, 0, 1],
            "without a topic filter",
            "§3.8.3",
        ),
        (V311, vec![0x82, 6, 0, 1, 0, 1, b'a', 3], "QoS 3", "§3.8.3"),
        (
            V311,
            vec![0x82, 6, 0, 1, 0, 1, b'a', 4],
            "reserved bits",
            "§3.8.3",
        ),
        (
            V5,
            vec![0x82, 7, 0, 1, 0, 0, 1, b'a', 0x30],
            "retain handling 3",
            "§3.8.3.1",
        ),
        (
            V311,
            vec![0x82, 8, 0, 1, 0, 3, b'a', b'#', b'/', 0],
            "shares its level",
            "§4.7.1",
        ),
        (
            V5,
            vec![0x20, 3, 2, 0, 0],
            "reserved flags of CONNACK",
            "§3.2.2.1",
        ),
        (
            V5,
            vec![0x20, 3, 1, 0x87, 0],
            "claims to have its session",
            "§3.2.2.1.1",
        ),
        (V311, vec![0x20, 2, 0, 6], "return code", "§3.2.2.3"),
        (V311, vec![0xf0, 0], "AUTH", "§2.2.1"),
        (V5, vec![0xd0, 1, 0], "goes on after", "§2.1.4"),
        (
            V311,
            connect(1, &[0, 0]),
            "reserved flag of CONNECT",
            "§3.1.2.3",
        ),
        (V311, connect(0x1c, &[0, 0]), "will has QoS 3", "§3.1.2.3"),
        (V311, connect(0x20, &[0, 0]), "without a will", "§3.1.2.3"),
        (
            V311,
            connect(0x40, &[0, 0, 0, 0]),
            "without a user name",
            "§3.1.2.3",
        ),
        (
            V311,
            b"\x10\x0c\0\x04MQTT\x06\x02\0\0\0\0".to_vec(),
            "protocol level",
            "§3.1.2.2",
        ),
        (
            V311,
            b"\x10\x0e\0\x06MQIsdp\x03\x02\0\0\0\0".to_vec(),
            "MQTT 3.1",
            "§3.1.2.2",
        ),
        (
            V311,
            b"\x10\x0c\0\x04HTTP\x04\x02\0\0\0\0".to_vec(),
            "protocol name",
            "§3.1.2.1",
        ),
    ];
    for (version, bytes, what, section) in cases {
        let error = decode(&bytes, version, 1 << 20).expect_err(what);
        let text = error.to_string();
        assert!(
            text.contains(what),
            "{bytes:02x?}: {text} should say: {what}"
        );
        assert!(
            text.contains(section),
            "{bytes:02x?}: {text} should cite: {section}"
        );
    }
}
