//! Timers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// One timer. It is stale if its generation is no longer that of its connection
/// or session; so timers need no cancelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// The connection's CONNECT must have come.
    Connect { id: u32, generation: u32 },
    /// A packet must have come within the keep alive.
    KeepAlive { id: u32, generation: u32 },
    /// Progress of the session that this connection waits on in a circle, whose
    /// connection had sent `sent` bytes (modulo 2^32) when the timer was set.
    Stall { id: u32, generation: u32, sent: u32 },
    /// The end of a session without connection.
    SessionExpiry { id: u32, generation: u32 },
    /// A delayed will.
    Will { id: u32, generation: u32 },
    /// The broker's own topics.
    Sys,
    /// Accepting is tried again.
    Accept,
}

/// All timers, in order.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(u64, Timer)>>,
}

impl Timers {
    pub(crate) fn set(&mut self, at_ms: u64, timer: Timer) {
        self.heap.push(Reverse((at_ms, timer)));
    }

    /// The next timer that is due, if one is.
    pub(crate) fn due(&mut self, now_ms: u64) -> Option<Timer> {
        let Reverse((at, _)) = self.heap.peek()?;
        if *at > now_ms {
            return None;
        }
        self.heap.pop().map(|Reverse((_, timer))| timer)
    }

    /// When the next one is due.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_come_in_order_and_not_early() {
        let mut timers = Timers::default();
        timers.set(20, Timer::Accept);
        timers.set(10, Timer::Sys);
        assert_eq!((timers.due(9), timers.next_ms()), (None, Some(10)));
        assert_eq!(timers.due(25), Some(Timer::Sys));
        assert_eq!(timers.due(25), Some(Timer::Accept));
        assert_eq!((timers.due(25), timers.next_ms()), (None, None));
    }
}
