//! The check of last values passes for a server however slow it is, and fails for one that keeps
//! none or does not mark what it kept.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use pubgauge_conformance::{Proof, Violation, prove};
use pubgauge_driver::*;

/// From the hand-over of a message until the server has taken it in, ns.
const SLOW: u64 = 200_000_000;

/// Which value of a topic the server keeps for late subscribers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Keeps {
    Last,
    Nothing,
    LastUnmarked,
}

/// A message, and whether it was kept.
type Parcel = (Vec<u8>, bool);

struct Server {
    keeps: Keeps,
    fleets: usize,
    /// Messages that have not been taken in: when they are, topic, payload.
    waiting: VecDeque<(u64, String, Vec<u8>)>,
    kept: HashMap<String, Vec<u8>>,
    /// Fleet, client and topic of a subscriber, with what has come for it.
    subscribers: Vec<(usize, ClientId, String, Vec<Parcel>)>,
}

impl Server {
    fn take_in(&mut self, now: u64) {
        while self.waiting.front().is_some_and(|(due, ..)| *due <= now) {
            let Some((_, topic, payload)) = self.waiting.pop_front() else {
                return;
            };
            for (_, _, filter, inbox) in &mut self.subscribers {
                if *filter == topic {
                    inbox.push((payload.clone(), false));
                }
            }
            match self.keeps {
                Keeps::Nothing => {}
                Keeps::Last | Keeps::LastUnmarked => drop(self.kept.insert(topic, payload)),
            }
        }
    }
}

struct Keeper(Arc<Mutex<Server>>);

impl Driver for Keeper {
    fn name(&self) -> &'static str {
        "keeper"
    }

    fn resolve(&self, _: &Settings, _: &Target) -> Result<Vec<Mapping>, Vec<Unsupported>> {
        Ok(Vec::new())
    }

    fn traits(&self, _: &Settings) -> Traits {
        Traits {
            publishers_first: false,
            back_pressure: false,
            acknowledges: false,
            may_duplicate: false,
            publish_sleeps: false,
        }
    }

    fn open(&self, config: FleetConfig) -> Result<Box<dyn Fleet>, DriverError> {
        let server = Arc::clone(&self.0);
        server.lock().unwrap().fleets += 1;
        let number = server.lock().unwrap().fleets;
        Ok(Box::new(KeeperFleet {
            server,
            number,
            clock: config.clock,
            clients: 0,
            topics: Vec::new(),
            changes: Vec::new(),
        }))
    }
}

struct KeeperFleet {
    server: Arc<Mutex<Server>>,
    number: usize,
    clock: Clock,
    clients: u32,
    topics: Vec<String>,
    changes: Vec<(ClientId, Change)>,
}

impl KeeperFleet {
    /// The server as it is now.
    fn server(&self) -> MutexGuard<'_, Server> {
        let mut server = self.server.lock().unwrap();
        server.take_in(self.clock.now());
        server
    }
}

impl Fleet for KeeperFleet {
    fn connect(&mut self, _: &ClientSpec) -> Result<ClientId, DriverError> {
        let client = ClientId(self.clients);
        self.clients += 1;
        let connected = Change::Connected {
            session_present: false,
            address: None,
        };
        self.changes.push((client, connected));
        Ok(client)
    }

    fn subscribe(&mut self, client: ClientId, wanted: &Subscription) -> Result<(), DriverError> {
        let mut server = self.server();
        let marked = server.keeps != Keeps::LastUnmarked;
        let kept = server.kept.get(&wanted.filter);
        let inbox = kept.map(|payload| (payload.clone(), marked));
        let inbox = inbox.into_iter().collect();
        let subscriber = (self.number, client, wanted.filter.clone(), inbox);
        server.subscribers.push(subscriber);
        drop(server);
        self.changes.push((client, Change::Subscribed));
        Ok(())
    }

    fn advertise(&mut self, _: ClientId, topic: &str) -> Result<TopicId, DriverError> {
        self.topics.push(topic.to_owned());
        Ok(TopicId(self.topics.len() as u32 - 1))
    }

    fn publish(&mut self, _: ClientId, topic: TopicId, payload: Payload<'_>, _: u64) -> Publish {
        let bytes = [payload.head, payload.body].concat();
        let topic = self.topics[topic.0 as usize].clone();
        let due = self.clock.now() + SLOW;
        self.server().waiting.push_back((due, topic, bytes));
        Publish::Accepted
    }

    fn poll(&mut self, until: u64, events: &mut dyn Events) -> Result<(), DriverError> {
        let mut any = !self.changes.is_empty();
        for (client, change) in self.changes.drain(..) {
            events.changed(client, change);
        }
        let mut server = self.server();
        for (fleet, client, _, inbox) in &mut server.subscribers {
            if *fleet != self.number || inbox.is_empty() {
                continue;
            }
            any = true;
            events.arrived();
            for (payload, retained) in inbox.drain(..) {
                let delivery = Delivery {
                    payload: &payload,
                    topic: None,
                    retained,
                    redelivered: false,
                };
                events.delivered(*client, delivery);
            }
        }
        drop(server);
        if !any {
            let left = until.saturating_sub(self.clock.now());
            std::thread::sleep(Duration::from_nanos(left));
        }
        Ok(())
    }

    fn disconnect(&mut self, _: ClientId) {}

    fn abort(&mut self, _: ClientId) {}

    fn reconnect(&mut self, _: ClientId) -> Result<(), DriverError> {
        Ok(())
    }

    fn unsettled(&self) -> u64 {
        0
    }

    fn wire_bytes(&self) -> WireBytes {
        WireBytes::default()
    }

    fn close(&mut self, _: u64) {
        let number = self.number;
        self.server().subscribers.retain(|s| s.0 != number);
    }
}

fn tried(keeps: Keeps) -> Result<Proof, Violation> {
    let server = Server {
        keeps,
        fleets: 0,
        waiting: VecDeque::new(),
        kept: HashMap::new(),
        subscribers: Vec::new(),
    };
    let driver = Keeper(Arc::new(Mutex::new(server)));
    prove(&driver, &Target::default(), Capability::LastValue, None)
}

#[test]
fn a_slow_server_that_keeps_the_last_value_passes() {
    assert_eq!(tried(Keeps::Last), Ok(Proof::Shown));
}

#[test]
fn a_server_that_keeps_nothing_or_does_not_say_so_is_found_out() {
    let why = tried(Keeps::LastUnmarked).unwrap_err().to_string();
    assert!(why.contains("not marked"), "{why}");
    let why = tried(Keeps::Nothing).unwrap_err().to_string();
    assert!(why.contains("the last value: nothing more came"), "{why}");
}
