//! A collector's folder, and where things are in it.
//!
//! ```text
//! DIR/date=2026-11-26/hour=07/NAME-FIRST-LAST.parquet   finished files
//! DIR/collectors/NAME/log/FIRST.log                     messages that are in no finished file yet
//! DIR/collectors/NAME/files.ndjson                      every finished file: length, checksum, numbers
//! DIR/collectors/NAME/sessions.json                     the brokers that may hold messages for it
//! DIR/collectors/NAME/lock                              held by the collector that runs
//! DIR/collectors/.changing                              held while lists and partitions are changed
//! ```

mod changing;

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pubgauge_place::{Access, OpenFolder, is_refused};
use rustix::fs::{FlockOperation, flock};

use crate::Error;
use crate::file_name::{fresh_mark, is_mark};
use crate::log::segment;
use crate::manifest::{self, Entry, FileEntry, FilePlace, LIST};
use pubgauge_net::random::random;

pub(crate) use changing::{Changing, Held};

/// The folder in a data folder that holds all collectors' own.
pub const COLLECTORS: &str = "collectors";

/// The folder of a collector's segments, in its own.
pub const LOG: &str = "log";

/// The file of a collector's sessions, in its own folder.
pub const SESSIONS: &str = "sessions.json";

/// The file of a folder's mark, in a collector's own folder.
const MARK: &str = "mark";

/// Most bytes of that file.
const MARK_LEN: u64 = 64;

/// Folders of one collector, which nobody else works with while this lives.
#[derive(Debug)]
pub struct Folder {
    /// The data folder's path.
    pub data: PathBuf,
    /// The collector's name.
    pub name: String,
    /// The mark of the folder's first start; none where a version without marks has begun it.
    mark: Option<String>,
    top: OpenFolder,
    own: OpenFolder,
    log: Arc<OpenFolder>,
    changing: Changing,
    _lock: File,
}

impl Folder {
    /// Makes or takes the folders. `name` is the collector's; without one, it is the only collector that the data
    /// folder has, or a new name.
    ///
    /// # Errors
    /// A folder that cannot be made, several collectors to choose from, one that runs; links, pipes and devices where
    /// folders and files are to be.
    pub fn open(data: &Path, name: Option<&str>, access: Access) -> Result<Folder, Error> {
        let top = OpenFolder::made_for(data, access).map_err(|error| unusable(data, &error))?;
        let name = match name {
            Some(name) => name.to_owned(),
            None => match &names_in(&top)?[..] {
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
        let within = |folder: &OpenFolder, name: &str| {
            let made = folder.below(name);
            made.map_err(|error| unusable(folder.display_path(), &error))
        };
        let collectors = within(&top, COLLECTORS)?;
        let own = within(&collectors, &name)?;
        let log = within(&own, LOG)?;
        let lock = own.lock_file(LOCK);
        let lock = lock.map_err(|error| unusable(own.display_path(), &error))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            Error::input(
                format!("the collector {name:?} of {} runs already", data.display()),
                "two collectors that share a folder need names of their own",
            )
        })?;
        for folder in [&log, &own, &collectors, &top] {
            folder
                .sync()
                .map_err(|error| unusable(folder.display_path(), &error))?;
        }
        let changing = Changing::open(&collectors);
        let changing = changing.map_err(|error| unusable(collectors.display_path(), &error))?;
        let mark = mark(&own, &log).map_err(|error| unusable(own.display_path(), &error))?;
        Ok(Folder {
            data: data.to_owned(),
            name,
            mark,
            top,
            own,
            log: Arc::new(log),
            changing,
            _lock: lock,
        })
    }

    /// Beginning of the names of its files: the collector's name, and the mark of the folder's first start. Numbers of
    /// messages begin with 1 in each folder, and files of several folders may meet in one store.
    pub fn stem(&self) -> String {
        match &self.mark {
            Some(mark) => format!("{}.{mark}", self.name),
            None => self.name.clone(),
        }
    }

    /// The data folder.
    pub fn top(&self) -> &OpenFolder {
        &self.top
    }

    /// The collector's own folder.
    pub fn collectors_folder(&self) -> &OpenFolder {
        &self.own
    }

    /// The folder of the segments.
    pub fn log(&self) -> Arc<OpenFolder> {
        self.log.clone()
    }

    /// Keeps other threads and processes from changing lists of files and folders of partitions.
    ///
    /// # Errors
    /// If another process keeps this one from it.
    pub(crate) fn hold(&self) -> io::Result<Held<'_>> {
        self.changing.hold()
    }

    /// Appends to the list of finished files, and returns when that is on disk.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn list(&self, entries: &[Entry]) -> io::Result<()> {
        let _held = self.hold()?;
        manifest::append(&self.own, entries)
    }

    /// Opens a finished file.
    ///
    /// # Errors
    /// If it is not there, or is no regular file, or lies behind a link.
    pub fn file(&self, place: &FilePlace<'_>) -> io::Result<File> {
        file_of(&self.top, place)
    }

    /// Removes a finished file, and the folders of partitions that are empty then.
    ///
    /// # Errors
    /// If it cannot be removed, or lies behind a link.
    pub fn remove_file(&self, place: &FilePlace<'_>) -> io::Result<()> {
        let _held = self.hold()?;
        let mut open: Vec<OpenFolder> = Vec::new();
        for name in &place.folders {
            let within = open.last().unwrap_or(&self.top);
            open.push(within.inside(name)?);
        }
        if let Some(innermost) = open.last() {
            innermost.remove_file(place.name)?;
        }
        for name in place.folders.iter().rev() {
            let emptied = open.pop();
            let above = open.last().unwrap_or(&self.top);
            if above.remove_empty(name).is_err() {
                // Others are in it.
                return emptied.map_or(Ok(()), |folder| folder.sync());
            }
        }
        self.top.sync()
    }
}

/// Opens a data folder that collectors have worked in, and the folder of all of them.
///
/// # Errors
/// If it is none, or a link stands in place of a folder.
pub(crate) fn open_data(data: &Path) -> Result<(OpenFolder, OpenFolder), Error> {
    let no_folder = || {
        Error::input(
            format!("{} is no data folder of a collector", data.display()),
            format!("expected the folder of `to`, or of --to: it has a folder `{COLLECTORS}`"),
        )
    };
    let top = OpenFolder::open(data).map_err(|_| no_folder())?;
    let collectors = match top.inside(COLLECTORS) {
        Err(error) if is_refused(&error) => return Err(unusable(data, &error)),
        inside => inside.map_err(|_| no_folder())?,
    };
    Ok((top, collectors))
}

/// Opens a finished file of a data folder: of its folders' names and its own.
///
/// # Errors
/// If it is not there, or is no regular file, or lies behind a link.
pub(crate) fn file_of(top: &OpenFolder, place: &FilePlace<'_>) -> io::Result<File> {
    open_below(top, &place.folders)?.file(place.name)
}

/// Opens the folder that names lead to, each of which is in the one before; the first is in the data folder.
///
/// # Errors
/// If one is not there, or is a link.
pub(crate) fn open_below(
    top: &OpenFolder,
    names: impl IntoIterator<Item: AsRef<OsStr>>,
) -> io::Result<OpenFolder> {
    let mut folder = top.try_clone()?;
    for name in names {
        folder = folder.inside(name)?;
    }
    Ok(folder)
}

/// Whether a finished file is in the data folder.
pub(crate) fn holds(top: &OpenFolder, file: &FileEntry) -> bool {
    file.file_place()
        .is_ok_and(|place| file_of(top, &place).is_ok())
}

/// The mark of a collector's folder, which is made at its first start. A folder that a version without marks has begun
/// goes on without one: what that version made is made again under the same names.
fn mark(own: &OpenFolder, log: &OpenFolder) -> io::Result<Option<String>> {
    match own.read(MARK, MARK_LEN) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            if is_mark(text.trim_end()) {
                return Ok(Some(text.trim_end().to_owned()));
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let has_list = own.names()?.iter().any(|name| name == LIST);
            if has_list || !segment::list(log)?.is_empty() {
                return Ok(None);
            }
        }
        Err(error) => return Err(error),
    }
    let mark = fresh_mark();
    own.write(MARK, format!("{mark}\n"))?;
    own.sync()?;
    Ok(Some(mark))
}

/// The file that a collector holds while it works.
const LOCK: &str = "lock";

/// The error of a data folder that cannot be worked with.
pub(crate) fn unusable(path: &Path, error: &io::Error) -> Error {
    let hint = if is_refused(error) {
        "somebody else may have put it there: remove it, or name another data folder"
    } else {
        "the data folder must be one that this user can write to"
    };
    Error::input(format!("{}: {error}", path.display()), hint)
}

/// Whether a collector of this name may hold its folder at present.
pub fn is_running(data: &Path, name: &str) -> bool {
    let open =
        OpenFolder::open(data).and_then(|top| top.inside(COLLECTORS)?.inside(name)?.file(LOCK));
    open.is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockShared).is_err())
}

/// Names of the collectors that have worked in a data folder.
///
/// # Errors
/// If it cannot be read, or a link stands in place of a collector's folder. One that is not there has none.
pub fn names(data: &Path) -> Result<Vec<String>, Error> {
    match OpenFolder::open(data) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(unusable(data, &error)),
        Ok(top) => names_in(&top),
    }
}

fn names_in(top: &OpenFolder) -> Result<Vec<String>, Error> {
    let all = match top.inside(COLLECTORS) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(|error| unusable(top.display_path(), &error))?,
    };
    let found = all
        .names()
        .map_err(|error| unusable(all.display_path(), &error))?;
    let mut names = Vec::new();
    for name in found.into_iter().filter_map(|name| name.into_string().ok()) {
        match all.inside(&name) {
            Ok(_) => names.push(name),
            // A file that lies there is none.
            Err(error) if is_refused(&error) && all.file(&name).is_ok() => {}
            Err(error) => return Err(unusable(all.display_path(), &error)),
        }
    }
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

/// Whether a name can stand in file names, client identifiers and partitions.
pub fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && name.len() <= 64 && name.chars().all(fits) && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_name::is_stem_of;

    #[test]
    fn a_folder_keeps_the_mark_of_its_first_start_and_an_older_one_has_none() {
        let all = tempfile::tempdir().unwrap();
        let open = |folder: &str| {
            Folder::open(&all.path().join(folder), Some("c"), Access::Owner).unwrap()
        };
        let stem = open("one").stem();
        assert!(is_stem_of(&stem, "c") && stem != "c", "{stem}");
        assert_eq!(open("one").stem(), stem);
        let other = open("other").stem();
        assert_ne!(other, stem);
        assert!(is_stem_of("c", "c"));
        let cut = &stem[..stem.len() - 1];
        for wrong in ["d", "cc", "c.", "c.d", cut] {
            assert!(!is_stem_of(wrong, "c"), "{wrong}");
        }
        // A folder that was begun by a version without marks.
        let own = all.path().join("older/collectors/c");
        std::fs::create_dir_all(own.join("log")).unwrap();
        std::fs::write(own.join("log").join(segment::file_name(1)), "").unwrap();
        assert_eq!(open("older").stem(), "c");
        // A damaged mark is replaced.
        let mark = all.path().join("one/collectors/c/mark");
        std::fs::write(&mark, "x").unwrap();
        let again = open("one").stem();
        assert!(is_stem_of(&again, "c") && again != stem, "{again}");
    }

    #[test]
    fn a_collector_keeps_its_name_and_its_folder() {
        let data = tempfile::tempdir().unwrap();
        let first = Folder::open(data.path(), None, Access::Owner).unwrap();
        assert!(is_name(&first.name), "{}", first.name);
        let name = first.name.clone();
        assert!(is_running(data.path(), &name));
        let again = Folder::open(data.path(), None, Access::Owner)
            .unwrap_err()
            .to_string();
        assert!(
            again.contains("runs already") && again.contains(&name),
            "{again}"
        );
        drop(first);
        assert!(!is_running(data.path(), &name));
        assert_eq!(
            Folder::open(data.path(), None, Access::Owner).unwrap().name,
            name
        );
        let other = Folder::open(data.path(), Some("other"), Access::Owner).unwrap();
        assert_eq!(other.name, "other");
        let several = Folder::open(data.path(), None, Access::Owner)
            .unwrap_err()
            .to_string();
        assert!(
            several.contains("several") && several.contains(&name),
            "{several}"
        );
    }
}
