//! Handles the packets that a client gets. No sockets here: bytes come in as a slice, and
//! what is to be sent is appended to the client's output buffer.
//!
//! | packet | while greeting | while connected |
//! |---|---|---|
//! | CONNACK | connected, or failed | failed |
//! | PUBLISH | failed | delivered, and acknowledged at QoS 1 and 2 |
//! | PUBACK, PUBREC, PUBCOMP, PUBREL | failed | the handshakes of 5.0 §4.3 |
//! | SUBACK | failed | subscribed, or refused |
//! | PINGRESP | failed | a sign of life |
//! | DISCONNECT (MQTT 5) | failed, with the server's reason | the same |
//! | any other | failed | failed |

use pubgauge_driver::{Acknowledgement, Change, Delivery, Events, Grant};
use pubgauge_mqtt_codec::{
    Ack, ConnAck, Connect, DecodeError, Disconnect, Packet, PacketType, Properties, PropertiesBuf,
    Property, PropertyId, Publish, QoS, ReasonCode, SubAck, Version, Will,
    connect_return_code_words, decode, decode_publish, encode_ack, is_publish,
};
use pubgauge_net::fleet::{Broken, State};
use pubgauge_net::out::OUT_CAP;
use pubgauge_net::tls;

use crate::client::{L, Mqtt};
use crate::options::MAX_IN_FLIGHT;
use crate::session::Awaits;
use crate::topics::MqttTopic;

/// The server broke the protocol; the connection fails with a reason code.
fn breach(link: &L<'_>, what: impl std::fmt::Display) -> Broken {
    Broken {
        code: Some(ReasonCode::PROTOCOL_ERROR.0),
        ..link.protocol_broken(what, "is it an MQTT server, and of this version?")
    }
}

/// Takes in `bytes`, as many whole packets as they hold, and returns how many bytes that was.
pub(crate) fn receive(
    mqtt: &mut Mqtt,
    link: &mut L<'_>,
    bytes: &[u8],
    events: &mut dyn Events,
) -> Result<usize, Broken> {
    let version = mqtt.options.version;
    let mut at = 0;
    loop {
        let rest = &bytes[at..];
        if link.client.state == State::Connected && is_publish(rest) {
            match decode_publish(rest, version, mqtt.max_in) {
                Ok(Some((publish, len))) => {
                    at += len;
                    message(mqtt, link, &publish, events)?;
                    if link.client.is_busy() {
                        break;
                    }
                }
                Ok(None) => break,
                Err(error) => return Err(undecodable(mqtt, link, error)),
            }
            continue;
        }
        match decode(rest, version, mqtt.max_in) {
            Ok(Some((packet, len))) => {
                at += len;
                match link.client.state {
                    State::Connected => control(mqtt, link, packet, events)?,
                    State::Greeting => greeting(mqtt, link, packet, events)?,
                    // Bytes after our DISCONNECT are ignored.
                    _ => return Ok(bytes.len()),
                }
            }
            Ok(None) => break,
            Err(_) if link.client.state == State::Greeting && tls::looks_like_tls(rest) => {
                return Err(Broken::new(tls::unexpected(link.display_endpoint())));
            }
            Err(error) => return Err(undecodable(mqtt, link, error)),
        }
    }
    Ok(at)
}

#[cold]
fn undecodable(mqtt: &Mqtt, link: &L<'_>, error: DecodeError) -> Broken {
    let mut broken = breach(link, error);
    broken.code = Some(error.reason.0);
    if error.reason == ReasonCode::PACKET_TOO_LARGE {
        broken.failure.why = format!(
            "{}: {error}\n  hint: this trial takes packets of up to {} bytes; something else publishes to the same topics?",
            link.display_endpoint(),
            mqtt.max_in
        );
    }
    broken
}

#[cold]
fn unexpected(link: &L<'_>, packet: PacketType) -> Broken {
    let when = match link.client.state {
        State::Greeting => "before its CONNACK",
        _ => "in the middle of the connection",
    };
    breach(link, format!("{} {when}", packet.name()))
}

/// Appends the CONNECT.
pub(crate) fn connect(mqtt: &mut Mqtt, link: &mut L<'_>) -> Result<(), Broken> {
    let options = &mqtt.options;
    let mut properties = PropertiesBuf::default();
    if options.version == Version::V5 {
        let mut push = |property| {
            // Numbers always fit.
            let _ = properties.push(property);
        };
        if options.session_expiry_s != 0 && !mqtt.leaving {
            push(Property::SessionExpiryInterval(options.session_expiry_s));
        }
        if options.receive_maximum != u16::MAX {
            push(Property::ReceiveMaximum(options.receive_maximum));
        }
    }
    let own = &link.client.own;
    let will = own.will.as_ref().filter(|_| !mqtt.leaving);
    let mut of_will = PropertiesBuf::default();
    if let Some(will) = will.filter(|will| will.delay_s > 0 && options.version == Version::V5) {
        // A number always fits.
        let _ = of_will.push(Property::WillDelayInterval(will.delay_s));
    }
    let packet = Packet::Connect(Connect {
        version: options.version,
        clean_start: !options.durable || mqtt.leaving,
        keep_alive_s: options.keep_alive_s,
        client_id: &link.client.name,
        will: will.map(|will| Will {
            topic: &will.topic,
            payload: &will.payload,
            qos: options.qos_of_will(will),
            retain: will.retain,
            properties: of_will.as_properties(),
        }),
        username: link.username(),
        password: link.password().map(|p| p.reveal().as_bytes()),
        properties: properties.as_properties(),
    });
    let mut bytes = Vec::new();
    packet
        .encode(options.version, &mut bytes)
        .map_err(|error| Broken::new(format!("the CONNECT cannot be encoded: {error}")))?;
    link.out().bytes.append(&mut bytes);
    Ok(())
}

/// A packet before the CONNACK.
fn greeting(
    mqtt: &mut Mqtt,
    link: &mut L<'_>,
    packet: Packet<'_>,
    events: &mut dyn Events,
) -> Result<(), Broken> {
    match packet {
        Packet::ConnAck(connack) => accepted(mqtt, link, &connack, events),
        Packet::Disconnect(disconnect) if mqtt.options.version == Version::V5 => {
            Err(dismissed(link, &disconnect))
        }
        Packet::Auth(_) => Err(link.broken(
            "the server asks for enhanced authentication\n  hint: this driver speaks user name and password, and client certificates",
        )),
        other => Err(unexpected(link, other.packet_type())),
    }
}

fn accepted(
    mqtt: &mut Mqtt,
    link: &mut L<'_>,
    connack: &ConnAck<'_>,
    events: &mut dyn Events,
) -> Result<(), Broken> {
    let version = mqtt.options.version;
    if connack.code != ReasonCode::SUCCESS {
        return Err(refused(mqtt, link, connack));
    }
    if connack.session_present && !mqtt.options.durable {
        return Err(breach(
            link,
            "it has a session although a clean one was asked for (5.0 §3.2.2.1.1, 3.1.1 §3.2.2.2)",
        ));
    }
    let number = |property| connack.properties.number(property);
    let options = &mqtt.options;
    if version == Version::V5 {
        let lacks = |what: &str| {
            Err(link.broken(format_args!(
                "the server does not support {what}, which the settings ask for"
            )))
        };
        let max_qos = number(PropertyId::MaximumQoS).unwrap_or(2);
        if options.qos as u32 > max_qos {
            return lacks(&format!("publishing at QoS {}", options.qos as u8));
        }
        if number(PropertyId::RetainAvailable) == Some(0) && options.retain {
            return lacks("retained messages (last-value)");
        }
        let takes_identifiers = number(PropertyId::SubscriptionIdentifierAvailable) != Some(0);
        if options.subscription_identifier.is_some() && !takes_identifiers {
            return lacks("subscription identifiers");
        }
        // The server's own value holds in place of what was asked for (5.0 §3.2.2.3.2).
        let granted = number(PropertyId::SessionExpiryInterval);
        let shorter = granted.filter(|granted| *granted < options.session_at_least_s);
        if let Some(granted) = shorter.filter(|_| options.durable && !mqtt.leaving) {
            return lacks(&format!(
                "sessions of {} s (it grants {granted} s)",
                options.session_at_least_s
            ));
        }
    }
    let narrow = |n: u32| u16::try_from(n).unwrap_or(u16::MAX);
    let keep_alive_s = number(PropertyId::ServerKeepAlive).map_or(options.keep_alive_s, narrow);
    link.client.own.receive_max = number(PropertyId::ReceiveMaximum).map_or(u16::MAX, narrow);
    link.client.own.alias_max = number(PropertyId::TopicAliasMaximum)
        .map_or(0, narrow)
        .min(options.topic_alias);
    link.client.own.max_packet = number(PropertyId::MaximumPacketSize).unwrap_or(u32::MAX);
    link.client.own.has_session = options.durable && !mqtt.leaving;
    link.connected();
    link.keep_alive(keep_alive_s);
    let window = window(mqtt, link);
    if !mqtt.leaving {
        let session_s = number(PropertyId::SessionExpiryInterval);
        granted(mqtt, link, (window, keep_alive_s, session_s));
    }
    if let Some(session) = &mut link.client.own.session {
        if !connack.session_present {
            // 5.0 §3.2.2.1.1: what we remember has no counterpart and must be forgotten. Only the
            // application may publish it anew.
            link.shared.unsettled -= session.discard();
        }
        session.begin_connection(window);
    }
    link.report_connected(events, connack.session_present);
    send_again(mqtt, link);
    Ok(())
}

/// Notes what holds for a client in place of what the settings ask for.
fn granted(
    mqtt: &mut Mqtt,
    link: &L<'_>,
    (window, keep_alive_s, session_s): (u32, u16, Option<u32>),
) {
    let options = &mqtt.options;
    let grant = |setting: &'static str, term: &'static str, asked: u32, granted: u32| Grant {
        setting: setting.into(),
        asked: asked.into(),
        granted: granted.into(),
        term: term.into(),
    };
    let windowed = options.qos != QoS::AtMostOnce;
    let in_flight =
        windowed.then(|| grant(Grant::WINDOW, "Receive Maximum", options.in_flight, window));
    let aliases = u32::from(options.topic_alias);
    let alias = (aliases > 0).then(|| {
        let granted = link.client.own.alias_max.into();
        grant(
            "native.mqtt.topic-alias",
            "Topic Alias Maximum",
            aliases,
            granted,
        )
    });
    let keep_alive = grant(
        "keep-alive-s",
        "Server Keep Alive",
        options.keep_alive_s.into(),
        keep_alive_s.into(),
    );
    // A server of 3.1.1 cannot tell for how long it keeps a session.
    let kept = options.durable && options.version == Version::V5;
    let session = kept.then(|| {
        let asked = options.session_expiry_s;
        let term = "Session Expiry Interval";
        grant("session-expiry-s", term, asked, session_s.unwrap_or(asked))
    });
    let max_packet = link.client.own.max_packet;
    let size =
        (max_packet < u32::MAX).then(|| Grant::size(max_packet.into(), "Maximum Packet Size"));
    let all = in_flight
        .into_iter()
        .chain(alias)
        .chain([keep_alive])
        .chain(session)
        .chain(size);
    Grant::unite(&mut mqtt.granted, all);
}

/// Most messages in flight on the present connection.
pub(crate) fn window(mqtt: &Mqtt, link: &L<'_>) -> u32 {
    mqtt.options
        .in_flight
        .min(u32::from(link.client.own.receive_max))
        .min(MAX_IN_FLIGHT)
}

/// Sends what was in flight when the last connection ended, in its order and within the window (5.0
/// §4.4, §4.6).
pub(crate) fn send_again(mqtt: &mut Mqtt, link: &mut L<'_>) {
    while link.client.pending() < OUT_CAP {
        let Some(session) = &mut link.client.own.session else {
            return;
        };
        let Some(packet_id) = session.next_resend() else {
            return;
        };
        let Some(slot) = session.slot(packet_id) else {
            return;
        };
        let (awaits, topic) = (slot.awaits, slot.topic);
        let payload = std::mem::take(&mut slot.payload);
        let bytes = &mut link.out().bytes;
        match (awaits, mqtt.topics.get(topic)) {
            (Awaits::PubComp, _) => encode_ack(PacketType::PubRel, packet_id, bytes),
            (_, None) => return,
            (_, Some(topic)) => {
                let at = bytes.len();
                match payload.split_first_chunk() {
                    Some((header, body)) if topic.header_apart => {
                        topic.plain.append(bytes, packet_id, &[], body);
                        MqttTopic::put_header(bytes, body.len(), header);
                    }
                    _ => {
                        topic.plain.append(bytes, packet_id, &[], &payload);
                    }
                }
                bytes[at] |= 1 << 3; // DUP, 5.0 §3.3.1.1.
            }
        }
        if let Some(slot) = link.client.own.slot(packet_id) {
            slot.payload = payload;
        }
    }
}

/// Why the server refused the CONNECT.
fn refused(mqtt: &Mqtt, link: &L<'_>, connack: &ConnAck<'_>) -> Broken {
    let code = connack.code;
    let v311 = mqtt.options.version == Version::V311;
    let (words, number) = if v311 {
        (
            connect_return_code_words(code.0),
            format!("return code {}", code.0),
        )
    } else {
        (code.words(), format!("reason code 0x{:02x}", code.0))
    };
    let hint = match (v311, code.0) {
        (true, 1) | (false, 0x84) => "\n  hint: set native.mqtt.version to what the server speaks",
        (true, 2) | (false, 0x85) => "\n  hint: the server does not take this client identifier",
        (true, 3) | (false, 0x88 | 0x89 | 0x97 | 0x9f) => {
            "\n  hint: the server has reached a limit or is starting; its log may say which"
        }
        _ => "",
    };
    let login = match (v311, code.0) {
        (true, 4 | 5) | (false, 0x86 | 0x87) => {
            let (what, hint) = link.login_refused();
            format!(": {what}\n  hint: {hint}")
        }
        _ => String::new(),
    };
    link.broken(format_args!(
        "the server refused the connection: {words} ({number}){}{login}{hint}",
        reason_and_reference(connack.properties),
    ))
}

/// The server's reason string and server reference, if it gave any.
fn reason_and_reference(properties: Properties<'_>) -> String {
    let mut text = String::new();
    if let Some(words) = properties.text(PropertyId::ReasonString) {
        text += &format!(": {words}");
    }
    if let Some(server) = properties.text(PropertyId::ServerReference) {
        text += &format!("; it names {server} instead");
    }
    text
}

fn dismissed(link: &L<'_>, disconnect: &Disconnect<'_>) -> Broken {
    link.broken(format_args!(
        "the server ended the connection: {}{}",
        disconnect.reason,
        reason_and_reference(disconnect.properties)
    ))
}

/// A message for us.
#[inline]
fn message(
    mqtt: &mut Mqtt,
    link: &mut L<'_>,
    publish: &Publish<'_>,
    events: &mut dyn Events,
) -> Result<(), Broken> {
    if publish.topic.is_empty() {
        // The client allows no aliases (Topic Alias Maximum is 0 if absent, 5.0 §3.1.2.11.5).
        return Err(breach(
            link,
            "a PUBLISH with a topic alias that was not allowed (5.0 §3.3.2.3.4)",
        ));
    }
    let (answer, new) = match publish.qos {
        QoS::AtMostOnce => (None, true),
        QoS::AtLeastOnce => (Some(PacketType::PubAck), true),
        QoS::ExactlyOnce => {
            let session = mqtt.session(link);
            let new = session.receive(publish.packet_id, &mut mqtt.bitmap_pool);
            if session.unreleased() > u32::from(mqtt.options.receive_maximum) {
                let mut broken = breach(
                    link,
                    "more QoS 2 messages under way than our Receive Maximum (5.0 §3.3.4)",
                );
                broken.code = Some(ReasonCode::RECEIVE_MAXIMUM_EXCEEDED.0);
                return Err(broken);
            }
            (Some(PacketType::PubRec), new)
        }
    };
    if new {
        let mut sent = mqtt.options.qos as u8;
        if let Some(asked) = mqtt.options.subscription_identifier
            && publish
                .properties
                .number(PropertyId::SubscriptionIdentifier)
                != Some(asked)
        {
            return Err(breach(
                link,
                "a message without the Subscription Identifier of its subscription (5.0 §3.3.4)",
            ));
        }
        if !publish.properties.is_empty()
            && let Some((header, qos)) = MqttTopic::header_in(publish.properties)
        {
            events.header(&header);
            sent = qos;
        }
        let promised = sent.min(mqtt.options.subscribe_qos as u8);
        if (publish.qos as u8) < promised {
            events.lowered();
        }
        let delivery = Delivery {
            payload: publish.payload,
            topic: Some(publish.topic),
            retained: publish.retain,
            redelivered: publish.dup,
        };
        link.deliver(events, delivery);
    }
    if let Some(answer) = answer {
        let out = link.out();
        encode_ack(answer, publish.packet_id, &mut out.bytes);
    }
    Ok(())
}

/// Any other packet on a connection in use.
fn control(
    mqtt: &mut Mqtt,
    link: &mut L<'_>,
    packet: Packet<'_>,
    events: &mut dyn Events,
) -> Result<(), Broken> {
    match packet {
        Packet::Publish(publish) => message(mqtt, link, &publish, events),
        Packet::PubAck(ack) => answered(link, &ack, Awaits::PubAck, events),
        Packet::PubComp(ack) => answered(link, &ack, Awaits::PubComp, events),
        Packet::PubRec(ack) => recorded(mqtt, link, &ack, events),
        Packet::PubRel(ack) => {
            let known = match &mut link.client.own.session {
                Some(session) => session.release(ack.packet_id, &mut mqtt.bitmap_pool),
                None => false,
            };
            if known || mqtt.options.version == Version::V311 {
                encode_ack(PacketType::PubComp, ack.packet_id, &mut link.out().bytes);
            } else {
                not_found(link, ack.packet_id, Packet::PubComp);
            }
            Ok(())
        }
        Packet::SubAck(suback) => subscribed(mqtt, link, &suback, events),
        Packet::PingResp => Ok(()), // Any byte from the server was already taken as a sign.
        Packet::Disconnect(disconnect) if mqtt.options.version == Version::V5 => {
            Err(dismissed(link, &disconnect))
        }
        other => Err(unexpected(link, other.packet_type())),
    }
}

/// Answers for a message that is not known here (MQTT 5).
fn not_found(link: &mut L<'_>, packet_id: u16, answer: fn(Ack<'static>) -> Packet<'static>) {
    let ack = Ack {
        packet_id,
        reason: ReasonCode::PACKET_IDENTIFIER_NOT_FOUND,
        ..Ack::default()
    };
    // An identifier from a decoded packet always encodes.
    let _ = answer(ack).encode(Version::V5, &mut link.out().bytes);
}

/// PUBACK or PUBCOMP: the message is acknowledged.
fn answered(
    link: &mut L<'_>,
    ack: &Ack<'_>,
    expected: Awaits,
    events: &mut dyn Events,
) -> Result<(), Broken> {
    let no_subscriber = match link.client.own.slot(ack.packet_id) {
        Some(slot) if slot.awaits == expected => slot.no_subscriber,
        _ => {
            let name = if expected == Awaits::PubAck {
                "PUBACK"
            } else {
                "PUBCOMP"
            };
            return Err(breach(
                link,
                format!(
                    "a {name} for packet identifier {}, which does not wait for one",
                    ack.packet_id
                ),
            ));
        }
    };
    let answer = match ack.reason {
        ReasonCode::NO_MATCHING_SUBSCRIBERS => Acknowledgement::NoSubscriber,
        reason if reason.is_error() => Acknowledgement::Rejected(u16::from(reason.0)),
        _ if no_subscriber => Acknowledgement::NoSubscriber,
        _ => Acknowledgement::Taken,
    };
    settle(link, ack.packet_id, answer, events);
    Ok(())
}

fn settle(link: &mut L<'_>, packet_id: u16, answer: Acknowledgement, events: &mut dyn Events) {
    let Some(session) = &mut link.client.own.session else {
        return;
    };
    let tag = session.settle(packet_id);
    link.acknowledge(events, tag, answer);
}

/// PUBREC: the server has the message; PUBREL follows.
fn recorded(
    mqtt: &mut Mqtt,
    link: &mut L<'_>,
    ack: &Ack<'_>,
    events: &mut dyn Events,
) -> Result<(), Broken> {
    let known = match link.client.own.slot(ack.packet_id) {
        Some(slot) if slot.awaits != Awaits::PubAck => {
            if ack.reason.is_error() {
                // 5.0 §4.3.3: the identifier is free again, no PUBREL follows.
                let answer = Acknowledgement::Rejected(u16::from(ack.reason.0));
                settle(link, ack.packet_id, answer, events);
                return Ok(());
            }
            slot.awaits = Awaits::PubComp;
            slot.no_subscriber |= ack.reason == ReasonCode::NO_MATCHING_SUBSCRIBERS;
            // From here on a resend needs only the identifier.
            slot.payload.clear();
            true
        }
        Some(_) => {
            return Err(breach(
                link,
                format!(
                    "a PUBREC for packet identifier {}, which is of QoS 1",
                    ack.packet_id
                ),
            ));
        }
        None if ack.reason.is_error() => return Ok(()),
        // A message that was completed on an earlier connection.
        None => false,
    };
    if known || mqtt.options.version == Version::V311 {
        encode_ack(PacketType::PubRel, ack.packet_id, &mut link.out().bytes);
    } else {
        not_found(link, ack.packet_id, Packet::PubRel);
    }
    Ok(())
}

fn subscribed(
    mqtt: &mut Mqtt,
    link: &mut L<'_>,
    suback: &SubAck<'_>,
    events: &mut dyn Events,
) -> Result<(), Broken> {
    let session = link.client.own.session.as_mut();
    let waiting = session.is_some_and(|s| s.end_subscribe(suback.packet_id));
    let &[code] = suback.codes else {
        return Err(breach(
            link,
            format!(
                "a SUBACK with {} codes for one topic filter",
                suback.codes.len()
            ),
        ));
    };
    if !waiting {
        return Err(breach(
            link,
            format!(
                "a SUBACK for packet identifier {}, which does not wait for one",
                suback.packet_id
            ),
        ));
    }
    let session = &mut link.client.own.session;
    if session.as_ref().is_some_and(|s| s.is_idle()) {
        *session = None; // Nothing is under way: give the memory back.
    }
    let asked = mqtt.options.subscribe_qos as u8;
    let change = match code {
        granted if granted == asked => Change::Subscribed,
        granted @ 0..=2 => Change::SubscriptionRefused(format!(
            "{}: the server granted QoS {granted} where QoS {asked} was asked for\n  hint: set native.mqtt.subscribe-qos = {granted}, or raise the server's maximum QoS",
            link.display_endpoint()
        )),
        code => {
            let words = match mqtt.options.version {
                Version::V5 => ReasonCode(code).to_string(),
                Version::V311 => "failure (0x80)".to_owned(),
            };
            Change::SubscriptionRefused(format!(
                "{}: the server refused the subscription: {words}{}\n  hint: its access rules or its limits may not allow the filter",
                link.display_endpoint(),
                reason_and_reference(suback.properties)
            ))
        }
    };
    link.report(events, change);
    Ok(())
}
