//! System calls of a measurement.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// System calls of the measurement, of the client and of the system apart. Counting slowed every system
/// call of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SystemCalls {
    /// Of the workers and their libraries' threads, and so of a system that is a library of theirs.
    pub client: Option<SyscallCounts>,
    /// Of the system's processes.
    pub system: Option<SyscallCounts>,
    /// Why a side is absent.
    pub not_counted: Vec<String>,
}

/// Numbers of system calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SyscallCounts {
    /// All of them.
    pub all: u64,
    /// Writes of bytes to a socket, by any call; absent before Linux 6.3.
    pub sends: Option<u64>,
    /// Reads of bytes from a socket, by any call; absent before Linux 6.3.
    pub receives: Option<u64>,
    /// Calls of `fsync`, `fdatasync`, `msync`, `sync`, `syncfs`, `sync_file_range`.
    pub syncs: u64,
}
