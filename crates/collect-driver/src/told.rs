//! Reports of a collector to its fleet, over a channel.

use pubgauge_collect::{Message, Notice};
use pubgauge_driver::{ClientId, Delivery};

/// Reports of a collector.
pub(crate) struct CollectorReports {
    pub client: ClientId,
    /// Which of the client's collectors it was.
    pub run: u32,
    pub what: What,
}

pub(crate) enum What {
    Notice(Notice),
    Stored(Batch),
    /// It has ended, or why it could not go on.
    Ended(Result<(), String>),
}

/// Messages that are on disk.
#[derive(Default)]
pub(crate) struct Batch {
    /// Topics and payloads.
    bytes: Vec<u8>,
    each: Vec<Stored>,
}

struct Stored {
    topic_len: u32,
    payload_len: u32,
    retain: bool,
    dup: bool,
}

impl Batch {
    pub(crate) fn from_messages(messages: &mut dyn Iterator<Item = Message<'_>>) -> Batch {
        let mut batch = Batch::default();
        for message in messages {
            batch.bytes.extend_from_slice(message.topic.as_bytes());
            batch.bytes.extend_from_slice(message.payload);
            batch.each.push(Stored {
                topic_len: message.topic.len() as u32,
                payload_len: message.payload.len() as u32,
                retain: message.retain,
                dup: message.dup,
            });
        }
        batch
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.each.is_empty()
    }

    pub(crate) fn deliveries(&self) -> impl Iterator<Item = Delivery<'_>> {
        let mut rest = &self.bytes[..];
        self.each.iter().map(move |stored| {
            let (topic, after) = rest.split_at(stored.topic_len as usize);
            let (payload, after) = after.split_at(stored.payload_len as usize);
            rest = after;
            Delivery {
                payload,
                topic: std::str::from_utf8(topic).ok(),
                retained: stored.retain,
                redelivered: stored.dup,
            }
        })
    }
}
