//! What a fleet keeps: its clients with their writers and readers.

use std::collections::{HashMap, VecDeque};
use std::ffi::CString;

use pubgauge_driver::{Change, ClientId, ClientSpec, Clock, DriverError, Nanos, Resource, TopicId};

use super::topics::Topics;
use crate::batch::Batches;
use crate::ffi::{Domain, NO_MEMORY, Qos, Reader, Taken, Wire, Writer, explain};
use crate::options::Options;
use crate::patience::Patience;

/// One worker thread's share of the DDS clients.
///
/// Opened through [`crate::CycloneddsDriver::open_fleet`] by callers that need its statistics.
pub struct CycloneFleet {
    pub(super) clients: Vec<Client>,
    pub(super) publishers: Vec<Publisher>,
    pub(super) topic_ids: HashMap<(ClientId, String), TopicId>,
    pub(super) subscribers: Vec<Option<Subscriber>>,
    pub(super) taken: Taken,
    pub(super) batches: Batches,
    /// Publishers with an unfinished batch.
    pub(super) gathering: Vec<u32>,
    /// Publishers that are held back, and when they are looked at again at the latest.
    pub(super) blocked: Vec<u32>,
    pub(super) retry_at: Nanos,
    /// Publishers were held back since the last check: acknowledgements may have come in between.
    pub(super) look: bool,
    /// Subscribers whose turn ended before they were empty.
    pub(super) unfinished: VecDeque<u32>,
    pub(super) closing: Vec<ClientId>,
    pub(super) news: VecDeque<(ClientId, Change)>,
    pub(super) clock: Clock,
    pub(super) retry: Nanos,
    pub(super) patience: Patience,
    pub(super) writer_qos: Qos,
    pub(super) reader_qos: Qos,
    pub(super) options: Options,
    pub(super) worker: u32,
    /// The domain's last counts, once it is closed.
    pub(super) last_wire: Wire,
    /// `None` once the fleet is closed.
    pub(super) domain: Option<Domain>,
}

pub(super) struct Client {
    pub(super) spec: ClientSpec,
    pub(super) phase: Phase,
    pub(super) filters: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Up,
    /// Waits for acknowledgements until then.
    Closing(Nanos),
    /// Failed, closed, or aborted.
    Down,
}

/// A topic that a client has advertised: a DDS publisher with one writer.
pub(super) struct Publisher {
    pub(super) client: ClientId,
    pub(super) partition: CString,
    /// Key of its messages.
    pub(super) device: u32,
    /// None while the client is not connected.
    pub(super) writer: Option<Writer>,
    /// Takes no more: the client is to be closed.
    pub(super) ending: bool,
    /// Bytes of the datagram that Cyclone is gathering.
    pub(super) pending: u32,
    /// Is listed in [`CycloneFleet::gathering`].
    pub(super) listed: bool,
    /// The history was full, and was so when it was last looked at.
    pub(super) blocked: bool,
}

impl Publisher {
    pub(super) fn new(client: ClientId, partition: CString, device: u32) -> Self {
        Publisher {
            client,
            partition,
            device,
            writer: None,
            ending: false,
            pending: 0,
            listed: false,
            blocked: false,
        }
    }
}

/// A subscription of a client: a DDS subscriber with one reader.
pub(super) struct Subscriber {
    pub(super) client: ClientId,
    pub(super) reader: Reader,
    pub(super) topics: Topics,
    /// When the subscription began, ns of CLOCK_REALTIME; older messages are last values.
    pub(super) since_ns: Option<i64>,
}

pub(super) fn failed(what: &str, code: i32) -> DriverError {
    let text = format!("Cyclone DDS: {what}: {}", explain(code));
    if code == NO_MEMORY {
        return DriverError::exhausted(text, Resource::Memory);
    }
    // Cyclone does not say which resource it lacked.
    let mut error = DriverError::new(text);
    error.exhausted = Resource::missing_now();
    error
}
