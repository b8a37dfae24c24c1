//! The control packets, borrowed from the bytes they were decoded from.

use crate::error::{DecodeError, EncodeError};
use crate::packet_type::PacketType;
use crate::property::Properties;
use crate::reason::ReasonCode;
use crate::topic;
use crate::wire::{PacketReader, write_binary};

/// A version of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Version {
    /// MQTT 3.1.1, protocol level 4.
    V311,
    /// MQTT 5, protocol level 5.
    #[default]
    V5,
}

/// Quality of service (5.0 §4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum QoS {
    #[default]
    AtMostOnce = 0,
    AtLeastOnce = 1,
    ExactlyOnce = 2,
}

impl QoS {
    /// The QoS of a two-bit number, `None` of 3 and above.
    #[inline]
    pub fn from_bits(bits: u8) -> Option<QoS> {
        match bits {
            0 => Some(QoS::AtMostOnce),
            1 => Some(QoS::AtLeastOnce),
            2 => Some(QoS::ExactlyOnce),
            _ => None,
        }
    }
}

macro_rules! packets {
    ($($name:ident $(($body:ident))?,)*) => {
        /// Any control packet.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)] // Each is the name that the specification gives it.
        pub enum Packet<'a> {
            $($name $(($body<'a>))?,)*
        }

        impl Packet<'_> {
            pub fn packet_type(&self) -> PacketType {
                match self { $(Packet::$name { .. } => PacketType::$name,)* }
            }
        }
    };
}

packets! {
    Connect(Connect),
    ConnAck(ConnAck),
    Publish(Publish),
    PubAck(Ack),
    PubRec(Ack),
    PubRel(Ack),
    PubComp(Ack),
    Subscribe(Subscribe),
    SubAck(SubAck),
    Unsubscribe(Unsubscribe),
    UnsubAck(UnsubAck),
    PingReq,
    PingResp,
    Disconnect(Disconnect),
    Auth(Auth),
}

/// CONNECT (§3.1): a client opens its session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connect<'a> {
    /// The version that the client speaks, and that all later packets of the connection are in.
    pub version: Version,
    /// Clean Start (5.0 §3.1.2.4), Clean Session (3.1.1 §3.1.2.4).
    pub clean_start: bool,
    /// Keep alive: most seconds between two packets of the client; 0 for no limit.
    pub keep_alive_s: u16,
    /// Client identifier; may be empty.
    pub client_id: &'a str,
    /// The message that the server publishes if the connection is lost.
    pub will: Option<Will<'a>>,
    pub username: Option<&'a str>,
    /// Password; under 3.1.1 only with a user name.
    pub password: Option<&'a [u8]>,
    /// MQTT 5 properties.
    pub properties: Properties<'a>,
}

/// The will of a CONNECT (5.0 §3.1.3.2 to §3.1.3.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Will<'a> {
    /// Topic to publish to.
    pub topic: &'a str,
    /// Payload to publish.
    pub payload: &'a [u8],
    /// Quality of service to publish with.
    pub qos: QoS,
    /// Whether it is to be retained.
    pub retain: bool,
    /// MQTT 5 properties of the will.
    pub properties: Properties<'a>,
}

/// CONNACK (§3.2): the server's answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnAck<'a> {
    /// The server has a session of this client.
    pub session_present: bool,
    /// MQTT 5: reason code. 3.1.1: return code 0 to 5, in words:
    /// [`crate::connect_return_code_words`].
    pub code: ReasonCode,
    /// MQTT 5 properties.
    pub properties: Properties<'a>,
}

/// PUBLISH (§3.3): a message, in either direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Publish<'a> {
    /// It may have been sent before.
    pub dup: bool,
    /// Quality of service.
    pub qos: QoS,
    /// To be retained, or was retained.
    pub retain: bool,
    /// Topic name; empty only under MQTT 5 with the property topic alias.
    pub topic: &'a str,
    /// Packet identifier, 0 at QoS 0 and never 0 above it.
    pub packet_id: u16,
    /// MQTT 5 properties.
    pub properties: Properties<'a>,
    /// The application's bytes.
    pub payload: &'a [u8],
}

/// PUBACK, PUBREC, PUBREL, PUBCOMP (§3.4 to §3.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack<'a> {
    /// Packet identifier, never 0.
    pub packet_id: u16,
    /// MQTT 5 reason code; always success under 3.1.1.
    pub reason: ReasonCode,
    /// MQTT 5 properties.
    pub properties: Properties<'a>,
}

/// SUBSCRIBE (§3.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Subscribe<'a> {
    /// Packet identifier, never 0.
    pub packet_id: u16,
    /// The filters asked for, at least one.
    pub filters: Filters<'a>,
    /// MQTT 5 properties.
    pub properties: Properties<'a>,
}

/// SUBACK (§3.9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubAck<'a> {
    /// Packet identifier, never 0.
    pub packet_id: u16,
    /// One code for each filter, in their order: the granted QoS, or from 0x80 on a failure.
    /// Under 3.1.1 the only failure is 0x80.
    pub codes: &'a [u8],
    /// MQTT 5 properties.
    pub properties: Properties<'a>,
}

/// UNSUBSCRIBE (§3.10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unsubscribe<'a> {
    /// Packet identifier, never 0.
    pub packet_id: u16,
    /// The filters to end, at least one.
    pub filters: TopicFilters<'a>,
    /// MQTT 5 properties.
    pub properties: Properties<'a>,
}

/// UNSUBACK (§3.11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnsubAck<'a> {
    /// Packet identifier, never 0.
    pub packet_id: u16,
    /// MQTT 5: one reason code for each filter, in their order. Empty under 3.1.1.
    pub codes: &'a [u8],
    /// MQTT 5 properties.
    pub properties: Properties<'a>,
}

/// DISCONNECT (§3.14); only from client to server under 3.1.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disconnect<'a> {
    /// MQTT 5 reason code; 0 is the normal disconnection.
    pub reason: ReasonCode,
    /// MQTT 5 properties.
    pub properties: Properties<'a>,
}

/// AUTH (5.0 §3.15).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Auth<'a> {
    /// Success, continue authentication, or re-authenticate.
    pub reason: ReasonCode,
    /// MQTT 5 properties.
    pub properties: Properties<'a>,
}

/// Retained messages that the server sends when a subscription is made (5.0 §3.8.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RetainHandling {
    /// All that match.
    #[default]
    Send = 0,
    /// All that match, if the subscription did not exist before.
    SendIfNew = 1,
    DoNotSend = 2,
}

/// Options of one subscription (5.0 §3.8.3.1). 3.1.1 has only the QoS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SubscribeOptions {
    /// The highest QoS at which messages may be delivered.
    pub qos: QoS,
    /// Do not deliver messages that this client published itself.
    pub no_local: bool,
    /// Deliver with the retain flag as it was published.
    pub retain_as_published: bool,
    /// Which retained messages to send.
    pub retain_handling: RetainHandling,
}

const SECTION_OPTIONS: &str = "5.0 §3.8.3.1, 3.1.1 §3.8.3";

impl SubscribeOptions {
    /// The options byte.
    pub fn to_bits(self) -> u8 {
        self.qos as u8
            | u8::from(self.no_local) << 2
            | u8::from(self.retain_as_published) << 3
            | (self.retain_handling as u8) << 4
    }

    /// Reads the options byte.
    pub(crate) fn from_bits(bits: u8, version: Version) -> Result<Self, DecodeError> {
        let bad = |what| Err(DecodeError::malformed(what, SECTION_OPTIONS).with_found(bits));
        let Some(qos) = QoS::from_bits(bits & 3) else {
            return bad("a subscription asks for QoS 3");
        };
        let reserved = if version == Version::V5 { 0xc0 } else { 0xfc };
        if bits & reserved != 0 {
            return bad("reserved bits of the subscription options are set");
        }
        let retain_handling = match bits >> 4 & 3 {
            0 => RetainHandling::Send,
            1 => RetainHandling::SendIfNew,
            2 => RetainHandling::DoNotSend,
            _ => return bad("a subscription asks for retain handling 3"),
        };
        Ok(SubscribeOptions {
            qos,
            no_local: bits & 4 != 0,
            retain_as_published: bits & 8 != 0,
            retain_handling,
        })
    }
}

/// The filters of a SUBSCRIBE with their options, in wire form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filters<'a> {
    raw: &'a [u8],
}

impl<'a> Filters<'a> {
    pub(crate) fn checked(raw: &'a [u8], version: Version) -> Result<Self, DecodeError> {
        let mut reader = PacketReader::new(raw);
        if reader.is_empty() {
            return Err(DecodeError::protocol(
                "a SUBSCRIBE without a topic filter",
                "5.0 §3.8.3, 3.1.1 §3.8.3",
            ));
        }
        while !reader.is_empty() {
            let filter = reader.string()?;
            topic::check_filter(filter)?;
            let options = SubscribeOptions::from_bits(reader.u8()?, version)?;
            if options.no_local && topic::split_shared(filter).is_some() {
                return Err(DecodeError::protocol(
                    "a shared subscription asks for no local",
                    "5.0 §3.8.3.1",
                ));
            }
        }
        Ok(Filters { raw })
    }

    pub(crate) fn raw(self) -> &'a [u8] {
        self.raw
    }

    /// Each filter with its options.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, SubscribeOptions)> {
        let mut reader = PacketReader::new(self.raw);
        // The bytes were checked when the value was made: an error here ends the iteration.
        std::iter::from_fn(move || {
            let filter = reader.string().ok()?;
            let options = SubscribeOptions::from_bits(reader.u8().ok()?, Version::V5).ok()?;
            Some((filter, options))
        })
    }
}

/// Builds [`Filters`].
#[derive(Clone, Debug, Default)]
pub struct FiltersBuf {
    raw: Vec<u8>,
}

impl FiltersBuf {
    /// Adds a filter.
    ///
    /// # Errors
    /// If the filter is longer than 65,535 bytes. That it is valid is checked on encoding.
    pub fn push(&mut self, filter: &str, options: SubscribeOptions) -> Result<(), EncodeError> {
        write_binary(&mut self.raw, filter.as_bytes(), "a topic filter")?;
        self.raw.push(options.to_bits());
        Ok(())
    }

    /// The filters added so far.
    pub fn as_filters(&self) -> Filters<'_> {
        Filters { raw: &self.raw }
    }
}

/// The filters of an UNSUBSCRIBE, in wire form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopicFilters<'a> {
    raw: &'a [u8],
}

impl<'a> TopicFilters<'a> {
    pub(crate) fn checked(raw: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = PacketReader::new(raw);
        if reader.is_empty() {
            return Err(DecodeError::protocol(
                "an UNSUBSCRIBE without a topic filter",
                "5.0 §3.10.3, 3.1.1 §3.10.3",
            ));
        }
        while !reader.is_empty() {
            topic::check_filter(reader.string()?)?;
        }
        Ok(TopicFilters { raw })
    }

    pub(crate) fn raw(self) -> &'a [u8] {
        self.raw
    }

    /// Each filter.
    pub fn iter(self) -> impl Iterator<Item = &'a str> {
        let mut reader = PacketReader::new(self.raw);
        std::iter::from_fn(move || reader.string().ok())
    }
}

/// Builds [`TopicFilters`].
#[derive(Clone, Debug, Default)]
pub struct TopicFiltersBuf {
    raw: Vec<u8>,
}

impl TopicFiltersBuf {
    /// Adds a filter.
    ///
    /// # Errors
    /// If the filter is longer than 65,535 bytes. That it is valid is checked on encoding.
    pub fn push(&mut self, filter: &str) -> Result<(), EncodeError> {
        write_binary(&mut self.raw, filter.as_bytes(), "a topic filter")
    }

    /// The filters added so far.
    pub fn as_filters(&self) -> TopicFilters<'_> {
        TopicFilters { raw: &self.raw }
    }
}
