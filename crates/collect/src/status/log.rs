//! The log as it stands on the disk: what is in no finished file yet, and the room that is left.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::log::SegmentStatus;

/// Room on the disk of the data folder, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskStatus {
    /// Free for the collector's user.
    pub free: u64,
    /// The log takes nothing while less is free.
    pub reserve: u64,
}

/// The segments that are in no finished file yet, and the disk; nothing without a data folder. Written once for each
/// commit and each segment, and once a second.
#[derive(Debug, Default)]
pub struct LogStatus(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// By the number of the first message.
    segments: BTreeMap<u64, SegmentStatus>,
    disk: Option<DiskStatus>,
}

impl LogStatus {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes how a segment stands whose first message has this number.
    pub(crate) fn note_segment(&self, first_seq: u64, segment: SegmentStatus) {
        self.known().segments.insert(first_seq, segment);
    }

    /// Notes that a segment is no part of the log any more.
    pub(crate) fn forget_segment(&self, first_seq: u64) {
        self.known().segments.remove(&first_seq);
    }

    pub(crate) fn note_disk(&self, disk: DiskStatus) {
        self.known().disk = Some(disk);
    }

    /// Room on the disk, as it was a second ago at the most while the disk answers.
    pub fn disk(&self) -> Option<DiskStatus> {
        self.known().disk
    }

    /// Bytes of the segments.
    pub fn bytes(&self) -> Option<u64> {
        let known = self.known();
        let bytes = || known.segments.values().map(|one| one.bytes).sum();
        known.disk.map(|_| bytes())
    }

    /// How long ago the first message came that is in no finished file; zero if there is none.
    pub fn oldest(&self, now: Instant) -> Option<Duration> {
        let known = self.known();
        let oldest = || known.segments.values().filter_map(|one| one.begun).min();
        let age = |begun| now.saturating_duration_since(begun);
        known.disk.map(|_| oldest().map_or(Duration::ZERO, age))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_segment_counts_until_it_is_finished() {
        let log = LogStatus::default();
        let began = Instant::now();
        let after = |s| began + Duration::from_secs(s);
        let of = |bytes, begun| SegmentStatus { bytes, begun };
        log.note_segment(1, of(100, Some(after(5))));
        // Without a data folder nothing is told.
        assert_eq!(
            (log.bytes(), log.oldest(after(9)), log.disk()),
            (None, None, None)
        );
        let disk = DiskStatus {
            free: 7,
            reserve: 2,
        };
        log.note_disk(disk);
        log.note_segment(9, of(28, None));
        log.note_segment(1, of(150, Some(after(5))));
        assert_eq!(log.bytes(), Some(178));
        assert_eq!(log.oldest(after(25)), Some(Duration::from_secs(20)));
        log.note_segment(9, of(60, Some(after(22))));
        log.forget_segment(1);
        assert_eq!(log.bytes(), Some(60));
        assert_eq!(log.oldest(after(25)), Some(Duration::from_secs(3)));
        log.note_segment(9, of(28, None));
        assert_eq!(log.oldest(after(25)), Some(Duration::ZERO));
        assert_eq!(log.disk(), Some(disk));
    }
}
