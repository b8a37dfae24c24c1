//! Finished files that were merged.

use std::collections::BTreeSet;
use std::path::PathBuf;

use bytes::Bytes;
use pubgauge_place::OpenFolder;

use super::{Verified, file};
use crate::file_name::name_parts;
use crate::folder::{file_of, holds};
use crate::manifest::{self, Entry, FileEntry, FilePlace, Files};

/// How often the file is looked for that another one was merged into: it may be merged itself meanwhile.
const LOOKS: u32 = 3;

/// Tells which of the files that were merged are there again. All of them are in the list: they go to `owned`.
pub fn find_again(
    top: &OpenFolder,
    (entries, listed): (&[Entry], &Files<'_>),
    paths: &[PathBuf],
    verified: &mut Verified,
    owned: &mut BTreeSet<PathBuf>,
) {
    for entry in entries {
        let Entry::Merging { into, from } = entry else {
            continue;
        };
        if !listed.contains_key(into.path.as_str()) {
            continue;
        }
        for path in from {
            let shown = top.display_path().join(path);
            // It was merged since the paths were listed, or it is there again.
            let is_again = paths.binary_search(&shown).is_ok()
                && FilePlace::parse(path).is_ok_and(|place| file_of(top, &place).is_ok());
            if is_again {
                let what = format!(
                    "is there again, although it was merged into {}: readers find its messages twice",
                    into.path
                );
                verified.fault(path, what);
            }
            owned.insert(shown);
        }
    }
}

/// The file that another one was merged into since the list was read, and its content.
pub fn find_since(
    top: &OpenFolder,
    own: &OpenFolder,
    gone: &FileEntry,
) -> Option<(FileEntry, Bytes)> {
    let (folder, stem) = folder_and_stem(gone)?;
    (0..LOOKS).find_map(|_| {
        let (entries, _) = manifest::read(own).ok()?;
        let files = manifest::files(&entries, &|file| holds(top, file));
        let mut others = files.into_values().map(|(file, _)| file);
        let into = others.find(|other| {
            other.path != gone.path
                && other.first <= gone.first
                && other.last >= gone.last
                && folder_and_stem(other) == Some((folder, stem))
        })?;
        let bytes = file::content(top, into).ok()??;
        Some((into.clone(), bytes))
    })
}

/// Where a file lies, and what its name begins with: what is merged has both in common.
fn folder_and_stem(file: &FileEntry) -> Option<(&str, &str)> {
    let (folder, name) = file.path.rsplit_once('/')?;
    let (stem, ..) = name_parts(name)?;
    Some((folder, stem))
}
