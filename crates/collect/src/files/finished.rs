//! The files that a segment became.

use super::partition::Misplaced;
use crate::columns::Undecoded;
use crate::manifest::FileEntry;

/// The files that a segment became.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finished {
    pub files: Vec<FileEntry>,
    /// Messages that cannot be read, first and last number.
    pub damaged: Vec<(u64, u64)>,
    /// Payloads that have not all of their columns.
    pub undecoded: Undecoded,
    /// Messages that do not lie where their time or topic would have them.
    pub misplaced: Misplaced,
}
