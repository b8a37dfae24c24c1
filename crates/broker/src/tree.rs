//! All subscriptions: a tree of filter levels, with shared groups.
//!
//! Walking the tree is not on the message path: [`crate::routes`] remembers what
//! it found for each topic.

use rustc_hash::FxHashMap;

use crate::topic::{levels, split};

/// Index of a session in the broker's table.
pub(crate) type SessionId = u32;
/// Index of a shared group in the tree's table.
pub(crate) type GroupId = u32;

/// Options of a subscription (MQTT 5 section 3.8.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SubOptions {
    /// Highest quality of service, 0 to 2.
    pub qos: u8,
    /// Not to send the client its own messages.
    pub no_local: bool,
    /// Forward the retain flag as the publisher set it.
    pub retain_as_published: bool,
    /// Subscription identifier; 0 stands for none, which is not a legal one.
    pub id: u32,
}

/// One subscription as found by a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sub {
    /// The subscribing session.
    pub session: SessionId,
    /// Options that it asked for.
    pub options: SubOptions,
}

/// The members among whom a shared subscription's messages are split.
#[derive(Debug)]
pub(crate) struct ShareGroup {
    name: Box<[u8]>,
    /// Present members, in no particular order.
    pub members: Vec<Sub>,
    /// Index of the member that is next. Kept here, not in the route, so that
    /// all topics under one wildcard share the turn.
    pub turn: usize,
}

#[derive(Debug, Default)]
struct Node {
    /// By level; wildcards have the keys `+` and `#`, which no topic level is.
    children: FxHashMap<Box<[u8]>, u32>,
    subs: Vec<Sub>,
    groups: Vec<GroupId>,
}

impl Node {
    fn is_empty(&self) -> bool {
        self.children.is_empty() && self.subs.is_empty() && self.groups.is_empty()
    }
}

/// All subscriptions of all sessions.
#[derive(Debug)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    free_nodes: Vec<u32>,
    groups: Vec<ShareGroup>,
    free_groups: Vec<GroupId>,
}

const ROOT: u32 = 0;

impl Tree {
    pub(crate) fn new() -> Tree {
        Tree {
            nodes: vec![Node::default()],
            free_nodes: Vec::new(),
            groups: Vec::new(),
            free_groups: Vec::new(),
        }
    }

    /// Adds or replaces a plain subscription. `known_new` says that the session
    /// has none with this filter, which saves the search among its subscribers.
    pub(crate) fn subscribe(&mut self, filter: &[u8], sub: Sub, known_new: bool) {
        let node = self.make_path(filter);
        insert(&mut self.nodes[node as usize].subs, sub, known_new);
    }

    /// Adds or replaces a session's membership of the group on the filter.
    pub(crate) fn subscribe_shared(&mut self, group: &[u8], filter: &[u8], sub: Sub) {
        let node = self.make_path(filter) as usize;
        let found = self.nodes[node]
            .groups
            .iter()
            .copied()
            .find(|&g| &*self.groups[g as usize].name == group);
        let id = found.unwrap_or_else(|| {
            let fresh = ShareGroup {
                name: group.into(),
                members: Vec::new(),
                turn: 0,
            };
            let id = if let Some(id) = self.free_groups.pop() {
                self.groups[id as usize] = fresh;
                id
            } else {
                self.groups.push(fresh);
                (self.groups.len() - 1) as GroupId
            };
            self.nodes[node].groups.push(id);
            id
        });
        insert(&mut self.groups[id as usize].members, sub, false);
    }

    /// Removes a plain subscription; false if there was none.
    pub(crate) fn unsubscribe(&mut self, filter: &[u8], session: SessionId) -> bool {
        self.remove_at(filter, |tree, node| {
            remove(&mut tree.nodes[node as usize].subs, session)
        })
    }

    /// Removes a session from a group; false if it was no member.
    pub(crate) fn unsubscribe_shared(
        &mut self,
        group: &[u8],
        filter: &[u8],
        session: SessionId,
    ) -> bool {
        self.remove_at(filter, |tree, node| {
            let groups = &tree.nodes[node as usize].groups;
            let Some(at) = groups
                .iter()
                .position(|&g| &*tree.groups[g as usize].name == group)
            else {
                return false;
            };
            let id = groups[at];
            let members = &mut tree.groups[id as usize].members;
            let found = remove(members, session);
            if members.is_empty() {
                tree.nodes[node as usize].groups.swap_remove(at);
                tree.groups[id as usize].name = Box::default();
                tree.free_groups.push(id);
            }
            found
        })
    }

    /// Appends every plain subscription and every group whose filter matches.
    pub(crate) fn collect(&self, topic: &[u8], subs: &mut Vec<Sub>, groups: &mut Vec<GroupId>) {
        let mut found = Matches { subs, groups };
        // Wildcards at the first level do not match topics of the server's own
        // (section 4.7.2).
        let wildcards = topic.first() != Some(&b'$');
        self.walk(ROOT, Some(topic), wildcards, &mut found);
    }

    pub(crate) fn group(&self, id: GroupId) -> &ShareGroup {
        &self.groups[id as usize]
    }

    pub(crate) fn group_mut(&mut self, id: GroupId) -> &mut ShareGroup {
        &mut self.groups[id as usize]
    }

    fn walk(&self, node: u32, rest: Option<&[u8]>, wildcards: bool, found: &mut Matches<'_>) {
        let node = &self.nodes[node as usize];
        if wildcards && let Some(&all) = node.children.get(&b"#"[..]) {
            found.take(&self.nodes[all as usize]);
        }
        let Some(rest) = rest else {
            found.take(node);
            return;
        };
        let (level, rest) = split(rest);
        if let Some(&child) = node.children.get(level) {
            self.walk(child, rest, true, found);
        }
        if wildcards && let Some(&child) = node.children.get(&b"+"[..]) {
            self.walk(child, rest, true, found);
        }
    }

    fn make_path(&mut self, filter: &[u8]) -> u32 {
        let mut at = ROOT;
        for level in levels(filter) {
            at = match self.nodes[at as usize].children.get(level) {
                Some(&child) => child,
                None => {
                    let child = self.free_nodes.pop().unwrap_or_else(|| {
                        self.nodes.push(Node::default());
                        (self.nodes.len() - 1) as u32
                    });
                    self.nodes[at as usize].children.insert(level.into(), child);
                    child
                }
            };
        }
        at
    }

    /// Runs `take` on the filter's node and prunes what is empty after it.
    fn remove_at(&mut self, filter: &[u8], take: impl FnOnce(&mut Tree, u32) -> bool) -> bool {
        let mut path = Vec::with_capacity(8);
        let mut at = ROOT;
        for level in levels(filter) {
            let Some(&child) = self.nodes[at as usize].children.get(level) else {
                return false;
            };
            path.push((at, level, child));
            at = child;
        }
        let found = take(self, at);
        for (parent, level, child) in path.into_iter().rev() {
            if !self.nodes[child as usize].is_empty() {
                break;
            }
            self.nodes[child as usize] = Node::default();
            self.nodes[parent as usize].children.remove(level);
            self.free_nodes.push(child);
        }
        found
    }
}

struct Matches<'a> {
    subs: &'a mut Vec<Sub>,
    groups: &'a mut Vec<GroupId>,
}

impl Matches<'_> {
    fn take(&mut self, node: &Node) {
        self.subs.extend_from_slice(&node.subs);
        self.groups.extend_from_slice(&node.groups);
    }
}

fn insert(subs: &mut Vec<Sub>, sub: Sub, known_new: bool) {
    if !known_new && let Some(old) = subs.iter_mut().find(|s| s.session == sub.session) {
        *old = sub;
    } else {
        subs.push(sub);
    }
}

fn remove(subs: &mut Vec<Sub>, session: SessionId) -> bool {
    let Some(at) = subs.iter().position(|s| s.session == session) else {
        return false;
    };
    subs.swap_remove(at);
    if subs.is_empty() {
        *subs = Vec::new();
    }
    true
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use pubgauge_driver::TopicMatch;
    use pubgauge_mqtt_codec::topic::check_filter;

    use super::*;
    use crate::topic::ParsedFilter;

    fn sub(session: SessionId, qos: u8) -> Sub {
        let options = SubOptions {
            qos,
            no_local: false,
            retain_as_published: false,
            id: 0,
        };
        Sub { session, options }
    }

    type Groups = Vec<(Vec<u8>, Vec<SessionId>)>;

    fn found(tree: &Tree, topic: &[u8]) -> (Vec<Sub>, Groups) {
        let (mut subs, mut groups) = (Vec::new(), Vec::new());
        tree.collect(topic, &mut subs, &mut groups);
        subs.sort_by_key(|s| (s.session, s.options.qos));
        let mut groups: Vec<_> = groups
            .iter()
            .map(|&g| {
                let group = tree.group(g);
                let mut members: Vec<_> = group.members.iter().map(|m| m.session).collect();
                members.sort_unstable();
                (group.name.to_vec(), members)
            })
            .collect();
        groups.sort();
        (subs, groups)
    }

    #[test]
    fn an_empty_tree_keeps_nothing() {
        let mut tree = Tree::new();
        tree.subscribe(b"a/+/c", sub(1, 0), true);
        tree.subscribe_shared(b"g", b"a/+/d", sub(2, 0));
        assert!(tree.unsubscribe(b"a/+/c", 1));
        assert!(!tree.unsubscribe(b"a/+/c", 1));
        assert!(!tree.unsubscribe_shared(b"h", b"a/+/d", 2));
        assert!(tree.unsubscribe_shared(b"g", b"a/+/d", 2));
        assert!(tree.nodes[ROOT as usize].is_empty());
        assert_eq!(tree.free_nodes.len() + 1, tree.nodes.len());
        assert_eq!(tree.free_groups.len(), tree.groups.len());
    }

    fn level() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec!["a", "b", "", "$x"])
    }

    fn topic() -> impl Strategy<Value = String> {
        prop::collection::vec(level(), 1..5)
            .prop_map(|l| l.join("/"))
            .prop_filter("empty", |t| !t.is_empty())
    }

    fn filter() -> impl Strategy<Value = String> {
        let levels = prop::collection::vec(prop_oneof![2 => level(), 1 => Just("+")], 0..4);
        let share = prop_oneof![3 => Just(""), 1 => Just("$share/g/"), 1 => Just("$share/h/")];
        (levels, any::<bool>(), share)
            .prop_map(|(mut l, all, share)| {
                if all || l.is_empty() {
                    l.push("#");
                }
                format!("{share}{}", l.join("/"))
            })
            .prop_filter("malformed", |f| check_filter(f).is_ok())
    }

    proptest! {
        /// Any order of subscribing and unsubscribing leaves exactly what a list
        /// of filters and the plain reading of the specification would give.
        #[test]
        fn the_tree_agrees_with_a_list(
            steps in prop::collection::vec((any::<bool>(), 0u32..5, filter(), 0u8..3), 1..60),
            topics in prop::collection::vec(topic(), 1..12),
        ) {
            let mut tree = Tree::new();
            let mut list: BTreeMap<(u32, String), u8> = BTreeMap::new();
            for (add, session, raw, qos) in steps {
                let key = (session, raw.clone());
                match (add, ParsedFilter::parse(&raw)) {
                    (true, ParsedFilter::Plain(f)) => {
                        tree.subscribe(f, sub(session, qos), !list.contains_key(&key));
                        list.insert(key, qos);
                    }
                    (true, ParsedFilter::Shared { group, filter }) => {
                        tree.subscribe_shared(group, filter, sub(session, qos));
                        list.insert(key, qos);
                    }
                    (false, ParsedFilter::Plain(f)) => {
                        prop_assert_eq!(tree.unsubscribe(f, session), list.remove(&key).is_some());
                    }
                    (false, ParsedFilter::Shared { group, filter }) => {
                        let gone = tree.unsubscribe_shared(group, filter, session);
                        prop_assert_eq!(gone, list.remove(&key).is_some());
                    }
                }
            }
            for topic in topics {
                let passes = |filter| str::from_utf8(filter).is_ok_and(|f| f.matches_topic(&topic));
                let mut plain = Vec::new();
                let mut shared: BTreeMap<(&[u8], &[u8]), Vec<u32>> = BTreeMap::new();
                for ((session, raw), qos) in &list {
                    match ParsedFilter::parse(raw) {
                        ParsedFilter::Plain(f) if passes(f) => {
                            plain.push(sub(*session, *qos));
                        }
                        ParsedFilter::Shared { group, filter } if passes(filter) => {
                            shared.entry((group, filter)).or_default().push(*session);
                        }
                        _ => {}
                    }
                }
                plain.sort_by_key(|s| (s.session, s.options.qos));
                let mut groups: Vec<_> =
                    shared.into_iter().map(|((g, _), m)| (g.to_vec(), m)).collect();
                groups.sort();
                prop_assert_eq!(found(&tree, topic.as_bytes()), (plain, groups));
            }
        }
    }
}
