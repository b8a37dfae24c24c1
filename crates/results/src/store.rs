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

mod disk;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use pubgauge_figures::model::{CriterionOutcome, FORMAT, Machine, Results, StudyInfo, Trial};
use pubgauge_place::{OpenFolder, PARTIAL};
use serde_json::Value;

use pubgauge_figures::search::{NotMeasured, Search};

use crate::difference::first_difference;
use serde::{Deserialize, Serialize};

use disk::{BUFFER, LOCK_FILE, MAX_FILE_BYTES, TRIAL_FILE, TRIALS, io_error, lock, read_json};
pub use disk::{StoreError, read_text};
use pubgauge_figures::claim::ClaimOutcome;
use pubgauge_figures::comparison::PairComparison;
use pubgauge_figures::histogram::{self, Interval};
use pubgauge_figures::network::NetworkInfo;

/// Name of the file other tools read.
pub const RESULTS_FILE: &str = "results.json";
/// Name of the file that says how a run was begun.
pub const INVOCATION_FILE: &str = "invocation.json";
const STUDY_FILE: &str = "study.toml";
const RESOLVED_FILE: &str = "study.resolved.json";

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
    pub machine: Machine,
    /// The study in short.
    pub study: StudyInfo,
}

/// A run that is being written.
#[derive(Debug)]
pub struct RunFolder {
    root: PathBuf,
    /// The folder itself; nothing is written into it by its path.
    place: OpenFolder,
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
        let place = OpenFolder::open_or_create(dir).map_err(io_error("create", dir, dir))?;
        if !only_begun(dir)? {
            return Err(StoreError::NotARun(dir.to_owned()));
        }
        let lock = lock(dir, &place)?;
        // Another pubgauge may have begun a run there before this one got the lock.
        if dir.join(RESULTS_FILE).exists() {
            return Err(StoreError::AlreadyARun(dir.to_owned()));
        }
        let mut resolved = serde_json::to_string_pretty(&run.study_resolved)
            .expect("a JSON value is always printable");
        resolved.push('\n');
        let results = Results {
            machine: run.machine,
            study: run.study,
            ..Results::default()
        };
        let mut folder = RunFolder {
            root: dir.to_owned(),
            place,
            results,
            _lock: lock,
        };
        folder.write(INVOCATION_FILE, &run.invocation)?;
        folder.trials()?;
        folder.write(STUDY_FILE, &run.study_toml)?;
        folder.write(RESOLVED_FILE, &resolved)?;
        folder.begin()?;
        Ok(folder)
    }

    /// From now on the run ends before all its trials have run, until [`RunFolder::finish`] says otherwise.
    fn begin(&mut self) -> Result<(), StoreError> {
        self.results.study.cut_off = true;
        self.write_results()
    }

    /// Writes a file of the run itself.
    fn write(&self, name: &str, text: &str) -> Result<(), StoreError> {
        let written = self.place.write(name, text);
        written.map_err(io_error("write", &self.root, &self.root.join(name)))
    }

    /// The folder of the trials.
    fn trials(&self) -> Result<OpenFolder, StoreError> {
        let trials = self.place.below(TRIALS);
        trials.map_err(io_error("open", &self.root, &self.root.join(TRIALS)))
    }

    /// Opens a run that was cut off. Finished trials are kept, files of an unfinished one removed. `decisive` gives of a
    /// plan what must be as it was when the run began; `machine` is that of now.
    ///
    /// # Errors
    /// [`StoreError::OtherStudy`] if `study_resolved` is not what the run began with,
    /// [`StoreError::OtherMachine`] if it began on another one, [`StoreError::NoRun`] if there is none.
    pub fn open_for_resume(
        dir: &Path,
        study_resolved: &Value,
        decisive: impl Fn(&Value) -> Value,
        machine: &Machine,
    ) -> Result<RunFolder, StoreError> {
        if !dir.join(RESULTS_FILE).exists() {
            return Err(StoreError::NoRun(dir.to_owned()));
        }
        let place = OpenFolder::open(dir).map_err(io_error("open", dir, dir))?;
        let lock = lock(dir, &place)?;
        let before: Value = read_json(&dir.join(RESOLVED_FILE))?;
        let (was, is) = (decisive(&before), decisive(study_resolved));
        if let Some(difference) = first_difference("plan", &was, &is) {
            return Err(StoreError::OtherStudy {
                run: dir.to_owned(),
                difference,
            });
        }
        let results = load(dir)?;
        if results.machine.processors() != machine.processors() {
            return Err(StoreError::OtherMachine {
                began: results.machine.processors(),
                now: machine.processors(),
            });
        }
        let mut folder = RunFolder {
            root: dir.to_owned(),
            place,
            results,
            _lock: lock,
        };
        let trials = folder.trials()?;
        let path = dir.join(TRIALS);
        let mut stored = Vec::new();
        for entry in fs::read_dir(trials.path()).map_err(io_error("read", dir, &path))? {
            let entry = entry.map_err(io_error("read", dir, &path))?;
            let name = entry.file_name();
            let path = path.join(&name);
            if name.as_encoded_bytes().starts_with(b".") {
                trials
                    .remove(&name)
                    .map_err(io_error("remove", dir, &path))?;
            } else {
                stored.push(read_json::<Trial>(&path.join(TRIAL_FILE))?);
            }
        }
        // Trials keep the order in which they ran; one that is missing in results.json was the
        // last.
        let known = folder.results.trials.iter().map(|trial| trial.id);
        let place: HashMap<u32, usize> = known.zip(0..).collect();
        let position = |id: u32| place.get(&id).copied().unwrap_or(usize::MAX);
        stored.sort_by_key(|trial| (position(trial.id), trial.id));
        folder.results.trials = stored;
        folder.begin()?;
        Ok(folder)
    }

    /// Replaces the outcomes of the claims of a stored run; all else stays.
    ///
    /// # Errors
    /// If there is no run, another process writes to it, or the disk is full.
    pub fn judge_again(
        dir: &Path,
        judge: impl FnOnce(&Results) -> Vec<ClaimOutcome>,
    ) -> Result<Results, StoreError> {
        let place = OpenFolder::open(dir).map_err(io_error("open", dir, dir))?;
        let lock = lock(dir, &place)?;
        let mut folder = RunFolder {
            root: dir.to_owned(),
            place,
            results: load(dir)?,
            _lock: lock,
        };
        folder.judged(judge(&folder.results));
        folder.write_results()?;
        Ok(folder.results)
    }

    /// Stores a finished trial: when this returns, it is on disk.
    ///
    /// # Errors
    /// [`StoreError::NoSpace`] on a full disk; everything stored before stays readable and
    /// nothing of this trial is left.
    pub fn append_trial(&mut self, trial: Trial, files: &TrialFiles) -> Result<(), StoreError> {
        let name = trial_name(trial.id);
        let path = self.root.join(TRIALS).join(&name);
        if path.symlink_metadata().is_ok() {
            return Err(StoreError::Duplicate(trial.id));
        }
        let names = files.logs.iter().chain(&files.configs);
        for (name, _) in names {
            checked(name)?;
        }
        let trials = self.trials()?;
        let partial = format!(".{name}{PARTIAL}");
        if let Err(error) = write_trial(&trials, &partial, &name, &trial, files) {
            // Makes room for the next attempt; the caller gets the first error, not one of this.
            let _ = trials.remove(&partial);
            return Err(io_error("write", &self.root, &path)(error));
        }
        let is_extra = trial.round > 0;
        self.results.trials.push(trial);
        if is_extra {
            let planned = &mut self.results.study.planned_trials;
            *planned = (*planned).max(self.results.trials.len() as u32);
        }
        self.write_results()
    }

    /// Stores the searches' results so far, the cells that cannot be measured because of them, and the number of
    /// trials planned by now, which searches change.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn store_plan(
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
        comparisons: Vec<PairComparison>,
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

    /// Sets for how many seconds cells of undecided claims are measured again; the next trial stores it.
    pub fn until_decided(&mut self, seconds: Option<f64>) {
        self.results.study.until_decided_s = seconds;
    }

    /// The results stored so far.
    pub fn results(&self) -> &Results {
        &self.results
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.root
    }

    fn write_results(&mut self) -> Result<(), StoreError> {
        let write = |file: &mut File| {
            let mut out = BufWriter::with_capacity(BUFFER, file);
            write_json(&self.results, &mut out)?;
            out.flush()
        };
        let path = self.root.join(RESULTS_FILE);
        let written = self.place.fill(RESULTS_FILE, write);
        written.map_err(io_error("write", &self.root, &path))?;
        let synced = self.place.sync();
        synced.map_err(io_error("sync", &self.root, &self.root))
    }
}

/// Writes a trial into a folder of its own, which gets its name when all is on the disk.
fn write_trial(
    trials: &OpenFolder,
    partial: &str,
    name: &str,
    trial: &Trial,
    files: &TrialFiles,
) -> io::Result<()> {
    trials.remove(partial)?;
    let place = trials.below(partial)?;
    let json = serde_json::to_string_pretty(trial).expect("a trial is plain data");
    place.write(TRIAL_FILE, json)?;
    for (name, log) in &files.logs {
        place.write(format!("{name}.hlog"), log)?;
    }
    if !files.configs.is_empty() {
        let system = place.below("system")?;
        for (name, text) in &files.configs {
            system.write(name, text)?;
        }
        system.sync()?;
    }
    place.sync()?;
    trials.rename(partial, name)?;
    trials.sync()
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
    match read_json::<Results>(&path) {
        Ok(results) if results.format == FORMAT => Ok(results),
        Ok(Results { format: found, .. }) => Err(StoreError::Format { path, found }),
        // A file of another format may well be no results of this one: its format is looked for alone.
        Err(error @ StoreError::Damaged { .. }) => match read_json::<Head>(&path) {
            Ok(Head { format: found }) if found != FORMAT => {
                Err(StoreError::Format { path, found })
            }
            _ => Err(error),
        },
        Err(error) => Err(error),
    }
}

/// Reads the study of the run in `dir` with all that its command changed, as a text.
///
/// # Errors
/// [`StoreError::Damaged`] if the file is damaged or has no study.
pub fn load_study(dir: &Path) -> Result<String, StoreError> {
    #[derive(Deserialize)]
    struct Planned {
        study: String,
    }
    read_json::<Planned>(&dir.join(RESOLVED_FILE)).map(|planned| planned.study)
}

/// The first bytes of every results file.
#[derive(Deserialize)]
struct Head {
    #[serde(default = "no_format")]
    format: String,
}

fn no_format() -> String {
    "none".to_owned()
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

/// Writes `results.json`: one line per trial, so that line tools and version control can work with it.
///
/// # Errors
/// If writing fails.
pub fn write_json(results: &Results, out: &mut dyn Write) -> io::Result<()> {
    write_json_with(results, None::<(&str, &())>, out)
}

/// As [`write_json`], with one member more before the trials.
///
/// # Errors
/// If writing fails.
pub fn write_json_with(
    results: &Results,
    more: Option<(&str, &impl Serialize)>,
    out: &mut dyn Write,
) -> io::Result<()> {
    fn write_part(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
        Ok(serde_json::to_writer(out, value)?)
    }
    fn member(out: &mut dyn Write, name: &str, value: &impl Serialize) -> io::Result<()> {
        write!(out, "\"{name}\": ")?;
        write_part(out, value)
    }
    fn list(out: &mut dyn Write, name: &str, parts: &[impl Serialize]) -> io::Result<()> {
        write!(out, ",\n\"{name}\": [")?;
        for (at, one) in parts.iter().enumerate() {
            out.write_all(if at == 0 { b"\n" } else { b",\n" })?;
            write_part(out, one)?;
        }
        out.write_all(b"\n]")
    }
    fn write_list(out: &mut dyn Write, name: &str, parts: &[impl Serialize]) -> io::Result<()> {
        if parts.is_empty() {
            return Ok(());
        }
        list(out, name, parts)
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
    out.write_all(b"{\n")?;
    member(out, "format", format)?;
    out.write_all(b",\n")?;
    member(out, "machine", machine)?;
    out.write_all(b",\n")?;
    member(out, "study", study)?;
    if let Some((name, value)) = more {
        out.write_all(b",\n")?;
        member(out, name, value)?;
    }
    list(out, "trials", trials)?;
    write_list(out, "searches", searches)?;
    write_list(out, "not_measured", not_measured)?;
    write_list(out, "claims", claims)?;
    write_list(out, "comparisons", comparisons)?;
    write_list(out, "networks", networks)?;
    out.write_all(b"\n}\n")
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
    let written = [INVOCATION_FILE, STUDY_FILE, RESOLVED_FILE, RESULTS_FILE];
    let ours = |name: &str| {
        let part = name.strip_prefix('.').and_then(|n| n.strip_suffix(PARTIAL));
        name == LOCK_FILE || written.contains(&part.unwrap_or(name))
    };
    for entry in fs::read_dir(dir).map_err(io_error("read", dir, dir))? {
        let path = entry.map_err(io_error("read", dir, dir))?.path();
        let name = path.file_name().unwrap_or_default();
        let is_ours = if name == TRIALS {
            fs::read_dir(&path).is_ok_and(|mut trials| trials.next().is_none())
        } else {
            name.to_str().is_some_and(ours)
        };
        if !is_ours {
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
