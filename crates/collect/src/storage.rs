//! The threads behind the loop: one puts commits on disk, one makes closed segments into finished files, one puts these
//! to a store. Or one puts commits to a store, and nothing is on a disk.

mod direct;
mod finisher;
mod keeper;
mod uploader;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pubgauge_place::is_refused;

use crate::Error;
use crate::config::Config;
use crate::file_name::{is_stem_of, name_parts};
use crate::files::{self, Finished};
use crate::folder::{self, Folder};
use crate::gather::Commit;
use crate::log::Log;
use crate::log::SegmentStatus;
use crate::manifest::{self, Entry};
use crate::notice::{Notice, Watch};
use crate::status::Status;
use direct::Direct;
use finisher::{Finisher, Unlisted};
use keeper::Keeper;
use pubgauge_net::random::random;
use pubgauge_net::waker::Waker;
use uploader::Uploader;

/// How long to wait before a failed write is tried again.
const AGAIN: Duration = Duration::from_millis(200);

/// Shortest and longest wait before a store is asked again.
const STORE_AGAIN: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));

/// Hint where nothing can be put anywhere.
const NOT_BEGUN: &str = "without a data folder nothing can be collected while this does not answer: check the address, the credentials and the network";

/// Context of storing.
#[derive(Clone)]
pub struct Shared {
    pub status: Arc<Status>,
    pub watch: Watch,
    pub waker: Waker,
}

impl Shared {
    /// Counts what became of messages in finished files, and tells what does not lie where it would.
    fn count(&self, finished: &Finished) {
        self.status.count_undecoded(finished.undecoded);
        for (why, so_far) in self.status.count_misplaced(finished.misplaced) {
            (self.watch)(&Notice::Misplaced { why, so_far });
        }
    }
}

/// The storing threads.
pub struct Storage {
    orders: Option<Sender<Commit>>,
    done: Receiver<Commit>,
    /// Stores commits until `orders` is dropped.
    storing: JoinHandle<()>,
    /// Whether everything is in finished files.
    ended: Receiver<bool>,
    /// Ends with the thread that puts files to a store.
    uploading: Option<JoinHandle<()>>,
    /// No message can be stored any more; set when the bound of an orderly end is over.
    abandon: Arc<AtomicBool>,
    /// A commit is with the thread.
    busy: bool,
    /// When the first message of that commit was read.
    pub oldest: Option<Instant>,
    /// Beginning of frames, and the number of the first message.
    pub mark: u32,
    pub next_seq: u64,
}

impl Storage {
    /// Takes the log, tells what was found, and begins.
    ///
    /// # Errors
    /// If the folder cannot be read or written.
    pub fn open(shared: &Shared, folder: &Arc<Folder>, config: &Config) -> Result<Storage, Error> {
        let failed = |what: &str| {
            let place = folder.data.display().to_string();
            let what = what.to_owned();
            move |error: std::io::Error| {
                if is_refused(&error) {
                    return folder::unusable(Path::new(&place), &error);
                }
                Error::failed(format!("{place}: {what}: {error}"))
            }
        };
        files::remove_partial(folder).map_err(failed("cannot be read"))?;
        let (at_least, unlisted) = found_files(folder).map_err(failed("cannot be read"))?;
        let opened = Log::open(&folder.log(), config.form, config.limits, at_least);
        let (log, recovered) = opened.map_err(failed("the log cannot be taken"))?;
        let torn: Vec<Entry> = recovered
            .gaps
            .iter()
            .filter(|gap| !gap.damaged)
            .map(|gap| Entry::NotStored {
                first: gap.seqs.start,
                last: gap.seqs.end - 1,
            })
            .collect();
        if !torn.is_empty() {
            folder.list(&torn).map_err(failed("the list of files"))?;
        }
        (shared.watch)(&Notice::Begun {
            collector: folder.name.clone(),
            folder: folder.data.display().to_string(),
            segments: recovered.closed.len(),
        });
        if recovered.cut_bytes > 0 {
            (shared.watch)(&Notice::TailCut {
                bytes: recovered.cut_bytes,
                is_noted: recovered.is_noted,
            });
        }
        for missing in recovered.missing {
            let (first, last) = (missing.start, missing.end - 1);
            let lost = Entry::Lost { first, last };
            folder.list(&[lost]).map_err(failed("the list of files"))?;
            shared.status.damaged.add(last - first + 1);
            (shared.watch)(&Notice::Missing { first, last });
        }
        let abandon = Arc::<AtomicBool>::default();
        let (finished, uploading) = match &config.upload {
            None => (None, None),
            Some(upload) => {
                let (finished, to_upload) = channel();
                let uploader = Uploader::new(shared, folder, upload, abandon.clone());
                let uploader = uploader.map_err(failed("cannot be changed"))?;
                let uploading = thread::spawn(move || uploader.run(&to_upload));
                (Some(finished), Some(uploading))
            }
        };
        let (close, to_finish) = channel();
        shared
            .status
            .waiting_segments
            .add(recovered.closed.len() as u64);
        for segment in recovered.closed {
            let name = segment.path.file_name().unwrap_or_default();
            // Making it into files tells where it cannot be read.
            if let Ok(about) = folder
                .log()
                .file(name)
                .and_then(|file| SegmentStatus::from_file(&file))
            {
                (shared.status.log).note_segment(segment.first_seq, about);
            }
            // The thread that takes them is not started yet, so they are kept.
            let _ = close.send(segment);
        }
        let finisher = Finisher {
            shared: shared.clone(),
            folder: folder.clone(),
            layout: config.layout.clone(),
            finished,
            abandon: abandon.clone(),
            unlisted,
        };
        let finishing = thread::spawn(move || finisher.run(&to_finish));
        let (mark, next_seq) = (log.mark(), recovered.next_seq);
        let (orders, ordered) = channel();
        let (tell_done, done) = channel();
        let keeper = Keeper {
            shared: shared.clone(),
            folder: folder.clone(),
            log,
            close,
            done: tell_done,
            abandon: abandon.clone(),
            looked_at: None,
        };
        let run = move || {
            let closed = keeper.run(&ordered);
            // A panic there was printed already.
            let _ = finishing.join();
            closed
        };
        let channels = (orders, done);
        Ok(Storage::begin(
            channels,
            run,
            uploading,
            abandon,
            (mark, next_seq),
        ))
    }

    /// Without a data folder: commits go elsewhere. Returns how long a first object took as well.
    ///
    /// # Errors
    /// If the other side does not answer.
    pub fn direct(
        shared: &Shared,
        config: &Config,
        name: &str,
    ) -> Result<(Storage, Duration), Error> {
        let begun = direct::begin(config, name, &shared.watch);
        let (sink, took) = begun.map_err(|failure| Error {
            what: failure.what,
            hint: Some(NOT_BEGUN.into()),
            is_input: false,
        })?;
        (shared.watch)(&Notice::Begun {
            collector: name.to_owned(),
            folder: sink.description(),
            segments: 0,
        });
        let abandon = Arc::<AtomicBool>::default();
        let (orders, ordered) = channel();
        let (tell_done, done) = channel();
        let mark = random() as u32;
        let direct = Direct {
            shared: shared.clone(),
            sink,
            mark,
            done: tell_done,
            abandon: abandon.clone(),
        };
        let run = move || {
            direct.run(&ordered);
            true
        };
        let channels = (orders, done);
        Ok((
            Storage::begin(channels, run, None, abandon, (mark, 1)),
            took,
        ))
    }

    fn begin(
        (orders, done): (Sender<Commit>, Receiver<Commit>),
        run: impl FnOnce() -> bool + Send + 'static,
        uploading: Option<JoinHandle<()>>,
        abandon: Arc<AtomicBool>,
        (mark, next_seq): (u32, u64),
    ) -> Storage {
        let (tell_ended, ended) = channel();
        let storing = thread::spawn(move || {
            // Nobody may wait any more.
            let _ = tell_ended.send(run());
        });
        Storage {
            orders: Some(orders),
            done,
            storing,
            ended,
            uploading,
            abandon,
            busy: false,
            oldest: None,
            mark,
            next_seq,
        }
    }

    /// Whether nothing is stored any more, although commits may still come: the thread has panicked.
    pub fn has_failed(&self) -> bool {
        self.orders.is_some() && self.storing.is_finished()
    }

    /// Whether a commit is on its way to the disk.
    pub fn is_busy(&self) -> bool {
        self.busy
    }

    /// Hands a commit over. Only if none is on its way.
    pub fn store(&mut self, commit: Commit) {
        self.busy = true;
        self.oldest = commit.oldest;
        if let Some(orders) = &self.orders {
            // The thread ends only after `orders` was dropped.
            let _ = orders.send(commit);
        }
    }

    /// The commit that was handed over, once it is on disk.
    pub fn stored(&mut self) -> Option<Commit> {
        let commit = self.done.try_recv().ok()?;
        self.busy = false;
        self.oldest = None;
        Some(commit)
    }

    /// Ends: what is in the log becomes finished files. Returns whether all of it did before `until`; if not, the next
    /// start goes on with it.
    pub fn finish(mut self, until: Instant) -> bool {
        drop(self.orders.take());
        let left = || until.saturating_duration_since(Instant::now());
        let complete = self.ended.recv_timeout(left());
        while !left().is_zero()
            && self
                .uploading
                .as_ref()
                .is_some_and(|one| !one.is_finished())
        {
            thread::sleep(Duration::from_millis(5));
        }
        self.abandon.store(true, Relaxed);
        complete.unwrap_or_else(|_| {
            // A thread that hangs in the kernel does not see the flag.
            let _ = self.ended.recv_timeout(Duration::from_secs(1));
            false
        })
    }
}

/// The first number that no file of this collector has, whether it is listed or not; and its files that are not listed.
fn found_files(folder: &Folder) -> std::io::Result<(u64, Vec<Unlisted>)> {
    // Files that are merged meanwhile would be in one of the two alone.
    let _held = folder.hold()?;
    let (entries, _) = manifest::read(folder.collectors_folder())?;
    let mut free = manifest::next_seq(&entries);
    let listed = manifest::files(&entries, &|file| folder::holds(folder.top(), file));
    let mut unlisted = Vec::new();
    for path in files::partition_files(&folder.data)? {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if let Some((stem, first, last, _)) = name_parts(name)
            && is_stem_of(stem, &folder.name)
        {
            free = free.max(last + 1);
            let below = path.strip_prefix(&folder.data).ok();
            let below = below.and_then(|path| path.to_str()).unwrap_or_default();
            if stem == folder.stem() && !listed.contains_key(below) {
                let path = below.to_owned();
                unlisted.push(Unlisted { path, first, last });
            }
        }
    }
    Ok((free, unlisted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn storage(run: impl FnOnce() -> bool + Send + 'static) -> Storage {
        let (orders, _) = channel();
        let (_, done) = channel();
        Storage::begin((orders, done), run, None, Arc::default(), (0, 1))
    }

    #[test]
    fn a_thread_that_panics_is_seen() {
        let (end, ended) = channel::<()>();
        let storage_that_runs = storage(move || ended.recv().is_err());
        assert!(!storage_that_runs.has_failed());
        let storage_that_fails = storage(|| panic!("planted"));
        while !storage_that_fails.has_failed() {
            thread::sleep(Duration::from_millis(1));
        }
        drop(end);
        assert!(storage_that_runs.finish(Instant::now() + Duration::from_secs(60)));
    }
}
