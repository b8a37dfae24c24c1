//! A thread that beats beside a worker's.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pubgauge_driver::{Attempt, Clock, DriverError, Nanos};

use crate::pulse::{FLOOR, Rounds, Stalls};

/// How often it wakes: as short as the shortest stall that counts.
const BEAT: Duration = Duration::from_millis(5);

/// A thread that stands still when the whole process does, and beats on while the worker's thread sleeps in a call of the
/// system's library. It ends when this is dropped.
pub struct Heartbeat {
    clock: Clock,
    beats: Arc<Beats>,
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread tells.
struct Beats {
    stalls: Mutex<Vec<Range<Nanos>>>,
    /// When it should wake next.
    due: AtomicU64,
}

impl Beats {
    fn add(&self, stall: Range<Nanos>) {
        let stalls = self.stalls.lock();
        stalls.unwrap_or_else(PoisonError::into_inner).push(stall);
    }
}

impl Heartbeat {
    /// Begins to beat.
    ///
    /// # Errors
    /// When the system starts no more threads.
    pub fn begin(clock: &Clock) -> Result<Self, DriverError> {
        let beats = Arc::new(Beats {
            stalls: Mutex::default(),
            due: AtomicU64::new(Nanos::MAX),
        });
        let (end, ended) = channel();
        let (told, time) = (Arc::clone(&beats), clock.clone());
        let thread = thread::Builder::new().name("heartbeat".into());
        let thread = thread.spawn(move || {
            let mut rounds = Rounds::new(&time);
            while ended.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                if let Some(stall) = rounds.beat(time.now(), 0) {
                    told.add(stall);
                }
                rounds.due += BEAT.as_nanos() as Nanos;
                told.due.store(rounds.due, Relaxed);
            }
        });
        let thread = thread.map_err(|error| {
            DriverError::of_io(
                "cannot start a thread beside a worker",
                Attempt::Start,
                &error,
            )
        })?;
        Ok(Heartbeat {
            clock: clock.clone(),
            beats,
            end: Some(end),
            thread: Some(thread),
        })
    }

    /// The times in which it stood still, with one that goes on.
    pub fn stalls(&self, measurement: &Range<Nanos>) -> Stalls {
        let mut all = Stalls::default();
        let now = self.clock.now();
        // After a stop of the process the worker may run first.
        let due = self.beats.due.load(Relaxed);
        if now >= due.saturating_add(FLOOR) {
            all.add(due..now, measurement);
        }
        let stalls = self.beats.stalls.lock();
        for stall in &*stalls.unwrap_or_else(PoisonError::into_inner) {
            all.add(stall.clone(), measurement);
        }
        all
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pulse::Pulse;

    const MS: Nanos = 1_000_000;

    /// A child process is stopped for 300 ms while its loop is in a call of the library: the heart stood still, too.
    #[test]
    fn a_stopped_process_is_a_stall_though_its_loop_was_in_a_call() {
        // SAFETY: the child uses what it makes itself, and ends without running what the parent registered.
        unsafe {
            let child = libc::fork();
            assert!(child >= 0);
            if child == 0 {
                libc::_exit(i32::from(!stands_still_with_the_process()));
            }
            let mut status = 0;
            libc::waitpid(child, &mut status, libc::WUNTRACED);
            assert!(libc::WIFSTOPPED(status), "{status:x}");
            thread::sleep(Duration::from_millis(300));
            libc::kill(child, libc::SIGCONT);
            libc::waitpid(child, &mut status, 0);
            assert!(
                libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
                "{status:x}"
            );
        }
    }

    fn stands_still_with_the_process() -> bool {
        let clock = Clock::Monotonic;
        let heart = Heartbeat::begin(&clock).expect("a thread");
        let all = 0..Nanos::MAX;
        let mut pulse = Pulse::new(&clock);
        while heart.beats.due.load(Relaxed) == Nanos::MAX {
            thread::sleep(BEAT);
        }
        let began = clock.now();
        pulse.beat(began, &all, 0);
        // SAFETY: the parent lets the process continue.
        unsafe { libc::raise(libc::SIGSTOP) };
        let returned = clock.now();
        pulse.beat(returned, &all, returned - began);
        thread::sleep(BEAT * 4);
        let stalled = pulse.stalls(Some(&heart), &all).within;
        pulse.stalls(None, &all).within == 0 && stalled >= 250 * MS
    }
}
