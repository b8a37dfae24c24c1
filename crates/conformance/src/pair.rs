//! Publishers and subscribers, each in a fleet of their own, proven to hear each other.

use std::collections::HashSet;

use super::rig::{PATIENCE, Received, Rig, SENTINELS, SILENCE};
use super::violation::Violation;
use pubgauge_driver::clock::Nanos;
use pubgauge_driver::header::Kind;
use pubgauge_driver::seam::{ClientId, Publish, TopicId};

/// For how long a round of sentinels brings nothing more before the next one goes out, ns.
const ROUND: Nanos = 50_000_000;

/// Publishers and subscribers.
pub(super) struct Pair {
    pub out: Rig,
    pub into: Rig,
    /// Each publisher with its topic `t0`, `t1`, ...
    pub senders: Vec<(ClientId, TopicId)>,
}

impl Pair {
    /// Sends sentinels until each subscriber has received one of each publisher, then forgets them. They go out in
    /// rounds, the next one once the one before brings nothing more: a slow server must not be filled with them.
    pub fn prove(&mut self, subscribers: usize) -> Result<(), Violation> {
        let wanted = subscribers * self.senders.len();
        let mut heard: HashSet<(ClientId, u32)> = HashSet::new();
        let mut progress = self.out.clock.now();
        while heard.len() < wanted {
            if self.out.clock.now() - progress > PATIENCE {
                return Err(format!(
                    "only {} of {wanted} paths carried a sentinel, and none more within 10 s",
                    heard.len()
                )
                .into());
            }
            for (p, (client, topic)) in self.senders.clone().into_iter().enumerate() {
                let stream = SENTINELS + p as u32;
                if heard.iter().filter(|(_, of)| *of == stream).count() < subscribers {
                    self.out.send(client, topic, stream, 64, Kind::Sentinel)?;
                }
            }
            let mut last = self.out.clock.now();
            while heard.len() < wanted && self.out.clock.now() - last < ROUND {
                self.out.poll(5_000_000)?;
                self.into.poll(20_000_000)?;
                let before = heard.len();
                heard.extend(self.into.seen.sentinels.iter().copied());
                if heard.len() > before {
                    last = self.out.clock.now();
                    progress = last;
                }
            }
        }
        // Sentinels that are still under way must not fill the window of later messages.
        self.quiet()?;
        self.until("sentinels settled", |p| p.out.fleet.unsettled() == 0)?;
        self.into.seen.delivered.clear();
        Ok(())
    }

    pub fn quiet(&mut self) -> Result<(), Violation> {
        let mut count = usize::MAX;
        let heard = |seen: &Received| seen.delivered.len() + seen.sentinels.len();
        while count != heard(&self.into.seen) {
            count = heard(&self.into.seen);
            let until = self.out.clock.now() + SILENCE / 3;
            while self.out.clock.now() < until {
                self.out.poll(1_000_000)?;
                self.into.poll(10_000_000)?;
            }
        }
        Ok(())
    }

    /// Polls both fleets until `done`, or until [`PATIENCE`] has passed without progress.
    pub fn until(
        &mut self,
        what: &str,
        mut done: impl FnMut(&Pair) -> bool,
    ) -> Result<(), Violation> {
        let mut progress = (self.out.clock.now(), 0);
        while !done(self) {
            let events = self.into.seen.delivered.len() + self.out.seen.acknowledged.len();
            let now = self.out.clock.now();
            if events != progress.1 {
                progress = (now, events);
            } else if now - progress.0 > PATIENCE {
                return Err(format!(
                    "{what}: nothing more came for 10 s ({} delivered)",
                    self.into.seen.delivered.len()
                )
                .into());
            }
            self.out.poll(1_000_000)?;
            self.into.poll(1_000_000)?;
        }
        self.is_undamaged()?;
        if self.into.seen.before_read {
            return Err("a message was reported before any `arrived`".into());
        }
        Ok(())
    }

    /// Sends until the subscriber receives a message, and an undamaged one.
    pub fn hears_again(&mut self) -> Result<(), Violation> {
        let (client, topic) = self.senders[0];
        let start = self.out.clock.now();
        while self.into.seen.delivered.is_empty() {
            self.is_undamaged()?;
            if self.out.clock.now() - start > PATIENCE {
                return Err("nothing came to a subscriber that had come back".into());
            }
            self.out.send(client, topic, 0, 64, Kind::Measured)?;
            self.out.poll(5_000_000)?;
            self.into.poll(20_000_000)?;
        }
        self.is_undamaged()
    }

    fn is_undamaged(&self) -> Result<(), Violation> {
        match self.into.seen.damaged.first() {
            Some(damage) => Err(damage.as_str().into()),
            None => Ok(()),
        }
    }

    pub fn close(mut self) -> Result<(), Violation> {
        for rig in [&mut self.out, &mut self.into] {
            let until = rig.clock.now() + 2_000_000_000;
            rig.fleet.close(until);
        }
        Ok(())
    }

    /// Sends `count` messages, polling both sides while blocked.
    pub fn send_all(&mut self, sender: usize, count: u32, len: usize) -> Result<(), Violation> {
        let (client, topic) = self.senders[sender];
        let mut progress = self.out.clock.now();
        let mut sent = 0;
        while sent < count {
            match self
                .out
                .send(client, topic, sender as u32, len, Kind::Measured)?
            {
                Publish::Accepted => {
                    sent += 1;
                    progress = self.out.clock.now();
                }
                Publish::Blocked => {
                    self.out.poll(1_000_000)?;
                    self.into.poll(1_000_000)?;
                }
                Publish::Refused(why) => return Err(format!("refused: {why:?}").into()),
            }
            if self.out.clock.now() - progress > PATIENCE {
                return Err(
                    format!("after {sent} of {count} messages none was accepted for 10 s").into(),
                );
            }
        }
        Ok(())
    }
}
