//! How the topic of a message is known.

use std::rc::Rc;

use pubgauge_dds::topic::Filter;
use pubgauge_driver::TopicMatch;
use rustc_hash::FxHashMap;

use crate::ffi::Reader;

/// Writers whose topics are remembered for one reader, at most.
const REMEMBERED: usize = 1 << 16;

/// How the topic of a message is known.
pub(super) enum Topics {
    /// There is only one.
    One(Rc<str>),
    /// By its writer's partition.
    ByWriter {
        /// The filter to check topics against, where the partitions match more than it does.
        check: Option<String>,
        known: FxHashMap<u64, Known>,
        last: u64,
        last_known: Option<Known>,
    },
}

#[derive(Clone)]
pub(super) struct Known {
    topic: Rc<str>,
    passes: bool,
}

impl Topics {
    /// The topics of a reader with such a filter.
    pub(super) fn new(filter: &Filter) -> Self {
        if !filter.is_pattern() {
            return Topics::One(filter.text.as_str().into());
        }
        Topics::ByWriter {
            check: filter.is_wider.then(|| filter.text.clone()),
            known: FxHashMap::default(),
            last: 0,
            last_known: None,
        }
    }

    /// The topic of a writer's messages, and whether they are wanted.
    #[inline]
    pub(super) fn topic_of(&mut self, reader: &Reader, publication: u64) -> (Option<&str>, bool) {
        match self {
            Topics::One(topic) => (Some(topic), true),
            Topics::ByWriter {
                check,
                known,
                last,
                last_known,
            } => {
                if last_known.is_none() || *last != publication {
                    *last_known = look_up(reader, publication, check.as_deref(), known);
                    *last = publication;
                }
                match last_known {
                    Some(known) => (Some(&known.topic), known.passes),
                    // Passed on without a topic, for the engine to count, rather than lost.
                    None => (None, true),
                }
            }
        }
    }
}

#[cold]
fn look_up(
    reader: &Reader,
    publication: u64,
    check: Option<&str>,
    known: &mut FxHashMap<u64, Known>,
) -> Option<Known> {
    if let Some(known) = known.get(&publication) {
        return Some(known.clone());
    }
    let topic = reader.partition_of(publication)?;
    let found = Known {
        passes: check.is_none_or(|filter| filter.matches_topic(&topic)),
        topic: topic.into(),
    };
    if known.len() >= REMEMBERED {
        known.clear();
    }
    known.insert(publication, found.clone());
    Some(found)
}
