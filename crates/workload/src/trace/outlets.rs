//! On which topics, and how, each publisher sends that plays devices of a recording as they were.

use std::collections::BTreeSet;

use super::{Manner, Trace, TraceReading};

/// The recorded topics of publishers, each with a manner of publishing: what one publisher sends on a topic with another
/// quality of service is another outlet.
#[derive(Clone, Debug)]
pub struct Outlets {
    /// By slot: topics and manners as words of readings, in ascending order. Publisher p has slot p modulo their number.
    slots: Vec<Vec<u32>>,
}

impl Outlets {
    /// Those of so many publishers, who share the devices out as [`crate::Replay`] says.
    pub fn new(trace: &Trace, publishers: u32) -> Self {
        let slots = publishers.clamp(1, trace.devices.len().max(1) as u32);
        let mut words = vec![BTreeSet::new(); slots as usize];
        for reading in &trace.readings {
            words[(reading.device % slots) as usize].insert(reading.outlet_word());
        }
        let sorted = words.into_iter().map(|words| words.into_iter().collect());
        Outlets {
            slots: sorted.collect(),
        }
    }

    fn slot(&self, publisher: u32) -> &[u32] {
        &self.slots[publisher as usize % self.slots.len()]
    }

    /// Topic, if one was recorded, as index into [`Trace::topics`], and manner of each outlet of a publisher.
    pub fn outlets_of(
        &self,
        publisher: u32,
    ) -> impl ExactSizeIterator<Item = (Option<u32>, Manner)> {
        let words = self.slot(publisher).iter();
        words.map(|word| TraceReading::outlet_of_word(*word))
    }

    /// Which of its publisher's outlets a reading goes to.
    pub(crate) fn position(&self, publisher: u32, reading: &TraceReading) -> u32 {
        let words = self.slot(publisher);
        words.partition_point(|word| *word < reading.outlet_word()) as u32
    }
}
