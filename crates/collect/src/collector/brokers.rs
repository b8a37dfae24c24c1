//! The brokers of a collector: connections that come and go, and addresses that come and go.

use std::net::SocketAddr;
use std::time::Instant;

use super::lead::Loop;
use crate::clock::unix_s;
use crate::known::{Known, KnownBroker};
use crate::link::Link;
use crate::notice::Notice;
use crate::peer::Peer;
use crate::session::{BrokerSession, Canary};

impl Loop {
    pub(super) fn came_up(&mut self, at: usize) {
        let peer = &mut self.peers[at];
        peer.connected_s = unix_s();
        let broker = peer.session.broker.clone();
        let session_present = peer.session.was_present;
        self.collector.status.broker(&broker, |status| {
            status.connected = true;
            status.connections += 1;
        });
        self.notice(&Notice::Connected {
            broker,
            session_present,
        });
        self.remember();
    }

    pub(super) fn lost(&mut self, at: usize, why: String, now: Instant) {
        let peer = &mut self.peers[at];
        if peer.is_up() {
            peer.connected_s = unix_s();
        }
        let wait = peer.failed(now);
        let notice = peer.failure(why, wait);
        self.collector
            .status
            .broker(&peer.session.broker, |status| status.connected = false);
        self.notice(&notice);
        self.remember();
    }

    /// Connects, keeps sessions alive, gives up what has expired.
    pub(super) fn keep_connections(&mut self, now: Instant) {
        let reads = !self.is_full();
        let mut at = 0;
        while at < self.peers.len() {
            if self.has_expired(at) {
                self.give_up(at);
                continue;
            }
            let held = !self.may_log_in(at);
            let peer = &mut self.peers[at];
            peer.held = held;
            if held && peer.link.as_ref().is_some_and(|link| link.connecting) {
                peer.drop_link(now);
            }
            let kept = if peer.is_due(now) {
                self.connect(at, now)
            } else {
                let kept = peer.keep_alive(now, reads);
                kept.and_then(|()| peer.link.as_mut().map_or(Ok(()), Link::flush))
            };
            if let Err(why) = kept {
                self.lost(at, why, now);
            }
            at += 1;
        }
        self.note_connected();
    }

    /// Writes down from time to time which brokers are connected: after a kill, expiry counts from what stands there.
    fn note_connected(&mut self) {
        let every = u64::from(self.collector.config.session_expiry_s / 20).clamp(1, 3600);
        let now_s = unix_s();
        let mut is_old = false;
        for peer in self.peers.iter_mut().filter(|peer| peer.is_up()) {
            if now_s.abs_diff(peer.connected_s) >= every {
                peer.connected_s = now_s;
                is_old = true;
            }
        }
        if is_old {
            self.remember();
        }
    }

    /// Whether the password may go to a peer's address: its name stands for it now, or TLS proves the name there. An
    /// address of a file, or one that a name had yesterday, may be anybody's.
    fn may_log_in(&self, at: usize) -> bool {
        let peer = &self.peers[at];
        let broker = &self.collector.config.brokers[peer.endpoint];
        let is_proven = broker.endpoint.encryption.is_on() && !broker.tls.insecure;
        peer.named || is_proven || broker.password.is_none()
    }

    fn connect(&mut self, at: usize, now: Instant) -> Result<(), String> {
        let peer = &mut self.peers[at];
        let tls = self.collector.certificates.begin(peer.endpoint)?;
        let broker = &self.collector.config.brokers[peer.endpoint];
        let link = Link::begin(
            peer.address,
            &peer.session.shown,
            tls,
            broker.endpoint.websocket.as_deref(),
            self.collector.status.wire.clone(),
        )?;
        peer.begin(link, now);
        Ok(())
    }

    fn has_expired(&self, at: usize) -> bool {
        let peer = &self.peers[at];
        let expiry = u64::from(self.collector.config.session_expiry_s);
        peer.gone && !peer.is_up() && unix_s().saturating_sub(peer.connected_s) > expiry
    }

    fn give_up(&mut self, at: usize) {
        let peer = self.peers.remove(at);
        let name = self.collector.config.brokers[peer.endpoint]
            .endpoint
            .shown
            .clone();
        let broker = peer.session.broker;
        self.collector.status.forget(&broker);
        if peer.session.had_session {
            self.notice(&Notice::AddressGivenUp { name, broker });
        }
        self.remember();
    }

    /// The brokers that had a session of this collector.
    pub(super) fn recall(&mut self, known: &Known) {
        for (broker, seen) in &known.brokers {
            let endpoint = self
                .collector
                .config
                .brokers
                .iter()
                .position(|one| one.endpoint.shown == seen.name);
            let (Some(endpoint), Ok(address)) = (endpoint, broker.parse()) else {
                let (name, broker) = (seen.name.clone(), broker.clone());
                self.notice(&Notice::BrokerLeft { name, broker });
                continue;
            };
            let peer = self.add(endpoint, address);
            peer.named = false;
            peer.session.had_session = true;
            peer.connected_s = seen.connected_s;
        }
    }

    fn add(&mut self, endpoint: usize, address: SocketAddr) -> &mut Peer {
        let configured = &self.collector.config.brokers[endpoint];
        let broker = address.to_string();
        self.collector.status.broker(&broker, |_| {});
        let canary = (self.collector.config.canary.as_ref())
            .map(|asked| Canary::new(asked, &self.collector.name, Instant::now()));
        let shown = configured.endpoint.shown.clone();
        let mut session = BrokerSession::new(self.next_peer, broker, shown);
        session.log_in_as(configured);
        session.canary = canary;
        self.next_peer += 1;
        let mut peer = Peer::new(endpoint, address, session, Instant::now());
        peer.connected_s = unix_s();
        self.peers.push(peer);
        let last = self.peers.len() - 1;
        if self.is_leaving {
            self.begin_leaving(last);
        }
        &mut self.peers[last]
    }

    pub(super) fn look_at_names(&mut self) {
        while let Some((endpoint, found)) = self.names.take_found() {
            let name = self.collector.config.brokers[endpoint]
                .endpoint
                .shown
                .clone();
            let addresses = match found {
                Ok(addresses) => addresses,
                Err(error) => {
                    let why = error.to_string();
                    self.notice(&Notice::NameNotFound { name, why });
                    continue;
                }
            };
            for &address in &addresses {
                if !self.is_known(endpoint, address) {
                    let broker = address.to_string();
                    self.notice(&Notice::AddressFound {
                        name: name.clone(),
                        broker,
                    });
                    self.add(endpoint, address);
                }
            }
            let mut changed = Vec::new();
            for peer in self
                .peers
                .iter_mut()
                .filter(|peer| peer.endpoint == endpoint)
            {
                let gone = !addresses.contains(&peer.address);
                peer.named = !gone;
                if gone != peer.gone {
                    peer.gone = gone;
                    changed.push((peer.session.broker.clone(), gone));
                }
            }
            for (broker, gone) in changed {
                self.collector
                    .status
                    .broker(&broker, |status| status.gone = gone);
                let name = name.clone();
                let of_it = |peer: &Peer| peer.session.broker == broker;
                let at = self.peers.iter().position(of_it);
                let is_held = at.is_some_and(|at| !self.may_log_in(at));
                self.notice(&match (gone, is_held) {
                    (false, _) => Notice::AddressFound { name, broker },
                    (true, false) => Notice::AddressGone { name, broker },
                    (true, true) => Notice::AddressHeld { name, broker },
                });
            }
        }
    }

    /// Whether an address has a peer of this endpoint, or of another whose name stood for it, too. One that only the
    /// sessions' file gave to another name makes room.
    fn is_known(&mut self, endpoint: usize, address: SocketAddr) -> bool {
        let found = self.peers.iter().position(|peer| peer.address == address);
        let Some(at) = found else {
            return false;
        };
        let peer = &self.peers[at];
        if peer.endpoint == endpoint || peer.named || peer.link.is_some() {
            return true;
        }
        let peer = self.peers.remove(at);
        self.collector.status.forget(&peer.session.broker);
        false
    }

    /// Writes down where sessions are.
    pub(super) fn remember(&self) {
        let Some(folder) = &self.collector.folder else {
            return;
        };
        let brokers = &self.collector.config.brokers;
        let each = self
            .peers
            .iter()
            .filter(|peer| peer.session.had_session)
            .map(|peer| {
                let name = brokers[peer.endpoint].endpoint.shown.clone();
                let seen = KnownBroker {
                    name,
                    connected_s: peer.connected_s,
                };
                (peer.session.broker.clone(), seen)
            });
        let mut filters = self.asked.filters.clone();
        let is_asked = |peer: &Peer| !peer.session.had_session || peer.session.has_left;
        if !self.peers.iter().all(is_asked) {
            // Sessions there still have them.
            filters.extend_from_slice(&self.asked.dropped_filters);
        }
        let known = Known {
            brokers: each.collect(),
            filters,
        };
        // On a full disk the older file stays; the same brokers are found by their names.
        let _ = known.write(folder.collectors_folder());
    }
}
