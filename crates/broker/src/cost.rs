//! Processor time that a message is made to cost: a broker of a known capacity, for what is to be measured
//! against a truth.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Makes each received message cost the broker's thread the same processor time.
#[derive(Debug)]
pub struct Cost {
    per_message: Duration,
    /// Processor time of the thread that earlier messages account for.
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

    /// Spins until this turn of the event loop has used as much processor time as its messages are to cost, or
    /// `stop` is set. What turns without messages used, such as those of acknowledgements, is credited to the next
    /// message, and no more than one message's cost: an idle broker saves nothing up.
    ///
    /// `messages`: PUBLISH packets received since the start.
    pub fn settle(&mut self, messages: u64, stop: &AtomicBool) {
        if !self.is_planted() {
            return;
        }
        let owed = self.per_message * (messages - self.messages) as u32;
        let until = self.settled_at + owed;
        let mut now = thread_cpu();
        while now < until && !stop.load(Ordering::Relaxed) {
            std::hint::spin_loop();
            now = thread_cpu();
        }
        self.settled_at = until.max(now.saturating_sub(self.per_message));
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
        let stop = AtomicBool::new(false);
        let before = thread_cpu();
        cost.settled_at = before;
        cost.settle(10, &stop);
        cost.settle(10, &stop);
        cost.settle(14, &stop);
        let spent = thread_cpu() - before;
        // A preempted thread's clock stands still; its own calls are all that is added.
        assert!(spent >= Duration::from_millis(7), "{spent:?}");
        assert!(spent < Duration::from_millis(8), "{spent:?}");
    }

    #[test]
    fn turns_without_messages_are_credited_up_to_one_message() {
        let mut cost = Cost::new(Duration::from_millis(1));
        let (stop, before) = (AtomicBool::new(false), thread_cpu());
        while thread_cpu() < before + Duration::from_millis(5) {
            cost.settle(0, &stop);
        }
        let idle = thread_cpu();
        cost.settle(4, &stop);
        let spent = thread_cpu() - idle;
        assert!(spent >= Duration::from_micros(2900), "{spent:?}");
        assert!(spent < Duration::from_millis(4), "{spent:?}");
    }

    #[test]
    fn nothing_is_spent_unless_asked() {
        let mut cost = Cost::new(Duration::ZERO);
        cost.settle(1_000_000, &AtomicBool::new(false));
        assert!(!cost.is_planted());
        assert_eq!(cost.settled_at, Duration::ZERO);
    }

    #[test]
    fn a_broker_that_is_to_stop_does_not_spin() {
        let mut cost = Cost::new(Duration::from_secs(3600));
        let before = thread_cpu();
        cost.settle(1, &AtomicBool::new(true));
        assert!(thread_cpu() - before < Duration::from_secs(1));
    }
}
