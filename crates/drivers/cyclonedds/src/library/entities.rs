//! Writers and readers with what is kept of each.

use pubgauge_dds::topic::Filter;
use pubgauge_driver::ClientId;

use super::topics::Topics;
use crate::ffi::{DataWriter, Reader};

/// A writer with the datagram that it gathers.
pub struct GatheringWriter {
    pub(super) writer: DataWriter,
    /// Key of its messages.
    pub(super) device: u32,
    /// Bytes of the datagram that Cyclone is gathering.
    pub(super) pending: u32,
    /// Its topic is among those with an unfinished batch.
    pub(super) listed: bool,
}

impl GatheringWriter {
    /// Sends what it has gathered; it is listed no more.
    pub(super) fn flush(&mut self) {
        self.listed = false;
        if self.pending > 0 {
            self.writer.flush();
            self.pending = 0;
        }
    }
}

/// A subscription of a client: a DDS subscriber with one reader.
pub(super) struct Subscriber {
    pub(super) client: ClientId,
    pub(super) filter: Filter,
    pub(super) reader: Reader,
    pub(super) topics: Topics,
    /// When the subscription began, ns of CLOCK_REALTIME; older messages are last values.
    pub(super) since_ns: Option<i64>,
}
