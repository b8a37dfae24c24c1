//! When sockets are read: as soon as the disk is idle, unless commits would then take too much of a processor.

use std::time::{Duration, Instant};

/// Readings are at least this many times the processor time of a commit apart, so that small commits take a thirty-second of a
/// processor at the most.
const APART: u32 = 32;

/// The newest commit is one part in so many of the mean.
const WEIGHT: u32 = 8;

/// Times between readings.
#[derive(Debug)]
pub struct Pace {
    /// Mean processor time of a commit.
    commit: Duration,
    /// When sockets were read last.
    read_at: Option<Instant>,
}

impl Pace {
    pub fn new() -> Pace {
        Pace {
            commit: Duration::ZERO,
            read_at: None,
        }
    }

    /// Takes note of the processor time that a commit took.
    pub fn note_commit(&mut self, took: Duration) {
        self.commit = (self.commit * (WEIGHT - 1) + took) / WEIGHT;
    }

    /// Takes note of a reading.
    pub fn note_reading(&mut self, at: Instant) {
        self.read_at = Some(at);
    }

    /// When to read next: `most` after the last reading where the disk `is_busy`, and otherwise as soon as it pays.
    pub fn next_reading(&self, now: Instant, is_busy: bool, most: Duration) -> Instant {
        let apart = if is_busy {
            most
        } else {
            most.min(self.commit * APART)
        };
        self.read_at.map_or(now, |at| now.max(at + apart))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_millis(5);

    #[test]
    fn a_first_message_is_read_at_once_and_later_ones_as_often_as_commits_are_cheap() {
        let began = Instant::now();
        let mut pace = Pace::new();
        assert_eq!(pace.next_reading(began, false, MOST), began);
        pace.note_reading(began);
        for _ in 0..100 {
            pace.note_commit(Duration::from_micros(100));
        }
        let next = pace.next_reading(began, false, MOST) - began;
        let wanted = Duration::from_micros(3200);
        assert!(wanted - next < Duration::from_micros(40), "{next:?}");
        let later = began + Duration::from_millis(4);
        assert_eq!(pace.next_reading(later, false, MOST), later);
    }

    #[test]
    fn dear_commits_and_a_busy_disk_leave_the_configured_time_between_readings() {
        let began = Instant::now();
        let mut pace = Pace::new();
        pace.note_reading(began);
        assert_eq!(pace.next_reading(began, true, MOST), began + MOST);
        for _ in 0..100 {
            pace.note_commit(Duration::from_millis(2));
        }
        assert_eq!(pace.next_reading(began, false, MOST), began + MOST);
    }
}
