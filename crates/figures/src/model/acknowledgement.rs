//! The answers of systems to messages that asked for acknowledgement.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Messages that the system rejected with the same code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rejection {
    /// The protocol's code: a reason code of MQTT 5, an error code of XMPP; 0 where the protocol has none.
    pub code: u16,
    /// The protocol's words for it, for example `quota exceeded (0x97)`.
    pub name: String,
    /// How many measured messages.
    pub messages: u64,
}

/// How many messages a publisher may have under way without an acknowledgement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PublisherWindow {
    /// The setting.
    pub setting: String,
    /// The limit that was asked for, or the driver's default.
    pub asked: u64,
    /// The limit that held: the smallest over all publishers.
    pub granted: u64,
    /// The system's name of the limit that it grants, for example `Receive Maximum`; empty where it has no say.
    pub term: String,
    /// Shortest time from sending to an acknowledgement in the whole trial, sentinels and warm-up included, ns: what an
    /// acknowledgement takes where nothing waits. Absent without one.
    pub fastest_acknowledgement_ns: Option<u64>,
}

/// The largest message that the system takes, as it announced when its clients connected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SizeLimit {
    /// The smallest such limit over all clients, bytes; what counts towards it is the protocol's affair (of MQTT the whole
    /// packet).
    pub bytes: u64,
    /// The protocol's name of it, for example `Maximum Packet Size`.
    pub term: String,
}

impl PublisherWindow {
    /// Whether the system granted less than was asked for.
    pub fn is_granted(&self) -> bool {
        self.granted < self.asked
    }
}

/// As `in-flight = 20`, or as the system's own limit where that is the smaller one.
impl fmt::Display for PublisherWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            setting,
            asked,
            granted,
            term,
            ..
        } = self;
        if self.is_granted() {
            write!(f, "{term} = {granted}, which the server granted")?;
            match *asked {
                u64::MAX => Ok(()),
                asked => write!(f, " where {setting} = {asked} was asked for"),
            }
        } else {
            write!(f, "{setting} = {granted}")
        }
    }
}
