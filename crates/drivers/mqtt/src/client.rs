//! State of one client, and state that all clients of a fleet share.

use pubgauge_driver::{Grant, Will};
use pubgauge_net::fleet::ClientLink;
use pubgauge_net::topics::Topics;

use crate::options::MqttOptions;
use crate::session::{MqttSession, Received, Slot};
use crate::topics::MqttTopic;

/// State of a client besides its connection. An idle client has no boxed state.
pub(crate) struct MqttClient {
    /// The server may keep a session of it beyond its connection.
    pub has_session: bool,
    /// Its connection was lost or dropped while it had a will to be retained.
    pub will_was_due: bool,
    /// Its last connection ended after all was written, and a DISCONNECT.
    pub ended_in_order: bool,
    /// Receive Maximum of the server.
    pub receive_max: u16,
    /// Topic Alias Maximum of the server, as far as the settings use it.
    pub alias_max: u16,
    /// Aliases given out.
    pub aliases: u16,
    /// Maximum Packet Size of the server.
    pub max_packet: u32,
    pub session: Option<Box<MqttSession>>,
    pub will: Option<Box<Will>>,
}

impl MqttClient {
    /// Its message in flight with this packet identifier, if there is one.
    #[inline]
    pub fn slot(&mut self, packet_id: u16) -> Option<&mut Slot> {
        self.session.as_mut()?.slot(packet_id)
    }
}

/// A client and its connection.
pub(crate) type L<'a> = ClientLink<'a, MqttClient>;

/// State that all clients of a fleet share.
pub(crate) struct Mqtt {
    pub options: MqttOptions,
    /// The fleet is being closed: connections from now on have no session and no will.
    pub leaving: bool,
    pub topics: Topics<MqttTopic>,
    pub bitmap_pool: Vec<Box<Received>>,
    /// Longest packet that is taken from a server, in bytes.
    pub max_in: usize,
    /// Retained messages that were removed or left when the fleet was closed.
    pub left: Left,
    /// Grants of the server, over all clients that have connected.
    pub granted: Vec<Grant>,
}

/// Retained messages that were removed or left when a fleet was closed.
#[derive(Default)]
pub(crate) struct Left {
    /// Retained messages that were removed, each by publishing one empty message.
    pub cleared: usize,
    /// Retained messages that may be there still.
    pub retained: usize,
    /// Sessions that may be there still.
    pub sessions: usize,
}

impl Mqtt {
    pub fn new(options: MqttOptions, max_in: usize) -> Mqtt {
        Mqtt {
            options,
            leaving: false,
            topics: Topics::default(),
            bitmap_pool: Vec::new(),
            max_in,
            left: Left::default(),
            granted: Vec::new(),
        }
    }
}

impl Left {
    /// Says which retained messages could not be removed.
    pub fn description(&self) -> Option<String> {
        let mut what = Vec::new();
        if self.retained > 0 {
            what.push(format!("retained messages ({})", self.retained));
        }
        if self.sessions > 0 {
            what.push(format!("durable sessions ({})", self.sessions));
        }
        (!what.is_empty()).then(|| {
            format!(
                "{} of this trial may still be on the server, which did not answer in time at the end\n  hint: topics and client identifiers of a trial carry its mark; remove them there if the server is to be used further",
                what.join(" and ")
            )
        })
    }
}
