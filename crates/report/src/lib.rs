//! What the results of a run say: statistics, the table for the terminal, and the page.
//!
//! Pure: text in, text out; nothing here reads files, prints or knows the time.
//!
//! - [`stats`]: means with confidence intervals, ratios, honest ties.
//! - [`summary`]: trials grouped by workload and cell; [`naming`]: what their rows are called.
//! - [`answers()`]: which rows carry their load, and who [wins] at what.
//! - [`words`]: one line for each verdict and figure.
//! - [`table()`]: the result table of the terminal.
//! - [`figures`]: the data of every figure as plain tables, from which chart, CSV and the
//!   readable table under each figure all come.
//! - [`page()`]: one HTML file that needs nothing else.

pub mod answers;
mod columns;
pub mod figures;
pub mod naming;
mod page;
pub mod stats;
pub mod summary;
mod table;
pub mod units;
pub mod wins;
pub mod words;

use std::collections::BTreeMap;

use pubgauge_driver::Settings;
use pubgauge_results::Trial;
use pubgauge_results::histogram::Interval;

use summary::Workload;

pub use answers::answers;
pub use page::page;
pub use table::table;

/// Latency histograms of the trials, by trial, as `pubgauge_results::store::load_log` reads them
/// (log `latency`). Trials without one fall back on the points in `results.json`.
pub type Logs = BTreeMap<u32, Vec<Interval>>;

/// A workload in one line: its name, devices, topics, sizes, arrivals, and what was asked of all
/// systems alike: `fleet (100 -> 1, 100 topics, 64 B, 1000/s; at-least-once, MQTT 5)`.
fn workload_words(workload: &Workload<'_>) -> String {
    let cells = &workload.cells;
    let same = |of: fn(&Trial) -> String| {
        let mut all: Vec<String> = Vec::new();
        for word in cells.iter().map(|cell| of(cell.trials[0])) {
            if !all.contains(&word) {
                all.push(word);
            }
        }
        all.join(" | ")
    };
    let mut words = vec![
        format!(
            "{} -> {}",
            same(|t| t.workload.publishers.to_string()),
            same(|t| t.workload.subscribers.to_string())
        ),
        format!(
            "{} topic{}",
            same(|t| t.workload.topics.to_string()),
            if cells[0].trials[0].workload.topics == 1 { "" } else { "s" }
        ),
        same(|t| t.workload.payload.clone()),
        same(|t| t.workload.arrivals.clone()),
    ];
    words.extend(settings_words(workload));
    format!("{} ({})", workload.name, words.join(", "))
}

/// What was asked of all systems of a workload alike, and what an MQTT client made of it.
fn settings_words(workload: &Workload<'_>) -> Vec<String> {
    let trials: Vec<&Trial> = workload.cells.iter().map(|cell| cell.trials[0]).collect();
    let all = |of: &dyn Fn(&Trial) -> Option<String>| -> Option<String> {
        let mut words: Vec<String> = trials.iter().filter_map(|t| of(t)).collect();
        words.sort();
        words.dedup();
        Some(words.join(" | ")).filter(|words| !words.is_empty())
    };
    let asked = Settings::NAMES.iter().filter_map(|name| {
        let value = all(&|t| Some(t.settings.value_of(name)).filter(|v| v != "default"))?;
        match *name {
            "reliability" => Some(value),
            name => Some(format!("{name} = {value}")),
        }
    });
    let qos = all(&|t| {
        let row = t.mappings.iter().find(|m| m.setting == "reliability")?;
        let level = row.native.strip_prefix("QoS ")?.chars().next()?;
        Some(format!("QoS {level}"))
    });
    let version = all(&|t| {
        let row = t.mappings.iter().find(|m| m.setting == "native.mqtt.version")?;
        Some(format!("MQTT {}", row.value))
    });
    let name = all(&|t| Some(t.settings_name.clone()).filter(|n| !["", "default"].contains(&&n[..])));
    asked.chain(qos).chain(version).chain(name.map(|name| format!("settings {name}"))).collect()
}
