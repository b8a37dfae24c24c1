//! Advertised topics: found by client and name without an allocation, and by number in one step.

use std::hash::{BuildHasher, Hasher};

use pubgauge_driver::TopicId;
use rustc_hash::{FxBuildHasher, FxHashMap};

const NONE: u32 = u32::MAX;

/// A topic; `T` is what the protocol keeps of it.
struct Topic<T> {
    client: u32,
    /// Next topic under the same hash.
    next: u32,
    name: Box<str>,
    own: T,
}

/// All topics of a fleet. A topic belongs to one client; a protocol whose topics are the same for
/// all clients gives all of them to one client number.
pub struct Topics<T> {
    list: Vec<Topic<T>>,
    /// First topic under each hash of client and name.
    by_hash: FxHashMap<u64, u32>,
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
    /// What is kept of a topic; `None` if it was not advertised.
    #[inline]
    pub fn get(&self, id: TopicId) -> Option<&T> {
        self.list.get(id.0 as usize).map(|topic| &topic.own)
    }

    /// The same, mutable.
    #[inline]
    pub fn get_mut(&mut self, id: TopicId) -> Option<&mut T> {
        self.list.get_mut(id.0 as usize).map(|topic| &mut topic.own)
    }

    /// The client that advertised a topic, and the topic's name.
    pub fn name(&self, id: TopicId) -> Option<(u32, &str)> {
        let topic = self.list.get(id.0 as usize)?;
        Some((topic.client, &topic.name))
    }

    /// The number of a client's topic, if it was advertised.
    pub fn find(&self, client: u32, name: &str) -> Option<TopicId> {
        let mut at = *self.by_hash.get(&hash(client, name))?;
        while at != NONE {
            let known = &self.list[at as usize];
            if known.client == client && &*known.name == name {
                return Some(TopicId(at));
            }
            at = known.next;
        }
        None
    }

    /// Adds a topic that [`Topics::find`] did not find.
    pub fn insert(&mut self, client: u32, name: &str, own: T) -> TopicId {
        let id = self.list.len() as u32;
        let next = self.by_hash.insert(hash(client, name), id).unwrap_or(NONE);
        self.list.push(Topic {
            client,
            next,
            name: name.into(),
            own,
        });
        TopicId(id)
    }

    /// All of them in their order: client, name, and what is kept.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &str, &T)> {
        self.list.iter().map(|t| (t.client, &*t.name, &t.own))
    }
}

fn hash(client: u32, name: &str) -> u64 {
    let mut hasher = FxBuildHasher.build_hasher();
    hasher.write_u32(client);
    hasher.write(name.as_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_found_by_client_and_name() {
        let mut topics = Topics::default();
        for client in 0..3 {
            for name in ["a", "b"] {
                assert_eq!(topics.find(client, name), None);
                let id = topics.insert(client, name, (client, name));
                assert_eq!(topics.find(client, name), Some(id));
            }
        }
        for (n, (client, name, own)) in topics.iter().enumerate() {
            let id = TopicId(n as u32);
            assert_eq!(topics.find(client, name), Some(id));
            assert_eq!(
                (topics.name(id), topics.get(id)),
                (Some((client, name)), Some(own))
            );
            assert_eq!(*own, (client, name));
        }
        assert_eq!(topics.find(3, "a"), None);
        assert_eq!(topics.get(TopicId(6)), None);
    }

    #[test]
    fn topics_of_one_hash_are_told_apart() {
        let mut topics = Topics::default();
        let (first, second) = (topics.insert(0, "a", 'a'), topics.insert(0, "b", 'b'));
        // As if both had the hash of the first.
        topics.list[second.0 as usize].next = first.0;
        topics.by_hash.insert(hash(0, "a"), second.0);
        assert_eq!(topics.find(0, "a"), Some(first));
    }
}
