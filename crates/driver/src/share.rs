//! Bounds of the share of the machine that a process may be limited to. The files of systems and
//! those of studies have the same bounds, and neither's crate may use the other.

/// Smallest share of processor time, in processors: the kernel takes no quota below 1 ms, and the
/// period is 10 ms.
pub const MIN_CORES: f64 = 0.1;
/// Largest share of processor time, in processors: more is surely a mistake.
pub const MAX_CORES: f64 = 4096.0;
/// Smallest share of memory, in MiB.
pub const MIN_MEMORY_MIB: u64 = 4;
