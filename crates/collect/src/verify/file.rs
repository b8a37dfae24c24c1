//! One finished file, read again.

use bytes::Bytes;
use parquet::data_type::AsBytes;
use pubgauge_place::OpenFolder;

use super::Counted;
use crate::config::Form;
use crate::file_name::name_parts;
use crate::files::{Line, read_columns_of};
use crate::folder::file_of;
use crate::manifest::{self, FileEntry};

/// The content of a file of the data folder, if it is there.
///
/// # Errors
/// Why it cannot be read, or is not.
pub fn content(data: &OpenFolder, entry: &FileEntry) -> Result<Option<Bytes>, String> {
    let file = file_of(data, &entry.file_place()?);
    match file.and_then(|file| manifest::content_of(&file)) {
        Ok(bytes) => Ok(Some(bytes.into())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

/// Checks a file's content against its entry, and gives each of its messages to `count`, if it is whole.
///
/// # Errors
/// Describes what is wrong with it.
pub fn read(
    bytes: Bytes,
    entry: &FileEntry,
    count: &mut dyn FnMut(Counted<'_>),
) -> Result<(), String> {
    entry.check(&bytes)?;
    let name = entry.path.rsplit('/').next().unwrap_or_default();
    let form = match name_parts(name) {
        Some((_, first, last, form)) if (first, last) == (entry.first, entry.last) => form,
        _ => return Err("has a name that does not say its messages".into()),
    };
    let mut rows = FileMessages {
        count,
        last: None,
        messages: 0,
        fault: None,
    };
    match form {
        Form::Parquet => {
            read_columns_of(bytes, |group| {
                for row in &group {
                    rows.add(Counted {
                        seq: row.seq,
                        topic: row.topic.as_bytes(),
                        qos: row.qos,
                        dup: row.dup,
                        payload: row.payload.as_bytes(),
                    });
                }
            })
            .map_err(|error| format!("is no Parquet file of a collector: {error}"))?;
        }
        Form::Ndjson => {
            for (nth, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
                let wrong = || format!("line {} is no message", nth + 1);
                let line: Line<'_> = serde_json::from_slice(line).map_err(|_| wrong())?;
                let payload = line.payload().ok_or_else(wrong)?;
                rows.add(Counted {
                    seq: line.seq,
                    topic: line.topic.as_bytes(),
                    qos: line.qos,
                    dup: line.dup,
                    payload: &payload,
                });
            }
        }
    }
    rows.finish(entry)
}

/// The messages of a file, in turn.
struct FileMessages<'a> {
    count: &'a mut dyn FnMut(Counted<'_>),
    last: Option<u64>,
    messages: u64,
    fault: Option<String>,
}

impl FileMessages<'_> {
    fn add(&mut self, counted: Counted<'_>) {
        if self.last.is_some_and(|last| counted.seq <= last) {
            self.fault
                .get_or_insert_with(|| format!("message {} is out of order", counted.seq));
        }
        self.last = Some(counted.seq);
        self.messages += 1;
        (self.count)(counted);
    }

    fn finish(self, entry: &FileEntry) -> Result<(), String> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if self.messages != entry.messages || self.last != Some(entry.last) {
            return Err(format!(
                "has {} messages instead of {}",
                self.messages, entry.messages
            ));
        }
        Ok(())
    }
}
