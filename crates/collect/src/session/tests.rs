mod bounds;

use super::*;
use proptest::prelude::*;
use pubgauge_mqtt_codec::{MAX_PACKET_LEN, PropertyId};

fn asked(version: Version) -> Asked {
    Asked {
        client_id: "c".into(),
        version,
        qos: QoS::ExactlyOnce,
        filters: vec!["a/#".into(), "b/#".into()],
        own_filter: None,
        dropped_filters: vec!["old/#".into()],
        expiry_s: 60,
        keep_alive_s: 30,
        largest_message: 1 << 20,
        announces_largest: false,
        in_flight: None,
    }
}

/// A session, and what it has gathered, sent and told.
struct Rig {
    asked: Asked,
    session: BrokerSession,
    gather: Gather,
    out: Vec<u8>,
    notices: Vec<Notice>,
}

impl Rig {
    fn new(version: Version) -> Rig {
        Rig {
            asked: asked(version),
            session: BrokerSession::new(3, "h:1".into(), "mqtt://h:1".into()),
            gather: Gather::new(1, 1),
            out: Vec::new(),
            notices: Vec::new(),
        }
    }

    fn receive(&mut self, bytes: &[u8]) -> Result<usize, String> {
        let mut taking = Taking {
            asked: &self.asked,
            gather: &mut self.gather,
            out: &mut self.out,
            notices: &mut self.notices,
            at: (Instant::now(), 5),
            received: [0; 3],
            marked_duplicate: 0,
            payload_bytes: 0,
            dead: [0; 2],
        };
        self.session.receive(bytes, &mut taking)
    }

    /// Connects and subscribes; the server has a session or not.
    fn up(&mut self, session_present: u8) {
        self.session.begin(&self.asked, &mut self.out).unwrap();
        let is_v5 = self.asked.version == Version::V5;
        let (connack, suback): (&[u8], &[u8]) = if is_v5 {
            (&[0x20, 3, session_present, 0, 0], &[0x90, 5, 0, 1, 0, 2, 2])
        } else {
            (&[0x20, 2, session_present, 0], &[0x90, 4, 0, 1, 2, 2])
        };
        self.receive(connack).unwrap();
        assert_eq!(self.session.state, SessionState::Subscribing);
        self.receive(suback).unwrap();
        assert_eq!(self.session.state, SessionState::Up);
        self.out.clear();
    }
}

/// A PUBLISH of QoS 2 under 3.1.1.
fn publish(id: u8, dup: bool) -> [u8; 8] {
    [0x34 | u8::from(dup) << 3, 6, 0, 1, b'a', 0, id, b'x']
}

#[test]
fn it_asks_for_a_session_that_lasts_and_leaves_old_filters() {
    for version in [Version::V5, Version::V311] {
        let mut bench = Rig::new(version);
        bench.session.begin(&bench.asked, &mut bench.out).unwrap();
        let Ok(Some((Packet::Connect(connect), len))) = decode(&bench.out, version, MAX_PACKET_LEN)
        else {
            panic!("no CONNECT");
        };
        assert!(!connect.clean_start && connect.client_id == "c" && connect.keep_alive_s == 30);
        let expiry = connect.properties.number(PropertyId::SessionExpiryInterval);
        assert_eq!(expiry, (version == Version::V5).then_some(60));
        bench.out.drain(..len);
        let connack: &[u8] = if version == Version::V5 {
            &[0x20, 3, 0, 0, 0]
        } else {
            &[0x20, 2, 0, 0]
        };
        bench.receive(connack).unwrap();
        let Ok(Some((Packet::Subscribe(subscribe), len))) =
            decode(&bench.out, version, MAX_PACKET_LEN)
        else {
            panic!("no SUBSCRIBE");
        };
        let filters: Vec<_> = subscribe
            .filters
            .iter()
            .map(|(filter, options)| (filter, options.qos))
            .collect();
        assert_eq!(
            filters,
            [("a/#", QoS::ExactlyOnce), ("b/#", QoS::ExactlyOnce)]
        );
        let Ok(Some((Packet::Unsubscribe(gone), _))) =
            decode(&bench.out[len..], version, MAX_PACKET_LEN)
        else {
            panic!("no UNSUBSCRIBE");
        };
        assert_eq!(gone.filters.iter().collect::<Vec<_>>(), ["old/#"]);
    }
}

#[test]
fn a_message_of_qos_2_is_stored_once_and_acknowledged_on_the_connection_that_asks() {
    let mut bench = Rig::new(Version::V311);
    bench.up(0);
    bench.receive(&publish(7, false)).unwrap();
    // The connection is lost before the acknowledgement; the server sends it again.
    bench.up(1);
    bench.receive(&publish(7, true)).unwrap();
    let commit = bench.gather.take(0);
    assert_eq!(commit.messages, 1);
    let acks: Vec<_> = commit
        .acks
        .iter()
        .map(|acks| (acks.peer, acks.connection, &acks.bytes[..]))
        .collect();
    assert_eq!(
        acks,
        [(3, 1, &[0x50, 2, 0, 7][..]), (3, 2, &[0x50, 2, 0, 7])]
    );
    // Released, the identifier is free for another message.
    bench.receive(&[0x62, 2, 0, 7]).unwrap();
    assert_eq!(bench.out, [0x70, 2, 0, 7]);
    bench.receive(&publish(7, false)).unwrap();
    assert_eq!(bench.gather.take(0).messages, 1);
    // A server that has forgotten the session begins anew.
    bench.up(0);
    assert_eq!(
        bench.notices,
        [Notice::SessionLost {
            broker: "h:1".into()
        }]
    );
    bench.receive(&publish(7, false)).unwrap();
    assert_eq!(bench.gather.take(0).messages, 1);
}

#[test]
fn a_session_that_the_broker_shortens_is_told() {
    for (granted_s, told) in [(59, true), (60, false), (61, false)] {
        let mut bench = Rig::new(Version::V5);
        bench.session.begin(&bench.asked, &mut bench.out).unwrap();
        bench
            .receive(&[0x20, 8, 0, 0, 5, 0x11, 0, 0, 0, granted_s])
            .unwrap();
        let notice = Notice::ShorterSession {
            broker: "h:1".into(),
            granted_s: granted_s.into(),
            asked_s: 60,
        };
        assert_eq!(bench.notices.contains(&notice), told, "{granted_s} s");
    }
}

/// A broker that was killed goes on from what it had saved, and gives identifiers again that were not released.
#[test]
fn another_message_under_an_identifier_that_was_not_released_is_stored() {
    let mut bench = Rig::new(Version::V311);
    bench.up(0);
    bench.receive(&publish(7, false)).unwrap();
    bench.up(1);
    let mut other = publish(7, false);
    other[7] = b'y';
    bench.receive(&other).unwrap();
    assert_eq!(bench.gather.take(0).messages, 2);
    // Sent again, it is the same.
    other[0] |= 8;
    bench.receive(&other).unwrap();
    assert_eq!(bench.gather.take(0).messages, 0);
}

#[test]
fn refused_and_lower_subscriptions_are_told() {
    let mut bench = Rig::new(Version::V5);
    bench.session.begin(&bench.asked, &mut bench.out).unwrap();
    bench.receive(&[0x20, 3, 0, 0, 0]).unwrap();
    bench.receive(&[0x90, 5, 0, 1, 0, 0x87, 1]).unwrap();
    let told: Vec<String> = bench.notices.iter().map(Notice::to_string).collect();
    assert_eq!(
        told[0],
        "h:1: the subscription a/# was refused: not authorized"
    );
    assert_eq!(told[1], "h:1: delivers b/# at QoS 1 at the most");
    assert_eq!(bench.session.state, SessionState::Up);
}

/// A broker that takes nothing but the collector's own messages is none to collect from.
#[test]
fn a_filter_of_its_own_does_not_make_up_for_those_that_are_refused() {
    let refused = [0x90, 5, 0, 1, 0, 0x87, 1];
    for (own, is_well) in [(None, true), (Some("b/#"), false)] {
        let mut bench = Rig::new(Version::V5);
        bench.asked.own_filter = own.map(str::to_owned);
        bench.session.begin(&bench.asked, &mut bench.out).unwrap();
        bench.receive(&[0x20, 3, 0, 0, 0]).unwrap();
        assert_eq!(bench.receive(&refused).is_ok(), is_well, "{own:?}");
    }
}

/// While it leaves nothing is asked for, whatever the broker answers.
#[test]
fn an_answer_to_no_subscription_is_a_refusal() {
    let mut bench = Rig::new(Version::V5);
    bench.asked.own_filter = Some("b/#".into());
    bench.asked.filters.clear();
    bench.session.begin(&bench.asked, &mut bench.out).unwrap();
    bench.receive(&[0x20, 3, 0, 0, 0]).unwrap();
    assert!(bench.receive(&[0x90, 3, 0, 1, 0]).is_err());
}

#[test]
fn what_is_added_is_subscribed_to_before_what_is_dropped_is_left() {
    let mut bench = Rig::new(Version::V5);
    bench.up(0);
    assert!(!bench.session.has_left, "the broker has not said so");
    bench.receive(&[0xb0, 4, 0, 2, 0, 0]).unwrap();
    assert!(bench.session.has_left);
    bench.asked.filters = vec!["b/#".into(), "c/#".into()];
    bench.asked.dropped_filters = vec!["a/#".into()];
    let added = ["c/#".to_owned()];
    bench
        .session
        .ask_again(&bench.asked, &added, &mut bench.out)
        .unwrap();
    let Ok(Some((Packet::Subscribe(subscribe), len))) =
        decode(&bench.out, Version::V5, MAX_PACKET_LEN)
    else {
        panic!("no SUBSCRIBE");
    };
    let filters: Vec<_> = subscribe.filters.iter().map(|(filter, _)| filter).collect();
    assert_eq!((filters, subscribe.packet_id), (vec!["c/#"], 3));
    let Ok(Some((Packet::Unsubscribe(gone), _))) =
        decode(&bench.out[len..], Version::V5, MAX_PACKET_LEN)
    else {
        panic!("no UNSUBSCRIBE");
    };
    assert_eq!(gone.filters.iter().collect::<Vec<_>>(), ["a/#"]);
    // It goes on receiving meanwhile, and one refused filter of two ends nothing.
    assert_eq!(bench.session.state, SessionState::Up);
    bench.receive(&[0x90, 4, 0, 3, 0, 0x87]).unwrap();
    assert_eq!(bench.notices.len(), 1);
    assert!(!bench.session.has_left);
    bench.receive(&[0xb0, 4, 0, 4, 0, 0]).unwrap();
    assert!(bench.session.has_left);
    bench.asked.filters.push("d/#".into());
    bench.asked.dropped_filters.clear();
    let added = ["d/#".to_owned()];
    bench
        .session
        .ask_again(&bench.asked, &added, &mut bench.out)
        .unwrap();
    bench.receive(&[0x90, 4, 0, 5, 0, 2]).unwrap();
    let broker = "h:1".to_owned();
    assert_eq!(bench.notices.last(), Some(&Notice::Subscribed { broker }));
    assert!(bench.session.has_left);
}

#[test]
fn without_filters_it_is_connected_and_nothing_more() {
    let mut bench = Rig::new(Version::V5);
    (bench.asked.filters, bench.asked.dropped_filters) = (Vec::new(), Vec::new());
    bench.session.begin(&bench.asked, &mut bench.out).unwrap();
    bench.out.clear();
    bench.receive(&[0x20, 3, 0, 0, 0]).unwrap();
    assert_eq!(
        (bench.session.state, bench.out.len()),
        (SessionState::Up, 0)
    );
}

#[test]
fn a_change_before_the_subscriptions_stand_asks_for_all_and_the_last_answer_counts() {
    let mut bench = Rig::new(Version::V5);
    bench.session.begin(&bench.asked, &mut bench.out).unwrap();
    bench.receive(&[0x20, 3, 0, 0, 0]).unwrap();
    bench.out.clear();
    bench.asked.filters.push("c/#".into());
    bench
        .session
        .ask_again(&bench.asked, &["c/#".to_owned()], &mut bench.out)
        .unwrap();
    // The answer to the first, which two filters were in.
    bench.receive(&[0x90, 5, 0, 1, 0, 2, 2]).unwrap();
    assert_eq!(bench.session.state, SessionState::Subscribing);
    bench.receive(&[0x90, 6, 0, 3, 0, 2, 2, 2]).unwrap();
    assert_eq!(bench.session.state, SessionState::Up);
}

#[test]
fn a_packet_in_parts_is_waited_for() {
    let mut bench = Rig::new(Version::V311);
    bench.up(0);
    let whole = [publish(1, false), publish(2, false)].concat();
    for len in 0..8 {
        assert_eq!(bench.receive(&whole[..len]), Ok(0));
    }
    assert_eq!(bench.receive(&whole[..15]), Ok(8));
    assert_eq!(bench.receive(&whole[8..]), Ok(8));
    assert_eq!(bench.gather.take(0).messages, 2);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), v5: bool, up: bool) {
        let mut bench = Rig::new(if v5 { Version::V5 } else { Version::V311 });
        if up {
            bench.up(0);
        } else {
            bench.session.begin(&bench.asked, &mut bench.out).unwrap();
        }
        let taken = bench.receive(&bytes);
        prop_assert!(taken.is_err() || taken.is_ok_and(|taken| taken <= bytes.len()));
    }
}
