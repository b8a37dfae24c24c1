//! What the tests share: a real ejabberd, and a fleet that is polled until something happens.

#![allow(dead_code)] // Each test file uses some of it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pubgauge_driver::{
    Acknowledgement, Change, ClientId, ClientSpec, Clock, Delivery, Driver, Drivers, Events, Fleet,
    FleetConfig, Payload, Publish, Settings, Subscription, Target, TopicId,
};
use pubgauge_driver_xmpp::XmppDriver;
use pubgauge_testbed::SystemFile;
use pubgauge_testing::Server;

/// Longest wait for anything.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A private ejabberd, as `systems/ejabberd.toml` describes it.
pub struct Ejabberd {
    pub server: Server,
    _alone: MutexGuard<'static, ()>,
}

/// One server at a time: the suite has its patience, and the machine may be small.
static ALONE: Mutex<()> = Mutex::new(());

impl Ejabberd {
    pub fn start(variant: &str) -> Ejabberd {
        Self::start_with(variant, |text| text)
    }

    /// With a changed description.
    pub fn start_with(variant: &str, change: impl FnOnce(String) -> String) -> Ejabberd {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../systems/ejabberd.toml"
        );
        let text = change(std::fs::read_to_string(path).unwrap());
        let system = SystemFile::parse(&text, "ejabberd.toml").unwrap();
        Ejabberd {
            server: Server::start(Drivers::default(), &system, Some(variant)),
            _alone: alone,
        }
    }

    pub fn target(&self) -> Target {
        self.server.target.clone()
    }
}

/// A fleet with what it reported.
pub struct Rig {
    pub fleet: Box<dyn Fleet>,
    pub seen: Seen,
}

#[derive(Default)]
pub struct Seen {
    pub changes: Vec<(ClientId, Change)>,
    pub delivered: Vec<Message>,
    pub acknowledged: Vec<(ClientId, u64, Acknowledgement)>,
}

/// A delivery, kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub client: ClientId,
    pub payload: Vec<u8>,
    pub topic: Option<String>,
    pub retained: bool,
}

impl Events for Seen {
    fn arrived(&mut self) {}

    fn delivered(&mut self, client: ClientId, delivery: Delivery<'_>) {
        self.delivered.push(Message {
            client,
            payload: delivery.payload.to_vec(),
            topic: delivery.topic.map(str::to_owned),
            retained: delivery.retained,
        });
    }

    fn acknowledged(&mut self, client: ClientId, tag: u64, answer: Acknowledgement) {
        self.acknowledged.push((client, tag, answer));
    }

    fn changed(&mut self, client: ClientId, change: Change) {
        self.changes.push((client, change));
    }
}

impl Rig {
    pub fn open(target: &Target, settings: &Settings) -> Rig {
        let fleet = XmppDriver.open(FleetConfig {
            target: target.clone(),
            settings: settings.clone(),
            clock: Clock::Monotonic,
            max_payload: 100_000,
            clients: 4,
            worker: 0,
        });
        Rig {
            fleet: fleet.unwrap_or_else(|error| panic!("{error}")),
            seen: Seen::default(),
        }
    }

    pub fn poll(&mut self, ms: u64) {
        let until = Clock::Monotonic.now() + ms * 1_000_000;
        self.fleet.poll(until, &mut self.seen).unwrap();
    }

    /// Polls for so long, whatever happens.
    pub fn wait(&mut self, ms: u64) {
        let until = Clock::Monotonic.now() + ms * 1_000_000;
        while Clock::Monotonic.now() < until {
            self.fleet.poll(until, &mut self.seen).unwrap();
        }
    }

    pub fn until(&mut self, what: &str, mut done: impl FnMut(&Seen) -> bool) {
        let start = Instant::now();
        while !done(&self.seen) {
            assert!(
                start.elapsed() < PATIENCE,
                "in vain: {what}; changes {:?}, {} delivered",
                self.seen.changes,
                self.seen.delivered.len()
            );
            self.poll(20);
        }
    }

    /// The next change of a client.
    pub fn change(&mut self, client: ClientId) -> Change {
        self.until("a change", |seen| {
            seen.changes.iter().any(|(c, _)| *c == client)
        });
        let index = self
            .seen
            .changes
            .iter()
            .position(|(c, _)| *c == client)
            .unwrap();
        self.seen.changes.remove(index).1
    }

    pub fn begin(&mut self, name: &str, subscribes: bool) -> ClientId {
        let spec = ClientSpec {
            name: name.into(),
            publishes: !subscribes,
            subscribes,
            ..ClientSpec::default()
        };
        self.fleet
            .connect(&spec)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    pub fn connect(&mut self, name: &str, subscribes: bool) -> ClientId {
        let client = self.begin(name, subscribes);
        let change = self.change(client);
        assert!(matches!(change, Change::Connected { .. }), "{change:?}");
        client
    }

    pub fn ask(&mut self, client: ClientId, filter: &str) -> Change {
        let subscription = Subscription {
            filter: filter.into(),
            group: None,
        };
        self.fleet
            .subscribe(client, &subscription)
            .unwrap_or_else(|error| panic!("{error}"));
        self.change(client)
    }

    pub fn subscribe(&mut self, client: ClientId, filter: &str) {
        assert_eq!(self.ask(client, filter), Change::Subscribed);
    }

    pub fn advertise(&mut self, client: ClientId, topic: &str) -> TopicId {
        self.fleet
            .advertise(client, topic)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Publishes one message that begins with `text`, waiting while it is blocked.
    pub fn publish(&mut self, client: ClientId, topic: TopicId, text: &[u8], tag: u64) {
        let start = Instant::now();
        loop {
            match self.fleet.publish(client, topic, payload(text), tag) {
                Publish::Accepted => return,
                Publish::Blocked => self.poll(20),
                Publish::Refused(why) => panic!("refused: {why:?}"),
            }
            assert!(start.elapsed() < PATIENCE, "blocked for good");
        }
    }

    pub fn close(mut self) {
        self.fleet.close(Clock::Monotonic.now() + 5_000_000_000);
    }
}

/// A payload: 16 bytes of header, then the text.
pub fn payload(text: &[u8]) -> Payload<'_> {
    Payload {
        head: &[7; 16],
        body: text,
    }
}

pub fn text(message: &Message) -> &[u8] {
    assert_eq!(message.payload[..16], [7; 16]);
    &message.payload[16..]
}

/// Settings with `native.xmpp.*`.
pub fn native(settings: &[(&str, &str)]) -> Settings {
    let values = settings
        .iter()
        .map(|(name, value)| ((*name).to_owned(), serde_json::from_str(value).unwrap()));
    let mut all = Settings::default();
    all.native.insert("xmpp".into(), values.collect());
    all
}
