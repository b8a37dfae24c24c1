//! Times for which nothing came to a worker although something was under way to it.

use std::collections::VecDeque;

use pubgauge_driver::Nanos;

use crate::recording::{Recording, Silence};

/// The silences from the start of the measurement on, each longer than all before it.
#[derive(Debug, Default)]
pub(super) struct Silences {
    /// The longest, which is the last one: looked at by each delivery.
    pub longest: Nanos,
    /// How long each was, with the messages that had come before its end.
    noted: VecDeque<(Nanos, u64)>,
}

impl Silences {
    /// Notes one that has ended after so many messages, if none was as long.
    pub fn note(&mut self, span: Nanos, before: u64) {
        if span <= self.longest {
            return;
        }
        self.longest = span;
        if self.noted.len() == Recording::MOST_SILENCES {
            self.noted.pop_front();
        }
        self.noted.push_back((span, before));
    }

    /// All of them, at the end, when so many messages have come; the longest last.
    pub fn finish(&self, received: u64) -> Vec<Silence> {
        let silence = |(span, before): &(Nanos, u64)| Silence {
            span: *span,
            then_came: received.saturating_sub(*before),
        };
        self.noted.iter().map(silence).collect()
    }
}
