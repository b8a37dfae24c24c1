//! Sentinels: messages that prove that a stream reaches its parties, and that close it at the end.

use pubgauge_driver::header::HEADER_LEN;
use pubgauge_driver::{Fleet, Kind, Nanos, Publish};

use super::{PER_TURN, Round, Sending};

/// First pause between two rounds; each is twice as long as the one before.
const FIRST_PAUSE: Nanos = 50_000_000;
/// Longest pause between two rounds.
const LONGEST_PAUSE: Nanos = 1_000_000_000;
/// How soon a publisher that was held back is tried again.
const AGAIN: Nanos = 1_000_000;

impl Sending {
    /// Begins with a first round of sentinels.
    pub fn begin_sentinels(&mut self) {
        self.round = Round::default();
    }

    /// Sends sentinels, some at a time, in rounds with growing pauses. Returns when to go on. A
    /// publisher that is held back, by an in-flight window for example, keeps its place in the
    /// round.
    pub fn send_sentinels(&mut self, fleet: &mut dyn Fleet) -> Nanos {
        let mut now = self.clock.now();
        if now < self.round.next {
            return self.round.next;
        }
        if self.round.left.is_empty() {
            self.round
                .left
                .extend((0..self.locals.len() as u32).map(|local| (local, 0)));
        }
        let brief = self.brief.clone();
        let mut quota = PER_TURN;
        for _ in 0..self.round.left.len() {
            let Some((local, mut topic)) = self.round.left.pop_front() else {
                break;
            };
            let (topics, first) = {
                let state = &self.locals[local as usize];
                (state.topics, state.first_stream)
            };
            while topic < topics && quota > 0 {
                let fan_out = brief.audience.fan_out(first + topic);
                if fan_out > 0 {
                    now = self.clock.now();
                    let length = HEADER_LEN as u32;
                    match self.hand_over(
                        fleet,
                        local,
                        topic,
                        Kind::Sentinel,
                        now,
                        now,
                        length,
                        None,
                    ) {
                        Publish::Accepted => {
                            self.sentinels += 1;
                            if self.closing {
                                self.closing_sentinels[0] += 1;
                                self.closing_sentinels[1] += u64::from(fan_out);
                            }
                        }
                        Publish::Blocked => break,
                        // A lost connection; the next round tries again.
                        Publish::Refused(_) => {}
                    }
                    quota -= 1;
                }
                topic += 1;
            }
            if topic < topics {
                self.round.left.push_back((local, topic));
            }
            if quota == 0 {
                return now;
            }
        }
        if !self.round.left.is_empty() {
            return now + AGAIN;
        }
        let pause = self.round.pause.max(FIRST_PAUSE);
        self.round.next = now + pause;
        self.round.pause = (pause * 2).min(LONGEST_PAUSE);
        self.round.next
    }
}
