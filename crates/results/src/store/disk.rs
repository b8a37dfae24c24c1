//! Files of a run on the disk: read within a limit, written and synced, locked; and what may go wrong with them.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use pubgauge_figures::histogram::LogError;
use pubgauge_figures::model::FORMAT;
use pubgauge_place::OpenFolder;
use pubgauge_place::shell::quoted;

/// Folder of the trials.
pub(super) const TRIALS: &str = "trials";
/// A trial, in a folder of its own.
pub(super) const TRIAL_FILE: &str = "trial.json";
/// Locked by the process that writes to the run.
pub(super) const LOCK_FILE: &str = ".lock";
/// Size limit of a file of a run that is read, bytes.
pub(super) const MAX_FILE_BYTES: u64 = 1 << 30;

/// Bytes that are read from a file at once, or gathered for one.
pub(super) const BUFFER: usize = 256 << 10;

/// An error of the folder of a run, with what to do about it.
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
        run: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// Reading or writing failed.
    #[error("cannot {what} {path}: {source}")]
    Io {
        /// The operation that failed.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The file was written by another version of pubgauge.
    #[error(
        "{path} has the format {found:?}, and this pubgauge reads {FORMAT:?}\n  hint: {}",
        format_hint(found)
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
        run: PathBuf,
        /// The first difference, as a path into the resolved study.
        difference: String,
    },
    /// The run began on other processors, whose figures are not to be mixed with those of this machine.
    #[error(
        "the run began with {began}, and this machine has {now}\n  hint: go on where it began, or start a new run"
    )]
    OtherMachine {
        /// Number and model of the processors at the beginning.
        began: String,
        /// Number and model of the processors now.
        now: String,
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
        /// The error.
        source: LogError,
    },
}

fn format_hint(found: &str) -> &'static str {
    match format_version(found) {
        Some(found) if Some(found) < format_version(FORMAT) => {
            "it was written by an older version; read it with that one, or run the study again"
        }
        Some(_) => "it was written by a newer version; update pubgauge to read it",
        None => "it is no results file of pubgauge",
    }
}

fn format_version(format: &str) -> Option<u32> {
    format.strip_prefix("pubgauge-results/")?.parse().ok()
}

pub(super) fn lock(dir: &Path, place: &OpenFolder) -> Result<File, StoreError> {
    let path = dir.join(LOCK_FILE);
    let file = place
        .lock_file(LOCK_FILE)
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

/// Opens a file of at most `most` bytes for reading.
///
/// # Errors
/// If it cannot be opened, is longer, or is no regular file: a device may never end, a pipe have no writer.
fn open(path: &Path, most: u64) -> io::Result<File> {
    let mut options = File::options();
    let file = options
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        let why = "it is a device, a pipe or a folder, not a file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    if metadata.len() > most {
        return Err(too_long(most));
    }
    Ok(file)
}

fn too_long(most: u64) -> io::Error {
    let why = format!("it is longer than {most} bytes, which is the limit");
    io::Error::new(io::ErrorKind::FileTooLarge, why)
}

/// Reads a file of at most `most` bytes of text.
///
/// # Errors
/// If it cannot be read, is longer, or is no regular file.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let mut text = String::new();
    // It may grow meanwhile, and a file of the kernel's has no length.
    let read = open(path, most)?.take(most + 1).read_to_string(&mut text)?;
    if read as u64 > most {
        return Err(too_long(most));
    }
    Ok(text)
}

/// Reads JSON as it comes from the disk: neither the text nor a tree of its values is held beside what it becomes, which
/// was 30 bytes for each byte of the text.
pub(super) fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, StoreError> {
    let file = open(path, MAX_FILE_BYTES).map_err(io_error("read", path, path))?;
    let reader = BufReader::with_capacity(BUFFER, file.take(MAX_FILE_BYTES));
    serde_json::from_reader(reader).map_err(|why| match why.classify() {
        serde_json::error::Category::Io => io_error("read", path, path)(why.into()),
        _ => StoreError::Damaged {
            path: path.to_owned(),
            why: why.to_string(),
        },
    })
}

pub(super) fn io_error<'a>(
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
