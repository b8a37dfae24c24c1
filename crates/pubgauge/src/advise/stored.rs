//! Stored runs that an advice may count, as they lie in folders.

use std::path::{Path, PathBuf};

use pubgauge_advice::{Adviser, Candidate, Here, NotCounted, StoredRun, SystemHere};
use pubgauge_campaign::{Prepared, SystemsHere, machine, specs};
use pubgauge_command::exit::Ending;
use pubgauge_command::options::Output;
use pubgauge_figures::Results;
use pubgauge_quantities::lists::unique;
use pubgauge_quantities::shown::{self, so_many};
use pubgauge_results::store::{self, RESULTS_FILE};
use pubgauge_study::{Plan, PlanOptions, Study};
use pubgauge_testbed::Origin;

use super::promises::Promised;
use crate::folder;

/// The file of a fleet in the folder of its advice.
pub(super) const FLEET_FILE: &str = "fleet.toml";
/// More runs than this are not read: name fewer folders.
const MOST_RUNS: usize = 1_000;
/// Bytes of results that are held at a time; runs beyond these do not count.
const MOST_BYTES: u64 = 512 << 20;

/// Stored runs, and those that could not be read.
#[derive(Default)]
pub(super) struct StoredRuns {
    pub runs: Vec<StoredRun>,
    pub not_counted: Vec<NotCounted>,
}

/// The folders of runs: these themselves, those below them, and those below these, as an advice has them.
///
/// # Errors
/// A folder without any, or too many.
pub(super) fn run_folders(dirs: &[PathBuf]) -> Result<Vec<PathBuf>, Ending> {
    let mut found: Vec<(PathBuf, PathBuf)> = Vec::new();
    for dir in dirs {
        let mut of_dir = vec![dir.clone()];
        let below = folder::folders_below(dir);
        of_dir.extend(below.iter().flat_map(|one| folder::folders_below(one)));
        of_dir.extend(below);
        of_dir.retain(|one| one.join(RESULTS_FILE).exists());
        if of_dir.is_empty() {
            return Err(Ending::bad_input(format!(
                "--stored {}: no run is in this folder\n  hint: name the folder of a run, of an advice, or one that holds such: --stored results",
                dir.display()
            )));
        }
        let real = |one: PathBuf| (one.canonicalize().unwrap_or_else(|_| one.clone()), one);
        found.extend(of_dir.into_iter().map(real));
    }
    // A folder that is named twice is there once, by its first name.
    let places = unique(found.iter().map(|(place, _)| place.clone()));
    if places.len() > MOST_RUNS {
        return Err(Ending::bad_input(format!(
            "--stored: {} runs are in these folders, and {MOST_RUNS} are read at the most\n  hint: name the folders of those that are about this fleet",
            places.len()
        )));
    }
    let named = places.into_iter().filter_map(|place| {
        let name = found.iter().find(|(other, _)| *other == place)?;
        Some(name.1.clone())
    });
    let mut folders: Vec<PathBuf> = named.collect();
    folders.sort();
    Ok(folders)
}

/// Reads runs that have trials of one of the candidates.
pub(super) fn read_runs(
    folders: &[PathBuf],
    candidates: &[Candidate],
    here: &SystemsHere<'_>,
) -> StoredRuns {
    let mut stored = StoredRuns::default();
    let mut held = 0;
    for dir in folders {
        let folder = dir.display().to_string();
        let bytes = dir.join(RESULTS_FILE).metadata().map_or(0, |of| of.len());
        if held + bytes > MOST_BYTES {
            let most = shown::bytes(MOST_BYTES);
            let because = format!(
                "with the runs before it, it has more than {most} of results: name fewer folders"
            );
            stored
                .not_counted
                .push(NotCounted::new(&folder, None, because));
            continue;
        }
        let results = match store::load(dir) {
            Ok(results) => results,
            Err(error) => {
                let because = error.to_string();
                let because = because.lines().next().unwrap_or_default();
                let told = NotCounted::new(&folder, None, because);
                stored.not_counted.push(told);
                continue;
            }
        };
        let is_asked = |system: &str| candidates.iter().any(|one| one.system == system);
        let mut systems = results.trials.iter().map(|trial| &trial.system.name);
        if !systems.any(|system| is_asked(system)) {
            continue;
        }
        held += bytes;
        match plan(dir, &results, here) {
            Ok(plan) => stored.runs.push(StoredRun {
                together: shared_folder(dir),
                folder,
                results,
                plan,
            }),
            Err(because) => {
                let told = NotCounted::new(&folder, None, because);
                stored.not_counted.push(told);
            }
        }
    }
    stored
}

/// The folder of the advice that a run was a step of, or its own.
fn shared_folder(dir: &Path) -> String {
    let place = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let above = place
        .parent()
        .filter(|above| above.join(FLEET_FILE).exists());
    above.unwrap_or(&place).display().to_string()
}

/// The plan that a run followed.
fn plan(dir: &Path, results: &Results, here: &SystemsHere<'_>) -> Result<Plan, String> {
    let not_known = |why: String| {
        let why = why.lines().next().unwrap_or_default().to_owned();
        format!("what was measured is not known: {why}")
    };
    let text = store::load_study(dir).map_err(|error| not_known(error.to_string()))?;
    let study = Study::parse("its study", &text, Path::new(""));
    let study = study.map_err(|error| not_known(error.to_string()))?;
    // Recordings and identities may have changed since.
    if study.reads_files() {
        return Err("its load is from files".to_owned());
    }
    let mut known = here.known();
    for trial in &results.trials {
        let name = &trial.system.name;
        let plain = pubgauge_campaign::split(name).0.to_owned();
        known
            .all
            .extend((!known.all.contains(&plain)).then_some(plain));
    }
    let options = PlanOptions {
        known,
        ..PlanOptions::default()
    };
    study
        .plan(&options)
        .map_err(|error| not_known(error.to_string()))
}

/// Counts what stands for trials of this advice, and says how much that is.
///
/// # Errors
/// When the fleet's own study is none.
pub(super) fn count(
    adviser: &mut Adviser,
    now: &Here,
    stored: StoredRuns,
    output: Output,
) -> Result<(), Ending> {
    let counted = adviser.count_stored(now, &stored.runs, stored.not_counted);
    counted.map_err(|error| Ending::not_valid(error.to_string()))?;
    let runs = so_many(stored.runs.len() as u64, "stored run");
    let counted = so_many(adviser.stored_count() as u64, "trial");
    output.remark(&format!("{runs}: {counted} of them counted"));
    Ok(())
}

/// This machine and its systems as they are now.
pub(super) fn systems_now(prepared: &Prepared, promised: &Promised) -> Here {
    let each = promised.keeping.iter().map(|candidate| {
        let name = &candidate.system;
        let mut trials = prepared.plan.trials.iter();
        let trial = trials.find(|trial| trial.system == *name);
        let chosen = prepared.systems.get(name);
        SystemHere {
            name: name.clone(),
            version: promised.version(name),
            client: trial.map_or(Vec::new(), |trial| prepared.mappings(trial)),
            is_shipped: chosen.is_some_and(|of| of.file.origin == Origin::Embedded),
        }
    });
    Here {
        machine: machine(None),
        systems: each.collect(),
        criteria: specs(prepared),
    }
}
