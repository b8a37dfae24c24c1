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

/// Connections that are made at once to remove things.
const AT_ONCE: usize = 64;

/// What the end of a fleet came to.
#[derive(Default)]
pub(crate) struct Left {
    /// Retained messages that were taken away: so many were published for it.
    pub cleared: usize,
    /// Retained messages that may be there still.
    retained: usize,
    /// Sessions that may be there still.
    sessions: usize,
}

/// A connection without a session, which ends the session that there was, and takes away the
/// retained messages of these topics.
struct Visit {
    client: ClientId,
    topics: Vec<String>,
}

impl MqttFleet {
    /// Ends all clients by `until`, with what they would leave behind. Last values go when none of
    /// the fleet's clients is subscribed any more, so that nobody gets the empty messages.
    pub fn leave(&mut self, until: Nanos) {
        self.shared.leaving = true;
        for id in 0..self.clients.len() as u32 {
            self.disconnect(ClientId(id));
        }
        self.run_unheard(until, |fleet| {
            fleet.clients.iter().all(|c| c.state == State::Down)
        });
        let retained = self.retained();
        let count = retained.len();
        let cleared = self.visit(self.visits(retained), until);
        for id in 0..self.clients.len() as u32 {
            self.drop_connection(ClientId(id));
        }
        self.left = Left {
            cleared,
            retained: count - cleared,
            sessions: self.clients.iter().filter(|c| c.has_session).count(),
        };
    }

    /// What [`MqttFleet::leave`] could not remove.
    pub fn left_words(&self) -> Option<String> {
        let Left {
            retained, sessions, ..
        } = self.left;
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

    /// Who has to connect once more: one client for the last values at each place, and all whose
    /// sessions are still there.
    fn visits(&self, retained: Vec<(u32, String)>) -> Vec<Visit> {
        let place = |id: u32| self.clients[id as usize].endpoint;
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
        for id in (0..self.clients.len() as u32).map(ClientId) {
            let known = visits[..places].iter().any(|visit| visit.client == id);
            if self.clients[id.0 as usize].has_session && !known {
                visits.push(Visit {
                    client: id,
                    topics: Vec::new(),
                });
            }
        }
        visits
    }

    /// Makes the visits. Returns how many last values were taken away.
    fn visit(&mut self, mut waiting: Vec<Visit>, until: Nanos) -> usize {
        let mut under_way: Vec<Visit> = Vec::new();
        let mut cleared = 0;
        loop {
            while under_way.len() < AT_ONCE
                && self.turns.now() < until
                && let Some(visit) = waiting.pop()
            {
                let state = self.clients[visit.client.0 as usize].state;
                if state == State::Down && self.begin(visit.client).is_ok() {
                    under_way.push(visit);
                }
            }
            if under_way.is_empty() || self.turns.now() >= until {
                return cleared;
            }
            self.run_unheard(until, |fleet| {
                let state = |visit: &Visit| fleet.clients[visit.client.0 as usize].state;
                let moved = |visit| matches!(state(visit), State::Connected | State::Down);
                under_way.iter().any(moved)
            });
            under_way.retain(|visit| {
                let client = &self.clients[visit.client.0 as usize];
                match client.state {
                    State::Connected => {
                        self.clear(visit);
                        self.disconnect(visit.client);
                        true
                    }
                    State::Down => {
                        if client.ended_in_order {
                            cleared += visit.topics.len();
                        }
                        false
                    }
                    _ => true,
                }
            });
        }
    }

    /// Takes the last values of a visit's topics away.
    fn clear(&mut self, visit: &Visit) {
        let version = self.shared.options.version;
        let client = &mut self.clients[visit.client.0 as usize];
        for topic in &visit.topics {
            let empty = Packet::Publish(Publish {
                topic,
                retain: true,
                ..Publish::default()
            });
            let out = client.out.get_or_insert_with(|| self.shared.out_pool.get());
            // A topic that was published to always encodes.
            let _ = empty.encode(version, &mut out.bytes);
        }
        self.shared.mark_dirty(client, visit.client);
    }
}
