//! A DDS library as the fleet sees it: one domain participant with its writers and readers.

use std::collections::VecDeque;

use pubgauge_driver::{Change, ClientId, DriverError, Events, Nanos, Payload, Refusal};

use crate::advertised::Topic;
use crate::topic::Filter;

/// Changes that the next poll reports.
pub type News = VecDeque<(ClientId, Change)>;

/// A participant of one library, with what the library wants beside it. It is dropped when the fleet
/// closes, after the fleet has given back all writers and dropped all readers.
///
/// A fleet is compiled for its library: no call costs more than a direct one.
pub trait Library {
    /// A writer, alone in its publisher.
    type Writer;

    /// Creates a writer in the partition `topic`. The messages of a writer have a `key` of their own,
    /// so that KEEP_LAST and limits of resources count for each writer.
    ///
    /// # Errors
    /// When the library does not.
    fn create_writer(&mut self, topic: &str, key: u32) -> Result<Self::Writer, DriverError>;

    /// Writes a message to the topic of this number among the fleet's; never waits for room.
    fn write(&mut self, number: u32, writer: &mut Self::Writer, payload: Payload<'_>) -> Written;

    /// Sends what writers have gathered. By default they gather nothing.
    fn flush(&mut self, _topics: &mut [Topic<Self::Writer>]) {}

    /// Whether all that a writer wrote is acknowledged.
    fn is_settled(&self, writer: &Self::Writer) -> bool;

    /// Deletes a writer, after waiting for acknowledgements for so long at most.
    fn end_writer(&mut self, writer: Self::Writer, wait: Nanos);

    /// Subscribes a client, at once or with the next [`Library::prepare`], and reports that.
    ///
    /// # Errors
    /// Filters that the library, or the client beside its others, cannot have.
    fn subscribe(
        &mut self,
        client: ClientId,
        filter: Filter,
        news: &mut News,
    ) -> Result<(), DriverError>;

    /// Deletes the readers of a client.
    fn drop_readers(&mut self, client: ClientId);

    /// Called once for each poll, before it looks at anything.
    ///
    /// # Errors
    /// Only what ends the fleet.
    fn prepare(&mut self, news: &mut News) -> Result<(), DriverError>;

    /// Hands over what has come. Says whether there was anything.
    ///
    /// # Errors
    /// Only what ends the fleet.
    fn receive(&mut self, events: &mut dyn Events) -> Result<bool, DriverError>;

    /// Sleeps for so long at most, until a reader has something or, while writers are held back, until
    /// there may be room for them.
    fn wait(&mut self, duration: Nanos);

    /// Says whether any writer is held back, when that changes.
    fn hold_back(&mut self, held_back: bool);

    /// Whether something was heard that may have made room, since the last call or since the write that
    /// found none.
    fn may_have_room(&mut self) -> bool;

    /// Whether a writer that found no room may try again. A library that cannot tell lets it try: each
    /// time that something was heard, or only when the time for that is `due`.
    fn has_room(&self, writer: &Self::Writer, due: bool) -> bool;

    /// How soon writers that are held back try again, if nothing was heard before.
    fn retry(&self) -> Nanos;

    /// Whether writers with messages that are not acknowledged count as unsettled. By default they are
    /// not asked.
    fn counts_unsettled(&self) -> bool {
        false
    }

    /// Traffic of the participant; `None` if the library cannot be counted.
    fn traffic(&self) -> Option<Traffic>;
}

/// The outcome of a write.
#[derive(Debug)]
pub enum Written {
    /// It was taken.
    Accepted,
    /// There is no room at present; nothing was taken.
    NoRoom,
    /// This message cannot be taken.
    Refused(Refusal),
    /// The writer is of no more use.
    Failed(Box<DriverError>),
}

/// UDP datagrams of a participant and their bytes, discovery included, without headers of UDP and
/// IP. In the shims a struct of the same layout.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Datagrams sent. One to a multicast address counts once.
    pub sent_datagrams: u64,
    /// Datagrams received.
    pub received_datagrams: u64,
}
