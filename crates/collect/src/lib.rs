//! Collects what MQTT brokers deliver into files that analysts open.
//!
//! A message is acknowledged once it is on disk: a [`Collector`] reads from all brokers at the rhythm of a timer,
//! appends what came to a log with checksums, syncs it, and only then acknowledges, in order of arrival. Closed
//! segments of the log become finished files ([`files`]), Parquet or NDJSON, by date and hour. [`verify`] reads
//! everything again.
//!
//! Nothing here prints: a collector tells [`Notice`]s to a [`Watch`], and has its figures in a [`Status`].

// `println!` and `eprintln!` are for programs.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod clock;
mod collector;
pub mod columns;
pub mod compact;
pub mod config;
pub mod dead;
mod error;
mod file_name;
pub mod files;
pub mod folder;
mod gather;
mod known;
mod link;
pub mod log;
mod manifest;
mod message;
pub mod names;
mod notice;
mod peer;
pub mod replay;
mod session;
mod status;
mod storage;
pub mod store;
pub mod verify;

pub use collector::{Collector, EndsAfter, Leave, Reloads, Summary, Tap};
pub use config::Config;
pub use error::Error;
pub use log::SegmentStatus;
pub use message::Message;
pub use notice::{Level, Notice, Watch};
pub use status::{
    BrokerStatus, Canaries, Count, Counted, DiskStatus, Histogram, LogStatus, Status, Threads, Wire,
};
