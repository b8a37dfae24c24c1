//! The folder that takes a partition's place.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::MetadataExt;

use pubgauge_place::{OpenFolder, take_after};
use rustix::fs::fstat;

use super::group::MergedFile;
use super::work::{Work, aside_name};
use super::{CompactStep, Steps};
use crate::file_name::is_folder;
use crate::manifest::{self, Entry};

/// A folder that is to take a partition's place.
pub struct Aside<'a> {
    /// The folder that both are in.
    above: &'a OpenFolder,
    /// The partition's name.
    place: &'a str,
    pub name: String,
    /// The partition.
    pub partition: OpenFolder,
    pub folder: OpenFolder,
    steps: Steps<'a>,
}

impl<'a> Aside<'a> {
    /// Makes it, with the partition's owner and permissions.
    ///
    /// # Errors
    /// If it cannot be made, the partition has others in it, or the file system cannot exchange two folders.
    pub fn begin(above: &'a OpenFolder, place: &'a str, steps: Steps<'a>) -> io::Result<Aside<'a>> {
        let name = aside_name(place);
        let partition = above.inside(place)?;
        for name in partition.names()? {
            if is_folder(&name.to_string_lossy()) && partition.inside(&name).is_ok() {
                let what = format!("beside files it has folders, such as {name:?}");
                return Err(io::Error::other(what));
            }
        }
        above.remove(&name)?;
        let folder = above.below(&name)?;
        steps(CompactStep::Begun);
        can_exchange(&folder)?;
        take_after(&folder, &partition).map_err(|error| {
            let what =
                format!("its owner would lose it ({error}); merge as the user that collects");
            io::Error::new(error.kind(), what)
        })?;
        Ok(Aside {
            above,
            place,
            name,
            partition,
            folder,
            steps,
        })
    }

    /// Whether it has taken the partition's place.
    pub fn has_place(&self) -> bool {
        let identity =
            |folder: &OpenFolder| fstat(folder).map(|about| (about.st_dev, about.st_ino));
        let there = self
            .above
            .inside(self.place)
            .and_then(|there| Ok(identity(&there)?));
        // Where it cannot be told, nothing is removed.
        !there.is_ok_and(|there| identity(&self.partition) == Ok(there))
    }

    /// Puts it in the partition's place, with all files that are there and were not merged.
    ///
    /// # Errors
    /// If the partition has changed, or cannot be exchanged.
    pub fn take_place(&self, work: &Work<'_>, groups: &[MergedFile]) -> io::Result<()> {
        if groups.is_empty() {
            return Ok(());
        }
        let _held = work.changing.hold()?;
        for group in groups {
            let member = &work.members[group.member];
            if manifest::is_moved(&manifest::read(&member.own)?.0) {
                let what = format!("{} moves its files to a store now", member.name);
                return Err(io::Error::other(what));
            }
        }
        self.link_others(groups)?;
        self.folder.sync()?;
        (self.steps)(CompactStep::Linked);
        for group in groups {
            let from = group.sources.iter();
            let merging = Entry::Merging {
                into: group.into.clone(),
                from: from.map(|source| source.entry.path.clone()).collect(),
            };
            manifest::append(&work.members[group.member].own, &[merging])?;
            (self.steps)(CompactStep::Announced);
        }
        self.above.exchange(self.place, &self.name)?;
        (self.steps)(CompactStep::Exchanged);
        self.above.sync()?;
        for group in groups {
            let path = group.into.path.clone();
            manifest::append(&work.members[group.member].own, &[Entry::Merged { path }])?;
            (self.steps)(CompactStep::Listed);
        }
        Ok(())
    }

    /// Has all files of the partition that were not merged stand in it, too.
    fn link_others(&self, groups: &[MergedFile]) -> io::Result<()> {
        let merged = groups.iter().flat_map(|group| &group.sources);
        let mut merged: BTreeMap<&OsStr, (u64, u64)> = merged
            .map(|source| (source.name.as_ref(), source.identity))
            .collect();
        for name in self.partition.names()? {
            let shown = name.to_string_lossy();
            if let Some(identity) = merged.remove(&*name) {
                let about = self.partition.file(&name)?.metadata()?;
                if (about.dev(), about.ino()) != identity {
                    return Err(io::Error::other(format!("{shown} was replaced meanwhile")));
                }
            } else {
                // Refused, if it is no regular file. One that is being written goes on and gets its name in the folder
                // that is there then.
                self.partition.file(&name)?;
                self.partition.link_into(&name, &self.folder)?;
            }
        }
        if let Some(name) = merged.into_keys().next() {
            let name = name.to_string_lossy();
            return Err(io::Error::other(format!("{name} was removed meanwhile")));
        }
        Ok(())
    }
}

/// # Errors
/// If the file system cannot exchange two folders.
fn can_exchange(within: &OpenFolder) -> io::Result<()> {
    let (one, other) = (".one", ".other");
    within.below(one)?;
    within.below(other)?;
    within.exchange(one, other).map_err(|error| {
        let what = format!(
            "its file system cannot exchange two folders at once ({error}), without which a reader could find messages twice or not at all"
        );
        io::Error::new(error.kind(), what)
    })?;
    within.remove_empty(one)?;
    within.remove_empty(other)
}
