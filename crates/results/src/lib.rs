//! The versioned store of a run, and the rules of its verdicts.
//!
//! - [`model`]: the shapes of `results.json`.
//! - [`store`]: the folder of a run; every finished trial is on disk before the next begins.
//! - [`histogram`]: HdrHistogram logs, summaries and distribution functions.
//! - [`verdict`]: whether the figures of a trial can be trusted, by written rules.
//! - [`claim`]: the outcomes of a study's claims.
//! - [`criterion`]: whether a run met its study's criteria.
//! - [`figure`]: the figures of a trial by their names.
//! - [`on_request`]: system calls, and what crossed an interface.
//! - [`group`]: how members of groups shared messages.
//! - [`host`]: hosts that workers ran on; [`one_way`]: which one-way times between them can be quoted.
//! - [`party`]: subscribers and groups, the worst of which are named.
//! - [`processors`]: shares of the machine's processors.
//! - [`recording`]: recordings that claims are judged by, day by day.
//! - [`schema`]: the JSON Schema of `results.json`.
//! - [`comparison`]: cells judged against each other.
//! - [`search`]: searches for a limit.
//! - [`studies`]: summaries of several studies.
//! - [`window`]: named spans of a measurement.
//! - [`shell`]: paths in commands that users copy.

mod axis;
pub mod bursts;
pub mod claim;
pub mod comparison;
pub mod criterion;
mod difference;
pub mod distribution;
pub mod figure;
pub mod group;
pub mod histogram;
pub mod host;
pub mod model;
pub mod network;
pub mod on_request;
pub mod one_way;
pub mod party;
pub mod processors;
pub mod recording;
pub mod schema;
pub mod search;
pub mod shell;
mod sized_host;
pub mod store;
pub mod studies;
mod syscalls;
mod traffic;
pub mod verdict;
pub mod window;
mod window_figures;

pub use model::*;
pub use sized_host::SizedHost;
