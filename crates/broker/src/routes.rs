//! A cache of the subscribers of each topic.
//!
//! The tree is walked once for a topic; until a subscription changes, its
//! messages take the route that was found.

use rustc_hash::FxHashMap;

use crate::tree::{GroupId, SessionId, Sub, Tree};

/// Index of a route in the cache.
pub(crate) type RouteId = u32;
pub(crate) const NO_ROUTE: RouteId = RouteId::MAX;

/// Most topics in the cache; beyond, it is emptied. At some 200 bytes a topic
/// this bounds the memory that a client can take by publishing to many topics.
const MOST_ROUTES: usize = 65_536;

/// One subscriber of a topic; its overlapping subscriptions are merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RouteTarget {
    /// The subscribing session.
    pub session: SessionId,
    /// The highest of its subscriptions' qualities of service.
    pub qos: u8,
    /// Each of its subscriptions is no-local.
    pub no_local: bool,
    /// One of its subscriptions wants the retain flag as published.
    pub retain_as_published: bool,
    /// Identifiers of its subscriptions, all of which go into the message (MQTT
    /// 5 section 3.3.4).
    pub ids: Box<[u32]>,
}

/// Where the messages of one topic go.
#[derive(Debug, Default)]
pub(crate) struct Route {
    topic: Box<[u8]>,
    generation: u32,
    /// Sessions that get each message.
    pub targets: Vec<RouteTarget>,
    /// Groups of which one member gets each message.
    pub groups: Vec<GroupId>,
}

/// The cache of routes.
#[derive(Debug)]
pub(crate) struct Routes {
    by_topic: FxHashMap<Box<[u8]>, RouteId>,
    routes: Vec<Route>,
    /// Routes of another generation are found anew when they are next used.
    generation: u32,
    subs: Vec<Sub>,
}

impl Routes {
    pub(crate) fn new() -> Routes {
        Routes {
            by_topic: FxHashMap::default(),
            routes: Vec::new(),
            generation: 1,
            subs: Vec::new(),
        }
    }

    /// Invalidates routes after subscriptions with this filter changed. An
    /// `exact` filter invalidates only the topic it names, so that devices that
    /// each subscribe to a topic of their own keep each other's routes.
    pub(crate) fn changed(&mut self, filter: &[u8], exact: bool) {
        if !exact {
            self.generation = self.generation.wrapping_add(1).max(1);
        } else if let Some(&id) = self.by_topic.get(filter) {
            self.routes[id as usize].generation = 0;
        }
    }

    /// Whether `hint` is the topic's route and still valid: a shortcut for a
    /// publisher that stays with its topic.
    #[inline]
    pub(crate) fn is_current(&self, hint: RouteId, topic: &[u8]) -> bool {
        self.routes
            .get(hint as usize)
            .is_some_and(|r| r.generation == self.generation && *r.topic == *topic)
    }

    /// The topic's route.
    pub(crate) fn find(&mut self, topic: &[u8], tree: &Tree) -> RouteId {
        if let Some(&id) = self.by_topic.get(topic) {
            if self.routes[id as usize].generation != self.generation {
                self.fill(id, topic, tree);
            }
            return id;
        }
        if self.routes.len() >= MOST_ROUTES {
            self.by_topic.clear();
            self.routes.clear();
        }
        let id = self.routes.len() as RouteId;
        self.routes.push(Route {
            topic: topic.into(),
            ..Route::default()
        });
        self.by_topic.insert(topic.into(), id);
        self.fill(id, topic, tree);
        id
    }

    #[inline]
    pub(crate) fn get(&self, id: RouteId) -> &Route {
        &self.routes[id as usize]
    }

    fn fill(&mut self, id: RouteId, topic: &[u8], tree: &Tree) {
        let route = &mut self.routes[id as usize];
        route.targets.clear();
        route.groups.clear();
        self.subs.clear();
        tree.collect(topic, &mut self.subs, &mut route.groups);
        self.subs.sort_unstable_by_key(|s| s.session);
        for same in self.subs.chunk_by(|a, b| a.session == b.session) {
            route.targets.push(merge(same));
        }
        route.generation = self.generation;
    }
}

/// One session's subscriptions as one: it gets one copy, at the highest quality
/// of service it asked for (MQTT 5 section 3.3.4).
fn merge(subs: &[Sub]) -> RouteTarget {
    let mut ids: Vec<u32> = subs
        .iter()
        .map(|s| s.options.id)
        .filter(|&id| id != 0)
        .collect();
    ids.sort_unstable();
    RouteTarget {
        session: subs[0].session,
        qos: subs.iter().map(|s| s.options.qos).max().unwrap_or(0),
        no_local: subs.iter().all(|s| s.options.no_local),
        retain_as_published: subs.iter().any(|s| s.options.retain_as_published),
        ids: ids.into_boxed_slice(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::SubOptions;

    fn sub(session: SessionId, qos: u8, id: u32) -> Sub {
        let options = SubOptions {
            qos,
            no_local: id == 9,
            retain_as_published: id == 8,
            id,
        };
        Sub { session, options }
    }

    #[test]
    fn overlapping_subscriptions_become_one_copy() {
        let mut tree = Tree::new();
        let mut routes = Routes::new();
        tree.subscribe(b"a/b", sub(1, 0, 9), true);
        tree.subscribe(b"a/+", sub(1, 2, 8), true);
        tree.subscribe(b"#", sub(1, 1, 0), true);
        tree.subscribe(b"#", sub(2, 1, 9), true);
        let id = routes.find(b"a/b", &tree);
        let expected = [
            RouteTarget {
                session: 1,
                qos: 2,
                no_local: false,
                retain_as_published: true,
                ids: vec![8, 9].into(),
            },
            RouteTarget {
                session: 2,
                qos: 1,
                no_local: true,
                retain_as_published: false,
                ids: vec![9].into(),
            },
        ];
        assert_eq!(routes.get(id).targets, expected);
    }

    #[test]
    fn a_change_is_seen_and_others_stay() {
        let mut tree = Tree::new();
        let mut routes = Routes::new();
        let (a, b) = (routes.find(b"a", &tree), routes.find(b"b", &tree));
        assert!(routes.is_current(a, b"a") && !routes.is_current(a, b"b"));
        assert!(!routes.is_current(NO_ROUTE, b"a"));
        tree.subscribe(b"a", sub(1, 0, 0), true);
        routes.changed(b"a", true);
        assert!(!routes.is_current(a, b"a") && routes.is_current(b, b"b"));
        assert_eq!(routes.find(b"a", &tree), a);
        assert_eq!(routes.get(a).targets.len(), 1);
        tree.subscribe(b"+", sub(2, 0, 0), true);
        routes.changed(b"+", false);
        assert!(!routes.is_current(b, b"b"));
        let b = routes.find(b"b", &tree);
        assert_eq!(routes.get(b).targets.len(), 1);
    }

    #[test]
    fn invented_topics_do_not_pile_up() {
        let (tree, mut routes) = (Tree::new(), Routes::new());
        for i in 0..MOST_ROUTES + 10 {
            routes.find(i.to_string().as_bytes(), &tree);
        }
        assert!(routes.routes.len() <= MOST_ROUTES);
        assert!(routes.by_topic.len() <= MOST_ROUTES);
    }
}
