//! The columns of a table that a run has something in.

use crate::table::{RowError, Table};
use crate::tables::is_key;

/// The table that `make` makes, without the columns that no row has a value in, but for those that identify trials; of a
/// table without rows all. It is made twice, so that no row is held.
///
/// # Errors
/// If a row cannot be made.
pub fn without_empty_columns<'a>(make: impl Fn() -> Table<'a>) -> Result<Table<'a>, RowError> {
    let table = make();
    let mut is_kept: Vec<bool> = table.columns.iter().map(|of| is_key(&of.name)).collect();
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
    let columns = choose(&is_kept, table.columns);
    let rows = table.rows.map(move |row| Ok(choose(&is_kept, row?)));
    Ok(Table {
        name: table.name,
        columns,
        rows: Box::new(rows),
    })
}

/// Those of a list that are kept.
fn choose<T>(is_kept: &[bool], all: Vec<T>) -> Vec<T> {
    let each = all.into_iter().zip(is_kept);
    each.filter_map(|(one, is_kept)| is_kept.then_some(one))
        .collect()
}
