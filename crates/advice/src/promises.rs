//! Promises that a fleet asks of a system, which are shown on the running system, and settings that ask for them.

use pubgauge_driver::{Capability, Filtering};
use pubgauge_driver::{Durability, MessagingPattern, Reliability, Session, Settings};

use crate::fleet::{Delivery, Fleet, Hears, Survives};

/// A promise that a system must keep, and the part of the fleet that asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promise {
    /// The promise.
    pub capability: Capability,
    /// The part of the fleet, as it is written there: `keep-last = true`.
    pub because: String,
}

impl Promise {
    fn new(capability: Capability, because: impl Into<String>) -> Promise {
        Promise {
            capability,
            because: because.into(),
        }
    }
}

impl Fleet {
    /// The reliabilities that give the delivery that is asked for, the usual one first. Systems have one of them or another.
    pub fn reliabilities(&self) -> &'static [Reliability] {
        match self.delivery() {
            Delivery::MayBeLost => &[Reliability::AtMostOnce, Reliability::BestEffort],
            Delivery::AtLeastOnce => &[Reliability::AtLeastOnce, Reliability::Reliable],
            Delivery::Once => &[Reliability::ExactlyOnce],
        }
    }

    /// The promises of a system under one of the [`Fleet::reliabilities`].
    pub fn promises(&self, reliability: Reliability) -> Vec<Promise> {
        let file = &self.file;
        let delivery = match self.delivery() {
            Delivery::MayBeLost => "delivery = \"may-be-lost\"",
            Delivery::AtLeastOnce => "delivery = \"at-least-once\"",
            Delivery::Once => "delivery = \"once\"",
        };
        let pattern = Capability::Pattern(MessagingPattern::PublishSubscribe);
        let mut all = vec![
            Promise::new(pattern, "devices and applications"),
            Promise::new(Capability::Reliability(reliability), delivery),
        ];
        for (hears, filter, words) in [
            (Hears::Exact, Filtering::Exact, "hears = \"exact\""),
            (Hears::Below, Filtering::Prefix, "hears = \"below\""),
            (Hears::ByLevel, Filtering::PerLevel, "hears = \"by-level\""),
        ] {
            if file.applications.iter().any(|app| app.hears == hears) {
                all.push(Promise::new(Capability::Filter(filter), words));
            }
        }
        if file.applications.iter().any(|app| app.share) {
            all.push(Promise::new(Capability::Group, "share = true"));
        }
        if file.devices.iter().any(|kind| kind.keep_last) {
            all.push(Promise::new(Capability::LastValue, "keep-last = true"));
        }
        if self.keeps_sessions() {
            let because = "commands for devices that are away";
            all.push(Promise::new(Capability::DurableSession, because));
        }
        if let Some(durability) = self.durability() {
            let because = match durability {
                Durability::DiskSynced => "survive = [\"kill\"]",
                _ => "survive = [\"restart\"]",
            };
            all.push(Promise::new(Capability::Durability(durability), because));
        }
        if file.must.direct {
            let direct = Capability::Pattern(MessagingPattern::PointToPoint);
            all.push(Promise::new(direct, "direct = true"));
        }
        if file.must.content_filter {
            let content = Capability::Filter(Filtering::Content);
            all.push(Promise::new(content, "content-filter = true"));
        }
        all
    }

    /// The settings that ask for these promises.
    pub fn settings(&self, reliability: Reliability) -> Settings {
        let keeps_last = self.file.devices.iter().any(|kind| kind.keep_last);
        Settings {
            reliability: Some(reliability),
            durability: self.durability(),
            session: self.keeps_sessions().then_some(Session::Durable),
            last_value: keeps_last.then_some(true),
            ..Settings::default()
        }
    }

    /// Whether somebody who is away must be remembered: devices that get commands.
    fn keeps_sessions(&self) -> bool {
        let mut kinds = self.file.devices.iter();
        kinds.any(|kind| kind.offline.is_some() && kind.commands.is_some())
    }

    fn durability(&self) -> Option<Durability> {
        let survive = &self.file.must.survive;
        match survive.iter().max()? {
            Survives::Restart => Some(Durability::Disk),
            Survives::Kill => Some(Durability::DiskSynced),
        }
    }
}
