//! Processor time that a message is made to cost: a broker of a known capacity, for what is to be measured
//! against a truth.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Makes each received message cost the broker's thread the same processor time.
#[derive(Debug)]
pub struct Cost {
    per_message: Duration,
    /// Processor time of the thread when the last turn was settled.
    settled_at: Duration,
    messages: u64,
}

impl Cost {
    /// `per_message`: least processor time of a message; zero leaves it at what it costs.
    pub fn new(per_message: Duration) -> Cost {
        Cost {
            per_message,
            settled_at: Duration::ZERO,
            messages: 0,
        }
    }

    /// Whether messages are made to cost more than they do.
    pub fn is_planted(&self) -> bool {
        !self.per_message.is_zero()
    }

    /// Computes until the turn has taken as much processor time as its messages are to cost. What a turn
    /// without messages took is not credited to later ones.
    ///
    /// `messages`: PUBLISH packets received since the start.
    pub fn settle(&mut self, messages: u64) {
        if !self.is_planted() {
            return;
        }
        let owed = self.per_message * (messages - self.messages) as u32;
        let until = self.settled_at + owed;
        let mut now = thread_cpu();
        while now < until {
            std::hint::spin_loop();
            now = thread_cpu();
        }
        self.settled_at = now;
        self.messages = messages;
    }
}

/// Processor time of the calling thread.
fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_costs_what_was_planted() {
        let mut cost = Cost::new(Duration::from_micros(500));
        cost.settle(0);
        let before = cost.settled_at;
        cost.settle(10);
        cost.settle(10);
        cost.settle(14);
        let spent = cost.settled_at - before;
        // A preempted thread's clock stands still; its own calls are all that is added.
        assert!(spent >= Duration::from_millis(7), "{spent:?}");
        assert!(spent < Duration::from_millis(8), "{spent:?}");
    }

    #[test]
    fn nothing_is_spent_unless_asked() {
        let mut cost = Cost::new(Duration::ZERO);
        cost.settle(1_000_000);
        assert!(!cost.is_planted());
        assert_eq!(cost.settled_at, Duration::ZERO);
    }
}
