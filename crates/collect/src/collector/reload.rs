//! Another configuration for a collector that runs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::lead::Loop;
use super::{Certificates, names, session_requests};
use crate::config::{Broker, Config};
use crate::notice::Notice;

/// Takes other configurations for a collector that runs.
#[derive(Clone, Debug, Default)]
pub struct Reloads(Arc<Mutex<Option<Config>>>);

impl Reloads {
    /// Has the collector go on with this one. What it cannot change while it works must be as it was
    /// ([`crate::config::read_again`] sees to that). It tells [`Notice::Reloaded`] or [`Notice::NotReloaded`].
    pub fn replace(&self, config: Config) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(config);
    }

    pub(super) fn take(&self) -> Option<Config> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Loop {
    /// Goes on with another configuration. Certificates, passwords, expiry and keep alive count from the next connection on.
    pub(super) fn reload(&mut self, config: Config) {
        match Certificates::read(&config.brokers) {
            Ok(certificates) => self.collector.certificates = certificates,
            Err(error) => {
                let why = error.to_string();
                return self.notice(&Notice::NotReloaded { why });
            }
        }
        let old = std::mem::replace(&mut self.collector.config, config);
        let config = &self.collector.config;
        let asked_before = std::mem::take(&mut self.asked.filters);
        let mut before = asked_before.clone();
        before.append(&mut self.asked.dropped_filters);
        let in_flight = self.asked.in_flight;
        self.asked = session_requests(config, &self.collector.name, &before, in_flight);
        self.names = names(config, &self.collector.look_up, &self.waker);
        let filters = &self.asked.filters;
        let added: Vec<String> = filters
            .iter()
            .filter(|new| old.qos != config.qos || !asked_before.contains(new))
            .cloned()
            .collect();
        let changed = !added.is_empty() || asked_before.len() != filters.len();
        self.keep_peers_of(&old);
        if changed {
            self.ask_again(&added);
        }
        self.remember();
        self.notice(&Notice::Reloaded);
    }

    /// Leaves the brokers that are not in the configuration any more; their sessions stay.
    fn keep_peers_of(&mut self, old: &Config) {
        for mut peer in std::mem::take(&mut self.peers) {
            let name = &old.brokers[peer.endpoint].endpoint.shown;
            let brokers = &self.collector.config.brokers;
            let is_it = |broker: &Broker| broker.endpoint.shown == *name;
            if let Some(at) = brokers.iter().position(is_it) {
                peer.endpoint = at;
                peer.session.log_in_as(&brokers[at]);
                if peer.link.as_ref().is_some_and(|link| link.connecting) {
                    // It was begun with the certificates of before, which do not prove to whom the new password goes.
                    peer.drop_link(Instant::now());
                }
                self.peers.push(peer);
                continue;
            }
            if let Some(link) = peer.link.as_mut().filter(|link| !link.connecting) {
                peer.session.leave(&self.asked, link.out());
                // The broker learns what it does not take now from the end of the connection.
                let _ = link.flush();
            }
            self.collector.status.forget(&peer.session.broker);
            if peer.session.had_session {
                self.notice(&Notice::BrokerLeft {
                    name: name.clone(),
                    broker: peer.session.broker.clone(),
                });
            }
        }
    }

    fn ask_again(&mut self, added: &[String]) {
        let mut failed = Vec::new();
        for (at, peer) in self.peers.iter_mut().enumerate() {
            let mut out = Vec::new();
            let asked = peer.session.ask_again(&self.asked, added, &mut out);
            if let Some(link) = peer.link.as_mut() {
                link.out().append(&mut out);
                let written = asked.and_then(|()| link.flush());
                failed.extend(written.err().map(|why| (at, why)));
            }
        }
        for (at, why) in failed {
            self.lost(at, why, Instant::now());
        }
    }
}
