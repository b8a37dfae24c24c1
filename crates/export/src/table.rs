//! The parts of a table.

use std::error::Error;

use serde_json::Value;

pub struct Table<'a> {
    /// Its name, for example `trials`.
    pub name: &'static str,
    pub columns: Vec<ExportColumn>,
    /// Its rows.
    pub rows: Rows<'a>,
}

impl<'a> Table<'a> {
    /// The table that `make` makes, without the columns that no row has a value in, but for those that identify trials; of a
    /// table without rows all. It is made twice, so that no row is held.
    ///
    /// # Errors
    /// If a row cannot be made.
    pub fn without_empty_columns(make: impl Fn() -> Table<'a>) -> Result<Table<'a>, RowError> {
        let table = make();
        let names = table.columns.iter().map(|column| &*column.name);
        let mut is_kept: Vec<bool> = names.map(crate::tables::is_key).collect();
        let mut is_empty = true;
        for row in table.rows {
            is_empty = false;
            for (is_kept, cell) in is_kept.iter_mut().zip(row?) {
                *is_kept |= !(cell.is_null() || cell == "");
            }
        }
        let table = make();
        if is_empty {
            return Ok(table);
        }
        let Table {
            name,
            columns,
            rows,
        } = table;
        let keep = is_kept.clone();
        let rows = rows.map(move |row| Ok(kept(&keep, row?).collect()));
        Ok(Table {
            name,
            columns: kept(&is_kept, columns).collect(),
            rows: Box::new(rows),
        })
    }
}

/// Those of a list that are kept.
fn kept<T>(is_kept: &[bool], all: Vec<T>) -> impl Iterator<Item = T> {
    let each = all.into_iter().zip(is_kept);
    each.filter_map(|(one, is_kept)| is_kept.then_some(one))
}

/// Rows, each as long as there are columns, with null where nothing was measured or is known. They are made one after the
/// other: what a table takes does not grow with its length.
pub type Rows<'a> = Box<dyn Iterator<Item = Result<Vec<Value>, RowError>> + 'a>;

/// Why the rows that follow cannot be made: what they come from cannot be read.
pub type RowError = Box<dyn Error + Send + Sync>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportColumn {
    /// Its name, which ends in the unit.
    pub name: String,
    /// The type of its cells.
    pub kind: CellType,
}

/// The type of the cells of a column, except for empty ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellType {
    Text,
    /// A whole number.
    Integer,
    /// A number, finite.
    Real,
    /// True or false.
    Flag,
}
