//! One finished file, read again.

use std::path::Path;

use parquet::data_type::AsBytes;

use super::Counted;
use crate::config::Form;
use crate::files::{Line, name_parts, read_columns};
use crate::manifest::FileEntry;

/// Checks a file against its entry, and gives each of its messages to `count`, if it is whole.
///
/// # Errors
/// What is wrong with it, in words.
pub fn read(
    data: &Path,
    entry: &FileEntry,
    count: &mut dyn FnMut(Counted<'_>),
) -> Result<(), String> {
    let path = data.join(&entry.path);
    let bytes = std::fs::read(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "is missing".to_owned(),
        _ => format!("cannot be read: {error}"),
    })?;
    if bytes.len() as u64 != entry.bytes {
        return Err(format!(
            "has {} bytes instead of {}",
            bytes.len(),
            entry.bytes
        ));
    }
    let sum = crc32fast::hash(&bytes);
    if sum != entry.crc32 {
        return Err(format!(
            "has the checksum {sum:08x} instead of {:08x}",
            entry.crc32
        ));
    }
    let name = entry.path.rsplit('/').next().unwrap_or_default();
    let form = match name_parts(name) {
        Some((_, first, last, form)) if (first, last) == (entry.first, entry.last) => form,
        _ => return Err("has a name that does not say its messages".into()),
    };
    let mut rows = Rows {
        count,
        last: None,
        messages: 0,
        fault: None,
    };
    match form {
        Form::Parquet => {
            drop(bytes);
            read_columns(&path, |group| {
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
struct Rows<'a> {
    count: &'a mut dyn FnMut(Counted<'_>),
    last: Option<u64>,
    messages: u64,
    fault: Option<String>,
}

impl Rows<'_> {
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
