//! The suite tells a wrong driver from a right one: the simulated system behind a driver with one planted fault at a
//! time, and without any.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use pubgauge_conformance::{check_with_kill, failures, prove};
use pubgauge_driver::seam::DriverError;
use pubgauge_driver::{
    Acknowledgement, Capability, Change, ClientId, ClientSpec, Clock, Delivery, Driver, Events,
    Fleet, FleetConfig, Lifecycle, Mapping, Mark, Nanos, Payload, Publish, Reliability, ServerEnd,
    Settings, Subscription, Target, TopicId, Traits, Unsupported, WireBytes,
};
use pubgauge_simulator::{Behaviour, Bus, SimulatedDriver};

/// A driver's fault.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// `disconnect` throws away what was accepted and not yet written.
    DisconnectDrops,
    /// `close` does.
    CloseDrops,
    /// Messages that a subscriber does not read soon are thrown away, although `reliable` is claimed.
    Unreliable,
    /// User properties are accepted and never sent.
    PropertiesStay,
    /// Acknowledgements leave `unsettled` as it is.
    NeverSettles,
    /// `wire_bytes` stays 0.
    BytesUncounted,
    /// Every delivery names the topic of the first.
    OneTopic,
    /// Timers never fire: an idle client is taken for dead.
    DeadTimers,
    /// A message that had come in part when a connection was lost is taken for the beginning of what comes next.
    OldInbox,
    /// `Subscribed` is told at once.
    SubscribedAtOnce,
    /// A client has room for 65 subscriptions.
    FewSubscriptions,
}

/// The simulated system behind a connection that can be stopped.
struct Planted {
    fault: Option<Fault>,
    /// While the server is stopped nothing comes from it.
    stopped: Arc<AtomicBool>,
    fleets: AtomicU32,
}

impl Driver for Planted {
    fn name(&self) -> &'static str {
        "planted"
    }

    fn resolve(
        &self,
        settings: &Settings,
        target: &Target,
    ) -> Result<Vec<Mapping>, Vec<Unsupported>> {
        SimulatedDriver.resolve(settings, target)
    }

    fn traits(&self, settings: &Settings) -> Traits {
        SimulatedDriver.traits(settings)
    }

    fn open(&self, mut config: FleetConfig) -> Result<Box<dyn Fleet>, DriverError> {
        let nth = self.fleets.fetch_add(1, Relaxed);
        // In the fleets of the first checks alone: the suite waits for 10 s in each.
        let planted = self.fault != Some(Fault::NeverSettles) || nth < 3;
        // Counted here, or not: the simulated system would count them otherwise.
        let properties = config.settings.user_properties.take();
        let properties = properties.iter().flatten();
        Ok(Box::new(Connections {
            fault: self.fault.filter(|_| planted),
            stopped: Arc::clone(&self.stopped),
            property_bytes: properties.map(|(key, value)| key.len() + value.len()).sum(),
            keep_alive: config.settings.keep_alive_s,
            clock: config.clock.clone(),
            inner: SimulatedDriver.open(config)?,
            waiting: Vec::new(),
            extra: 0,
            told: Vec::new(),
            last_traffic: None,
            inbox: Vec::new(),
            first_topic: None,
            polled: 0,
            subscriptions: 0,
        }))
    }
}

/// A message that was accepted and is written with the next poll.
struct Waiting {
    client: ClientId,
    topic: TopicId,
    bytes: Vec<u8>,
    tag: u64,
}

struct Connections {
    fault: Option<Fault>,
    stopped: Arc<AtomicBool>,
    property_bytes: usize,
    keep_alive: Option<u16>,
    clock: Clock,
    inner: Box<dyn Fleet>,
    waiting: Vec<Waiting>,
    /// Bytes beside those of the simulated system.
    extra: u64,
    /// Changes of the driver's own.
    told: Vec<(ClientId, Change)>,
    /// When something was last sent or received.
    last_traffic: Option<Nanos>,
    /// The beginning of a message whose connection was lost.
    inbox: Vec<u8>,
    first_topic: Option<String>,
    /// When it was last polled.
    polled: Nanos,
    /// Subscriptions that it was asked for.
    subscriptions: u32,
}

impl Connections {
    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// Writes what waits.
    fn write(&mut self) {
        let mut left = Vec::new();
        for message in std::mem::take(&mut self.waiting) {
            let (head, body) = message.bytes.split_at(16);
            let head: &[u8; 16] = head.try_into().unwrap();
            let payload = Payload { head, body };
            let taken = (self.inner).publish(message.client, message.topic, payload, message.tag);
            if taken == Publish::Blocked {
                left.push(message);
            }
        }
        self.waiting = left;
    }

    /// The keep-alive of a client that has nothing to send; the server gives up on one that is silent for longer.
    fn keep_alive(&mut self) {
        let Some(keep_alive) = self.keep_alive else {
            return;
        };
        let now = self.clock.now();
        let last = *self.last_traffic.get_or_insert(now);
        if !self.has(Fault::DeadTimers) {
            self.last_traffic = Some(now);
        } else if now - last > u64::from(keep_alive) * 1_500_000_000 {
            self.last_traffic = Some(now);
            self.told
                .push((ClientId(0), Change::Failed("keep-alive timeout".into())));
        }
    }
}

/// Deliveries on their way to the engine.
struct Through<'a> {
    fault: Option<Fault>,
    first_topic: &'a mut Option<String>,
    inbox: &'a mut Vec<u8>,
    /// Whether nobody read for long.
    unread: bool,
    any: bool,
    to: &'a mut dyn Events,
}

impl Events for Through<'_> {
    fn arrived(&mut self) {
        self.to.arrived();
    }

    fn delivered(&mut self, client: ClientId, delivery: Delivery<'_>) {
        self.any = true;
        if self.fault == Some(Fault::Unreliable) && self.unread {
            return;
        }
        let mut topic = delivery.topic.map(str::to_owned);
        if self.fault == Some(Fault::OneTopic) {
            topic = self
                .first_topic
                .get_or_insert(topic.unwrap_or_default())
                .clone()
                .into();
        }
        let mut whole = std::mem::take(self.inbox);
        whole.extend_from_slice(delivery.payload);
        let delivery = Delivery {
            payload: &whole,
            topic: topic.as_deref(),
            ..delivery
        };
        self.to.delivered(client, delivery);
    }

    fn acknowledged(&mut self, client: ClientId, tag: u64, answer: Acknowledgement) {
        self.any = true;
        self.to.acknowledged(client, tag, answer);
    }

    fn changed(&mut self, client: ClientId, change: Change) {
        self.any = true;
        if self.fault == Some(Fault::SubscribedAtOnce) && change == Change::Subscribed {
            return;
        }
        self.to.changed(client, change);
    }
}

impl Fleet for Connections {
    fn connect(&mut self, client: &ClientSpec) -> Result<ClientId, DriverError> {
        self.inner.connect(client)
    }

    fn subscribe(&mut self, client: ClientId, to: &Subscription) -> Result<(), DriverError> {
        if self.has(Fault::SubscribedAtOnce) {
            self.told.push((client, Change::Subscribed));
        }
        self.subscriptions += 1;
        if self.has(Fault::FewSubscriptions) && self.subscriptions > 65 {
            let why = "the session has no room for it".to_owned();
            self.told.push((client, Change::SubscriptionRefused(why)));
            return Ok(());
        }
        self.inner.subscribe(client, to)
    }

    fn advertise(&mut self, client: ClientId, topic: &str) -> Result<TopicId, DriverError> {
        self.inner.advertise(client, topic)
    }

    fn publish(
        &mut self,
        client: ClientId,
        topic: TopicId,
        payload: Payload<'_>,
        tag: u64,
    ) -> Publish {
        self.last_traffic = Some(self.clock.now());
        if !self.has(Fault::PropertiesStay) {
            self.extra += self.property_bytes as u64;
        }
        // These hold messages back until the next poll; the others hand them on at once, so that all that the simulated
        // system answers reaches the suite.
        if !self.has(Fault::DisconnectDrops) && !self.has(Fault::CloseDrops) {
            return self.inner.publish(client, topic, payload, tag);
        }
        if self.waiting.len() >= 64 {
            self.write();
        }
        let mut bytes = Vec::new();
        payload.append_to(&mut bytes);
        self.waiting.push(Waiting {
            client,
            topic,
            bytes,
            tag,
        });
        Publish::Accepted
    }

    fn poll(&mut self, until: Nanos, events: &mut dyn Events) -> Result<(), DriverError> {
        self.write();
        self.keep_alive();
        let now = self.clock.now();
        let before = std::mem::replace(&mut self.polled, now);
        let told = std::mem::take(&mut self.told);
        let any = !told.is_empty();
        (told.into_iter()).for_each(|(client, change)| events.changed(client, change));
        if self.stopped.load(Relaxed) {
            let rest = until.saturating_sub(now).min(20_000_000);
            std::thread::sleep(std::time::Duration::from_nanos(rest));
            return Ok(());
        }
        let mut through = Through {
            fault: self.fault,
            first_topic: &mut self.first_topic,
            inbox: &mut self.inbox,
            unread: now - before > 20_000_000,
            any,
            to: events,
        };
        let until = if any { 0 } else { until };
        self.inner.poll(until, &mut through)?;
        if through.any {
            self.last_traffic = Some(self.clock.now());
        }
        Ok(())
    }

    fn disconnect(&mut self, client: ClientId) {
        if self.has(Fault::DisconnectDrops) {
            self.waiting.clear();
        }
        self.write();
        self.inner.disconnect(client);
    }

    fn abort(&mut self, client: ClientId) {
        self.waiting.clear();
        if self.has(Fault::OldInbox) {
            self.inbox.extend_from_slice(&[0; 10]);
        }
        self.inner.abort(client);
    }

    fn reconnect(&mut self, client: ClientId) -> Result<(), DriverError> {
        self.inner.reconnect(client)
    }

    fn unsettled(&self) -> u64 {
        let settled = self.inner.unsettled() + self.waiting.len() as u64;
        settled.max(u64::from(self.has(Fault::NeverSettles)))
    }

    fn wire_bytes(&self) -> WireBytes {
        let wire = self.inner.wire_bytes();
        if self.has(Fault::BytesUncounted) {
            return WireBytes::default();
        }
        WireBytes {
            sent: wire.sent + self.extra,
            ..wire
        }
    }

    fn close(&mut self, until: Nanos) {
        if self.has(Fault::CloseDrops) {
            self.waiting.clear();
        }
        self.write();
        self.inner.close(until);
    }
}

/// A server that can be stopped. It loses its clients when it ends.
struct Server(Arc<AtomicBool>);

impl Lifecycle for Server {
    fn restart(&mut self, _: ServerEnd) -> Result<(), Box<dyn std::error::Error>> {
        Err("the simulated system has no process".into())
    }

    fn pause(&mut self, paused: bool) -> bool {
        self.0.store(paused, Relaxed);
        true
    }
}

/// Findings of the suite for a driver with this fault.
fn said_of(fault: Option<Fault>) -> Vec<String> {
    let stopped = Arc::new(AtomicBool::new(false));
    let driver = Planted {
        fault,
        stopped: Arc::clone(&stopped),
        fleets: AtomicU32::new(0),
    };
    let behaviour = Behaviour {
        delay_median_ns: 200_000,
        ..Behaviour::default()
    };
    let bus = Bus::new(behaviour, Clock::Monotonic, Mark::from_seed(42));
    let target = SimulatedDriver::target(Arc::new(bus));
    let settings = Settings {
        reliability: Some(Reliability::AtLeastOnce),
        ..Settings::default()
    };
    let outcomes = check_with_kill(&driver, &target, &settings, &[], &mut Server(stopped));
    let mut said = failures(&outcomes);
    // The simulated system cannot be killed.
    said.retain(|why| !why.starts_with("clients-come-back-after-a-kill: the simulated system"));
    let reliable = Capability::Reliability(Reliability::Reliable);
    if let Err(why) = prove(&driver, &target, reliable, None) {
        said.push(format!("{reliable}: {why}"));
    }
    said
}

#[test]
fn a_driver_without_a_fault_conforms() {
    assert_eq!(said_of(None), Vec::<String>::new());
}

macro_rules! found_out {
    ($($test:ident: $fault:ident by $check:literal,)*) => {$(
        #[test]
        fn $test() {
            let said = said_of(Some(Fault::$fault));
            assert!(
                said.iter().any(|why| why.starts_with($check)),
                "{:?}: {said:?}",
                Fault::$fault
            );
        }
    )*};
}

found_out! {
    disconnect_that_drops: DisconnectDrops by "disconnect-takes-nothing-back: 0 of 50 messages came",
    close_that_drops: CloseDrops by "close-takes-nothing-back: 0 of 50 messages came",
    reliable_that_is_not: Unreliable by "reliability:reliable: every message to a subscriber that was slow",
    properties_that_stay: PropertiesStay by "user-properties-go-out: 100 messages took",
    unsettled_that_never_falls: NeverSettles by "delivers-in-order: sentinels settled",
    bytes_that_are_not_counted: BytesUncounted by "counts-the-bytes-of-the-wire: 100 messages of 1000 B, and 0 B",
    deliveries_of_one_topic: OneTopic by "many-to-one-and-one-to-many: a message on",
    timers_that_are_dead: DeadTimers by "idle-clients-stay-connected: an idle client lost its connection",
    an_inbox_that_survives: OldInbox by "a-new-connection-brings-nothing-of-the-old:",
    few_subscriptions: FewSubscriptions by "one-client-has-200-subscriptions: subscription 66 of one client",
    subscribed_at_once: SubscribedAtOnce by "subscriptions-are-answered: a subscription was reported as taken",
}
