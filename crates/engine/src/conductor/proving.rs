//! Proof that every subscriber receives: rounds of sentinels, the first one on every stream.

use std::sync::atomic::AtomicBool;

use pubgauge_driver::Nanos;

use super::{Conductor, Observer, Phase, SECOND};
use crate::assignment::Role;
use crate::record::TrialEnd;
use crate::reports::Command;

/// How long nothing must have moved before the second round, at least; twice as long before each further one.
const FIRST_PAUSE: Nanos = 50_000_000;
/// Pause for each sentinel that is missing: a system that carries 10,000 messages a second needs as long for them.
const FIRST_PAUSE_FOR_EACH: Nanos = 100_000;
/// The longest of these pauses, or eight times the first where that is longer.
const LONGEST_PAUSE: Nanos = 1_000_000_000;

/// Rounds of sentinels. The next round is due once nothing was sent or received for a pause, and for half of the
/// time that the round before has moved: with rounds at fixed times, a system that needs longer than that for all
/// streams would have ever more sentinels in its queues. A slow one may take a round in and deliver none of it for
/// seconds: the more sentinels are missing, the longer is the pause, but for one that has delivered some of each round.
pub(super) struct Rounds {
    /// How many have gone out after the first, or after the newest of which something came.
    further: u32,
    /// How many paths were missing at the newest.
    unproven: u64,
    /// When the round began.
    begun: Nanos,
    /// Messages sent and received when they last moved, and when that was.
    moved: (u64, u64),
    since: Nanos,
}

impl Rounds {
    /// The first round goes out now.
    pub(super) fn begin(now: Nanos) -> Rounds {
        Rounds {
            further: 0,
            unproven: u64::MAX,
            begun: now,
            moved: (0, 0),
            since: now,
        }
    }

    /// Whether the next round is to go out, given how many paths are `unproven`, how many sentinels of the newest round
    /// are `missing`, and how many messages were `sent` and `received` so far.
    pub(super) fn is_next_due(
        &mut self,
        (unproven, missing): (u64, u64),
        (sent, received): (u64, u64),
        now: Nanos,
    ) -> bool {
        let silent = self.silent(sent, received, now);
        if unproven < self.unproven {
            self.further = 0;
        }
        let first = FIRST_PAUSE.max(missing * FIRST_PAUSE_FOR_EACH);
        let longest = LONGEST_PAUSE.max(8 * first);
        let pause = first.saturating_mul(1 << self.further.min(16)).min(longest);
        let due = silent >= pause.max((self.since - self.begun) / 2);
        if due {
            (self.begun, self.since) = (now, now);
            self.further += 1;
            self.unproven = unproven;
        }
        due
    }

    /// For how long nothing was sent or received.
    fn silent(&mut self, sent: u64, received: u64, now: Nanos) -> Nanos {
        if self.moved != (sent, received) {
            self.moved = (sent, received);
            self.since = now;
        }
        now - self.since
    }
}

impl Conductor<'_> {
    /// Has publishers send sentinels until every party has heard every stream that it is entitled to, and
    /// waits until none is under way: else the system's queues would hold sentinels when the warm-up begins.
    /// Where a sentinel is missing, that one cannot be told from a late one: the wait ends once nothing came for 50 ms and
    /// for twice the longest silence.
    ///
    /// # Errors
    /// If that has not happened by `ready_by`.
    pub(super) fn prove(
        &mut self,
        ready_by: Nanos,
        observer: &mut dyn Observer,
        stop: &AtomicBool,
    ) -> Result<(), TrialEnd> {
        let began = self.spec.clock.now();
        if self.live.unproven == 0 || self.workers.iter().all(|h| h.role != Role::Publishers) {
            return Ok(());
        }
        self.enter(Phase::Prove, observer);
        self.command(None, &Command::Prove);
        let mut rounds = Rounds::begin(began);
        loop {
            let now = self.spec.clock.now();
            let (missing, received) = (self.live.unproven, self.live.sentinels_received);
            let left = self.live.sentinels_due.saturating_sub(received);
            if missing == 0 {
                let silent = rounds.silent(self.live.sent, received, now);
                if left == 0 || silent > FIRST_PAUSE.max(2 * self.live.silence) {
                    break;
                }
            } else if rounds.is_next_due(self.missing(), (self.live.sent, received), now) {
                self.prove_again();
            }
            if now > ready_by {
                return Err(TrialEnd::NotReady(self.unready(missing, left)));
            }
            self.pass_time(observer, stop)?;
            self.go_on_proving();
        }
        self.prove_span = self.spec.clock.now() - began;
        Ok(())
    }

    /// Why the system was not ready in time: so many paths carried no sentinel, or `left` have not come.
    fn unready(&self, missing: u64, left: u64) -> String {
        let within = self.spec.brief.workload.phases.ready_within as f64 / SECOND as f64;
        if missing == 0 {
            return format!(
                "every subscriber receives, but {left} sentinels (messages that only prove that) had not come \
                 within {within} s, and the system may still hold them\n  hint: a longer ready-within lets it \
                 deliver them"
            );
        }
        let known = match self.live.sentinels_received {
            0 => "the subscribers are connected, but messages do not reach them".to_owned(),
            came => format!(
                "{came} sentinels came, so that the system is slow, or some messages do not get through\n  \
                 hint: a longer ready-within tells which; fewer topics need fewer sentinels"
            ),
        };
        let among = self
            .missing_topic()
            .map_or(String::new(), |topic| format!(", one of them on {topic:?}"));
        format!(
            "{missing} of the publisher-to-subscriber paths carried no sentinel (a message that only proves that a \
             subscriber receives) within {within} s{among}: {known}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds after the first, while a system takes sentinels in and so many are missing.
    fn further_rounds(missing: u64, seconds: u64) -> usize {
        let mut rounds = Rounds::begin(0);
        let is_due = |ms: &u64| rounds.is_next_due((missing, missing), (20_000, 0), ms * 1_000_000);
        (0..seconds * 1000).filter(is_due).count()
    }

    #[test]
    fn while_more_are_missing_rounds_are_further_apart() {
        // After 50, 150, 350 and 750 ms, and each second from then on.
        assert_eq!(further_rounds(1, 1), 4);
        assert_eq!(further_rounds(1, 10), 13);
        // After 2, 6, 14, 30 and 46 s.
        assert_eq!(further_rounds(20_000, 5), 1);
        assert_eq!(further_rounds(20_000, 60), 5);
    }
}
