//! A trace under construction.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::last_sent::LastSent;
use super::remarks::Remarks;
use crate::units::{MAX_SIZE, Nanos};

/// No payload.
const NONE: u32 = u32::MAX;

/// No topic; one less than the largest number that a reading has room for beside its manner.
const NO_TOPIC: u32 = (1 << MANNER_AT) - 1;

/// Where the manner of a reading begins in the word that it shares with the topic.
const MANNER_AT: u32 = 28;

/// One message of a trace: 24 bytes, of which a day of 37 meters has 1.6 million.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceReading {
    /// Nanoseconds since the first reading of the trace.
    pub at: Nanos,
    /// Index into [`super::Trace::devices`].
    pub device: u32,
    /// Bytes as recorded; may be less than a message can be.
    pub size: u32,
    /// Index into [`super::Trace::topics`], or none, in the lower 28 bits; the manner above them.
    topic: u32,
    payload: u32,
}

/// How a message was published, as far as the recording tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// Quality of service, as MQTT counts it: 0 to 2.
    pub qos: Option<u8>,
    /// Whether the system was to keep it as the topic's last value.
    pub retain: Option<bool>,
}

impl Manner {
    /// Two bits each: 0 stands for unknown.
    fn bits(self) -> u32 {
        let qos = self.qos.map_or(0, |qos| u32::from(qos.min(2)) + 1);
        let retain = self.retain.map_or(0, |retain| u32::from(retain) + 1);
        qos | retain << 2
    }

    fn of_bits(bits: u32) -> Manner {
        Manner {
            qos: (bits & 3).checked_sub(1).map(|qos| qos as u8),
            retain: (bits >> 2).checked_sub(1).map(|retain| retain == 1),
        }
    }

    /// Whether nothing is known.
    pub fn is_unknown(self) -> bool {
        self == Manner::default()
    }
}

impl TraceReading {
    /// How the message was published, as far as the recording tells.
    pub fn manner(&self) -> Manner {
        TraceReading::outlet_of_word(self.topic).1
    }

    /// Index into [`super::Trace::topics`].
    pub fn topic(&self) -> Option<u32> {
        TraceReading::outlet_of_word(self.topic).0
    }

    /// Topic and manner in one word.
    pub(super) fn outlet_word(&self) -> u32 {
        self.topic
    }

    /// The topic and the manner of such a word.
    pub(super) fn outlet_of_word(word: u32) -> (Option<u32>, Manner) {
        let topic = Some(word & NO_TOPIC).filter(|topic| *topic != NO_TOPIC);
        (topic, Manner::of_bits(word >> MANNER_AT))
    }

    /// Number of its payload.
    pub(super) fn payload(&self) -> Option<u32> {
        Some(self.payload).filter(|payload| *payload != NONE)
    }
}

/// One reading on its way into a trace.
pub(super) struct Raw<'a> {
    /// Nanoseconds since 1970.
    pub(super) time: i64,
    pub(super) device: &'a str,
    pub(super) topic: Option<&'a str>,
    pub(super) size: u32,
    pub(super) payload: Option<&'a [u8]>,
    pub(super) manner: Manner,
}

/// Names and their numbers, in the order of appearance.
#[derive(Default)]
pub(super) struct NameTable {
    pub(super) names: Vec<String>,
    numbers: HashMap<String, u32>,
    bytes: usize,
}

impl NameTable {
    fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.bytes += 2 * name.len() + PER_TEXT;
        self.names.push(name.to_string());
        self.numbers.insert(name.to_string(), number);
        number
    }
}

/// Most readings of a trace: 24 bytes each in memory, 2.4 GB.
const MAX_READINGS: usize = 100_000_000;

/// Most bytes of different payloads, devices and topics of a trace, which are held in memory.
const MAX_TEXT_BYTES: usize = 1 << 30;

/// Memory that each of them takes beside its bytes, for its places in a list and a table.
const PER_TEXT: usize = 128;

/// A trace under construction.
#[derive(Default)]
pub(super) struct Builder {
    pub(super) devices: NameTable,
    pub(super) topics: NameTable,
    pub(super) payloads: Vec<Arc<[u8]>>,
    payload_numbers: HashMap<Arc<[u8]>, u32>,
    payload_bytes: usize,
    /// Times are nanoseconds since 1970 here, shifted to be unsigned.
    pub(super) readings: Vec<TraceReading>,
    pub(super) remarks: Remarks,
    /// Readings that `drop-repeats` and `on-change` leave out are taken as well.
    pub(super) takes_all: bool,
    /// The memory of each device that it takes to leave readings out, from file to file.
    pub(super) before: HashMap<Box<str>, LastSent>,
}

/// Shifts times since 1970 to unsigned ones and back.
pub(super) const SHIFT: i64 = i64::MIN;

impl Builder {
    /// One that takes what `drop-repeats` and `on-change` leave out as well.
    pub(super) fn of_all() -> Self {
        Builder {
            takes_all: true,
            ..Builder::default()
        }
    }

    /// Adds a reading; the error says which limit it is beyond.
    pub(super) fn push(&mut self, raw: &Raw<'_>) -> Result<(), String> {
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
        // The program would end where there is no memory for more.
        if self.readings.try_reserve(1).is_err() {
            return Err(format!(
                "there is no memory for more than {} readings, which is what the trace has up to here",
                self.readings.len()
            ));
        }
        // A message is as long as its size says: a text of another length, such as an empty field, is not sent.
        let whole = raw
            .payload
            .filter(|payload| payload.len() == raw.size as usize);
        let other = raw.payload.is_some_and(|payload| !payload.is_empty()) && whole.is_none();
        self.remarks.other_length += u64::from(other);
        let payload = whole.map_or(NONE, |payload| {
            if let Some(number) = self.payload_numbers.get(payload) {
                return *number;
            }
            let shared: Arc<[u8]> = payload.into();
            let number = self.payloads.len() as u32;
            self.payload_bytes += shared.len() + PER_TEXT;
            self.payloads.push(shared.clone());
            self.payload_numbers.insert(shared, number);
            number
        });
        self.readings.push(TraceReading {
            at: raw.time.wrapping_sub(SHIFT) as u64,
            device: self.devices.number(raw.device),
            size: raw.size,
            topic: raw
                .topic
                .map_or(NO_TOPIC, |topic| self.topics.number(topic))
                | raw.manner.bits() << MANNER_AT,
            payload,
        });
        if self.payload_bytes + self.devices.bytes + self.topics.bytes > MAX_TEXT_BYTES {
            Err(format!(
                "payloads, devices and topics of the trace take more than {} MiB, the most that are held",
                MAX_TEXT_BYTES >> 20
            ))
        } else {
            Ok(())
        }
    }

    /// Sorts the readings of `range` by their times; the error says that memory is missing.
    pub(super) fn sort(&mut self, range: Range<usize>) -> Result<(), String> {
        let readings = &mut self.readings[range];
        if readings.is_sorted_by_key(|reading| reading.at) {
            return Ok(());
        }
        // The sort holds half of them a second time, and the program would end where there is no memory for that.
        let mut half: Vec<TraceReading> = Vec::new();
        if half.try_reserve_exact(readings.len().div_ceil(2)).is_err() {
            return Err(format!(
                "there is no memory to sort {} readings",
                readings.len()
            ));
        }
        drop(half);
        readings.sort_by_key(|reading| reading.at);
        Ok(())
    }
}
