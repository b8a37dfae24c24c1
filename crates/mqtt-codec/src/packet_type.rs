//! Types of control packets.

/// Types of control packets with their numbers on the wire (5.0 §2.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)] // Each is the name that the specification gives it.
pub enum PacketType {
    Connect = 1,
    ConnAck = 2,
    Publish = 3,
    PubAck = 4,
    PubRec = 5,
    PubRel = 6,
    PubComp = 7,
    Subscribe = 8,
    SubAck = 9,
    Unsubscribe = 10,
    UnsubAck = 11,
    PingReq = 12,
    PingResp = 13,
    Disconnect = 14,
    Auth = 15,
}

impl PacketType {
    /// The type with this number.
    pub fn from_bits(bits: u8) -> Option<PacketType> {
        use PacketType::*;
        Some(match bits {
            1 => Connect,
            2 => ConnAck,
            3 => Publish,
            4 => PubAck,
            5 => PubRec,
            6 => PubRel,
            7 => PubComp,
            8 => Subscribe,
            9 => SubAck,
            10 => Unsubscribe,
            11 => UnsubAck,
            12 => PingReq,
            13 => PingResp,
            14 => Disconnect,
            15 => Auth,
            _ => return None,
        })
    }

    /// Its name as the specification writes it.
    pub fn name(self) -> &'static str {
        use PacketType::*;
        match self {
            Connect => "CONNECT",
            ConnAck => "CONNACK",
            Publish => "PUBLISH",
            PubAck => "PUBACK",
            PubRec => "PUBREC",
            PubRel => "PUBREL",
            PubComp => "PUBCOMP",
            Subscribe => "SUBSCRIBE",
            SubAck => "SUBACK",
            Unsubscribe => "UNSUBSCRIBE",
            UnsubAck => "UNSUBACK",
            PingReq => "PINGREQ",
            PingResp => "PINGRESP",
            Disconnect => "DISCONNECT",
            Auth => "AUTH",
        }
    }
}
