//! The folder of a run.
//!
//! ```text
//! run/
//!   results.json            everything but the raw histograms; rewritten after every trial
//!   invocation.json         how the run was begun
//!   study.toml              the study as given
//!   study.resolved.json     the plan it became; `--resume` compares it
//!   trials/0007/trial.json  one finished trial
//!   trials/0007/*.hlog      its histograms, HdrHistogram V2 interval logs
//!   trials/0007/system/*    the configuration each system was started with
//! ```
//!
//! A trial is first written to a hidden folder, synced, and then renamed into place: it is stored completely
//! or not at all. `results.json` is replaced the same way, so that a reader never sees a part of it. The
//! trials' own files are authoritative; [`RunFolder::open_for_resume`] rebuilds `results.json` from them. A
//! new run writes `results.json` last of its own files: without it nothing has been measured, and the run
//! begins again in the same folder.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::claim::ClaimOutcome;
use crate::comparison::Comparison;
use crate::difference::first_difference;
use crate::histogram::{self, Interval, LogError};
use crate::model::{CriterionOutcome, FORMAT, Machine, READ_FORMATS, Results, StudyInfo, Trial};
use crate::network::NetworkInfo;
use crate::search::{NotMeasured, Search};
use crate::shell::quoted;

/// Name of the file other tools read.
pub const RESULTS_FILE: &str = "results.json";
/// Name of the file that says how a run was begun.
pub const INVOCATION_FILE: &str = "invocation.json";
const STUDY_FILE: &str = "study.toml";
const RESOLVED_FILE: &str = "study.resolved.json";
/// Name of [`RESULTS_FILE`] while it is being written.
const PARTIAL_FILE: &str = ".results.json.partial";
const TRIALS: &str = "trials";
const TRIAL_FILE: &str = "trial.json";
const LOCK_FILE: &str = ".lock";
/// Size limit of a file of a run that is read, bytes.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// What went wrong with the folder of a run, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder holds files that are not of a run.
    #[error(
        "{0} is not empty and no run of pubgauge\n  hint: name a folder that does not exist yet, or an empty one"
    )]
    NotARun(PathBuf),
    /// The folder already holds a run.
    #[error("{0} already holds a run\n  hint: go on with it: pubgauge run --resume {quoted}; or name another folder", quoted = quoted(.0))]
    AlreadyARun(PathBuf),
    /// There is nothing to read.
    #[error(
        "{0} holds no run: there is no results.json in it\n  hint: name the folder that `pubgauge run` printed"
    )]
    NoRun(PathBuf),
    /// Another pubgauge writes to it.
    #[error(
        "{0} is in use by another pubgauge\n  hint: wait until it is done, or name another folder"
    )]
    InUse(PathBuf),
    /// The disk is full, or a quota or file size limit is reached.
    #[error(
        "no space left for {path}: {source}\n  hint: what was measured before is complete and readable in {run}; make room and go on with: pubgauge run --resume {quoted}",
        quoted = quoted(run)
    )]
    NoSpace {
        /// The file that could not be written.
        path: PathBuf,
        /// The run.
        run: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Reading or writing failed.
    #[error("cannot {what} {path}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file was written by a newer pubgauge.
    #[error(
        "{path} has the format {found:?}, and this pubgauge reads {FORMAT:?}\n  hint: {}",
        newer_hint(found)
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: String,
    },
    /// The file is damaged.
    #[error(
        "{path} is damaged: {why}\n  hint: the trials' own files beside it may still be whole: {TRIALS}/*/{TRIAL_FILE}"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Line, column and the parser's message.
        why: String,
    },
    /// The study is not the one the run began with.
    #[error(
        "the study is not the one this run began with: {difference}\n  hint: `pubgauge run --resume {quoted}` alone takes study and flags from there; or start a new run",
        quoted = quoted(run)
    )]
    OtherStudy {
        /// The run.
        run: PathBuf,
        /// The first difference, as a path into the resolved study.
        difference: String,
    },
    /// A trial was stored twice.
    #[error("trial {0} is stored already")]
    Duplicate(u32),
    /// A file name that is not within the trial's folder.
    #[error("{0:?} cannot be the name of a trial's file")]
    FileName(String),
    /// A histogram could not be encoded or read.
    #[error("{path}: {source}")]
    Log {
        /// The file.
        path: PathBuf,
        /// What was wrong.
        source: LogError,
    },
}

fn newer_hint(found: &str) -> &'static str {
    match format_version(found) {
        Some(_) => "it was written by a newer version; update pubgauge to read it",
        None => "it is no results file of pubgauge",
    }
}

fn format_version(format: &str) -> Option<u32> {
    format.strip_prefix("pubgauge-results/")?.parse().ok()
}

/// The files of a trial apart from `trial.json`.
#[derive(Clone, Debug, Default)]
pub struct TrialFiles {
    /// Logs of histograms ([`histogram::write_log`]), by name without extension, for example `latency`.
    pub logs: Vec<(String, String)>,
    /// Configuration of the system and whatever else it was started with: name and text.
    pub configs: Vec<(String, String)>,
}

/// The facts that a run begins with.
#[derive(Clone, Debug)]
pub struct NewRun {
    /// Arguments and circumstances of the command that began it, as JSON.
    pub invocation: String,
    /// The study file as given; empty for a run from flags.
    pub study_toml: String,
    /// The plan, with everything that distinguishes this run from another.
    pub study_resolved: Value,
    /// The machine.
    pub machine: Machine,
    /// The study in short.
    pub study: StudyInfo,
}

/// A run that is being written.
#[derive(Debug)]
pub struct RunFolder {
    root: PathBuf,
    results: Results,
    /// Locks the folder as long as it is written to.
    _lock: File,
}

impl RunFolder {
    /// Begins a run in `dir`, which must not exist, be empty, or hold only the files of a run that ended
    /// before its first `results.json`.
    ///
    /// # Errors
    /// [`StoreError::NotARun`] or [`StoreError::AlreadyARun`] if it holds something else, otherwise
    /// the error of the file system.
    pub fn create(dir: &Path, run: NewRun) -> Result<RunFolder, StoreError> {
        if dir.join(RESULTS_FILE).exists() {
            return Err(StoreError::AlreadyARun(dir.to_owned()));
        }
        fs::create_dir_all(dir).map_err(io_error("create", dir, dir))?;
        if !only_begun(dir)? {
            return Err(StoreError::NotARun(dir.to_owned()));
        }
        let lock = lock(dir)?;
        // Another pubgauge may have begun a run there before this one got the lock.
        if dir.join(RESULTS_FILE).exists() {
            return Err(StoreError::AlreadyARun(dir.to_owned()));
        }
        write_synced(dir, &dir.join(INVOCATION_FILE), run.invocation.as_bytes())?;
        let trials = dir.join(TRIALS);
        fs::create_dir_all(&trials).map_err(io_error("create", dir, &trials))?;
        write_synced(dir, &dir.join(STUDY_FILE), run.study_toml.as_bytes())?;
        let mut resolved = serde_json::to_string_pretty(&run.study_resolved)
            .expect("a JSON value is always printable");
        resolved.push('\n');
        write_synced(dir, &dir.join(RESOLVED_FILE), resolved.as_bytes())?;
        let results = Results {
            machine: run.machine,
            study: run.study,
            ..Results::default()
        };
        let mut folder = RunFolder {
            root: dir.to_owned(),
            results,
            _lock: lock,
        };
        folder.results.study.cut_off = true;
        folder.write_results()?;
        Ok(folder)
    }

    /// Opens a run that was cut off. Finished trials are kept, files of an unfinished one removed.
    ///
    /// # Errors
    /// [`StoreError::OtherStudy`] if `study_resolved` is not what the run began with,
    /// [`StoreError::NoRun`] if there is none.
    pub fn open_for_resume(dir: &Path, study_resolved: &Value) -> Result<RunFolder, StoreError> {
        if !dir.join(RESULTS_FILE).exists() {
            return Err(StoreError::NoRun(dir.to_owned()));
        }
        let lock = lock(dir)?;
        let before: Value = read_json(&dir.join(RESOLVED_FILE))?;
        if let Some(difference) = first_difference("study", &before, study_resolved) {
            return Err(StoreError::OtherStudy {
                run: dir.to_owned(),
                difference,
            });
        }
        let mut results = load(dir)?;
        let trials = dir.join(TRIALS);
        let mut stored = Vec::new();
        for entry in fs::read_dir(&trials).map_err(io_error("read", dir, &trials))? {
            let path = entry.map_err(io_error("read", dir, &trials))?.path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if name.starts_with('.') {
                fs::remove_dir_all(&path).map_err(io_error("remove", dir, &path))?;
            } else {
                stored.push(read_json::<Trial>(&path.join(TRIAL_FILE))?);
            }
        }
        // Trials keep the order in which they ran; one that is missing in results.json was the
        // last.
        let position = |id: u32| {
            results
                .trials
                .iter()
                .position(|trial| trial.id == id)
                .unwrap_or(usize::MAX)
        };
        stored.sort_by_key(|trial| (position(trial.id), trial.id));
        results.trials = stored;
        results.study.cut_off = true;
        let mut folder = RunFolder {
            root: dir.to_owned(),
            results,
            _lock: lock,
        };
        folder.write_results()?;
        Ok(folder)
    }

    /// Stores a finished trial: when this returns, it is on disk.
    ///
    /// # Errors
    /// [`StoreError::NoSpace`] on a full disk; everything stored before stays readable and
    /// nothing of this trial is left.
    pub fn append_trial(&mut self, trial: Trial, files: &TrialFiles) -> Result<(), StoreError> {
        let trials = self.root.join(TRIALS);
        let name = trial_name(trial.id);
        let place = trials.join(&name);
        if place.exists() {
            return Err(StoreError::Duplicate(trial.id));
        }
        let partial = trials.join(format!(".{name}.partial"));
        if partial.exists() {
            fs::remove_dir_all(&partial).map_err(io_error("remove", &self.root, &partial))?;
        }
        if let Err(error) = self.write_trial(&partial, &place, &trial, files) {
            // Makes room for the next attempt; the caller gets the first error, not one of this.
            let _ = fs::remove_dir_all(&partial);
            return Err(error);
        }
        self.results.trials.push(trial);
        self.write_results()
    }

    fn write_trial(
        &self,
        partial: &Path,
        place: &Path,
        trial: &Trial,
        files: &TrialFiles,
    ) -> Result<(), StoreError> {
        let root = &self.root;
        make_dir(root, partial)?;
        let json = serde_json::to_string_pretty(trial).expect("a trial is plain data");
        write_synced(root, &partial.join(TRIAL_FILE), json.as_bytes())?;
        for (name, log) in &files.logs {
            let path = partial.join(format!("{}.hlog", checked(name)?));
            write_synced(root, &path, log.as_bytes())?;
        }
        if !files.configs.is_empty() {
            let system = partial.join("system");
            make_dir(root, &system)?;
            for (name, text) in &files.configs {
                write_synced(root, &system.join(checked(name)?), text.as_bytes())?;
            }
            sync_dir(root, &system)?;
        }
        sync_dir(root, partial)?;
        fs::rename(partial, place).map_err(io_error("rename", root, partial))?;
        sync_dir(root, &root.join(TRIALS))
    }

    /// Stores the searches' results so far, the cells that cannot be measured because of them, and the number of
    /// trials planned by now, which searches change.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn tell(
        &mut self,
        searches: Vec<Search>,
        not_measured: Vec<NotMeasured>,
        planned_trials: u32,
    ) -> Result<(), StoreError> {
        self.results.searches = searches;
        self.results.not_measured = not_measured;
        self.results.study.planned_trials = planned_trials;
        self.write_results()
    }

    /// Stores the comparisons' results so far, and the number of trials planned by now, which changes where
    /// pairs are measured until they are precise enough.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn compared(
        &mut self,
        comparisons: Vec<Comparison>,
        planned_trials: u32,
    ) -> Result<(), StoreError> {
        self.results.comparisons = comparisons;
        self.results.study.planned_trials = planned_trials;
        self.write_results()
    }

    /// Ends the run: stores the outcomes of its criteria, and whether planned trials are missing
    /// (`cut_off`).
    ///
    /// # Errors
    /// The error of the file system.
    pub fn finish(&mut self, criteria: Vec<CriterionOutcome>) -> Result<(), StoreError> {
        self.results.study.criteria = criteria;
        self.results.study.cut_off =
            self.results.trials.len() < self.results.study.planned_trials as usize;
        self.write_results()
    }

    /// Sets the networks that trials run on; the next trial stores them.
    pub fn on_networks(&mut self, networks: Vec<NetworkInfo>) {
        self.results.networks = networks;
    }

    /// Sets the outcomes of the claims; [`RunFolder::finish`] stores them.
    pub fn judged(&mut self, claims: Vec<ClaimOutcome>) {
        self.results.claims = claims;
    }

    /// What has been stored so far.
    pub fn results(&self) -> &Results {
        &self.results
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.root
    }

    fn write_results(&mut self) -> Result<(), StoreError> {
        let path = self.root.join(RESULTS_FILE);
        let temporary = self.root.join(PARTIAL_FILE);
        let outcome = write_synced(&self.root, &temporary, to_json(&self.results).as_bytes())
            .and_then(|()| {
                fs::rename(&temporary, &path).map_err(io_error("rename", &self.root, &temporary))
            })
            .and_then(|()| sync_dir(&self.root, &self.root));
        if outcome.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        outcome
    }
}

/// Reads `results.json` of the run in `dir`.
///
/// # Errors
/// [`StoreError::NoRun`], [`StoreError::Format`] for a file of a newer version,
/// [`StoreError::Damaged`] with line and column.
pub fn load(dir: &Path) -> Result<Results, StoreError> {
    let path = dir.join(RESULTS_FILE);
    if !path.exists() {
        return Err(StoreError::NoRun(dir.to_owned()));
    }
    let value: Value = read_json(&path)?;
    let found = value
        .get("format")
        .and_then(Value::as_str)
        .unwrap_or("none")
        .to_owned();
    if !READ_FORMATS.contains(&found.as_str()) {
        return Err(StoreError::Format { path, found });
    }
    let mut results: Results =
        serde_json::from_value(value).map_err(|why| StoreError::Damaged {
            path,
            why: why.to_string(),
        })?;
    // An older run that is resumed is written in the newer format.
    results.format = FORMAT.to_owned();
    for trial in &mut results.trials {
        // Format 1 had no field for it.
        if trial.extra.remove("system_in_client") == Some(Value::Bool(true)) {
            trial.circumstances.system_in_client = true;
        }
    }
    Ok(results)
}

/// Reads a histogram log of a stored trial, for example `latency`; empty if the trial has none of
/// that name.
///
/// # Errors
/// [`StoreError::Log`] if it is damaged.
pub fn load_log(dir: &Path, trial: u32, name: &str) -> Result<Vec<Interval>, StoreError> {
    let path = dir
        .join(TRIALS)
        .join(trial_name(trial))
        .join(format!("{}.hlog", checked(name)?));
    let text = match read_text(&path, MAX_FILE_BYTES) {
        Ok(text) => text,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => {
            return Err(StoreError::Io {
                what: "read",
                path,
                source,
            });
        }
    };
    histogram::read_log(&text).map_err(|source| StoreError::Log { path, source })
}

/// `results.json` as it is written to disk: one line per trial, so that line tools and version
/// control can work with it.
pub fn to_json(results: &Results) -> String {
    fn part(value: &impl serde::Serialize) -> String {
        serde_json::to_string(value).expect("results are plain data")
    }
    // Destructured by name: a new field of `Results` does not compile without a line here.
    let Results {
        format,
        machine,
        study,
        trials,
        searches,
        not_measured,
        claims,
        comparisons,
        networks,
    } = results;
    let mut text = format!(
        "{{\n\"format\": {},\n\"machine\": {},\n\"study\": {},\n\"trials\": [",
        part(format),
        part(machine),
        part(study)
    );
    let list = |text: &mut String, parts: Vec<String>| {
        for (at, part) in parts.iter().enumerate() {
            text.push_str(if at == 0 { "\n" } else { ",\n" });
            text.push_str(part);
        }
        text.push_str("\n]");
    };
    list(&mut text, trials.iter().map(part).collect());
    let lists = [
        ("searches", searches.iter().map(part).collect()),
        ("not_measured", not_measured.iter().map(part).collect()),
        ("claims", claims.iter().map(part).collect()),
        (
            "comparisons",
            comparisons.iter().map(part).collect::<Vec<_>>(),
        ),
        ("networks", networks.iter().map(part).collect()),
    ];
    for (name, parts) in lists {
        if !parts.is_empty() {
            text.push_str(&format!(",\n\"{name}\": ["));
            list(&mut text, parts);
        }
    }
    text.push_str("\n}\n");
    text
}

fn trial_name(id: u32) -> String {
    format!("{id:04}")
}

/// Returns a file name that stays inside its folder, or an error.
fn checked(name: &str) -> Result<&str, StoreError> {
    let bad = name.is_empty()
        || name.starts_with('.')
        || name.contains(['/', '\\', '\0'])
        || name.len() > 200;
    if bad {
        Err(StoreError::FileName(name.to_owned()))
    } else {
        Ok(name)
    }
}

/// Whether `dir` holds only what a run writes before its `results.json`.
fn only_begun(dir: &Path) -> Result<bool, StoreError> {
    let written_first = [
        LOCK_FILE,
        INVOCATION_FILE,
        STUDY_FILE,
        RESOLVED_FILE,
        PARTIAL_FILE,
    ];
    for entry in fs::read_dir(dir).map_err(io_error("read", dir, dir))? {
        let path = entry.map_err(io_error("read", dir, dir))?.path();
        let name = path.file_name().unwrap_or_default();
        let ours = match name == TRIALS {
            true => fs::read_dir(&path).is_ok_and(|mut trials| trials.next().is_none()),
            false => written_first.iter().any(|ours| name == *ours),
        };
        if !ours {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether `dir` holds a run that ended before its first `results.json`.
///
/// # Errors
/// If the folder cannot be read.
pub fn ended_before_it_began(dir: &Path) -> Result<bool, StoreError> {
    let begun = dir.join(RESULTS_FILE).exists();
    Ok(!begun && dir.join(LOCK_FILE).exists() && only_begun(dir)?)
}

fn lock(dir: &Path) -> Result<File, StoreError> {
    let path = dir.join(LOCK_FILE);
    // No links are followed: whoever may write here could have made one to a file of another user.
    let file = File::options()
        .write(true)
        .create(true)
        .custom_flags(libc::O_NOFOLLOW)
        .open(&path)
        .map_err(io_error("create", dir, &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(StoreError::InUse(dir.to_owned())),
        Err(fs::TryLockError::Error(source)) => Err(StoreError::Io {
            what: "lock",
            path,
            source,
        }),
    }
}

/// Reads a file of at most `most` bytes of text.
///
/// # Errors
/// If it cannot be read, is longer, or is no regular file: a device may never end, a pipe have no writer.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let mut options = File::options();
    let file = options
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    if !file.metadata()?.is_file() {
        let why = "it is a device, a pipe or a folder, not a file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let mut text = String::new();
    if file.take(most + 1).read_to_string(&mut text)? as u64 > most {
        let why = format!("it is longer than {most} bytes, which is the limit");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(text)
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, StoreError> {
    let text = match read_text(path, MAX_FILE_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            return Err(StoreError::Damaged {
                path: path.to_owned(),
                why: error.to_string(),
            });
        }
        read => read.map_err(io_error("read", path, path))?,
    };
    serde_json::from_str(&text).map_err(|why| StoreError::Damaged {
        path: path.to_owned(),
        why: why.to_string(),
    })
}

fn make_dir(run: &Path, path: &Path) -> Result<(), StoreError> {
    fs::create_dir(path).map_err(io_error("create", run, path))
}

fn write_synced(run: &Path, path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let mut file = File::create(path).map_err(io_error("create", run, path))?;
    file.write_all(bytes)
        .and_then(|()| file.sync_all())
        .map_err(io_error("write", run, path))
}

fn sync_dir(run: &Path, path: &Path) -> Result<(), StoreError> {
    File::open(path)
        .and_then(|dir| dir.sync_all())
        .map_err(io_error("sync", run, path))
}

fn io_error<'a>(
    what: &'static str,
    run: &'a Path,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> StoreError + 'a {
    move |source| {
        let full = matches!(
            source.raw_os_error(),
            Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG)
        );
        if full {
            StoreError::NoSpace {
                path: path.to_owned(),
                run: run.to_owned(),
                source,
            }
        } else {
            StoreError::Io {
                what,
                path: path.to_owned(),
                source,
            }
        }
    }
}
