//! A driver and a running system as a check uses them: it opens fleets and pairs on it.

use std::sync::atomic::{AtomicU32, Ordering};

use super::pair::Pair;
use super::rig::{LARGEST, Rig};
use super::violation::Violation;
use pubgauge_driver::clock::Clock;
use pubgauge_driver::seam::{Change, ClientId, ClientSpec, FleetConfig, Target};
use pubgauge_driver::settings::{Reliability, Session, Settings};
use pubgauge_driver::{Driver, Lifecycle};

/// A driver and a running system, under one set of settings.
pub(super) struct CheckSetup<'a> {
    pub driver: &'a dyn Driver,
    pub target: &'a Target,
    pub settings: Settings,
    /// The system's server, where checks may kill it.
    pub server: Option<&'a mut dyn Lifecycle>,
    /// Number of the check, so that none receives another's messages.
    number: u32,
    fleets: u32,
}

impl<'a> CheckSetup<'a> {
    pub fn new(driver: &'a dyn Driver, target: &'a Target, settings: Settings) -> Self {
        // Each setup has its own topics: messages left in a system must not reach another one.
        static SETUPS: AtomicU32 = AtomicU32::new(0);
        CheckSetup {
            driver,
            target,
            settings,
            server: None,
            number: SETUPS.fetch_add(1, Ordering::Relaxed) * 100,
            fleets: 0,
        }
    }

    /// Goes on to the next check.
    pub fn next(&mut self) {
        self.number += 1;
    }
}

impl CheckSetup<'_> {
    pub fn open(&mut self, clients: usize) -> Result<Rig, Violation> {
        self.fleets += 1;
        let clock = Clock::Monotonic;
        let fleet = self.driver.open(FleetConfig {
            target: self.target.clone(),
            settings: self.settings.clone(),
            max_payload: LARGEST,
            clients,
            worker: self.number * 10 + self.fleets,
            ..FleetConfig::default()
        })?;
        Ok(Rig::new(fleet, clock))
    }

    /// The name of a client of this check.
    pub fn name(&self, who: &str) -> String {
        format!("conform-{}-{}-{who}", std::process::id(), self.number)
    }

    /// The level above this check's topics.
    pub fn base(&self) -> String {
        format!("conform-{}/{}", std::process::id(), self.number)
    }

    /// A topic below [`Setup::base`].
    pub fn topic(&self, which: &str) -> String {
        format!("{}/{which}", self.base())
    }

    /// Publishers and subscribers in one fleet each, connected, subscribed to `filter`, and proven
    /// to receive from every publisher.
    pub fn pair(
        &mut self,
        publishers: usize,
        subscribers: usize,
        filter: &str,
    ) -> Result<Pair, Violation> {
        let traits = self.driver.traits(&self.settings);
        let (mut out, mut into) = (self.open(publishers)?, self.open(subscribers)?);
        let mut peers = Vec::new();
        let mut senders = Vec::new();
        for p in 0..publishers {
            let (client, address) = out.connect(ClientSpec {
                name: self.name(&format!("p{p}-{}", self.fleets)),
                publishes: true,
                ..ClientSpec::default()
            })?;
            let topic = out.fleet.advertise(client, &self.topic(&format!("t{p}")))?;
            senders.push((client, topic));
            peers.extend(address);
        }
        if traits.publishers_first && peers.len() != publishers {
            return Err("publishers come first, but told no address".into());
        }
        for s in 0..subscribers {
            let (client, _) = into.connect(ClientSpec {
                name: self.name(&format!("s{s}-{}", self.fleets)),
                subscribes: true,
                peers: peers.clone(),
                ..ClientSpec::default()
            })?;
            into.subscribe(client, filter)?;
        }
        let mut pair = Pair { out, into, senders };
        pair.prove(subscribers)?;
        Ok(pair)
    }

    /// Checks that deliveries that name a topic name that of their stream: streams 0, 1 and so on are published on
    /// `t0`, `t1` and so on.
    pub fn check_names(&self, pair: &Pair) -> Result<(), Violation> {
        for (stream, topics) in &pair.into.seen.named {
            let expected = self.topic(&format!("t{stream}"));
            if let Some(other) = topics.iter().find(|topic| **topic != expected) {
                return Err(
                    format!("a message on {expected} was delivered as one on {other}").into(),
                );
            }
        }
        Ok(())
    }

    /// A client that reports whether it had a session.
    pub(super) fn client(
        &self,
        rig: &mut Rig,
        who: &str,
        publishes: bool,
    ) -> Result<Joined, Violation> {
        let (client, address) = rig.connect(ClientSpec {
            name: self.name(who),
            publishes,
            subscribes: !publishes,
            ..ClientSpec::default()
        })?;
        Ok(Joined { client, address })
    }

    /// The settings with a durable session added, where the system has one.
    pub(super) fn with_session(&self) -> Option<Settings> {
        [
            None,
            Some(Reliability::AtLeastOnce),
            Some(Reliability::Reliable),
        ]
        .into_iter()
        .map(|reliability| Settings {
            session: Some(Session::Durable),
            reliability: reliability.or(self.settings.reliability),
            ..self.settings.clone()
        })
        // Messages that may be lost need not be kept for a subscriber that is away.
        .find(|s| !s.may_lose() && self.driver.resolve(s, self.target).is_ok())
    }

    /// Disconnects the subscriber; its session stays.
    pub(super) fn leave(&self, pair: &mut Pair) -> Result<(), Violation> {
        pair.into.fleet.disconnect(ClientId(0));
        pair.into
            .await_change(ClientId(0), "disconnect", |c| *c == Change::Closed)?;
        Ok(())
    }

    /// Connects the subscriber again, which subscribes again only if its session is gone; returns
    /// whether the session was there.
    pub(super) fn come_back(&self, pair: &mut Pair) -> Result<bool, Violation> {
        let into = &mut pair.into;
        let back = into.reconnect(ClientId(0))?;
        let present = matches!(
            back,
            Change::Connected {
                session_present: true,
                ..
            }
        );
        if !present {
            into.subscribe(ClientId(0), &self.topic("t0"))?;
        }
        Ok(present)
    }

    /// Waits until the system has taken everything that was accepted.
    pub(super) fn settle(&self, pair: &mut Pair) -> Result<(), Violation> {
        pair.until("acknowledgements", |p| p.out.fleet.unsettled() == 0)?;
        pair.quiet()
    }
}

/// A connected client.
pub(super) struct Joined {
    pub client: ClientId,
    pub address: Option<String>,
}
