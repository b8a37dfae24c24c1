//! The drain: what is missing after the measurement comes, is lost, or is still under way.

use std::sync::atomic::AtomicBool;

use pubgauge_driver::Nanos;

use super::proving::Rounds;
use super::sentinel_rounds::SentinelRounds;
use super::{Conductor, Drain, DrainEnd, Observer, TrialEnd};
use crate::reports::Command;

/// How long nothing must have come before streams are closed by sentinels, at least.
const CLOSE_AFTER: Nanos = 250_000_000;

impl Conductor<'_> {
    /// Waits until everything has come or is known to be lost, `within` at most.
    ///
    /// A missing message is lost if something later of its stream has come to the party, be it a
    /// sentinel that was sent after it; or if nothing has come for longer than the trial has ever
    /// been silent, unless the system never acknowledged its message. One that is still missing otherwise when the
    /// time is over is under way.
    pub(super) fn drain(&mut self, observer: &mut dyn Observer, stop: &AtomicBool, within: Nanos) {
        let workload = &self.spec.brief.workload;
        // An application that takes its time for a message is silent meanwhile.
        let longest_take = workload
            .flows
            .iter()
            .filter_map(|flow| flow.subscribers_take);
        let quiet = (workload.phases.drain_quiet).max(2 * longest_take.max().unwrap_or(0));
        let began = self.spec.clock.now();
        // Deliveries of any kind: repeated ones are waited for, and messages of the warm-up may still
        // come before the measured ones.
        let mut last = (self.live.received, began);
        // Answers of the system, which may go on after the last delivery.
        let mut answered = (self.live.unacknowledged, began);
        let mut closing: Option<Rounds> = None;
        let may_repeat = self.any(|traits| traits.may_duplicate);
        // Only the end of a stream tells what of it did not come to who subscribed late.
        let has_late = self.spec.brief.workload.has_late_subscribers();
        let ended = loop {
            let now = self.spec.clock.now();
            let received = self.live.received;
            if received != last.0 {
                last = (received, now);
            }
            if self.live.unacknowledged != answered.0 {
                answered = (self.live.unacknowledged, now);
            }
            let silent = now - last.1;
            let waited = silent.min(now - answered.1);
            let silence = self.live.silence;
            let stopped = self.all_workers(|handle| handle.counters.stopped);
            // Only groups can have something missing then: their streams have been heard, which does not close them.
            let closed = closing.is_some()
                && self.all_workers(|handle| handle.counters.closing)
                && self.live.unproven == 0;
            let wills_have_come = now >= self.live.wills_until;
            let nothing_under_way = self.live.under_way == 0 && wills_have_come;
            let ended = stopped && nothing_under_way && (closed || !has_late);
            if ended && (!self.awaits_more(may_repeat) || waited > quiet.max(2 * silence)) {
                break DrainEnd::Complete;
            }
            if closed && wills_have_come && silent > quiet.max(2 * silence) {
                break DrainEnd::Silent;
            }
            if now > began + within {
                break if silent > quiet.max(silence) {
                    DrainEnd::Silent
                } else {
                    DrainEnd::CutShort
                };
            }
            let close_after = CLOSE_AFTER.max(2 * silence).min(quiet);
            if let Some(rounds) = &mut closing {
                if rounds.is_next_due(self.missing(), (self.live.sent, received), now) {
                    self.prove_again();
                }
            } else if (self.live.under_way > 0 || stopped && has_late) && silent > close_after {
                closing = Some(Rounds::begin(now));
                self.again = SentinelRounds::default();
                self.apart.await_sentinels(&self.spec.brief);
                self.command(None, &Command::CloseStreams(now));
            }
            if let Err(end) = self.pass_time(observer, stop) {
                // Where a recording is missing for it, this is why.
                if let TrialEnd::NotReady(why) | TrialEnd::Aborted(why) = end {
                    self.failure.get_or_insert(why);
                }
                break DrainEnd::CutShort;
            }
            self.go_on_proving();
        };
        self.drain = Drain {
            ended,
            span: self.spec.clock.now() - began,
        };
    }

    /// Whether something may still come although nothing that is expected is under way: messages that were passed over, repeated
    /// ones where there are such, answers of the system and of ping-pong subscribers, and what a slow subscriber is still owed,
    /// which has come when it has caught up, or never comes.
    fn awaits_more(&self, may_repeat: bool) -> bool {
        let repeats = may_repeat || self.live.repeated > 0;
        let unanswered = self.live.unacknowledged + self.live.unanswered > 0;
        self.live.passed_over > 0 || repeats || unanswered || self.live.slow_missing > 0
    }
}
