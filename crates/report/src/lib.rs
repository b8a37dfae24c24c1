//! What the results of a run say: statistics, the table for the terminal, and the page.
//!
//! Pure: text in, text out; nothing here reads files, prints or knows the time.
//!
//! - [`stats`]: means with confidence intervals, ratios, honest ties.
//! - [`summary`]: trials grouped by workload and cell, and who wins at what.
//! - [`compare`]: two runs, systems or settings: effect, interval and verdict for each figure.
//! - [`table()`]: the result table of the terminal.
//! - [`figures`]: the data of every figure as plain tables, from which chart, CSV and the
//!   readable table under each figure all come.
//! - [`page()`]: one HTML file that needs nothing else.

pub mod compare;
pub mod figures;
mod page;
pub mod stats;
pub mod summary;
mod table;
pub mod units;

use std::collections::BTreeMap;

use pubgauge_results::histogram::Interval;

pub use page::page;
pub use table::table;

/// Latency histograms of the trials, by trial, as `pubgauge_results::store::load_log` reads them
/// (log `latency`). Trials without one fall back on the points in `results.json`.
pub type Logs = BTreeMap<u32, Vec<Interval>>;
