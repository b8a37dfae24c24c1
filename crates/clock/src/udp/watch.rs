//! Exchanges before, during and after a trial.

use std::io;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::client::{Client, ClientCounts};
use crate::Exchange;

/// How often a [`Watch`] asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Questions before the trial, and as many after it. The default is 100.
    pub burst: u32,
    /// Time from one of these to the next. The default is 5 ms.
    pub burst_gap: Duration,
    /// Time from one question to the next during the trial, on average; each differs from it by up to a
    /// quarter, so that they are not in step with the traffic. The default is 100 ms.
    pub gap: Duration,
    /// How long the last answers are waited for. The default is 500 ms.
    pub linger: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Pace {
            burst: 100,
            burst_gap: Duration::from_millis(5),
            gap: Duration::from_millis(100),
            linger: Duration::from_millis(500),
        }
    }
}

const GO_ON: u8 = 0;
const FINISH: u8 = 1;
const ABANDON: u8 = 2;

/// Makes exchanges on a thread of its own: a burst, then one every [`Pace::gap`], at the end a burst again.
#[derive(Debug)]
pub struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<ClientCounts>>,
}

#[derive(Debug, Default)]
struct Shared {
    seen: Mutex<Seen>,
    changed: Condvar,
    wish: AtomicU8,
}

#[derive(Debug, Default)]
struct Seen {
    exchanges: Vec<Exchange>,
    /// Bursts that were asked for, the first among them, and those that are over.
    bursts_wanted: u64,
    bursts_over: u64,
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wish(&self) -> u8 {
        self.wish.load(Ordering::Relaxed)
    }
}

impl Watch {
    /// Starts with the burst before the trial.
    ///
    /// # Errors
    /// A thread that cannot be started.
    pub fn start(client: Client, pace: Pace) -> io::Result<Watch> {
        let shared = Arc::new(Shared::default());
        shared.seen().bursts_wanted = 1;
        let asking = Asking {
            client,
            pace,
            shared: Arc::clone(&shared),
        };
        let thread = std::thread::Builder::new()
            .name("clock-client".into())
            .spawn(move || asking.run())?;
        Ok(Watch {
            shared,
            thread: Some(thread),
        })
    }

    /// Waits for the end of the first burst, `longest` at the most; returns its exchanges. They are enough for
    /// a first fit, by which a trial can be started.
    pub fn before(&self, longest: Duration) -> Vec<Exchange> {
        self.wait(1, longest)
    }

    /// Makes another burst now, and waits for its end, `longest` at the most; returns all exchanges so far. For a
    /// watch that goes on from trial to trial.
    pub fn burst(&self, longest: Duration) -> Vec<Exchange> {
        let wanted = {
            let mut seen = self.shared.seen();
            seen.bursts_wanted += 1;
            seen.bursts_wanted
        };
        self.wait(wanted, longest)
    }

    /// Forgets the exchanges before `near` (near clock, ns).
    pub fn forget(&self, near: u64) {
        let mut seen = self.shared.seen();
        seen.exchanges.retain(|exchange| exchange.sent >= near);
    }

    /// Waits until this many bursts are over, `longest` at the most.
    fn wait(&self, bursts: u64, longest: Duration) -> Vec<Exchange> {
        let until = Instant::now() + longest;
        let mut seen = self.shared.seen();
        while seen.bursts_over < bursts {
            let left = until.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                break;
            }
            let waited = self.shared.changed.wait_timeout(seen, left);
            seen = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        seen.exchanges.clone()
    }

    /// The exchanges so far.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.shared.seen().exchanges.clone()
    }

    /// Makes the burst after the trial; returns all exchanges, and what became of the questions.
    pub fn finish(mut self) -> (Vec<Exchange>, ClientCounts) {
        let counts = self.end(FINISH);
        let exchanges = std::mem::take(&mut self.shared.seen().exchanges);
        (exchanges, counts)
    }

    fn end(&mut self, wish: u8) -> ClientCounts {
        self.shared.wish.store(wish, Ordering::Relaxed);
        let counts = self.thread.take().and_then(|thread| thread.join().ok());
        counts.unwrap_or_default()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.end(ABANDON);
        }
    }
}

struct Asking {
    client: Client,
    pace: Pace,
    shared: Arc<Shared>,
}

impl Asking {
    fn run(mut self) -> ClientCounts {
        let mut turn = 0u32;
        while self.shared.wish() == GO_ON || self.shared.wish() == FINISH && self.is_burst_wanted()
        {
            if self.is_burst_wanted() {
                self.burst();
                self.shared.seen().bursts_over += 1;
                self.shared.changed.notify_all();
                continue;
            }
            self.client.ask();
            turn = turn.wrapping_add(1);
            // The golden ratio spreads any number of turns evenly.
            let share = (f64::from(turn) * 0.618_033_988_749_895).fract();
            let until = Instant::now() + self.pace.gap.mul_f64(0.75 + share / 2.0);
            // A wish may have come since the loop looked: one read here would be taken for the old one.
            self.listen_while(until, |own| {
                own.shared.wish() == GO_ON && !own.is_burst_wanted()
            });
        }
        self.burst();
        let until = Instant::now() + self.pace.linger;
        let is_open = |counts: ClientCounts| counts.heard < counts.asked;
        while is_open(self.client.counts()) && Instant::now() < until {
            self.listen(until.min(Instant::now() + self.pace.burst_gap));
        }
        self.client.counts()
    }

    fn is_burst_wanted(&self) -> bool {
        let seen = self.shared.seen();
        seen.bursts_over < seen.bursts_wanted
    }

    fn burst(&mut self) {
        for _ in 0..self.pace.burst {
            if self.shared.wish() == ABANDON {
                return;
            }
            self.client.ask();
            self.listen(Instant::now() + self.pace.burst_gap);
        }
    }

    /// Keeps the answers that come until `until`, or until the wish changes.
    fn listen(&mut self, until: Instant) {
        let wish = self.shared.wish();
        self.listen_while(until, |own| own.shared.wish() == wish);
    }

    fn listen_while(&mut self, until: Instant, goes_on: impl Fn(&Asking) -> bool) {
        while Instant::now() < until && goes_on(self) {
            let next = until.min(Instant::now() + Duration::from_millis(50));
            while let Some(exchange) = self.client.hear(next) {
                self.shared.seen().exchanges.push(exchange);
            }
        }
    }
}
