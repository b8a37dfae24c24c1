//! Subscriptions with wildcards, which publish-subscribe services do not have: the driver asks the
//! service for its nodes at intervals (XEP-0030, XEP-0060 §5.2), and subscribes to each one that
//! matches. What is published to a node before it was found is missed.
//!
//! One client of the fleet asks for all of them, so that the server answers one request per worker
//! and interval.

use std::collections::HashSet;

use pubgauge_driver::Change;

/// A subscription with wildcards.
#[derive(Debug)]
pub(crate) struct Wildcard {
    pub client: u32,
    pub filter: Box<str>,
    /// Nodes that were found, and subscribed to or about to be.
    pub known: HashSet<Box<str>>,
    /// Subscriptions that have no answer yet.
    pub open: u32,
    /// The outcome that is still to be reported.
    pub report: Option<u32>,
    /// Its client is connected and has asked for it on this connection.
    pub live: bool,
}

/// The search for nodes at one endpoint.
#[derive(Clone, Debug, Default)]
pub(crate) struct Search {
    /// Who has asked and waits for the answer.
    pub asking: Option<u32>,
    pub due_ms: Option<u32>,
}

/// All of a fleet's.
#[derive(Debug, Default)]
pub(crate) struct Wildcards {
    pub all: Vec<Wildcard>,
    pub searches: Vec<Search>,
    /// Nodes found, by endpoint, that have not been processed.
    pub found: Vec<(u16, Vec<String>)>,
}

impl Wildcards {
    /// Takes a subscription; the outcome goes to `report`.
    pub fn add(&mut self, client: u32, endpoint: u16, filter: &str, report: u32, now_ms: u32) {
        let new = Wildcard {
            client,
            filter: filter.into(),
            known: HashSet::new(),
            open: 0,
            report: Some(report),
            live: true,
        };
        match self.all.iter_mut().find(|w| !w.live) {
            Some(dead) => *dead = new,
            None => self.all.push(new),
        }
        let index = usize::from(endpoint);
        if self.searches.len() <= index {
            self.searches.resize(index + 1, Search::default());
        }
        self.searches[index].due_ms = Some(now_ms);
    }

    /// A client has lost its connection.
    pub fn forget(&mut self, client: u32, now_ms: u32) {
        for wildcard in self.all.iter_mut().filter(|w| w.client == client) {
            wildcard.live = false;
        }
        for search in self
            .searches
            .iter_mut()
            .filter(|s| s.asking == Some(client))
        {
            // Another client has to ask.
            search.asking = None;
            search.due_ms = Some(now_ms);
        }
    }

    /// The answer to a search.
    pub fn record_nodes(
        &mut self,
        endpoint: u16,
        nodes: Vec<String>,
        now_ms: u32,
        interval_ms: u32,
    ) {
        if let Some(search) = self.searches.get_mut(usize::from(endpoint)) {
            search.asking = None;
            // One that became due in the meantime stays due.
            if search.due_ms.is_none() && interval_ms > 0 {
                search.due_ms = Some(now_ms.saturating_add(interval_ms));
            }
        }
        self.found.push((endpoint, nodes));
    }

    /// The answer to a subscription to a node that was found. Returns the outcome if it settles
    /// the whole subscription, which is `report`'s.
    pub fn answered(&mut self, wildcard: u32, client: u32) -> Option<(u32, Change)> {
        let wildcard = self.all.get_mut(wildcard as usize)?;
        if !wildcard.live || wildcard.client != client {
            return None;
        }
        wildcard.open = wildcard.open.saturating_sub(1);
        if wildcard.open > 0 {
            return None;
        }
        Some((wildcard.report.take()?, Change::Subscribed))
    }

    /// A node that was found no longer exists.
    pub fn forget_node(&mut self, wildcard: u32, node: &str) {
        if let Some(wildcard) = self.all.get_mut(wildcard as usize) {
            wildcard.known.remove(node);
        }
    }

    /// When the next search is due.
    pub fn first_ms(&self) -> Option<u32> {
        let waiting = self.searches.iter().filter(|s| s.asking.is_none());
        waiting.filter_map(|s| s.due_ms).min()
    }
}
