//! Messages as Apache Parquet: one column after the other, without a copy of the payloads.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::reader::ColumnReaderImpl;
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, TypePtr};

use crate::message::Message;

/// Columns of a finished file. Microseconds are what Iceberg takes; the nanoseconds stand beside as a number.
const SCHEMA: &str = "message message {
    required int64 received (TIMESTAMP(MICROS,true));
    required int64 received_ns;
    required int64 seq;
    required binary broker (UTF8);
    required binary topic (UTF8);
    required int32 qos;
    required boolean retain;
    required boolean dup;
    optional binary content_type (UTF8);
    optional binary properties (UTF8);
    required binary payload;
}";

/// A row group ends at so many rows, or so many bytes of payload.
const GROUP_ROWS: usize = 256 << 10;
const GROUP_BYTES: usize = 64 << 20;

fn schema() -> Result<TypePtr> {
    parse_message_type(SCHEMA).map(Arc::new)
}

fn properties() -> WriterProperties {
    let path = |name: &str| ColumnPath::from(name);
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("pubgauge ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::LZ4_RAW)
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
struct Rows {
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
    payload: Vec<ByteArray>,
    payload_bytes: usize,
}

/// A file that is being written.
pub struct Writer<W: Write + Send> {
    file: SerializedFileWriter<W>,
    rows: Rows,
}

impl<W: Write + Send> Writer<W> {
    /// # Errors
    /// If `out` cannot be written to.
    pub fn new(out: W) -> io::Result<Writer<W>> {
        let file = schema()
            .and_then(|schema| SerializedFileWriter::new(out, schema, Arc::new(properties())));
        Ok(Writer {
            file: file.map_err(io_error)?,
            rows: Rows::default(),
        })
    }

    /// Adds a message, whose texts lie in `bytes`.
    ///
    /// # Errors
    /// If a row group cannot be written.
    pub fn put(&mut self, bytes: &Bytes, message: &Message<'_>) -> io::Result<()> {
        let slice = |part: &[u8]| ByteArray::from(bytes.slice_ref(part));
        let rows = &mut self.rows;
        rows.received_us.push(message.received_ns.div_euclid(1000));
        rows.received_ns.push(message.received_ns);
        rows.seq.push(message.seq as i64);
        rows.broker.push(slice(message.broker.as_bytes()));
        rows.topic.push(slice(message.topic.as_bytes()));
        rows.qos.push(i32::from(message.qos as u8));
        rows.retain.push(message.retain);
        rows.dup.push(message.dup);
        let (content_type, properties) = match message.properties {
            [] => (None, None),
            raw => super::properties::of(raw),
        };
        rows.content_type
            .push(content_type.map(|text| slice(text.as_bytes())));
        let json = properties.map(|all| serde_json::Value::Object(all).to_string());
        rows.properties
            .push(json.map(|json| ByteArray::from(json.into_bytes())));
        rows.payload.push(slice(message.payload));
        rows.payload_bytes += message.payload.len();
        if rows.seq.len() >= GROUP_ROWS || rows.payload_bytes >= GROUP_BYTES {
            self.group().map_err(io_error)?;
        }
        Ok(())
    }

    fn group(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        let mut group = self.file.next_row_group()?;
        put::<Int64Type, _>(&mut group, &rows.received_us)?;
        put::<Int64Type, _>(&mut group, &rows.received_ns)?;
        put::<Int64Type, _>(&mut group, &rows.seq)?;
        put::<ByteArrayType, _>(&mut group, &rows.broker)?;
        put::<ByteArrayType, _>(&mut group, &rows.topic)?;
        put::<Int32Type, _>(&mut group, &rows.qos)?;
        put::<BoolType, _>(&mut group, &rows.retain)?;
        put::<BoolType, _>(&mut group, &rows.dup)?;
        put_optional(&mut group, rows.content_type)?;
        put_optional(&mut group, rows.properties)?;
        put::<ByteArrayType, _>(&mut group, &rows.payload)?;
        group.close()?;
        Ok(())
    }

    /// Writes the rest and the footer.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        if !self.rows.seq.is_empty() {
            self.group().map_err(io_error)?;
        }
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

fn put<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
) -> Result<()> {
    column::<T, W>(group, |column| column.write_batch(values, None, None))
}

/// A level of 1 for each row with a value, 0 for each without, and the values.
fn put_optional<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: Vec<Option<ByteArray>>,
) -> Result<()> {
    let levels: Vec<i16> = rows.iter().map(|row| i16::from(row.is_some())).collect();
    let values: Vec<ByteArray> = rows.into_iter().flatten().collect();
    column::<ByteArrayType, W>(group, |column| {
        column.write_batch(&values, Some(&levels), None)
    })
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

/// A message of a finished file, as far as it is checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub seq: u64,
    pub topic: ByteArray,
    pub qos: u8,
    pub dup: bool,
    pub payload: ByteArray,
}

/// Reads a file row group by row group, every column of it.
///
/// # Errors
/// A file that cannot be read, or that has other columns.
pub fn read_columns(path: &Path, mut take: impl FnMut(Vec<Row>)) -> Result<()> {
    let file = File::open(path).map_err(|error| ParquetError::External(error.into()))?;
    let file = SerializedFileReader::new(file)?;
    let names = file
        .metadata()
        .file_metadata()
        .schema_descr()
        .columns()
        .iter();
    let names: Vec<String> = names.map(|column| column.name().to_owned()).collect();
    let expected = schema()?;
    let expected: Vec<&str> = expected
        .get_fields()
        .iter()
        .map(|field| field.name())
        .collect();
    if names != expected {
        return Err(ParquetError::General(format!(
            "its columns are {}",
            names.join(", ")
        )));
    }
    for nth in 0..file.num_row_groups() {
        let group = file.get_row_group(nth)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        let read = |at| group.get_column_reader(at);
        for at in [0, 1] {
            values::<Int64Type>(read(at)?, rows)?;
        }
        let seq = values::<Int64Type>(read(2)?, rows)?;
        values::<ByteArrayType>(read(3)?, rows)?;
        let topic = values::<ByteArrayType>(read(4)?, rows)?;
        let qos = values::<Int32Type>(read(5)?, rows)?;
        values::<BoolType>(read(6)?, rows)?;
        let dup = values::<BoolType>(read(7)?, rows)?;
        for at in [8, 9] {
            optional(read(at)?, rows)?;
        }
        let payload = values::<ByteArrayType>(read(10)?, rows)?;
        let each = seq.into_iter().zip(topic).zip(qos).zip(dup).zip(payload);
        let row = |((((seq, topic), qos), dup), payload)| Row {
            seq: seq as u64,
            topic,
            qos: qos as u8,
            dup,
            payload,
        };
        take(each.map(row).collect());
    }
    Ok(())
}

fn values<T: DataType>(
    reader: parquet::column::reader::ColumnReader,
    rows: usize,
) -> Result<Vec<T::T>> {
    let mut reader: ColumnReaderImpl<T> = parquet::column::reader::get_typed_column_reader(reader);
    let mut values = Vec::new();
    while values.len() < rows {
        let (records, _, _) = reader.read_records(rows - values.len(), None, None, &mut values)?;
        if records == 0 {
            return Err(ParquetError::General(format!(
                "a column has {} of {rows} rows",
                values.len()
            )));
        }
    }
    Ok(values)
}

fn optional(reader: parquet::column::reader::ColumnReader, rows: usize) -> Result<()> {
    let mut reader: ColumnReaderImpl<ByteArrayType> =
        parquet::column::reader::get_typed_column_reader(reader);
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let mut read = 0;
    while read < rows {
        let (records, _, _) =
            reader.read_records(rows - read, Some(&mut levels), None, &mut values)?;
        if records == 0 {
            return Err(ParquetError::General(format!(
                "a column has {read} of {rows} rows"
            )));
        }
        read += records;
    }
    Ok(())
}
