//! The message path: a `basic.publish` whose unchanging part is encoded once.

use super::content::{ContentHeader, Properties};
use super::error::EncodeError;
use super::frame::{FRAME_END, FRAME_OVERHEAD, FrameKind, begin_frame, end_frame};
use super::method::{BasicPublish, MANDATORY, Method};

/// Length of the identifiers that [`PublishTemplate::append`] fills in.
const ID_LEN: usize = 16;

/// A `basic.publish` to one exchange with one routing key, up to the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishTemplate {
    /// Method frame and header frame.
    bytes: Box<[u8]>,
    /// Offset of the body size.
    size_at: u32,
    /// Offset of the message identifier; 0 for none.
    id_at: u32,
    /// Offset of the value of the last header, in which a part of each message travels; 0 for none.
    header_at: u32,
    channel: u16,
}

impl PublishTemplate {
    /// Encodes the unchanging part. If `mandatory`, each message carries its number as
    /// `message-id`, so that a returned message can be identified.
    ///
    /// # Errors
    /// A name or property that is too long for its field.
    pub fn new(
        channel: u16,
        exchange: &str,
        routing_key: &str,
        mandatory: bool,
        properties: Properties<'_>,
    ) -> Result<Self, EncodeError> {
        let mut bytes = Vec::new();
        let publish = Method::BasicPublish(BasicPublish {
            exchange: exchange.as_bytes(),
            routing_key: routing_key.as_bytes(),
            bits: if mandatory { MANDATORY } else { 0 },
            ..BasicPublish::default()
        });
        publish.encode(channel, &mut bytes)?;
        let header = begin_frame(FrameKind::Header, channel, &mut bytes);
        ContentHeader {
            body_size: 0,
            properties: Properties {
                message_id: mandatory.then_some(&[b'0'; ID_LEN][..]),
                ..properties
            },
        }
        .encode(&mut bytes)?;
        // The last property of those that are used here.
        let id_at = if mandatory { bytes.len() - ID_LEN } else { 0 };
        end_frame(header, &mut bytes);
        Ok(PublishTemplate {
            bytes: bytes.into(),
            size_at: (header + 11) as u32,
            id_at: id_at as u32,
            header_at: 0,
            channel,
        })
    }

    /// A template whose last header differs from message to message: all headers take `table_len` bytes, and the value of
    /// the last `value_len` of these.
    pub fn with_header_value(mut self, table_len: usize, value_len: usize) -> Self {
        // Behind the size come the flags and the length of the table.
        self.header_at = self.size_at + 14 + (table_len - value_len) as u32;
        self
    }

    /// As [`PublishTemplate::append`], with `head` as the value of the last header and not in front of the body. Only
    /// after [`PublishTemplate::with_header_value`].
    #[inline]
    pub fn append_apart(
        &self,
        out: &mut Vec<u8>,
        frame_max: usize,
        id: u64,
        head: &[u8],
        body: &[u8],
    ) {
        let value_at = out.len() + self.header_at as usize;
        self.append(out, frame_max, id, &[], body);
        out[value_at..value_at + head.len()].copy_from_slice(head);
    }

    /// Appends one message, its body being `head` and `body`, in frames of at most `frame_max`
    /// bytes.
    #[inline]
    pub fn append(&self, out: &mut Vec<u8>, frame_max: usize, id: u64, head: &[u8], body: &[u8]) {
        let len = head.len() + body.len();
        out.reserve(self.bytes.len() + len + FRAME_OVERHEAD);
        let at = out.len();
        out.extend_from_slice(&self.bytes);
        let size_at = at + self.size_at as usize;
        out[size_at..size_at + 8].copy_from_slice(&(len as u64).to_be_bytes());
        if self.id_at != 0 {
            write_id(id, &mut out[at + self.id_at as usize..][..ID_LEN]);
        }
        if len > frame_max - FRAME_OVERHEAD {
            return self.split(out, frame_max - FRAME_OVERHEAD, head, body);
        }
        if len == 0 {
            return; // No body, no body frame.
        }
        let [c1, c0] = self.channel.to_be_bytes();
        let [l3, l2, l1, l0] = (len as u32).to_be_bytes();
        out.extend_from_slice(&[FrameKind::Body as u8, c1, c0, l3, l2, l1, l0]);
        out.extend_from_slice(head);
        out.extend_from_slice(body);
        out.push(FRAME_END);
    }

    /// A body that needs several frames.
    fn split(&self, out: &mut Vec<u8>, piece: usize, mut head: &[u8], mut body: &[u8]) {
        out.reserve(head.len() + body.len() + (body.len() / piece + 2) * FRAME_OVERHEAD);
        while !head.is_empty() || !body.is_empty() {
            let frame = begin_frame(FrameKind::Body, self.channel, out);
            let from_head = head.len().min(piece);
            out.extend_from_slice(&head[..from_head]);
            head = &head[from_head..];
            let from_body = body.len().min(piece - from_head);
            out.extend_from_slice(&body[..from_body]);
            body = &body[from_body..];
            end_frame(frame, out);
        }
    }

    /// The number that [`PublishTemplate::append`] wrote into a message's `message-id`.
    pub fn read_id(message_id: &[u8]) -> Option<u64> {
        if message_id.len() != ID_LEN {
            return None;
        }
        u64::from_str_radix(std::str::from_utf8(message_id).ok()?, 16).ok()
    }
}

#[inline]
fn write_id(id: u64, out: &mut [u8]) {
    for (i, digit) in out.iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(id >> (60 - 4 * i) & 15) as usize];
    }
}
