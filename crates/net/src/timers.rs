//! Timers of many clients.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Timers of all clients of a fleet. A timer that its client has replaced by an earlier one stays in
/// until it is due; the fleet then sees that its time is no longer the client's.
#[derive(Debug, Default)]
pub struct Timers(BinaryHeap<Reverse<(u32, u32)>>);

impl Timers {
    /// Adds a timer of `client` that is due at `due_ms`.
    pub fn push(&mut self, due_ms: u32, client: u32) {
        self.0.push(Reverse((due_ms, client)));
    }

    /// When the first is due, in the milliseconds that were pushed.
    pub fn first_ms(&self) -> Option<u32> {
        self.0.peek().map(|Reverse((due, _))| *due)
    }

    /// Takes one out that is due at `now_ms`: its time and its client.
    pub fn pop_due(&mut self, now_ms: u32) -> Option<(u32, u32)> {
        if self.first_ms()? > now_ms {
            return None;
        }
        self.0.pop().map(|Reverse(entry)| entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_come_out_in_the_order_of_their_times() {
        let mut timers = Timers::default();
        for (due, client) in [(30, 1), (10, 2), (20, 3)] {
            timers.push(due, client);
        }
        assert_eq!(timers.first_ms(), Some(10));
        assert_eq!(timers.pop_due(9), None);
        assert_eq!(timers.pop_due(25), Some((10, 2)));
        assert_eq!(timers.pop_due(25), Some((20, 3)));
        assert_eq!(timers.pop_due(25), None);
    }
}
