//! Sentinels: messages that prove that a stream reaches its parties, and that close it at the end.

use std::ops::Range;

use pubgauge_driver::header::HEADER_LEN;
use pubgauge_driver::{Fleet, Kind, Nanos, Publish};

use super::{PER_TURN, Sending};

/// How soon a publisher that was held back is tried again.
const AGAIN: Nanos = 1_000_000;

impl Sending {
    /// Begins a round: a sentinel on every stream. Where one is still going out, it goes on.
    pub fn begin_round(&mut self) {
        if self.round.is_empty() {
            let locals = self.locals.iter().enumerate();
            self.round
                .extend(locals.map(|(at, local)| (at as u32, 0..local.topics)));
        }
    }

    /// Begins a round on those of these streams that are sent here. Where one is still going out, it goes on.
    pub fn prove_again(&mut self, streams: &[u32]) {
        if !self.round.is_empty() {
            return;
        }
        let locals = self.locals.iter().enumerate();
        let mut firsts: Vec<(u32, u32)> = locals
            .map(|(at, local)| (local.first_stream, at as u32))
            .collect();
        firsts.sort_unstable();
        self.round.extend(streams.iter().filter_map(|stream| {
            let before = firsts.partition_point(|(first, _)| first <= stream);
            let (first, at) = *firsts.get(before.checked_sub(1)?)?;
            let topic = stream - first;
            (topic < self.locals[at as usize].topics).then_some((at, topic..topic + 1))
        }));
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
            let Some((local, of)) = self.round.pop_front() else {
                break;
            };
            let Range {
                start: mut topic,
                end: topics,
            } = of;
            let first = self.locals[local as usize].first_stream;
            while topic < topics && quota > 0 {
                let stream = first + topic;
                let late = brief.audience.late_fan_out(stream);
                // Who is late hears none but those that close streams. It hears the first one as the topic's last value, where
                // the system keeps such.
                let closing = self.before_closing.is_some();
                let fan_out = brief.audience.listeners(stream) + if closing { late } else { 0 };
                if fan_out + late > 0 {
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
                self.round.push_back((local, topic..topics));
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
