//! A thread that beats beside a worker's.

use std::ops::Range;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pubgauge_driver::{Attempt, Clock, DriverError, Nanos};

use crate::pulse::{FLOOR, Rounds, Stalls};

/// How often it wakes: as short as the shortest stall that counts.
const BEAT: Duration = Duration::from_millis(5);

/// A thread that stands still when the whole process does, and beats on while the worker's thread sleeps in a call of the
/// system's library, or waits there for a lock. It ends when this is dropped. In simulated time it never stands still.
pub struct Heartbeat {
    clock: Clock,
    beats: Arc<Mutex<Beats>>,
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The thread's state. Both parts change together, so that a stall is never both in the list and overdue.
struct Beats {
    stalls: Vec<Range<Nanos>>,
    /// When it should wake next.
    due: Nanos,
    /// The most that it waited for a processor between two readings since it began, ns.
    longest_wait: Nanos,
}

fn locked(beats: &Mutex<Beats>) -> MutexGuard<'_, Beats> {
    beats.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Heartbeat {
    /// Begins to beat.
    ///
    /// # Errors
    /// When the system starts no more threads.
    pub fn begin(clock: &Clock) -> Result<Self, DriverError> {
        let mut heart = Heartbeat {
            clock: clock.clone(),
            beats: Arc::new(Mutex::new(Beats {
                stalls: Vec::new(),
                due: Nanos::MAX,
                longest_wait: 0,
            })),
            end: None,
            thread: None,
        };
        if let Clock::Virtual(_) = clock {
            return Ok(heart);
        }
        let (end, ended) = channel();
        let (told, time) = (Arc::clone(&heart.beats), clock.clone());
        let thread = thread::Builder::new().name("heartbeat".into());
        let thread = thread.spawn(move || {
            let mut rounds = Rounds::new(&time);
            while ended.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                let stall = rounds.beat(time.now());
                rounds.due += BEAT.as_nanos() as Nanos;
                let mut told = locked(&told);
                told.stalls.extend(stall);
                told.due = rounds.due;
                told.longest_wait = told.longest_wait.max(rounds.waited);
            }
        });
        let thread = thread.map_err(|error| {
            DriverError::of_io(
                "cannot start a thread beside a worker",
                Attempt::Start,
                &error,
            )
        })?;
        (heart.end, heart.thread) = (Some(end), Some(thread));
        Ok(heart)
    }

    /// The times in which it stood still, with one that goes on.
    pub fn stalls(&self, measurement: &Range<Nanos>) -> Stalls {
        let beats = locked(&self.beats);
        let mut all = Stalls {
            longest_wait: beats.longest_wait,
            ..Stalls::default()
        };
        for stall in &beats.stalls {
            all.add(stall.clone(), measurement);
        }
        // After a stop of the process the worker may run first.
        let now = self.clock.now();
        if now >= beats.due.saturating_add(FLOOR) {
            all.add(beats.due..now, measurement);
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
    use std::time::Instant;

    use super::*;

    const MS: Nanos = 1_000_000;

    /// A child process is stopped for 300 ms.
    #[test]
    fn a_stopped_process_is_a_stall() {
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
            let passed = libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
            assert!(passed, "{status:x}");
        }
    }

    fn stands_still_with_the_process() -> bool {
        let heart = Heartbeat::begin(&Clock::Monotonic).expect("a thread");
        while locked(&heart.beats).due == Nanos::MAX {
            thread::sleep(BEAT);
        }
        let began = Instant::now();
        // SAFETY: the parent lets the process continue.
        unsafe { libc::raise(libc::SIGSTOP) };
        // Before the thread beats again, and after.
        let at_once = heart.stalls(&(0..Nanos::MAX)).within;
        thread::sleep(BEAT * 4);
        let later = heart.stalls(&(0..Nanos::MAX)).within;
        // The parent may be late to continue it, but no stall counts twice.
        let whole = began.elapsed().as_nanos() as Nanos;
        [at_once, later]
            .iter()
            .all(|found| (250 * MS..whole).contains(found))
    }

    /// The worker's thread sleeps for a second, as in a call of a library; the heart beats on but for what a busy machine
    /// takes.
    #[test]
    fn a_sleep_of_the_worker_is_none() {
        let heart = Heartbeat::begin(&Clock::Monotonic).expect("a thread");
        thread::sleep(Duration::from_secs(1));
        let stalls = heart.stalls(&(0..Nanos::MAX));
        assert!(stalls.within < 300 * MS, "{stalls:?}");
    }
}
