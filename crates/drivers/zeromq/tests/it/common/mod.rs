//! Helpers of tests against real sockets: a pair that can hear each other, and a forwarder.
#![allow(dead_code, missing_docs)]

use std::net::Ipv4Addr;
use std::path::PathBuf;

use pubgauge_driver::{ClientId, ClientSpec, Settings, Target, TopicId};
use pubgauge_driver_zeromq::{
    ForwarderAddress, ForwarderCounts, ForwarderOptions, ZeromqDriver, forwarder,
};
use pubgauge_testing::Background;

pub use pubgauge_driver::Subscription;
pub use pubgauge_testing::{CheckedRig as Rig, Heard, Recorder, SECOND, settings};

pub fn publisher(name: &str) -> ClientSpec {
    ClientSpec {
        name: name.to_owned(),
        publishes: true,
        ..ClientSpec::default()
    }
}

pub fn subscriber(name: &str, peers: &[String]) -> ClientSpec {
    ClientSpec {
        name: name.to_owned(),
        subscribes: true,
        peers: peers.to_vec(),
        ..ClientSpec::default()
    }
}

/// A short private folder: socket paths are limited to 107 bytes.
pub fn scratch() -> tempfile::TempDir {
    tempfile::Builder::new()
        .prefix("pg")
        .tempdir()
        .expect("a folder")
}

pub fn direct(scratch: &tempfile::TempDir) -> Target {
    Target {
        scratch: scratch.path().to_owned(),
        ..Target::default()
    }
}

/// A publisher fleet and a subscriber fleet with one client each, where the subscriber has seen
/// a first message, so that the rest cannot be missed.
pub struct Pair {
    pub publishing: Rig,
    pub subscribing: Rig,
    pub from: ClientId,
    pub to: ClientId,
    pub topic: TopicId,
    /// Where the publisher can be reached; direct topology only.
    pub address: Option<String>,
}

impl Pair {
    pub fn open(driver: ZeromqDriver, settings: &Settings, target: &Target) -> Self {
        let mut publishing = Rig::open(driver, settings.clone(), target.clone(), 0);
        let (from, address) = publishing.connect(&publisher("p"));
        let peers: Vec<String> = address.iter().cloned().collect();
        let mut subscribing = Rig::open(driver, settings.clone(), target.clone(), 1);
        let (to, _) = subscribing.connect(&subscriber("s", &peers));
        subscribing.subscribe(to, "a/b");
        let topic = publishing.fleet.advertise(from, "a/b").expect("advertises");
        let mut pair = Pair {
            publishing,
            subscribing,
            from,
            to,
            topic,
            address,
        };
        pair.prove_delivery();
        pair
    }

    /// Sends messages of stream 999 until one arrives, and takes them all away again.
    pub fn prove_delivery(&mut self) {
        let mut sent = 0;
        while self.subscribing.seen.seen.is_empty() {
            assert!(sent < 1000, "nothing arrives");
            self.publishing.send(self.from, self.topic, 999, sent, 16);
            sent += 1;
            self.publishing.poll_for(0);
            self.subscribing
                .poll_until(SECOND / 100, |s| !s.seen.is_empty());
        }
        self.subscribing.poll_until(60 * SECOND, |s| {
            s.seen.last().is_some_and(|last| last.sequence == sent - 1)
        });
        self.subscribing.seen.seen.clear();
    }
}

/// A forwarder on a thread of its own.
pub type Forwarder = Background<ForwarderAddress, ForwarderCounts>;

pub fn tcp_forwarder(settings: &Settings) -> Forwarder {
    let address = ForwarderAddress::Tcp {
        host: Ipv4Addr::LOCALHOST.to_string(),
        xsub_port: 0,
        xpub_port: 0,
    };
    forwarder_at(address, settings)
}

pub fn ipc_forwarder(scratch: &tempfile::TempDir, settings: &Settings) -> Forwarder {
    let path = |name: &str| scratch.path().join(name).display().to_string();
    let address = ForwarderAddress::Ipc {
        xsub_path: path("in"),
        xpub_path: path("out"),
    };
    forwarder_at(address, settings)
}

pub fn forwarder_at(address: ForwarderAddress, settings: &Settings) -> Forwarder {
    let options = ForwarderOptions::new(address, settings).expect("options");
    Background::start(move |ready, stop| {
        forwarder::run(&options, |bound| ready(bound.clone()), stop).expect("runs")
    })
}

pub fn through(forwarder: &Forwarder) -> Target {
    Target {
        scratch: PathBuf::from("/nonexistent"),
        ..Target::single(forwarder.address.to_string())
    }
}
