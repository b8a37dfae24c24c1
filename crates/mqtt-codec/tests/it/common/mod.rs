//! Generators of valid packets, and the semantic copy of a packet.
#![allow(dead_code)] // Each test file uses its own part.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::subsequence;
use pubgauge_mqtt_codec::*;

/// A packet with the storage that [`Packet`] borrows: its parts, not its bytes.
#[derive(Clone, Debug)]
pub struct Owned {
    pub version: Version,
    kind: PacketType,
    id: u16,
    flag: bool,
    other_flag: bool,
    number: u16,
    code: u8,
    codes: Vec<u8>,
    text: String,
    topic: String,
    bytes: Vec<u8>,
    qos: QoS,
    username: Option<String>,
    password: Option<Vec<u8>>,
    will: Option<(String, Vec<u8>, QoS, bool, PropertiesBuf)>,
    filters: FiltersBuf,
    topic_filters: TopicFiltersBuf,
    properties: PropertiesBuf,
}

impl Owned {
    pub fn packet(&self) -> Packet<'_> {
        let properties = self.properties.as_properties();
        let packet_id = self.id;
        let reason = ReasonCode(self.code);
        let ack = Ack {
            packet_id,
            reason,
            properties,
        };
        match self.kind {
            PacketType::Connect => Packet::Connect(Connect {
                version: self.version,
                clean_start: self.flag,
                keep_alive_s: self.number,
                client_id: &self.text,
                will: self
                    .will
                    .as_ref()
                    .map(|(topic, payload, qos, retain, properties)| Will {
                        topic,
                        payload,
                        qos: *qos,
                        retain: *retain,
                        properties: properties.as_properties(),
                    }),
                username: self.username.as_deref(),
                password: self.password.as_deref(),
                properties,
            }),
            PacketType::ConnAck => Packet::ConnAck(ConnAck {
                session_present: self.flag && self.code == 0,
                code: reason,
                properties,
            }),
            PacketType::Publish => Packet::Publish(Publish {
                dup: self.flag && self.qos != QoS::AtMostOnce,
                qos: self.qos,
                retain: self.other_flag,
                topic: &self.topic,
                packet_id: if self.qos == QoS::AtMostOnce {
                    0
                } else {
                    packet_id
                },
                properties,
                payload: &self.bytes,
            }),
            PacketType::PubAck => Packet::PubAck(ack),
            PacketType::PubRec => Packet::PubRec(ack),
            PacketType::PubRel => Packet::PubRel(ack),
            PacketType::PubComp => Packet::PubComp(ack),
            PacketType::Subscribe => Packet::Subscribe(Subscribe {
                packet_id,
                filters: self.filters.as_filters(),
                properties,
            }),
            PacketType::SubAck => Packet::SubAck(SubAck {
                packet_id,
                codes: &self.codes,
                properties,
            }),
            PacketType::Unsubscribe => Packet::Unsubscribe(Unsubscribe {
                packet_id,
                filters: self.topic_filters.as_filters(),
                properties,
            }),
            PacketType::UnsubAck => Packet::UnsubAck(UnsubAck {
                packet_id,
                codes: &self.codes,
                properties,
            }),
            PacketType::PingReq => Packet::PingReq,
            PacketType::PingResp => Packet::PingResp,
            PacketType::Disconnect => Packet::Disconnect(Disconnect { reason, properties }),
            PacketType::Auth => Packet::Auth(Auth { reason, properties }),
        }
    }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-zA-Z0-9 ]{0,12}", "[^\u{0}]{0,8}", Just("x".repeat(200))]
}

fn topic() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z/$]{1,20}", "[^\u{0}+#]{1,6}"]
}

fn filter() -> impl Strategy<Value = String> {
    let level = prop_oneof![Just("+".to_owned()), "[a-z]{0,4}"];
    (vec(level, 1..5), any::<bool>(), option::of("[a-z]{1,3}"))
        .prop_map(|(mut levels, hash, group)| {
            if hash {
                levels.push("#".to_owned());
            }
            let filter = levels.join("/");
            match group {
                Some(group) => format!("$share/{group}/{filter}"),
                None => filter,
            }
        })
        .prop_filter("not empty", |filter| topic::check_filter(filter).is_ok())
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..40), vec(any::<u8>(), 300..301)]
}

fn qos() -> impl Strategy<Value = QoS> {
    (0u8..3).prop_map(|q| QoS::from_bits(q).unwrap())
}

/// Values that properties are filled with.
type Values = (bool, u32, u16, String, Vec<u8>, Vec<(String, String)>);

fn values() -> impl Strategy<Value = Values> {
    (
        any::<bool>(),
        1u32..,
        1u16..,
        topic(),
        vec(any::<u8>(), 0..20),
        vec((text(), text()), 0..3),
    )
}

/// All properties that `accept` admits, made from the values, in the order of their identifiers.
fn all(values: &Values) -> Vec<Property<'_>> {
    use Property::*;
    let (flag, long, short, text, bytes, pairs) = values;
    let mut all = vec![
        PayloadFormatIndicator(*flag),
        MessageExpiryInterval(*long),
        ContentType(text),
        ResponseTopic(text),
        CorrelationData(bytes),
        SubscriptionIdentifier(long & VARINT_MAX | 1),
        SessionExpiryInterval(*long),
        AssignedClientIdentifier(text),
        ServerKeepAlive(*short),
        AuthenticationMethod(text),
        AuthenticationData(bytes),
        RequestProblemInformation(*flag),
        WillDelayInterval(*long),
        RequestResponseInformation(*flag),
        ResponseInformation(text),
        ServerReference(text),
        ReasonString(text),
        ReceiveMaximum(*short),
        TopicAliasMaximum(*short),
        TopicAlias(*short),
        MaximumQoS(*flag),
        RetainAvailable(*flag),
        MaximumPacketSize(*long),
        WildcardSubscriptionAvailable(*flag),
        SubscriptionIdentifierAvailable(*flag),
        SharedSubscriptionAvailable(*flag),
    ];
    all.extend(pairs.iter().map(|(k, v)| UserProperty((k, v))));
    all
}

/// Identifiers that may stand in a packet of this type, `None` for the will: table 2-4 written
/// down a second time, so that a slip in the codec's own table does not go unseen.
pub fn allowed(place: Option<PacketType>) -> Vec<u8> {
    use PacketType::*;
    let Some(place) = place else {
        return vec![0x01, 0x02, 0x03, 0x08, 0x09, 0x18, 0x26];
    };
    match place {
        Connect => vec![0x11, 0x15, 0x16, 0x17, 0x19, 0x21, 0x22, 0x26, 0x27],
        ConnAck => vec![
            0x11, 0x12, 0x13, 0x15, 0x16, 0x1a, 0x1c, 0x1f, 0x21, 0x22, 0x24, 0x25, 0x26, 0x27,
            0x28, 0x29, 0x2a,
        ],
        Publish => vec![0x01, 0x02, 0x03, 0x08, 0x09, 0x0b, 0x23, 0x26],
        PubAck | PubRec | PubRel | PubComp | SubAck | UnsubAck => vec![0x1f, 0x26],
        Subscribe => vec![0x0b, 0x26],
        Unsubscribe => vec![0x26],
        Disconnect => vec![0x11, 0x1c, 0x1f, 0x26],
        Auth => vec![0x15, 0x16, 0x1f, 0x26],
        PingReq | PingResp => vec![],
    }
}

fn properties(version: Version, place: Option<PacketType>) -> BoxedStrategy<PropertiesBuf> {
    let ids = allowed(place);
    if version == Version::V311 || ids.is_empty() {
        return Just(PropertiesBuf::default()).boxed();
    }
    let len = ids.len();
    (values(), subsequence(ids, 0..=len))
        .prop_map(|(values, ids)| {
            let method = ids.contains(&0x15);
            let mut buf = PropertiesBuf::default();
            for property in all(&values) {
                let id = property.id();
                let needs_method = id == PropertyId::AuthenticationData && !method;
                if ids.contains(&(id as u8)) && !needs_method {
                    buf.push(property).unwrap();
                }
            }
            buf
        })
        .boxed()
}

fn codes(version: Version, kind: PacketType) -> Vec<u8> {
    (0..=255)
        .filter(|code| match (version, kind) {
            (Version::V311, PacketType::ConnAck) => *code <= 5,
            (Version::V311, PacketType::SubAck) => matches!(code, 0..=2 | 0x80),
            (Version::V311, _) => *code == 0,
            (Version::V5, kind) => {
                let reason = ReasonCode(*code);
                let valid = reason.is_valid_in(kind) || reason.rejects_in(kind);
                valid || !carries_code(kind) && *code == 0
            }
        })
        .collect()
}

fn carries_code(kind: PacketType) -> bool {
    use PacketType::*;
    !matches!(
        kind,
        Connect | Publish | Subscribe | Unsubscribe | PingReq | PingResp
    )
}

/// Any valid packet of the version.
pub fn any_packet(version: Version) -> impl Strategy<Value = Owned> {
    let last = if version == Version::V5 { 15u8 } else { 14 };
    (1..=last).prop_flat_map(move |kind| packet(version, PacketType::from_bits(kind).unwrap()))
}

/// Any valid packet of the version and type.
pub fn packet(version: Version, kind: PacketType) -> impl Strategy<Value = Owned> {
    let list = codes(version, kind);
    let will = option::of((
        topic(),
        bytes(),
        qos(),
        any::<bool>(),
        properties(version, None),
    ));
    let options = (qos(), any::<bool>(), any::<bool>(), 0u8..3);
    (
        (1u16.., any::<bool>(), any::<bool>(), any::<u16>()),
        (
            prop::sample::select(list.clone()),
            vec(prop::sample::select(list), 1..4),
        ),
        (text(), topic(), bytes(), qos()),
        (option::of(text()), option::of(bytes()), will),
        vec((filter(), options), 1..4),
        properties(version, Some(kind)),
    )
        .prop_map(move |(numbers, codes, texts, login, filters, properties)| {
            let mut filters_buf = FiltersBuf::default();
            let mut topic_filters = TopicFiltersBuf::default();
            for (filter, (qos, no_local, retain_as_published, handling)) in &filters {
                let v5 = version == Version::V5;
                let options = SubscribeOptions {
                    qos: *qos,
                    no_local: v5 && *no_local && topic::split_shared(filter).is_none(),
                    retain_as_published: v5 && *retain_as_published,
                    retain_handling: match handling {
                        1 if v5 => RetainHandling::SendIfNew,
                        2 if v5 => RetainHandling::DoNotSend,
                        _ => RetainHandling::Send,
                    },
                };
                filters_buf.push(filter, options).unwrap();
                topic_filters.push(filter).unwrap();
            }
            let v311 = version == Version::V311;
            Owned {
                version,
                kind,
                id: numbers.0,
                flag: numbers.1,
                other_flag: numbers.2,
                number: numbers.3,
                code: codes.0,
                codes: if v311 && kind == PacketType::UnsubAck {
                    vec![]
                } else {
                    codes.1
                },
                text: texts.0,
                topic: texts.1,
                bytes: texts.2,
                qos: texts.3,
                password: login.1.filter(|_| login.0.is_some() || !v311),
                username: login.0,
                will: login.2,
                filters: filters_buf,
                topic_filters,
                properties,
            }
        })
}

/// The packet encoded anew from what its decoded form *says*: every property, filter and option
/// is read and written one by one, so that a field read wrongly cannot pass unnoticed.
pub fn encode_from_parts(packet: &Packet<'_>, version: Version) -> Vec<u8> {
    fn copy(properties: Properties<'_>) -> PropertiesBuf {
        let mut buf = PropertiesBuf::default();
        for property in properties {
            buf.push(property).unwrap();
        }
        buf
    }
    let mut out = Vec::new();
    let (buf, will_buf, mut filters, mut topic_filters);
    let copied = match *packet {
        Packet::Connect(mut p) => {
            buf = copy(p.properties);
            p.properties = buf.as_properties();
            will_buf = copy(p.will.map(|w| w.properties).unwrap_or_default());
            if let Some(will) = &mut p.will {
                will.properties = will_buf.as_properties();
            }
            Packet::Connect(p)
        }
        Packet::Subscribe(mut p) => {
            buf = copy(p.properties);
            p.properties = buf.as_properties();
            filters = FiltersBuf::default();
            for (filter, options) in p.filters.iter() {
                filters.push(filter, options).unwrap();
            }
            p.filters = filters.as_filters();
            Packet::Subscribe(p)
        }
        Packet::Unsubscribe(mut p) => {
            buf = copy(p.properties);
            p.properties = buf.as_properties();
            topic_filters = TopicFiltersBuf::default();
            for filter in p.filters.iter() {
                topic_filters.push(filter).unwrap();
            }
            p.filters = topic_filters.as_filters();
            Packet::Unsubscribe(p)
        }
        mut other => {
            let properties = match &mut other {
                Packet::ConnAck(p) => Some(&mut p.properties),
                Packet::Publish(p) => Some(&mut p.properties),
                Packet::PubAck(p) | Packet::PubRec(p) | Packet::PubRel(p) | Packet::PubComp(p) => {
                    Some(&mut p.properties)
                }
                Packet::SubAck(p) => Some(&mut p.properties),
                Packet::UnsubAck(p) => Some(&mut p.properties),
                Packet::Disconnect(p) => Some(&mut p.properties),
                Packet::Auth(p) => Some(&mut p.properties),
                _ => None,
            };
            buf = match &properties {
                Some(properties) => copy(**properties),
                None => PropertiesBuf::default(),
            };
            if let Some(properties) = properties {
                *properties = buf.as_properties();
            }
            other
        }
    };
    copied.encode(version, &mut out).unwrap();
    out
}
