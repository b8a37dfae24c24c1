//! A finished file, read again.

use std::fs::File;
use std::path::Path;

use bytes::Bytes;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::schema;
use crate::columns::Columns;

/// A message of a finished file, as far as it is checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub seq: u64,
    pub topic: ByteArray,
    pub qos: u8,
    pub dup: bool,
    /// Empty where it was decoded and is not kept.
    pub payload: ByteArray,
}

/// Reads a file row group by row group, every column of it.
///
/// # Errors
/// Describes in words what cannot be read.
pub fn read_columns(
    path: &Path,
    mut take: impl FnMut(Vec<Row>),
) -> std::result::Result<(), String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let reader = SerializedFileReader::new(file);
    reader
        .and_then(|reader| read(&reader, &mut take))
        .map_err(|error| error.to_string())
}

/// As [`read_columns`], of a file in memory.
///
/// # Errors
/// Describes in words what cannot be read.
pub fn read_columns_of(
    bytes: Bytes,
    mut take: impl FnMut(Vec<Row>),
) -> std::result::Result<(), String> {
    let reader = SerializedFileReader::new(bytes);
    reader
        .and_then(|reader| read(&reader, &mut take))
        .map_err(|error| error.to_string())
}

/// # Errors
/// If the columns are not those of a finished file.
pub(super) fn check_columns(file: &dyn FileReader) -> Result<()> {
    let columns = file.metadata().file_metadata().schema_descr().columns();
    let names: Vec<String> = columns
        .iter()
        .map(|column| column.name().to_owned())
        .collect();
    let expected = schema(&Columns::default())?;
    let expected: Vec<&str> = expected
        .get_fields()
        .iter()
        .map(|field| field.name())
        .collect();
    // Behind them stand those of the payload.
    if !names
        .iter()
        .map(String::as_str)
        .take(expected.len())
        .eq(expected.iter().copied())
    {
        return Err(ParquetError::General(format!(
            "its columns are {}",
            names.join(", ")
        )));
    }
    Ok(())
}

fn read(file: &dyn FileReader, take: &mut dyn FnMut(Vec<Row>)) -> Result<()> {
    check_columns(file)?;
    let columns = file.metadata().file_metadata().schema_descr().columns();
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
            optional::<ByteArrayType>(read(at)?, rows)?;
        }
        let payload = if columns[10].max_def_level() == 0 {
            values::<ByteArrayType>(read(10)?, rows)?
        } else {
            let (values, levels) = optional::<ByteArrayType>(read(10)?, rows)?;
            let mut values = values.into_iter();
            let of = |level: i16| (level > 0).then(|| values.next()).flatten();
            levels
                .into_iter()
                .map(of)
                .map(|value| value.unwrap_or_else(|| Vec::new().into()))
                .collect()
        };
        for at in 11..columns.len() {
            pass(read(at)?, rows)?;
        }
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

/// Reads a column of the payload, and forgets it.
fn pass(reader: ColumnReader, rows: usize) -> Result<()> {
    match reader {
        ColumnReader::BoolColumnReader(_) => optional::<BoolType>(reader, rows).map(drop),
        ColumnReader::Int64ColumnReader(_) => optional::<Int64Type>(reader, rows).map(drop),
        ColumnReader::DoubleColumnReader(_) => optional::<DoubleType>(reader, rows).map(drop),
        ColumnReader::ByteArrayColumnReader(_) => optional::<ByteArrayType>(reader, rows).map(drop),
        _ => Err(ParquetError::General(
            "a column has a type that no collector writes".into(),
        )),
    }
}

fn values<T: DataType>(reader: ColumnReader, rows: usize) -> Result<Vec<T::T>> {
    let (values, _) = optional::<T>(reader, rows)?;
    if values.len() < rows {
        let read = values.len();
        return Err(ParquetError::General(format!(
            "a column has {read} of {rows} rows"
        )));
    }
    Ok(values)
}

/// The values of a column, and for each row whether it has one: more than 0.
fn optional<T: DataType>(reader: ColumnReader, rows: usize) -> Result<(Vec<T::T>, Vec<i16>)> {
    let mut reader: ColumnReaderImpl<T> = get_typed_column_reader(reader);
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
    Ok((values, levels))
}
