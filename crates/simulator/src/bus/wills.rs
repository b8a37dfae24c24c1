//! Last wills: the simulated system publishes one when a connection ends without a word, unless it is to fail at that.

use pubgauge_driver::Will;
use pubgauge_driver::clock::Nanos;
use pubgauge_driver::topic::TopicMatch;

use super::draws::{chance, draw_delay};
use super::{Bus, BusContent, Inner};

/// Whose will a delivery is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WillTruth {
    /// The client's name.
    pub of: String,
    /// When its connection ended, clock time.
    pub ended_at: Nanos,
    /// Whether it ended in order.
    pub in_order: bool,
}

/// The end of a client's connection.
pub(super) struct PendingWill {
    /// When the will is published, clock time.
    pub due: Nanos,
    fleet: usize,
    client: u32,
    will: Will,
    /// Nobody gets it.
    lost: bool,
    truth: WillTruth,
}

impl Bus {
    /// A client's connection has ended, and it had this will. `waits`: its session is there for the will's delay.
    pub(crate) fn end_with_will(
        &self,
        (fleet, client): (usize, u32),
        will: &Will,
        truth: WillTruth,
        waits: bool,
    ) {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let b = &inner.behaviour;
        if truth.in_order && !chance(&mut inner.rng, b.wills_in_order) {
            return;
        }
        let lost = chance(&mut inner.rng, b.will_loss);
        let delay = if waits {
            Nanos::from(will.delay_s) * 1_000_000_000
        } else {
            0
        };
        inner.pending_wills.push(PendingWill {
            due: truth.ended_at + b.will_after_ns + delay,
            fleet,
            client,
            will: will.clone(),
            lost,
            truth,
        });
        self.arrived.notify_all();
    }

    /// A client is connected again: a will that waits for its delay is not published.
    pub(crate) fn avert_will(&self, fleet: usize, client: u32) {
        let now = self.clock.now();
        let mut inner = self.lock();
        if !inner.behaviour.wills_despite_return {
            (inner.pending_wills).retain(|pending| {
                let waits = pending.will.delay_s > 0 && pending.due > now;
                (pending.fleet, pending.client) != (fleet, client) || !waits
            });
        }
    }
}

impl Inner {
    /// Publishes the wills that are due at `now`.
    pub(super) fn publish_wills(&mut self, now: Nanos) {
        while let Some(next) = self.pending_wills.iter().position(|will| will.due <= now) {
            let pending = self.pending_wills.remove(next);
            self.publish_will(&pending);
        }
    }

    fn publish_will(&mut self, pending: &PendingWill) {
        let PendingWill { will, due, .. } = pending;
        if !pending.lost {
            self.store(&will.topic, &will.payload, None, will.retain);
        }
        for index in 0..self.subscriptions.len() {
            let subscriber = &self.subscriptions[index];
            if !subscriber.filter.matches_topic(&will.topic) {
                continue;
            }
            let (fleet, client, away) = (subscriber.fleet, subscriber.client, subscriber.away);
            let loss = self.behaviour.loss.max(subscriber.loss);
            let lost = pending.lost || chance(&mut self.rng, loss);
            let is_repeated = chance(&mut self.rng, self.behaviour.duplication);
            let copies = if is_repeated && !lost { 2 } else { 1 };
            for _ in 0..copies {
                let truth = self.note(index, None, *due, lost);
                if let Some(record) = self.truth.as_mut().and_then(|all| all.get_mut(truth)) {
                    record.will = Some(pending.truth.clone());
                }
                if lost {
                    continue;
                }
                if away {
                    let kept = (will.topic.clone(), will.payload.clone(), None, truth);
                    self.subscriptions[index].kept.push(kept);
                    continue;
                }
                self.inside += 1;
                let arrives = due + draw_delay(&mut self.rng, &self.behaviour);
                let message = BusContent::Message {
                    topic: will.topic.clone(),
                    payload: will.payload.clone(),
                    header: None,
                    redelivered: false,
                    last_value: false,
                    lowered: false,
                    truth,
                };
                self.send(fleet, client, arrives, message);
            }
        }
    }
}
