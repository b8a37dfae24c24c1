//! Which publishers of a flow a schedule is for.

use std::ops::{Deref, Range};

/// Some publishers of a flow, as indices into [`crate::Flow::publishers`] in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shard(Box<[u32]>);

impl Shard {
    /// The position of `publisher` among them, if it is one.
    pub fn position(&self, publisher: u32) -> Option<usize> {
        let first = *self.0.first()?;
        // Most often the indices are consecutive.
        let at = publisher.checked_sub(first)? as usize;
        match self.0.get(at) {
            Some(there) if *there == publisher => Some(at),
            _ => self.0.binary_search(&publisher).ok(),
        }
    }

    /// Whether one of them is in `range`.
    pub(super) fn meets(&self, range: Range<u32>) -> bool {
        let from = self.0.partition_point(|p| *p < range.start);
        self.0.get(from).is_some_and(|p| *p < range.end)
    }
}

impl Deref for Shard {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.0
    }
}

impl From<Range<u32>> for Shard {
    fn from(range: Range<u32>) -> Self {
        Shard(range.collect())
    }
}

impl From<Vec<u32>> for Shard {
    /// In any order; each counts once.
    fn from(mut publishers: Vec<u32>) -> Self {
        publishers.sort_unstable();
        publishers.dedup();
        Shard(publishers.into())
    }
}
