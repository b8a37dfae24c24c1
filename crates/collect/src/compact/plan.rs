//! Which finished files could be merged.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;

use pubgauge_place::{OpenFolder, is_refused};

use super::Compacted;
use super::work::{Member, Work};
use crate::Error;
use crate::config::Form;
use crate::file_name::name_parts;
use crate::folder::{self, LOG};
use crate::log::segment;
use crate::manifest::{self, FileEntry, FilePlace};

/// So many numbers a merged file lies among at the most, where others lie between its own: whoever reads all files keeps
/// what it has found of them.
pub(super) const MOST_AMONG: u64 = 1 << 22;

/// A finished file.
#[derive(Clone, Debug)]
pub struct Source {
    pub entry: FileEntry,
    pub name: String,
    pub stem: String,
    pub form: Form,
}

/// Files of one collector whose numbers rise.
pub struct FileRun {
    /// Number of the collector.
    pub member: usize,
    pub sources: Vec<Source>,
}

/// A partition in which something could be merged.
pub struct Partition {
    /// The names of its folders, from the outermost.
    pub folders: Vec<String>,
    pub runs: Vec<FileRun>,
}

impl Partition {
    pub fn path(&self) -> String {
        self.folders.join("/")
    }
}

/// Until when the time of a folder, or the making of a file, must have ended.
struct Ended {
    /// The names of the folders of that time.
    date: String,
    hour: String,
    at_s: i64,
}

impl Ended {
    fn new(at_s: i64) -> Ended {
        let time = jiff::Timestamp::from_second(at_s).unwrap_or_default();
        Ended {
            date: time.strftime("date=%Y-%m-%d").to_string(),
            hour: time.strftime("hour=%H").to_string(),
            at_s,
        }
    }

    /// Whether it is after the time that a file's folders tell; if they tell none, after that when it was finished.
    fn is_after(&self, place: &FilePlace<'_>, top: &OpenFolder) -> bool {
        let named = |key: &str| place.folders.iter().find(|name| name.starts_with(key));
        // By text, as they are by number.
        match (named("date="), named("hour=")) {
            (Some(date), Some(hour)) => (*date, *hour) < (self.date.as_str(), self.hour.as_str()),
            (Some(date), None) => *date < self.date.as_str(),
            (None, _) => {
                let about = folder::file_of(top, place).and_then(|file| file.metadata());
                about.is_ok_and(|about| about.mtime() <= self.at_s)
            }
        }
    }
}

/// The partitions in which something could be merged that was over at `ended`, s since 1970.
pub fn partitions(
    work: &Work<'_>,
    ended: i64,
    compacted: &mut Compacted,
) -> Result<Vec<Partition>, Error> {
    let ended = Ended::new(ended);
    let mut found: BTreeMap<Vec<String>, Vec<FileRun>> = BTreeMap::new();
    for (nth, member) in work.members.iter().enumerate() {
        if member.is_running && !work.is_respected {
            let what =
                "it is at work, of a version that knows nothing of merging: start it with this one";
            compacted.leave(&member.name, what);
            continue;
        }
        let failed = |error: io::Error| {
            Error::failed(format!("{}: {error}", member.own.display_path().display()))
        };
        let by_partition = match sources(work, member, &ended) {
            Ok(Ok(by_partition)) => by_partition,
            Ok(Err(what)) => {
                compacted.leave(&member.name, what);
                continue;
            }
            Err(error) if is_refused(&error) => {
                compacted.leave(&member.name, format!("it cannot be read: {error}"));
                continue;
            }
            Err(error) => return Err(failed(error)),
        };
        for (folders, sources) in by_partition {
            let runs = runs(nth, sources, work.options.target_bytes);
            found.entry(folders).or_default().extend(runs);
        }
    }
    let partitions = found.into_iter().filter(|(_, runs)| !runs.is_empty());
    let partition = |(folders, runs)| Partition { folders, runs };
    Ok(partitions.map(partition).collect())
}

/// Finished files by partition.
type ByPartition = BTreeMap<Vec<String>, Vec<Source>>;

/// The finished files of a collector that nobody will make anew, or why none may be merged.
fn sources(
    work: &Work<'_>,
    member: &Member,
    ended: &Ended,
) -> io::Result<Result<ByPartition, String>> {
    // Read before the list: what is in a file by then is not in the log any more.
    let in_log = match member.own.inside(LOG) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        log => {
            let log = log?;
            let segments = segment::list(&log)?;
            // A segment that was removed might be there again after a power loss, and become files again.
            log.sync()?;
            segments.first().map(|(first, _)| *first)
        }
    };
    let (entries, _) = manifest::read(&member.own)?;
    if manifest::is_moved(&entries) {
        return Ok(Err("it moves its files to a store, where they may be already: have it make larger ones (`log.segment`, `log.segment-age`)".into()));
    }
    let mut found = ByPartition::new();
    let is_there = |file: &FileEntry| folder::holds(&work.top, file);
    for (file, _) in manifest::files(&entries, &is_there).into_values() {
        // Others are told by verification.
        let Ok(place) = file.place_of(&member.name) else {
            continue;
        };
        let Some((stem, first, last, form)) = name_parts(place.name) else {
            continue;
        };
        if (first, last) != (file.first, file.last)
            || in_log.is_some_and(|in_log| file.last >= in_log)
            || !ended.is_after(&place, &work.top)
        {
            continue;
        }
        let source = Source {
            entry: file.clone(),
            name: place.name.to_owned(),
            stem: stem.to_owned(),
            form,
        };
        let folders = place.folders.into_iter().map(str::to_owned).collect();
        found.entry(folders).or_default().push(source);
    }
    Ok(Ok(found))
}

/// Files of a partition that could be merged: runs of two and more whose numbers rise, up to so many bytes.
pub(super) fn runs(member: usize, mut sources: Vec<Source>, target_bytes: u64) -> Vec<FileRun> {
    sources.sort_by_key(|source| source.entry.first);
    let mut runs: Vec<FileRun> = Vec::new();
    let mut bytes = 0_u64;
    for source in sources {
        let follows = |run: &&mut FileRun| match (run.sources.first(), run.sources.last()) {
            (Some(first), Some(last)) => {
                let among = source.entry.span().1.saturating_sub(first.entry.span().0);
                last.entry.last < source.entry.first
                    && (&last.stem, last.form) == (&source.stem, source.form)
                    && (last.entry.is_followed_by(&source.entry) || among < MOST_AMONG)
            }
            _ => false,
        };
        let more = bytes.saturating_add(source.entry.bytes);
        match runs.last_mut().filter(follows) {
            Some(run) if more <= target_bytes => {
                bytes = more;
                run.sources.push(source);
            }
            _ => {
                bytes = source.entry.bytes;
                let sources = vec![source];
                runs.push(FileRun { member, sources });
            }
        }
    }
    runs.retain(|run| run.sources.len() > 1);
    runs
}
