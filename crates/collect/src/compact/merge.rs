//! One partition, from its small files to the folder with merged ones.

use std::io;
use std::time::Instant;

use super::plan::Partition;
use super::swap::Aside;
use super::work::Work;
use super::{CompactStep, Compacted, write};
use crate::folder;

/// The folder that a partition was until now. A reader may have opened it, and be about to list what is in it.
pub struct Former {
    /// The folders around it.
    around: Vec<String>,
    name: String,
    pub since: Instant,
}

impl Work<'_> {
    /// Merges files of a partition; the folder that it was, if something was merged.
    pub fn merge(
        &self,
        partition: &Partition,
        compacted: &mut Compacted,
    ) -> io::Result<Option<Former>> {
        let Some((name, around)) = partition.folders.split_last() else {
            return Ok(None);
        };
        let above = folder::open_below(&self.top, around)?;
        let aside = Aside::begin(&above, name, self.steps)?;
        let merged = write::write_merged(self, partition, &aside, compacted)
            .and_then(|groups| aside.take_place(self, &groups).map(|()| groups));
        let has_place = aside.has_place();
        let former = Former {
            around: around.to_vec(),
            name: aside.name,
            since: Instant::now(),
        };
        match merged {
            Ok(groups) if !groups.is_empty() => {
                groups.iter().for_each(|group| compacted.add(group));
                Ok(Some(former))
            }
            // The exchange may be on no disk yet, and is not listed: the next compaction finishes it.
            Err(error) if has_place => Err(error),
            other => {
                self.remove(&former)?;
                other.map(|_| None)
            }
        }
    }

    /// Removes the folder that a partition was. The next compaction does so, where this one does not get there.
    pub fn remove(&self, former: &Former) -> io::Result<()> {
        let around = folder::open_below(&self.top, &former.around)?;
        around.remove(&former.name)?;
        around.sync()?;
        (self.steps)(CompactStep::Removed);
        Ok(())
    }
}
