//! Errors of decoding and encoding.

use std::fmt;

use crate::reason::ReasonCode;

/// Bytes that are not a valid packet.
///
/// The connection they came from must be closed (5.0 §4.13, 3.1.1 §4.8); under MQTT 5 after a
/// DISCONNECT or CONNACK with [`DecodeError::reason`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// MQTT 5 reason code that describes it: malformed packet, protocol error, packet too large,
    /// unsupported protocol version, topic name invalid, and so on.
    pub reason: ReasonCode,
    /// The violation in words.
    pub what: &'static str,
    /// The number that was found in its place, if that helps.
    pub found: Option<u32>,
    /// The sections of the two specifications that rule it out.
    pub section: &'static str,
}

impl DecodeError {
    #[cold]
    pub(crate) fn malformed(what: &'static str, section: &'static str) -> Self {
        DecodeError {
            reason: ReasonCode::MALFORMED_PACKET,
            what,
            found: None,
            section,
        }
    }

    #[cold]
    pub(crate) fn protocol(what: &'static str, section: &'static str) -> Self {
        DecodeError::malformed(what, section).with_reason(ReasonCode::PROTOCOL_ERROR)
    }

    #[cold]
    pub(crate) fn with_found(mut self, found: impl Into<u32>) -> Self {
        self.found = Some(found.into());
        self
    }

    #[cold]
    pub(crate) fn with_reason(mut self, reason: ReasonCode) -> Self {
        self.reason = reason;
        self
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)?;
        if let Some(found) = self.found {
            write!(f, " (found {found})")?;
        }
        write!(f, "; see MQTT {}", self.section)
    }
}

impl std::error::Error for DecodeError {}

/// A packet that cannot be encoded. Nothing was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A string or binary field is longer than its two-byte length can say.
    #[error("{0} is longer than 65,535 bytes (MQTT 5.0 §1.5.4, 3.1.1 §1.5.3)")]
    FieldTooLong(&'static str),
    /// The packet is longer than its remaining length can say.
    #[error("the packet is longer than 268,435,455 bytes (MQTT 5.0 §2.1.4, 3.1.1 §2.2.3)")]
    PacketTooLong,
    /// A packet identifier is absent, zero, or present where none belongs.
    #[error(
        "QoS 1 and 2 need a packet identifier that is not 0, QoS 0 has none (MQTT 5.0 §2.2.1, 3.1.1 §2.3.1)"
    )]
    PacketIdentifier,
    /// A topic name is empty, too long, or has a wildcard or NUL in it.
    #[error("the topic name is not valid (MQTT 5.0 §3.3.2.1, 3.1.1 §3.3.2.1)")]
    TopicName,
    /// Something that only MQTT 5 has, in a packet for 3.1.1.
    #[error("{0} exists only in MQTT 5")]
    OnlyInV5(&'static str),
    /// A list that must not be empty.
    #[error("{0} must have at least one entry (MQTT 5.0 §3.8.3, 3.1.1 §3.8.3)")]
    Empty(&'static str),
    /// A password without a user name, which 3.1.1 does not allow.
    #[error("MQTT 3.1.1 allows a password only with a user name (§3.1.2.9)")]
    PasswordWithoutUsername,
    /// A QoS 0 PUBLISH with the DUP flag.
    #[error("a PUBLISH of QoS 0 cannot have the DUP flag (MQTT 5.0 §3.3.1.1, 3.1.1 §3.3.1.1)")]
    DupAtMostOnce,
    /// A string with U+0000 in it.
    #[error("{0} has the character U+0000 in it (MQTT 5.0 §1.5.4, 3.1.1 §1.5.3)")]
    Nul(&'static str),
    /// A reason code that the packet cannot carry.
    #[error("{0} cannot stand in a {1} (MQTT 5.0 §2.4, 3.1.1 §3.2.2.3)")]
    Reason(ReasonCode, &'static str),
    /// A property or topic filter that the receiver would refuse.
    #[error("{0}")]
    Invalid(DecodeError),
}
