//! The messages of all finished files of a data folder, in the order in which they were received.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use pubgauge_driver::TopicMatch;
use pubgauge_place::OpenFolder;

use super::ReplayOptions;
use super::files::OpenFile;
use super::stored::StoredMessage;
use crate::Error;
use crate::folder::{self, COLLECTORS};
use crate::manifest::{self, FileEntry, FilePlace};
use crate::verify::Discrepancy;

/// The messages of a data folder.
pub struct Messages {
    collectors: Vec<Collected>,
    wanted: Wanted,
    top: OpenFolder,
    faults: Vec<Discrepancy>,
}

/// The next step through the messages.
pub enum Next {
    Message(StoredMessage),
    /// Some of it was read, and nothing wanted was in it.
    NotYet,
    End,
}

/// Those of one collector.
struct Collected {
    /// Files that are not open yet, by their first numbers.
    waiting: VecDeque<FileEntry>,
    /// Open files by the numbers that their next messages have at the least; files of a stranger may have the same ones.
    open: BTreeMap<(u64, u64), OpenFile>,
    opened: u64,
}

/// Which messages are wanted.
struct Wanted {
    from_ns: i64,
    until_ns: i64,
    filters: Vec<String>,
}

impl Wanted {
    fn has(&self, message: &StoredMessage) -> bool {
        let is_topic = |filter: &String| filter.matches_topic(&message.topic);
        (self.from_ns..self.until_ns).contains(&message.received_ns)
            && (self.filters.is_empty() || self.filters.iter().any(is_topic))
    }

    /// Whether a file may have messages of the time. Folders of a file whose numbers follow one another are by when messages
    /// were received.
    fn may_be_in(&self, file: &FileEntry, place: &FilePlace<'_>) -> bool {
        let named = |key: &str| place.folders.iter().find(|name| name.starts_with(key));
        let Some(date) = named("date=").filter(|_| file.among.is_none()) else {
            return true;
        };
        let hour = named("hour=");
        let folders = |ns: i64| {
            let time = jiff::Timestamp::from_second(ns.div_euclid(1_000_000_000));
            let time = time.unwrap_or_default();
            let date = time.strftime("date=%Y-%m-%d").to_string();
            (date, hour.map(|_| time.strftime("hour=%H").to_string()))
        };
        let of_file = ((*date).to_owned(), hour.map(|hour| (*hour).to_owned()));
        (self.from_ns == i64::MIN || folders(self.from_ns) <= of_file)
            && (self.until_ns == i64::MAX || folders(self.until_ns) >= of_file)
    }
}

impl Messages {
    /// Takes the lists of files.
    ///
    /// # Errors
    /// If it is no data folder.
    pub fn open(data: &Path, options: &ReplayOptions) -> Result<Messages, Error> {
        let unusable = |error: std::io::Error| folder::unusable(data, &error);
        let (top, collectors) = folder::open_data(data)?;
        let mut messages = Messages {
            collectors: Vec::new(),
            wanted: Wanted {
                from_ns: options.from_ns.unwrap_or(i64::MIN),
                until_ns: options.until_ns.unwrap_or(i64::MAX),
                filters: options.filters.clone(),
            },
            top,
            faults: Vec::new(),
        };
        for name in folder::names(data)? {
            let own = collectors.inside(&name).map_err(unusable)?;
            let waiting = messages.files_of(&name, &own).map_err(unusable)?;
            messages.collectors.push(Collected {
                waiting,
                open: BTreeMap::new(),
                opened: 0,
            });
        }
        Ok(messages)
    }

    /// The files of a collector that may have wanted messages.
    fn files_of(&mut self, name: &str, own: &OpenFolder) -> std::io::Result<VecDeque<FileEntry>> {
        let (entries, wrong) = manifest::read(own)?;
        for line in wrong {
            let list = format!("{COLLECTORS}/{name}/{}", manifest::LIST);
            self.fault(&list, format!("line {line} is no entry"));
        }
        let top = self.top.try_clone()?;
        let files = manifest::files(&entries, &|file| folder::holds(&top, file));
        let mut waiting = Vec::new();
        for (file, _) in files.into_values() {
            match file.place_of(name) {
                Ok(place) if self.wanted.may_be_in(file, &place) => waiting.push(file.clone()),
                Ok(_) => {}
                Err(what) => self.fault(&file.path, what),
            }
        }
        waiting.sort_by_key(|file| file.first);
        Ok(waiting.into())
    }

    /// The next one: of each collector in the order of numbers, of several in that of the times when they came.
    pub fn next(&mut self) -> Next {
        for collected in &mut self.collectors {
            if collected.read_on(&self.top, &self.wanted, &mut self.faults) {
                return Next::NotYet;
            }
        }
        let heads = self.collectors.iter_mut().filter_map(|collected| {
            let received_ns = collected.open.first_key_value()?.1.peek()?.received_ns;
            Some((received_ns, collected))
        });
        let Some((_, collected)) = heads.min_by_key(|(received_ns, _)| *received_ns) else {
            return Next::End;
        };
        let Some((_, mut file)) = collected.open.pop_first() else {
            return Next::End;
        };
        let message = file.take();
        collected.go_on_with(file, &self.wanted, &mut self.faults);
        message.map_or(Next::NotYet, Next::Message)
    }

    fn fault(&mut self, place: &str, what: impl Into<String>) {
        self.faults.push(Discrepancy {
            place: place.to_owned(),
            what: what.into(),
        });
    }

    /// Files and lines that could not be read.
    pub fn into_faults(self) -> Vec<Discrepancy> {
        self.faults
    }
}

impl Collected {
    /// Opens a file that the next message may be in, or reads some of an open one, unless the next message is ready. Whether
    /// something was read.
    fn read_on(
        &mut self,
        top: &OpenFolder,
        wanted: &Wanted,
        faults: &mut Vec<Discrepancy>,
    ) -> bool {
        let next = self.open.first_key_value();
        let next_seq = next.map(|((seq, _), _)| *seq);
        let is_ready = next.is_some_and(|(_, file)| file.peek().is_some());
        let is_before = |file: &FileEntry| next_seq.is_some_and(|seq| seq < file.first);
        match self.waiting.front() {
            Some(file) if !is_before(file) => {
                let opened = OpenFile::open(top, file);
                let place = file.path.clone();
                self.waiting.pop_front();
                match opened {
                    Ok(open) => self.go_on_with(open, wanted, faults),
                    Err(what) => faults.push(Discrepancy { place, what }),
                }
                true
            }
            _ if is_ready => false,
            _ => match self.open.pop_first() {
                Some((_, file)) => {
                    self.go_on_with(file, wanted, faults);
                    true
                }
                None => false,
            },
        }
    }

    /// Keeps a file that has more messages.
    fn go_on_with(&mut self, mut file: OpenFile, wanted: &Wanted, faults: &mut Vec<Discrepancy>) {
        match file.advance(&|message| wanted.has(message)) {
            Ok(None) => {}
            Ok(Some(seq)) => {
                self.opened += 1;
                self.open.insert((seq, self.opened), file);
            }
            Err(what) => faults.push(Discrepancy {
                place: file.path,
                what,
            }),
        }
    }
}
