//! The table and the page of a run.

use std::path::{Path, PathBuf};

use pubgauge_report::Logs;
use pubgauge_results::model::Results;
use pubgauge_results::shell::quoted;
use pubgauge_results::store;

use crate::exit::{Ending, print};
use crate::{stored_json, terminal};

/// Name of the page in the folder of a run.
pub const PAGE_FILE: &str = "report.html";

/// Prints the results and the path of the page, if there is one.
pub fn show(results: &Results, page: Option<&Path>, json: bool) {
    if json {
        print(&store::to_json(results));
    } else {
        let table = pubgauge_report::table(results, width());
        let page = page.map_or(String::new(), |page| format!("page: {}\n", page.display()));
        print(&format!("{}\n{page}", table.trim_end()));
    }
}

/// Writes the page of a run beside its results.
pub fn write_page(dir: &Path, results: &Results) -> Result<PathBuf, Ending> {
    // For a trial without a log the points in results.json are used.
    let logs: Logs = results
        .trials
        .iter()
        .filter_map(|t| Some((t.id, store::load_log(dir, t.id, "latency").ok()?)))
        .collect();
    let path = dir.join(PAGE_FILE);
    let page = pubgauge_report::page(results, &logs);
    stored_json::write(&path, page).map_err(|e| {
        Ending::not_valid(format!(
            "{e}\n  hint: the results are complete; make room and run: pubgauge report {}",
            quoted(dir)
        ))
    })?;
    Ok(path)
}

/// Columns for tables: those of the terminal, limited to 40 to 120; 80 if there is no terminal.
pub fn width() -> usize {
    match terminal::columns(libc::STDOUT_FILENO) {
        Some(columns) if columns >= 40 => columns.min(120),
        _ => 80,
    }
}
