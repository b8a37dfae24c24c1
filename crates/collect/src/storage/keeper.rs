//! The thread that puts commits on disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::{AGAIN, Shared};
use crate::clock::unix_ns;
use crate::files;
use crate::folder::Folder;
use crate::gather::Commit;
use crate::log::{Closed, Log};
use crate::notice::Notice;
use crate::status::DiskStatus;

/// How often the age of a segment is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// How often the free room of the disk is looked at.
const LOOK_AT_DISK: Duration = Duration::from_secs(1);

/// The thread that puts commits on disk.
pub(super) struct Keeper {
    pub(super) shared: Shared,
    pub(super) folder: Arc<Folder>,
    pub(super) log: Log,
    pub(super) close: Sender<Closed>,
    pub(super) done: Sender<Commit>,
    pub(super) abandon: Arc<AtomicBool>,
    /// When the free room of the disk was looked at last.
    pub(super) looked_at: Option<Instant>,
}

impl Keeper {
    /// Works until there is nothing more to come. Whether the last segment was closed.
    pub(super) fn run(mut self, orders: &Receiver<Commit>) -> bool {
        self.shared.status.threads.note_current();
        self.note_segment();
        loop {
            self.look_at_disk(Instant::now());
            match orders.recv_timeout(LOOK) {
                Ok(commit) => self.keep(commit),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.log.is_due(files::hour_of(unix_ns())) {
                self.rotate();
            }
        }
        self.rotate()
    }

    /// Notes the free room of the disk, if that is due.
    fn look_at_disk(&mut self, now: Instant) {
        let is_due = |at: Instant| now.saturating_duration_since(at) >= LOOK_AT_DISK;
        if self.looked_at.is_none_or(is_due) {
            self.looked_at = Some(now);
            // Without an answer the last one is the best that is known.
            if let Ok(free) = self.log.free_bytes() {
                let reserve = self.log.reserve_bytes();
                let disk = DiskStatus { free, reserve };
                self.shared.status.log.note_disk(disk);
            }
        }
    }

    /// Notes how the present segment stands.
    fn note_segment(&self) {
        if let Some((first_seq, segment)) = self.log.present() {
            self.shared.status.log.note_segment(first_seq, segment);
        }
    }

    /// Has the present segment written anew, if somebody has removed it.
    fn restore(&mut self) -> std::io::Result<()> {
        if let Some(path) = self.log.restore()? {
            (self.shared.watch)(&Notice::SegmentRestored {
                segment: path.display().to_string(),
            });
        }
        Ok(())
    }

    /// Stores a commit; what was written before and is closed by a failure is returned beside the error.
    fn commit(&mut self, commit: &mut Commit) -> Result<(), (std::io::Error, Option<Closed>)> {
        self.restore().map_err(|error| (error, None))?;
        let dead = commit.dead.append(self.folder.collectors_folder());
        dead.map_err(|error| (error, None))?;
        // Once, however often the rest is tried.
        commit.dead.clear();
        let seqs = commit.seqs();
        let Commit { frames, hour, .. } = commit;
        if commit.messages == 0 {
            return Ok(());
        }
        self.log.commit(frames, seqs, *hour)
    }

    fn rotate(&mut self) -> bool {
        // Where that fails, making it into files tells that it is gone.
        let _ = self.restore();
        // Where no next segment can be made, the present one grows on; a commit then tells why.
        let rotated = self.log.rotate();
        let is_ok = rotated.is_ok();
        self.close(rotated.ok().flatten());
        self.note_segment();
        is_ok
    }

    fn close(&self, closed: Option<Closed>) {
        if let Some(closed) = closed {
            self.shared.status.waiting_segments.add(1);
            // The thread ends only after `close` was dropped.
            let _ = self.close.send(closed);
        }
    }

    /// Stores a commit, however long that takes.
    fn keep(&mut self, mut commit: Commit) {
        let status = self.shared.status.clone();
        let (begun, processor) = (Instant::now(), thread_time());
        let mut stalled = false;
        while let Err((error, closed)) = self.commit(&mut commit) {
            self.close(closed);
            if !stalled {
                stalled = true;
                status.set_stalled(true);
                (self.shared.watch)(&Notice::Stalled {
                    why: error.to_string(),
                });
            }
            if self.abandon.load(Relaxed) {
                return;
            }
            thread::sleep(AGAIN);
            self.look_at_disk(Instant::now());
        }
        let took = begun.elapsed();
        if stalled {
            status.set_stalled(false);
            (self.shared.watch)(&Notice::GoesOn {
                after_ms: took.as_millis() as u64,
            });
        }
        if commit.messages > 0 {
            status.count_commit(took, commit.frames.len());
            self.note_segment();
        }
        status.stored.add(u64::from(commit.messages));
        commit.processor = thread_time().saturating_sub(processor);
        // The loop may have ended.
        let _ = self.done.send(commit);
        self.shared.waker.wake();
    }
}

/// Processor time of this thread.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
