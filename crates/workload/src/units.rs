//! Units and bounds.

/// A span or a point in time, in nanoseconds.
pub type Nanos = u64;

pub const SECOND: Nanos = 1_000_000_000;

/// The smallest message, in bytes: the header has to fit.
pub const MIN_SIZE: u32 = 16;

/// Largest payload in bytes: the largest remaining length of an MQTT packet (3.1.1, section 2.2.3).
pub const MAX_SIZE: u32 = 268_435_455;

/// Bursts that wait for one another begin at multiples of this, from the flow's beginning, so that all
/// workers begin them at one time.
pub const BURST_SLOT: Nanos = 10_000_000;
