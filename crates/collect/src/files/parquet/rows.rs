//! The messages of a finished file, some at a time.

use std::fs::File;

use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};

use super::merge::footer;
use super::reader::check_columns;

/// So many rows are read together: of the largest messages as many MiB.
const TOGETHER: usize = 32;

/// A message as it stands in a finished file.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub seq: u64,
    pub received_ns: i64,
    pub topic: ByteArray,
    pub retain: bool,
    pub content_type: Option<ByteArray>,
    /// JSON.
    pub properties: Option<ByteArray>,
    /// None where it was decoded and is not kept.
    pub payload: Option<ByteArray>,
}

/// A file that is being read.
pub struct Rows {
    file: SerializedFileReader<File>,
    next_group: usize,
    group: Option<RowGroup>,
}

/// A row group that is being read.
struct RowGroup {
    left: usize,
    received_ns: Values<Int64Type>,
    seq: Values<Int64Type>,
    topic: Values<ByteArrayType>,
    retain: Values<BoolType>,
    content_type: Values<ByteArrayType>,
    properties: Values<ByteArrayType>,
    payload: Values<ByteArrayType>,
}

impl Rows {
    /// # Errors
    /// Why it is no file of a collector, in words.
    pub fn open(file: File) -> std::result::Result<Rows, String> {
        footer(&file)?;
        let file = SerializedFileReader::new(file).map_err(|error| error.to_string())?;
        check_columns(&file).map_err(|error| error.to_string())?;
        Ok(Rows {
            file,
            next_group: 0,
            group: None,
        })
    }

    /// The next rows; none at the end.
    ///
    /// # Errors
    /// That something cannot be read, in words.
    pub fn next(&mut self) -> std::result::Result<Vec<Row>, String> {
        loop {
            if let Some(group) = self.group.as_mut().filter(|group| group.left > 0) {
                return group.next().map_err(|error| error.to_string());
            }
            if self.next_group == self.file.num_row_groups() {
                return Ok(Vec::new());
            }
            let group = self.file.get_row_group(self.next_group);
            let group = group.and_then(|group| RowGroup::begin(&*group));
            self.group = Some(group.map_err(|error| error.to_string())?);
            self.next_group += 1;
        }
    }
}

impl RowGroup {
    fn begin(group: &dyn RowGroupReader) -> Result<RowGroup> {
        Ok(RowGroup {
            left: usize::try_from(group.metadata().num_rows()).unwrap_or(0),
            received_ns: Values::begin(group, 1)?,
            seq: Values::begin(group, 2)?,
            topic: Values::begin(group, 4)?,
            retain: Values::begin(group, 6)?,
            content_type: Values::begin(group, 8)?,
            properties: Values::begin(group, 9)?,
            payload: Values::begin(group, 10)?,
        })
    }

    fn next(&mut self) -> Result<Vec<Row>> {
        let count = self.left.min(TOGETHER);
        self.left -= count;
        let received_ns = self.received_ns.next(count)?;
        let topic = self.topic.next(count)?;
        let seq = self.seq.next(count)?;
        let retain = self.retain.next(count)?;
        let content_type = self.content_type.next(count)?;
        let properties = self.properties.next(count)?;
        let payload = self.payload.next(count)?;
        let fixed = received_ns.into_iter().zip(topic).zip(seq).zip(retain);
        let others = content_type.into_iter().zip(properties).zip(payload);
        let rows = fixed
            .zip(others)
            .map(|((((received_ns, topic), seq), retain), rest)| {
                let ((content_type, properties), payload) = rest;
                Some(Row {
                    seq: seq? as u64,
                    received_ns: received_ns?,
                    topic: topic?,
                    retain: retain?,
                    content_type,
                    properties,
                    payload,
                })
            });
        let rows: Option<Vec<Row>> = rows.collect();
        rows.ok_or_else(|| ParquetError::General("a column lacks a value".into()))
    }
}

/// A column that is being read.
struct Values<T: DataType> {
    reader: ColumnReaderImpl<T>,
    is_optional: bool,
}

impl<T: DataType> Values<T> {
    fn begin(group: &dyn RowGroupReader, at: usize) -> Result<Values<T>> {
        let column = group.metadata().column(at).column_descr();
        if column.physical_type() != T::get_physical_type() {
            let what = format!("the column {} has another type", column.name());
            return Err(ParquetError::General(what));
        }
        Ok(Values {
            is_optional: column.max_def_level() > 0,
            reader: get_typed_column_reader(group.get_column_reader(at)?),
        })
    }

    fn next(&mut self, count: usize) -> Result<Vec<Option<T::T>>> {
        let (mut values, mut levels) = (Vec::new(), Vec::new());
        let mut read = 0;
        while read < count {
            let got = self.reader.read_records(
                count - read,
                self.is_optional.then_some(&mut levels),
                None,
                &mut values,
            )?;
            if got.0 == 0 {
                return Err(ParquetError::General(format!(
                    "a column has {read} of {count} rows"
                )));
            }
            read += got.0;
        }
        let mut values = values.into_iter();
        if !self.is_optional {
            return Ok(values.map(Some).collect());
        }
        let each = levels
            .into_iter()
            .map(|level| (level > 0).then(|| values.next()).flatten());
        Ok(each.collect())
    }
}
