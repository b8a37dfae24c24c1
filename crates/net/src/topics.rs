//! Advertised topics: found by client and name without an allocation, and by number in one step.

use std::hash::{BuildHasher, Hasher};

use pubgauge_driver::TopicId;
use rustc_hash::{FxBuildHasher, FxHashMap};

const NONE: u32 = u32::MAX;

/// A protocol's state of a topic. The name is in it, so that no second copy is kept.
pub trait Named {
    fn name(&self) -> &str;
}

/// A topic; `T` is what the protocol keeps of it.
struct Topic<T> {
    client: u32,
    /// Next topic under the same hash.
    next: u32,
    own: T,
}

/// All topics of a fleet. A topic belongs to one client; a protocol whose topics are the same for
/// all clients gives all of them to one client number.
pub struct Topics<T> {
    list: Vec<Topic<T>>,
    /// First topic under each hash of client and name.
    by_hash: FxHashMap<u32, u32>,
}

impl<T> Default for Topics<T> {
    fn default() -> Self {
        Topics {
            list: Vec::new(),
            by_hash: FxHashMap::default(),
        }
    }
}

impl<T> Topics<T> {
    /// State of a topic; `None` if it was not advertised.
    #[inline]
    pub fn get(&self, id: TopicId) -> Option<&T> {
        self.list.get(id.0 as usize).map(|topic| &topic.own)
    }

    /// State of a topic, to change.
    #[inline]
    pub fn get_mut(&mut self, id: TopicId) -> Option<&mut T> {
        self.list.get_mut(id.0 as usize).map(|topic| &mut topic.own)
    }

    /// All of them in their order, each with its client.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.list.iter().map(|topic| (topic.client, &topic.own))
    }
}

impl<T: Named> Topics<T> {
    /// The number of a client's topic, if it was advertised.
    pub fn find(&self, client: u32, name: &str) -> Option<TopicId> {
        let mut at = *self.by_hash.get(&hash(client, name))?;
        while at != NONE {
            let known = &self.list[at as usize];
            if known.client == client && known.own.name() == name {
                return Some(TopicId(at));
            }
            at = known.next;
        }
        None
    }

    /// Adds a topic that [`Topics::find`] did not find.
    pub fn insert(&mut self, client: u32, own: T) -> TopicId {
        let id = self.list.len() as u32;
        let hash = hash(client, own.name());
        let next = self.by_hash.insert(hash, id).unwrap_or(NONE);
        self.list.push(Topic { client, next, own });
        TopicId(id)
    }
}

fn hash(client: u32, name: &str) -> u32 {
    let mut hasher = FxBuildHasher.build_hasher();
    hasher.write_u32(client);
    hasher.write(name.as_bytes());
    // The upper half is the better mixed one.
    (hasher.finish() >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Named for (u32, &str) {
        fn name(&self) -> &str {
            self.1
        }
    }

    #[test]
    fn topics_are_found_by_client_and_name() {
        let mut topics = Topics::default();
        for client in 0..3 {
            for name in ["a", "b"] {
                assert_eq!(topics.find(client, name), None);
                let id = topics.insert(client, (client, name));
                assert_eq!(topics.find(client, name), Some(id));
            }
        }
        for (n, (client, own)) in topics.iter().enumerate() {
            let id = TopicId(n as u32);
            assert_eq!(topics.find(client, own.name()), Some(id));
            assert_eq!((topics.get(id), own.0), (Some(own), client));
        }
        assert_eq!(topics.find(3, "a"), None);
        assert_eq!(topics.get(TopicId(6)), None);
    }

    #[test]
    fn topics_of_one_hash_are_told_apart() {
        let mut topics = Topics::default();
        let [first, second] = ["a", "b"].map(|name| topics.insert(0, (0, name)));
        // As if both had the hash of the first.
        topics.list[second.0 as usize].next = first.0;
        topics.by_hash.insert(hash(0, "a"), second.0);
        assert_eq!(topics.find(0, "a"), Some(first));
    }
}
