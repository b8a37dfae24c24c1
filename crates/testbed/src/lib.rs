//! Real systems: starting and stopping them so that nothing is left behind, watching what they
//! and pubgauge cost, and knowing the machine.
//!
//! Linux only: process control and figures come from `/proc`, `prctl` and `clone`.

mod catalog;
mod command;
mod external;
pub mod file;
mod find;
mod guard;
mod instance;
mod log;
mod ports;
pub mod procfs;
mod start;
pub mod template;

pub use catalog::{Catalog, CatalogError, InstallCommands, Listing};
pub use external::{AddressError, PASSWORD_VARIABLE, from_address, password};
pub use file::{FileError, Kind, SystemFile, UnknownVariant};
pub use find::{Found, Missing, cache_folder, find, install_commands, version};
pub use instance::{Stopped, stop_everything};
pub use start::{ProbeFn, Record, Running, StartError, Testbed};
