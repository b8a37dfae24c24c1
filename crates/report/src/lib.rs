//! Reports on the results of a run: the table for the terminal, the text of a comparison, and the page.
//!
//! Pure: text in, text out; nothing here reads files, prints or reads a clock.
//!
//! - [`compare`]: a comparison as text.
//! - [`answers()`]: which rows carry their load, and who [wins] at what.
//! - [`glossary`]: one line for each verdict and figure.
//! - [`screen()`]: the answer on one screen of the terminal; [`markdown()`]: the same for CI.
//! - [`table()`]: the result table of the terminal.
//! - [`charts`]: the data of every chart as plain tables, from which drawing, CSV and the
//!   readable table under each figure all come.
//! - [`page()`]: one HTML file that needs no other file; [`index()`] the same over several studies.
//! - [`trend_page()`], [`trend_text()`]: several runs in the order of time, with what changed beyond noise.
//! - [`studies`]: summary of several studies: their claims, or their answers.

pub mod answers;
mod brokers;
mod bursts;
pub mod charts;
mod columns;
pub mod compare;
mod comparisons;
mod crowd;
mod device_cost;
pub mod glossary;
mod hosts;
mod markdown;
mod network;
mod on_request;
mod page;
mod screen;
mod searches;
mod setup;
mod shares;
pub mod studies;
mod table;
mod terminal;
mod trend;
mod why;
mod windows;
mod workload;

use std::borrow::Cow;
use std::collections::BTreeMap;

use pubgauge_figures::histogram::Interval;

pub use answers::answers;
pub use crowd::spoilt_trials;
pub use markdown::markdown;
pub use page::{advice_page, in_url, index, page, trend_page};
pub use pubgauge_conclusions::{naming, summary, wins};
pub use screen::{Onward, screen};
pub use table::table;
pub use trend::trend_text;

/// Latency histograms of the trials, by trial, as `pubgauge_results::store::load_log` reads them
/// (log `latency`). For trials without one the points in `results.json` are used.
pub type Logs = BTreeMap<u32, Vec<Interval>>;

/// Where latency histograms come from. Each trial is asked for once: a histogram takes 270 KB, and those of a run are never
/// held together.
pub trait LatencyLogs {
    /// Those of a trial; `None` if it has none.
    fn intervals(&self, trial: u32) -> Option<Cow<'_, [Interval]>>;
}

impl LatencyLogs for Logs {
    fn intervals(&self, trial: u32) -> Option<Cow<'_, [Interval]>> {
        self.get(&trial).map(|of| Cow::Borrowed(&**of))
    }
}
