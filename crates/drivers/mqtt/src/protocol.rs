//! What a client does with the packets it gets. No sockets here: bytes come in as a slice, and
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

use pubgauge_driver::{Acknowledgement, Change, ClientId, Delivery, Events, Failure};
use pubgauge_mqtt_codec::{
    Ack, ConnAck, Connect, DecodeError, Disconnect, Packet, PacketType, Properties, PropertiesBuf,
    Property, PropertyId, Publish, QoS, ReasonCode, SubAck, Version, Will,
    connect_return_code_words, decode, decode_publish, encode_ack, is_publish,
};
use pubgauge_net::out::OUT_CAP;
use pubgauge_net::{login, tls};

use crate::client::{Client, State};
use crate::options::MAX_IN_FLIGHT;
use crate::session::Awaits;
use crate::shared::Shared;

/// Why a connection cannot go on.
#[derive(Debug)]
pub(crate) struct Broken {
    /// In words, with a hint.
    pub failure: Failure,
    /// What MQTT 5 would tell the server, if it is the server's fault.
    pub reason: Option<ReasonCode>,
}

impl Broken {
    fn protocol(endpoint: &str, what: impl std::fmt::Display) -> Self {
        Broken {
            failure: Failure::from(format!(
                "{endpoint}: the server broke the protocol: {what}\n  hint: is it an MQTT server, and of this version?"
            )),
            reason: Some(ReasonCode::PROTOCOL_ERROR),
        }
    }

    pub fn told(failure: impl Into<Failure>) -> Self {
        Broken {
            failure: failure.into(),
            reason: None,
        }
    }
}

/// Takes in `bytes`, as many whole packets as they hold, and returns how many bytes that was.
pub(crate) fn receive(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    bytes: &[u8],
    events: &mut dyn Events,
) -> Result<usize, Broken> {
    let version = shared.options.version;
    let mut at = 0;
    loop {
        let rest = &bytes[at..];
        if client.state == State::Connected && is_publish(rest) {
            match decode_publish(rest, version, shared.max_in) {
                Ok(Some((publish, len))) => {
                    at += len;
                    message(client, shared, id, &publish, events)?;
                }
                Ok(None) => break,
                Err(error) => return Err(undecodable(client, shared, error)),
            }
            continue;
        }
        match decode(rest, version, shared.max_in) {
            Ok(Some((packet, len))) => {
                at += len;
                match client.state {
                    State::Connected => control(client, shared, id, packet, events)?,
                    State::Greeting => greeting(client, shared, id, packet, events)?,
                    // What comes after our DISCONNECT is not for us any more.
                    _ => return Ok(bytes.len()),
                }
            }
            Ok(None) => break,
            Err(_) if client.state == State::Greeting && tls::looks_like_tls(rest) => {
                return Err(Broken::told(tls::unexpected(shared.endpoint(client))));
            }
            Err(error) => return Err(undecodable(client, shared, error)),
        }
    }
    Ok(at)
}

#[cold]
fn undecodable(client: &Client, shared: &Shared, error: DecodeError) -> Broken {
    let mut broken = Broken::protocol(shared.endpoint(client), error);
    broken.reason = Some(error.reason);
    if error.reason == ReasonCode::PACKET_TOO_LARGE {
        broken.failure.why = format!(
            "{}: {error}\n  hint: this trial takes packets of up to {} bytes; something else publishes to the same topics?",
            shared.endpoint(client),
            shared.max_in
        );
    }
    broken
}

#[cold]
fn unexpected(client: &Client, shared: &Shared, packet: PacketType) -> Broken {
    let when = match client.state {
        State::Greeting => "before its CONNACK",
        _ => "in the middle of the connection",
    };
    Broken::protocol(shared.endpoint(client), format!("{} {when}", packet.name()))
}

/// Appends the CONNECT.
pub(crate) fn connect(client: &mut Client, shared: &mut Shared) -> Result<(), Broken> {
    let options = &shared.options;
    let mut properties = PropertiesBuf::default();
    if options.version == Version::V5 {
        let mut push = |property| {
            // Numbers always fit.
            let _ = properties.push(property);
        };
        if options.session_expiry_s != 0 && !shared.leaving {
            push(Property::SessionExpiryInterval(options.session_expiry_s));
        }
        if options.receive_maximum != u16::MAX {
            push(Property::ReceiveMaximum(options.receive_maximum));
        }
    }
    let endpoint = &shared.endpoints[usize::from(client.endpoint)];
    let name = client.name.clone();
    let will = client.will.clone().filter(|_| !shared.leaving);
    let packet = Packet::Connect(Connect {
        version: options.version,
        clean_start: !options.durable || shared.leaving,
        keep_alive_s: options.keep_alive_s,
        client_id: &name,
        will: will.as_ref().map(|will| Will {
            topic: &will.topic,
            payload: &will.payload,
            qos: options.qos,
            retain: will.retain,
            properties: Properties::default(),
        }),
        username: endpoint.username.as_deref().or(shared.username.as_deref()),
        password: shared.password.as_ref().map(|p| p.reveal().as_bytes()),
        properties: properties.as_properties(),
    });
    let version = options.version;
    let out = client.out(&mut shared.out_pool);
    packet
        .encode(version, &mut out.bytes)
        .map_err(|error| Broken::told(format!("the CONNECT cannot be encoded: {error}")))
}

/// A packet before the CONNACK.
fn greeting(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    packet: Packet<'_>,
    events: &mut dyn Events,
) -> Result<(), Broken> {
    match packet {
        Packet::ConnAck(connack) => accepted(client, shared, id, &connack, events),
        Packet::Disconnect(disconnect) if shared.options.version == Version::V5 => {
            Err(dismissed(client, shared, &disconnect))
        }
        Packet::Auth(_) => Err(Broken::told(format!(
            "{}: the server asks for enhanced authentication\n  hint: this driver speaks user name and password, and client certificates",
            shared.endpoint(client)
        ))),
        other => Err(unexpected(client, shared, other.packet_type())),
    }
}

fn accepted(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    connack: &ConnAck<'_>,
    events: &mut dyn Events,
) -> Result<(), Broken> {
    let version = shared.options.version;
    if connack.code != ReasonCode::SUCCESS {
        return Err(refused(client, shared, connack));
    }
    if connack.session_present && !shared.options.durable {
        return Err(Broken::protocol(
            shared.endpoint(client),
            "it has a session although a clean one was asked for (5.0 §3.2.2.1.1, 3.1.1 §3.2.2.2)",
        ));
    }
    let number = |property| connack.properties.number(property);
    let options = &shared.options;
    if version == Version::V5 {
        let lacks = |what: &str| {
            Err(Broken::told(format!(
                "{}: the server does not support {what}, which the settings ask for",
                shared.endpoint(client)
            )))
        };
        let max_qos = number(PropertyId::MaximumQoS).unwrap_or(2);
        if options.qos as u32 > max_qos {
            return lacks(&format!("publishing at QoS {}", options.qos as u8));
        }
        if number(PropertyId::RetainAvailable) == Some(0) && options.retain {
            return lacks("retained messages (last-value)");
        }
    }
    let narrow = |n: u32| u16::try_from(n).unwrap_or(u16::MAX);
    client.keep_alive_s = number(PropertyId::ServerKeepAlive).map_or(options.keep_alive_s, narrow);
    client.receive_max = number(PropertyId::ReceiveMaximum).map_or(u16::MAX, narrow);
    client.alias_max = number(PropertyId::TopicAliasMaximum)
        .map_or(0, narrow)
        .min(options.topic_alias);
    client.max_packet = number(PropertyId::MaximumPacketSize).unwrap_or(u32::MAX);
    client.state = State::Connected;
    client.has_session = options.durable && !shared.leaving;
    client.awaits_pong = false;
    let window = window(client, shared);
    if let Some(session) = &mut client.session {
        if !connack.session_present {
            // 5.0 §3.2.2.1.1: what we remember has no counterpart and must be forgotten.
            // Publishing it anew is for the application to decide.
            shared.unsettled -= session.discard();
        }
        session.begin_connection(window);
    }
    match client.keep_alive_s {
        0 => client.due_ms = 0,
        s => shared.set_timer(client, id, u32::from(s) * 1000),
    }
    let session_present = connack.session_present;
    shared.reports.report(
        events,
        id,
        Change::Connected {
            session_present,
            address: None,
        },
    );
    send_again(client, shared, id);
    Ok(())
}

/// Messages that may be under way on the present connection.
pub(crate) fn window(client: &Client, shared: &Shared) -> u32 {
    shared
        .options
        .in_flight
        .min(u32::from(client.receive_max))
        .min(MAX_IN_FLIGHT)
}

/// Sends what was under way when the last connection ended, in its order and within the window
/// (5.0 §4.4, §4.6).
pub(crate) fn send_again(client: &mut Client, shared: &mut Shared, id: ClientId) {
    while client.pending() < OUT_CAP {
        let Some(session) = &mut client.session else {
            return;
        };
        let Some(packet_id) = session.next_resend() else {
            return;
        };
        let Some(slot) = session.slot(packet_id) else {
            return;
        };
        let out = client.out.get_or_insert_with(|| shared.out_pool.get());
        match slot.awaits {
            Awaits::PubComp => encode_ack(PacketType::PubRel, packet_id, &mut out.bytes),
            _ => {
                let Some(topic) = shared.topics.get(slot.topic) else {
                    return;
                };
                let at = out.bytes.len();
                topic
                    .plain
                    .append(&mut out.bytes, packet_id, &[], &slot.payload);
                out.bytes[at] |= 1 << 3; // DUP, 5.0 §3.3.1.1.
            }
        }
        shared.mark_dirty(client, id);
    }
}

/// Why the server refused the CONNECT.
fn refused(client: &Client, shared: &Shared, connack: &ConnAck<'_>) -> Broken {
    let code = connack.code;
    let v311 = shared.options.version == Version::V311;
    let (words, number) = match v311 {
        true => (
            connect_return_code_words(code.0),
            format!("return code {}", code.0),
        ),
        false => (code.words(), format!("reason code 0x{:02x}", code.0)),
    };
    let hint = match (v311, code.0) {
        (true, 1) | (false, 0x84) => "\n  hint: set native.mqtt.version to what the server speaks",
        (true, 2) | (false, 0x85) => "\n  hint: the server does not take this client identifier",
        (true, 3) | (false, 0x88 | 0x89 | 0x97 | 0x9f) => {
            "\n  hint: the server has reached a limit or is starting; its log may say which"
        }
        _ => "",
    };
    let endpoint = &shared.endpoints[usize::from(client.endpoint)];
    let login = match (v311, code.0) {
        (true, 4 | 5) | (false, 0x86 | 0x87) => {
            let username = endpoint.username.is_some() || shared.username.is_some();
            let (what, hint) = login::refused(&endpoint.shown, username, shared.password.is_some());
            format!(": {what}\n  hint: {hint}")
        }
        _ => String::new(),
    };
    Broken::told(format!(
        "{}: the server refused the connection: {words} ({number}){}{login}{hint}",
        endpoint.shown,
        told(connack.properties),
    ))
}

/// The server's own words and referral, if it gave any.
fn told(properties: Properties<'_>) -> String {
    let mut text = String::new();
    if let Some(words) = properties.text(PropertyId::ReasonString) {
        text += &format!(": {words}");
    }
    if let Some(server) = properties.text(PropertyId::ServerReference) {
        text += &format!("; it names {server} instead");
    }
    text
}

fn dismissed(client: &Client, shared: &Shared, disconnect: &Disconnect<'_>) -> Broken {
    Broken::told(format!(
        "{}: the server ended the connection: {}{}",
        shared.endpoint(client),
        disconnect.reason,
        told(disconnect.properties)
    ))
}

/// A message for us.
#[inline]
fn message(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    publish: &Publish<'_>,
    events: &mut dyn Events,
) -> Result<(), Broken> {
    if publish.topic.is_empty() {
        // We allow no aliases (Topic Alias Maximum is 0 if absent, 5.0 §3.1.2.11.5).
        return Err(Broken::protocol(
            shared.endpoint(client),
            "a PUBLISH with a topic alias that was not allowed (5.0 §3.3.2.3.4)",
        ));
    }
    let (answer, new) = match publish.qos {
        QoS::AtMostOnce => (None, true),
        QoS::AtLeastOnce => (Some(PacketType::PubAck), true),
        QoS::ExactlyOnce => {
            let session = client.session.get_or_insert_default();
            let new = session.receive(publish.packet_id, &mut shared.bitmap_pool);
            if session.unreleased() > u32::from(shared.options.receive_maximum) {
                let mut broken = Broken::protocol(
                    shared.endpoint(client),
                    "more QoS 2 messages under way than our Receive Maximum (5.0 §3.3.4)",
                );
                broken.reason = Some(ReasonCode::RECEIVE_MAXIMUM_EXCEEDED);
                return Err(broken);
            }
            (Some(PacketType::PubRec), new)
        }
    };
    if new {
        shared.reports.reported = true;
        events.delivered(
            id,
            Delivery {
                payload: publish.payload,
                topic: Some(publish.topic),
                retained: publish.retain,
                redelivered: publish.dup,
            },
        );
    }
    if let Some(answer) = answer {
        let out = client.out(&mut shared.out_pool);
        encode_ack(answer, publish.packet_id, &mut out.bytes);
        shared.mark_dirty(client, id);
    }
    Ok(())
}

/// Any other packet on a connection in use.
fn control(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    packet: Packet<'_>,
    events: &mut dyn Events,
) -> Result<(), Broken> {
    match packet {
        Packet::Publish(publish) => message(client, shared, id, &publish, events),
        Packet::PubAck(ack) => answered(client, shared, id, &ack, Awaits::PubAck, events),
        Packet::PubComp(ack) => answered(client, shared, id, &ack, Awaits::PubComp, events),
        Packet::PubRec(ack) => recorded(client, shared, id, &ack, events),
        Packet::PubRel(ack) => {
            let known = match &mut client.session {
                Some(session) => session.release(ack.packet_id, &mut shared.bitmap_pool),
                None => false,
            };
            let v5 = shared.options.version == Version::V5;
            let out = client.out(&mut shared.out_pool);
            if known || !v5 {
                encode_ack(PacketType::PubComp, ack.packet_id, &mut out.bytes);
            } else {
                let reason = ReasonCode::PACKET_IDENTIFIER_NOT_FOUND;
                let answer = Packet::PubComp(Ack {
                    reason,
                    ..ack_of(ack.packet_id)
                });
                // An identifier from a decoded packet always encodes.
                let _ = answer.encode(Version::V5, &mut out.bytes);
            }
            shared.mark_dirty(client, id);
            Ok(())
        }
        Packet::SubAck(suback) => subscribed(client, shared, id, &suback, events),
        Packet::PingResp => Ok(()), // Any byte from the server was already taken as a sign.
        Packet::Disconnect(disconnect) if shared.options.version == Version::V5 => {
            Err(dismissed(client, shared, &disconnect))
        }
        other => Err(unexpected(client, shared, other.packet_type())),
    }
}

fn ack_of(packet_id: u16) -> Ack<'static> {
    Ack {
        packet_id,
        ..Ack::default()
    }
}

/// PUBACK or PUBCOMP: the end of a message's way.
fn answered(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    ack: &Ack<'_>,
    expected: Awaits,
    events: &mut dyn Events,
) -> Result<(), Broken> {
    let slot = client.session.as_mut().and_then(|s| s.slot(ack.packet_id));
    let no_subscriber = match slot {
        Some(slot) if slot.awaits == expected => slot.no_subscriber,
        _ => {
            let name = if expected == Awaits::PubAck {
                "PUBACK"
            } else {
                "PUBCOMP"
            };
            return Err(Broken::protocol(
                shared.endpoint(client),
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
    settle(client, shared, id, ack.packet_id, answer, events);
    Ok(())
}

fn settle(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    packet_id: u16,
    answer: Acknowledgement,
    events: &mut dyn Events,
) {
    let Some(session) = &mut client.session else {
        return;
    };
    let tag = session.settle(packet_id);
    shared.unsettled -= 1;
    shared.reports.reported = true;
    events.acknowledged(id, tag, answer);
}

/// PUBREC: the server has the message, and is told that we know.
fn recorded(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    ack: &Ack<'_>,
    events: &mut dyn Events,
) -> Result<(), Broken> {
    let slot = client.session.as_mut().and_then(|s| s.slot(ack.packet_id));
    let reason = match slot {
        Some(slot) if slot.awaits != Awaits::PubAck => {
            if ack.reason.is_error() {
                // 5.0 §4.3.3: the identifier is free again, no PUBREL follows.
                let answer = Acknowledgement::Rejected(u16::from(ack.reason.0));
                settle(client, shared, id, ack.packet_id, answer, events);
                return Ok(());
            }
            slot.awaits = Awaits::PubComp;
            slot.no_subscriber |= ack.reason == ReasonCode::NO_MATCHING_SUBSCRIBERS;
            // From here on a resend needs only the identifier.
            slot.payload.clear();
            ReasonCode::SUCCESS
        }
        Some(_) => {
            return Err(Broken::protocol(
                shared.endpoint(client),
                format!(
                    "a PUBREC for packet identifier {}, which is of QoS 1",
                    ack.packet_id
                ),
            ));
        }
        None if ack.reason.is_error() => return Ok(()),
        // A message that a former connection already saw to the end.
        None if shared.options.version == Version::V5 => ReasonCode::PACKET_IDENTIFIER_NOT_FOUND,
        None => ReasonCode::SUCCESS,
    };
    let out = client.out(&mut shared.out_pool);
    if reason == ReasonCode::SUCCESS {
        encode_ack(PacketType::PubRel, ack.packet_id, &mut out.bytes);
    } else {
        let answer = Packet::PubRel(Ack {
            reason,
            ..ack_of(ack.packet_id)
        });
        // An identifier from a decoded packet always encodes.
        let _ = answer.encode(Version::V5, &mut out.bytes);
    }
    shared.mark_dirty(client, id);
    Ok(())
}

fn subscribed(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    suback: &SubAck<'_>,
    events: &mut dyn Events,
) -> Result<(), Broken> {
    let waiting = client
        .session
        .as_mut()
        .is_some_and(|s| s.end_subscribe(suback.packet_id));
    let &[code] = suback.codes else {
        return Err(Broken::protocol(
            shared.endpoint(client),
            format!(
                "a SUBACK with {} codes for one topic filter",
                suback.codes.len()
            ),
        ));
    };
    if !waiting {
        return Err(Broken::protocol(
            shared.endpoint(client),
            format!(
                "a SUBACK for packet identifier {}, which does not wait for one",
                suback.packet_id
            ),
        ));
    }
    if client.session.as_ref().is_some_and(|s| s.is_idle()) {
        client.session = None; // Nothing is under way: give the memory back.
    }
    let asked = shared.options.subscribe_qos as u8;
    let change = match code {
        granted if granted == asked => Change::Subscribed,
        granted @ 0..=2 => Change::SubscriptionRefused(format!(
            "{}: the server granted QoS {granted} where QoS {asked} was asked for\n  hint: set native.mqtt.subscribe-qos = {granted}, or raise the server's maximum QoS",
            shared.endpoint(client)
        )),
        code => {
            let words = match shared.options.version {
                Version::V5 => ReasonCode(code).to_string(),
                Version::V311 => "failure (0x80)".to_owned(),
            };
            Change::SubscriptionRefused(format!(
                "{}: the server refused the subscription: {words}{}\n  hint: its access rules or its limits may not allow the filter",
                shared.endpoint(client),
                told(suback.properties)
            ))
        }
    };
    shared.reports.report(events, id, change);
    Ok(())
}
