//! Several files of the same columns as one. Row groups are copied as they are, and nothing is decoded.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::TypePtr;

use super::{io_error, properties};
use crate::config::Compression;

/// Most bytes of a footer that are read.
const MOST_OF_FOOTER: u64 = 64 << 20;

/// Bytes behind a footer: its length, and "PAR1".
const TAIL: u64 = 8;

/// The footer of a file, as far as its chunks lie within the file.
///
/// # Errors
/// Why it cannot be read, or is that of no such file, in words.
pub fn footer(file: &File) -> Result<ParquetMetaData, String> {
    let len = file.metadata().map_err(|error| error.to_string())?.len();
    let mut tail = [0; TAIL as usize];
    let at = len.checked_sub(TAIL).ok_or("is too short for Parquet")?;
    file.read_exact_at(&mut tail, at)
        .map_err(|error| error.to_string())?;
    let footer = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
    if footer > MOST_OF_FOOTER || footer > at {
        return Err(format!("has a footer of {footer} bytes"));
    }
    let read = ParquetMetaDataReader::new().parse_and_finish(file);
    let metadata = read.map_err(|error| error.to_string())?;
    let chunks = metadata
        .row_groups()
        .iter()
        .flat_map(|group| group.columns());
    if chunks.into_iter().all(|chunk| lies_within(chunk, at)) {
        Ok(metadata)
    } else {
        Err("has columns that lie outside of it".into())
    }
}

/// Whether a chunk lies in front of this offset.
fn lies_within(chunk: &ColumnChunkMetaData, end: u64) -> bool {
    let begin = chunk
        .dictionary_page_offset()
        .unwrap_or_else(|| chunk.data_page_offset());
    let (begin, len) = (u64::try_from(begin), u64::try_from(chunk.compressed_size()));
    match (begin, len) {
        (Ok(begin), Ok(len)) => begin.checked_add(len).is_some_and(|until| until <= end),
        _ => false,
    }
}

/// A file that others are merged into.
pub struct Merger<W: Write + Send> {
    file: SerializedFileWriter<W>,
}

impl<W: Write + Send> Merger<W> {
    /// # Errors
    /// If `out` cannot be written to.
    pub fn new(out: W, columns: TypePtr) -> io::Result<Merger<W>> {
        // Chunks keep the compression that they have.
        let properties = Arc::new(properties(Compression::None));
        let file = SerializedFileWriter::new(out, columns, properties).map_err(io_error)?;
        Ok(Merger { file })
    }

    /// Adds all row groups of a file with these columns.
    ///
    /// # Errors
    /// If it cannot be read, or `out` not be written to.
    pub fn add(&mut self, source: &File, footer: &ParquetMetaData) -> io::Result<()> {
        for group in footer.row_groups() {
            let mut out = self.file.next_row_group().map_err(io_error)?;
            for column in group.columns() {
                let copied = ColumnCloseResult {
                    bytes_written: column.compressed_size() as u64,
                    rows_written: group.num_rows() as u64,
                    metadata: column.clone(),
                    bloom_filter: None,
                    column_index: None,
                    offset_index: None,
                };
                out.append_column(source, copied).map_err(io_error)?;
            }
            out.close().map_err(io_error)?;
        }
        Ok(())
    }

    /// Writes the footer.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self) -> io::Result<W> {
        self.file.into_inner().map_err(io_error)
    }
}
