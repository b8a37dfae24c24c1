//! The merged files of a partition.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::Ordering::Relaxed;

use pubgauge_place::{OpenFolder, take_after};
use rustix::fs::fstatvfs;

use super::group::{Checked, MergedFile};
use super::plan::{Partition, Source};
use super::swap::Aside;
use super::work::Work;
use super::{CompactStep, Compacted};
use crate::config::Form;
use crate::file_name::file_name;
use crate::files::Summed;
use crate::files::merge::{Merger, footer};
use crate::manifest::FileEntry;

/// Room on the disk that is left to collectors, as `log.reserve` is by default.
const RESERVE: u64 = 256 << 20;

/// Most row groups of a merged file: all their places stand in its footer.
const MOST_GROUPS: usize = 4096;

/// Makes the merged files of a partition, beside it.
pub fn write_merged(
    work: &Work<'_>,
    partition: &Partition,
    aside: &Aside<'_>,
    compacted: &mut Compacted,
) -> io::Result<Vec<MergedFile>> {
    let mut groups = Vec::new();
    for run in &partition.runs {
        for sources in alike(work, run.sources.iter(), &aside.partition, compacted)? {
            if compacted.stopped {
                return Ok(Vec::new());
            }
            let bytes: u64 = sources.iter().map(|source| source.entry.bytes).sum();
            let about = fstatvfs(&work.top)?;
            if about.f_bavail.saturating_mul(about.f_frsize) < bytes.saturating_add(RESERVE) {
                let what = format!("merging takes {bytes} bytes, beside {RESERVE} that stay free");
                compacted.leave(partition.path(), what);
                continue;
            }
            groups.push(group(work, run.member, sources, partition, aside)?);
            (work.steps)(CompactStep::Written);
        }
    }
    Ok(groups)
}

/// Sources that are whole, as runs of those with the same columns.
fn alike<'a>(
    work: &Work<'_>,
    sources: impl Iterator<Item = &'a Source>,
    partition: &OpenFolder,
    compacted: &mut Compacted,
) -> io::Result<Vec<Vec<Checked>>> {
    let mut runs: Vec<Vec<Checked>> = vec![Vec::new()];
    for source in sources {
        if work.stop.load(Relaxed) {
            compacted.stopped = true;
            return Ok(Vec::new());
        }
        match checked(source, partition)? {
            Ok(checked) => match runs.last_mut() {
                Some(run) if run.last().is_none_or(|_| fits(run, &checked)) => run.push(checked),
                _ => runs.push(vec![checked]),
            },
            Err(what) => {
                compacted.faults.push(crate::verify::Discrepancy {
                    place: source.entry.path.clone(),
                    what,
                });
                runs.push(Vec::new());
            }
        }
    }
    runs.retain(|run| run.len() > 1);
    Ok(runs)
}

fn fits(run: &[Checked], next: &Checked) -> bool {
    let groups = |one: &Checked| one.columns.as_ref().map_or(0, |(_, groups)| *groups);
    let columns = |one: &Checked| one.columns.as_ref().map(|(columns, _)| columns.clone());
    let all: usize = run.iter().map(groups).sum();
    let alike = run.first().map(columns) == Some(columns(next));
    alike && all + groups(next) <= MOST_GROUPS
}

/// A file that is as it was written, or what is wrong with it.
fn checked(source: &Source, partition: &OpenFolder) -> io::Result<Result<Checked, String>> {
    let entry = &source.entry;
    let mut file = match partition.file(&source.name) {
        Err(error) => return Ok(Err(format!("cannot be read: {error}"))),
        Ok(file) => file,
    };
    let about = file.metadata()?;
    if let Err(what) = entry.check_file(&mut file) {
        return Ok(Err(what));
    }
    let columns = match source.form {
        Form::Ndjson => None,
        Form::Parquet => match footer(&file) {
            Err(what) => return Ok(Err(what)),
            Ok(footer) => {
                let about = footer.file_metadata();
                if u64::try_from(about.num_rows()) != Ok(entry.messages) {
                    let rows = about.num_rows();
                    return Ok(Err(format!(
                        "has {rows} messages instead of {}",
                        entry.messages
                    )));
                }
                let columns = about.schema_descr().root_schema_ptr();
                Some((columns, footer.num_row_groups()))
            }
        },
    };
    Ok(Ok(Checked {
        entry: entry.clone(),
        name: source.name.clone(),
        stem: source.stem.clone(),
        form: source.form,
        identity: (about.dev(), about.ino()),
        columns,
    }))
}

/// Writes one merged file.
fn group(
    work: &Work<'_>,
    member: usize,
    sources: Vec<Checked>,
    partition: &Partition,
    aside: &Aside<'_>,
) -> io::Result<MergedFile> {
    let (Some(first), Some(last)) = (sources.first(), sources.last()) else {
        return Err(io::ErrorKind::NotFound.into());
    };
    let range = (first.entry.first, last.entry.last);
    let name = file_name(&first.stem, range, first.form);
    let file = aside.folder.create(&name)?;
    take_after(&file, aside.partition.file(&first.name)?)?;
    let mut out = Summed::new(file);
    match &first.columns {
        None => {
            for source in &sources {
                go_on(work)?;
                io::copy(&mut aside.partition.file(&source.name)?, &mut out)?;
            }
        }
        Some((columns, _)) => {
            let mut merger = Merger::new(out, columns.clone())?;
            for source in &sources {
                go_on(work)?;
                let file = aside.partition.file(&source.name)?;
                let footer = footer(&file).map_err(io::Error::other)?;
                merger.add(&file, &footer)?;
            }
            out = merger.finish()?;
        }
    }
    let (bytes, crc32) = out.finish()?;
    let into = FileEntry {
        path: format!("{}/{name}", partition.path()),
        bytes,
        crc32,
        first: range.0,
        last: range.1,
        messages: sources.iter().map(|source| source.entry.messages).sum(),
        among: among(&sources),
    };
    Ok(MergedFile {
        member,
        into,
        sources,
    })
}

/// First and last number that those of a merged file lie among, if others lie between them.
fn among(sources: &[Checked]) -> Option<(u64, u64)> {
    let follows = |two: &[Checked]| two[0].entry.is_followed_by(&two[1].entry);
    if sources.windows(2).all(follows) {
        return None;
    }
    let spans = || sources.iter().map(|source| source.entry.span());
    let first = spans().map(|(first, _)| first).min()?;
    let last = spans().map(|(_, last)| last).max()?;
    Some((first, last))
}

/// # Errors
/// If it is to be stopped.
fn go_on(work: &Work<'_>) -> io::Result<()> {
    if work.stop.load(Relaxed) {
        return Err(io::Error::other("merging was stopped"));
    }
    Ok(())
}
