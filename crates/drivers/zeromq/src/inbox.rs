//! Taking messages from a socket and handing them on, with time stamps as exact as libzmq allows.

use std::io;

use pubgauge_driver::{ClientId, Delivery, Events, TopicMatch, WireBytes};

use crate::native::Framing;
use crate::topic;
use crate::zmq::{Socket, ZmqMessage};

/// Most messages that share one time stamp.
const GROUP: usize = 64;

/// Bytes after which a group ends, so that large messages are stamped one by one and do not occupy
/// memory.
const GROUP_BYTES: usize = 64 * 1024;

/// Most messages taken from one socket before others, and the sender's schedule, get their turn.
const TURN: usize = 256;

/// A frame longer than this is given back to libzmq at once, not when its slot is used again.
const KEEP_BYTES: usize = 4096;

/// Reusable slots into which messages are received.
pub(crate) struct Inbox {
    frames: Vec<ZmqMessage>,
    scrap: ZmqMessage,
    framing: Framing,
    last_topic: TopicCache,
}

/// The topic of the message before, which most often is that of the next: comparing is cheaper
/// than searching its end and checking its encoding.
#[derive(Default)]
struct TopicCache {
    topic: String,
    /// The message in wire form.
    wire: Vec<u8>,
}

impl TopicCache {
    /// As [`topic::split`].
    #[inline]
    fn split<'a>(&'a mut self, frame: &'a [u8]) -> Option<(&'a str, &'a [u8])> {
        let known = self.wire.len();
        if known > 0 && frame.len() >= known && frame[..known] == self.wire[..] {
            return Some((&self.topic, &frame[known..]));
        }
        let (topic, payload) = topic::split(frame)?;
        self.topic.clear();
        self.topic.push_str(topic);
        self.wire.clear();
        self.wire
            .extend_from_slice(&frame[..frame.len() - payload.len()]);
        Some((topic, payload))
    }
}

/// The result of one turn at a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Messages taken, whether or not they were delivered.
    pub(crate) messages: usize,
    /// There may be more.
    pub(crate) more: bool,
}

impl Inbox {
    pub(crate) fn new(framing: Framing) -> Self {
        let frames_per_message = match framing {
            Framing::SingleFrame => 1,
            Framing::Multipart => 2,
        };
        Inbox {
            frames: (0..GROUP * frames_per_message)
                .map(|_| ZmqMessage::empty())
                .collect(),
            scrap: ZmqMessage::empty(),
            framing,
            last_topic: TopicCache::default(),
        }
    }

    /// Takes what has come for one subscriber, up to a turn's worth.
    ///
    /// Each group of messages is received first, then stamped ([`Events::arrived`]), then
    /// delivered: a stamp is never earlier than the arrival it stands for. Groups grow from one
    /// message to [`GROUP`], so that paced messages are stamped one by one and only messages at
    /// full speed share stamps; `flooded` starts with the largest. No more than `most` are taken.
    #[inline]
    pub(crate) fn take(
        &mut self,
        socket: &Socket,
        client: ClientId,
        checks: &[String],
        (flooded, most): (bool, Option<u32>),
        wire: &mut WireBytes,
        events: &mut dyn Events,
    ) -> io::Result<Turn> {
        let mut group = if flooded { GROUP } else { 1 };
        let mut messages = 0;
        let turn = most.map_or(TURN, |most| TURN.min(most as usize));
        loop {
            group = group.min(turn - messages);
            let (count, more) = self.receive_group(socket, group, wire)?;
            if count > 0 {
                events.arrived();
                self.deliver_group(count, client, checks, events);
                messages += count;
            }
            if !more || messages >= turn {
                return Ok(Turn { messages, more });
            }
            group = (group * 2).min(GROUP);
        }
    }

    /// Fills slots with up to `group` messages; says how many, and whether there may be more.
    #[inline]
    fn receive_group(
        &mut self,
        socket: &Socket,
        group: usize,
        wire: &mut WireBytes,
    ) -> io::Result<(usize, bool)> {
        let mut bytes = 0;
        for count in 0..group {
            let first = match self.framing {
                Framing::SingleFrame => &mut self.frames[count],
                Framing::Multipart => &mut self.frames[2 * count],
            };
            let Some(len) = socket.receive(first)? else {
                return Ok((count, false));
            };
            if group > 1 {
                first.prefetch();
            }
            bytes += frame_bytes(len, wire);
            // In single frames, a foreign message of several counts as several foreign ones.
            if self.framing == Framing::Multipart {
                bytes += self.receive_rest(socket, count, wire)?;
            }
            if bytes >= GROUP_BYTES {
                return Ok((count + 1, true));
            }
        }
        Ok((group, true))
    }

    /// Receives the frames after the first one; libzmq hands out all of a message or none.
    #[inline]
    fn receive_rest(
        &mut self,
        socket: &Socket,
        count: usize,
        wire: &mut WireBytes,
    ) -> io::Result<usize> {
        if !self.frames[2 * count].has_more() {
            // A foreign message; the slot must not show the one before.
            self.frames[2 * count + 1] = ZmqMessage::empty();
            return Ok(0);
        }
        let second = &mut self.frames[2 * count + 1];
        let mut bytes = frame_bytes(socket.receive(second)?.unwrap_or(0), wire);
        let mut more = second.has_more();
        while more && let Some(len) = socket.receive(&mut self.scrap)? {
            bytes += frame_bytes(len, wire); // Frames that are not ours.
            more = self.scrap.has_more();
        }
        Ok(bytes)
    }

    #[inline]
    fn deliver_group(
        &mut self,
        count: usize,
        client: ClientId,
        checks: &[String],
        events: &mut dyn Events,
    ) {
        for index in 0..count {
            let (last, topic, payload) = match self.framing {
                Framing::SingleFrame => {
                    let frame = self.frames[index].bytes();
                    match self.last_topic.split(frame) {
                        Some((topic, payload)) => (index, Some(topic), payload),
                        // A foreign message is passed on as it is, for the engine to count.
                        None => (index, None, frame),
                    }
                }
                Framing::Multipart => {
                    let payload = self.frames[2 * index + 1].bytes();
                    let topic = self.last_topic.split(self.frames[2 * index].bytes());
                    (2 * index + 1, topic.map(|(topic, _)| topic), payload)
                }
            };
            let large = payload.len() > KEEP_BYTES;
            if passes(checks, topic) {
                let delivery = Delivery {
                    payload,
                    topic,
                    retained: false,
                    redelivered: false,
                };
                events.delivered(client, delivery);
            }
            if large {
                self.frames[last] = ZmqMessage::empty();
            }
        }
    }
}

/// Whether a subscriber that filters at the receiver wants a message; all do without checks.
#[inline]
fn passes(checks: &[String], topic: Option<&str>) -> bool {
    checks.is_empty()
        || topic.is_none_or(|topic| checks.iter().any(|filter| filter.matches_topic(topic)))
}

/// Counts a received frame with its ZMTP head: one byte of flags and a length of one byte, or
/// of eight from 256 bytes on (RFC 37, "Framing"). Returns the frame's own length.
#[inline]
fn frame_bytes(len: usize, wire: &mut WireBytes) -> usize {
    wire.received += on_the_wire(len);
    len
}

/// Length of a frame on the wire.
#[inline]
pub(crate) fn on_the_wire(len: usize) -> u64 {
    len as u64 + if len > 255 { 9 } else { 2 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_cache_changes_nothing(
            frames in proptest::collection::vec("[ab]{0,2}(/[ab]?)?/?\0?[ab\0]{0,3}", 1..20),
        ) {
            let mut cache = TopicCache::default();
            for frame in frames {
                prop_assert_eq!(cache.split(frame.as_bytes()), topic::split(frame.as_bytes()));
            }
        }
    }
}
