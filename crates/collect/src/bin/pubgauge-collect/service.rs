//! Messages to the service manager of systemd that started a collector (sd_notify(3)). Elsewhere nobody listens, and nothing is sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use pubgauge_collect::{Notice, Status};
use sd_notify::NotifyState;

use crate::progress::Progress;

/// How often the status is told where no watchdog asks for a sign of life.
const STATUS_EVERY: Duration = Duration::from_secs(10);

/// The service manager.
#[derive(Clone)]
pub struct Service {
    /// How often it is told that the collector is alive.
    every: Duration,
    ending: Arc<AtomicBool>,
}

impl Service {
    /// As the environment says.
    pub fn new() -> Service {
        let watchdog = sd_notify::watchdog_enabled();
        Service {
            every: watchdog.map_or(STATUS_EVERY, |within| within / 2),
            ending: Arc::default(),
        }
    }

    /// Tells what a notice means to it. It is ready once the log is taken: brokers may come later.
    pub fn notice(&self, notice: &Notice) {
        match notice {
            Notice::Begun { .. } | Notice::Reloaded | Notice::NotReloaded { .. } => {
                send(&[NotifyState::Ready]);
            }
            Notice::Ending => {
                self.ending.store(true, Relaxed);
                send(&[NotifyState::Stopping]);
            }
            _ => {}
        }
    }

    pub fn reloading(&self) {
        // Without the time, a manager that wants it waits for nothing else.
        let now = NotifyState::monotonic_usec_now().ok();
        let states = std::iter::once(NotifyState::Reloading).chain(now);
        send(&states.collect::<Vec<_>>());
    }

    /// Whether it is time for a sign of life.
    pub fn is_due(&self, last: Instant, now: Instant) -> bool {
        now.saturating_duration_since(last) >= self.every
    }

    /// Tells how it goes on, and that the collector is alive, if it is.
    pub fn alive(&self, status: &Status, progress: &Progress) {
        let words = progress.to_string();
        let mut states = vec![NotifyState::Status(&words)];
        if is_alive(status.stuck_for(), self.every, self.ending.load(Relaxed)) {
            states.push(NotifyState::Watchdog);
        }
        send(&states);
    }
}

/// Whether the loop has turned since the last sign of life. At its end it does not turn, and is bounded by `stop-within`.
fn is_alive(stuck_for: Duration, every: Duration, ending: bool) -> bool {
    ending || stuck_for < every
}

fn send(states: &[NotifyState<'_>]) {
    // A manager that cannot be told acts as if nothing was told; there is nobody else to tell.
    let _ = sd_notify::notify(states);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_hangs_gives_no_sign_of_life() {
        let second = Duration::from_secs(1);
        assert!(is_alive(second / 5, second, false));
        assert!(!is_alive(second, second, false));
        assert!(is_alive(2 * second, second, true));
    }
}
