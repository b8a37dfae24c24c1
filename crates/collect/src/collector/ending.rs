//! The orderly end of a collection.

use std::os::fd::BorrowedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Summary;
use super::lead::{LONGEST, Loop};
use crate::clock::unix_s;
use crate::notice::Notice;
use crate::status::Count;

impl Loop {
    /// Stores what was gathered, acknowledges it, and leaves the brokers, which keep the sessions.
    pub(super) fn finish(mut self) -> Summary {
        self.notice(&Notice::Ending);
        let until = Instant::now() + self.collector.config.stop_within;
        let out_of_reach = self.out_of_reach() as u64;
        let never_connected = self.never_reached() as u64;
        let not_left = if self.is_leaving {
            self.not_left() as u64
        } else {
            0
        };
        self.look_at_canaries(Instant::now(), true);
        self.tick = None;
        while Instant::now() < until && (self.storage.is_busy() || !self.gather.commit().is_empty())
        {
            self.hand_over();
            self.wait_for_storage(until);
            self.take_stored();
        }
        for peer in &mut self.peers {
            if let Some(link) = peer.link.as_mut().filter(|link| !link.connecting) {
                peer.session.leave(&self.asked, link.out());
            }
            if peer.is_up() {
                peer.connected_s = unix_s();
            }
        }
        self.write_out(until);
        self.remember();
        for peer in &mut self.peers {
            peer.link = None;
        }
        let status = self.collector.status.clone();
        let complete = self.storage.finish(until);
        Summary {
            messages: status.stored.get(),
            acknowledged: status.acknowledged.get(),
            files: status.files.get(),
            damaged: status.damaged.get(),
            dead_letters: status.dead.iter().map(Count::get).sum(),
            out_of_reach,
            never_connected,
            not_left,
            canaries_lost: status.canaries_lost.get(),
            complete,
            not_uploaded: status.waiting_files.get(),
            conflicts: status.conflicts.get(),
        }
    }

    fn wait_for_storage(&self, until: Instant) {
        wait(&[(self.waker.fd(), PollFlags::IN)], until);
        self.waker.clear();
    }

    /// Writes what is left to write, as far as brokers take it.
    fn write_out(&mut self, until: Instant) {
        while Instant::now() < until {
            for peer in &mut self.peers {
                if peer.link.as_mut().is_some_and(|link| link.flush().is_err()) {
                    peer.link = None;
                }
            }
            let links = self.peers.iter().filter_map(|peer| peer.link.as_ref());
            let left: Vec<_> = links
                .filter(|link| link.wants_write())
                .map(|link| (link.fd(), PollFlags::OUT))
                .collect();
            if left.is_empty() {
                return;
            }
            wait(&left, until);
        }
    }
}

/// Waits for one of these for a moment, no longer than `until`.
fn wait(fds: &[(BorrowedFd<'_>, PollFlags)], until: Instant) {
    let left = until.saturating_duration_since(Instant::now()).min(LONGEST);
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(left.subsec_nanos()),
    };
    let mut fds: Vec<PollFd<'_>> = fds
        .iter()
        .map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags))
        .collect();
    // Whoever calls looks again in any case.
    let _ = poll(&mut fds, Some(&timeout));
}
