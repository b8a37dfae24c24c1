//! A table as the bytes of a file.

use std::io::{self, Write};

use serde_json::Value;

use crate::table::Table;

/// The forms a table can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// RFC 4180 with a head line; an empty field where there is no value. A text that a spreadsheet would take for a
    /// formula begins with `'`.
    Csv,
    /// A list of objects, one a line; `null` where there is no value.
    Json,
    /// Apache Parquet, one row group; null where there is no value.
    Parquet,
}

/// Why a table could not be written.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// Writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The Parquet library refused.
    #[error("cannot be written as Parquet: {0}")]
    Parquet(#[from] parquet::errors::ParquetError),
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

    /// Writes a table.
    ///
    /// # Errors
    /// If writing fails, or the Parquet library refuses.
    pub fn write(self, table: &Table, out: &mut (dyn Write + Send)) -> Result<(), FormatError> {
        match self {
            Format::Csv => csv(table, out)?,
            Format::Json => json(table, out)?,
            Format::Parquet => crate::parquet::write(table, out)?,
        }
        Ok(())
    }
}

fn csv(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(table.columns.iter().map(|column| &column.name))?;
    for row in &table.rows {
        csv.write_record(row.iter().map(text))?;
    }
    csv.flush()
}

/// What begins a formula in a spreadsheet. Names come from the files and the servers of others.
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

fn json(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"[")?;
    for (at, row) in table.rows.iter().enumerate() {
        out.write_all(if at == 0 { b"\n{" } else { b",\n{" })?;
        for (nth, (column, cell)) in table.columns.iter().zip(row).enumerate() {
            let comma = if nth == 0 { "" } else { ", " };
            let name = Value::from(column.name.as_str());
            write!(out, "{comma}{name}: {cell}")?;
        }
        out.write_all(b"}")?;
    }
    out.write_all(b"\n]\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{CellType, Column};

    /// A spreadsheet executes what begins like a formula: names come from others' files. Numbers stay numbers.
    #[test]
    fn no_cell_of_a_csv_is_a_formula() {
        let text = [
            "=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "plain", "a=1", "",
        ];
        let mut row: Vec<Value> = text.into_iter().map(Value::from).collect();
        row.push(Value::from(-1.5));
        let column = |nth: usize| Column {
            name: format!("c{nth}"),
            kind: CellType::Text,
        };
        let table = Table {
            name: "t",
            columns: (0..row.len()).map(column).collect(),
            rows: vec![row],
        };
        let mut out = Vec::new();
        csv(&table, &mut out).unwrap();
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
