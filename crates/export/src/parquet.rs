//! A table as Apache Parquet: every column optional, a row group for each half a million cells.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use serde_json::Value;

use crate::error::FormatError;
use crate::table::{CellType, ExportColumn, Table};

/// Cells of a row group: it is held until it is full.
const CELLS: usize = 500_000;

pub fn write(
    table: Table<'_>,
    out: &mut (dyn Write + Send),
) -> std::result::Result<(), FormatError> {
    let columns = &table.columns;
    let fields = columns.iter().map(|c| field(c).map(Arc::new));
    let schema = Type::group_type_builder(table.name)
        .with_fields(fields.collect::<Result<_>>()?)
        .build()?;
    let properties = WriterProperties::builder()
        .set_created_by(concat!("pubgauge ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let mut file = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?;
    let most = (CELLS / columns.len().max(1)).max(1);
    let mut rows = table.rows;
    let mut has_group = false;
    loop {
        let group: Vec<Vec<Value>> = (rows.by_ref().take(most))
            .collect::<std::result::Result<_, _>>()
            .map_err(FormatError::Row)?;
        if group.is_empty() && has_group {
            break;
        }
        has_group = true;
        write_group(columns, &group, &mut file)?;
    }
    file.close()?;
    Ok(())
}

fn write_group<W: Write + Send>(
    columns: &[ExportColumn],
    rows: &[Vec<Value>],
    file: &mut SerializedFileWriter<W>,
) -> Result<()> {
    let mut group = file.next_row_group()?;
    for (at, column) in columns.iter().enumerate() {
        let Some(writer) = group.next_column()? else {
            break;
        };
        let cells = rows.iter().map(|row| &row[at]);
        match column.kind {
            CellType::Integer => write_column::<Int64Type>(writer, cells, Value::as_i64)?,
            CellType::Real => write_column::<DoubleType>(writer, cells, Value::as_f64)?,
            CellType::Flag => write_column::<BoolType>(writer, cells, Value::as_bool)?,
            CellType::Text => write_column::<ByteArrayType>(writer, cells, |cell| {
                Some(ByteArray::from(cell.as_str()?))
            })?,
        }
    }
    group.close()?;
    Ok(())
}

fn field(column: &ExportColumn) -> Result<Type> {
    let (physical, logical) = match column.kind {
        CellType::Integer => (Physical::INT64, None),
        CellType::Real => (Physical::DOUBLE, None),
        CellType::Flag => (Physical::BOOLEAN, None),
        CellType::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    Type::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()
}

/// Writes a column: a level of 1 for each cell with a value, 0 for each without, and the values.
fn write_column<'a, T: DataType>(
    mut writer: SerializedColumnWriter<'_>,
    cells: impl Iterator<Item = &'a Value>,
    value: impl Fn(&Value) -> Option<T::T>,
) -> Result<()> {
    let cells: Vec<Option<T::T>> = cells.map(value).collect();
    let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    let values: Vec<T::T> = cells.into_iter().flatten().collect();
    writer
        .typed::<T>()
        .write_batch(&values, Some(&levels), None)?;
    writer.close()
}
