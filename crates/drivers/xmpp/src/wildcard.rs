//! Subscriptions with wildcards, which publish-subscribe services do not have: the driver asks
//! the service for its nodes (XEP-0030, XEP-0060 §5.2), again and again, and subscribes to each
//! one that matches. What is published to a node before it was found is missed.
//!
//! One client of the fleet asks for all of them, so that the server answers one question per
//! worker and interval.

use std::collections::HashSet;

use pubgauge_driver::{Change, ClientId, TopicMatch};

use crate::client::{Request, State};
use crate::fleet::XmppFleet;
use crate::requests;

/// A subscription with wildcards.
#[derive(Debug)]
pub(crate) struct Wildcard {
    client: u32,
    filter: Box<str>,
    /// Nodes that were found, and subscribed to or about to be.
    known: HashSet<Box<str>>,
    /// Subscriptions that have no answer yet.
    open: u32,
    /// The outcome that is still owed.
    report: Option<u32>,
    /// Its client is connected and has it.
    live: bool,
}

/// The search for nodes at one endpoint.
#[derive(Clone, Debug, Default)]
struct Search {
    /// Who has asked and waits for the answer.
    asking: Option<u32>,
    due_ms: Option<u32>,
}

/// All of a fleet's.
#[derive(Debug, Default)]
pub(crate) struct Wildcards {
    all: Vec<Wildcard>,
    searches: Vec<Search>,
    /// Nodes found, by endpoint, that have not been gone through.
    found: Vec<(u16, Vec<String>)>,
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
            // Somebody else has to ask.
            search.asking = None;
            search.due_ms = Some(now_ms);
        }
    }

    /// The answer to a search.
    pub fn found(&mut self, endpoint: u16, nodes: Vec<String>, now_ms: u32, interval_ms: u32) {
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

    /// A node that was found is gone again.
    pub fn gone(&mut self, wildcard: u32, node: &str) {
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

impl XmppFleet {
    /// Asks for nodes where that is due, and subscribes to those that were found.
    pub fn search(&mut self) {
        let now_ms = self.shared.now_ms;
        if self
            .shared
            .wildcards
            .first_ms()
            .is_some_and(|due| due <= now_ms)
        {
            for endpoint in 0..self.shared.wildcards.searches.len() {
                self.ask(endpoint as u16);
            }
        }
        for (endpoint, nodes) in std::mem::take(&mut self.shared.wildcards.found) {
            for wildcard in 0..self.shared.wildcards.all.len() {
                self.subscribe_found(wildcard as u32, endpoint, &nodes);
            }
        }
    }

    fn ask(&mut self, endpoint: u16) {
        let now_ms = self.shared.now_ms;
        let wildcards = &mut self.shared.wildcards;
        let search = &mut wildcards.searches[usize::from(endpoint)];
        if search.asking.is_some() || search.due_ms.is_none_or(|due| due > now_ms) {
            return;
        }
        search.due_ms = None;
        let asker = wildcards.all.iter().filter(|w| w.live).map(|w| w.client);
        let asker = asker.into_iter().find(|client| {
            let client = &self.clients[*client as usize];
            client.endpoint == endpoint && client.state == State::Connected
        });
        let Some(asker) = asker else {
            return;
        };
        search.asking = Some(asker);
        let client = &mut self.clients[asker as usize];
        let id = ClientId(asker);
        requests::ask(
            client,
            &mut self.shared,
            id,
            Request::Discover,
            requests::TRIES,
        );
    }

    fn subscribe_found(&mut self, index: u32, endpoint: u16, nodes: &[String]) {
        let shared = &mut self.shared;
        let wildcard = &mut shared.wildcards.all[index as usize];
        let client = &mut self.clients[wildcard.client as usize];
        if !wildcard.live || client.endpoint != endpoint || client.state != State::Connected {
            return;
        }
        let id = ClientId(wildcard.client);
        let mut new: Vec<Box<str>> = Vec::new();
        for node in nodes {
            if wildcard.filter.matches_topic(node) && !wildcard.known.contains(node.as_str()) {
                wildcard.known.insert(node.as_str().into());
                new.push(node.as_str().into());
            }
        }
        wildcard.open += new.len() as u32;
        if wildcard.open == 0
            && let Some(report) = wildcard.report.take()
        {
            client.session.keep_promise(report, Change::Subscribed);
            shared.settled.push(id.0);
        }
        for node in new {
            let wildcard = index;
            let request = Request::Match { wildcard, node };
            requests::ask(client, shared, id, request, requests::TRIES);
        }
    }
}
