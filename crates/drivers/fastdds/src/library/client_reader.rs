//! The reader of one client.

use crate::ffi::Reader;

/// The reader of a client, for all its subscriptions.
#[derive(Default)]
pub(super) struct ClientReader {
    pub(super) entity: Option<Reader>,
    /// CLOCK_REALTIME when it was created, ns; samples written before are last values.
    pub(super) since_ns: i64,
    pub(super) partitions: Vec<String>,
    /// Subscriptions that are in `partitions` and not in the reader yet.
    pub(super) asked: usize,
    /// Its client is listed in `flooded`.
    pub(super) is_flooded: bool,
}

impl ClientReader {
    pub(super) fn drop_entity(&mut self) {
        self.entity = None;
        self.partitions.clear();
        self.asked = 0;
    }
}
