//! How messages stand in finished files of either form.

use super::partition::Partitioning;
use crate::columns::Columns;
use crate::config::Compression;

/// How messages stand in finished files of either form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Columns for what payloads say.
    pub columns: Columns,
    /// Which folders they lie in.
    pub partitioning: Partitioning,
    /// How Parquet is compressed.
    pub compression: Compression,
}
