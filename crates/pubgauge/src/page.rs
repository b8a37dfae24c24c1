//! The table and the page of a run.

use std::path::{Path, PathBuf};

use std::borrow::Cow;

use pubgauge_command::exit::{Ending, print, print_lines};
use pubgauge_figures::histogram::Interval;
use pubgauge_figures::model::Results;
use pubgauge_place::shell::quoted;
use pubgauge_report::LatencyLogs;
use pubgauge_results::store;

use crate::{stored_json, terminal};

/// Name of the page in the folder of a run.
pub const PAGE_FILE: &str = "report.html";

/// Prints the results and the path of the page, if there is one.
pub fn print_results(results: &Results, page: Option<&Path>, json: bool) {
    if json {
        print_lines(|out| store::write_json(results, out));
    } else {
        let table = pubgauge_report::table(results, width());
        let page = page.map_or(String::new(), |page| format!("page: {}\n", page.display()));
        print(&format!("{}\n{page}", table.trim_end()));
    }
}

/// Writes the page of a run beside its results.
pub fn write_page(dir: &Path, results: &Results) -> Result<PathBuf, Ending> {
    let path = dir.join(PAGE_FILE);
    let page = pubgauge_report::page(results, &Stored(dir));
    stored_json::write(&path, page).map_err(|e| {
        Ending::not_valid(format!(
            "{e}\n  hint: the results are complete; make room and run: pubgauge report {}",
            quoted(dir)
        ))
    })?;
    Ok(path)
}

/// The logs in the folder of a run, each read when it is drawn. For a trial without one the points in results.json are used.
struct Stored<'a>(&'a Path);

impl LatencyLogs for Stored<'_> {
    fn intervals(&self, trial: u32) -> Option<Cow<'_, [Interval]>> {
        store::load_log(self.0, trial, "latency")
            .ok()
            .map(Cow::Owned)
    }
}

/// Columns for tables: those of the terminal, limited to 40 to 120; 80 if there is no terminal.
pub fn width() -> usize {
    match terminal::columns(libc::STDOUT_FILENO) {
        Some(columns) if columns >= 40 => columns.min(120),
        _ => 80,
    }
}
