//! The figures of a run in formats that other programs read. Pure: values in, bytes out; nothing
//! here reads files, prints or reads a clock.
//!
//! - [`tables`]: tidy tables of trials, flows, series, percentiles and searches.
//! - [`mod@format`]: such a table as CSV, JSON or Parquet.
//! - [`benchmark`]: figures for github-action-benchmark.
//! - [`openmetrics`]: figures as OpenMetrics text.
//! - [`check`]: outcomes that a gate depends on, as JUnit XML and as annotations of GitHub.

pub mod benchmark;
pub mod check;
mod columns;
mod error;
mod flat;
pub mod format;
pub mod openmetrics;
mod parquet;
mod table;
pub mod tables;

pub use columns::without_empty_columns;
pub use error::FormatError;
pub use format::Format;
pub use table::{CellType, ExportColumn, RowError, Rows, Table};
