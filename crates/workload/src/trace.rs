//! Recorded traces: when which device sent how many bytes on which topic.
//!
//! The plain format is CSV with a header or NDJSON, with the fields `time` (RFC 3339, or seconds
//! since 1970), `device`, and either `size` in bytes or `payload`, and optionally `topic`.
//! Other CSV is converted while it is read, as a [`TraceFormat`] says, and so are other objects: one on each line, or a
//! list of them. Gzip is recognised by its first bytes, and other forms are refused by their names.

mod builder;
mod convert;
pub mod days;
mod format;
mod last_sent;
mod outlets;
mod read;
mod remarks;
mod source;
mod time;
mod zone;

use std::io::{self, Write};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use crate::units::{MIN_SIZE, Nanos, SECOND};
use builder::{Builder, SHIFT};
pub use builder::{Manner, TraceReading};
pub use format::{OnChange, PayloadText, TraceColumn, TraceFormat};
pub use outlets::Outlets;
pub use remarks::{CutFile, Remarks};
pub use source::{TraceError, TraceSource};
pub use time::TimeFormat;
pub use zone::ZoneName;

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
    pub readings: Vec<TraceReading>,
    /// Distinct payloads.
    payloads: Vec<Arc<[u8]>>,
    /// Readings shorter than [`MIN_SIZE`], which are padded to it.
    pub below_minimum: u64,
    /// How the trace differs from its files.
    pub remarks: Remarks,
    by_device: OnceLock<ByDevice>,
    checksum: OnceLock<u32>,
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
    /// A checksum (CRC-32) of all that is replayed: times, devices, sizes, topics and payloads. Computed once.
    pub fn checksum(&self) -> u32 {
        *self.checksum.get_or_init(|| self.summed())
    }

    fn summed(&self) -> u32 {
        let mut sum = crc32fast::Hasher::new();
        sum.update(&self.start.to_le_bytes());
        for name in self.devices.iter().chain(&self.topics) {
            sum.update(name.as_bytes());
            sum.update(&[0]);
        }
        for payload in &self.payloads {
            sum.update(&(payload.len() as u64).to_le_bytes());
            sum.update(payload);
        }
        for reading in &self.readings {
            let absent = u32::MAX;
            let parts = [
                reading.device,
                reading.size,
                reading.topic().unwrap_or(absent),
                reading.payload().unwrap_or(absent),
            ];
            let mut bytes = [0; 24];
            bytes[..8].copy_from_slice(&reading.at.to_le_bytes());
            for (place, part) in bytes[8..].chunks_exact_mut(4).zip(parts) {
                place.copy_from_slice(&part.to_le_bytes());
            }
            sum.update(&bytes);
            let manner = reading.manner();
            if !manner.is_unknown() {
                sum.update(format!("{manner:?}").as_bytes());
            }
        }
        sum.finalize()
    }

    /// Opens a trace. While it is in use in this process, opening it again does not read it again.
    ///
    /// # Errors
    /// The error in the files, with file, line and column.
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
    /// The error in the files, with file, line and column.
    pub fn read(source: &TraceSource) -> Result<Self, TraceError> {
        Trace::read_into(Builder::default(), source)
    }

    /// As [`Trace::read`], with the readings that `drop-repeats` and `on-change` leave out.
    fn read_whole(source: &TraceSource) -> Result<Self, TraceError> {
        Trace::read_into(Builder::of_all(), source)
    }

    fn read_into(mut builder: Builder, source: &TraceSource) -> Result<Self, TraceError> {
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
            0 => SECOND,
            span => span + (span / gaps).max(1),
        }
    }

    /// The topic of a reading, if it was recorded.
    pub fn topic(&self, reading: &TraceReading) -> Option<&str> {
        self.topics
            .get(reading.topic()? as usize)
            .map(String::as_str)
    }

    /// The payload of a reading, if it was recorded.
    pub fn payload(&self, reading: &TraceReading) -> Option<&Arc<[u8]>> {
        self.payloads.get(reading.payload()? as usize)
    }

    /// Number of the reading's topic, 0 if it has none.
    pub(crate) fn topic_number(&self, reading: &TraceReading) -> u32 {
        reading.topic().unwrap_or(0)
    }

    /// The readings of one device, in order of time.
    pub fn of_device(&self, device: u32) -> impl ExactSizeIterator<Item = &TraceReading> {
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
        let manners = || self.readings.iter().map(TraceReading::manner);
        let with_qos = manners().any(|manner| manner.qos.is_some());
        let with_retain = manners().any(|manner| manner.retain.is_some());
        header.extend(with_qos.then_some("qos"));
        header.extend(with_retain.then_some("retain"));
        csv.write_record(&header)?;
        for reading in &self.readings {
            let time = time::format_rfc3339(self.start + reading.at as i64);
            let size = reading.size.to_string();
            let device = &self.devices[reading.device as usize];
            let mut record: Vec<&[u8]> = vec![time.as_bytes(), device.as_bytes(), size.as_bytes()];
            if with_topic {
                record.push(self.topic(reading).unwrap_or_default().as_bytes());
            }
            if with_payload {
                record.push(self.payload(reading).map_or(&[][..], |payload| payload));
            }
            let Manner { qos, retain } = reading.manner();
            let qos = qos.map(|qos| qos.to_string()).unwrap_or_default();
            let retain = retain.map(|retain| u8::from(retain).to_string());
            let retain = retain.unwrap_or_default();
            record.extend(with_qos.then_some(qos.as_bytes()));
            record.extend(with_retain.then_some(retain.as_bytes()));
            csv.write_byte_record(&csv::ByteRecord::from(record))?;
        }
        csv.flush()
    }
}

impl Builder {
    /// The trace, in order of time.
    fn finish(mut self, source: &TraceSource) -> Result<Trace, TraceError> {
        // Files may follow one another or overlap in time; the sort is stable and fits both.
        let all = 0..self.readings.len();
        let wrong = |message: String| TraceError {
            file: source.files.first().cloned().unwrap_or_default(),
            line: Some(1),
            column: Some(1),
            message,
            hint: None,
        };
        self.sort(all).map_err(wrong)?;
        let Some(first) = self.readings.first().map(|reading| reading.at) else {
            return Err(wrong("there is no reading in the trace".into()));
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
            remarks: self.remarks,
            by_device: OnceLock::new(),
            checksum: OnceLock::new(),
        })
    }
}

#[cfg(test)]
mod tests;
