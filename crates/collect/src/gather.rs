//! Messages that were read and are not handed to the log yet, and what is to be acknowledged with them.

use std::time::{Duration, Instant};

use pubgauge_mqtt_codec::{PacketType, Publish, QoS, encode_ack};

use crate::dead::{DeadLetter, DeadLetters};
use crate::message::{Message, Messages};

/// Acknowledgements for one connection, in order of arrival.
#[derive(Debug)]
pub struct Acks {
    /// The peer.
    pub peer: u32,
    /// The connection that the messages came on: another one has packet identifiers of its own.
    pub connection: u32,
    pub bytes: Vec<u8>,
    /// How many of them are of messages that are not stored with the others: dead letters, and the collector's own.
    pub beside: u64,
}

/// Messages that go to disk together.
#[derive(Debug, Default)]
pub struct Commit {
    pub frames: Vec<u8>,
    /// Number of the first.
    pub first_seq: u64,
    pub messages: u32,
    pub acks: Vec<Acks>,
    /// Letters that are acknowledged and not among the messages.
    pub dead: DeadLetters,
    /// When the first was read.
    pub oldest: Option<Instant>,
    /// The hour in which it is handed over, since 1970.
    pub hour: i64,
    /// Processor time that storing it took.
    pub processor: Duration,
}

impl Commit {
    pub fn is_empty(&self) -> bool {
        self.messages == 0 && self.acks.is_empty()
    }

    /// Numbers of its messages.
    pub fn seqs(&self) -> std::ops::Range<u64> {
        self.first_seq..self.first_seq + u64::from(self.messages)
    }

    /// Its messages; `mark` is the log's.
    pub fn messages(&self, mark: u32) -> Messages<'_> {
        Messages::new(mark, &self.frames)
    }

    fn clear(&mut self) {
        self.frames.clear();
        self.messages = 0;
        self.acks.clear();
        self.dead.clear();
        self.oldest = None;
    }
}

/// Gathers messages, and gives them their numbers.
#[derive(Debug)]
pub struct Gather {
    mark: u32,
    next_seq: u64,
    commit: Commit,
    spare: Commit,
}

/// Buffers that are larger are given back to the system after use.
const KEEP_BYTES: usize = 16 << 20;

impl Gather {
    /// `mark` is the log's, `next_seq` the number of the first message.
    pub fn new(mark: u32, next_seq: u64) -> Gather {
        let first_seq = next_seq;
        Gather {
            mark,
            next_seq,
            commit: Commit {
                first_seq,
                ..Commit::default()
            },
            spare: Commit::default(),
        }
    }

    pub fn commit(&self) -> &Commit {
        &self.commit
    }

    /// Adds a message.
    pub fn message(
        &mut self,
        publish: &Publish<'_>,
        broker: &str,
        (at, received_ns): (Instant, i64),
    ) {
        let mut message = Message::from_publish(publish, broker, received_ns);
        (message.seq, message.index) = (self.next_seq, self.commit.messages);
        message.append(self.mark, &mut self.commit.frames);
        self.next_seq += 1;
        self.commit.messages += 1;
        self.commit.oldest.get_or_insert(at);
    }

    /// Adds the acknowledgement of the last message, or of one that was stored before.
    pub fn acknowledge(&mut self, peer: u32, connection: u32, qos: QoS, packet_id: u16) {
        self.acks(peer, connection, qos, packet_id);
    }

    /// Adds a dead letter, and its acknowledgement.
    pub fn refuse(
        &mut self,
        peer: u32,
        connection: u32,
        qos: QoS,
        packet_id: u16,
        letter: &DeadLetter,
    ) {
        self.commit.dead.add(letter);
        if let Some(acks) = self.acks(peer, connection, qos, packet_id) {
            acks.beside += 1;
        }
    }

    /// Adds the acknowledgement of a message of the collector's own, which is not stored, in its place among the others.
    pub fn acknowledge_own(&mut self, peer: u32, connection: u32, publish: &Publish<'_>) {
        let acks = self.acks(peer, connection, publish.qos, publish.packet_id);
        if let Some(acks) = acks {
            acks.beside += 1;
        }
    }

    /// Adds an acknowledgement, and returns where it stands.
    fn acks(&mut self, peer: u32, connection: u32, qos: QoS, packet_id: u16) -> Option<&mut Acks> {
        let packet = match qos {
            QoS::AtMostOnce => return None,
            QoS::AtLeastOnce => PacketType::PubAck,
            QoS::ExactlyOnce => PacketType::PubRec,
        };
        let acks = &mut self.commit.acks;
        let same = |acks: &Acks| acks.peer == peer && acks.connection == connection;
        let at = acks.iter().rposition(same).unwrap_or_else(|| {
            acks.push(Acks {
                peer,
                connection,
                bytes: Vec::new(),
                beside: 0,
            });
            acks.len() - 1
        });
        encode_ack(packet, packet_id, &mut acks[at].bytes);
        acks.get_mut(at)
    }

    /// Takes what was gathered, for the log.
    pub fn take(&mut self, hour: i64) -> Commit {
        let mut next = std::mem::take(&mut self.spare);
        next.clear();
        next.first_seq = self.next_seq;
        let mut taken = std::mem::replace(&mut self.commit, next);
        taken.hour = hour;
        taken
    }

    /// Takes buffers back for reuse.
    pub fn give_back(&mut self, commit: Commit) {
        if commit.frames.capacity() <= KEEP_BYTES {
            self.spare = commit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publish(topic: &str) -> Publish<'_> {
        Publish {
            topic,
            qos: QoS::AtLeastOnce,
            packet_id: 1,
            ..Publish::default()
        }
    }

    #[test]
    fn numbers_go_on_and_acknowledgements_keep_their_order_and_connection() {
        let mut gather = Gather::new(3, 10);
        let at = (Instant::now(), 5);
        for id in [7, 9] {
            gather.message(&publish("a"), "b:1", at);
            gather.acknowledge(0, 1, QoS::AtLeastOnce, id);
        }
        gather.message(&publish("a"), "b:2", at);
        gather.acknowledge(1, 1, QoS::ExactlyOnce, 7);
        gather.acknowledge(0, 2, QoS::AtLeastOnce, 7);
        gather.acknowledge(0, 2, QoS::AtMostOnce, 0);
        let commit = gather.take(1);
        assert_eq!(commit.seqs(), 10..13);
        let acks: Vec<_> = commit
            .acks
            .iter()
            .map(|a| (a.peer, a.connection, &a.bytes[..]))
            .collect();
        assert_eq!(
            acks,
            [
                (0, 1, &[0x40, 2, 0, 7, 0x40, 2, 0, 9][..]),
                (1, 1, &[0x50, 2, 0, 7]),
                (0, 2, &[0x40, 2, 0, 7]),
            ]
        );
        let messages = commit.messages(3);
        let each: Vec<_> = messages.map(|m| (m.seq, m.index, m.broker)).collect();
        assert_eq!(each, [(10, 0, "b:1"), (11, 1, "b:1"), (12, 2, "b:2")]);
        gather.give_back(commit);
        assert!(gather.take(1).is_empty());
        gather.message(&publish("a"), "b:1", at);
        assert_eq!(gather.take(1).seqs(), 13..14);
    }
}
