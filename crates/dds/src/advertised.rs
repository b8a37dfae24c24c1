//! Topics that clients have advertised.

use pubgauge_driver::ClientId;

/// A topic that a client has advertised.
pub struct Topic<W> {
    pub(crate) client: ClientId,
    /// Its partition.
    pub(crate) name: String,
    pub(crate) gate: Gate,
    /// `None` while the client has no entities.
    pub writer: Option<W>,
}

/// Whether a topic takes messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    Open,
    /// There was no room when it was last looked at.
    HeldBack,
    /// Its client is not connected, or soon no more.
    Shut,
}
