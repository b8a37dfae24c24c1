//! Asks a system through its driver whether it serves.

use std::time::{Duration, Instant};

use pubgauge_driver::clock::monotonic_now;
use pubgauge_driver::{
    Acknowledgement, Change, ClientId, ClientSpec, Delivery, Driver, Events, Filler, Fleet,
    FleetConfig, Header, Kind, Login, Mark, Nanos, Payload, Publish, Settings, Subscription,
    Target,
};

use crate::file::Probe;

/// How long one attempt may take: a server that is just starting may never answer the first one.
const ATTEMPT: Duration = Duration::from_secs(3);
/// How long the probe waits for those of its messages that are still under way.
const LATE: Duration = Duration::from_millis(500);
/// How long closing the clients may take.
pub(crate) const CLOSE_NS: Nanos = 500_000_000;

/// Why an attempt to talk to a system did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProbeError {
    /// The system, or the way to it, said no.
    #[error("{0}")]
    Refused(String),
    /// Nothing came in time.
    #[error("{0}")]
    Silent(String),
}

impl From<String> for ProbeError {
    fn from(why: String) -> ProbeError {
        ProbeError::Refused(why)
    }
}

/// The clients that a workload has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roles {
    /// One that publishes, if some do.
    pub publisher: Option<Visitor>,
    /// One that subscribes, if some do.
    pub subscriber: Option<Visitor>,
}

/// Who a client of a probe is to the system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Visitor {
    /// Client identifier; made up if absent.
    pub id: Option<String>,
    pub login: Login,
}

impl Roles {
    fn publisher_and_subscriber() -> Roles {
        Roles {
            publisher: Some(Visitor::default()),
            subscriber: Some(Visitor::default()),
        }
    }
}

/// One attempt to log in with one client for each of `roles`, until `deadline` or for 3 s.
///
/// # Errors
/// Why it did not succeed.
pub(crate) fn log_in(
    driver: &dyn Driver,
    roles: &Roles,
    target: &Target,
    settings: &Settings,
    deadline: Instant,
) -> Result<(), ProbeError> {
    Attempt::carried_out(
        driver,
        target,
        settings,
        deadline,
        |attempt, publishers_first| attempt.connect_roles(roles, publishers_first).map(|_| ()),
    )
}

/// One attempt to talk to a system through its driver, until `deadline` or for 3 s: to connect and
/// log in; for [`Probe::Subscribe`] also to subscribe, to publish, and to get the message back.
///
/// # Errors
/// Why it did not succeed.
pub(crate) fn probe(
    driver: &dyn Driver,
    what: Probe,
    target: &Target,
    deadline: Instant,
) -> Result<(), ProbeError> {
    let settings = Settings::default();
    Attempt::carried_out(
        driver,
        target,
        &settings,
        deadline,
        |attempt, publishers_first| {
            let clients =
                attempt.connect_roles(&Roles::publisher_and_subscriber(), publishers_first)?;
            match (what, clients) {
                (Probe::Subscribe, [Some(publisher), Some(subscriber)]) => {
                    attempt.exchange(publisher, subscriber)
                }
                _ => Ok(()),
            }
        },
    )
}

/// Opens a fleet for a few clients beside those of a trial; the error is what the driver says.
pub(crate) fn open(
    driver: &dyn Driver,
    target: &Target,
    settings: &Settings,
    clients: usize,
) -> Result<Box<dyn Fleet>, String> {
    let config = FleetConfig {
        target: target.clone(),
        settings: settings.clone(),
        max_payload: 64,
        clients,
        worker: u32::MAX,
        ..FleetConfig::default()
    };
    driver.open(config).map_err(|error| error.to_string())
}

/// The mark of the probe's own messages.
const MARK: Mark = Mark::from_seed(63);

struct Attempt {
    fleet: Box<dyn Fleet>,
    until: Nanos,
    seen: ProbeArrivals,
}

#[derive(Default)]
struct ProbeArrivals {
    connected: Vec<(ClientId, Option<String>)>,
    subscribed: bool,
    delivered: u32,
    failed: Option<String>,
}

impl Events for ProbeArrivals {
    fn arrived(&mut self) {}

    fn delivered(&mut self, _: ClientId, delivery: Delivery<'_>) {
        self.delivered += u32::from(Header::decode(delivery.payload, MARK).is_some());
    }

    fn acknowledged(&mut self, _: ClientId, _: u64, _: Acknowledgement) {}

    fn changed(&mut self, client: ClientId, change: Change) {
        match change {
            Change::Connected { address, .. } => self.connected.push((client, address)),
            Change::Subscribed => self.subscribed = true,
            Change::Failed(failure) => self.failed = Some(failure.why),
            Change::SubscriptionRefused(why) => self.failed = Some(why),
            Change::Writable | Change::Closed => {}
        }
    }
}

impl Attempt {
    /// Opens a fleet, lets `act` use it, and closes it.
    fn carried_out(
        driver: &dyn Driver,
        target: &Target,
        settings: &Settings,
        deadline: Instant,
        act: impl FnOnce(&mut Attempt, bool) -> Result<(), ProbeError>,
    ) -> Result<(), ProbeError> {
        let left = deadline.saturating_duration_since(Instant::now());
        let until = monotonic_now() + left.min(ATTEMPT).as_nanos() as u64;
        let mut attempt = Attempt {
            fleet: open(driver, target, settings, 2)?,
            until,
            seen: ProbeArrivals::default(),
        };
        let result = act(&mut attempt, driver.traits(settings).publishers_first);
        attempt.fleet.close(monotonic_now() + CLOSE_NS);
        result
    }

    /// Connects one client that publishes and one that subscribes, as far as the roles are asked for: they may connect to
    /// different places.
    fn connect_roles(
        &mut self,
        roles: &Roles,
        publishers_first: bool,
    ) -> Result<[Option<ClientId>; 2], ProbeError> {
        let mut clients = [None, None];
        let mut peers = Vec::new();
        if let Some(visitor) = &roles.publisher {
            let (publisher, address) = self.connect(visitor, true, Vec::new())?;
            clients[0] = Some(publisher);
            peers.extend(address.filter(|_| publishers_first));
        }
        if let Some(visitor) = &roles.subscriber {
            clients[1] = Some(self.connect(visitor, false, peers)?.0);
        }
        Ok(clients)
    }

    /// Subscribes, publishes, and gets the message back.
    fn exchange(&mut self, publisher: ClientId, subscriber: ClientId) -> Result<(), ProbeError> {
        let topic = format!("pubgauge/probe/{}", std::process::id());
        let subscription = Subscription {
            filter: topic.clone(),
            group: None,
        };
        let said = |error: pubgauge_driver::DriverError| error.to_string();
        self.fleet
            .subscribe(subscriber, &subscription)
            .map_err(said)?;
        self.poll_until("no answer to a subscription", |seen| seen.subscribed)?;
        let topic = self.fleet.advertise(publisher, &topic).map_err(said)?;
        let (filler, mut sequence) = (Filler::new(64), 0);
        loop {
            let header = Header {
                intended: monotonic_now(),
                kind: Kind::Sentinel,
                stream: 0,
                sequence,
                lag: 0,
            };
            let payload = Payload {
                head: &header.encode(MARK),
                body: filler.body(0, sequence, 64),
            };
            if let Publish::Refused(why) = self.fleet.publish(publisher, topic, payload, 0) {
                return Err(format!("a message was refused: {why:?}").into());
            }
            sequence += 1;
            let again = (monotonic_now() + 50_000_000).min(self.until);
            if self.poll(again, |seen| seen.delivered > 0)? {
                // A later reading of the system's counts must find none of these under way.
                let rest = (monotonic_now() + LATE.as_nanos() as u64).min(self.until);
                self.poll(rest, |seen| seen.delivered >= sequence)?;
                return Ok(());
            }
            if monotonic_now() >= self.until {
                return Err(ProbeError::Silent("no message was delivered".into()));
            }
        }
    }

    fn connect(
        &mut self,
        visitor: &Visitor,
        publishes: bool,
        peers: Vec<String>,
    ) -> Result<(ClientId, Option<String>), ProbeError> {
        let role = if publishes { "out" } else { "in" };
        let spec = ClientSpec {
            name: match &visitor.id {
                Some(id) => id.clone(),
                None => format!("probe{}{role}", std::process::id()),
            },
            login: visitor.login.clone(),
            publishes,
            subscribes: !publishes,
            peers,
            ..ClientSpec::default()
        };
        let client = self.fleet.connect(&spec).map_err(|e| e.to_string())?;
        self.poll_until("no answer to a login", |seen| {
            seen.connected.iter().any(|(who, _)| *who == client)
        })?;
        let connected = self.seen.connected.iter().find(|(who, _)| *who == client);
        Ok((client, connected.and_then(|(_, address)| address.clone())))
    }

    fn poll_until(
        &mut self,
        else_: &str,
        done: impl Fn(&ProbeArrivals) -> bool,
    ) -> Result<(), ProbeError> {
        if self.poll(self.until, done)? {
            Ok(())
        } else {
            Err(ProbeError::Silent(else_.to_owned()))
        }
    }

    /// Polls until `done` or until the time is over, and tells which.
    fn poll(
        &mut self,
        until: Nanos,
        done: impl Fn(&ProbeArrivals) -> bool,
    ) -> Result<bool, String> {
        loop {
            if let Some(why) = self.seen.failed.take() {
                return Err(why);
            }
            if done(&self.seen) {
                return Ok(true);
            }
            if monotonic_now() >= until {
                return Ok(false);
            }
            self.fleet
                .poll(until, &mut self.seen)
                .map_err(|e| e.to_string())?;
        }
    }
}
