//! Sentinels: messages that prove that a stream reaches its parties, and that close it at the end.

use pubgauge_driver::header::HEADER_LEN;
use pubgauge_driver::{Fleet, Kind, Nanos, Publish};

use super::{PER_TURN, Sending};

/// How soon a publisher that was held back is tried again.
const AGAIN: Nanos = 1_000_000;

impl Sending {
    /// Begins a round: a sentinel on every stream. Where one is still going out, it goes on.
    pub fn begin_round(&mut self) {
        if self.round.is_empty() {
            let locals = 0..self.locals.len() as u32;
            self.round.extend(locals.map(|local| (local, 0)));
        }
    }

    /// Begins the first of the rounds that close streams.
    pub fn close_streams(&mut self) {
        self.before_closing = Some((self.sentinels, self.sentinels_due));
        self.round.clear();
        self.begin_round();
    }

    /// Sends the round's sentinels, some at a time. Returns when to go on. A publisher that is held back,
    /// by an in-flight window for example, keeps its place in the round.
    pub fn send_sentinels(&mut self, fleet: &mut dyn Fleet) -> Nanos {
        let mut now = self.clock.now();
        let brief = self.brief.clone();
        let mut quota = PER_TURN;
        for _ in 0..self.round.len() {
            let Some((local, mut topic)) = self.round.pop_front() else {
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
                            self.sentinels_due += u64::from(fan_out);
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
                self.round.push_back((local, topic));
            }
            if quota == 0 {
                return now;
            }
        }
        if self.round.is_empty() {
            Nanos::MAX
        } else {
            now + AGAIN
        }
    }
}
