//! Last wills: the message that a system publishes for a client whose connection ends without a word, and by what such a
//! message is known.

use serde::{Deserialize, Serialize};

use crate::header::{HEADER_LEN, Mark, seal, unseal};

/// A last will.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Will {
    /// Topic to publish to.
    pub topic: String,
    /// The message to publish.
    pub payload: Vec<u8>,
    /// Whether the system keeps it as the topic's last value.
    pub retain: bool,
    /// MQTT's quality of service, 0 to 2, with which it is published; absent: as the fleet's settings say.
    #[serde(default)]
    pub qos: Option<u8>,
    /// How long after the end of the connection it is published, if the client is not back by then, s; 0: at once.
    #[serde(default)]
    pub delay_s: u32,
}

/// The beginning of a will's payload: it says whose will it is, and of which of its connections. A message has a
/// [`crate::Header`] there; neither is taken for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WillStamp {
    /// The device, as an index into those of the workload.
    pub device: u32,
    /// Its connection, counted from 0 in the order of its attempts to connect.
    pub connection: u32,
}

impl WillStamp {
    /// The payload of a will, of so many bytes and [`HEADER_LEN`] at the least, with the trial's mark.
    pub fn payload(self, mark: Mark, bytes: usize) -> Vec<u8> {
        let head = seal([self.device.into(), self.connection.into()], mark);
        let mut payload = vec![0; bytes.max(HEADER_LEN)];
        payload[..HEADER_LEN].copy_from_slice(&head);
        payload
    }

    /// The stamp of a payload; `None` if it is no will of a trial with this `mark`.
    pub fn decode(payload: &[u8], mark: Mark) -> Option<WillStamp> {
        let [device, connection] = unseal(payload.first_chunk()?, mark)?;
        // All other bits are 0: of foreign messages none in 10^20 passes.
        Some(WillStamp {
            device: device.try_into().ok()?,
            connection: connection.try_into().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::header::{Header, Kind};

    proptest! {
        #[test]
        fn a_will_is_no_message_and_a_message_no_will(
            device: u32, connection: u32, seed: u64, other: u64, bytes in 0usize..100,
            intended in 0u64..1 << 40, stream in 0u32..1 << 24, sequence: u32,
        ) {
            let (mark, stamp) = (Mark::from_seed(seed), WillStamp { device, connection });
            let payload = stamp.payload(mark, bytes);
            prop_assert_eq!(payload.len(), bytes.max(16));
            prop_assert_eq!(WillStamp::decode(&payload, mark), Some(stamp));
            prop_assert_eq!(Header::decode(&payload, mark), None);
            if seed != other {
                prop_assert_eq!(WillStamp::decode(&payload, Mark::from_seed(other)), None);
            }
            let header = Header { kind: Kind::Measured, intended, lag: 0, stream, sequence };
            prop_assert_eq!(WillStamp::decode(&header.encode(mark), mark), None);
        }
    }
}
