//! What a collector's folder holds, and where.
//!
//! ```text
//! DIR/date=2026-11-26/hour=07/NAME-FIRST-LAST.parquet   finished files
//! DIR/collectors/NAME/log/FIRST.log                     messages that are in no finished file yet
//! DIR/collectors/NAME/files.ndjson                      every finished file: length, checksum, numbers
//! DIR/collectors/NAME/sessions.json                     the brokers that may hold messages for it
//! DIR/collectors/NAME/lock                              held by the collector that runs
//! ```

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{FlockOperation, flock};

use crate::Error;
use crate::manifest::{self, Entry};

/// The folder in a data folder that holds all collectors' own.
pub const COLLECTORS: &str = "collectors";

/// Paths of one collector, which nobody else works with while this lives.
#[derive(Debug)]
pub struct Folder {
    /// The data folder.
    pub data: PathBuf,
    /// The collector's name.
    pub name: String,
    /// Held while the list of files or a partition's folder is changed, by one of several threads.
    changing: Mutex<()>,
    _lock: File,
}

impl Folder {
    /// Makes or takes the folders. `name` is the collector's; without one, it is the only collector that the data
    /// folder has, or a new name.
    ///
    /// # Errors
    /// A folder that cannot be made, several collectors to choose from, one that runs.
    pub fn open(data: &Path, name: Option<&str>) -> Result<Folder, Error> {
        let name = match name {
            Some(name) => name.to_owned(),
            None => match &names(data)?[..] {
                [] => fresh_name(),
                [one] => one.clone(),
                several => {
                    return Err(Error::input(
                        format!("{} has several collectors", data.display()),
                        format!("name one of them: {}", several.join(", ")),
                    ));
                }
            },
        };
        let own = data.join(COLLECTORS).join(&name);
        let log = own.join("log");
        std::fs::create_dir_all(&log).map_err(|error| unusable(&log, &error))?;
        let path = own.join("lock");
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        let lock = lock.map_err(|error| unusable(&path, &error))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            Error::input(
                format!("the collector {name:?} of {} runs already", data.display()),
                "two collectors that share a folder need names of their own",
            )
        })?;
        for folder in [&log, &own, &data.join(COLLECTORS), data] {
            sync_folder(folder).map_err(|error| unusable(folder, &error))?;
        }
        Ok(Folder {
            data: data.to_owned(),
            name,
            changing: Mutex::default(),
            _lock: lock,
        })
    }

    fn own(&self) -> PathBuf {
        self.data.join(COLLECTORS).join(&self.name)
    }

    /// The folder of the segments.
    pub fn log(&self) -> PathBuf {
        self.own().join("log")
    }

    /// The list of finished files.
    pub fn manifest(&self) -> PathBuf {
        self.own().join("files.ndjson")
    }

    /// Keeps other threads from changing the list of files and folders of partitions.
    pub fn hold(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends to the list of finished files, and returns when that is on disk.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn list(&self, entries: &[Entry]) -> io::Result<()> {
        let _held = self.hold();
        manifest::append(&self.manifest(), entries)
    }

    /// Removes a finished file, and the folders of partitions that are empty then.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove_file(&self, below: &str) -> io::Result<()> {
        let _held = self.hold();
        let path = self.data.join(below);
        std::fs::remove_file(&path)?;
        for folder in path
            .ancestors()
            .skip(1)
            .take_while(|folder| *folder != self.data)
        {
            if std::fs::remove_dir(folder).is_err() {
                // Others are in it.
                return sync_folder(folder);
            }
        }
        sync_folder(&self.data)
    }

    /// The brokers at which the collector has a session.
    pub fn sessions(&self) -> PathBuf {
        self.own().join("sessions.json")
    }
}

fn unusable(path: &Path, error: &io::Error) -> Error {
    Error::input(
        format!("{}: {error}", path.display()),
        "the data folder must be one that this user can write to",
    )
}

/// Whether a collector of this name may hold its folder at present.
pub fn is_running(data: &Path, name: &str) -> bool {
    let lock = data.join(COLLECTORS).join(name).join("lock");
    let open = File::open(lock);
    open.is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockShared).is_err())
}

/// Names of the collectors that have worked in a data folder.
///
/// # Errors
/// If it cannot be read. One that is not there has none.
pub fn names(data: &Path) -> Result<Vec<String>, Error> {
    let folder = data.join(COLLECTORS);
    let entries = match std::fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(|error| unusable(&folder, &error))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| unusable(&folder, &error))?;
        if entry.path().is_dir() {
            names.extend(entry.file_name().into_string());
        }
    }
    names.sort();
    Ok(names)
}

/// The host's name and six random digits.
fn fresh_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let usable = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
    let host: String = host
        .trim()
        .split('.')
        .next()
        .unwrap_or("")
        .chars()
        .filter(usable)
        .take(40)
        .collect();
    format!("{host}-{:06x}", random() & 0xff_ffff)
}

/// A random number.
pub fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    // The standard library seeds each `RandomState` from the operating system's random numbers.
    std::hash::RandomState::new().build_hasher().finish()
}

/// Whether a name can stand in file names, client identifiers and partitions.
pub fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && name.len() <= 64 && name.chars().all(fits) && !name.starts_with('.')
}

/// Puts the entries of a folder on disk: files made, renamed or removed in it.
///
/// # Errors
/// If the folder cannot be opened or synced.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Writes a whole file or none: to another name, synced, renamed, and the folder synced.
///
/// # Errors
/// If it cannot be written; the other name is removed.
pub fn replace(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".tmp");
    let partial = PathBuf::from(partial);
    let filled = File::create(&partial)
        .and_then(|mut file| fill(&mut file).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&partial, path));
    if filled.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    filled?;
    path.parent().map_or(Ok(()), sync_folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_keeps_its_name_and_its_folder() {
        let data = tempfile::tempdir().unwrap();
        let first = Folder::open(data.path(), None).unwrap();
        assert!(is_name(&first.name), "{}", first.name);
        let name = first.name.clone();
        assert!(is_running(data.path(), &name));
        let again = Folder::open(data.path(), None).unwrap_err().to_string();
        assert!(
            again.contains("runs already") && again.contains(&name),
            "{again}"
        );
        drop(first);
        assert!(!is_running(data.path(), &name));
        assert_eq!(Folder::open(data.path(), None).unwrap().name, name);
        let other = Folder::open(data.path(), Some("other")).unwrap();
        assert_eq!(other.name, "other");
        let several = Folder::open(data.path(), None).unwrap_err().to_string();
        assert!(
            several.contains("several") && several.contains(&name),
            "{several}"
        );
    }

    #[test]
    fn a_file_is_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "old").unwrap();
        let failed = replace(&path, |_| Err(io::Error::other("no")));
        assert!(failed.is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        replace(&path, |file| io::Write::write_all(file, b"new")).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
