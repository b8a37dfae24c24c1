//! The simulated system: a real seam over a system whose truth is known.
//!
//! Its delay distribution, loss, duplication, reordering, stalls, limits and disconnects, and the
//! sleeps of the client itself, are set by the caller, and everything it did is on record ([`Bus::truth`]), so that what the engine
//! reports of it can be held against what really happened.

mod bus;
mod fleet;
mod truth;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use bus::{Bus, TruthRecord};
pub use truth::Truth;

use pubgauge_driver::Driver;
use pubgauge_driver::clock::{Clock, Nanos};
use pubgauge_driver::header::Mark;
use pubgauge_driver::seam::{DriverError, Fleet, FleetConfig, Shared, Target, Traits};
use pubgauge_driver::settings::{Mapping, Settings, Unsupported};

/// What the simulated system does to messages and clients. The default is a perfect system with
/// a constant delay of 1 ms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Behaviour {
    /// Median of the delay from publish to delivery, nanoseconds.
    pub delay_median_ns: Nanos,
    /// Standard deviation of the delay's logarithm (log-normal); 0: constant.
    pub delay_sigma: f64,
    /// Intervals, in nanoseconds since the bus was made, in which what is published takes so much longer:
    /// (from, to, longer), all nanoseconds.
    pub slower: Vec<(Nanos, Nanos, Nanos)>,
    /// Keep the order of each subscriber's stream even when delays vary.
    pub ordered: bool,
    /// Probability that one delivery is lost.
    pub loss: f64,
    /// Probability that one delivery happens twice; 1: every one.
    pub duplication: f64,
    /// How much later than the first the second of a repeated delivery comes, nanoseconds; absent:
    /// [`Behaviour::delay_median_ns`].
    pub repeated_after_ns: Option<Nanos>,
    /// Probability that one delivery is held back by [`Behaviour::hold_back_ns`], against
    /// `ordered`.
    pub reordering: f64,
    /// How long a reordered delivery is held back.
    pub hold_back_ns: Nanos,
    /// Time the system's only processor spends on one message, so that it takes exactly one in this
    /// time and the others queue, nanoseconds; 0: unlimited capacity.
    pub service_ns: Nanos,
    /// From a moment on, nanoseconds since the bus was made, it takes so many nanoseconds instead (burst
    /// credit that is spent).
    pub service_later: Option<(Nanos, Nanos)>,
    /// While so many nanoseconds of work wait for it, it takes so many nanoseconds for a message instead (a
    /// system that is slower the more it has to do).
    pub service_crowded: Option<(Nanos, Nanos)>,
    /// Messages that may wait for the processor, that which it is at among them: one more is dropped
    /// (a queue that is full); 0: no limit. It needs [`Behaviour::service_ns`].
    pub queue: usize,
    /// Subscribers that take only one delivery in so many nanoseconds, the others queueing for
    /// them: (client name, nanoseconds).
    pub slow_subscribers: Vec<(String, Nanos)>,
    /// Which member of a group that shares gets the next message, by its place among those that subscribed,
    /// over and over: `[0, 0, 0, 1]` gives the first three of four. Empty: each in turn.
    pub group_order: Vec<usize>,
    /// Messages that may be inside the system before publishers are blocked; 0: no limit.
    pub capacity: usize,
    /// Intervals, in nanoseconds since the bus was made, in which nothing moves.
    pub stalls: Vec<(Nanos, Nanos)>,
    /// Clients that lose their connection: (nanoseconds since the bus was made, client name).
    pub disconnects: Vec<(Nanos, String)>,
    /// Clients that are refused, by name.
    pub refuses: Vec<String>,
    /// Clients for which the client's own process has no file descriptor left, by name.
    pub starves: Vec<String>,
    /// Subscriptions take effect so long after they were confirmed (late readiness).
    pub deaf_for_ns: Nanos,
    /// Time that handing over one message takes, for virtual clocks only.
    pub publish_cost_ns: Nanos,
    /// Processor time of handing over one message by the simulated accounts of the client, nanoseconds; no
    /// simulated time passes for it.
    pub publish_cpu_ns: Nanos,
    /// Intervals, in nanoseconds since the bus was made, in which the client is not run: it neither
    /// sends nor looks at what came. For virtual clocks only, whose time jumps over them.
    pub client_sleeps: Vec<(Nanos, Nanos)>,
    /// Bytes of damaged payload per delivery probability.
    pub corruption: f64,
    /// Seed of all draws.
    pub seed: u64,
}

impl Behaviour {
    /// Time for one message, at a moment since the bus was made with so much work before it; all ns.
    fn service(&self, since: Nanos, waiting: Nanos) -> Nanos {
        let later = self.service_later.filter(|(from, _)| since >= *from);
        let crowded = self.service_crowded.filter(|(work, _)| waiting >= *work);
        let longest = later.into_iter().chain(crowded).map(|(_, ns)| ns).max();
        longest.unwrap_or(self.service_ns)
    }
}

impl Behaviour {
    /// By how much longer than usual a message takes that is published at a moment since the bus was
    /// made, ns.
    fn longer(&self, since: Nanos) -> Nanos {
        let slower = self.slower.iter();
        let now = slower.filter(|(from, to, _)| (*from..*to).contains(&since));
        now.map(|(_, _, longer)| longer).sum()
    }
}

impl Default for Behaviour {
    fn default() -> Self {
        Behaviour {
            delay_median_ns: 1_000_000,
            delay_sigma: 0.0,
            slower: Vec::new(),
            ordered: true,
            loss: 0.0,
            duplication: 0.0,
            repeated_after_ns: None,
            reordering: 0.0,
            hold_back_ns: 10_000_000,
            service_ns: 0,
            service_later: None,
            service_crowded: None,
            queue: 0,
            slow_subscribers: Vec::new(),
            group_order: Vec::new(),
            capacity: 0,
            stalls: Vec::new(),
            disconnects: Vec::new(),
            refuses: Vec::new(),
            starves: Vec::new(),
            deaf_for_ns: 0,
            publish_cost_ns: 0,
            publish_cpu_ns: 0,
            client_sleeps: Vec::new(),
            corruption: 0.0,
            seed: 1,
        }
    }
}

/// The driver of the simulated system.
///
/// All fleets of a trial must share one [`Bus`] in [`Target::shared`].
#[derive(Clone, Copy, Debug, Default)]
pub struct SimulatedDriver;

impl SimulatedDriver {
    /// The driver's name.
    pub const NAME: &'static str = "simulated";

    /// The behaviour that a study asks for under `native.simulated`.
    ///
    /// # Errors
    /// When a key or value is not one of [`Behaviour`]'s.
    pub fn behaviour(settings: &Settings) -> Result<Behaviour, String> {
        let none = BTreeMap::new();
        let native = settings.native.get(Self::NAME).unwrap_or(&none);
        serde_json::to_value(native)
            .and_then(serde_json::from_value)
            .map_err(|e| e.to_string())
    }

    /// A target for a fresh simulated system.
    pub fn target(bus: Arc<Bus>) -> Target {
        Target {
            shared: Some(bus),
            ..Target::default()
        }
    }
}

impl Driver for SimulatedDriver {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn shared(&self, settings: &Settings, mark: Mark) -> Option<Shared> {
        let behaviour = Self::behaviour(settings).unwrap_or_default();
        Some(Arc::new(Bus::new(behaviour, Clock::Monotonic, mark)))
    }

    fn resolve(&self, settings: &Settings, _: &Target) -> Result<Vec<Mapping>, Vec<Unsupported>> {
        if let Err(reason) = Self::behaviour(settings) {
            return Err(vec![Unsupported {
                setting: "native.simulated".into(),
                value: "as given".into(),
                reason,
            }]);
        }
        let native = |setting: &str| match setting {
            "reliability" if settings.may_lose() => "unacknowledged",
            "reliability" => "acknowledged after one delay",
            "in-flight" => "a limit on unacknowledged messages",
            "user-properties" => "their bytes are counted with each message",
            _ => "no effect: the simulated system does as native.simulated says",
        };
        let answer = |setting: &&str| Mapping {
            setting: (*setting).into(),
            value: settings.value_of(setting),
            native: native(setting).into(),
        };
        Ok(Settings::NAMES.iter().map(answer).collect())
    }

    fn traits(&self, settings: &Settings) -> Traits {
        let behaviour = Self::behaviour(settings).unwrap_or_default();
        Traits {
            publishers_first: false,
            back_pressure: behaviour.capacity > 0,
            acknowledges: !settings.may_lose(),
            lossless: behaviour.loss == 0.0 && behaviour.queue == 0,
            may_duplicate: behaviour.duplication > 0.0,
        }
    }

    fn open(&self, config: FleetConfig) -> Result<Box<dyn Fleet>, DriverError> {
        let shared = config.target.shared.clone().ok_or_else(|| {
            DriverError::with_hint(
                "the simulated system has no bus",
                "make the target with SimulatedDriver::target",
            )
        })?;
        let bus = shared.downcast::<Bus>().map_err(|_| {
            DriverError::new("the target belongs to another driver than the simulated system")
        })?;
        Ok(Box::new(fleet::SimulatedFleet::new(bus, config)))
    }
}
