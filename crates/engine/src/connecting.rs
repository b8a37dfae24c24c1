//! How the connections of a worker's clients come about: how long each takes, and what becomes of those that the system
//! turns away at first.

use std::collections::VecDeque;

use hdrhistogram::Histogram;
use pubgauge_driver::{ClientId, Failure, Nanos};
use serde::{Deserialize, Serialize};

use crate::times::{HistogramValues, histogram};

/// Clients of all workers that connect at the same time; brokers' listen queues are often 100 long, and one that
/// overflows costs a second of SYN retransmission.
const AT_ONCE: usize = 64;
/// Pause after the first client that was turned away, ns; each further one that no connection lies between doubles it.
const SHORTEST_PAUSE: Nanos = 100_000_000;
/// Longest pause, ns.
const LONGEST_PAUSE: Nanos = 1_000_000_000;
/// A worker gives up if for this share of the time for connecting clients were turned away, and no more of them were
/// connected at once than before.
const PATIENCE_SHARE: Nanos = 8;
/// It gives up earlier, after so long, if none was ever connected, ns.
const SHORTEST_PATIENCE: Nanos = 3_000_000_000;

/// How the connections of one worker's clients came about. Times are by the worker's clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConnectRecording {
    /// From the beginning of each attempt that led to a client's first connection until the system had accepted it; absent
    /// without any.
    pub times: Option<HistogramValues>,
    /// Likewise of connections that were made again.
    pub times_again: Option<HistogramValues>,
    /// Attempts that the system turned away.
    pub refused: u64,
    /// First connections: when the first attempt began, and when the last was made.
    pub connected: Option<(Nanos, Nanos)>,
    /// Their subscriptions: when the first was asked for, and when the last was taken.
    pub subscribed: Option<(Nanos, Nanos)>,
    /// How many these are.
    pub subscriptions: u64,
    /// Times in which clients were without a connection that they had lost, at most [`ConnectRecording::MOST_INTERRUPTIONS`].
    pub interruptions: Vec<Interruption>,
}

/// A time in which clients were without a connection that they had lost: from the first loss, with all connected before it,
/// until all were connected again. Times are by the worker's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interruption {
    /// When the first connection was lost.
    pub from: Nanos,
    /// When the first was made again, its subscriptions included.
    pub first_back: Option<Nanos>,
    /// When the last was; absent if some never were.
    pub all_back: Option<Nanos>,
    /// Connections that were lost.
    pub lost: u64,
}

impl Interruption {
    /// Interruptions of all workers: those that overlap are one.
    pub fn unite(mut all: Vec<Interruption>) -> Vec<Interruption> {
        all.sort_by_key(|one| one.from);
        let mut united: Vec<Interruption> = Vec::new();
        for next in all {
            match united.last_mut() {
                Some(last) if last.all_back.is_none_or(|to| next.from <= to) => {
                    last.first_back = match (last.first_back, next.first_back) {
                        (Some(a), Some(b)) => Some(a.min(b)),
                        (one, other) => one.or(other),
                    };
                    last.all_back = last.all_back.zip(next.all_back).map(|(a, b)| a.max(b));
                    last.lost += next.lost;
                }
                _ => united.push(next),
            }
        }
        united
    }
}

impl ConnectRecording {
    /// Interruptions that are kept.
    pub const MOST_INTERRUPTIONS: usize = 256;

    /// Its histograms, which may still be encoded.
    pub fn histograms_mut(&mut self) -> impl Iterator<Item = &mut HistogramValues> {
        self.times.iter_mut().chain(&mut self.times_again)
    }
}

/// Widens a span of time to `now`.
fn widen(span: &mut Option<(Nanos, Nanos)>, now: Nanos) {
    let (_, to) = span.get_or_insert((now, now));
    *to = now.max(*to);
}

/// The connections of a worker's clients, as they come about.
#[derive(Default)]
pub(crate) struct Connections {
    recording: ConnectRecording,
    times: Option<Histogram<u64>>,
    times_again: Option<Histogram<u64>>,
    /// When the present attempt of each client began.
    begun: Vec<Nanos>,
    /// Clients without the connection that they had.
    down: u64,
}

impl Connections {
    /// An attempt of a client begins.
    pub fn begin(&mut self, client: ClientId, now: Nanos) {
        let index = client.0 as usize;
        if self.begun.len() <= index {
            self.begun.resize(index + 1, now);
        }
        self.begun[index] = now;
        self.recording.connected.get_or_insert((now, now));
    }

    /// A client is connected, for the first time or `again`. The system's answer was read at `read`, or at an unknown time
    /// before `now`. Returns when its attempt began, and when it was made.
    pub fn note_connection(
        &mut self,
        client: ClientId,
        again: bool,
        read: Nanos,
        now: Nanos,
    ) -> (Nanos, Nanos) {
        let begun = self.begun.get(client.0 as usize).copied().unwrap_or(now);
        let at = if read >= begun { read } else { now };
        let times = if again {
            &mut self.times_again
        } else {
            widen(&mut self.recording.connected, at);
            &mut self.times
        };
        let took = at.saturating_sub(begun).max(1);
        times.get_or_insert_with(histogram).saturating_record(took);
        (begun, at)
    }

    /// The system turned a client away.
    pub fn note_refusal(&mut self) {
        self.recording.refused += 1;
    }

    /// A client has lost its connection.
    pub fn note_loss(&mut self, now: Nanos) {
        let all = &mut self.recording.interruptions;
        if self.down == 0 && all.len() < ConnectRecording::MOST_INTERRUPTIONS {
            all.push(Interruption {
                from: now,
                ..Interruption::default()
            });
        }
        self.down += 1;
        if let Some(present) = all.last_mut() {
            present.lost += 1;
            present.all_back = None;
        }
    }

    /// A client that had lost its connection has one again, and its subscriptions.
    pub fn note_return(&mut self, now: Nanos) {
        self.down = self.down.saturating_sub(1);
        if let Some(present) = self.recording.interruptions.last_mut() {
            present.first_back.get_or_insert(now);
            if self.down == 0 {
                present.all_back = Some(now);
            }
        }
    }

    /// A subscription of a client's first connection is asked for.
    pub fn subscribe(&mut self, now: Nanos) {
        self.recording.subscribed.get_or_insert((now, now));
    }

    /// The system has taken one.
    pub fn subscribed(&mut self, read: Nanos) {
        self.recording.subscriptions += 1;
        widen(&mut self.recording.subscribed, read);
    }

    /// All that was seen.
    pub fn finish(&mut self) -> ConnectRecording {
        ConnectRecording {
            times: self.times.take().map(Into::into),
            times_again: self.times_again.take().map(Into::into),
            ..std::mem::take(&mut self.recording)
        }
    }
}

/// Clients that the system has turned away while all are connecting: they try again, fewer at once and after a pause, as
/// long as any gets in.
pub(crate) struct TurnedAway {
    waiting: VecDeque<ClientId>,
    /// No client begins before.
    next: Nanos,
    pause: Nanos,
    /// Clients that may be connecting at the same time.
    at_once: usize,
    /// As many where none is turned away.
    at_once_by_default: usize,
    /// The first of those that were turned away since more clients than ever were connected, and when that was.
    since: Option<(Nanos, Failure)>,
    /// The most clients that were connected at once.
    most: usize,
    patience: Nanos,
}

impl TurnedAway {
    /// Nobody was turned away yet. All clients are to be connected within `ready_within`, ns; this worker has a `share` of them,
    /// 0 to 1, and may connect one at a time at least.
    pub fn new(ready_within: Nanos, share: f64) -> TurnedAway {
        let at_once = ((AT_ONCE as f64 * share) as usize).max(1);
        TurnedAway {
            waiting: VecDeque::new(),
            next: 0,
            pause: 0,
            at_once,
            at_once_by_default: at_once,
            since: None,
            most: 0,
            patience: (ready_within / PATIENCE_SHARE).max(SHORTEST_PATIENCE),
        }
    }

    /// A client was turned away.
    pub fn add(&mut self, client: ClientId, failure: Failure, now: Nanos) {
        self.waiting.push_back(client);
        self.since.get_or_insert((now, failure));
        self.at_once = 1;
        if now >= self.next {
            self.pause = (2 * self.pause).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
            self.next = now + self.pause;
        }
    }

    /// So many clients are connected.
    pub fn connected(&mut self, up: usize) {
        if up > self.most {
            self.most = up;
            self.since = None;
            self.pause = 0;
            self.at_once = (2 * self.at_once).min(self.at_once_by_default);
        }
    }

    /// Until when no client may begin; `None` if one may now, while `connecting` others are.
    pub fn waits_until(&self, connecting: usize, now: Nanos) -> Option<Nanos> {
        if now < self.next {
            Some(self.next)
        } else {
            (connecting >= self.at_once).then_some(Nanos::MAX)
        }
    }

    /// The next of them to try again.
    pub fn next(&mut self) -> Option<ClientId> {
        self.waiting.pop_front()
    }

    /// Whether nothing is left but to give up, and why; told once.
    pub fn gives_up(&mut self, now: Nanos) -> Option<Failure> {
        if now < self.patience_ends() {
            return None;
        }
        // Nothing begins any more.
        self.next = Nanos::MAX;
        self.since.take().map(|(_, failure)| failure)
    }

    /// When it gives up, if none gets in before.
    pub fn patience_ends(&self) -> Nanos {
        let patience = match self.most {
            0 => SHORTEST_PATIENCE,
            _ => self.patience,
        };
        (self.since.as_ref()).map_or(Nanos::MAX, |(at, _)| at + patience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interruption_lasts_until_the_last_client_is_back() {
        let mut connections = Connections::default();
        connections.note_loss(10);
        connections.note_loss(12);
        connections.note_return(20);
        connections.note_loss(25);
        connections.note_return(30);
        connections.note_return(41);
        connections.note_loss(90);
        let one = Interruption {
            from: 10,
            first_back: Some(20),
            all_back: Some(41),
            lost: 3,
        };
        let other = Interruption {
            from: 90,
            first_back: None,
            all_back: None,
            lost: 1,
        };
        let seen = connections.finish().interruptions;
        assert_eq!(seen, [one, other.clone()]);
        let elsewhere = Interruption {
            from: 8,
            first_back: Some(19),
            all_back: Some(11),
            lost: 2,
        };
        let all = seen.into_iter().chain([elsewhere]).collect();
        let united = Interruption::unite(all);
        let both = Interruption {
            from: 8,
            first_back: Some(19),
            all_back: Some(41),
            lost: 5,
        };
        assert_eq!(united, [both, other]);
    }
}
