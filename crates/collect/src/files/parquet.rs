//! Messages as Apache Parquet: one column after the other, without a copy of the payloads.

pub(crate) mod merge;
mod reader;
pub(crate) mod rows;

use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, TypePtr};

use super::layout::Layout;
use crate::columns::{Cell, ColumnType, Columns, Decoded};
use crate::config;
use crate::message::Message;
pub use reader::{read_columns, read_columns_of};

/// Columns of every finished file. Microseconds are what Iceberg takes; the nanoseconds stand beside as a number.
const SCHEMA: &str = "
    required int64 received (TIMESTAMP(MICROS,true));
    required int64 received_ns;
    required int64 seq;
    required binary broker (UTF8);
    required binary topic (UTF8);
    required int32 qos;
    required boolean retain;
    required boolean dup;
    optional binary content_type (UTF8);
    optional binary properties (UTF8);";

/// A row group ends at so many rows, or where the messages of one buffer do: it holds slices of it, and the buffer goes
/// with it.
pub(super) const GROUP_ROWS: usize = 256 << 10;

fn schema(columns: &Columns) -> Result<TypePtr> {
    // Where payloads that were decoded are not kept, some rows have none.
    let payload = if columns.is_none() || columns.keep_raw {
        "required"
    } else {
        "optional"
    };
    let mut text = format!("message message {{{SCHEMA} {payload} binary payload;");
    if !columns.is_none() {
        text += " required boolean decoded;";
    }
    for column in &columns.columns {
        let name = &column.name;
        text += &match column.of {
            ColumnType::Int64 => format!(" optional int64 {name};"),
            ColumnType::Double => format!(" optional double {name};"),
            ColumnType::String => format!(" optional binary {name} (UTF8);"),
            ColumnType::Boolean => format!(" optional boolean {name};"),
            ColumnType::Timestamp => format!(" optional int64 {name} (TIMESTAMP(MICROS,true));"),
        };
    }
    parse_message_type(&(text + " }")).map(Arc::new)
}

fn properties(compression: config::Compression) -> WriterProperties {
    let compression = match compression {
        config::Compression::Snappy => Compression::SNAPPY,
        config::Compression::Zstd => Compression::ZSTD(ZstdLevel::try_new(3).unwrap_or_default()),
        config::Compression::Lz4 => Compression::LZ4_RAW,
        config::Compression::None => Compression::UNCOMPRESSED,
    };
    let path = |name: &str| ColumnPath::from(name);
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("pubgauge ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(compression)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_column_statistics_enabled(path("payload"), EnabledStatistics::None)
        .set_column_dictionary_enabled(path("payload"), false);
    for name in ["received", "received_ns", "seq"] {
        builder = builder
            .set_column_dictionary_enabled(path(name), false)
            .set_column_encoding(path(name), Encoding::DELTA_BINARY_PACKED);
    }
    builder.build()
}

/// Columns of the rows that are in no row group yet.
#[derive(Default)]
struct PendingRows {
    received_us: Vec<i64>,
    received_ns: Vec<i64>,
    seq: Vec<i64>,
    broker: Vec<ByteArray>,
    topic: Vec<ByteArray>,
    qos: Vec<i32>,
    retain: Vec<bool>,
    dup: Vec<bool>,
    content_type: Vec<Option<ByteArray>>,
    properties: Vec<Option<ByteArray>>,
    payload: Vec<Option<ByteArray>>,
    /// The buffer of all of them.
    buffer: Bytes,
    decoded: Vec<bool>,
    /// Cells of each column, in the order of columns.
    cells: Vec<Vec<Option<Cell>>>,
}

/// A file that is being written.
pub struct ParquetWriter<'a, W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: &'a Columns,
    rows: PendingRows,
}

impl<'a, W: Write + Send> ParquetWriter<'a, W> {
    /// # Errors
    /// If `out` cannot be written to.
    pub fn new(out: W, layout: &'a Layout) -> io::Result<ParquetWriter<'a, W>> {
        let Layout {
            columns,
            compression,
            partitioning: _,
        } = layout;
        let properties = Arc::new(properties(*compression));
        let file =
            schema(columns).and_then(|schema| SerializedFileWriter::new(out, schema, properties));
        Ok(ParquetWriter {
            file: file.map_err(io_error)?,
            columns,
            rows: PendingRows::default(),
        })
    }

    /// Adds a message, whose texts lie in `bytes`.
    ///
    /// # Errors
    /// If a row group cannot be written.
    pub fn add(
        &mut self,
        bytes: &Bytes,
        message: &Message<'_>,
        decoded: Option<Decoded>,
    ) -> io::Result<()> {
        let slice = |part: &[u8]| ByteArray::from(bytes.slice_ref(part));
        if self.rows.buffer.as_ptr() != bytes.as_ptr() {
            self.flush()?;
        }
        let rows = &mut self.rows;
        rows.received_us.push(message.received_ns.div_euclid(1000));
        rows.received_ns.push(message.received_ns);
        if rows.seq.is_empty() {
            rows.buffer = bytes.clone();
        }
        rows.seq.push(message.seq as i64);
        rows.broker.push(slice(message.broker.as_bytes()));
        rows.topic.push(slice(message.topic.as_bytes()));
        rows.qos.push(i32::from(message.qos as u8));
        rows.retain.push(message.retain);
        rows.dup.push(message.dup);
        let (content_type, properties) = match message.properties {
            [] => (None, None),
            raw => super::properties::decode(raw),
        };
        rows.content_type
            .push(content_type.map(|text| slice(text.as_bytes())));
        let json = properties.map(|all| serde_json::Value::Object(all).to_string());
        rows.properties
            .push(json.map(|json| ByteArray::from(json.into_bytes())));
        let is_kept = self.columns.keeps(decoded.as_ref());
        rows.payload.push(is_kept.then(|| slice(message.payload)));
        if let Some(decoded) = decoded {
            rows.decoded.push(decoded.is_whole());
            rows.cells.resize_with(self.columns.columns.len(), Vec::new);
            for (cells, cell) in rows.cells.iter_mut().zip(decoded.cells) {
                cells.push(cell);
            }
        }
        if rows.seq.len() >= GROUP_ROWS {
            self.group().map_err(io_error)?;
        }
        Ok(())
    }

    #[cfg(test)]
    pub fn holds(&self) -> bool {
        !self.rows.seq.is_empty()
    }

    /// Writes the messages that it holds, so that it lets go of their buffer.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.rows.seq.is_empty() {
            return Ok(());
        }
        self.group().map_err(io_error)
    }

    fn group(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        let mut group = self.file.next_row_group()?;
        write_values::<Int64Type, _>(&mut group, &rows.received_us)?;
        write_values::<Int64Type, _>(&mut group, &rows.received_ns)?;
        write_values::<Int64Type, _>(&mut group, &rows.seq)?;
        write_values::<ByteArrayType, _>(&mut group, &rows.broker)?;
        write_values::<ByteArrayType, _>(&mut group, &rows.topic)?;
        write_values::<Int32Type, _>(&mut group, &rows.qos)?;
        write_values::<BoolType, _>(&mut group, &rows.retain)?;
        write_values::<BoolType, _>(&mut group, &rows.dup)?;
        put_optional::<ByteArrayType, _>(&mut group, rows.content_type)?;
        put_optional::<ByteArrayType, _>(&mut group, rows.properties)?;
        if self.columns.is_none() || self.columns.keep_raw {
            let payload: Vec<ByteArray> = rows.payload.into_iter().flatten().collect();
            write_values::<ByteArrayType, _>(&mut group, &payload)?;
        } else {
            put_optional::<ByteArrayType, _>(&mut group, rows.payload)?;
        }
        if !self.columns.is_none() {
            write_values::<BoolType, _>(&mut group, &rows.decoded)?;
        }
        for (column, cells) in self.columns.columns.iter().zip(rows.cells) {
            put_cells(&mut group, column.of, cells)?;
        }
        group.close()?;
        Ok(())
    }

    /// Writes the rest and the footer.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        self.file.into_inner().map_err(io_error)
    }
}

/// Writes the next column of a row group.
fn column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    write: impl FnOnce(&mut ColumnWriterImpl<'_, T>) -> Result<usize>,
) -> Result<()> {
    let mut column = group
        .next_column()?
        .ok_or_else(|| ParquetError::General("no more columns".into()))?;
    write(column.typed::<T>())?;
    column.close()
}

fn write_values<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
) -> Result<()> {
    column::<T, W>(group, |column| column.write_batch(values, None, None))
}

/// A level of 1 for each row with a value, 0 for each without, and the values.
fn put_optional<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: Vec<Option<T::T>>,
) -> Result<()> {
    let levels: Vec<i16> = rows.iter().map(|row| i16::from(row.is_some())).collect();
    let values: Vec<T::T> = rows.into_iter().flatten().collect();
    column::<T, W>(group, |column| {
        column.write_batch(&values, Some(&levels), None)
    })
}

/// Writes the cells of a column of this type.
fn put_cells<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    of: ColumnType,
    cells: Vec<Option<Cell>>,
) -> Result<()> {
    /// Those of the type, which all of them are.
    fn only<T>(cells: Vec<Option<Cell>>, take: impl Fn(Cell) -> Option<T>) -> Vec<Option<T>> {
        cells.into_iter().map(|cell| cell.and_then(&take)).collect()
    }
    match of {
        ColumnType::Int64 | ColumnType::Timestamp => {
            let take = |cell| match cell {
                Cell::Int64(number) | Cell::Timestamp(number) => Some(number),
                _ => None,
            };
            put_optional::<Int64Type, _>(group, only(cells, take))
        }
        ColumnType::Double => {
            let take = |cell| match cell {
                Cell::Double(number) => Some(number),
                _ => None,
            };
            put_optional::<DoubleType, _>(group, only(cells, take))
        }
        ColumnType::String => {
            let take = |cell| match cell {
                Cell::String(text) => Some(ByteArray::from(text.into_bytes())),
                _ => None,
            };
            put_optional::<ByteArrayType, _>(group, only(cells, take))
        }
        ColumnType::Boolean => {
            let take = |cell| match cell {
                Cell::Boolean(is) => Some(is),
                _ => None,
            };
            put_optional::<BoolType, _>(group, only(cells, take))
        }
    }
}

fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        other => io::Error::other(other),
    }
}
