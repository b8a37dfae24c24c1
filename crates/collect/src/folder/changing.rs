//! The right to change lists of finished files and folders of partitions: of one thread of one process at a time.

use std::fs::File;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pubgauge_place::{OpenFolder, take_owner};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// The file that is locked, in the folder of all collectors: no collector can be called so.
const NAME: &str = ".changing";

/// How long another process may hold it: what it does meanwhile are some changes of names, and their sync.
const PATIENCE: Duration = Duration::from_secs(10);

/// Shortest time between two attempts.
const AGAIN: Duration = Duration::from_millis(2);

/// The right to change lists and partitions of a data folder.
#[derive(Debug)]
pub struct Changing {
    file: File,
    by_threads: Mutex<()>,
}

/// It is held until this is dropped.
#[derive(Debug)]
pub struct Held<'a> {
    file: &'a File,
    _by_thread: MutexGuard<'a, ()>,
}

impl Changing {
    /// Takes the folder of all collectors.
    ///
    /// # Errors
    /// If the file can neither be opened nor made.
    pub fn open(collectors: &OpenFolder) -> io::Result<Changing> {
        let is_new = !Changing::is_there(collectors);
        let file = collectors.lock_file(NAME)?;
        if is_new {
            // Else a collector could not open what another user has made.
            take_owner(&file, collectors)?;
        }
        Ok(Changing {
            file,
            by_threads: Mutex::default(),
        })
    }

    /// Whether somebody who respects it has worked in the folder.
    pub fn is_there(collectors: &OpenFolder) -> bool {
        collectors.file(NAME).is_ok()
    }

    /// Waits for it, and holds it.
    ///
    /// # Errors
    /// If another process holds it for ten seconds.
    pub fn hold(&self) -> io::Result<Held<'_>> {
        let by_thread = self
            .by_threads
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let until = Instant::now() + PATIENCE;
        loop {
            match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < until => {
                    thread::sleep(AGAIN);
                }
                Err(Errno::WOULDBLOCK) => {
                    return Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        format!("another process holds the file {NAME:?} of all collectors"),
                    ));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Held {
            file: &self.file,
            _by_thread: by_thread,
        })
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // Only a file that is not open cannot be given free.
        let _ = flock(self.file, FlockOperation::Unlock);
    }
}
