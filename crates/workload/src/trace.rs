//! Recorded traces: when which device sent how many bytes on which topic.
//!
//! The plain format is CSV with a header or NDJSON, with the fields `time` (RFC 3339, or seconds
//! since 1970), `device`, and either `size` in bytes or `payload`, and optionally `topic`.
//! Other CSV is converted while it is read, as a [`TraceFormat`] says. Gzip is recognised by its
//! first bytes.

mod convert;
mod format;
mod read;
mod time;

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use serde::{Deserialize, Serialize};

use crate::{MAX_SIZE, MIN_SIZE, Nanos};
pub use format::{Column, OnChange, TraceFormat};
pub use time::TimeFormat;

/// Where a trace comes from and how it is read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceSource {
    /// Files, absolute; several are merged in order of time.
    pub files: Vec<PathBuf>,
    /// How to read them; absent: the plain format.
    pub format: Option<TraceFormat>,
    /// Sort readings that are out of order within a file, instead of refusing them.
    pub sort: bool,
}

/// What is wrong with a trace, and where.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub struct TraceError {
    /// The file.
    pub file: PathBuf,
    /// Line, from 1.
    pub line: Option<u64>,
    /// Column of text, from 1.
    pub column: Option<u64>,
    /// What was wrong and what was expected.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(column) = self.column {
            write!(f, ":{column}")?;
        }
        write!(f, ": {}", self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

/// No topic, or no payload.
const NONE: u32 = u32::MAX;

/// One message of a trace: 24 bytes, of which a day of 37 meters has 1.6 million.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Nanoseconds since the first reading of the trace.
    pub at: Nanos,
    /// Index into [`Trace::devices`].
    pub device: u32,
    /// Bytes as recorded; may be less than a message can be.
    pub size: u32,
    /// Index into [`Trace::topics`], or none.
    topic: u32,
    payload: u32,
}

/// A recorded trace in memory, in order of time.
#[derive(Debug)]
pub struct Trace {
    /// Time of the first reading, nanoseconds since 1970.
    pub start: i64,
    /// Names of the devices, in the order in which they first appear.
    pub devices: Vec<String>,
    /// Topics, in the order in which they first appear.
    pub topics: Vec<String>,
    /// Messages, in order of time; at least one.
    pub readings: Vec<Reading>,
    /// Distinct payloads.
    payloads: Vec<Arc<[u8]>>,
    /// Readings shorter than [`MIN_SIZE`], which are padded to it.
    pub below_minimum: u64,
    /// Readings that `drop-repeats` or `on-change` left out.
    pub left_out: u64,
    by_device: OnceLock<ByDevice>,
}

/// Readings of each device.
#[derive(Debug)]
struct ByDevice {
    /// Indices of readings, device by device, in order of time.
    order: Vec<u32>,
    /// First of each device in `order`; one more at the end.
    first: Vec<u32>,
}

impl Trace {
    /// Opens a trace. While it is in use in this process, opening it again does not read it again.
    ///
    /// # Errors
    /// What is wrong with the files, with file, line and column.
    pub fn open(source: &TraceSource) -> Result<Arc<Self>, TraceError> {
        static OPEN: Mutex<Vec<(TraceSource, Weak<Trace>)>> = Mutex::new(Vec::new());
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(_, trace)| trace.strong_count() > 0);
        let known = open.iter().find(|(known, _)| known == source);
        if let Some(trace) = known.and_then(|(_, trace)| trace.upgrade()) {
            return Ok(trace);
        }
        let trace = Arc::new(Trace::read(source)?);
        open.push((source.clone(), Arc::downgrade(&trace)));
        Ok(trace)
    }

    /// Whether any reading came with its payload.
    pub fn has_payloads(&self) -> bool {
        !self.payloads.is_empty()
    }

    /// Reads a trace.
    ///
    /// # Errors
    /// What is wrong with the files, with file, line and column.
    pub fn read(source: &TraceSource) -> Result<Self, TraceError> {
        let mut builder = Builder::default();
        for file in &source.files {
            read::read_file(file, source, &mut builder)?;
        }
        builder.finish(source)
    }

    /// Nanoseconds from the first reading to the last.
    pub fn span(&self) -> Nanos {
        self.readings.last().map_or(0, |reading| reading.at)
    }

    /// Length of one lap when the trace is looped: the span, and one mean gap so that the last
    /// reading and the first do not fall together. Never 0.
    pub fn period(&self) -> Nanos {
        let gaps = (self.readings.len() as u64).saturating_sub(1).max(1);
        match self.span() {
            0 => crate::SECOND,
            span => span + (span / gaps).max(1),
        }
    }

    /// The topic of a reading, if it was recorded.
    pub fn topic(&self, reading: &Reading) -> Option<&str> {
        self.topics.get(reading.topic as usize).map(String::as_str)
    }

    /// The payload of a reading, if it was recorded.
    pub fn payload(&self, reading: &Reading) -> Option<&Arc<[u8]>> {
        self.payloads.get(reading.payload as usize)
    }

    /// Number of the reading's topic, 0 if it has none.
    pub(crate) fn topic_number(&self, reading: &Reading) -> u32 {
        if reading.topic == NONE {
            0
        } else {
            reading.topic
        }
    }

    /// The readings of one device, in order of time.
    pub fn of_device(&self, device: u32) -> impl ExactSizeIterator<Item = &Reading> {
        self.indices_of(device)
            .iter()
            .map(|index| &self.readings[*index as usize])
    }

    /// Indices of the readings of one device, in order of time.
    pub(crate) fn indices_of(&self, device: u32) -> &[u32] {
        let by_device = self.by_device.get_or_init(|| self.sort_by_device());
        let of = |device: u32| by_device.first[device as usize] as usize;
        &by_device.order[of(device)..of(device + 1)]
    }

    fn sort_by_device(&self) -> ByDevice {
        let mut first = vec![0u32; self.devices.len() + 1];
        for reading in &self.readings {
            first[reading.device as usize + 1] += 1;
        }
        for device in 1..first.len() {
            first[device] += first[device - 1];
        }
        let mut next = first.clone();
        let mut order = vec![0; self.readings.len()];
        for (index, reading) in self.readings.iter().enumerate() {
            let place = &mut next[reading.device as usize];
            order[*place as usize] = index as u32;
            *place += 1;
        }
        ByDevice { order, first }
    }

    /// Writes the trace in the plain format, as CSV.
    ///
    /// # Errors
    /// When `out` cannot be written to.
    pub fn write_plain(&self, out: impl Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        let with_topic = !self.topics.is_empty();
        let with_payload = !self.payloads.is_empty();
        let mut header = vec!["time", "device", "size"];
        header.extend(with_topic.then_some("topic"));
        header.extend(with_payload.then_some("payload"));
        csv.write_record(&header)?;
        for reading in &self.readings {
            let time = time::show(self.start + reading.at as i64);
            let size = reading.size.to_string();
            let device = &self.devices[reading.device as usize];
            let mut record: Vec<&[u8]> = vec![time.as_bytes(), device.as_bytes(), size.as_bytes()];
            if with_topic {
                record.push(self.topic(reading).unwrap_or_default().as_bytes());
            }
            if with_payload {
                record.push(self.payload(reading).map_or(&[][..], |payload| payload));
            }
            csv.write_byte_record(&csv::ByteRecord::from(record))?;
        }
        csv.flush()
    }
}

/// One reading on its way into a trace.
struct Raw<'a> {
    /// Nanoseconds since 1970.
    time: i64,
    device: &'a str,
    topic: Option<&'a str>,
    size: u32,
    payload: Option<&'a [u8]>,
}

/// Names and their numbers, in the order of appearance.
#[derive(Default)]
struct Names {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
    bytes: usize,
}

impl Names {
    fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.bytes += name.len();
        self.names.push(name.to_string());
        self.numbers.insert(name.to_string(), number);
        number
    }
}

/// Most readings of a trace: 24 bytes each in memory, 2.4 GB.
const MAX_READINGS: usize = 100_000_000;

/// Most bytes of different payloads, devices and topics of a trace, which are held in memory.
const MAX_TEXT_BYTES: usize = 1 << 30;

/// A trace under construction.
#[derive(Default)]
struct Builder {
    devices: Names,
    topics: Names,
    payloads: Vec<Arc<[u8]>>,
    payload_numbers: HashMap<Arc<[u8]>, u32>,
    payload_bytes: usize,
    /// Times are nanoseconds since 1970 here, shifted to be unsigned.
    readings: Vec<Reading>,
    left_out: u64,
}

/// Shifts times since 1970 to unsigned ones and back.
const SHIFT: i64 = i64::MIN;

impl Builder {
    /// Adds a reading; the error says which limit it is beyond.
    fn push(&mut self, raw: &Raw<'_>) -> Result<(), String> {
        if raw.size > MAX_SIZE {
            return Err(format!(
                "{} bytes are no possible message: the largest has {MAX_SIZE}",
                raw.size
            ));
        }
        if self.readings.len() >= MAX_READINGS {
            return Err(format!(
                "the trace has more than {MAX_READINGS} readings, the most that are held"
            ));
        }
        let payload = raw.payload.map_or(NONE, |payload| {
            if let Some(number) = self.payload_numbers.get(payload) {
                return *number;
            }
            let shared: Arc<[u8]> = payload.into();
            let number = self.payloads.len() as u32;
            self.payload_bytes += shared.len();
            self.payloads.push(shared.clone());
            self.payload_numbers.insert(shared, number);
            number
        });
        self.readings.push(Reading {
            at: raw.time.wrapping_sub(SHIFT) as u64,
            device: self.devices.number(raw.device),
            size: raw.size,
            topic: raw.topic.map_or(NONE, |topic| self.topics.number(topic)),
            payload,
        });
        match self.payload_bytes + self.devices.bytes + self.topics.bytes > MAX_TEXT_BYTES {
            true => Err(format!(
                "payloads, devices and topics of the trace take more than {} MiB, the most that are held",
                MAX_TEXT_BYTES >> 20
            )),
            false => Ok(()),
        }
    }

    /// Sorts the readings from `range` on.
    fn sort(&mut self, range: Range<usize>) {
        self.readings[range].sort_by_key(|reading| reading.at);
    }

    fn finish(mut self, source: &TraceSource) -> Result<Trace, TraceError> {
        let file = || source.files.first().cloned().unwrap_or_default();
        let wrong = |message: &str| TraceError {
            file: file(),
            line: Some(1),
            column: Some(1),
            message: message.to_string(),
            hint: None,
        };
        // Files may follow one another or overlap in time; the sort is stable and fits both.
        let all = 0..self.readings.len();
        self.sort(all);
        let Some(first) = self.readings.first().map(|reading| reading.at) else {
            return Err(wrong("there is no reading in the trace"));
        };
        let mut below_minimum = 0;
        for reading in &mut self.readings {
            reading.at -= first;
            below_minimum += u64::from(reading.size < MIN_SIZE);
        }
        self.readings.shrink_to_fit();
        Ok(Trace {
            start: (first as i64).wrapping_add(SHIFT),
            devices: self.devices.names,
            topics: self.topics.names,
            readings: self.readings,
            payloads: self.payloads,
            below_minimum,
            left_out: self.left_out,
            by_device: OnceLock::new(),
        })
    }
}

/// The device that a file name stands for: `pattern` may contain `*` for anything and
/// `{device}` (several are joined). `*` takes as little as it can, `{device}` as much.
pub(crate) fn device_of_name(pattern: &str, path: &Path) -> Option<String> {
    fn go(pattern: &str, name: &str, device: &mut String) -> bool {
        const HOLE: &str = "{device}";
        let (rest, capture) = match pattern.strip_prefix(HOLE) {
            Some(rest) => (rest, true),
            None => match pattern.strip_prefix('*') {
                Some(rest) => (rest, false),
                None => {
                    let Some(first) = pattern.chars().next() else {
                        return name.is_empty();
                    };
                    return name
                        .strip_prefix(first)
                        .is_some_and(|name| go(&pattern[first.len_utf8()..], name, device));
                }
            },
        };
        let kept = device.len();
        let ends: Vec<usize> = name
            .char_indices()
            .map(|(i, _)| i)
            .chain([name.len()])
            .collect();
        for n in 0..ends.len() {
            let end = ends[if capture { ends.len() - 1 - n } else { n }];
            if capture {
                device.push_str(&name[..end]);
            }
            if go(rest, &name[end..], device) {
                return true;
            }
            device.truncate(kept);
        }
        false
    }
    let name = path.file_name()?.to_str()?;
    let mut device = String::new();
    (go(pattern, name, &mut device) && !device.is_empty()).then_some(device)
}

#[cfg(test)]
mod tests;
