//! The end of a fleet: what its clients would leave on the server is removed.
//!
//! | what stays on a server | how it goes |
//! |---|---|
//! | a retained message (last-value), or that of a will | an empty one with RETAIN 1 (5.0 §3.3.1.3) |
//! | the session of MQTT 5 | Session Expiry Interval 0 in DISCONNECT (5.0 §3.14.2.2.2) |
//! | the session of MQTT 3.1.1, or of a client that is not connected | a connection with Clean Session or Clean Start 1 |

use pubgauge_driver::{ClientId, Fleet, Nanos};
use pubgauge_mqtt_codec::{Packet, Publish};
use pubgauge_net::turns::Driven;

use crate::client::State;
use crate::fleet::MqttFleet;

/// Connections that are made at once to end sessions.
const AT_ONCE: usize = 64;

impl MqttFleet {
    /// Ends all clients by `until`, with what they would leave behind.
    pub fn leave(&mut self, until: Nanos) {
        self.shared.leaving = true;
        let retained = self.retained();
        if !retained.is_empty() && self.connected_client(0).is_none() {
            let first = ClientId(0);
            let over = |fleet: &Self| {
                let state = fleet.clients.first().map_or(State::Down, |c| c.state);
                matches!(state, State::Connected | State::Down)
            };
            if self.begin(first).is_ok() {
                self.run_unheard(until, over);
            }
        }
        let cleared_by = self.clear(&retained);
        for id in 0..self.clients.len() as u32 {
            self.disconnect(ClientId(id));
        }
        self.run_unheard(until, |fleet| {
            fleet.clients.iter().all(|c| c.state == State::Down)
        });
        let in_order = |by: &&Option<ClientId>| {
            by.is_some_and(|id| self.clients[id.0 as usize].ended_in_order)
        };
        let cleared = cleared_by.iter().filter(in_order).count();
        self.end_sessions(until);
        for id in 0..self.clients.len() as u32 {
            self.drop_connection(ClientId(id));
        }
        let sessions = self.clients.iter().filter(|c| c.has_session).count();
        self.left = (retained.len() - cleared, sessions);
    }

    /// What [`MqttFleet::leave`] could not remove.
    pub fn left_words(&self) -> Option<String> {
        let (retained, sessions) = self.left;
        let mut what = Vec::new();
        if retained > 0 {
            what.push(format!("retained messages ({retained})"));
        }
        if sessions > 0 {
            what.push(format!("durable sessions ({sessions})"));
        }
        let shown = &self.shared.endpoints.first()?.shown;
        (!what.is_empty()).then(|| {
            format!(
                "{shown}: {} of this trial may still be on the server, which did not answer in time at the end\n  hint: topics and client identifiers of a trial carry its mark; remove them there if the server is to be used further",
                what.join(" and ")
            )
        })
    }

    /// Topics whose last value is of this fleet, each with the client that published it.
    fn retained(&self) -> Vec<(u32, String)> {
        let wills = self.clients.iter().enumerate().filter_map(|(n, client)| {
            let will = client.will.as_ref().filter(|_| client.will_was_due)?;
            Some((n as u32, will.topic.clone()))
        });
        let published = match self.shared.options.retain {
            true => self.shared.topics.published(),
            false => Vec::new(),
        };
        let mut topics: Vec<(u32, String)> = published.into_iter().chain(wills).collect();
        topics.sort_by(|a, b| a.1.cmp(&b.1));
        topics.dedup_by(|a, b| a.1 == b.1);
        topics
    }

    /// This client if it is connected, else another.
    fn connected_client(&self, wanted: u32) -> Option<ClientId> {
        let connected = |n: &usize| self.clients[*n].state == State::Connected;
        let wanted = Some(wanted as usize).filter(|n| *n < self.clients.len() && connected(n));
        let found = wanted.or_else(|| (0..self.clients.len()).find(connected));
        found.map(|n| ClientId(n as u32))
    }

    /// Takes the topics' last values away. Says for each who does it.
    fn clear(&mut self, topics: &[(u32, String)]) -> Vec<Option<ClientId>> {
        let version = self.shared.options.version;
        let mut by = Vec::with_capacity(topics.len());
        for (client, topic) in topics {
            let id = self.connected_client(*client);
            by.push(id);
            let Some(id) = id else { continue };
            let client = &mut self.clients[id.0 as usize];
            let empty = Packet::Publish(Publish {
                topic,
                retain: true,
                ..Publish::default()
            });
            let out = client.out.get_or_insert_with(|| self.shared.out_pool.get());
            // A topic that was published to always encodes.
            let _ = empty.encode(version, &mut out.bytes);
            self.shared.mark_dirty(client, id);
        }
        by
    }

    /// Ends the sessions that the server still has.
    fn end_sessions(&mut self, until: Nanos) {
        let has_session = |id: &ClientId| self.clients[id.0 as usize].has_session;
        let ids = (0..self.clients.len() as u32).map(ClientId);
        let mut waiting: Vec<ClientId> = ids.filter(has_session).collect();
        let mut under_way: Vec<ClientId> = Vec::new();
        loop {
            while under_way.len() < AT_ONCE
                && let Some(id) = waiting.pop()
            {
                if self.clients[id.0 as usize].state == State::Down && self.begin(id).is_ok() {
                    under_way.push(id);
                }
            }
            if under_way.is_empty() || self.turns.now() >= until {
                return;
            }
            self.run_unheard(until, |fleet| {
                let state = |id: &ClientId| fleet.clients[id.0 as usize].state;
                let moved = |id| matches!(state(id), State::Connected | State::Down);
                under_way.iter().any(moved)
            });
            under_way.retain(|id| match self.clients[id.0 as usize].state {
                State::Connected => {
                    self.disconnect(*id);
                    true
                }
                State::Down => false,
                _ => true,
            });
        }
    }
}
