//! What the tests against real sockets share: a pair that can hear each other, and a forwarder.
#![allow(dead_code, missing_docs)]

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use pubgauge_driver::{ClientId, ClientSpec, Settings, Target, TopicId};
use pubgauge_driver_zeromq::{
    ForwarderAddress, ForwarderCounts, ForwarderOptions, ZeromqDriver, forwarder,
};

pub use pubgauge_testing::{CheckedRig as Rig, Heard, Recorder, SECOND, subscription};

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

pub fn settings(json: serde_json::Value) -> Settings {
    serde_json::from_value(json).expect("settings")
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

/// A forwarder in a thread of its own.
pub struct RunningForwarder {
    pub address: ForwarderAddress,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<ForwarderCounts>>,
}

impl RunningForwarder {
    pub fn tcp(settings: &Settings) -> Self {
        Self::start(
            ForwarderAddress::Tcp {
                host: Ipv4Addr::LOCALHOST.to_string(),
                xsub_port: 0,
                xpub_port: 0,
            },
            settings,
        )
    }

    pub fn ipc(scratch: &tempfile::TempDir, settings: &Settings) -> Self {
        let path = |name: &str| scratch.path().join(name).display().to_string();
        Self::start(
            ForwarderAddress::Ipc {
                xsub_path: path("in"),
                xpub_path: path("out"),
            },
            settings,
        )
    }

    pub fn start(address: ForwarderAddress, settings: &Settings) -> Self {
        let options = ForwarderOptions::new(address, settings).expect("options");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            forwarder::run(&options, |a| tell.send(a.clone()).unwrap(), &stopped).expect("runs")
        });
        RunningForwarder {
            address: told.recv().expect("binds"),
            stop,
            thread: Some(thread),
        }
    }

    pub fn target(&self) -> Target {
        Target {
            endpoints: vec![self.address.to_string()],
            scratch: PathBuf::from("/nonexistent"),
            ..Target::default()
        }
    }

    pub fn stop(&mut self) -> ForwarderCounts {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().expect("runs").join().expect("ends well")
    }
}

impl Drop for RunningForwarder {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.stop();
        }
    }
}
