//! Messages that carry pubgauge's header, counted by stream: what is missing, and what is there more than once.
//!
//! A run is known by the word in its topics (`pubgauge-WORD/...`), which also is the key to its headers.

use std::collections::{BTreeMap, HashMap};

use pubgauge_driver::header::{Header, Kind, Mark};
use serde::Serialize;

/// Beginning of the topics of a run whose study names none.
const ROOT: &str = "pubgauge-";

/// Counts of the measured messages of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamCounts {
    /// The word in its topics.
    pub run: String,
    pub streams: u64,
    /// Measured messages, each counted once.
    pub messages: u64,
    /// Copies beyond the first of each.
    pub duplicates: u64,
    /// Numbers that are missing below the highest of their stream. What a stream lacks at its end is not seen.
    pub missing: u64,
    /// Messages in these topics without a header of this run.
    pub foreign: u64,
}

/// Gathers the headers of messages.
#[derive(Default)]
pub struct Streams {
    /// Findings on each run of pubgauge, by the word of its mark.
    runs: BTreeMap<String, NumberRun>,
}

struct NumberRun {
    mark: Mark,
    streams: HashMap<u32, Vec<u32>>,
    foreign: u64,
}

impl Streams {
    /// Takes a message in.
    pub fn add(&mut self, topic: &[u8], payload: &[u8]) {
        let Some(word) = word_of(topic) else {
            return;
        };
        let run = match self.runs.get_mut(word) {
            Some(run) => run,
            None => {
                let Some(mark) = Mark::of_word(word) else {
                    return;
                };
                let run = NumberRun {
                    mark,
                    streams: HashMap::new(),
                    foreign: 0,
                };
                self.runs.entry(word.to_owned()).or_insert(run)
            }
        };
        match Header::decode(payload, run.mark) {
            None => run.foreign += 1,
            Some(header) if header.kind == Kind::Measured => {
                run.streams
                    .entry(header.stream)
                    .or_default()
                    .push(header.sequence);
            }
            Some(_) => {}
        }
    }

    /// The counts of each run.
    pub fn counts(self) -> Vec<StreamCounts> {
        let each = self.runs.into_iter().map(|(run, found)| {
            let mut counts = StreamCounts {
                run,
                foreign: found.foreign,
                ..StreamCounts::default()
            };
            for mut numbers in found.streams.into_values() {
                let copies = numbers.len() as u64;
                numbers.sort_unstable();
                numbers.dedup();
                let distinct = numbers.len() as u64;
                let highest = numbers.last().map_or(0, |last| u64::from(*last) + 1);
                counts.streams += 1;
                counts.messages += distinct;
                counts.duplicates += copies - distinct;
                counts.missing += highest - distinct;
            }
            counts
        });
        each.collect()
    }
}

/// The word of a run in a topic.
fn word_of(topic: &[u8]) -> Option<&str> {
    let rest = topic.strip_prefix(ROOT.as_bytes())?;
    let word = rest.split(|byte| *byte == b'/').next()?;
    std::str::from_utf8(word).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_and_duplicate_messages_are_counted_by_stream() {
        let mark = Mark::random();
        let topic = format!("pubgauge-{}/site/7", mark.hex_digits());
        let mut streams = Streams::default();
        let header = |kind, stream, sequence| {
            Header {
                kind,
                intended: 5,
                lag: 0,
                stream,
                sequence,
            }
            .encode(mark)
        };
        for (stream, sequence) in [(1, 0), (1, 1), (1, 3), (1, 3), (1, 3), (2, 1), (2, 0)] {
            streams.add(topic.as_bytes(), &header(Kind::Measured, stream, sequence));
        }
        streams.add(topic.as_bytes(), &header(Kind::Sentinel, 1, 9));
        streams.add(topic.as_bytes(), b"short");
        streams.add(b"pubgauge-x/y", b"no word");
        streams.add(b"meters/7", &header(Kind::Measured, 1, 9));
        let expected = StreamCounts {
            run: mark.hex_digits(),
            streams: 2,
            messages: 5,
            duplicates: 2,
            missing: 1,
            foreign: 1,
        };
        assert_eq!(streams.counts(), [expected]);
    }
}
