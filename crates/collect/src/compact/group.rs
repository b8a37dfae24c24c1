//! Files that are merged.

use parquet::schema::types::TypePtr;

use crate::config::Form;
use crate::manifest::FileEntry;

/// A file that was merged, and from which.
pub struct MergedFile {
    /// Number of the collector.
    pub member: usize,
    pub into: FileEntry,
    pub sources: Vec<Checked>,
}

/// A finished file that is as it was written.
pub struct Checked {
    pub entry: FileEntry,
    pub name: String,
    pub stem: String,
    pub form: Form,
    /// Device and number of the file.
    pub identity: (u64, u64),
    /// Its columns, and how many row groups it has, if it is Parquet.
    pub columns: Option<(TypePtr, usize)>,
}
