//! The result of a try to show a capability.

/// The result of trying a capability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The system behaved as claimed.
    Shown,
    /// Clients cannot see it, for this reason; the driver's own tests have to show it.
    Unseen(&'static str),
}
