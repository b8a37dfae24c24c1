//! The folder that files are merged in, and what becomes of it.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use pubgauge_place::{Access, OpenFolder, is_refused, take_owner};
use rustix::fs::{FlockOperation, flock};

use super::{CompactOptions, Steps};
use crate::Error;
use crate::file_name::is_folder;
use crate::files::each_partition;
use crate::folder::{self, Changing};
use crate::manifest;

/// The file that is locked while files are merged, in the folder of all collectors.
const LOCK: &str = ".compacting";

/// A collector that has worked in the data folder.
pub struct Member {
    pub name: String,
    pub own: OpenFolder,
    pub is_running: bool,
}

/// All of them.
fn members(data: &Path, collectors: &OpenFolder) -> Result<Vec<Member>, Error> {
    let names = folder::names(data)?.into_iter();
    let member = |name: String| {
        let own = collectors.inside(&name);
        let own = own.map_err(|error| folder::unusable(collectors.display_path(), &error))?;
        let is_running = folder::is_running(data, &name);
        Ok(Member {
            name,
            own,
            is_running,
        })
    };
    names.map(member).collect()
}

/// Names of folders that are to take a partition's place end so, behind the partition's; they begin with a dot.
const END: &str = ".compacting";

/// The name of the folder that is to take a partition's place.
pub fn aside_name(partition: &str) -> String {
    format!(".{partition}{END}")
}

/// Whether a name is one of a folder that is to take a partition's place, or has lost it.
fn is_aside(name: &str) -> bool {
    let of = name
        .strip_prefix('.')
        .and_then(|name| name.strip_suffix(END));
    of.is_some_and(is_folder)
}

/// The folder, and how files are merged in it.
pub struct Work<'a> {
    pub top: OpenFolder,
    pub changing: Changing,
    /// Whether whoever works in the folder holds it while changing lists and partitions.
    pub is_respected: bool,
    pub members: Vec<Member>,
    pub options: CompactOptions,
    pub stop: &'a AtomicBool,
    pub steps: Steps<'a>,
    /// Nobody else merges in the folder.
    _lock: File,
}

impl<'a> Work<'a> {
    /// # Errors
    /// If it is no data folder, or files are being merged there already.
    pub fn open(
        data: &Path,
        options: CompactOptions,
        (stop, steps): (&'a AtomicBool, Steps<'a>),
    ) -> Result<Work<'a>, Error> {
        let (top, collectors) = folder::open_data(data)?;
        let failed = |error: io::Error| failed(data, &error);
        let lock = collectors.lock_file(LOCK).map_err(failed)?;
        // Another user may be the next one.
        take_owner(&lock, &collectors).map_err(failed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            Error::input(
                format!("files of {} are being merged already", data.display()),
                "wait until the other one has ended",
            )
        })?;
        Ok(Work {
            is_respected: Changing::is_there(&collectors),
            changing: Changing::open(&collectors).map_err(failed)?,
            members: members(data, &collectors)?,
            top: top.with_access(Access::Owner),
            options,
            stop,
            steps,
            _lock: lock,
        })
    }

    /// Finishes what was cut off: lists what was merged, and removes folders that are in no partition's place.
    pub fn finish_earlier(&self) -> io::Result<()> {
        let _held = self.changing.hold()?;
        let around = self.around_asides()?;
        for folders in &around {
            // An exchange may not be on the disk yet.
            folder::open_below(&self.top, folders)?.sync()?;
        }
        let is_there = |file: &manifest::FileEntry| folder::holds(&self.top, file);
        for member in &self.members {
            let (entries, _) = manifest::read(&member.own)?;
            let merged = manifest::unlisted_merges(&entries, &is_there);
            if !merged.is_empty() {
                manifest::append(&member.own, &merged)?;
            }
        }
        for folders in &around {
            let folder = folder::open_below(&self.top, folders)?;
            for name in asides_in(&folder)? {
                folder.remove(&name)?;
            }
        }
        Ok(())
    }

    /// Paths of the folders that hold such as are in no partition's place.
    fn around_asides(&self) -> io::Result<Vec<PathBuf>> {
        let mut around = Vec::new();
        let mut look = |folder: &OpenFolder| -> io::Result<()> {
            if !asides_in(folder)?.is_empty() {
                let path = folder.display_path().strip_prefix(self.top.display_path());
                around.push(path.unwrap_or(Path::new("")).to_owned());
            }
            Ok(())
        };
        look(&self.top)?;
        // Links in place of partitions are nobody's to merge.
        each_partition(&self.top, &mut look)?;
        Ok(around)
    }
}

/// The error of a data folder that merging does not go on in.
pub fn failed(data: &Path, error: &io::Error) -> Error {
    if is_refused(error) {
        folder::unusable(data, error)
    } else {
        Error::failed(format!("{}: {error}", data.display()))
    }
}

/// Names of folders in this one that are in no partition's place.
fn asides_in(folder: &OpenFolder) -> io::Result<Vec<OsString>> {
    let mut names = folder.names()?;
    names.retain(|name| name.to_str().is_some_and(is_aside));
    Ok(names)
}
