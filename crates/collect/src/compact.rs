//! Many small finished files as few larger ones, while collectors work on.
//!
//! Files of a partition become one, in the order of their numbers. A folder with the merged files, and with all others
//! of the partition, is made beside it under a name that no reader looks for, and takes its place at once
//! (`renameat2(2)` with `RENAME_EXCHANGE`): whoever lists the partition finds each message once, whenever that is. What the
//! list of files says of merged ones depends on which of the two folders is there (`manifest::files`), until that is
//! listed, too.

mod group;
mod merge;
mod plan;
mod swap;
mod work;
mod write;

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use serde::Serialize;

use crate::Error;
use crate::verify::Discrepancy;
use group::MergedFile;
use work::{Work, failed};

/// How long the folder that a partition was is kept.
const GRACE: Duration = Duration::from_secs(1);

/// Which files are merged, and how far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactOptions {
    /// Only files of hours and days that have ended so long ago; where no folder tells a time, those that were
    /// finished so long ago.
    pub older_than: Duration,
    /// Files are merged up to so many bytes.
    pub target_bytes: u64,
}

impl Default for CompactOptions {
    fn default() -> CompactOptions {
        CompactOptions {
            older_than: Duration::from_secs(3600),
            target_bytes: 256 << 20,
        }
    }
}

/// Files that were merged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Compacted {
    /// Files that were merged, their bytes, and the messages in them.
    pub files: u64,
    pub bytes: u64,
    pub messages: u64,
    /// Files that they became, and their bytes.
    pub merged_files: u64,
    pub merged_bytes: u64,
    /// Folders and collectors that were left as they are, although something could have been merged, and why.
    pub left: Vec<Discrepancy>,
    /// Files that are not as they were written; they stay.
    pub faults: Vec<Discrepancy>,
    /// It was stopped before it was through.
    pub stopped: bool,
}

/// How far the work at a partition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompactStep {
    /// The folder beside it is made.
    Begun,
    /// A merged file is on disk.
    Written,
    /// All other files of the partition stand beside the merged ones.
    Linked,
    /// The list tells what is about to be merged.
    Announced,
    /// The folder has taken the partition's place.
    Exchanged,
    /// The list tells what was merged.
    Listed,
    /// The former folder is gone.
    Removed,
}

/// Told of each step.
type Steps<'a> = &'a dyn Fn(CompactStep);

/// Merges small finished files of a data folder. `now_s` is the time, s since 1970. A collector may work in the folder.
///
/// # Errors
/// If it is no data folder, or files are being merged there already.
pub fn compact(
    data: &Path,
    options: CompactOptions,
    now_s: i64,
    stop: &AtomicBool,
) -> Result<Compacted, Error> {
    in_steps(data, options, now_s, stop, (&|_| {}, GRACE))
}

fn in_steps(
    data: &Path,
    options: CompactOptions,
    now_s: i64,
    stop: &AtomicBool,
    (steps, grace): (Steps<'_>, Duration),
) -> Result<Compacted, Error> {
    let work = Work::open(data, options, (stop, steps))?;
    let mut compacted = Compacted::default();
    let failed = |error: io::Error| failed(data, &error);
    work.finish_earlier().map_err(failed)?;
    let ended = now_s.saturating_sub_unsigned(options.older_than.as_secs());
    let partitions = plan::partitions(&work, ended, &mut compacted)?;
    let mut formers = VecDeque::new();
    for partition in partitions {
        if compacted.stopped {
            break;
        }
        match work.merge(&partition, &mut compacted) {
            Ok(former) => formers.extend(former),
            Err(_) if stop.load(Relaxed) => compacted.stopped = true,
            Err(error) => compacted.leave(partition.path(), error.to_string()),
        }
        while let Some(former) = formers.front()
            && former.since.elapsed() >= grace
        {
            work.remove(former).map_err(failed)?;
            formers.pop_front();
        }
    }
    for former in formers {
        thread::sleep(grace.saturating_sub(former.since.elapsed()));
        work.remove(&former).map_err(failed)?;
    }
    Ok(compacted)
}

impl Compacted {
    fn add(&mut self, group: &MergedFile) {
        self.files += group.sources.len() as u64;
        self.bytes += group.sources.iter().map(|one| one.entry.bytes).sum::<u64>();
        self.messages += group.into.messages;
        self.merged_files += 1;
        self.merged_bytes += group.into.bytes;
    }

    fn leave(&mut self, place: impl Into<String>, what: impl Into<String>) {
        let (place, what) = (place.into(), what.into());
        self.left.push(Discrepancy { place, what });
    }
}

#[cfg(test)]
mod tests;
