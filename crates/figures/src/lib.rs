//! The figures of a run as plain data, and what can be asked of them by their names. Nothing here judges, stores or leads.
//!
//! - [`model`]: the shapes of `results.json`.
//! - [`figure`]: the catalogue of the figures of a trial.
//! - [`distribution`], [`histogram`]: times: their percentiles, HdrHistogram logs, distribution functions.
//! - [`Messages`]: their counts, rates and times; [`Shortfall`]: those that did not come.
//! - [`criterion`]: criteria, and [`rule`]: claims, as a study asks for them.
//! - [`claim`], [`comparison`], [`search`], [`studies`]: outcomes of claims, comparisons, searches, several studies.
//! - [`on_request`]: system calls, and what crossed an interface.
//! - [`group`]: how members of groups shared messages; [`party`]: subscribers and groups, the worst of which are named;
//!   [`slow`]: slow subscribers; [`late`]: late ones; [`wills`]: last wills.
//! - [`host`]: hosts that workers ran on; [`one_way`]: which one-way times between them can be quoted.
//! - [`network`]: traffic of emulated networks; [`processors`]: how many there are; [`processor_shares`]: shares of them.
//! - [`recording`]: recordings that claims are judged by, day by day.
//! - [`window`]: named spans of a measurement; [`bursts`]: bursts in it.

mod axis;
pub mod bursts;
pub mod claim;
pub mod comparison;
pub mod criterion;
pub mod distribution;
pub mod figure;
pub mod group;
pub mod histogram;
pub mod host;
pub mod late;
mod messages;
pub mod model;
pub mod network;
pub mod on_request;
pub mod one_way;
pub mod party;
pub mod processor_shares;
pub mod processors;
pub mod recording;
pub mod rule;
pub mod search;
mod sized_host;
pub mod slow;
pub mod studies;
mod syscalls;
mod traffic;
mod unit;
pub mod wills;
pub mod window;
mod window_figures;

pub use messages::{Messages, Questions, Shortfall};
pub use model::*;
pub use sized_host::SizedHost;
