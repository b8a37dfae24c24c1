//! Why a table could not be written.

use std::io;

use crate::table::RowError;

/// Why a table could not be written.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// Writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The source of the rows cannot be read.
    #[error("{0}")]
    Row(RowError),
    /// The Parquet library refused.
    #[error("cannot be written as Parquet: {0}")]
    Parquet(#[from] parquet::errors::ParquetError),
}
