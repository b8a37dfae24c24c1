//! What a broker may send: messages up to a size, and control packets that something asked for.

use pubgauge_mqtt_codec::{QoS, decode_publish_head};

use super::{Session, Taking};
use crate::notice::Notice;

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
}

impl Session {
    /// A message that is too large begins in `bytes`: it is told, and is not to be kept. `false` if more bytes are needed
    /// to tell.
    ///
    /// # Errors
    /// If no message begins there.
    #[cold]
    pub(super) fn begin_passing(
        &mut self,
        bytes: &[u8],
        taking: &mut Taking<'_>,
    ) -> Result<bool, String> {
        let Some(head) = decode_publish_head(bytes).map_err(|error| self.breach(&error))? else {
            return Ok(false);
        };
        taking.too_large += 1;
        self.too_large += 1;
        if 10u64.pow(self.too_large.ilog10()) == self.too_large {
            taking.notices.push(Notice::TooLarge {
                broker: self.broker.clone(),
                topic: head.topic.to_owned(),
                bytes: head.len,
                largest: taking.asked.largest_message,
                so_far: self.too_large,
            });
        }
        self.passing = Some(Passing {
            left: head.len,
            qos: head.qos,
            packet_id: head.packet_id,
        });
        Ok(true)
    }

    /// Lets a message that is too large pass by; how many of the bytes are of it. Once it is over it is acknowledged:
    /// else the broker would send it again and again, and nothing behind it.
    pub(super) fn pass(&mut self, bytes: usize, taking: &mut Taking<'_>) -> usize {
        let Some(passing) = &mut self.passing else {
            return 0;
        };
        let len = passing.left.min(bytes);
        passing.left -= len;
        if passing.left == 0 {
            let &mut Passing { qos, packet_id, .. } = passing;
            self.passing = None;
            if qos == QoS::ExactlyOnce {
                self.credit.ask();
            }
            taking
                .gather
                .refuse(self.peer, self.connection, qos, packet_id);
        }
        len
    }
}
