//! Reads a segment: its messages, what is torn, and what is damaged.
//!
//! A commit is written once the one before it is on disk. Frames that are missing in front of a later commit were
//! therefore on disk once, and may have been acknowledged: they are *damaged*. Frames that are missing in the last
//! commit of a segment that was not closed need never have been on disk, and then none of them was acknowledged: they
//! are *torn*. Whatever can be read is kept in either case.

use std::ops::Range;

use super::segment::HEADER_LEN;
use crate::message::{HEAD, Message};

/// Messages that are missing in a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Where in the file.
    pub bytes: Range<u64>,
    /// Their numbers.
    pub seqs: Range<u64>,
    /// Whether they were on disk once, so that they may have been acknowledged.
    pub damaged: bool,
}

/// Findings in a segment beside its messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Messages that were read.
    pub messages: u64,
    /// Number of the message after the last.
    pub next_seq: u64,
    /// Where the last message ends.
    pub end: u64,
    /// Messages missing in front of others.
    pub gaps: Vec<Gap>,
}

/// Bytes of frames whose checksums are wrong that are read in one segment. Damage takes a small part of that; a segment that
/// was made up could have every fourth byte begin a long frame.
const MOST_IN_VAIN: u64 = 2 << 30;

/// Part of a segment.
#[derive(Clone, Copy, Debug)]
pub struct SegmentPart<'a> {
    pub bytes: &'a [u8],
    /// Where it begins in the file.
    pub at: u64,
    /// It reaches to the end of the file.
    pub is_last: bool,
}

/// The next entry of a window.
#[derive(Debug)]
pub enum Next<'a> {
    Message(Message<'a>),
    /// Nothing can be said before at least so many bytes from this place on are there, or the last of the file.
    More {
        from: u64,
        least: usize,
    },
    /// There is no further message.
    End,
}

/// Where the reading of a segment stands, and what was found so far.
#[derive(Debug)]
pub struct Reading {
    mark: u32,
    /// Where in the file the next frame is looked for.
    at: u64,
    scanned: Scanned,
    /// First number of the commit of the last message.
    commit: u64,
    in_vain: u64,
}

impl Reading {
    /// From the first message on of a segment of `len` bytes; messages carry `mark`, and begin with `first_seq`.
    pub fn new(mark: u32, first_seq: u64, len: u64) -> Reading {
        let begin = len.min(HEADER_LEN as u64);
        Reading {
            mark,
            at: begin,
            scanned: Scanned {
                next_seq: first_seq,
                end: begin,
                ..Scanned::default()
            },
            commit: first_seq,
            in_vain: 0,
        }
    }

    /// The next frame whose number fits, in a window that begins at the present place or before it.
    pub fn next<'a>(&mut self, window: SegmentPart<'a>) -> Next<'a> {
        let mut at = (self.at - window.at) as usize;
        loop {
            let rest = window.bytes.get(at..).unwrap_or_default();
            let place = window.at + at as u64;
            let needed = Message::frame_len(self.mark, rest).unwrap_or(HEAD);
            if rest.len() < needed && !window.is_last {
                self.at = place;
                return Next::More {
                    from: place,
                    least: needed,
                };
            }
            if let Some(len) = Message::frame_len(self.mark, rest) {
                match Message::read(self.mark, rest) {
                    Some((message, len)) if message.seq >= self.scanned.next_seq => {
                        self.take(&message, place, len);
                        return Next::Message(message);
                    }
                    Some(_) => {}
                    None => self.in_vain += len.min(rest.len()) as u64,
                }
            }
            let mark = self.mark.to_le_bytes();
            let behind = rest.get(1..).unwrap_or_default();
            match behind.windows(4).position(|four| four == mark) {
                Some(_) if self.in_vain > MOST_IN_VAIN => return Next::End,
                Some(found) => at += 1 + found,
                None if window.is_last => return Next::End,
                // The mark may begin in the last bytes.
                None => at = (window.bytes.len() - 3).max(at + 1),
            }
        }
    }

    fn take(&mut self, message: &Message<'_>, at: u64, len: usize) {
        let (end, next) = (self.scanned.end, self.scanned.next_seq);
        if at != end || message.seq != next {
            self.scanned.gaps.push(Gap {
                bytes: end..at,
                seqs: next..message.seq,
                damaged: false,
            });
        }
        self.commit = message.commit().max(self.commit);
        self.at = at + len as u64;
        self.scanned.messages += 1;
        self.scanned.next_seq = message.seq + 1;
        self.scanned.end = self.at;
    }

    /// The findings. Call it after the last message.
    pub fn finish(self) -> Scanned {
        let mut scanned = self.scanned;
        for gap in &mut scanned.gaps {
            gap.damaged |= gap.seqs.start < self.commit;
        }
        scanned
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
                    index,
                    ..Message::numbered(seq, &payload)
                }
                .append(MARK, &mut bytes);
                ends.push(bytes.len());
                seq += 1;
            }
        }
        (bytes, ends)
    }

    /// Reads `bytes` in windows of so many bytes, and of more where a frame is longer.
    fn scan_in(bytes: &[u8], size: usize) -> (Vec<u64>, Scanned) {
        let mut reading = Reading::new(MARK, 1, bytes.len() as u64);
        let (mut seqs, mut at, mut len) = (Vec::new(), 0, size);
        loop {
            let end = bytes.len().min(at + len);
            let window = SegmentPart {
                bytes: &bytes[at..end],
                at: at as u64,
                is_last: end == bytes.len(),
            };
            match reading.next(window) {
                Next::Message(message) => seqs.push(message.seq),
                Next::More { from, least } => (at, len) = (from as usize, size.max(least)),
                Next::End => return (seqs, reading.finish()),
            }
        }
    }

    fn scan(bytes: &[u8]) -> (Vec<u64>, Scanned) {
        scan_in(bytes, bytes.len())
    }

    #[test]
    fn cut_at_every_byte_all_whole_messages_are_there() {
        let (bytes, ends) = segment(&[3, 1, 4, 2]);
        for cut in HEADER_LEN..=bytes.len() {
            let whole = ends.iter().filter(|end| **end <= cut).count() as u64 - 1;
            let (seqs, scanned) = scan(&bytes[..cut]);
            assert_eq!(seqs, (1..=whole).collect::<Vec<_>>(), "cut at {cut}");
            assert_eq!(scanned.gaps, [], "cut at {cut}");
            assert_eq!(scanned.end, ends[whole as usize] as u64);
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
                assert_eq!(scanned.end, ends[9] as u64);
            } else {
                let bytes = ends[lost as usize - 1] as u64..ends[lost as usize] as u64;
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
            for size in [1, 13, 100] {
                prop_assert_eq!(&scan_in(&bytes, size), &(seqs.clone(), scanned.clone()), "windows of {} bytes", size);
            }
        }
    }
}
