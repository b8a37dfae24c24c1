//! Real systems: starting and stopping them so that nothing is left behind, watching what they
//! and pubgauge cost, and knowing the machine.
//!
//! Linux only: process control and figures come from `/proc`, `prctl` and `clone`.

mod catalog;
mod certificates;
mod command;
mod counters;
mod domain;
mod ends;
mod external;
pub mod file;
mod find;
mod guard;
pub mod install;
mod instance;
mod interface;
pub mod limits;
mod listing;
mod lock;
mod log;
mod machine;
mod namespace;
mod noise;
mod owned;
mod package_manager;
mod piped;
mod ports;
mod probe;
pub mod procfs;
mod readiness;
mod realtime;
mod residents;
mod running;
mod sampler;
pub mod shares;
mod spelling;
mod start;
mod start_error;
mod syscalls;
pub mod template;

pub use catalog::{Catalog, CatalogError};
pub use counters::{Counting, OwnMemory, SystemCount, SystemCounts};
pub use external::{AddressError, PASSWORD_VARIABLE, from_address, join_addresses, with_scheme};
pub use file::{
    Deviation, FileError, Install, Maven, Origin, Probe, SystemFile, SystemKind, Tunable,
    TunableScale, UnknownVariant,
};
pub use find::{Installation, Missing, cache_folder, on_path, version};
pub use instance::{Stopped, kill_everything, stop_everything};
pub use interface::{Crossed, Directions, InterfaceCounter};
pub use limits::{TooFewDescriptors, max_open_files, raise_nofile};
pub use listing::Listing;
pub use machine::{MachineFacts, load_average, machine_facts, memory, processors};
pub use namespace::{Namespace, NetworkHost, Site};
pub use noise::{NOISE_INTERVAL, NoiseMeter};
pub use owned::OwnedFolder;
pub use package_manager::InstallCommands;
pub use piped::{Confinement, Piped, Streams};
pub use ports::free_port;
pub use probe::{Roles, Visitor};
pub use realtime::{
    IdlePolling, SchedulingError, only_when_idle, pin_to, poll_when_idle, set_realtime,
    set_timer_slack, usable_cpus,
};
pub use running::{Record, Running};
pub use sampler::{
    BusiestThread, ProcessSample, ProcessSampler, ThreadFigures, ThreadSample, ThreadSampler,
    current_tid, lies_in_memory,
};
pub use start::Testbed;
pub use start_error::StartError;
pub use syscalls::{SyscallCounter, Syscalls};
