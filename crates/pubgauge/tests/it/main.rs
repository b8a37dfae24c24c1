//! Tests of the crate through what it offers, one program.

mod acknowledgements;
mod bad_days;
mod bad_input;
mod brokers;
mod capacity;
mod claims;
mod closed_outputs;
mod collect;
mod common;
mod counters;
mod every_system;
mod exposure;
mod external;
mod folder;
mod hostile;
mod hosts;
mod install;
mod interruptions;
mod kubernetes;
mod long;
mod namespaces;
mod pairs;
mod profiles;
mod real_time;
mod runs;
mod scratch;
mod snapshots;
mod ssh;
mod strangers_files;
mod terminal;
mod tools;
mod tutorial;
#[cfg(feature = "upload")]
mod uploads;
mod wide;
mod workers;
