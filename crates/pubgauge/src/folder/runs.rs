//! A folder with runs: the page and the file over all of them.

use std::path::{Path, PathBuf};

use pubgauge_command::exit::{Ending, FINE, print};
use pubgauge_export::check::Check;
use pubgauge_figures::studies::{Studies, StudyOutcome};
use pubgauge_place::shell::quoted;
use pubgauge_report::studies::{collect_studies, outcome, table};
use pubgauge_results::store::{self, RESULTS_FILE, StoreError};

use super::list::{StudyList, write};
use crate::args::ReportArgs;
use crate::gate;
use crate::page::{width, write_page};

/// Names of page and file in the folder of several runs.
const PAGE: &str = "index.html";
const JSON: &str = "index.json";

/// Whether it is, or may become, a folder of several runs: it has no run of its own, but a list of
/// studies, or runs in folders below.
pub fn has_runs(dir: &Path) -> bool {
    !dir.join(RESULTS_FILE).exists()
        && (dir.join(super::list::FILE).exists() || !folders(dir).is_empty())
}

/// The folders below, by name.
pub fn folders_below(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    // A link leads out of the folder: what is there is none of these.
    let own = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut folders: Vec<PathBuf> = own.map(|entry| entry.path()).collect();
    folders.sort();
    folders
}

/// The folders below that have a run, by name.
fn folders(dir: &Path) -> Vec<PathBuf> {
    let below = folders_below(dir).into_iter();
    below
        .filter(|path| path.join(RESULTS_FILE).exists())
        .collect()
}

/// Checks that a folder is not a folder of several runs.
///
/// # Errors
/// If it is: the caller handles one run only.
pub fn one_run(dir: &Path) -> Result<(), Ending> {
    match (has_runs(dir), folders(dir).first()) {
        (true, Some(first)) => Err(Ending::bad_input(format!(
            "{} holds several runs, and this form is of one\n  hint: name one of them, for example {}; or take --format claims",
            dir.display(),
            quoted(first)
        ))),
        _ => Ok(()),
    }
}

/// Checks that a folder, of several that are named, is that of one run.
///
/// # Errors
/// If it holds several.
pub fn one_run_of(dir: &Path) -> Result<(), Ending> {
    match folders(dir).first().filter(|_| has_runs(dir)) {
        Some(_) => Err(Ending::bad_input(format!(
            "{} holds several runs\n  hint: name the folders of the runs: {}/*",
            dir.display(),
            quoted(dir)
        ))),
        None => Ok(()),
    }
}

/// Checks that a folder for several runs can be made: it does not exist, or is empty.
///
/// # Errors
/// If it is not empty.
pub fn can_be_made(out: &Path) -> Result<(), Ending> {
    if out.join(super::list::FILE).exists() || out.join(RESULTS_FILE).exists() {
        return Err(Ending::bad_input(StoreError::AlreadyARun(out.to_owned())));
    }
    match std::fs::read_dir(out) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(Ending::bad_input(StoreError::NotARun(out.to_owned()))),
        },
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(Ending::bad_input(format!("--out {}: {e}", out.display()))),
    }
}

/// Summaries of a run, or of several in folders below. A study that has not begun has no trials.
///
/// # Errors
/// If there is none, or one cannot be read.
pub fn studies(dir: &Path) -> Result<Studies, Ending> {
    if !has_runs(dir) {
        let results = store::load(dir).map_err(Ending::bad_input)?;
        return Ok(collect_studies(vec![outcome(&results, "")]));
    }
    let mut all = Vec::new();
    for folder in folders(dir) {
        let results = store::load(&folder).map_err(Ending::bad_input)?;
        let name = folder.file_name().unwrap_or_default();
        all.push(outcome(&results, &name.to_string_lossy()));
    }
    for listed in StudyList::read(dir)?.into_iter().flat_map(|l| l.studies) {
        if !all.iter().any(|study| study.folder == listed.folder) {
            all.push(StudyOutcome {
                study: listed.name,
                folder: listed.folder,
                cut_off: true,
                failed: Some("not begun".into()),
                ..StudyOutcome::default()
            });
        }
    }
    Ok(collect_studies(all))
}

/// Writes page and file over all runs in a folder; `failed` are studies and why they could not be carried through.
///
/// # Errors
/// If a run cannot be read, or they cannot be written.
pub fn write_index(dir: &Path, failed: &[(String, String)]) -> Result<(Studies, PathBuf), Ending> {
    let mut studies = studies(dir)?;
    for (name, why) in failed {
        for study in studies.studies.iter_mut().filter(|s| s.folder == *name) {
            study.failed = Some(why.clone());
        }
    }
    write(&dir.join(JSON), &studies.to_json())?;
    let page = write(&dir.join(PAGE), &pubgauge_report::index(&studies))?;
    Ok((studies, page))
}

/// Prints the studies and the path of the page.
pub fn print_studies(studies: &Studies, page: &Path, json: bool) {
    if json {
        print(&studies.to_json());
    } else {
        let table = table(studies, width());
        print(&format!("{}\npage: {}\n", table.trim_end(), page.display()));
    }
}

/// Rebuilds the page of each run and that over all.
pub fn report(args: &ReportArgs, dir: &Path) -> Result<i32, Ending> {
    gate::can_be_written(&args.gate)?;
    let mut checks = Vec::new();
    for folder in folders(dir) {
        let results = store::load(&folder).map_err(Ending::bad_input)?;
        write_page(&folder, &results)?;
        checks.extend(of_study(&name_of(&folder), gate::of_run(&results)));
    }
    let (studies, page) = write_index(dir, &[])?;
    print_studies(&studies, &page, args.output.json);
    gate::report(&args.gate, &name_of(dir), None, &checks)?;
    Ok(FINE)
}

/// The last part of a path.
pub fn name_of(path: &Path) -> String {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let whole = whole.canonicalize().unwrap_or(whole);
    let name = whole
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| "studies".into())
}

/// The checks of one study among those of the others.
pub fn of_study(name: &str, checks: Vec<Check>) -> impl Iterator<Item = Check> {
    checks.into_iter().map(move |check| Check {
        group: format!("{name}: {}", check.group),
        ..check
    })
}
