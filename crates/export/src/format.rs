//! A table as the bytes of a file.

use std::io::{self, Write};

use serde_json::Value;

use crate::error::FormatError;
use crate::table::{Rows, Table};

/// The forms a table can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// RFC 4180 with a head line; an empty field where there is no value. A text that a spreadsheet would take for a
    /// formula begins with `'`.
    Csv,
    /// A list of objects, one a line; `null` where there is no value.
    Json,
    /// Apache Parquet, in row groups of some thousands of rows; null where there is no value.
    Parquet,
}

impl Format {
    /// The extension of file names, without a dot.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Json => "json",
            Format::Parquet => "parquet",
        }
    }

    /// Writes a table, row by row, and returns how many rows it has.
    ///
    /// # Errors
    /// If a row cannot be made, writing fails, or the Parquet library refuses. What was written then is no whole table.
    pub fn write(
        self,
        table: Table<'_>,
        out: &mut (dyn Write + Send),
    ) -> Result<usize, FormatError> {
        let mut written = 0;
        let Table {
            name,
            columns,
            rows,
        } = table;
        let rows: Rows<'_> = Box::new(rows.inspect(|_| written += 1));
        let table = Table {
            name,
            columns,
            rows,
        };
        match self {
            Format::Csv => csv(table, out)?,
            Format::Json => json(table, out)?,
            Format::Parquet => crate::parquet::write(table, out)?,
        }
        Ok(written)
    }
}

fn csv(table: Table<'_>, out: &mut dyn Write) -> Result<(), FormatError> {
    let mut csv = csv::Writer::from_writer(out);
    let written = |done: csv::Result<()>| done.map_err(io::Error::from);
    written(csv.write_record(table.columns.iter().map(|column| &column.name)))?;
    for row in table.rows {
        let row = row.map_err(FormatError::Row)?;
        written(csv.write_record(row.iter().map(text)))?;
    }
    Ok(csv.flush()?)
}

/// The characters that begin a formula in a spreadsheet. Names come from the files and the servers of others.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// A cell in plain text; a number is read back as the same number.
fn text(cell: &Value) -> String {
    match cell {
        Value::Null => String::new(),
        Value::String(text) if text.starts_with(FORMULA) => format!("'{text}"),
        Value::String(text) => text.clone(),
        // Whole ones without a point.
        real if real.is_f64() => real.as_f64().unwrap_or_default().to_string(),
        other => other.to_string(),
    }
}

fn json(table: Table<'_>, out: &mut dyn Write) -> Result<(), FormatError> {
    let names: Vec<Value> = (table.columns.iter())
        .map(|column| Value::from(column.name.as_str()))
        .collect();
    out.write_all(b"[")?;
    for (at, row) in table.rows.enumerate() {
        let row = row.map_err(FormatError::Row)?;
        out.write_all(if at == 0 { b"\n{" } else { b",\n{" })?;
        for (nth, (name, cell)) in names.iter().zip(row).enumerate() {
            let comma = if nth == 0 { "" } else { ", " };
            write!(out, "{comma}{name}: {cell}")?;
        }
        out.write_all(b"}")?;
    }
    Ok(out.write_all(b"\n]\n")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{CellType, ExportColumn};

    /// A spreadsheet executes what begins like a formula: names come from others' files. Numbers stay numbers.
    #[test]
    fn no_cell_of_a_csv_is_a_formula() {
        let text = [
            "=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "plain", "a=1", "",
        ];
        let mut row: Vec<Value> = text.into_iter().map(Value::from).collect();
        row.push(Value::from(-1.5));
        let column = |nth: usize| ExportColumn {
            name: format!("c{nth}"),
            kind: CellType::Text,
        };
        let table = Table {
            name: "t",
            columns: (0..row.len()).map(column).collect(),
            rows: Box::new(std::iter::once(Ok(row))),
        };
        let mut out = Vec::new();
        csv(table, &mut out).unwrap();
        let mut read = csv::Reader::from_reader(&out[..]);
        let cells = read.records().next().unwrap().unwrap();
        let wanted = [
            "'=1+1",
            "'+1",
            "'-1",
            "'@SUM(A1)",
            "'\t=1",
            "'\r=1",
            "plain",
            "a=1",
            "",
            "-1.5",
        ];
        assert_eq!(cells, csv::StringRecord::from(&wanted[..]));
    }
}
