//! Messages in the form of a file, whatever it is written to.

use std::io::{self, Write};

use bytes::Bytes;

use super::layout::Layout;
use super::{ndjson, parquet};
use crate::columns::{Columns, Undecoded};
use crate::config::Form;
use crate::message::Message;

/// A file's form, while it is written.
pub struct FormWriter<'a, W: Write + Send> {
    columns: &'a Columns,
    undecoded: Undecoded,
    out: Out<'a, W>,
}

enum Out<'a, W: Write + Send> {
    Parquet(Box<parquet::ParquetWriter<'a, W>>),
    Ndjson(W),
}

impl<'a, W: Write + Send> FormWriter<'a, W> {
    /// # Errors
    /// If `out` cannot be written to.
    pub fn new(form: Form, layout: &'a Layout, out: W) -> io::Result<FormWriter<'a, W>> {
        let out = match form {
            Form::Parquet => Out::Parquet(Box::new(parquet::ParquetWriter::new(out, layout)?)),
            Form::Ndjson => Out::Ndjson(out),
        };
        Ok(FormWriter {
            columns: &layout.columns,
            undecoded: Undecoded::default(),
            out,
        })
    }

    /// Adds a message, whose texts lie in `bytes`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(&mut self, bytes: &Bytes, message: &Message<'_>) -> io::Result<()> {
        let decoded = (self.columns).decode(message.topic, message.payload, message.received_ns);
        if let Some(decoded) = &decoded {
            self.undecoded.count(decoded.unfit);
        }
        match &mut self.out {
            Out::Parquet(writer) => writer.add(bytes, message, decoded),
            Out::Ndjson(out) => ndjson::write(message, self.columns, decoded, out),
        }
    }

    /// Whether messages that are in no row group yet are held.
    #[cfg(test)]
    pub fn holds(&self) -> bool {
        matches!(&self.out, Out::Parquet(writer) if writer.holds())
    }

    /// Lets go of the buffers of messages that it was given.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.out {
            Out::Parquet(writer) => writer.flush(),
            Out::Ndjson(_) => Ok(()),
        }
    }

    /// Writes the rest; what it was written to, and which payloads have not all of their columns.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self) -> io::Result<(W, Undecoded)> {
        let out = match self.out {
            Out::Parquet(writer) => writer.finish()?,
            Out::Ndjson(out) => out,
        };
        Ok((out, self.undecoded))
    }
}
