//! The thread that makes closed segments into finished files.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender};
use std::thread;

use pubgauge_place::is_refused;
use rustix::io::Errno;

use super::{AGAIN, Shared};
use crate::files::{self, Finished, Layout, Unfinished};
use crate::folder::Folder;
use crate::log::Closed;
use crate::log::segment::aside_name;
use crate::manifest::{self, Entry, FileEntry, FilePlace};
use crate::notice::Notice;

/// How often a segment that cannot be read is tried, before the others go on without it.
const READS: u32 = 5;

/// Whether a file cannot be read because the system is short of something, whatever the file is.
fn is_of_system(error: &io::Error) -> bool {
    let short = [Errno::MFILE, Errno::NFILE, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|errno| short.contains(&errno))
}

/// The thread that makes closed segments into finished files.
pub(super) struct Finisher {
    pub(super) shared: Shared,
    pub(super) folder: Arc<Folder>,
    pub(super) layout: Layout,
    /// Takes finished files that are to be put to a store.
    pub(super) finished: Option<Sender<FileEntry>>,
    pub(super) abandon: Arc<AtomicBool>,
    /// Files that an earlier start has made and not listed.
    pub(super) unlisted: Vec<Unlisted>,
}

/// A finished file that is not listed: the collector was killed before it was, and its messages are in the log still.
pub(super) struct Unlisted {
    /// Path below the data folder.
    pub(super) path: String,
    pub(super) first: u64,
    pub(super) last: u64,
}

impl Finisher {
    pub(super) fn run(self, closed: &Receiver<Closed>) {
        self.shared.status.threads.note_current();
        let torn = manifest::read(self.folder.collectors_folder());
        let torn = torn.map_or_else(|_| Vec::new(), |(entries, _)| entries);
        for segment in closed {
            self.finish(&segment, &torn);
        }
    }

    fn finish(&self, segment: &Closed, torn: &[Entry]) {
        let mut told = false;
        let mut reads = 0;
        loop {
            if self.abandon.load(Relaxed) {
                return;
            }
            let why = match files::finish(&self.folder, segment, &self.layout, &self.abandon) {
                Ok(finished) => return self.announce(segment, torn, finished),
                Err(_) if self.abandon.load(Relaxed) => return,
                Err(Unfinished::Files(error)) => error,
                Err(Unfinished::Segment(error)) if is_of_system(&error) => error,
                Err(Unfinished::Segment(error)) => {
                    reads += 1;
                    let stays = error.kind() == io::ErrorKind::NotFound || is_refused(&error);
                    if stays || reads >= READS {
                        return self.set_aside(segment, &error);
                    }
                    error
                }
            };
            if !told {
                told = true;
                self.shared.status.unfinished.set(1);
                (self.shared.watch)(&Notice::NotFinished {
                    segment: segment.path.display().to_string(),
                    why: why.to_string(),
                });
            }
            thread::sleep(AGAIN);
        }
    }

    /// Gives a segment that cannot be read another name, so that the others go on, and the next start does, too.
    fn set_aside(&self, segment: &Closed, why: &io::Error) {
        let Shared { status, watch, .. } = &self.shared;
        let (first, last) = (segment.first_seq, segment.next_seq - 1);
        let log = self.folder.log();
        let name = segment.path.file_name().unwrap_or_default();
        let aside = segment.path.with_file_name(aside_name(segment.first_seq));
        let is_kept = log
            .rename(name, aside.file_name().unwrap_or_default())
            .and_then(|()| log.sync())
            .is_ok();
        // Where the list cannot be written, verification finds that they are missing.
        let _ = self.folder.list(&[Entry::Lost { first, last }]);
        status.damaged.add(last - first + 1);
        status.set_aside.add(1);
        status.unfinished.set(0);
        status.waiting_segments.subtract(1);
        status.log.forget_segment(segment.first_seq);
        watch(&Notice::SetAside {
            segment: segment.path.display().to_string(),
            kept_as: is_kept.then(|| aside.display().to_string()),
            first,
            last,
            why: why.to_string(),
        });
    }

    /// Removes files of a segment's messages that were not made again: the partitions are others now.
    fn remove_unlisted(&self, segment: &Closed, finished: &Finished) {
        let numbers = segment.first_seq..segment.next_seq;
        let is_made = |path: &str| finished.files.iter().any(|file| file.path == path);
        let is_of_it = |one: &&Unlisted| {
            numbers.contains(&one.first) && numbers.contains(&one.last) && !is_made(&one.path)
        };
        for one in self.unlisted.iter().filter(is_of_it) {
            if let Ok(place) = FilePlace::parse(&one.path) {
                // Where that fails, verification tells that it is in no list.
                let _ = self.folder.remove_file(&place);
            }
        }
    }

    /// Tells and counts what a segment became.
    fn announce(&self, segment: &Closed, torn: &[Entry], finished: Finished) {
        let Shared { status, watch, .. } = &self.shared;
        status.unfinished.set(0);
        let name = segment.path.display().to_string();
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
        self.shared.count(&finished);
        self.remove_unlisted(segment, &finished);
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
        status.log.forget_segment(segment.first_seq);
    }
}

#[cfg(test)]
mod tests {
    use pubgauge_place::Access;
    use std::path::Path;
    use std::sync::Mutex;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;
    use crate::config::Form;
    use crate::log::{Limits, Log};
    use crate::message::Message;
    use crate::verify::verify;
    use pubgauge_net::waker::Waker;

    const LIMITS: Limits = Limits {
        segment_bytes: 1 << 20,
        segment_age: Duration::from_secs(1000),
        reserve_bytes: 0,
    };

    /// Does something to a segment.
    type Plant<'a> = &'a dyn Fn(&Path);

    /// Two closed segments, of messages 1 to 2 and 3 to 4.
    fn two_segments(folder: &Folder) -> [Closed; 2] {
        let (mut log, _) = Log::open(&folder.log(), Form::Parquet, LIMITS, 1).unwrap();
        [1, 3].map(|first| {
            let mut frames = Vec::new();
            for index in 0..2 {
                let message = Message {
                    index,
                    ..Message::numbered(first + u64::from(index), b"a payload")
                };
                message.append(log.mark(), &mut frames);
            }
            log.commit(&frames, first..first + 2, 0).unwrap();
            log.rotate().unwrap().unwrap()
        })
    }

    #[test]
    fn a_segment_that_cannot_be_read_is_set_aside_and_the_others_go_on() {
        let remove = |path: &Path| std::fs::remove_file(path).unwrap();
        let plants: [(&str, bool, Plant<'_>); 4] = [
            ("removed", false, &remove),
            ("a folder", true, &|path| {
                remove(path);
                std::fs::create_dir(path).unwrap();
            }),
            ("a link", true, &|path| {
                remove(path);
                std::os::unix::fs::symlink("/dev/zero", path).unwrap();
            }),
            ("a hole", true, &|path| {
                let file = std::fs::File::options().write(true).open(path).unwrap();
                file.set_len(1 << 40).unwrap();
            }),
        ];
        for (what, is_kept, plant) in plants {
            let data = tempfile::tempdir().unwrap();
            let folder = Arc::new(Folder::open(data.path(), Some("c"), Access::Owner).unwrap());
            let closed = two_segments(&folder);
            plant(&closed[0].path);
            let told = Arc::<Mutex<Vec<Notice>>>::default();
            let tell = told.clone();
            let shared = Shared {
                status: Arc::default(),
                watch: Arc::new(move |notice| tell.lock().unwrap().push(notice.clone())),
                waker: Waker::new().unwrap(),
            };
            let (close, to_finish) = channel();
            for segment in closed {
                shared.status.waiting_segments.add(1);
                close.send(segment).unwrap();
            }
            drop(close);
            let finisher = Finisher {
                shared: shared.clone(),
                folder: folder.clone(),
                layout: Layout::default(),
                finished: None,
                abandon: Arc::default(),
                unlisted: Vec::new(),
            };
            finisher.run(&to_finish);
            let status = &shared.status;
            let counts = [
                &status.files,
                &status.file_messages,
                &status.damaged,
                &status.set_aside,
                &status.waiting_segments,
                &status.unfinished,
            ];
            let counts = counts.map(|count| count.get());
            assert_eq!(counts, [1, 2, 2, 1, 0, 0], "{what}");
            let ill = status.ill().unwrap();
            assert!(ill.starts_with("degraded: 1 segment"), "{what}: {ill}");
            let told = told.lock().unwrap();
            let of_it = told.iter().find_map(|notice| match notice {
                Notice::SetAside {
                    kept_as,
                    first: 1,
                    last: 2,
                    ..
                } => Some(kept_as.is_some()),
                _ => None,
            });
            assert_eq!(of_it, Some(is_kept), "{what}: {told:?}");
            // It stays told, and the next start goes on.
            let faults = verify(data.path()).unwrap().faults;
            let is_told = |words: &str| faults.iter().any(|fault| fault.what.contains(words));
            assert!(is_told("messages 1 to 2 are lost"), "{what}: {faults:?}");
            assert_eq!(is_told("has set aside"), is_kept, "{what}: {faults:?}");
            let (entries, _) = manifest::read(folder.collectors_folder()).unwrap();
            let next = manifest::next_seq(&entries);
            let (_, recovered) = Log::open(&folder.log(), Form::Parquet, LIMITS, next).unwrap();
            assert_eq!(
                (recovered.next_seq, recovered.missing),
                (5, vec![]),
                "{what}"
            );
        }
    }
}
