//! How a collection goes on, in a line.

use std::fmt;
use std::time::Instant;

use pubgauge_collect::Status;
use pubgauge_quantities::shown::{self, so_many};
use serde::Serialize;

/// How a collection goes on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Progress {
    /// Messages received each second, since the last of these.
    pub messages_per_s: f64,
    /// Messages stored.
    pub stored: u64,
    /// How long the oldest message waits that is not stored.
    pub oldest_waits_ms: f64,
    /// Finished files.
    pub files: u64,
    pub brokers: usize,
    pub brokers_connected: usize,
    /// Messages cannot be stored.
    pub stalled: bool,
}

/// When, and with how many messages received, progress was looked at last.
pub struct Since {
    at: Instant,
    messages: u64,
}

impl Since {
    pub fn now(status: &Status) -> Since {
        Since {
            at: Instant::now(),
            messages: status.messages(),
        }
    }

    /// Progress since then.
    pub fn progress(&self, status: &Status) -> Progress {
        let brokers = status.brokers();
        let more = status.messages().saturating_sub(self.messages);
        Progress {
            messages_per_s: more as f64 / self.at.elapsed().as_secs_f64().max(1e-3),
            stored: status.stored.get(),
            oldest_waits_ms: status.lag_s() * 1e3,
            files: status.files.get(),
            brokers: brokers.len(),
            brokers_connected: brokers.values().filter(|broker| broker.connected).count(),
            stalled: status.is_stalled(),
        }
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} msg/s, {} stored, oldest waits {:.0} ms, {}, {} of {}{}",
            shown::count(self.messages_per_s.round() as u64),
            shown::count(self.stored),
            self.oldest_waits_ms,
            so_many(self.files, "file"),
            self.brokers_connected,
            so_many(self.brokers as u64, "broker"),
            if self.stalled {
                "; nothing can be stored"
            } else {
                ""
            },
        )
    }
}
