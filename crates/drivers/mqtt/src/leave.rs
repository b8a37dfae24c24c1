//! Closes a fleet and removes what its clients would leave on the server.
//!
//! | what stays on a server | how it goes |
//! |---|---|
//! | a retained message (last-value), or that of a will | an empty one with RETAIN 1 (5.0 §3.3.1.3) |
//! | the session of MQTT 5 | Session Expiry Interval 0 in DISCONNECT (5.0 §3.14.2.2.2) |
//! | the session of MQTT 3.1.1, or of a client that is not connected | a connection with Clean Session or Clean Start 1 |

use pubgauge_driver::{ClientId, Fleet, Nanos};
use pubgauge_mqtt_codec::{Packet, Publish};
use pubgauge_net::fleet::{State, TcpFleet};
use pubgauge_net::topics::Named;

use crate::client::{Left, Mqtt};

/// Connections that are made at once to remove things.
const AT_ONCE: usize = 64;

/// A connection without a session, which ends the client's earlier session, and removes the
/// retained messages of these topics.
struct Visit {
    client: ClientId,
    topics: Vec<String>,
}

/// Ends all clients by `until`, and removes what they would leave behind. Last values are removed
/// when no client of the fleet is subscribed any more, so that none gets the empty messages.
pub(crate) fn leave(fleet: &mut TcpFleet<Mqtt>, until: Nanos) {
    fleet.protocol.leaving = true;
    fleet.leave(until);
    let retained = retained(fleet);
    let count = retained.len();
    let visits = visits(fleet, retained);
    let cleared = visit(fleet, visits, until);
    fleet.protocol.left = Left {
        cleared,
        retained: count - cleared,
        sessions: fleet.clients.iter().filter(|c| c.own.has_session).count(),
    };
}

/// Topics whose last value this fleet published, each with the client that did.
fn retained(fleet: &TcpFleet<Mqtt>) -> Vec<(u32, String)> {
    let wills = fleet.clients.iter().enumerate().filter_map(|(n, client)| {
        let will = client
            .own
            .will
            .as_ref()
            .filter(|_| client.own.will_was_due)?;
        Some((n as u32, will.topic.clone()))
    });
    let topics = fleet.protocol.topics.iter();
    let published = topics
        .filter(|(_, topic)| topic.published && topic.retain)
        .map(|(client, topic)| (client, topic.name().to_owned()));
    let mut topics: Vec<(u32, String)> = published.chain(wills).collect();
    topics.sort_by(|a, b| a.1.cmp(&b.1));
    topics.dedup_by(|a, b| a.1 == b.1);
    topics
}

/// The clients that have to connect once more: one for the last values at each endpoint, and all
/// whose sessions are still there.
fn visits(fleet: &TcpFleet<Mqtt>, retained: Vec<(u32, String)>) -> Vec<Visit> {
    let place = |id: u32| fleet.clients[id as usize].place;
    let mut visits: Vec<Visit> = Vec::new();
    for (client, topic) in retained {
        let mut known = visits.iter_mut();
        match known.find(|visit| place(visit.client.0) == place(client)) {
            Some(visit) => visit.topics.push(topic),
            None => visits.push(Visit {
                client: ClientId(client),
                topics: vec![topic],
            }),
        }
    }
    let places = visits.len();
    for id in (0..fleet.clients.len() as u32).map(ClientId) {
        let known = visits[..places].iter().any(|visit| visit.client == id);
        if fleet.clients[id.0 as usize].own.has_session && !known {
            visits.push(Visit {
                client: id,
                topics: Vec::new(),
            });
        }
    }
    visits
}

/// Makes the visits. Returns how many last values were removed.
fn visit(fleet: &mut TcpFleet<Mqtt>, mut waiting: Vec<Visit>, until: Nanos) -> usize {
    let mut under_way: Vec<Visit> = Vec::new();
    let mut cleared = 0;
    loop {
        while under_way.len() < AT_ONCE
            && fleet.now() < until
            && let Some(visit) = waiting.pop()
        {
            let client = &mut fleet.clients[visit.client.0 as usize];
            client.own.ended_in_order = false;
            if client.state == State::Down && fleet.begin(visit.client).is_ok() {
                under_way.push(visit);
            }
        }
        if under_way.is_empty() || fleet.now() >= until {
            return cleared;
        }
        fleet.run_until(until, |fleet| {
            let state = |visit: &Visit| fleet.clients[visit.client.0 as usize].state;
            let moved = |visit| matches!(state(visit), State::Connected | State::Down);
            under_way.iter().any(moved)
        });
        under_way.retain(|visit| {
            let client = &fleet.clients[visit.client.0 as usize];
            match client.state {
                State::Connected => {
                    clear(fleet, visit);
                    fleet.disconnect(visit.client);
                    true
                }
                State::Down => {
                    if client.own.ended_in_order {
                        cleared += visit.topics.len();
                    }
                    false
                }
                _ => true,
            }
        });
    }
}

/// Removes the last values of a visit's topics.
fn clear(fleet: &mut TcpFleet<Mqtt>, visit: &Visit) {
    let (mqtt, mut link) = fleet.link(visit.client);
    for topic in &visit.topics {
        let empty = Packet::Publish(Publish {
            topic,
            retain: true,
            ..Publish::default()
        });
        // Encoding cannot fail for a topic that was published to.
        let _ = empty.encode(mqtt.options.version, &mut link.out().bytes);
    }
}
