//! Which folder a message's file lies in: by date and hour, and by levels of its topic.
//!
//! Topics and times are of strangers. A value is one name of a folder (`KEY=VALUE`, percent-encoded), and the number of folders
//! that a segment's files lie in is bounded.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use serde::Serialize;

use crate::columns::{TimeUnit, either_tree, find, time};
use crate::file_name::{LONGEST, is_plain};
use crate::message::Message;

/// Nanoseconds of an hour.
pub(super) const HOUR_NS: i64 = 3_600_000_000_000;

/// Stands for a value that there is not, as Hive has it.
const NO_VALUE: &str = "__HIVE_DEFAULT_PARTITION__";

/// Stands for values that have no folder of their own.
const OTHER: &str = "__other__";

/// A folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// `date=2026-11-26`, in UTC.
    Date,
    /// `hour=07`, in UTC.
    Hour,
    /// A level of the topic, from 0.
    TopicLevel { name: String, nth: usize },
}

impl Part {
    /// The key of its name.
    pub fn name(&self) -> &str {
        match self {
            Part::Date => "date",
            Part::Hour => "hour",
            Part::TopicLevel { name, .. } => name,
        }
    }
}

/// Where payloads say when something happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventTime {
    /// Names of objects and numbers of elements, from the outermost.
    pub steps: Vec<String>,
    /// Unit of the numbers.
    pub unit: TimeUnit,
    /// How far it may be from when the message was received.
    pub within: Duration,
}

/// Which folders files lie in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partitioning {
    /// From the outermost folder.
    pub parts: Vec<Part>,
    /// Source of date and hour; absent: when a message was received.
    pub event_time: Option<EventTime>,
    /// So many folders get files of one segment at the most, beside one for all others.
    pub most: usize,
}

impl Default for Partitioning {
    fn default() -> Partitioning {
        Partitioning {
            parts: vec![Part::Date, Part::Hour],
            event_time: None,
            most: 100,
        }
    }
}

/// Why a message does not lie where its time or topic would have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Misplacement {
    /// Nothing is a time where its payload should have one.
    NoTime,
    /// Its time is too far from when it was received.
    FarTime,
    /// A level of its topic is too long for a folder's name.
    LongLevel,
    /// There were enough folders.
    TooMany,
}

impl Misplacement {
    /// All of them, in the order of their counts.
    pub const ALL: [Misplacement; 4] = [
        Misplacement::NoTime,
        Misplacement::FarTime,
        Misplacement::LongLevel,
        Misplacement::TooMany,
    ];

    /// As metrics have it.
    pub fn name(self) -> &'static str {
        match self {
            Misplacement::NoTime => "no-time",
            Misplacement::FarTime => "far-time",
            Misplacement::LongLevel => "long-level",
            Misplacement::TooMany => "too-many",
        }
    }
}

/// How many messages do not lie where their time or topic would have them, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misplaced([u64; Misplacement::ALL.len()]);

impl Misplaced {
    fn count(&mut self, why: Misplacement) {
        self.0[why as usize] += 1;
    }

    /// How many there are for a reason.
    pub fn number(&self, why: Misplacement) -> u64 {
        self.0[why as usize]
    }
}

impl Partitioning {
    /// Whether the folder follows from when a message was received, so that one file at a time is open.
    pub fn is_by_arrival(&self) -> bool {
        let is_of_time = |part: &Part| !matches!(part, Part::TopicLevel { .. });
        self.event_time.is_none() && self.parts.iter().all(is_of_time)
    }

    /// The hour that a message belongs to.
    fn hour(&self, message: &Message<'_>, misplaced: &mut Misplaced) -> i64 {
        let received = message.received_ns;
        let Some(event_time) = &self.event_time else {
            return hour_of(received);
        };
        let Some(us) = event_time.read(message.payload) else {
            misplaced.count(Misplacement::NoTime);
            return hour_of(received);
        };
        let off_us = us.abs_diff(received.div_euclid(1000));
        if u128::from(off_us) > event_time.within.as_micros() {
            misplaced.count(Misplacement::FarTime);
            return hour_of(received);
        }
        us.div_euclid(3_600_000_000)
    }

    /// The folders of a message, within the data folder.
    fn folder(&self, message: &Message<'_>, misplaced: &mut Misplaced) -> String {
        let hour = self.hour(message, misplaced);
        let mut is_long = false;
        let folder = self.path(hour, |nth| match message.topic.split('/').nth(nth) {
            None | Some("") => NO_VALUE.to_owned(),
            Some(level) => encoded(level).unwrap_or_else(|| {
                is_long = true;
                OTHER.to_owned()
            }),
        });
        if is_long {
            misplaced.count(Misplacement::LongLevel);
        }
        folder
    }

    /// The folders of messages that have none of their own, by when the first of them was received.
    fn shared_folder(&self, received_ns: i64) -> String {
        self.path(hour_of(received_ns), |_| OTHER.to_owned())
    }

    /// The folders of an hour since 1970 and of values for levels of the topic.
    fn path(&self, hour: i64, mut level: impl FnMut(usize) -> String) -> String {
        let time = jiff::Timestamp::from_second(hour.saturating_mul(3600)).unwrap_or_default();
        let folder = |part: &Part| {
            let value = match part {
                Part::Date => time.strftime("%Y-%m-%d").to_string(),
                Part::Hour => time.strftime("%H").to_string(),
                Part::TopicLevel { nth, .. } => level(*nth),
            };
            format!("{}={value}", part.name())
        };
        let folders: Vec<String> = self.parts.iter().map(folder).collect();
        folders.join("/")
    }
}

impl EventTime {
    /// The time that a payload says, microseconds since 1970.
    fn read(&self, payload: &[u8]) -> Option<i64> {
        let tree = either_tree(payload)?;
        time(find(&tree, &self.steps).ok()??, self.unit)
    }
}

/// A value as part of a folder's name, if it is not too long: what is no letter, digit, `-`, `.` or `_` is percent-encoded, and so
/// is a `_` at the beginning, since names that begin so mean something.
fn encoded(value: &str) -> Option<String> {
    let mut text = String::with_capacity(value.len());
    for (nth, byte) in value.bytes().enumerate() {
        if is_plain(byte) && !(nth == 0 && byte == b'_') {
            text.push(char::from(byte));
        } else {
            text += &format!("%{byte:02X}");
        }
        if text.len() > LONGEST {
            return None;
        }
    }
    Some(text)
}

/// The hour of a time, since 1970.
pub fn hour_of(ns: i64) -> i64 {
    ns.div_euclid(HOUR_NS)
}

/// The files that a segment or a commit becomes, while they are open, by the folders that they lie in.
#[derive(Debug)]
pub struct OpenFiles<'l, F> {
    partitioning: &'l Partitioning,
    open: BTreeMap<String, F>,
    /// The hour of the open file, where folders follow from the hour.
    hour: Option<i64>,
    /// The folders of all messages that have none of their own.
    other: Option<String>,
    pub misplaced: Misplaced,
}

impl<'l, F> OpenFiles<'l, F> {
    pub fn new(partitioning: &'l Partitioning) -> OpenFiles<'l, F> {
        OpenFiles {
            partitioning,
            open: BTreeMap::new(),
            hour: None,
            other: None,
            misplaced: Misplaced::default(),
        }
    }

    /// The file of a message. `create` makes one in folders that have none yet; `close` takes one that is complete.
    ///
    /// # Errors
    /// Those of `create` and `close`.
    pub fn file_for(
        &mut self,
        message: &Message<'_>,
        create: impl FnOnce(&str) -> io::Result<F>,
        close: &mut dyn FnMut(F) -> io::Result<()>,
    ) -> io::Result<&mut F> {
        let is_by_arrival = self.partitioning.is_by_arrival();
        if is_by_arrival && self.is_open_for(message, close)? {
            let mut open = self.open.values_mut();
            return open.next().ok_or_else(|| io::ErrorKind::NotFound.into());
        }
        let mut folder = self.partitioning.folder(message, &mut self.misplaced);
        if !is_by_arrival {
            folder = self.bounded_folder(folder, message.received_ns);
        }
        if !self.open.contains_key(&folder) {
            let file = create(&folder)?;
            self.open.insert(folder.clone(), file);
        }
        self.open
            .get_mut(&folder)
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Whether the open file is that of a message's hour; the one of another hour is complete.
    fn is_open_for(
        &mut self,
        message: &Message<'_>,
        close: &mut dyn FnMut(F) -> io::Result<()>,
    ) -> io::Result<bool> {
        let hour = Some(hour_of(message.received_ns));
        if self.hour != hour {
            self.hour = hour;
            for (_, file) in std::mem::take(&mut self.open) {
                close(file)?;
            }
        }
        Ok(!self.open.is_empty())
    }

    /// These folders, or those of all others if there are enough.
    fn bounded_folder(&mut self, folder: String, received_ns: i64) -> String {
        let is_full = self.open.len() >= self.partitioning.most + usize::from(self.other.is_some());
        if !is_full || self.open.contains_key(&folder) {
            return folder;
        }
        self.misplaced.count(Misplacement::TooMany);
        let other = || self.partitioning.shared_folder(received_ns);
        self.other.get_or_insert_with(other).clone()
    }

    /// Each open file.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut F> {
        self.open.values_mut()
    }

    /// All files that are open still.
    pub fn into_open(self) -> impl Iterator<Item = F> {
        self.open.into_values()
    }
}

#[cfg(test)]
mod tests;
