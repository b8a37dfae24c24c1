//! MQTT 3.1.1 and MQTT 5 control packets, for clients and for servers.
//!
//! Decoding borrows from the receive buffer: [`decode`] looks at the start of a byte slice and
//! returns a [`Packet`] that points into it, or that more bytes are needed, or an error with the
//! section of the specification that the bytes break. Nothing is allocated and nothing panics,
//! whatever the bytes. A decoded packet has been checked in full: packet types and flags, UTF-8,
//! topic names and filters, reason codes, and which property is allowed where.
//!
//! Encoding appends to a `Vec<u8>`: [`Packet::encode`] for any packet, and for the message path
//! [`PublishTemplate`], which keeps everything of a PUBLISH that does not change from one message
//! to the next.
//!
//! Both versions share one set of types; fields that 3.1.1 does not have are empty there.
//! Section numbers in this crate are those of the OASIS standards "MQTT Version 5.0"
//! (7 March 2019) and "MQTT Version 3.1.1" (29 October 2014).
//!
//! ```
//! use pubgauge_mqtt_codec::{decode, Packet, Properties, Publish, QoS, Version, MAX_PACKET_LEN};
//!
//! let mut wire = Vec::new();
//! let publish = Publish { topic: "site/7/power", payload: b"42", ..Publish::default() };
//! Packet::Publish(publish).encode(Version::V5, &mut wire)?;
//! let (packet, consumed) = decode(&wire, Version::V5, MAX_PACKET_LEN)?.expect("a whole packet");
//! assert_eq!(consumed, wire.len());
//! assert_eq!(packet, Packet::Publish(publish));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod decode;
mod encode;
mod error;
mod packet;
mod packet_type;
mod property;
mod reason;
mod template;
pub mod topic;
mod wire;

pub use decode::{
    PublishHead, decode, decode_publish, decode_publish_head, is_publish, packet_len,
};
pub use encode::{encode_ack, encode_pingreq, encode_pingresp};
pub use error::{DecodeError, EncodeError};
pub use packet::{
    Ack, Auth, ConnAck, Connect, Disconnect, Filters, FiltersBuf, Packet, Publish, QoS,
    RetainHandling, SubAck, Subscribe, SubscribeOptions, TopicFilters, TopicFiltersBuf, UnsubAck,
    Unsubscribe, Version, Will,
};
pub use packet_type::PacketType;
pub use property::{Properties, PropertiesBuf, PropertiesIter, Property, PropertyId};
pub use reason::{ReasonCode, connect_return_code_words};
pub use template::PublishTemplate;
pub use wire::{VARINT_MAX, read_varint, varint_len, write_varint};

/// The longest packet that the protocol can express, in bytes: five bytes of fixed header and
/// 268,435,455 that follow (5.0 §2.1.4, 3.1.1 §2.2.3).
pub const MAX_PACKET_LEN: usize = 5 + VARINT_MAX as usize;
