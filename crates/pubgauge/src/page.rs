//! The table and the page of a run.

use std::path::{Path, PathBuf};

use std::borrow::Cow;

use pubgauge_command::exit::{Ending, print, print_lines};
use pubgauge_conclusions::answer::RunAnswer;
use pubgauge_figures::histogram::Interval;
use pubgauge_figures::model::Results;
use pubgauge_place::shell::quoted;
use pubgauge_quantities::lists::names;
use pubgauge_report::answers::{Carries, answers};
use pubgauge_report::summary::{Bound, REFERENCE_NAMES};
use pubgauge_report::{LatencyLogs, Onward};
use pubgauge_results::store;

use crate::{stored_json, terminal};

/// Name of the page in the folder of a run.
pub const PAGE_FILE: &str = "report.html";

/// How much of results is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// The answer.
    Answer,
    /// The figures behind it, then the answer.
    Figures,
    /// All of them as JSON, with the answer.
    Json,
}

impl Detail {
    /// The detail that flags ask for.
    pub fn from_flags(verbose: bool, json: bool) -> Detail {
        match (json, verbose) {
            (true, _) => Detail::Json,
            (false, true) => Detail::Figures,
            (false, false) => Detail::Answer,
        }
    }
}

/// Prints the results of the run in a folder, with the path of the page if there is one.
pub fn print_results(results: &Results, folder: &Path, page: Option<&Path>, detail: Detail) {
    if detail == Detail::Json {
        let answer = RunAnswer::new(results);
        return print_lines(|out| store::write_json_with(results, Some(("answer", &answer)), out));
    }
    if detail == Detail::Figures {
        let table = pubgauge_report::table(results, width());
        print(&format!("{}\n\n", table.trim_end()));
    }
    let onward = Onward {
        page: page.map(|page| page.display().to_string()),
        next: next_command(results, folder, detail),
    };
    print(&pubgauge_report::screen(results, width(), &onward));
}

/// The command that is worth typing next, and what it tells.
fn next_command(
    results: &Results,
    folder: &Path,
    detail: Detail,
) -> Option<(String, &'static str)> {
    let answers = answers(results);
    let rows = answers.iter().flat_map(|answer| &answer.rows);
    // A server at an address may be somebody's service: nobody is invited to load it until it gives way. Nor is any name of
    // somebody else's results part of a command. The reference broker is no product.
    let is_name = |system: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_:.".contains(c);
        system.starts_with(|c: char| c.is_ascii_alphanumeric()) && system.chars().all(is_plain)
    };
    let started =
        rows.filter(|row| is_name(&row.system) && !REFERENCE_NAMES.contains(&row.system.as_str()));
    let carry = started.filter(|row| match (row.carries, row.carried) {
        (Some(carries), _) => carries == Carries::Yes,
        (None, carried) => carried.is_some_and(|carried| carried.bound == Bound::Exact),
    });
    let carry = names(carry.map(|row| row.system.as_str())).replace(", ", ",");
    if results.searches.is_empty() && !carry.is_empty() {
        let command = format!("pubgauge find --on {}", quoted(Path::new(&carry)));
        return Some((command, "how far each goes"));
    }
    let command = format!("pubgauge report {} -v", quoted(folder));
    (detail == Detail::Answer).then_some((command, "the figures behind this, and every reason"))
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
