//! Kinds of systems as the rest sees them: [`Driver`], and what follows from its answers.

use crate::address::Scheme;
use crate::capability::{Answer, Capability, Topology};
use crate::footprint::{Crowd, Footprint};
use crate::header::Mark;
use crate::login::Identification;
use crate::seam::{DriverError, Fleet, FleetConfig, InProcessSystem, Subscription, Target, Traits};
use crate::settings::{Mapping, MessagingPattern, Settings, Unsupported};
use crate::travel::Carries;
use crate::will::Will;

/// A kind of system that pubgauge can speak to. Stateless; shared by all workers.
pub trait Driver: Send + Sync {
    /// Its name in study files, `systems/*.toml` and results, for example `mqtt`.
    fn name(&self) -> &'static str;

    /// The schemes of addresses of such a system, for example `mqtt` and `mqtts`, the usual one first.
    /// A driver without any, which is the default, can be named by system files alone.
    fn schemes(&self) -> &'static [Scheme] {
        &[]
    }

    /// Name and version of the client library, for example `libzmq 4.3.4`, where the library is the
    /// system itself. `None`, which is the default: the version is the server's, or no library is
    /// linked.
    fn library(&self) -> Option<String> {
        None
    }

    /// The way to get a program with the library that this driver was built without; `None`,
    /// which is the default, where nothing is missing.
    fn missing(&self) -> Option<&'static str> {
        None
    }

    /// A new system, for a driver whose system lives in the process of its clients and nowhere else:
    /// what all fleets of one trial find in [`Target::shared`]. `None`, which is the default: fleets
    /// share nothing, and may be in several processes.
    ///
    /// For settings that [`Driver::resolve`] refuses: the system of the default settings.
    fn shared(&self, settings: &Settings, mark: Mark) -> Option<InProcessSystem> {
        let _ = (settings, mark);
        None
    }

    /// Whether the system lives in the process of its clients ([`Driver::shared`]).
    fn lives_here(&self) -> bool {
        let mark = Mark::from_seed(0);
        self.shared(&Settings::default(), mark).is_some()
    }

    /// The outcome of every setting of `settings` on a system like `target`, in the order of
    /// [`Settings::NAMES`]; or, for all those that it cannot honour, why not.
    ///
    /// Called before anything is started (the target then holds what is known from the system's
    /// file: features, not yet a port). It must be pure.
    ///
    /// # Errors
    /// One entry for each setting that cannot be honoured. Never falls back in silence.
    fn resolve(
        &self,
        settings: &Settings,
        target: &Target,
    ) -> Result<Vec<Mapping>, Vec<Unsupported>>;

    /// The JSON Schema of the settings that only this driver knows, `native.NAME` ([`crate::NativeSettings::schema`]).
    /// `None`, which is the default: it has none.
    fn native_schema(&self) -> Option<serde_json::Value> {
        None
    }

    /// How the system behaves under `settings`, as far as the engine must know.
    fn traits(&self, settings: &Settings) -> Traits;

    /// The protocol's own words for the code with which it rejected a message
    /// ([`crate::seam::Acknowledgement::Rejected`]).
    fn rejection(&self, code: u16) -> String {
        format!("code {code}")
    }

    /// Whether messages of one publisher on one topic come to a subscriber in the order in which they were published,
    /// while connections stay up and the subscriber shares them with nobody. The default: yes, as MQTT (5.0, section
    /// 4.6), AMQP (0-9-1, section 4.7), NATS, XMPP (RFC 6120, section 10.1), ZeroMQ and DDS promise.
    fn keeps_order(&self, settings: &Settings) -> bool {
        let _ = settings;
        true
    }

    /// Whether clients of a system like `target` can have `subscription` under `settings`, as far as
    /// that can be said before anything is started; pure, like [`Driver::resolve`]. The default: yes.
    ///
    /// # Errors
    /// Why not, and what would do instead.
    fn check_subscription(
        &self,
        settings: &Settings,
        target: &Target,
        subscription: &Subscription,
    ) -> Result<(), DriverError> {
        let _ = (settings, target, subscription);
        Ok(())
    }

    /// In how far recorded messages travel as they were recorded ([`Fleet::advertise_as`]) on a system like `target` under
    /// `settings`; pure, like [`Driver::resolve`]. The default: all as the settings say, with the header in front.
    fn carries(&self, settings: &Settings, target: &Target) -> Carries {
        let _ = (settings, target);
        Carries::default()
    }

    /// The parts of a client's own identity that a system like `target` has under `settings`; pure, like
    /// [`Driver::resolve`]. The default: none.
    fn identification(&self, settings: &Settings, target: &Target) -> Identification {
        let _ = (settings, target);
        Identification::none("its clients do not log in")
    }

    /// Whether reading from one client's connection can be stopped ([`Fleet::take_at_most`]) under `settings`, so that the
    /// system sees a subscriber that is slow; pure, like [`Driver::resolve`]. The default: it cannot.
    ///
    /// # Errors
    /// Why not.
    fn bounds_reading(&self, settings: &Settings) -> Result<(), String> {
        let _ = settings;
        Err("its driver cannot stop reading from one client's connection".into())
    }

    /// Whether a client of a system like `target` can have this last will under `settings`; pure, like [`Driver::resolve`].
    /// The default: it cannot.
    ///
    /// # Errors
    /// Why not, and what would do instead.
    fn check_will(&self, settings: &Settings, target: &Target, will: &Will) -> Result<(), String> {
        let _ = (settings, target, will);
        Err("its clients have no last will: nobody is told when one of them is gone".into())
    }

    /// How clients of a system like `target` reach each other; through a server by default.
    fn topology(&self, target: &Target) -> Topology {
        let _ = target;
        Topology::Brokered
    }

    /// The form of a capability on a system like `target`, or why it cannot be had; pure, like
    /// [`Driver::resolve`].
    ///
    /// The default asks [`Driver::resolve`], [`Driver::check_subscription`] and
    /// [`Driver::topology`], see [`Capability::derived`]; a driver adds to it only what those
    /// cannot say, for example that binary payloads travel as base64.
    fn capability(&self, capability: Capability, target: &Target) -> Answer {
        capability.derived(self, target)
    }

    /// The least that clients of a system like `target` take of the process and the host
    /// that they live in under `settings`; pure, like [`Driver::resolve`]. Settings that it
    /// refuses take nothing. The default is 0 throughout: not known.
    fn footprint(&self, settings: &Settings, target: &Target, crowd: &Crowd) -> Footprint {
        let _ = (settings, target, crowd);
        Footprint::default()
    }

    /// Opens a fleet on the calling thread, which will be the only one to use it.
    ///
    /// # Errors
    /// When the driver cannot even begin: a library that does not load, an unreadable
    /// certificate. A broker that is not there is no such error: it arrives as
    /// [`crate::Change::Failed`].
    fn open(&self, config: FleetConfig) -> Result<Box<dyn Fleet>, DriverError>;
}

impl Capability {
    /// The first of [`Capability::requesting_settings`] that a system like `target` honours.
    pub fn settings<D: Driver + ?Sized>(self, driver: &D, target: &Target) -> Option<Settings> {
        self.requesting_settings()
            .into_iter()
            .find(|ask| driver.resolve(ask, target).is_ok())
    }

    /// The answer as far as the rest of the driver gives it: its settings, subscriptions and topology.
    pub fn derived<D: Driver + ?Sized>(self, driver: &D, target: &Target) -> Answer {
        match self {
            Capability::Filter(filter) => by_subscription(driver, target, filter.example(), None),
            Capability::Group => by_subscription(driver, target, Some("a/b"), Some("g")),
            Capability::Topology(topology) => {
                let actual = driver.topology(target);
                if actual == topology {
                    Answer::native(actual.description())
                } else {
                    Answer::unsupported(actual.description())
                }
            }
            Capability::PayloadAgnostic => Answer::native("the payload is not looked into"),
            Capability::BinaryPayload => Answer::native("bytes as they are"),
            _ => by_settings(driver, self, target),
        }
    }
}

fn by_subscription<D: Driver + ?Sized>(
    driver: &D,
    target: &Target,
    filter: Option<&str>,
    group: Option<&str>,
) -> Answer {
    let Some(filter) = filter else {
        return Answer::unsupported("subscribers choose by topic, not by what a message holds");
    };
    let subscription = Subscription {
        filter: filter.to_owned(),
        group: group.map(str::to_owned),
    };
    match driver.check_subscription(&Settings::default(), target, &subscription) {
        Ok(()) => Answer::native(match group {
            None => format!("a subscription to {filter}"),
            Some(_) => "a subscription that its members share".to_owned(),
        }),
        Err(error) => Answer::unsupported(error.what),
    }
}

fn by_settings<D: Driver + ?Sized>(driver: &D, capability: Capability, target: &Target) -> Answer {
    let Some((name, plainest)) = capability.ask() else {
        return Answer::unsupported("no driver answers for it");
    };
    for ask in capability.requesting_settings() {
        let Ok(rows) = driver.resolve(&ask, target) else {
            continue;
        };
        let words = rows.into_iter().find(|row| row.setting == name);
        let needs = needs(&plainest, &ask);
        return Answer::native(match words {
            Some(row) => format!("{}{needs}", row.native),
            None => format!("{name} is honoured{needs}"),
        });
    }
    let refused = driver.resolve(&plainest, target).err().unwrap_or_default();
    let reason = |u: &Unsupported| u.reason.clone();
    let own = refused.iter().find(|u| u.setting == name);
    let reason = own.or(refused.first()).map(reason).unwrap_or_default();
    if capability == Capability::Pattern(MessagingPattern::RequestReply) {
        // Ping-pong workloads ask and answer on two topics, over every system.
        return Answer::emulated(reason);
    }
    Answer::unsupported(reason)
}

/// The settings that a study must ask for besides.
fn needs(plainest: &Settings, ask: &Settings) -> String {
    let mut needs = Vec::new();
    if ask.reliability != plainest.reliability {
        needs.push(format!("reliability = {}", ask.value_of("reliability")));
    }
    if ask.session != plainest.session {
        needs.push(format!("session = {}", ask.value_of("session")));
    }
    if needs.is_empty() {
        return String::new();
    }
    format!(" (with {})", needs.join(", "))
}
