//! A system's own counts, to be compared with those of its publishers and subscribers.
//!
//! Only systems that pubgauge started have counters here: no other program publishes to them.
//! Nothing runs between the two readings. Over HTTP the counts are read before and after the trial,
//! and the reading itself is not counted as a message. A count on a topic begins at 0 with the
//! system and is read once, after the trial; the messages that the reader itself got before the
//! value are subtracted.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pubgauge_driver::{Capability, Driver, Settings, Target};
use serde::Serialize;

use crate::file::{Counter, Counters};
use crate::namespace;
use crate::running::Running;

mod http;
mod pick;
mod topic;

pub(crate) use http::Url;
use pick::Pair;
pub(crate) use pick::is_metric_name;

/// Counts that have not changed for this long are final, whether or not they agree.
const SETTLED: Duration = Duration::from_secs(1);
/// Pause between the two readings before a trial, which must be alike.
const AT_REST: Duration = Duration::from_millis(20);
/// Pauses between readings: the first one, and the longest; each is twice the last.
const PAUSES: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(200)];

/// A system's own counts from [`Running::begin_counting`] to [`Counting::finish`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SystemCounts {
    /// Messages it received from publishers; `None` if it keeps no such count.
    pub published: Option<SystemCount>,
    /// Messages it sent to subscribers, one for each of them; `None` if it keeps no such count.
    pub delivered: Option<SystemCount>,
}

/// The memory of a system, as it says itself; `None` of what it does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnMemory {
    /// Heap in use after a collection, the largest since the system was started, bytes.
    pub heap: Option<u64>,
    /// Memory that it limits itself to, bytes.
    pub limit: Option<u64>,
}

impl OwnMemory {
    /// That of two brokers together; what one of them does not say is not known of both.
    pub fn combined_with(self, other: OwnMemory) -> OwnMemory {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        OwnMemory {
            heap: sum(self.heap, other.heap),
            limit: sum(self.limit, other.limit),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SystemCount {
    /// This many messages of all clients: measured ones, those of the warm-up, sentinels, and those
    /// that were sent a second time because a connection broke.
    Messages(u64),
    /// This many messages that somebody was subscribed to when they were published. Sentinels from
    /// before a subscription took effect may be missing.
    Routed(u64),
    /// With these settings the system counts something else, in the words of its file.
    NotComparable(String),
    /// It could not be read, for this reason.
    NotRead(String),
}

/// Counts read before a trial, to be compared with those after it. Holds no connection.
#[derive(Debug)]
pub struct Counting {
    counters: Counters,
    /// By count: why it cannot be compared under the trial's settings.
    not_comparable: Pair<String>,
    target: Target,
    /// Counts at the beginning, or why there are none.
    before: Result<Pair<u64>, String>,
    /// The system's guard: another one if the system has been started again.
    root_pid: Option<i32>,
}

impl Running {
    /// Reads the system's counts before the first client connects. `None` if the system's file
    /// names none, or pubgauge did not start it. Over HTTP this takes two answers and 20 ms, at
    /// most `counters.time-out-s` of the file (default 5 s). Counts on topics take no time: they
    /// begin at 0 with the system, and so can only be used for its first trial.
    ///
    /// `settings` are those of the trial, and of its flows that have their own.
    pub fn begin_counting(&self, settings: &[Settings]) -> Option<Counting> {
        let counting = namespace::run_on(self.host(), || self.begin_counting_there(settings));
        counting.ok()?
    }

    fn begin_counting_there(&self, settings: &[Settings]) -> Option<Counting> {
        let counters = self.counters.clone()?;
        let excepted = |counter: Option<&Counter>| {
            let counter = counter?;
            settings.iter().find_map(|one| not_comparable(counter, one))
        };
        let mut counting = Counting {
            not_comparable: counters.message_counters().map(excepted),
            target: self.target.clone(),
            before: Ok([Some(0); 2]),
            root_pid: self.root_pid(),
            counters,
        };
        if counting.counters.http.is_none() {
            let root_pid = counting.root_pid.unwrap_or_default();
            if self.counted_since.swap(root_pid, Ordering::Relaxed) == root_pid {
                let why =
                    "counts on topics begin with the system, which has served a trial already";
                counting.before = Err(why.into());
            }
        } else if counting.is_of_use() {
            let before = counting.at_rest();
            counting.before = before.map_err(|why| format!("before the trial: {why}"));
        }
        Some(counting)
    }
}

impl Counting {
    /// Reads the counts again once the trial's clients have closed, and tells the difference.
    ///
    /// `agrees` is asked after each reading. Until it says yes, the counts are read again, because
    /// the system may still be taking in what was sent to it last. Counts that have not changed for
    /// a second are what the system counted, whether they agree or not; counts that still rise when
    /// `counters.time-out-s` (default 5 s) is over are [`SystemCount::NotRead`]. Counts that are not
    /// comparable with the settings of the trial are not read.
    ///
    /// Where the trial left messages under way or lost a connection, a count may differ for that
    /// reason: it includes messages that were sent again, and may lack messages that the system
    /// discarded unread.
    ///
    /// `driver` is the trial's own; counts on topics are read through it.
    pub fn finish(
        &self,
        running: &Running,
        driver: &dyn Driver,
        agrees: impl FnMut(&SystemCounts) -> bool + Send,
    ) -> SystemCounts {
        let counted = namespace::run_on(running.host(), || {
            self.finish_there(running, driver, agrees)
        });
        counted.unwrap_or_else(|error| self.counted(&Err(error.to_string())))
    }

    fn finish_there(
        &self,
        running: &Running,
        driver: &dyn Driver,
        mut agrees: impl FnMut(&SystemCounts) -> bool,
    ) -> SystemCounts {
        if !self.is_of_use() || self.before.is_err() {
            return self.counted(&Ok([None; 2]));
        }
        if running.root_pid() != self.root_pid {
            let why = "the system was started again meanwhile, which sets its counts to 0";
            return self.counted(&Err(why.into()));
        }
        if let Some(end) = running.exit_reason() {
            return self.counted(&Err(end));
        }
        let until = Instant::now() + self.time_out();
        let mut topics = match &self.counters.http {
            Some(_) => None,
            None => match topic::CountsReader::open(&self.counters, &self.target, driver) {
                Ok(reader) => Some(reader),
                Err(why) => return self.counted(&Err(why)),
            },
        };
        let mut read = || match &mut topics {
            Some(topics) => topics.read(until),
            None => http::read(&self.counters, until),
        };
        let mut counted = self.counted(&read());
        let (mut since, mut rising) = (Instant::now(), false);
        let mut pause = PAUSES[0];
        while !counted.is_failed() && !agrees(&counted) {
            std::thread::sleep(pause.min(until.saturating_duration_since(Instant::now())));
            pause = (pause * 2).min(PAUSES[1]);
            // An error after the first reading: the time is over.
            let Ok(counts) = read() else {
                return if rising && since.elapsed() < SETTLED {
                    counted.still_rising(self.time_out())
                } else {
                    counted
                };
            };
            let now = self.counted(&Ok(counts));
            if now != counted {
                (counted, since, rising) = (now, Instant::now(), true);
            } else if since.elapsed() >= SETTLED {
                break;
            }
        }
        counted
    }

    /// The system's own report of its memory, once the trial's clients have closed.
    ///
    /// # Errors
    /// Why it says nothing, where its file says that it does.
    pub fn memory(&self, running: &Running) -> Result<OwnMemory, String> {
        if running.exit_reason().is_some() {
            return Ok(OwnMemory::default());
        }
        let until = Instant::now() + self.time_out();
        let read = || http::read_memory(&self.counters, until);
        namespace::run_on(running.host(), read).map_err(|error| error.to_string())?
    }

    /// The counts once two readings in a row are alike: messages of a probe may still arrive.
    fn at_rest(&self) -> Result<Pair<u64>, String> {
        let until = Instant::now() + self.time_out();
        let mut last = http::read(&self.counters, until)?;
        loop {
            std::thread::sleep(AT_REST);
            match http::read(&self.counters, until)? {
                counts if counts == last => return Ok(counts),
                counts => last = counts,
            }
        }
    }

    /// Whether there is a count that can be compared.
    fn is_of_use(&self) -> bool {
        let mut both = self
            .counters
            .message_counters()
            .into_iter()
            .zip(&self.not_comparable);
        both.any(|(counter, excepted)| counter.is_some() && excepted.is_none())
    }

    fn time_out(&self) -> Duration {
        Duration::from_secs_f64(self.counters.time_out_s)
    }

    /// The differences between the beginning and a reading.
    fn counted(&self, after: &Result<Pair<u64>, String>) -> SystemCounts {
        let both = self.counters.message_counters();
        let count = |which: usize| {
            let counter = both[which]?;
            Some(match (&self.not_comparable[which], &self.before, after) {
                (Some(why), ..) => SystemCount::NotComparable(why.clone()),
                (_, Err(why), _) => SystemCount::NotRead(why.clone()),
                (_, _, Err(why)) => SystemCount::NotRead(why.clone()),
                (_, Ok(before), Ok(after)) => difference(before[which], after[which], counter),
            })
        };
        SystemCounts {
            published: count(0),
            delivered: count(1),
        }
    }
}

impl SystemCounts {
    fn is_failed(&self) -> bool {
        let mut both = self.published.iter().chain(&self.delivered);
        both.any(|count| matches!(count, SystemCount::NotRead(_)))
    }

    fn still_rising(mut self, time_out: Duration) -> Self {
        for count in self.published.iter_mut().chain(&mut self.delivered) {
            if let SystemCount::Messages(n) | SystemCount::Routed(n) = count {
                let seconds = time_out.as_secs_f64();
                *count = SystemCount::NotRead(format!(
                    "after {seconds} s it was at {n} and rising: the system has not taken in all that was sent to it"
                ));
            }
        }
        self
    }
}

fn difference(before: Option<u64>, after: Option<u64>, counter: &Counter) -> SystemCount {
    match (before, after) {
        (Some(before), Some(after)) => match after.checked_sub(before) {
            Some(messages) if counter.routed_only => SystemCount::Routed(messages),
            Some(messages) => SystemCount::Messages(messages),
            None => SystemCount::NotRead(format!("the count fell from {before} to {after}")),
        },
        _ => SystemCount::NotRead("the system did not tell it".into()),
    }
}

/// Why a count is of no use with these settings.
fn not_comparable(counter: &Counter, settings: &Settings) -> Option<String> {
    let mut reasons = counter.not_at.iter();
    reasons.find_map(|(name, why)| {
        let asked = name
            .parse()
            .is_ok_and(|c: Capability| c.is_asked_by(settings));
        asked.then(|| format!("with {name}: {why}"))
    })
}
