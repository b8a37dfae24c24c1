//! What a fleet asks the servers of their nodes: to make, find and delete them, a few requests at a time.

use pubgauge_driver::{Change, ClientId, Nanos, TopicMatch};
use pubgauge_net::turns::Driven;

use crate::client::{Request, State};
use crate::fleet::XmppFleet;
use crate::requests;

/// Requests that concern nodes and wait for their answers at once, over all clients of a fleet. Each
/// is a transaction on the same tables of ejabberd, which block each other: of 500 at once it got
/// 71 done within 20 s.
const AT_ONCE: u32 = 4;

impl XmppFleet {
    /// Deletes the nodes that this fleet has made, by `until`.
    pub fn delete_nodes(&mut self, until: Nanos) {
        for (id, node) in self.shared.made.clone() {
            let client = &mut self.clients[id.0 as usize];
            if client.state == State::Connected {
                requests::ask(
                    client,
                    &mut self.shared,
                    id,
                    Request::Delete { node },
                    requests::TRIES,
                );
            }
        }
        self.run_unheard(until, |fleet| {
            fleet.shared.waiting.is_empty() && fleet.shared.asked == 0
        });
    }

    /// Sends requests whose turn it is.
    pub fn send_waiting(&mut self) {
        while self.shared.asked < AT_ONCE
            && let Some(waiting) = self.shared.waiting.pop_front()
        {
            let client = &mut self.clients[waiting.client as usize];
            if client.state == State::Connected && client.epoch == waiting.epoch {
                let id = ClientId(waiting.client);
                requests::send(client, &mut self.shared, id, waiting.request, waiting.left);
            }
        }
    }

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
