//! The folder that files are merged in, and what becomes of it.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use pubgauge_place::{Access, OpenFolder, is_refused, take_owner};
use rustix::fs::{FlockOperation, flock};

use super::plan::{self, Member, Partition};
use super::swap::{self, Aside};
use super::{Compacted, Options, Step, Steps, write};
use crate::Error;
use crate::files::each_partition;
use crate::folder::{self, Changing};
use crate::manifest;

/// The file that is locked while files are merged, in the folder of all collectors.
const LOCK: &str = ".compacting";

/// The folder that a partition was until now. A reader may have opened it, and be about to list what is in it.
pub struct Former {
    /// The folders around it.
    around: Vec<String>,
    name: String,
    pub since: Instant,
}

/// What merging works with.
pub struct Work<'a> {
    pub top: OpenFolder,
    pub changing: Changing,
    /// Whether whoever works in the folder holds it while changing lists and partitions.
    pub is_respected: bool,
    pub members: Vec<Member>,
    pub options: Options,
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
        options: Options,
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
            members: plan::members(data, &collectors)?,
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
                let path = folder.shown().strip_prefix(self.top.shown());
                around.push(path.unwrap_or(Path::new("")).to_owned());
            }
            Ok(())
        };
        look(&self.top)?;
        // What stands in place of partitions is nobody's to merge.
        each_partition(&self.top, &mut look)?;
        Ok(around)
    }

    /// Merges files of a partition; the folder that it was, if something was merged.
    pub fn merge(
        &self,
        partition: &Partition,
        compacted: &mut Compacted,
    ) -> io::Result<Option<Former>> {
        let Some((name, around)) = partition.folders.split_last() else {
            return Ok(None);
        };
        let above = folder::open_below(&self.top, around)?;
        let aside = Aside::begin(&above, name, self.steps)?;
        let merged = write::all(self, partition, &aside, compacted)
            .and_then(|groups| aside.take_place(self, &groups).map(|()| groups));
        let has_place = aside.has_place();
        let former = Former {
            around: around.to_vec(),
            name: aside.name,
            since: Instant::now(),
        };
        match merged {
            Ok(groups) if !groups.is_empty() => {
                groups.iter().for_each(|group| compacted.add(group));
                Ok(Some(former))
            }
            // What is not listed yet may not be on the disk: the next compaction finishes it.
            Err(error) if has_place => Err(error),
            other => {
                self.remove(&former)?;
                other.map(|_| None)
            }
        }
    }

    /// Removes the folder that a partition was. The next compaction does so, where this one does not get there.
    pub fn remove(&self, former: &Former) -> io::Result<()> {
        let around = folder::open_below(&self.top, &former.around)?;
        around.remove(&former.name)?;
        around.sync()?;
        (self.steps)(Step::Removed);
        Ok(())
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
    names.retain(|name| name.to_str().is_some_and(swap::is_aside));
    Ok(names)
}
