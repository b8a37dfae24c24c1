//! What stands in a segment: its messages, what is torn, and what is damaged.
//!
//! A commit is written once the one before it is on disk. Frames that are missing in front of a later commit were
//! therefore on disk once, and may have been acknowledged: they are *damaged*. Frames that are missing in the last
//! commit of a segment that was not closed need never have been on disk, and then none of them was acknowledged: they
//! are *torn*. Whatever can be read is kept in either case.

use std::ops::Range;

use super::segment::HEADER_LEN;
use crate::message::Message;

/// Messages that are missing in a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Where in the file.
    pub bytes: Range<usize>,
    /// Their numbers.
    pub seqs: Range<u64>,
    /// Whether they were on disk once, so that they may have been acknowledged.
    pub damaged: bool,
}

/// What was found in a segment beside its messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Messages that were read.
    pub messages: u64,
    /// Number of the message after the last.
    pub next_seq: u64,
    /// Where the last message ends.
    pub end: usize,
    /// Messages missing in front of others.
    pub gaps: Vec<Gap>,
}

/// Reads a segment's messages in turn. Holds a place in the bytes of the file.
#[derive(Debug)]
pub struct Scan<'a> {
    bytes: &'a [u8],
    mark: u32,
    at: usize,
    scanned: Scanned,
    /// First number of the commit of the last message.
    commit: u64,
}

impl<'a> Scan<'a> {
    /// `bytes` is the whole segment; its messages carry `mark`, and begin with `first_seq`.
    pub fn new(bytes: &'a [u8], mark: u32, first_seq: u64) -> Scan<'a> {
        Scan {
            bytes,
            mark,
            at: HEADER_LEN.min(bytes.len()),
            scanned: Scanned {
                next_seq: first_seq,
                end: HEADER_LEN.min(bytes.len()),
                ..Scanned::default()
            },
            commit: first_seq,
        }
    }

    /// The next frame at or behind the present place whose number fits.
    fn find_next(&self) -> Option<(usize, Message<'a>, usize)> {
        let mut at = self.at;
        loop {
            let rest = self.bytes.get(at..)?;
            if let Some((message, len)) = Message::read(self.mark, rest)
                && message.seq >= self.scanned.next_seq
            {
                return Some((at, message, len));
            }
            let mark = self.mark.to_le_bytes();
            at += 1 + rest.get(1..)?.windows(4).position(|four| four == mark)?;
        }
    }

    /// Where the last message that was read lies in the bytes.
    pub fn last(&self) -> usize {
        self.scanned.end
    }

    /// What was found. Call it after the last message.
    pub fn finish(self) -> Scanned {
        let mut scanned = self.scanned;
        for gap in &mut scanned.gaps {
            gap.damaged |= gap.seqs.start < self.commit;
        }
        scanned
    }
}

impl<'a> Iterator for Scan<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        let (at, message, len) = self.find_next()?;
        let next = self.scanned.next_seq;
        if at != self.at || message.seq != next {
            self.scanned.gaps.push(Gap {
                bytes: self.at..at,
                seqs: next..message.seq,
                damaged: false,
            });
        }
        self.commit = message.commit().max(self.commit);
        self.at = at + len;
        self.scanned.messages += 1;
        self.scanned.next_seq = message.seq + 1;
        self.scanned.end = self.at;
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use pubgauge_mqtt_codec::QoS;

    const MARK: u32 = 0x1234_5678;

    /// A segment of commits of these many messages, and where each message ends.
    fn segment(commits: &[u32]) -> (Vec<u8>, Vec<usize>) {
        let mut bytes = vec![0; HEADER_LEN];
        let mut ends = vec![HEADER_LEN];
        let mut seq = 1;
        for &commit in commits {
            for index in 0..commit {
                let payload = vec![seq as u8; (seq as usize * 7) % 50];
                Message {
                    seq,
                    index,
                    received_ns: 1,
                    broker: "b",
                    topic: "t",
                    qos: QoS::AtLeastOnce,
                    retain: false,
                    dup: false,
                    properties: &[],
                    payload: &payload,
                }
                .append(MARK, &mut bytes);
                ends.push(bytes.len());
                seq += 1;
            }
        }
        (bytes, ends)
    }

    fn scan(bytes: &[u8]) -> (Vec<u64>, Scanned) {
        let mut scan = Scan::new(bytes, MARK, 1);
        let seqs = scan.by_ref().map(|message| message.seq).collect();
        (seqs, scan.finish())
    }

    #[test]
    fn cut_at_every_byte_all_whole_messages_are_there() {
        let (bytes, ends) = segment(&[3, 1, 4, 2]);
        for cut in HEADER_LEN..=bytes.len() {
            let whole = ends.iter().filter(|end| **end <= cut).count() as u64 - 1;
            let (seqs, scanned) = scan(&bytes[..cut]);
            assert_eq!(seqs, (1..=whole).collect::<Vec<_>>(), "cut at {cut}");
            assert_eq!(scanned.gaps, [], "cut at {cut}");
            assert_eq!(scanned.end, ends[whole as usize]);
            assert_eq!(scanned.next_seq, whole + 1);
        }
    }

    #[test]
    fn a_flipped_bit_takes_one_message_alone_and_is_told() {
        let commits = [3, 1, 4, 2];
        let (mut bytes, ends) = segment(&commits);
        for bit in HEADER_LEN * 8..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            let lost = ends.iter().filter(|end| **end <= bit / 8).count() as u64;
            let (seqs, scanned) = scan(&bytes);
            let expected: Vec<u64> = (1..=10).filter(|seq| *seq != lost).collect();
            assert_eq!(seqs, expected, "bit {bit}");
            if lost == 10 {
                // Nothing stands behind it: it cannot be told from a tail that was never on disk.
                assert_eq!(scanned.end, ends[9]);
            } else {
                let bytes = ends[lost as usize - 1]..ends[lost as usize];
                // The last commit is messages 9 and 10.
                let damaged = lost < 9;
                let gap = Gap {
                    bytes,
                    seqs: lost..lost + 1,
                    damaged,
                };
                assert_eq!(scanned.gaps, [gap], "bit {bit}");
            }
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn a_payload_that_holds_frames_is_one_message() {
        let (inner, _) = segment(&[2]);
        let mut bytes = vec![0; HEADER_LEN];
        let mut message = Message {
            seq: 1,
            index: 0,
            received_ns: 1,
            broker: "b",
            topic: "t",
            qos: QoS::AtMostOnce,
            retain: false,
            dup: false,
            properties: &[],
            payload: &inner,
        };
        message.append(MARK, &mut bytes);
        message.seq = 2;
        message.append(MARK, &mut bytes);
        assert_eq!(scan(&bytes).0, [1, 2]);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_run_for_ever(
            commits in prop::collection::vec(1u32..5, 0..6),
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
            tail in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let (mut bytes, _) = segment(&commits);
            bytes.extend(&tail);
            for (at, value) in damage {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            let (seqs, scanned) = scan(&bytes);
            prop_assert!(seqs.is_sorted());
            prop_assert_eq!(seqs.len() as u64, scanned.messages);
            prop_assert!(scanned.messages <= u64::from(commits.iter().sum::<u32>()));
        }
    }
}
