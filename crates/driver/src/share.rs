//! Bounds of a held share of the machine. The files of systems and those of studies have the same,
//! and neither's room may use the other's.

/// Smallest share of processor time, in processors: the kernel takes no quota below 1 ms, and a
/// period has 10 ms.
pub const MIN_CORES: f64 = 0.1;
/// Largest share of processor time, in processors: more is surely a slip.
pub const MAX_CORES: f64 = 4096.0;
/// Smallest share of memory, in MiB.
pub const MIN_MEMORY_MIB: u64 = 4;
