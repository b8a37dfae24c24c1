//! A workload as plain data: devices, flows, phases.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::curve::RateCurve;
use crate::identity::Identity;
use crate::presence::Presence;
use crate::trace::{Trace, TraceError, TraceSource};
use crate::units::{Nanos, SECOND};

/// The work of all devices and applications of one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Name shown in tables.
    pub name: String,
    /// Connections. Publishers and subscribers of all flows refer to them by index; a device
    /// that appears as both publishes and subscribes on one connection.
    pub devices: Vec<Device>,
    /// Traffic relations, running side by side.
    pub flows: Vec<Flow>,
    /// How the trial proceeds.
    pub phases: Phases,
    /// Seed of all random draws.
    pub seed: u64,
    /// The brokers that devices connect to are nodes of one cluster: what is published at one is heard at all. Else each
    /// topic is on one broker.
    #[serde(default)]
    pub cluster: bool,
}

impl Workload {
    /// Devices that connect to one broker.
    pub fn new(
        name: String,
        devices: Vec<Device>,
        flows: Vec<Flow>,
        phases: Phases,
        seed: u64,
    ) -> Workload {
        Workload {
            name,
            devices,
            flows,
            phases,
            seed,
            cluster: false,
        }
    }

    /// Makes the curves of rates that take as long as their flows send fit the measurement. To be called after its length
    /// changed.
    pub fn stretch_curves(&mut self) {
        let measure = self.phases.measure.latest();
        for flow in &mut self.flows {
            let lasts = flow.sends_for(measure).max(1);
            if let Arrivals::Varying { curve, .. } = &mut flow.arrivals
                && curve.stretched
            {
                curve
                    .pieces
                    .iter_mut()
                    .for_each(|piece| piece.lasts = lasts);
            }
        }
    }
}

/// One connection to the system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// Its name, unique in the workload; becomes the client identifier, unless it has an identity with one.
    pub name: String,
    /// Who it is to the system, where the study says so.
    #[serde(default)]
    pub identity: Option<Box<Identity>>,
    /// The broker that it connects to, from 0; see [`Workload::spread_over`].
    #[serde(default)]
    pub broker: u32,
    /// The device that this is a further connection of, where a device has one to each of several
    /// brokers: index into [`Workload::devices`].
    #[serde(default)]
    pub connection_of: Option<u32>,
    /// The message that the server publishes for it if its connection is lost.
    pub will: Option<Box<LastWill>>,
}

impl Device {
    /// The client identifier.
    pub fn client_id(&self) -> &str {
        let own = self.identity.as_ref().and_then(|own| own.id.as_deref());
        own.unwrap_or(&self.name)
    }

    /// Its name, and who it is to the system, for messages.
    pub fn describe(&self) -> String {
        let identity = self.identity.as_ref().map(|own| own.describe());
        match identity.filter(|words| !words.is_empty()) {
            Some(identity) => format!("{} ({identity})", self.name),
            None => self.name.clone(),
        }
    }
}

/// The message that the system publishes for a device whose connection ends without a word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastWill {
    /// Its topic.
    pub topic: String,
    /// Its size in bytes.
    pub bytes: u32,
    /// The server keeps it for later subscribers.
    pub retain: bool,
    /// MQTT's quality of service, 0 to 2; absent: that of the flow's settings.
    pub qos: Option<u8>,
    /// How long after the end of the connection it is published, if the device is not back by then, s.
    pub delay_s: u32,
}

/// One traffic relation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Name shown in tables.
    pub name: String,
    /// Who publishes, and to which topics. May be empty.
    pub publishers: Vec<Publisher>,
    /// Who subscribes, and to what. May be empty.
    pub subscribers: Vec<Subscriber>,
    /// When messages are due.
    pub arrivals: Arrivals,
    /// How big messages are, header included, in bytes.
    pub size: Sizes,
    /// Nanoseconds from the start of the measurement to that of the flow. Absent: the flow starts with the
    /// warm-up, or with the measurement if `active_for` is given.
    pub start_offset: Option<Nanos>,
    /// How long after its start the flow sends; absent: to the end of the measurement.
    pub active_for: Option<Nanos>,
    /// One way, or there and back.
    pub exchange: Exchange,
    /// Of several subscribers that hear a question the last one answers, in the order of the flow; else the first one.
    #[serde(default)]
    pub answered_by_last: bool,
    /// Bound on messages under way (published, not yet delivered to all) for flat-out traffic;
    /// absent: the engine's own bound where the system has no back-pressure, else none.
    pub window: Option<u32>,
    /// The exponent of Zipf's law for how often a publisher uses each of its topics: the k-th in proportion to 1/k^s, drawn for
    /// each message. Absent: in turn.
    #[serde(default)]
    pub topic_zipf: Option<f64>,
    /// Time that the application of each of its subscribers takes for a message, ns, above 0: until then it takes no other, in
    /// warm-up, measurement and drain. Absent: none to speak of. A slow subscriber has its own.
    #[serde(default)]
    pub subscribers_take: Option<Nanos>,
    /// When its devices are connected; absent: throughout.
    #[serde(default)]
    pub presence: Option<Box<Presence>>,
    /// Which of the trial's settings it asks for: 0 is the trial's own, others are those of flows
    /// with settings of their own. Connections belong to one of them.
    pub settings: u32,
}

impl Flow {
    /// Whether it has publishers.
    pub fn publishes(&self) -> bool {
        !self.publishers.is_empty()
    }

    /// How long it sends in a measurement that takes so long.
    pub fn sends_for(&self, measure: Nanos) -> Nanos {
        let left = measure.saturating_sub(self.start_offset.unwrap_or(0));
        self.active_for.map_or(left, |active| active.min(left))
    }

    /// Whether it sends as fast as the system takes messages. A flow that only subscribes does not, whatever its
    /// arrivals are.
    pub fn is_flat_out(&self) -> bool {
        self.publishes() && self.arrivals.is_flat_out()
    }
}

/// One publishing device of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Publisher {
    /// Index into [`Workload::devices`].
    pub device: u32,
    /// Concrete topics, used in turn, or as [`Flow::topic_zipf`] has it; at least one.
    pub topics: Vec<String>,
}

/// One subscribing device of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subscriber {
    /// Index into [`Workload::devices`].
    pub device: u32,
    /// Filters with `+` and `#`; at least one. They must not overlap within a subscriber.
    pub filters: Vec<String>,
    /// Members of one group share the messages.
    pub group: Option<String>,
    /// Time that its application takes for each message of the measurement, ns, above 0: until then it takes no other. Absent:
    /// none to speak of.
    #[serde(default)]
    pub takes: Option<Nanos>,
    /// How long after the beginning of the measurement it subscribes, ns; absent: before all traffic.
    #[serde(default)]
    pub late: Option<Nanos>,
}

/// When the messages of a flow are due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Arrivals {
    /// As fast as the system takes them.
    FlatOut,
    /// Evenly spaced: `per_s` messages a second over all publishers, which take turns. A rate
    /// per publisher is that rate times the number of publishers.
    Periodic {
        /// Messages per second over all publishers of the flow.
        per_s: f64,
    },
    /// A Poisson process of `per_s` messages a second over all publishers.
    Poisson {
        /// Messages per second over all publishers of the flow, on average.
        per_s: f64,
    },
    /// A rate that changes over time.
    Varying {
        /// The rate at each moment.
        curve: Box<RateCurve>,
        /// Messages come at random, as many as the rate says on average; else evenly: message k is due where the area under
        /// the rate passes k.
        random: bool,
    },
    /// Periodic bursts: `per_s` for `on`, then silence for `off`.
    OnOff {
        /// Messages per second over all publishers of the flow while a burst lasts;
        /// absent: flat out.
        per_s: Option<f64>,
        /// Length of a burst.
        on: Nanos,
        /// Silence between bursts.
        off: Nanos,
    },
    /// Bursts of messages back to back: all messages of a burst are due at its beginning.
    Bursts {
        /// Messages of a burst, of each publisher of the flow; at least 1.
        messages: u32,
        /// From the beginning of a burst to that of the next; absent: a burst begins when the one before
        /// has arrived whole, or was given up, at a multiple of [`crate::BURST_SLOT`].
        every: Option<Nanos>,
    },
    /// A recorded trace, or draws from its distributions.
    Replay(Box<Replay>),
}

/// How a recorded trace is replayed.
///
/// Device k of the trace is played by publisher k modulo the number of publishers. Where there
/// are more publishers than devices, publisher p plays device p modulo the number of devices, and
/// copies of a device are spread evenly over the tape. A recorded topic becomes one of the
/// publisher's own topics, by its number, unless contents are recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    pub source: TraceSource,
    /// [`Trace::checksum`] of what the study was planned with; absent: any trace will do.
    pub checksum: Option<u32>,
    /// Recorded seconds per second; 1 is real speed.
    pub speed: f64,
    /// Begin again at the end.
    pub looped: bool,
    /// As recorded, or drawn.
    pub mode: ReplayMode,
    /// Topics, payloads, quality of service and retain travel as recorded, payloads whole: the header is beside them, or
    /// in front. The topics of each publisher are then those of its [`crate::trace::Outlets`].
    #[serde(default)]
    pub contents: bool,
}

impl Default for Replay {
    fn default() -> Self {
        Replay {
            source: TraceSource::default(),
            checksum: None,
            speed: 1.0,
            looped: true,
            mode: ReplayMode::Tape,
            contents: false,
        }
    }
}

impl Replay {
    /// Opens the trace.
    ///
    /// # Errors
    /// The files are wrong, or hold another trace than the study was planned with.
    pub fn open(&self) -> Result<Arc<Trace>, TraceError> {
        let trace = Trace::open(&self.source)?;
        if self.checksum.is_none_or(|sum| sum == trace.checksum()) {
            return Ok(trace);
        }
        Err(TraceError {
            file: self.source.files.first().cloned().unwrap_or_default(),
            line: None,
            column: None,
            message: "this is another trace than the study was planned with".into(),
            hint: Some("copy the files of the run's host to this one".into()),
        })
    }
}

/// How a trace is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayMode {
    /// As recorded.
    Tape,
    /// Sizes and gaps are drawn from those that the device had in the interval of the recording
    /// that the publisher has reached, beginning at a random position: the day keeps its shape,
    /// but no two publishers send the same messages (the method of happ2016).
    Drawn {
        /// Length of an interval; the study's default is 15 minutes.
        interval: Nanos,
    },
}

/// How big messages are, in bytes, header included. Never below 16.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Sizes {
    /// Always the same.
    Fixed { bytes: u32 },
    /// Taken in turn.
    List {
        /// Bytes of each; at least one.
        bytes: Vec<u32>,
    },
    /// Uniform between two sizes, both included.
    Uniform {
        /// Smallest, bytes.
        min: u32,
        /// Largest, bytes.
        max: u32,
    },
    /// Normal, cut off at both ends.
    Normal {
        /// Mean, bytes.
        mean: f64,
        /// Standard deviation, bytes.
        sd: f64,
        /// Smallest, bytes.
        min: u32,
        /// Largest, bytes.
        max: u32,
    },
    /// Log-normal, cut off at both ends.
    LogNormal {
        /// Median, bytes.
        median: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
        /// Smallest, bytes.
        min: u32,
        /// Largest, bytes.
        max: u32,
    },
    /// As recorded; only with [`Arrivals::Replay`].
    Recorded,
}

/// One way, or there and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exchange {
    /// Publisher to subscribers.
    OneWay,
    /// The flow's first subscriber that hears a message (of a group: whichever member gets it) answers it at
    /// once on the topic `TOPIC/reply`, to
    /// which the publisher subscribes; with [`Arrivals::FlatOut`] the next message is sent when
    /// the answer is there (ping-pong), otherwise on schedule.
    PingPong,
}

/// The end of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// After this many nanoseconds.
    Time(Nanos),
    /// After this many messages over all flows; at the latest after the second number of
    /// nanoseconds.
    Count(u64, Nanos),
}

impl Until {
    /// When the phase ends at the latest, nanoseconds from its start.
    pub fn latest(&self) -> Nanos {
        match *self {
            Until::Time(t) | Until::Count(_, t) => t,
        }
    }
}

/// How a trial proceeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phases {
    /// Connections begun per second in all; absent: as fast as the system takes them, at
    /// most 64 under way at a time in each worker.
    pub connect_per_s: Option<f64>,
    /// Longest time for connecting, subscribing and proving readiness.
    pub ready_within: Nanos,
    /// Traffic before the measurement.
    pub warm_up: Until,
    /// The measurement.
    pub measure: Until,
    /// Length of the records of the series, where one is asked for: see [`Phases::record_length`].
    #[serde(default)]
    pub record: Option<Nanos>,
    /// How long nothing must come before messages that were passed over count as lost, and repeated
    /// ones are no longer awaited.
    pub drain_quiet: Nanos,
    /// Longest drain.
    pub drain_within: Nanos,
    /// Reconnect a client that was lost, after this long; absent: a lost client stays lost.
    pub reconnect_after: Option<Nanos>,
    /// Connections are cut on purpose, from outside: lost ones do not break the trial.
    pub disconnects_allowed: bool,
    /// Losses are what is studied: they do not make the trial lossy.
    pub losses_allowed: bool,
    /// Named spans of the measurement, each with its own figures. They may overlap.
    #[serde(default)]
    pub windows: Vec<Window>,
}

impl Phases {
    /// Fewest records of a measurement: a verdict needs as many to find a queue that grows slowly.
    pub const FEWEST_RECORDS: u64 = 8;
    /// Most records of a measurement: each takes about 350 bytes of memory, and a day would have 86,400 of a second.
    pub const MOST_RECORDS: u64 = 1_800;
    /// Shortest record.
    pub const SHORTEST_RECORD: Nanos = SECOND / 10;

    /// Length of the records of the series: as asked for, else 1 s, or a tenth of a measurement below 10 s (but no less than
    /// [`Phases::SHORTEST_RECORD`]), so that a short one shows its course too, or as many whole seconds as leave a long one
    /// [`Phases::MOST_RECORDS`] at the most.
    pub fn record_length(&self) -> Nanos {
        let length = self.measure.latest();
        let usual = match length.div_ceil(Phases::MOST_RECORDS * SECOND) {
            0 | 1 => (length / 10).clamp(Phases::SHORTEST_RECORD, SECOND),
            seconds => seconds * SECOND,
        };
        self.record.unwrap_or(usual)
    }
}

/// A named span of the measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Its name, unique among the windows.
    pub name: String,
    /// Its beginning, nanoseconds from the start of the measurement.
    pub from: Nanos,
    /// Its end, later than its beginning and no later than that of the measurement.
    pub to: Nanos,
}

impl Default for Phases {
    fn default() -> Self {
        Phases {
            connect_per_s: None,
            ready_within: 30 * SECOND,
            warm_up: Until::Time(2 * SECOND),
            measure: Until::Time(10 * SECOND),
            record: None,
            drain_quiet: SECOND,
            drain_within: 10 * SECOND,
            reconnect_after: None,
            disconnects_allowed: false,
            losses_allowed: false,
            windows: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_has_eight_records_and_1800_at_the_most() {
        const MS: Nanos = 1_000_000;
        let of = |length: Nanos| Phases {
            measure: Until::Time(length),
            ..Phases::default()
        };
        for (length_s, step_ms) in [
            (1, 100),
            (5, 500),
            (10, 1_000),
            (1_800, 1_000),
            (1_801, 2_000),
            (3_600, 2_000),
            (86_400, 48_000),
        ] {
            let phases = of(length_s * 1_000 * MS);
            assert_eq!(phases.record_length(), step_ms * MS, "{length_s} s");
        }
        assert_eq!(of(0).record_length(), 100 * MS);
        let asked = Phases {
            record: Some(5_000 * MS),
            ..of(90_000 * MS)
        };
        assert_eq!(asked.record_length(), 5_000 * MS);
    }
}
