//! The thread that puts finished files to a store, and removes them here once the store has confirmed them.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use pubgauge_place::is_refused;

use super::{STORE_AGAIN, Shared};
use crate::config::Upload;
use crate::folder::{self, Folder};
use crate::manifest::{self, Entry, FileEntry, FilePlace, Uploaded};
use crate::notice::Notice;
use crate::store::{Failure, StoreClient};

/// Longest time that one request may take: a file of 1 GiB at 10 Mbit/s.
const REQUEST: Duration = Duration::from_secs(900);

/// Longest sleep: whether to give up is looked at in between.
const LOOK: Duration = Duration::from_millis(200);

/// The thread that puts finished files to a store.
pub(super) struct Uploader {
    shared: Shared,
    folder: Arc<Folder>,
    upload: Upload,
    client: StoreClient,
    waiting: VecDeque<FileEntry>,
    abandon: Arc<AtomicBool>,
}

impl Uploader {
    /// Finishes what an earlier start left: files that are in the store are removed here, others are to be put there.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub(super) fn new(
        shared: &Shared,
        folder: &Arc<Folder>,
        upload: &Upload,
        abandon: Arc<AtomicBool>,
    ) -> io::Result<Uploader> {
        let entries = announced(folder, upload)?;
        let is_there = |file: &FileEntry| folder::holds(folder.top(), file);
        let mut waiting = VecDeque::new();
        for (file, uploaded) in manifest::files(&entries, &is_there).into_values() {
            let refused = |what: String| {
                (shared.watch)(&Notice::DamagedFile {
                    path: file.path.clone(),
                    what,
                });
            };
            let place = match file.place_of(&folder.name) {
                Ok(place) => place,
                Err(what) => {
                    refused(what);
                    continue;
                }
            };
            match folder.file(&place) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => refused(format!("is not moved: {error}")),
                // An entry about another store is no reason to remove it.
                Ok(_) if uploaded.is_some_and(|one| one.to == upload.place) => {
                    folder.remove_file(&place)?;
                }
                Ok(_) => waiting.push_back(file.clone()),
            }
        }
        shared.status.waiting_files.add(waiting.len() as u64);
        Ok(Uploader {
            shared: shared.clone(),
            folder: folder.clone(),
            upload: upload.clone(),
            client: StoreClient::new(&upload.place, &upload.credentials, REQUEST),
            waiting,
            abandon,
        })
    }

    /// Works until no more files come and all are in the store, or the store has failed once more then.
    pub(super) fn run(mut self, finished: &Receiver<FileEntry>) {
        self.shared.status.threads.note_current();
        let mut wait = STORE_AGAIN.0;
        let mut is_last = false;
        while !self.abandon.load(Relaxed) {
            is_last |= self.take(finished);
            let Some(file) = self.waiting.front().cloned() else {
                match finished.recv_timeout(LOOK) {
                    Ok(file) => self.add(file),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
                continue;
            };
            match self.upload(&file) {
                Ok(is_kept) => {
                    wait = STORE_AGAIN.0;
                    self.waiting.pop_front();
                    if !is_kept {
                        self.shared.status.waiting_files.subtract(1);
                    }
                }
                Err(failure) => {
                    self.client.doubt();
                    self.shared.status.failed_uploads.add(1);
                    (self.shared.watch)(&Notice::NotUploaded {
                        why: failure.what,
                        files: self.waiting.len(),
                        again_in_ms: (!is_last).then_some(wait.as_millis() as u64),
                    });
                    if is_last {
                        return;
                    }
                    is_last = self.sleep(finished, wait);
                    wait = (2 * wait).min(STORE_AGAIN.1);
                }
            }
        }
    }

    fn add(&mut self, file: FileEntry) {
        self.shared.status.waiting_files.add(1);
        self.waiting.push_back(file);
    }

    /// Takes what is finished. Whether nothing more comes.
    fn take(&mut self, finished: &Receiver<FileEntry>) -> bool {
        loop {
            match finished.try_recv() {
                Ok(file) => self.add(file),
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Disconnected) => return true,
            }
        }
    }

    /// Sleeps, and takes what is finished meanwhile. Whether nothing more comes, which ends it early.
    fn sleep(&mut self, finished: &Receiver<FileEntry>, wait: Duration) -> bool {
        let until = Instant::now() + wait;
        while !self.abandon.load(Relaxed) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            match finished.recv_timeout(left.min(LOOK)) {
                Ok(file) => self.add(file),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return true,
            }
        }
        false
    }

    /// Puts a file to the store, lists that, and removes it here. A kill at any moment leaves what the next start
    /// finishes. Whether it is kept here, since the store has another object of its name.
    fn upload(&mut self, file: &FileEntry) -> Result<bool, Failure> {
        let path = self.folder.data.join(&file.path);
        let here = |what: String| Failure {
            what: format!("{}: {what}", path.display()),
            is_missing: false,
        };
        // It stays here, where verification finds it: what is in the store is as it was written.
        let stays = |what: String| {
            (self.shared.watch)(&Notice::DamagedFile {
                path: file.path.clone(),
                what,
            });
        };
        let place = match file.place_of(&self.folder.name) {
            Ok(place) => place,
            Err(what) => {
                stays(what);
                return Ok(false);
            }
        };
        let read = self.folder.file(&place);
        let read = read.and_then(|file| manifest::content_of(&file));
        let bytes = match read {
            Ok(bytes) => Bytes::from(bytes),
            // Somebody has moved it away; verification says so.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) if is_refused(&error) => {
                stays(format!("is not moved: {error}"));
                return Ok(false);
            }
            Err(error) => return Err(here(error.to_string())),
        };
        if let Err(what) = file.check(&bytes) {
            stays(what);
            return Ok(false);
        }
        let store = self.client.store(&self.shared.watch)?;
        let Some(put) = store.upload(&file.path, bytes)? else {
            self.shared.status.conflicts.add(1);
            (self.shared.watch)(&Notice::Conflict {
                path: file.path.clone(),
                to: self.upload.place.to_string(),
            });
            return Ok(true);
        };
        let there = store.look(&file.path)?;
        if there != put {
            let what = format!(
                "{}/{}: the store has another object than was put there",
                self.upload.place, file.path
            );
            return Err(Failure {
                what,
                is_missing: false,
            });
        }
        self.list(file, &place, put.e_tag)
            .map_err(|error| here(error.to_string()))?;
        Ok(false)
    }

    fn list(
        &self,
        file: &FileEntry,
        place: &FilePlace<'_>,
        e_tag: Option<String>,
    ) -> io::Result<()> {
        let uploaded = Uploaded {
            path: file.path.clone(),
            to: self.upload.place.clone(),
            e_tag,
        };
        self.folder.list(&[Entry::Uploaded(uploaded)])?;
        self.folder.remove_file(place)?;
        let Shared { status, watch, .. } = &self.shared;
        status.uploaded_files.add(1);
        status.uploaded_bytes.add(file.bytes);
        watch(&Notice::Uploaded {
            path: file.path.clone(),
            to: self.upload.place.to_string(),
        });
        Ok(())
    }
}

/// The list of files, which says that they are moved from now on: nobody merges what may be in the store already.
fn announced(folder: &Folder, upload: &Upload) -> io::Result<Vec<Entry>> {
    let to = upload.place.clone();
    let uploading = Entry::Uploading { to };
    let (entries, _) = manifest::read(folder.collectors_folder())?;
    if entries.contains(&uploading) {
        return Ok(entries);
    }
    folder.list(&[uploading])?;
    Ok(manifest::read(folder.collectors_folder())?.0)
}

#[cfg(test)]
mod tests;
