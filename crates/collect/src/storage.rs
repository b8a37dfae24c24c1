//! The threads behind the loop: one puts commits on disk, one makes closed segments into finished files.

mod finisher;
mod keeper;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::Error;
use crate::config::Form;
use crate::files;
use crate::folder::Folder;
use crate::gather::Commit;
use crate::log::{Closed, Limits, Log};
use crate::manifest::{self, Entry};
use crate::notice::{Notice, Watch};
use crate::status::Status;
use crate::waker::Waker;
use finisher::Finisher;
use keeper::Keeper;

/// How long to wait before a failed write is tried again.
const AGAIN: Duration = Duration::from_millis(200);

/// What storing works with.
#[derive(Clone)]
pub struct Shared {
    pub folder: Arc<Folder>,
    pub status: Arc<Status>,
    pub watch: Watch,
    pub waker: Waker,
}

/// The storing threads.
pub struct Storage {
    orders: Option<Sender<Commit>>,
    done: Receiver<Commit>,
    /// Whether everything is in finished files.
    ended: Receiver<bool>,
    /// No message can be stored any more; set when the bound of an orderly end is over.
    abandon: Arc<AtomicBool>,
    /// A commit is with the thread.
    busy: bool,
    /// When the first message of that commit was read.
    pub oldest: Option<Instant>,
    /// What frames begin with, and the number of the first message.
    pub mark: u32,
    pub next_seq: u64,
}

impl Storage {
    /// Takes the log, tells what was found, and begins.
    ///
    /// # Errors
    /// If the folder cannot be read or written.
    pub fn open(shared: &Shared, form: Form, limits: Limits) -> Result<Storage, Error> {
        let folder = &shared.folder;
        let failed = |what: &str| {
            let place = folder.data.display().to_string();
            let what = what.to_owned();
            move |error: std::io::Error| Error::failed(format!("{place}: {what}: {error}"))
        };
        files::remove_partial(folder).map_err(failed("cannot be read"))?;
        let (entries, _) =
            manifest::read(&folder.manifest()).map_err(failed("the list of files"))?;
        let at_least = first_free(folder, &entries).map_err(failed("cannot be read"))?;
        let opened = Log::open(&folder.log(), form, limits, at_least);
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
            manifest::append(&folder.manifest(), &torn).map_err(failed("the list of files"))?;
        }
        (shared.watch)(&Notice::Begun {
            collector: folder.name.clone(),
            folder: folder.data.display().to_string(),
            segments: recovered.closed.len(),
        });
        if recovered.cut_bytes > 0 {
            (shared.watch)(&Notice::TailCut {
                bytes: recovered.cut_bytes,
            });
        }
        let (mark, next_seq) = (log.mark(), recovered.next_seq);
        Ok(Storage::spawn(
            shared,
            log,
            recovered.closed,
            mark,
            next_seq,
        ))
    }

    fn spawn(shared: &Shared, log: Log, closed: Vec<Closed>, mark: u32, next_seq: u64) -> Storage {
        let (orders, ordered) = channel();
        let (tell_done, done) = channel();
        let (close, to_finish) = channel();
        let (tell_ended, ended) = channel();
        let abandon = Arc::new(AtomicBool::new(false));
        shared.status.waiting_segments.add(closed.len() as u64);
        for segment in closed {
            // The thread that takes them is not started yet, so they are kept.
            let _ = close.send(segment);
        }
        let finisher = Finisher {
            shared: shared.clone(),
            abandon: abandon.clone(),
        };
        let finishing = thread::spawn(move || finisher.run(&to_finish));
        let writer = Keeper {
            shared: shared.clone(),
            log,
            close,
            done: tell_done,
            abandon: abandon.clone(),
        };
        thread::spawn(move || {
            let closed = writer.run(&ordered);
            // A panic there was printed already.
            let _ = finishing.join();
            let _ = tell_ended.send(closed);
        });
        Storage {
            orders: Some(orders),
            done,
            ended,
            abandon,
            busy: false,
            oldest: None,
            mark,
            next_seq,
        }
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
    pub fn end(mut self, until: Instant) -> bool {
        drop(self.orders.take());
        let left = until.saturating_duration_since(Instant::now());
        if let Ok(complete) = self.ended.recv_timeout(left) {
            return complete;
        }
        self.abandon.store(true, Relaxed);
        // A thread that hangs in the kernel does not see the flag.
        let _ = self.ended.recv_timeout(Duration::from_secs(1));
        false
    }
}

/// The first number that no file of this collector has, whether it is listed or not.
fn first_free(folder: &Folder, entries: &[Entry]) -> std::io::Result<u64> {
    let mut free = manifest::next_seq(entries);
    for path in files::partition_files(&folder.data)? {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if let Some((collector, _, last, _)) = files::name_parts(name)
            && collector == folder.name
        {
            free = free.max(last + 1);
        }
    }
    Ok(free)
}
