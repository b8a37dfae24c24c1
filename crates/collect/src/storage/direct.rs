//! The thread that stores commits without a data folder: as objects of a store, or in Kafka.

#[cfg(feature = "kafka")]
mod kafka;
mod objects;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{AGAIN, STORE_AGAIN, Shared};
use crate::config::Config;
use crate::gather::Commit;
use crate::notice::{Notice, Watch};
use crate::store::Failure;
use objects::Objects;

/// Takes messages in place of a disk.
pub trait Sink: Send {
    /// Where it puts them, in words.
    fn description(&self) -> String;

    /// Takes the messages of a commit, whose frames begin with `mark`.
    ///
    /// # Errors
    /// If they cannot be encoded.
    fn take(&mut self, frames: &Bytes, mark: u32, shared: &Shared) -> Result<(), String>;

    /// Puts what was taken and is not confirmed yet, and returns once all of it is.
    ///
    /// # Errors
    /// Why some of it is not; it may be tried again.
    fn deliver(&mut self, shared: &Shared) -> Result<(), Failure>;
}

/// Begins with the sink that a configuration says; how long a first object took, too.
///
/// # Errors
/// If the other side does not answer.
pub(super) fn begin(
    config: &Config,
    name: &str,
    watch: &Watch,
) -> Result<(Box<dyn Sink>, Duration), Failure> {
    #[cfg(feature = "kafka")]
    if let Some(kafka) = &config.kafka {
        return Ok((Box::new(kafka::Kafka::begin(kafka, name)?), Duration::ZERO));
    }
    let Some(upload) = &config.upload else {
        return Err(Failure {
            what: "there is nowhere to put messages".into(),
            is_missing: false,
        });
    };
    let (objects, took) = Objects::begin(config, upload, name, watch)?;
    Ok((Box::new(objects), took))
}

/// The thread that puts commits into a sink.
pub(super) struct Direct {
    pub(super) shared: Shared,
    pub(super) sink: Box<dyn Sink>,
    pub(super) mark: u32,
    pub(super) done: Sender<Commit>,
    pub(super) abandon: Arc<AtomicBool>,
}

impl Direct {
    /// Works until there is nothing more to come.
    pub(super) fn run(mut self, orders: &Receiver<Commit>) {
        self.shared.status.threads.note_current();
        for commit in orders {
            self.keep(commit);
        }
    }

    /// Stores a commit, however long that takes.
    fn keep(&mut self, mut commit: Commit) {
        let status = self.shared.status.clone();
        if commit.messages > 0 {
            let begun = Instant::now();
            let frames = Bytes::from(std::mem::take(&mut commit.frames));
            if let Err(why) = self.sink.take(&frames, self.mark, &self.shared) {
                // Nothing is acknowledged from here on.
                return self.stall(&why);
            }
            if !self.store_taken() {
                return;
            }
            status.count_commit(begun.elapsed(), frames.len());
            // For whoever sees the messages, and for reuse.
            commit.frames = frames.into();
        }
        status.stored.add(u64::from(commit.messages));
        // The loop may have ended.
        let _ = self.done.send(commit);
        self.shared.waker.wake();
    }

    fn stall(&self, why: &str) {
        self.shared.status.set_stalled(true);
        (self.shared.watch)(&Notice::Stalled {
            why: why.to_owned(),
        });
    }

    /// Puts what the sink has taken, however often that has to be tried. Whether all of it is confirmed.
    fn store_taken(&mut self) -> bool {
        let begun = Instant::now();
        let mut wait = STORE_AGAIN.0;
        while let Err(failure) = self.sink.deliver(&self.shared) {
            let status = &self.shared.status;
            status.failed_uploads.add(1);
            if !status.is_stalled() {
                self.stall(&failure.what);
            }
            if !self.sleep(wait) {
                return false;
            }
            wait = (2 * wait).min(STORE_AGAIN.1);
        }
        if self.shared.status.is_stalled() {
            self.shared.status.set_stalled(false);
            (self.shared.watch)(&Notice::GoesOn {
                after_ms: begun.elapsed().as_millis() as u64,
            });
        }
        true
    }

    /// Sleeps. Whether it is to go on then.
    fn sleep(&self, wait: Duration) -> bool {
        let until = Instant::now() + wait;
        while Instant::now() < until {
            if self.abandon.load(Relaxed) {
                return false;
            }
            thread::sleep(AGAIN);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use pubgauge_mqtt_codec::Publish;

    use super::*;
    use crate::gather::Gather;
    use pubgauge_net::waker::Waker;

    /// Holds what it takes until that is put.
    #[derive(Default)]
    struct Held(Option<Bytes>);

    impl Sink for Held {
        fn description(&self) -> String {
            "memory".into()
        }

        fn take(&mut self, frames: &Bytes, _: u32, _: &Shared) -> Result<(), String> {
            self.0 = Some(frames.clone());
            Ok(())
        }

        fn deliver(&mut self, _: &Shared) -> Result<(), Failure> {
            self.0 = None;
            Ok(())
        }
    }

    #[test]
    fn a_commit_comes_back_with_its_messages() {
        let mark = 3;
        let mut gather = Gather::new(mark, 1);
        for topic in ["a", "b"] {
            let publish = Publish {
                topic,
                ..Publish::default()
            };
            gather.message(&publish, "b:1", (Instant::now(), 5));
        }
        let (orders, ordered) = channel();
        orders.send(gather.take(0)).unwrap();
        drop(orders);
        let (tell_done, done) = channel();
        let shared = Shared {
            status: Arc::default(),
            watch: Arc::new(|_| {}),
            waker: Waker::new().unwrap(),
        };
        let direct = Direct {
            shared: shared.clone(),
            sink: Box::<Held>::default(),
            mark,
            done: tell_done,
            abandon: Arc::default(),
        };
        direct.run(&ordered);
        let commit = done.recv().unwrap();
        let topics: Vec<_> = commit.messages(mark).map(|one| one.topic).collect();
        assert_eq!(topics, ["a", "b"]);
        assert_eq!(shared.status.stored.get(), 2);
    }
}
