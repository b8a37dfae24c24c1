//! The folder of a run: its path, and its contents before the first trial.

use std::path::{Path, PathBuf};

use pubgauge_campaign::{Prepared, decisive, machine, new_run, resolved};
use pubgauge_command::exit::Ending;
use pubgauge_results::store::{self, RunFolder, StoreError};
use pubgauge_runner::trial::now;

use crate::args::RunArgs;
use crate::calibrate::Calibration;
use crate::invocation::Invocation;

/// Makes the folder of a run, or opens that of a resumed one.
pub(super) fn open_folder(
    args: &RunArgs,
    prepared: &Prepared,
    invocation: &Invocation,
    calibration: Option<&Calibration>,
) -> Result<RunFolder, Ending> {
    let plan = &prepared.plan;
    let resolved = resolved(plan);
    let again = args.resume.as_ref().filter(|dir| {
        // A run that ended before it began starts anew in its folder.
        store::ended_before_it_began(dir).unwrap_or(false)
    });
    if let (Some(dir), None) = (&args.resume, again) {
        let alone = args.selection.is_empty();
        let resumed = RunFolder::open_for_resume(dir, &resolved, decisive, &machine(None));
        return resumed.map_err(|error| match error {
            StoreError::OtherStudy { difference, .. } if alone => Ending::bad_input(format!(
                "this pubgauge plans the study of {} otherwise than the one that began it: {difference}\n  hint: go on with that version of pubgauge, or start a new run",
                dir.display()
            )),
            error => Ending::bad_input(error),
        });
    }
    let calibration = calibration.and_then(|c| serde_json::to_value(c).ok());
    let run = new_run(prepared, invocation.to_json(), calibration);
    let Some(dir) = again.or(args.out.as_ref()) else {
        let dir = default_folder(&plan.name)?;
        return RunFolder::create(&dir, run).map_err(|error| {
            let _ = std::fs::remove_dir(&dir);
            Ending::bad_input(error)
        });
    };
    RunFolder::create(dir, run).map_err(Ending::bad_input)
}

/// Makes a folder of its own for a run, `results/STUDY-TIME`; with a number after it if another run
/// has begun in the same second.
pub fn default_folder(study: &str) -> Result<PathBuf, Ending> {
    let name: String = study
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "-_.".contains(c) {
                c
            } else {
                '-'
            }
        })
        .collect();
    let time = now().strftime("%Y%m%dT%H%M%S");
    let (parent, name) = (Path::new("results"), format!("{name}-{time}"));
    new_folder(parent, &name).map_err(|e| {
        let path = parent.join(name);
        let hint = "name another folder with --out";
        Ending::bad_input(format!(
            "cannot make {}: {e}\n  hint: {hint}",
            path.display()
        ))
    })
}

/// Makes a folder of that name, or with a number after it if there is one.
fn new_folder(parent: &Path, name: &str) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(parent)?;
    let mut dir = parent.join(name);
    let mut number = 1;
    loop {
        // Of two runs that begin at once, only one can create it.
        match std::fs::create_dir(&dir) {
            Ok(()) => return Ok(dir),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                number += 1;
                dir = parent.join(format!("{name}-{number}"));
            }
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_begin_in_one_second_have_a_folder_each() {
        let place = tempfile::tempdir().unwrap();
        let parent = place.path().join("results");
        let made: Vec<PathBuf> = std::thread::scope(|scope| {
            let begin = || new_folder(&parent, "first-look-20261121T025917").unwrap();
            let runs: Vec<_> = (0..8).map(|_| scope.spawn(begin)).collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect()
        });
        let mut distinct = made.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), 8, "{made:?}");
        assert!(made.contains(&parent.join("first-look-20261121T025917")));
    }
}
