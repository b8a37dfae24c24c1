//! Bounds of what a broker may send: messages up to a size, and control packets that something asked for.

use pubgauge_mqtt_codec::{DecodeError, PublishHead, QoS, decode_publish_head};

use super::{BrokerSession, Taking};
use crate::dead::{DeadLetter, Why};
use crate::notice::{Notice, is_worth_telling};

/// Longest control packet, bytes: an answer to the SUBSCRIBE of a million filters.
pub(super) const MAX_CONTROL: usize = 1 << 20;

/// Control packets of one connection that nothing is known to have asked for: releases (PUBREL) of messages that came on
/// earlier connections, of which there can be 65,535, and some more.
const UNASKED: u64 = 100_000;

/// Control packets that a broker may still send on a connection.
#[derive(Debug)]
pub(super) struct Credit(u64);

impl Default for Credit {
    fn default() -> Credit {
        Credit(UNASKED)
    }
}

impl Credit {
    /// Something was sent, or came, that a control packet answers.
    pub(super) fn ask(&mut self) {
        self.0 += 1;
    }

    /// A control packet came; whether it may.
    #[must_use]
    pub(super) fn spend(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 > 0
    }
}

/// A message that is too large, while it passes by.
#[derive(Debug)]
pub(super) struct Passing {
    /// Bytes of its packet that have not come yet.
    left: usize,
    qos: QoS,
    packet_id: u16,
    letter: DeadLetter,
}

impl BrokerSession {
    /// A message that is too large begins in `bytes`: it is not to be kept. `false` if more bytes are needed to tell.
    ///
    /// # Errors
    /// If no message begins there.
    #[cold]
    pub(super) fn begin_passing(
        &mut self,
        bytes: &[u8],
        taking: &Taking<'_>,
    ) -> Result<bool, String> {
        let Some(head) = decode_publish_head(bytes).map_err(|error| self.breach(&error))? else {
            return Ok(false);
        };
        let largest = taking.asked.largest_message;
        let words =
            format!("larger than the {largest} bytes that `session.largest-message` allows");
        self.passing = Some(Passing {
            left: head.len,
            qos: head.qos,
            packet_id: head.packet_id,
            letter: self.letter(&head, Why::TooLarge, words, taking),
        });
        Ok(true)
    }

    /// Lets a message that is too large pass by; how many of the bytes are of it.
    pub(super) fn pass(&mut self, bytes: usize, taking: &mut Taking<'_>) -> usize {
        let Some(passing) = &mut self.passing else {
            return 0;
        };
        let len = passing.left.min(bytes);
        passing.left -= len;
        if passing.left == 0
            && let Some(passing) = self.passing.take()
        {
            self.refuse(passing.qos, passing.packet_id, passing.letter, taking);
        }
        len
    }

    /// A whole packet at the start of `bytes` is no message, for the reason that `error` has: it becomes a dead letter,
    /// if it can be acknowledged, and so would come again. Its length.
    ///
    /// # Errors
    /// If it cannot: the connection cannot go on.
    #[cold]
    pub(super) fn refuse_malformed(
        &mut self,
        bytes: &[u8],
        error: &DecodeError,
        taking: &mut Taking<'_>,
    ) -> Result<usize, String> {
        match decode_publish_head(bytes) {
            Ok(Some(head)) if head.qos != QoS::AtMostOnce && head.len <= bytes.len() => {
                let letter = self.letter(&head, Why::Malformed, error.to_string(), taking);
                let letter = letter.with_packet(&bytes[..head.len]);
                self.refuse(head.qos, head.packet_id, letter, taking);
                Ok(head.len)
            }
            _ => Err(self.breach(error)),
        }
    }

    fn letter(
        &self,
        head: &PublishHead<'_>,
        why: Why,
        words: String,
        taking: &Taking<'_>,
    ) -> DeadLetter {
        DeadLetter {
            received_ns: taking.at.1,
            broker: self.broker.clone(),
            topic: String::from_utf8_lossy(head.topic).into_owned(),
            qos: head.qos as u8,
            bytes: head.len,
            why,
            words,
            packet_base64: None,
        }
    }

    fn refuse(&mut self, qos: QoS, packet_id: u16, letter: DeadLetter, taking: &mut Taking<'_>) {
        self.came = true;
        if qos == QoS::ExactlyOnce {
            self.credit.ask();
        }
        taking.dead[letter.why as usize] += 1;
        let so_far = &mut self.dead[letter.why as usize];
        *so_far += 1;
        let so_far = *so_far;
        taking
            .gather
            .refuse(self.peer, self.connection, qos, packet_id, &letter);
        if is_worth_telling(so_far - 1, so_far) {
            taking.notices.push(Notice::DeadLetter {
                broker: letter.broker,
                topic: letter.topic,
                bytes: letter.bytes,
                why: letter.why,
                words: letter.words,
                so_far,
            });
        }
    }
}
