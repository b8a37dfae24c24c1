//! What a table is made of.

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its name, for example `trials`.
    pub name: &'static str,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, each as long as `columns`.
    pub rows: Vec<Vec<Cell>>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, which ends in the unit.
    pub name: String,
    /// The type of its cells.
    pub kind: Kind,
}

/// The type of the cells of a column, except for empty ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`Cell::Text`].
    Text,
    /// [`Cell::Integer`].
    Integer,
    /// [`Cell::Real`].
    Real,
    /// [`Cell::Flag`].
    Flag,
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number, finite.
    Real(f64),
    /// True or false.
    Flag(bool),
    /// Empty: not measured, or not known.
    None,
}

impl Cell {
    /// A number; empty if it is not finite.
    pub(crate) fn real(value: f64) -> Cell {
        match value.is_finite() {
            true => Cell::Real(value),
            false => Cell::None,
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Cell {
        i64::try_from(value).map_or(Cell::None, Cell::Integer)
    }
}

impl From<u32> for Cell {
    fn from(value: u32) -> Cell {
        Cell::Integer(value.into())
    }
}
