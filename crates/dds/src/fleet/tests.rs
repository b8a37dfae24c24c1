//! The fleet over a library that does as it is told.

use std::cell::RefCell;
use std::rc::Rc;

use pubgauge_driver::{
    Acknowledgement, Change, ClientId, ClientSpec, Clock, Delivery, DriverError, Events, Fleet,
    FleetConfig, Nanos, Payload, Publish, Refusal, Settings, Subscription, Target, TopicId,
    WireBytes,
};

use super::{DdsFleet, LINGER};
use crate::advertised::Topic;
use crate::library::{Library, News, Traffic, Written};
use crate::topic::Filter;

/// The library's end of a test.
#[derive(Default)]
struct Truth {
    calls: Vec<String>,
    /// Writers that have no room, and writers with messages that are not acknowledged, by their topics.
    full: Vec<String>,
    unsettled: Vec<String>,
    /// Something was heard.
    heard: bool,
    /// The next write fails so.
    failure: Option<DriverError>,
    refuses_writers: bool,
    held_back: bool,
    clock: Option<Clock>,
}

#[derive(Clone, Default)]
struct Pretend(Rc<RefCell<Truth>>);

const RETRY: Nanos = 1_000;

impl Pretend {
    fn note(&self, call: String) {
        self.0.borrow_mut().calls.push(call);
    }

    fn take_calls(&self) -> Vec<String> {
        std::mem::take(&mut self.0.borrow_mut().calls)
    }
}

impl Library for Pretend {
    type Writer = String;

    fn create_writer(&mut self, topic: &str, key: u32) -> Result<String, DriverError> {
        if self.0.borrow().refuses_writers {
            return Err(DriverError::new("no writer"));
        }
        self.note(format!("create {topic} {key:x}"));
        Ok(topic.to_owned())
    }

    fn write(&mut self, number: u32, writer: &mut String, payload: Payload<'_>) -> Written {
        let mut truth = self.0.borrow_mut();
        if let Some(error) = truth.failure.take() {
            return Written::Failed(Box::new(error));
        }
        if payload.len() > 100 {
            return Written::Refused(Refusal::TooLarge);
        }
        if truth.full.contains(writer) {
            return Written::NoRoom;
        }
        truth.calls.push(format!("write {number} {writer}"));
        Written::Accepted
    }

    fn flush(&mut self, topics: &mut [Topic<String>]) {
        let writers = topics.iter().filter(|topic| topic.writer.is_some());
        self.note(format!("flush {}", writers.count()));
    }

    fn is_settled(&self, writer: &String) -> bool {
        !self.0.borrow().unsettled.contains(writer)
    }

    fn end_writer(&mut self, writer: String, wait: Nanos) {
        self.note(format!("end {writer} {wait}"));
    }

    fn subscribe(
        &mut self,
        client: ClientId,
        filter: Filter,
        news: &mut News,
    ) -> Result<(), DriverError> {
        self.note(format!("subscribe {} {}", client.0, filter.text));
        news.push_back((client, Change::Subscribed));
        Ok(())
    }

    fn drop_readers(&mut self, client: ClientId) {
        self.note(format!("drop readers {}", client.0));
    }

    fn prepare(&mut self, _: &mut News) -> Result<(), DriverError> {
        Ok(())
    }

    fn receive(&mut self, _: &mut dyn Events) -> Result<bool, DriverError> {
        Ok(false)
    }

    fn wait(&mut self, duration: Nanos) {
        self.note(format!("wait {duration}"));
        let clock = self.0.borrow().clock.clone().expect("set");
        clock.advance_to(clock.now() + duration);
    }

    fn hold_back(&mut self, held_back: bool) {
        self.0.borrow_mut().held_back = held_back;
    }

    fn may_have_room(&mut self) -> bool {
        std::mem::take(&mut self.0.borrow_mut().heard)
    }

    fn has_room(&self, writer: &String, _: bool) -> bool {
        !self.0.borrow().full.contains(writer)
    }

    fn retry(&self) -> Nanos {
        RETRY
    }

    fn counts_unsettled(&self) -> bool {
        true
    }

    fn traffic(&self) -> Option<Traffic> {
        Some(Traffic {
            sent_bytes: 1,
            received_bytes: 2,
            sent_datagrams: 3,
            received_datagrams: 4,
        })
    }
}

#[derive(Default)]
struct Changes(Vec<(u32, Change)>);

impl Events for Changes {
    fn arrived(&mut self) {}
    fn delivered(&mut self, _: ClientId, _: Delivery<'_>) {}
    fn acknowledged(&mut self, _: ClientId, _: u64, _: Acknowledgement) {}
    fn changed(&mut self, client: ClientId, change: Change) {
        self.0.push((client.0, change));
    }
}

struct Rig {
    fleet: DdsFleet<Pretend>,
    library: Pretend,
    clock: Clock,
}

const ID: ClientId = ClientId(0);

impl Rig {
    fn new() -> Rig {
        let clock = Clock::virtual_at(1);
        let config = FleetConfig {
            target: Target::default(),
            settings: Settings::default(),
            clock: clock.clone(),
            max_payload: 64,
            clients: 1,
            worker: 2,
        };
        let library = Pretend::default();
        library.0.borrow_mut().clock = Some(clock.clone());
        Rig {
            fleet: DdsFleet::new(&config, library.clone()),
            library,
            clock,
        }
    }

    /// With a client that has topics `a` and `b`, all of which is reported.
    fn connected() -> (Rig, TopicId, TopicId) {
        let mut rig = Rig::new();
        let id = rig.fleet.connect(&ClientSpec::default()).expect("connects");
        assert_eq!(id, ID);
        let [a, b] = ["a", "b"].map(|topic| rig.fleet.advertise(id, topic).expect("advertises"));
        assert_eq!(rig.poll(0), [(0, connected())]);
        rig.library.take_calls();
        (rig, a, b)
    }

    fn poll(&mut self, until: Nanos) -> Vec<(u32, Change)> {
        let mut changes = Changes::default();
        self.fleet.poll(until, &mut changes).expect("polls");
        changes.0
    }

    fn put(&mut self, topic: TopicId) -> Publish {
        self.fleet.publish(ID, topic, message(1), 0)
    }
}

/// A message with a body of so many bytes.
fn message(len: usize) -> Payload<'static> {
    Payload {
        head: &[0; 16],
        body: &[0; 101][..len],
    }
}

fn connected() -> Change {
    super::CONNECTED
}

const NOT_CONNECTED: Publish = Publish::Refused(Refusal::NotConnected);

#[test]
fn a_topic_has_a_key_of_its_own_and_belongs_to_its_client() {
    let mut rig = Rig::new();
    let [one, other] = ["one", "other"].map(|name| {
        let spec = ClientSpec {
            name: name.into(),
            ..ClientSpec::default()
        };
        rig.fleet.connect(&spec).expect("connects")
    });
    let topic = rig.fleet.advertise(one, "a").expect("advertises");
    assert_eq!(rig.fleet.advertise(one, "a"), Ok(topic));
    assert_ne!(rig.fleet.advertise(other, "a"), Ok(topic));
    assert_eq!(
        rig.library.take_calls(),
        ["create a 200000", "create a 200001"]
    );
    assert_eq!(
        rig.fleet.publish(one, topic, message(1), 0),
        Publish::Accepted
    );
    assert_eq!(
        rig.fleet.publish(other, topic, message(1), 0),
        NOT_CONNECTED
    );
    let long = message(101);
    let too_large = Publish::Refused(Refusal::TooLarge);
    assert_eq!(rig.fleet.publish(one, topic, long, 0), too_large);
    assert!(rig.fleet.advertise(one, "a/*").is_err());
    rig.library.0.borrow_mut().refuses_writers = true;
    assert!(rig.fleet.advertise(one, "b").is_err());
    rig.library.0.borrow_mut().refuses_writers = false;
    let next = rig.fleet.advertise(one, "b").expect("advertises");
    assert_eq!(next, TopicId(2), "a topic that was refused leaves nothing");
}

#[test]
fn a_client_is_refused_what_dds_has_not() {
    let mut rig = Rig::new();
    let with_source = ClientSpec {
        source: Some([127, 0, 0, 2].into()),
        ..ClientSpec::default()
    };
    assert!(rig.fleet.connect(&with_source).is_err());
    assert_eq!(rig.fleet.connect(&ClientSpec::default()), Ok(ID));
    let group = Subscription::matching("a").of_group("g");
    assert!(rig.fleet.subscribe(ID, &group).is_err());
    assert_eq!(rig.library.take_calls(), [""; 0]);
}

#[test]
fn writers_that_are_held_back_go_on_where_there_is_room() {
    let (mut rig, a, b) = Rig::connected();
    rig.library.0.borrow_mut().full = vec!["a".into(), "b".into()];
    assert_eq!([rig.put(a), rig.put(b)], [Publish::Blocked; 2]);
    assert!(rig.library.0.borrow().held_back);
    // The library is not asked again before something was heard or the time is over.
    rig.library.0.borrow_mut().full = vec!["b".into()];
    assert_eq!(rig.put(a), Publish::Blocked);
    assert_eq!(rig.poll(0), []);
    rig.library.0.borrow_mut().heard = true;
    assert_eq!(rig.poll(0), [(0, Change::Writable)]);
    assert_eq!(
        [rig.put(a), rig.put(b)],
        [Publish::Accepted, Publish::Blocked]
    );
    assert!(rig.library.0.borrow().held_back);
    // Nothing is heard: the fleet sleeps until it is time to try.
    rig.library.0.borrow_mut().full.clear();
    rig.library.take_calls();
    assert_eq!(rig.poll(1_000_000), [(0, Change::Writable)]);
    assert_eq!(rig.library.take_calls(), ["flush 2", "wait 1000"]);
    assert!(!rig.library.0.borrow().held_back);
    assert_eq!(rig.put(b), Publish::Accepted);
}

#[test]
fn a_client_that_goes_holds_nobody_back() {
    let (mut rig, a, _) = Rig::connected();
    rig.library.0.borrow_mut().full = vec!["a".into()];
    assert_eq!(rig.put(a), Publish::Blocked);
    rig.fleet.abort(ID);
    assert!(!rig.library.0.borrow().held_back);
    rig.library.0.borrow_mut().heard = true;
    assert_eq!(rig.poll(0), []);
    assert_eq!(rig.put(a), NOT_CONNECTED);
}

#[test]
fn a_client_that_disconnects_waits_for_acknowledgements_for_a_while() {
    for comes in [true, false] {
        let (mut rig, a, _) = Rig::connected();
        rig.library.0.borrow_mut().unsettled = vec!["b".into()];
        assert_eq!(rig.fleet.unsettled(), 1);
        rig.fleet.disconnect(ID);
        rig.fleet.disconnect(ID);
        assert_eq!(rig.library.take_calls(), ["flush 2", "drop readers 0"]);
        assert_eq!(rig.put(a), NOT_CONNECTED);
        let start = rig.clock.now();
        assert_eq!(rig.poll(start + LINGER / 2), []);
        rig.library.take_calls();
        if comes {
            rig.library.0.borrow_mut().unsettled.clear();
        }
        assert_eq!(rig.poll(start + 2 * LINGER), [(0, Change::Closed)]);
        let waited = rig.clock.now() - start;
        assert_eq!(waited >= LINGER, !comes, "{waited}");
        let calls = rig.library.take_calls();
        let ended: Vec<&String> = calls.iter().filter(|c| !c.starts_with("wait")).collect();
        assert_eq!(ended, ["flush 2", "end a 0", "end b 0", "drop readers 0"]);
        // One that is down is closed at once.
        rig.fleet.disconnect(ID);
        assert_eq!(rig.poll(0), [(0, Change::Closed)]);
    }
}

#[test]
fn a_client_that_is_down_comes_back_with_its_topics() {
    let (mut rig, a, _) = Rig::connected();
    assert!(rig.fleet.reconnect(ID).is_err(), "it is connected");
    rig.fleet.abort(ID);
    let c = rig.fleet.advertise(ID, "c").expect("advertises");
    assert_eq!([rig.put(a), rig.put(c)], [NOT_CONNECTED; 2]);
    let filter = Subscription::matching("a");
    assert!(rig.fleet.subscribe(ID, &filter).is_err());
    rig.library.take_calls();
    rig.library.0.borrow_mut().refuses_writers = true;
    assert!(rig.fleet.reconnect(ID).is_err());
    rig.library.0.borrow_mut().refuses_writers = false;
    assert_eq!(rig.fleet.reconnect(ID), Ok(()));
    assert_eq!(rig.poll(0), [(0, connected())]);
    let calls = rig.library.take_calls();
    let created: Vec<&String> = calls.iter().filter(|c| c.starts_with("create")).collect();
    assert_eq!(
        created,
        ["create a 200000", "create b 200001", "create c 200002"]
    );
    assert_eq!([rig.put(a), rig.put(c)], [Publish::Accepted; 2]);
    assert_eq!(rig.fleet.subscribe(ID, &filter), Ok(()));
    assert_eq!(rig.poll(0), [(0, Change::Subscribed)]);
}

#[test]
fn a_client_whose_write_fails_goes_down() {
    let (mut rig, a, b) = Rig::connected();
    rig.library.0.borrow_mut().failure = Some(DriverError::new("broken"));
    assert_eq!([rig.put(a), rig.put(b)], [NOT_CONNECTED; 2]);
    let ended = ["end a 0", "end b 0", "drop readers 0"];
    assert_eq!(rig.library.take_calls(), ended);
    assert_eq!(rig.poll(0), [(0, Change::Failed("broken".into()))]);
    assert_eq!(rig.fleet.reconnect(ID), Ok(()));
}

#[test]
fn a_fleet_that_is_closed_keeps_its_counts_and_takes_nothing() {
    let (mut rig, a, _) = Rig::connected();
    let now = rig.clock.now();
    rig.fleet.close(now + 7);
    let calls = rig.library.take_calls();
    assert_eq!(calls, ["flush 2", "end a 7", "end b 7", "drop readers 0"]);
    assert!(rig.fleet.library().is_none());
    let wire = WireBytes {
        sent: 1,
        received: 2,
    };
    assert_eq!(
        (rig.fleet.wire_bytes(), rig.fleet.writes()),
        (wire, Some(3))
    );
    assert_eq!(rig.put(a), NOT_CONNECTED);
    assert_eq!(rig.poll(now + 1_000_000), []);
    assert_eq!(rig.clock.now(), now, "nothing is to be waited for");
    assert!(rig.fleet.connect(&ClientSpec::default()).is_err());
    assert!(rig.fleet.reconnect(ID).is_err());
    rig.fleet.close(now);
    drop(rig.fleet);
    assert_eq!(rig.library.take_calls(), [""; 0]);
}

#[test]
fn a_fleet_that_is_dropped_ends_its_writers_first() {
    let (rig, ..) = Rig::connected();
    drop(rig.fleet);
    let calls = rig.library.take_calls();
    assert_eq!(calls, ["flush 2", "end a 0", "end b 0", "drop readers 0"]);
}
