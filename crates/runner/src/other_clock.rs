//! The conductor's clock on a host with another clock. It is followed as long as the agent lives: exchanges
//! before, during and after a trial bound the error of its workers' readings.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use pubgauge_clock::udp::{Client, Key, Pace, Watch, monotonic};
use pubgauge_clock::{Caps, FitError, Line, fit};
use pubgauge_driver::Course;
use pubgauge_engine::recording::Conversion;

use crate::lock;

/// How long to wait for a burst of exchanges, which takes half a second.
const PATIENCE: Duration = Duration::from_secs(2);
/// Age from which exchanges are not used for the next trial, ns: 120 s.
const OLD: u64 = 120_000_000_000;
/// The largest age of the last burst when a trial begins.
const FRESH: Duration = Duration::from_secs(5);

/// The conductor's clock.
#[derive(Debug)]
pub struct OtherClock {
    watch: Watch,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The clock course of the workers that run now: one for all, so that times between them are exact.
    current: Weak<Line>,
    /// When the last burst ended.
    burst: Instant,
}

/// A clock course in use by a worker.
pub struct InUse<'a> {
    clock: &'a OtherClock,
    line: Arc<Line>,
    /// When the worker began, by this host's clock, ns.
    began: u64,
}

impl OtherClock {
    /// Follows the clock that `server` offers.
    ///
    /// # Errors
    /// If no socket or thread can be made.
    pub fn follow(server: SocketAddr, key: Key) -> io::Result<OtherClock> {
        let client = Client::connect(server, key, Arc::new(monotonic))?;
        Ok(OtherClock {
            watch: Watch::start(client, Pace::default())?,
            state: Mutex::new(State {
                current: Weak::new(),
                burst: Instant::now(),
            }),
        })
    }

    /// Begins a worker.
    ///
    /// # Errors
    /// A message, if the conductor's clock is not known.
    pub fn begin(&self) -> Result<InUse<'_>, String> {
        let mut state = lock(&self.state);
        let line = match state.current.upgrade() {
            Some(line) => line,
            None => {
                let line = Arc::new(self.line(&mut state)?);
                state.current = Arc::downgrade(&line);
                line
            }
        };
        Ok(InUse {
            clock: self,
            line,
            began: monotonic(),
        })
    }

    /// The course from now on.
    fn line(&self, state: &mut State) -> Result<Line, String> {
        self.watch.forget(monotonic().saturating_sub(OLD));
        let mut exchanges = self.watch.before(PATIENCE);
        if state.burst.elapsed() > FRESH {
            exchanges = self.watch.burst(PATIENCE);
            state.burst = Instant::now();
        }
        let mut fitted = fit(&exchanges, Caps::default());
        if matches!(fitted, Err(FitError::Contradiction(_))) {
            // A clock was set since the last trial or during it: only later exchanges can be used.
            self.watch.forget(monotonic());
            fitted = fit(&self.watch.burst(PATIENCE), Caps::default());
        }
        let line = fitted.map(|fit| fit.line(monotonic()));
        line.map_err(|error| words(&error))
    }
}

impl InUse<'_> {
    /// The course that the worker uses.
    pub fn course(&self) -> Course {
        let Line { near, far, drift } = *self.line;
        Course { near, far, drift }
    }

    /// Ends a worker: the largest error of its readings. `whom` is this host, for messages.
    pub fn end(self, whom: &str) -> Conversion {
        let line = *self.line;
        let ended = monotonic();
        let exchanges = self.clock.watch.burst(PATIENCE);
        let error = fit(&exchanges, Caps::default())
            .map(|fit| fit.bound_of_line(&line, self.began, ended))
            .map_err(|error| format!("{whom}: {}", words(&error)));
        Conversion {
            offset: line.far as i64 - line.near as i64,
            error,
        }
    }
}

fn words(error: &FitError) -> String {
    format!("what the run's clock reads is not known: {error}")
}
