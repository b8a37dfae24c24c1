//! The sessions of a collector that is not to come back are given up, once they are empty.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::lead::Loop;
use crate::Error;
use crate::notice::Notice;
use crate::session::LeavingStep;

impl Loop {
    /// Unsubscribes everywhere, takes in what the sessions hold, and has the brokers drop them, as far as that can be done
    /// `within` a time, and before `stop` is set.
    ///
    /// # Errors
    /// As [`Loop::run`].
    pub(super) fn leave(
        &mut self,
        within: Duration,
        stop: Option<&AtomicBool>,
    ) -> Result<(), Error> {
        let until = Instant::now() + within;
        self.notice(&Notice::Leaving);
        self.look_at_canaries(Instant::now(), true);
        let mut filters = std::mem::take(&mut self.asked.filters);
        self.asked.dropped_filters.append(&mut filters);
        self.is_leaving = true;
        for at in 0..self.peers.len() {
            self.begin_leaving(at);
        }
        let is_stopped = || stop.is_some_and(|stop| stop.load(Relaxed));
        while Instant::now() < until && !is_stopped() && self.not_left() > 0 {
            self.turn()?;
            self.go_on_leaving();
        }
        Ok(())
    }

    /// Brokers that have, or may have, a session; a name without an address may be one.
    pub(super) fn not_left(&self) -> usize {
        let have = self.peers.iter().filter(|peer| !peer.session.is_gone());
        have.count() + self.nowhere()
    }

    pub(super) fn begin_leaving(&mut self, at: usize) {
        let peer = &mut self.peers[at];
        let mut out = Vec::new();
        let begun = peer.session.begin_leaving(&self.asked, &mut out);
        let Some(link) = peer.link.as_mut().filter(|link| !link.connecting) else {
            return;
        };
        link.out().append(&mut out);
        if let Err(why) = begun.and_then(|()| link.flush()) {
            self.lost(at, why, Instant::now());
        }
    }

    /// The broker has dropped the session.
    pub(super) fn session_dropped(&mut self, at: usize) {
        let peer = &mut self.peers[at];
        if let Some(mut link) = peer.link.take() {
            peer.session.leave(&self.asked, link.out());
            // The broker learns what it does not take now from the end of the connection.
            let _ = link.flush();
        }
        let broker = peer.session.broker.clone();
        let status = &self.collector.status;
        status.broker(&broker, |status| status.connected = false);
        self.notice(&Notice::Left { broker });
        self.remember();
    }

    fn go_on_leaving(&mut self) {
        let now = Instant::now();
        let is_stored = !self.storage.is_busy() && self.gather.commit().is_empty();
        for at in 0..self.peers.len() {
            let peer = &mut self.peers[at];
            if !peer.is_up() {
                continue;
            }
            let Some(link) = &mut peer.link else {
                continue;
            };
            let is_idle = is_stored && !link.wants_write();
            let went_on = match peer.session.go_on_leaving(now, is_idle, link.out()) {
                LeavingStep::Wait => Ok(()),
                // Its answer is read at once.
                LeavingStep::Probed => {
                    self.tick.get_or_insert(now);
                    link.flush()
                }
                LeavingStep::Empty => {
                    peer.session.leave(&self.asked, link.out());
                    // The broker learns what it does not take now from the end of the connection.
                    let _ = link.flush();
                    peer.drop_link(now);
                    Ok(())
                }
            };
            if let Err(why) = went_on {
                self.lost(at, why, now);
            }
        }
    }
}
