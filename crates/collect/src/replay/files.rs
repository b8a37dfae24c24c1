//! A finished file that is read in turn.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use parquet::data_type::{AsBytes, ByteArray};
use pubgauge_place::OpenFolder;

use super::stored::StoredMessage;
use crate::config::Form;
use crate::file_name::name_parts;
use crate::files::Line;
use crate::files::rows::{Row, Rows};
use crate::folder::file_of;
use crate::manifest::FileEntry;

/// Longest line of a file of NDJSON: the longest message of MQTT, escaped.
const MOST_OF_LINE: u64 = 2 << 30;

/// A finished file that is read in turn.
pub struct OpenFile {
    pub path: String,
    reading: ReplayReading,
    /// Messages that were read, and not taken.
    ready: VecDeque<StoredMessage>,
    /// Those that were not read have this number at the least.
    next_seq: u64,
}

enum ReplayReading {
    Parquet(Box<Rows>),
    Ndjson(BufReader<File>),
}

impl OpenFile {
    /// Opens a file that is as it was written.
    ///
    /// # Errors
    /// Why it is not read, in words.
    pub fn open(top: &OpenFolder, entry: &FileEntry) -> Result<OpenFile, String> {
        let place = entry.file_place()?;
        let mut file = file_of(top, &place).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                "is not here: it is missing, or was moved to a store".to_owned()
            }
            _ => format!("cannot be read: {error}"),
        })?;
        entry.check_file(&mut file)?;
        let reading = match name_parts(place.name) {
            Some((.., Form::Parquet)) => ReplayReading::Parquet(Box::new(Rows::open(file)?)),
            _ => ReplayReading::Ndjson(BufReader::new(file)),
        };
        Ok(OpenFile {
            path: entry.path.clone(),
            reading,
            ready: VecDeque::new(),
            next_seq: entry.first,
        })
    }

    /// The next message, which stays.
    pub fn peek(&self) -> Option<&StoredMessage> {
        self.ready.front()
    }

    /// The next message. The file is to be advanced then.
    pub fn take(&mut self) -> Option<StoredMessage> {
        self.ready.pop_front()
    }

    /// Reads some messages, if none is ready; the number that the next wanted one has at the least, unless it was the end.
    ///
    /// # Errors
    /// That something cannot be read, in words.
    pub fn advance(
        &mut self,
        is_wanted: &dyn Fn(&StoredMessage) -> bool,
    ) -> Result<Option<u64>, String> {
        if self.ready.is_empty() {
            let read = self.reading.next()?;
            let Some(last) = read.last() else {
                return Ok(None);
            };
            self.next_seq = last.seq.saturating_add(1);
            self.ready
                .extend(read.into_iter().filter(|one| is_wanted(one)));
        }
        let ready = self.ready.front().map(|message| message.seq);
        Ok(Some(ready.unwrap_or(self.next_seq)))
    }
}

impl ReplayReading {
    /// The next messages; none at the end.
    fn next(&mut self) -> Result<Vec<StoredMessage>, String> {
        match self {
            ReplayReading::Parquet(rows) => rows.next()?.into_iter().map(from_row).collect(),
            ReplayReading::Ndjson(lines) => {
                let mut line = Vec::new();
                let read = lines.take(MOST_OF_LINE).read_until(b'\n', &mut line);
                if read.map_err(|error| error.to_string())? == 0 {
                    return Ok(Vec::new());
                }
                let line: Line<'_> =
                    serde_json::from_slice(&line).map_err(|_| "a line is no message")?;
                Ok(vec![from_line(line)])
            }
        }
    }
}

fn from_row(row: Row) -> Result<StoredMessage, String> {
    let text = |bytes: ByteArray| {
        let text = bytes.as_utf8().map(str::to_owned);
        text.map_err(|_| "a text is not UTF-8".to_owned())
    };
    let properties = row
        .properties
        .map(|json| serde_json::from_slice(json.data()));
    Ok(StoredMessage {
        seq: row.seq,
        received_ns: row.received_ns,
        topic: text(row.topic)?,
        retain: row.retain,
        content_type: row.content_type.map(text).transpose()?,
        properties: properties
            .transpose()
            .map_err(|_| "properties are no JSON")?,
        payload: row.payload.map(|payload| payload.as_bytes().to_vec()),
    })
}

fn from_line(line: Line<'_>) -> StoredMessage {
    let is_kept = line.is_payload_kept();
    StoredMessage {
        seq: line.seq,
        received_ns: line.received_ns,
        payload: line.payload().filter(|_| is_kept),
        topic: line.topic.into_owned(),
        retain: line.retain,
        content_type: line.content_type.map(std::borrow::Cow::into_owned),
        properties: line.properties,
    }
}
