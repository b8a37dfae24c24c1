//! How messages stand in finished files of either form.

use crate::columns::Columns;
use crate::config::Compression;

/// How messages stand in finished files of either form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Columns for what payloads say.
    pub columns: Columns,
    /// How Parquet is compressed.
    pub compression: Compression,
}
