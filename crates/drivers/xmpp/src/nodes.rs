//! A fleet's requests about nodes: to create, find and delete them, a few at a time.

use pubgauge_driver::{Change, ClientId, Nanos, TopicMatch};
use pubgauge_net::fleet::{State, TcpFleet};

use crate::client::Request;
use crate::requests;
use crate::shared::Xmpp;

/// Most requests about nodes that are unanswered at once, over all clients of a fleet. Each is a
/// transaction on the same tables of ejabberd, which block each other: of 500 at once it got 71
/// done within 20 s.
const AT_ONCE: u32 = 4;

/// Deletes the nodes that this fleet has made, by `until`.
pub(crate) fn delete(fleet: &mut TcpFleet<Xmpp>, until: Nanos) {
    for (id, node) in fleet.protocol.made.clone() {
        let (xmpp, mut link) = fleet.link(id);
        if link.is_connected() {
            requests::ask(xmpp, &mut link, Request::Delete { node }, requests::TRIES);
        }
    }
    fleet.run_until(until, |fleet| {
        fleet.protocol.waiting.is_empty() && fleet.protocol.asked == 0
    });
}

/// Sends requests whose turn it is.
pub(crate) fn send_waiting(fleet: &mut TcpFleet<Xmpp>) {
    while fleet.protocol.asked < AT_ONCE
        && let Some(waiting) = fleet.protocol.waiting.pop_front()
    {
        let (xmpp, mut link) = fleet.link(ClientId(waiting.client));
        if link.is_connected() && link.client.epoch == waiting.epoch {
            requests::send(xmpp, &mut link, waiting.request, waiting.left);
        }
    }
}

/// Asks for nodes where that is due, and subscribes to those that were found.
pub(crate) fn search(fleet: &mut TcpFleet<Xmpp>) {
    let now_ms = fleet.shared.now_ms;
    let due = fleet.protocol.wildcards.first_ms();
    if due.is_some_and(|due| due <= now_ms) {
        for place in 0..fleet.protocol.wildcards.searches.len() {
            ask(fleet, place as u16);
        }
    }
    for (place, nodes) in std::mem::take(&mut fleet.protocol.wildcards.found) {
        for wildcard in 0..fleet.protocol.wildcards.all.len() {
            subscribe_found(fleet, wildcard as u32, place, &nodes);
        }
    }
}

fn ask(fleet: &mut TcpFleet<Xmpp>, place: u16) {
    let now_ms = fleet.shared.now_ms;
    let wildcards = &mut fleet.protocol.wildcards;
    let search = &mut wildcards.searches[usize::from(place)];
    if search.asking.is_some() || search.due_ms.is_none_or(|due| due > now_ms) {
        return;
    }
    search.due_ms = None;
    let mut askers = wildcards.all.iter().filter(|w| w.live).map(|w| w.client);
    let asker = askers.find(|client| {
        let client = &fleet.clients[*client as usize];
        client.place == place && client.state == State::Connected
    });
    let Some(asker) = asker else {
        return;
    };
    search.asking = Some(asker);
    let (xmpp, mut link) = fleet.link(ClientId(asker));
    requests::ask(xmpp, &mut link, Request::Discover, requests::TRIES);
}

fn subscribe_found(fleet: &mut TcpFleet<Xmpp>, index: u32, place: u16, nodes: &[String]) {
    let client = fleet.protocol.wildcards.all[index as usize].client;
    let (xmpp, mut link) = fleet.link(ClientId(client));
    let wildcard = &mut xmpp.wildcards.all[index as usize];
    if !wildcard.live || link.client.place != place || !link.is_connected() {
        return;
    }
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
        requests::settle(&mut link, report, Change::Subscribed);
    }
    for node in new {
        let wildcard = index;
        let request = Request::Match { wildcard, node };
        requests::ask(xmpp, &mut link, request, requests::TRIES);
    }
}
