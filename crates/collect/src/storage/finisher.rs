//! The thread that makes closed segments into finished files.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender};
use std::thread;

use super::{AGAIN, Shared};
use crate::columns::Columns;
use crate::files;
use crate::folder::Folder;
use crate::log::Closed;
use crate::manifest::{self, Entry, FileEntry};
use crate::notice::Notice;

/// The thread that makes closed segments into finished files.
pub(super) struct Finisher {
    pub(super) shared: Shared,
    pub(super) folder: Arc<Folder>,
    pub(super) columns: Columns,
    /// Takes finished files that are to be put to a store.
    pub(super) finished: Option<Sender<FileEntry>>,
    pub(super) abandon: Arc<AtomicBool>,
}

impl Finisher {
    pub(super) fn run(self, closed: &Receiver<Closed>) {
        let torn = manifest::read(self.folder.own());
        let torn = torn.map_or_else(|_| Vec::new(), |(entries, _)| entries);
        for segment in closed {
            self.finish(&segment, &torn);
        }
    }

    fn finish(&self, segment: &Closed, torn: &[Entry]) {
        let Shared { status, watch, .. } = &self.shared;
        let name = segment.path.display().to_string();
        let mut told = false;
        let finished = loop {
            if self.abandon.load(Relaxed) {
                return;
            }
            match files::finish(&self.folder, segment, &self.columns, &self.abandon) {
                Ok(finished) => break finished,
                Err(_) if self.abandon.load(Relaxed) => return,
                Err(error) => {
                    if !told {
                        told = true;
                        watch(&Notice::NotFinished {
                            segment: name.clone(),
                            why: error.to_string(),
                        });
                    }
                    thread::sleep(AGAIN);
                }
            }
        };
        for &(first, last) in &finished.damaged {
            let known = Entry::NotStored { first, last };
            if !torn.contains(&known) {
                // Where the list cannot be written, verification finds that they are missing.
                let _ = self.folder.list(&[Entry::Lost { first, last }]);
                status.damaged.add(last - first + 1);
                watch(&Notice::Damaged {
                    segment: name.clone(),
                    first,
                    last,
                });
            }
        }
        status.count_undecoded(finished.undecoded);
        for file in finished.files {
            status.files.add(1);
            status.file_messages.add(file.messages);
            status.file_bytes.add(file.bytes);
            watch(&Notice::Finished {
                path: file.path.clone(),
                messages: file.messages,
                bytes: file.bytes,
            });
            if let Some(finished) = &self.finished {
                // Where the other thread has ended, the next start finds the file.
                let _ = finished.send(file);
            }
        }
        status.waiting_segments.subtract(1);
    }
}
