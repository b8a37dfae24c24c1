//! Packets are decoded as they were encoded: whole, in parts, and in a row.

use crate::common;

use common::{any_packet, encode_from_parts, packet};
use proptest::prelude::*;
use pubgauge_mqtt_codec::*;

fn version() -> impl Strategy<Value = Version> {
    prop_oneof![Just(Version::V311), Just(Version::V5)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn a_packet_comes_back(owned in version().prop_flat_map(any_packet)) {
        let (packet, version) = (owned.packet(), owned.version);
        let mut wire = vec![0xee; 3];
        packet.encode(version, &mut wire).unwrap();
        let wire = &wire[3..];
        let (back, consumed) = decode(wire, version, MAX_PACKET_LEN).unwrap().unwrap();
        prop_assert_eq!(consumed, wire.len());
        prop_assert_eq!(back, packet);
        prop_assert_eq!(&encode_from_parts(&back, version), wire);
    }

    #[test]
    fn every_beginning_of_a_packet_asks_for_more(owned in version().prop_flat_map(any_packet)) {
        let mut wire = Vec::new();
        owned.packet().encode(owned.version, &mut wire).unwrap();
        for len in 0..wire.len() {
            prop_assert_eq!(decode(&wire[..len], owned.version, MAX_PACKET_LEN), Ok(None));
        }
    }

    #[test]
    fn packets_in_a_row_are_told_apart(
        row in version().prop_flat_map(|v| prop::collection::vec(any_packet(v), 1..6)),
    ) {
        let mut wire = Vec::new();
        for owned in &row {
            owned.packet().encode(owned.version, &mut wire).unwrap();
        }
        let mut at = 0;
        for owned in &row {
            let (packet, consumed) = decode(&wire[at..], owned.version, MAX_PACKET_LEN).unwrap().unwrap();
            prop_assert_eq!(packet, owned.packet());
            at += consumed;
        }
        prop_assert_eq!(at, wire.len());
    }

    #[test]
    fn the_limit_is_on_the_whole_packet(
        owned in version().prop_flat_map(|v| packet(v, PacketType::Publish)),
    ) {
        let mut wire = Vec::new();
        owned.packet().encode(owned.version, &mut wire).unwrap();
        prop_assert!(decode(&wire, owned.version, wire.len()).is_ok());
        // Refused on the length alone, before the packet is there.
        let header = 1 + varint_len((wire.len() - 2) as u32);
        let error = decode(&wire[..header], owned.version, wire.len() - 1).unwrap_err();
        prop_assert_eq!(error.reason, ReasonCode::PACKET_TOO_LARGE);
        let (publish, _) = decode_publish(&wire, owned.version, wire.len()).unwrap().unwrap();
        prop_assert_eq!(Packet::Publish(publish), owned.packet());
    }
}

#[test]
fn the_short_acknowledgement_is_the_same_in_both_versions() {
    for (kind, make) in [
        (
            PacketType::PubAck,
            Packet::PubAck as fn(Ack<'static>) -> Packet<'static>,
        ),
        (PacketType::PubRec, Packet::PubRec),
        (PacketType::PubRel, Packet::PubRel),
        (PacketType::PubComp, Packet::PubComp),
    ] {
        let ack = Ack {
            packet_id: 0x1234,
            ..Ack::default()
        };
        let mut short = Vec::new();
        encode_ack(kind, 0x1234, &mut short);
        for version in [Version::V311, Version::V5] {
            let mut out = Vec::new();
            make(ack).encode(version, &mut out).unwrap();
            assert_eq!(out, short);
        }
    }
}
