//! Messages of the collector's own through the brokers: sends them, and tells what became of them.

use std::time::Instant;

use super::lead::Loop;
use crate::notice::Notice;
use crate::verify::numbers::{self, Numbers};

impl Loop {
    /// Sends those that are due, and tells those that are lost; at the end nothing is waited for any more.
    pub(super) fn look_at_canaries(&mut self, now: Instant, is_end: bool) {
        if self.collector.config.canary.is_none() {
            return;
        }
        let mut failed = Vec::new();
        for at in 0..self.peers.len() {
            let peer = &mut self.peers[at];
            let is_up = peer.is_up();
            if let Some(link) = peer.link.as_mut().filter(|_| is_up && !is_end) {
                let sent = peer.session.send_canary(now, &self.asked, link.out());
                failed.extend(sent.and_then(|()| link.flush()).err().map(|why| (at, why)));
            }
            let Some(canary) = &mut peer.session.canary else {
                continue;
            };
            let refused = canary.refused();
            let lost = canary.lost(now, is_end);
            let Some((counts, before)) = canary.news(now, is_up) else {
                continue;
            };
            let broker = peer.session.broker.clone();
            let is_overdue = counts.is_overdue && before.is_none_or(|before| !before.is_overdue);
            let status = &self.collector.status;
            status.canaries_lost.add(lost.len() as u64);
            status.broker(&broker, |status| status.canaries = Some(counts));
            if let Some(why) = refused {
                let (broker, why) = (broker.clone(), why.to_owned());
                self.notice(&Notice::CanaryRefused { broker, why });
            }
            if !lost.is_empty() {
                self.notice(&Notice::CanariesLost {
                    broker: broker.clone(),
                    count: lost.len() as u64,
                    numbers: numbers::describe(&Numbers::ranges(lost)),
                });
            }
            if is_overdue {
                self.notice(&Notice::CanaryOverdue { broker });
            }
        }
        for (at, why) in failed {
            self.lost(at, why, now);
        }
    }
}
