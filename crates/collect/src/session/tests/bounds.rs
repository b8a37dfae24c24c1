//! Messages that are too large, and control packets that nothing asked for.

use super::*;

/// A PUBLISH of so many bytes in all, to `a/b`.
fn large(version: Version, qos: QoS, len: usize) -> Vec<u8> {
    let around = |payload: &[u8]| {
        let publish = Publish {
            topic: "a/b",
            qos,
            packet_id: if qos == QoS::AtMostOnce { 0 } else { 9 },
            payload,
            ..Publish::default()
        };
        let mut bytes = Vec::new();
        Packet::Publish(publish)
            .encode(version, &mut bytes)
            .unwrap();
        bytes
    };
    let beside = around(&vec![0; len]).len() - len;
    around(&vec![0; len - beside])
}

/// Gives `bytes` in parts, as a connection does, and returns the most that had to be kept for more to come.
fn receive_in_parts(bench: &mut Rig, bytes: &[u8], part: usize) -> usize {
    let (mut kept, mut most) = (Vec::new(), 0);
    for part in bytes.chunks(part) {
        kept.extend_from_slice(part);
        let taken = bench.receive(&kept).unwrap();
        kept.drain(..taken);
        most = most.max(kept.len());
    }
    assert!(kept.is_empty());
    most
}

#[test]
fn a_message_that_is_too_large_passes_by_and_what_follows_is_stored() {
    const LARGEST: usize = 4000;
    for version in [Version::V5, Version::V311] {
        for (qos, acks) in [
            (QoS::AtMostOnce, vec![]),
            (QoS::AtLeastOnce, vec![0x40, 2, 0, 9]),
            (QoS::ExactlyOnce, vec![0x50, 2, 0, 9]),
        ] {
            for part in [1, 7, 1000, 100_000] {
                let mut bench = Rig::new(version);
                bench.asked.largest_message = LARGEST;
                bench.up(0);
                let fits = large(version, QoS::AtMostOnce, LARGEST);
                let bytes = [&large(version, qos, 50_000)[..], &fits].concat();
                let kept = receive_in_parts(&mut bench, &bytes, part);
                assert!(kept < LARGEST + part, "{kept} bytes were kept");
                let commit = bench.gather.take(0);
                assert_eq!(commit.messages, 1);
                let sent: Vec<u8> = commit.acks.iter().flat_map(|a| a.bytes.clone()).collect();
                let refused: u64 = commit.acks.iter().map(|acks| acks.beside).sum();
                assert_eq!((sent.len() / 4) as u64, refused);
                assert_eq!(sent, acks);
                assert!(matches!(
                    &bench.notices[..],
                    [Notice::DeadLetter { topic, bytes: 50_000, why: Why::TooLarge, so_far: 1, .. }]
                        if topic == "a/b"
                ));
            }
        }
    }
}

#[test]
fn of_many_messages_that_are_too_large_few_are_told() {
    let mut bench = Rig::new(Version::V5);
    bench.asked.largest_message = 1024;
    bench.up(0);
    let one = large(Version::V5, QoS::AtMostOnce, 2000);
    for _ in 0..2500 {
        bench.receive(&one).unwrap();
    }
    let told = bench.notices.iter().map(|notice| match notice {
        Notice::DeadLetter { so_far, .. } => *so_far,
        other => panic!("{other}"),
    });
    assert_eq!(told.collect::<Vec<_>>(), [1, 10, 100, 1000]);
    // Another reason is told for itself.
    bench.receive(&[0x32, 6, 0, 1, 0xff, 0, 8, b'x']).unwrap();
    assert!(matches!(
        bench.notices.last(),
        Some(Notice::DeadLetter {
            why: Why::Malformed,
            so_far: 1,
            ..
        })
    ));
}

#[test]
fn a_large_message_that_is_cut_off_is_nothing_to_the_next_connection() {
    let mut bench = Rig::new(Version::V311);
    bench.asked.largest_message = 1024;
    bench.up(0);
    let one = large(Version::V311, QoS::AtLeastOnce, 5000);
    bench.receive(&one[..2000]).unwrap();
    bench.up(1);
    bench.receive(&publish(7, false)).unwrap();
    let commit = bench.gather.take(0);
    assert_eq!(commit.messages, 1);
    assert_eq!(commit.acks.len(), 1);
    assert_eq!(commit.acks[0].bytes, [0x50, 2, 0, 7]);
}

#[test]
fn brokers_are_told_the_largest_message_where_that_is_wanted() {
    for (version, announces) in [
        (Version::V5, true),
        (Version::V5, false),
        (Version::V311, true),
    ] {
        let mut bench = Rig::new(version);
        bench.asked.announces_largest = announces;
        bench.session.begin(&bench.asked, &mut bench.out).unwrap();
        let Ok(Some((Packet::Connect(connect), _))) = decode(&bench.out, version, MAX_PACKET_LEN)
        else {
            panic!("no CONNECT");
        };
        let told = connect.properties.number(PropertyId::MaximumPacketSize);
        let is_told = announces && version == Version::V5;
        assert_eq!(told, is_told.then_some(1 << 20));
    }
}

#[test]
fn a_broker_that_floods_with_control_packets_is_dropped() {
    let pingresp: &[u8] = &[0xd0, 0];
    for (packet, name) in [(pingresp, "PINGRESP"), (&[0x62, 2, 0, 7], "PUBREL")] {
        let mut bench = Rig::new(Version::V5);
        bench.up(0);
        let why = (0..200_000).find_map(|_| bench.receive(packet).err());
        let why = why.unwrap_or_default();
        assert!(
            why.contains("more control packets") && why.contains(name),
            "{why}"
        );
    }
}

#[test]
fn control_packets_that_something_asked_for_come_without_end() {
    let mut bench = Rig::new(Version::V311);
    bench.up(0);
    for _ in 0..150_000 {
        bench.receive(&publish(7, false)).unwrap();
        bench.receive(&[0x62, 2, 0, 7]).unwrap();
        bench.session.ping(&mut bench.out);
        bench.receive(&[0xd0, 0]).unwrap();
        bench.out.clear();
    }
}

#[test]
fn a_message_whose_topic_is_no_text_is_a_dead_letter_and_those_behind_it_are_stored() {
    let mut bench = Rig::new(Version::V311);
    bench.up(0);
    // PUBLISH to a topic of one byte, at each QoS that is acknowledged.
    let bad = |first: u8| [first, 6, 0, 1, 0xff, 0, 8, b'x'];
    for (first, ack) in [(0x32, [0x40, 2, 0, 8]), (0x34, [0x50, 2, 0, 8])] {
        let bytes = [bad(first), publish(7, false)].concat();
        assert_eq!(bench.receive(&bytes), Ok(16));
        let commit = bench.gather.take(0);
        assert_eq!(commit.messages, 1);
        assert_eq!(commit.acks[0].bytes[..4], ack);
        assert_eq!(commit.acks[0].beside, 1);
        bench.receive(&[0x62, 2, 0, 7]).unwrap();
    }
    assert!(matches!(
        &bench.notices[..],
        [Notice::DeadLetter { words, why: Why::Malformed, .. }] if words.contains("UTF-8")
    ));
    // What would not come again is a broken protocol.
    let why = bench.receive(&[0x30, 4, 0, 1, 0xff, b'x']).unwrap_err();
    assert!(why.contains("UTF-8"), "{why}");
}
