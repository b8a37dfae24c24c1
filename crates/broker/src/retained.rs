//! The retained message of each topic (MQTT 5 section 3.3.1.3), found by filter.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::message::StoredMessage;
use crate::topic::split;

/// Retained messages by topic level.
///
/// Children are ordered, so that a wildcard finds them in a stable order.
#[derive(Debug, Default)]
pub(crate) struct Retained {
    root: Node,
    len: usize,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Node {
    children: BTreeMap<Box<[u8]>, Node>,
    message: Option<Rc<StoredMessage>>,
}

impl Retained {
    /// How many topics have a retained message.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of topics, properties and payloads held.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Sets the topic's message, or removes it with `None`.
    pub(crate) fn set(&mut self, topic: &[u8], message: Option<Rc<StoredMessage>>) {
        let added = message.as_ref().map(|m| m.len());
        let removed = match message {
            Some(message) => self.root.insert(Some(topic), message),
            None => self.root.remove(Some(topic)),
        }
        .map(|m| m.len());
        self.len += usize::from(added.is_some());
        self.len -= usize::from(removed.is_some());
        self.bytes += added.unwrap_or(0);
        self.bytes -= removed.unwrap_or(0);
    }

    /// Appends every message whose topic matches the filter.
    pub(crate) fn find(&self, filter: &[u8], found: &mut Vec<Rc<StoredMessage>>) {
        self.root.find(Some(filter), true, found);
    }
}

impl Node {
    fn insert(
        &mut self,
        path: Option<&[u8]>,
        message: Rc<StoredMessage>,
    ) -> Option<Rc<StoredMessage>> {
        let Some(path) = path else {
            return self.message.replace(message);
        };
        let (level, rest) = split(path);
        if let Some(child) = self.children.get_mut(level) {
            return child.insert(rest, message);
        }
        self.children
            .entry(level.into())
            .or_default()
            .insert(rest, message)
    }

    fn remove(&mut self, path: Option<&[u8]>) -> Option<Rc<StoredMessage>> {
        let Some(path) = path else {
            return self.message.take();
        };
        let (level, rest) = split(path);
        let child = self.children.get_mut(level)?;
        let removed = child.remove(rest);
        if child.message.is_none() && child.children.is_empty() {
            self.children.remove(level);
        }
        removed
    }

    fn find(&self, filter: Option<&[u8]>, first: bool, found: &mut Vec<Rc<StoredMessage>>) {
        let Some(filter) = filter else {
            found.extend(self.message.clone());
            return;
        };
        // Wildcards at the first level do not match topics of the server's own
        // (section 4.7.2).
        let wild = |level: &[u8]| !(first && level.first() == Some(&b'$'));
        match split(filter) {
            (b"#", _) => {
                if !first {
                    found.extend(self.message.clone());
                }
                for (_, child) in self.children.iter().filter(|(level, _)| wild(level)) {
                    child.find(Some(b"#"), false, found);
                }
            }
            (b"+", rest) => {
                for (_, child) in self.children.iter().filter(|(level, _)| wild(level)) {
                    child.find(rest, false, found);
                }
            }
            (level, rest) => {
                if let Some(child) = self.children.get(level) {
                    child.find(rest, false, found);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use pubgauge_driver::TopicMatch;
    use pubgauge_mqtt_codec::topic::check_filter;

    use super::*;

    fn message(topic: &str) -> Rc<StoredMessage> {
        Rc::new(StoredMessage::for_test(topic, b"x"))
    }

    fn found(store: &Retained, filter: &str) -> Vec<String> {
        let mut found = Vec::new();
        store.find(filter.as_bytes(), &mut found);
        let mut topics: Vec<_> = found
            .iter()
            .map(|m| String::from_utf8(m.topic().to_vec()).unwrap())
            .collect();
        topics.sort();
        topics
    }

    #[test]
    fn removing_leaves_nothing_behind() {
        let mut store = Retained::default();
        store.set(b"a/b/c", Some(message("a/b/c")));
        store.set(b"a/b", Some(message("a/b")));
        store.set(b"a/b", Some(message("a/b")));
        assert_eq!(store.len(), 2);
        store.set(b"a/b/c", None);
        store.set(b"a/b", None);
        store.set(b"nothing", None);
        assert_eq!((store.len(), store.bytes()), (0, 0));
        assert!(store.root.children.is_empty());
    }

    fn topic() -> impl Strategy<Value = String> {
        prop::collection::vec(prop::sample::select(vec!["a", "b", "", "$x"]), 1..5)
            .prop_map(|l| l.join("/"))
            .prop_filter("empty", |t| !t.is_empty())
    }

    fn filter() -> impl Strategy<Value = String> {
        prop::collection::vec(
            prop::sample::select(vec!["a", "b", "", "$x", "+", "+", "#"]),
            1..5,
        )
        .prop_map(|l| l.join("/"))
        .prop_filter("malformed", |f| check_filter(f).is_ok())
    }

    proptest! {
        #[test]
        fn the_store_agrees_with_a_list(
            steps in prop::collection::vec((any::<bool>(), topic()), 0..40),
            filters in prop::collection::vec(filter(), 1..10),
        ) {
            let mut store = Retained::default();
            let mut list = std::collections::BTreeSet::new();
            for (add, topic) in steps {
                store.set(topic.as_bytes(), add.then(|| message(&topic)));
                if add {
                    list.insert(topic);
                } else {
                    list.remove(&topic);
                }
            }
            prop_assert_eq!(store.len(), list.len());
            for filter in filters {
                let expected: Vec<_> = list
                    .iter()
                    .filter(|t| filter.matches_topic(t))
                    .cloned()
                    .collect();
                prop_assert_eq!(found(&store, &filter), expected);
            }
        }
    }
}
