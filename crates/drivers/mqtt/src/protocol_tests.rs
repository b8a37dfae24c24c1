//! The connection's state machine against hostile bytes.

use proptest::prelude::*;
use pubgauge_driver::*;
use pubgauge_mqtt_codec::{
    Ack, ConnAck, Packet, PacketType, Properties, Publish, QoS, ReasonCode, SubAck, Version,
};

use crate::client::{L, Mqtt};
use crate::fleet::ADDRESSING;
use crate::options::MqttOptions;
use crate::protocol::{connect, receive, window};
use crate::session::Awaits;
use crate::topics::MqttTopic;
use pubgauge_net::endpoint::Endpoint;
use pubgauge_net::fleet::{FleetClient, Protocol, Shared, State};

#[derive(Default)]
struct Sink {
    delivered: usize,
    acknowledged: usize,
    connected: usize,
}

impl Events for Sink {
    fn arrived(&mut self) {}
    fn delivered(&mut self, _: ClientId, _: Delivery<'_>) {
        self.delivered += 1;
    }
    fn acknowledged(&mut self, _: ClientId, _: u64, _: Acknowledgement) {
        self.acknowledged += 1;
    }
    fn changed(&mut self, _: ClientId, change: Change) {
        self.connected += usize::from(matches!(change, Change::Connected { .. }));
    }
}

fn fleet(version: Version, reliability: Reliability, durable: bool) -> (Mqtt, Shared) {
    let mut settings = Settings {
        reliability: Some(reliability),
        session: durable.then_some(Session::Durable),
        ..Settings::default()
    };
    let name = if version == Version::V5 { "5" } else { "3.1.1" };
    pubgauge_testing::native(&mut settings, "mqtt", "version", name.into());
    let (options, _) = MqttOptions::resolve(&settings, &Target::default()).unwrap();
    let endpoint = Endpoint::parse("mqtt://127.0.0.1:1", &ADDRESSING).unwrap();
    let shared = Shared::new(vec![endpoint], options.tuning);
    (Mqtt::new(options, 1 << 20), shared)
}

/// Packets that a server may send, in shapes that fit and shapes that do not.
fn server_packets(version: Version) -> impl Strategy<Value = Vec<u8>> {
    let id = prop_oneof![1u16..6, 64_001u16..64_004, any::<u16>()];
    (
        0u8..9,
        id,
        any::<bool>(),
        0u8..3,
        prop::sample::select(vec![0u8, 0x10, 0x80, 0x92]),
    )
        .prop_map(move |(kind, id, flag, qos, code)| {
            let code = if version == Version::V5 { code } else { 0 };
            let ack = Ack {
                packet_id: id.max(1),
                reason: ReasonCode(code),
                properties: Properties::default(),
            };
            let qos = QoS::from_bits(qos).unwrap();
            let packet = match kind {
                0 => Packet::ConnAck(ConnAck {
                    session_present: flag,
                    ..ConnAck::default()
                }),
                1 => Packet::Publish(Publish {
                    dup: flag && qos != QoS::AtMostOnce,
                    qos,
                    topic: "a/b",
                    packet_id: if qos == QoS::AtMostOnce { 0 } else { id.max(1) },
                    payload: &[7; 20],
                    ..Publish::default()
                }),
                2 => Packet::PubAck(ack),
                3 => Packet::PubRec(ack),
                4 => Packet::PubRel(ack),
                5 => Packet::PubComp(ack),
                6 => Packet::SubAck(SubAck {
                    packet_id: id.max(1),
                    codes: &[0],
                    properties: Properties::default(),
                }),
                7 => Packet::PingResp,
                _ => Packet::PingReq,
            };
            let mut bytes = Vec::new();
            // Where the packet cannot have the reason code, a plain packet takes its place.
            if packet.encode(version, &mut bytes).is_err() {
                pubgauge_mqtt_codec::encode_ack(PacketType::PubAck, id.max(1), &mut bytes);
            }
            bytes
        })
}

fn scripts() -> impl Strategy<Value = (Version, Vec<Vec<u8>>)> {
    prop_oneof![Just(Version::V311), Just(Version::V5)].prop_flat_map(|version| {
        let garbage = prop::collection::vec(any::<u8>(), 0..40);
        let step = prop_oneof![
            8 => server_packets(version),
            1 => garbage,
            1 => (server_packets(version), any::<prop::sample::Index>(), any::<u8>()).prop_map(
                |(mut bytes, at, value)| {
                    let at = at.index(bytes.len());
                    bytes[at] = value;
                    bytes
                }
            ),
        ];
        (Just(version), prop::collection::vec(step, 1..40))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// No panic, no underflow of any count, answers no longer than what they answer, and the
    /// session's counts agree with the fleet's, whatever a server sends.
    #[test]
    fn whatever_a_server_sends_the_books_agree(
        (version, steps) in scripts(), greeted: bool, durable: bool,
        reliability in prop::sample::select(vec![
            Reliability::AtMostOnce, Reliability::AtLeastOnce, Reliability::ExactlyOnce,
        ]),
    ) {
        let (mut mqtt, mut shared) = fleet(version, reliability, durable);
        let spec = ClientSpec { name: "c".into(), ..ClientSpec::default() };
        let mut client = FleetClient::new(&spec, 0, mqtt.client(&spec).unwrap());
        let mut link = L::unwired(ClientId(0), &mut client, &mut shared);
        let mut sink = Sink::default();
        let topic = MqttTopic::new("t", &mqtt.options, None).unwrap();
        let topic = mqtt.topics.insert(0, topic);
        link.client.state = State::Greeting;
        connect(&mut mqtt, &mut link).unwrap();
        if greeted {
            let accept = [0x20, if version == Version::V5 { 3 } else { 2 }, 0, 0, 0];
            let len = accept[1] as usize + 2;
            receive(&mut mqtt, &mut link, &accept[..len], &mut sink).unwrap();
            prop_assert_eq!(sink.connected, 1);
            let window = window(&mqtt, &link);
            let session = link.client.own.session.get_or_insert_default();
            session.begin_connection(window);
            session.begin_subscribe();
            let awaits = match reliability {
                Reliability::AtMostOnce | Reliability::BestEffort => None,
                Reliability::AtLeastOnce => Some(Awaits::PubAck),
                Reliability::ExactlyOnce | Reliability::Reliable => Some(Awaits::PubRec),
            };
            for tag in 0..3 {
                if let Some(awaits) = awaits {
                    session.take(awaits, topic, tag, None);
                    link.shared.unsettled += 1;
                }
            }
        }
        let mut bytes = Vec::new();
        for step in steps {
            bytes.extend_from_slice(&step);
            let (before, len) = (link.client.pending(), bytes.len());
            match receive(&mut mqtt, &mut link, &bytes, &mut sink) {
                Ok(used) => {
                    prop_assert!(used <= len);
                    bytes.drain(..used);
                }
                Err(broken) => {
                    prop_assert!(broken.failure.why.starts_with("mqtt://127.0.0.1:1: "), "{}", broken.failure.why);
                    break;
                }
            }
            // The longest answer relative to its packet: 5 bytes to 4.
            prop_assert!(link.client.pending() - before <= 2 * len);
            let in_flight = link.client.own.session.as_ref().map_or(0, |s| s.in_flight());
            prop_assert_eq!(link.shared.unsettled, in_flight);
        }
        prop_assert!(sink.acknowledged <= 3);
    }
}
