//! A message as it stands in the log: a frame with its checksum.
//!
//! ```text
//! mark u32 | CRC-32 u32 | length u32 | body
//! body: sequence u64 | index in its commit u32 | received i64 | flags u8
//!       | broker length u8 | topic length u16 | properties length u32
//!       | broker | topic | properties | payload
//! ```
//!
//! Numbers are little-endian. The checksum covers length and body. The mark is random for each start of a collector
//! and stands in the header of its segments: by it the next frame is found behind damage, and no payload can pass for
//! a frame.

use pubgauge_mqtt_codec::{Publish, QoS};

/// Bytes in front of a frame's body.
pub const HEAD: usize = 12;

/// Bytes of a body in front of its texts.
const FIXED: usize = 28;

/// Longest body: the longest packet of MQTT, and what the log adds to it.
const MAX_BODY: usize = pubgauge_mqtt_codec::MAX_PACKET_LEN + FIXED + 255;

/// A message that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its number among all that the collector has stored, from 1, without gaps.
    pub seq: u64,
    /// How many messages of the same commit stand in front of it.
    pub index: u32,
    /// When its bytes were read, ns since 1970-01-01 UTC.
    pub received_ns: i64,
    /// Address of the broker that delivered it.
    pub broker: &'a str,
    pub topic: &'a str,
    pub qos: QoS,
    /// The retain flag, as it was published under MQTT 5.
    pub retain: bool,
    /// The broker may have sent it before.
    pub dup: bool,
    /// Properties of MQTT 5, in wire form without their length.
    pub properties: &'a [u8],
    pub payload: &'a [u8],
}

impl<'a> Message<'a> {
    /// From the packet that it came in; number and index are 0.
    pub fn from_publish(publish: &Publish<'a>, broker: &'a str, received_ns: i64) -> Message<'a> {
        Message {
            seq: 0,
            index: 0,
            received_ns,
            broker,
            topic: publish.topic,
            qos: publish.qos,
            retain: publish.retain,
            dup: publish.dup,
            properties: publish.properties.as_bytes(),
            payload: publish.payload,
        }
    }

    /// Number of the first message of the same commit.
    pub fn commit(&self) -> u64 {
        self.seq.saturating_sub(u64::from(self.index))
    }

    /// Appends the frame.
    pub fn append(&self, mark: u32, out: &mut Vec<u8>) {
        let at = out.len();
        let body = FIXED
            + self.broker.len()
            + self.topic.len()
            + self.properties.len()
            + self.payload.len();
        out.reserve(HEAD + body);
        out.extend_from_slice(&mark.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&(body as u32).to_le_bytes());
        out.extend_from_slice(&self.seq.to_le_bytes());
        out.extend_from_slice(&self.index.to_le_bytes());
        out.extend_from_slice(&self.received_ns.to_le_bytes());
        out.push(self.qos as u8 | u8::from(self.retain) << 2 | u8::from(self.dup) << 3);
        out.push(self.broker.len() as u8);
        out.extend_from_slice(&(self.topic.len() as u16).to_le_bytes());
        out.extend_from_slice(&(self.properties.len() as u32).to_le_bytes());
        out.extend_from_slice(self.broker.as_bytes());
        out.extend_from_slice(self.topic.as_bytes());
        out.extend_from_slice(self.properties);
        out.extend_from_slice(self.payload);
        let checksum = crc32fast::hash(&out[at + 8..]);
        out[at + 4..at + 8].copy_from_slice(&checksum.to_le_bytes());
    }

    /// Length of the frame that seems to begin at the start of `bytes`, if the mark and a length stand there.
    pub fn frame_len(mark: u32, bytes: &[u8]) -> Option<usize> {
        let (&found, rest) = bytes.split_first_chunk()?;
        let (_checksum, rest) = rest.split_first_chunk::<4>()?;
        let len = u32::from_le_bytes(*rest.first_chunk()?) as usize;
        let is_frame = u32::from_le_bytes(found) == mark && (FIXED..=MAX_BODY).contains(&len);
        is_frame.then_some(HEAD + len)
    }

    /// Reads the frame at the start of `bytes`: the message, and the length of its frame. `None` if no whole frame
    /// with a right checksum stands there.
    pub fn read(mark: u32, bytes: &'a [u8]) -> Option<(Message<'a>, usize)> {
        let len = Message::frame_len(mark, bytes)?;
        let frame = bytes.get(..len)?;
        let checksum = u32::from_le_bytes(*frame[4..].first_chunk()?);
        if crc32fast::hash(&frame[8..]) != checksum {
            return None;
        }
        Some((Message::body(&frame[HEAD..])?, len))
    }

    fn body(bytes: &'a [u8]) -> Option<Message<'a>> {
        let (seq, rest) = bytes.split_first_chunk()?;
        let (index, rest) = rest.split_first_chunk()?;
        let (received_ns, rest) = rest.split_first_chunk()?;
        let (&[flags, broker], rest) = rest.split_first_chunk()?;
        let (topic, rest) = rest.split_first_chunk()?;
        let (properties, rest) = rest.split_first_chunk()?;
        let (broker, rest) = rest.split_at_checked(usize::from(broker))?;
        let (topic, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*topic)))?;
        let (properties, payload) =
            rest.split_at_checked(u32::from_le_bytes(*properties) as usize)?;
        Some(Message {
            seq: u64::from_le_bytes(*seq),
            index: u32::from_le_bytes(*index),
            received_ns: i64::from_le_bytes(*received_ns),
            broker: std::str::from_utf8(broker).ok()?,
            topic: std::str::from_utf8(topic).ok()?,
            qos: QoS::from_bits(flags & 3)?,
            retain: flags & 4 != 0,
            dup: flags & 8 != 0,
            properties,
            payload,
        })
    }
}

#[cfg(test)]
impl<'a> Message<'a> {
    /// One for tests, which is about its number and its payload alone: QoS 1, first of its commit.
    pub(crate) fn numbered(seq: u64, payload: &'a [u8]) -> Message<'a> {
        Message {
            seq,
            index: 0,
            received_ns: 1,
            broker: "b",
            topic: "t",
            qos: QoS::AtLeastOnce,
            retain: false,
            dup: false,
            properties: &[],
            payload,
        }
    }
}

/// The messages of frames, one behind the other.
#[derive(Debug)]
pub struct Messages<'a> {
    mark: u32,
    rest: &'a [u8],
}

impl<'a> Messages<'a> {
    /// `mark` is the log's.
    pub fn new(mark: u32, frames: &'a [u8]) -> Messages<'a> {
        Messages { mark, rest: frames }
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        let (message, len) = Message::read(self.mark, self.rest)?;
        self.rest = &self.rest[len..];
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_appended_is_read(
            seq: u64, index: u32, received_ns: i64, mark: u32, bits in 0u8..3, retain: bool, dup: bool,
            topic in "[a-z/ü]{1,40}", broker in "[0-9.:]{1,21}",
            properties in prop::collection::vec(any::<u8>(), 0..40),
            payload in prop::collection::vec(any::<u8>(), 0..2000),
        ) {
            let qos = QoS::from_bits(bits).unwrap();
            let message = Message {
                seq, index, received_ns, broker: &broker, topic: &topic, qos, retain, dup,
                properties: &properties, payload: &payload,
            };
            let mut bytes = vec![7];
            message.append(mark, &mut bytes);
            let len = bytes.len() - 1;
            bytes.push(9);
            prop_assert_eq!(Message::read(mark, &bytes[1..]), Some((message, len)));
            prop_assert_eq!(Message::read(mark ^ 1, &bytes[1..]), None);
            prop_assert_eq!(Message::read(mark, &bytes[1..len]), None);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let mark = bytes.first_chunk().map_or(0, |mark| u32::from_le_bytes(*mark));
            let _ = Message::read(mark, &bytes);
            let _ = Message::body(&bytes);
        }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let mut bytes = Vec::new();
        let message = Message {
            seq: 5,
            index: 2,
            received_ns: 7,
            broker: "h:1",
            topic: "a/b",
            qos: QoS::AtLeastOnce,
            retain: false,
            dup: false,
            properties: &[],
            payload: b"payload",
        };
        message.append(99, &mut bytes);
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Message::read(99, &bytes), None, "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
