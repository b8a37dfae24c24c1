//! Histograms of a trial's records. A long trial has many: they are kept in a file without a name, so that the
//! memory of the client does not grow with them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::times::Measure;

/// One interval of one measure of one flow, encoded (HdrHistogram V2).
#[derive(Clone, Debug, PartialEq)]
pub struct EncodedInterval {
    pub flow: u32,
    /// The time that was measured.
    pub measure: Measure,
    /// Which interval of the measurement, from 0.
    pub number: u32,
    pub histogram: Vec<u8>,
}

/// Bytes that are gathered before they are written to the file.
const BLOCK: usize = 256 << 10;

/// The intervals of a trial, sorted by number, flow and measure.
#[derive(Debug, Default)]
pub struct Intervals {
    places: Vec<Extent>,
    /// None as long as all fits into `rest`.
    file: Option<File>,
    /// Bytes in the file.
    written: u64,
    /// The intervals after them. Where the file cannot be written, it holds all the rest.
    rest: Vec<u8>,
    no_file: bool,
}

/// Where an interval is.
#[derive(Clone, Copy, Debug)]
struct Extent {
    number: u32,
    flow: u32,
    measure: Measure,
    length: u32,
    offset: u64,
}

impl Intervals {
    /// Adds one.
    pub(crate) fn push(&mut self, interval: &EncodedInterval) {
        let place = Extent {
            number: interval.number,
            flow: interval.flow,
            measure: interval.measure,
            length: interval.histogram.len() as u32,
            offset: self.written + self.rest.len() as u64,
        };
        let order = |place: &Extent| (place.number, place.flow, place.measure);
        // Nearly always the last: workers hand in their records in turn.
        let at = self.places.partition_point(|p| order(p) <= order(&place));
        self.places.insert(at, place);
        self.rest.extend_from_slice(&interval.histogram);
        if self.rest.len() >= BLOCK && !self.no_file {
            self.no_file = self.flush().is_err();
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        // A part that was written incompletely is written once more at the same place, or stays in memory.
        file.write_all_at(&self.rest, self.written)?;
        self.written += self.rest.len() as u64;
        self.rest.clear();
        Ok(())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The numbers of the records of which there are any, rising.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        let records = self.places.chunk_by(|one, next| one.number == next.number);
        records.map(|record| record[0].number)
    }

    /// Those of one record.
    ///
    /// # Errors
    /// As of [`Intervals::each`].
    pub fn of_record(&self, number: u32) -> impl Iterator<Item = io::Result<EncodedInterval>> {
        let from = self.places.partition_point(|place| place.number < number);
        let to = self.places.partition_point(|place| place.number <= number);
        self.places[from..to].iter().map(|place| self.read(*place))
    }

    /// Those of one measure.
    ///
    /// # Errors
    /// As of [`Intervals::each`].
    pub fn each_of(&self, measure: Measure) -> impl Iterator<Item = io::Result<EncodedInterval>> {
        let places = self
            .places
            .iter()
            .filter(move |place| place.measure == measure);
        places.map(|place| self.read(*place))
    }

    /// Each in turn, sorted.
    ///
    /// # Errors
    /// Where the file cannot be read: that histogram is lost.
    pub fn sorted(&self) -> impl Iterator<Item = io::Result<EncodedInterval>> {
        self.places.iter().map(|place| self.read(*place))
    }

    fn read(&self, place: Extent) -> io::Result<EncodedInterval> {
        let mut histogram = vec![0; place.length as usize];
        match (place.offset.checked_sub(self.written), &self.file) {
            (Some(at), _) => {
                let at = at as usize;
                histogram.copy_from_slice(&self.rest[at..at + place.length as usize]);
            }
            (None, Some(file)) => file.read_exact_at(&mut histogram, place.offset)?,
            (None, None) => return Err(io::Error::other("there is no file of histograms")),
        }
        Ok(EncodedInterval {
            flow: place.flow,
            measure: place.measure,
            number: place.number,
            histogram,
        })
    }
}

impl PartialEq for Intervals {
    fn eq(&self, other: &Intervals) -> bool {
        let same = |(one, other): (io::Result<EncodedInterval>, io::Result<EncodedInterval>)| matches!((one, other), (Ok(one), Ok(other)) if one == other);
        self.len() == other.len() && self.sorted().zip(other.sorted()).all(same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(number: u32, flow: u32, length: usize) -> EncodedInterval {
        EncodedInterval {
            flow,
            measure: Measure::Latency,
            number,
            histogram: (0..length)
                .map(|n| (n as u32 * 7 + number + flow) as u8)
                .collect(),
        }
    }

    /// Two workers hand in their records, one of them three records late.
    fn handed_in(into: &mut Intervals, records: u32) -> Vec<EncodedInterval> {
        let mut all = Vec::new();
        for number in 0..records + 3 {
            let late = number.checked_sub(3);
            for (number, flow) in [(Some(number), 0), (late, 1)] {
                let Some(number) = number.filter(|n| *n < records) else {
                    continue;
                };
                let one = interval(number, flow, 500 + number as usize % 900);
                into.push(&one);
                all.push(one);
            }
        }
        all.sort_by_key(|i| (i.number, i.flow));
        all
    }

    fn all(of: &Intervals) -> Vec<EncodedInterval> {
        of.sorted().collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn an_hour_is_read_back_from_a_file_and_takes_no_memory() {
        let mut intervals = Intervals::default();
        let expected = handed_in(&mut intervals, 3_600);
        assert!(intervals.file.is_some());
        assert!(intervals.rest.capacity() <= 2 * BLOCK);
        assert!(intervals.places.capacity() * size_of::<Extent>() < 512 << 10);
        assert_eq!(all(&intervals), expected);
    }

    #[test]
    fn without_a_file_all_is_kept_in_memory() {
        let mut intervals = Intervals {
            no_file: true,
            ..Intervals::default()
        };
        let expected = handed_in(&mut intervals, 1_000);
        assert!(intervals.file.is_none());
        assert_eq!(all(&intervals), expected);
    }

    #[test]
    fn a_file_that_takes_no_more_leaves_the_rest_in_memory() {
        let mut intervals = Intervals::default();
        let mut expected = handed_in(&mut intervals, 1_000);
        // Opened for reading alone, every write to it fails.
        let file = intervals.file.take().unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&file);
        let reading = File::open(format!("/proc/self/fd/{number}")).unwrap();
        intervals.file = Some(reading);
        for number in 2_000..3_000 {
            let one = interval(number, 0, 900);
            intervals.push(&one);
            expected.push(one);
        }
        assert!(intervals.no_file);
        assert_eq!(all(&intervals), expected);
    }
}
