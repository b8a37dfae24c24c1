//! `results.json`: the names that other tools read. Names of measured values contain the unit.

use std::collections::BTreeMap;

use pubgauge_driver::{Answer, Capability, Mapping, Settings, Unsupported};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::axis::Axis;
use crate::bursts::BurstFigures;
use crate::claim::ClaimOutcome;
use crate::comparison::Comparison;
use crate::counted::{InterfaceTraffic, SystemCalls};
use crate::criterion::CriterionSpec;
pub use crate::distribution::Distribution;
use crate::group::GroupFigures;
use crate::host::{OneWay, WorkerHost};
use crate::search::{LimitShare, NotMeasured, Search, SearchStep};
use crate::traffic::{NetworkInfo, NetworkTraffic};
use crate::window_figures::WindowFigures;

/// Name and version of the format; raised whenever a reader could misunderstand a newer file.
pub const FORMAT: &str = "pubgauge-results/2";

/// Formats that are read: fields that an older one lacks get their defaults.
pub const READ_FORMATS: [&str; 2] = ["pubgauge-results/1", FORMAT];

/// The file `results.json` of a run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Results {
    /// [`FORMAT`].
    pub format: String,
    /// Where it ran.
    pub machine: Machine,
    /// What was asked.
    pub study: StudyInfo,
    /// What was measured, in the order in which the trials ran.
    pub trials: Vec<Trial>,
    /// What was searched for, and what was found; in the order in which it ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub searches: Vec<Search>,
    /// Cells that were planned and could not be measured, because the search for their load found no limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_measured: Vec<NotMeasured>,
    /// Claims about the systems, and whether each holds here; filled in once the run is over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ClaimOutcome>,
    /// Cells that were compared with each other, and the outcomes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comparisons: Vec<Comparison>,
    /// Emulated networks that trials ran on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub networks: Vec<NetworkInfo>,
}

/// An empty run.
impl Default for Results {
    fn default() -> Self {
        Results {
            format: FORMAT.to_owned(),
            machine: Machine::default(),
            study: StudyInfo::default(),
            trials: Vec::new(),
            searches: Vec::new(),
            not_measured: Vec::new(),
            claims: Vec::new(),
            comparisons: Vec::new(),
            networks: Vec::new(),
        }
    }
}

/// The machine a run took place on.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// Kernel name and release.
    pub kernel: String,
    /// Distribution.
    pub os: String,
    /// Processor model.
    pub cpu_model: String,
    /// Processors available to this process.
    pub cores: u32,
    /// Main memory in bytes.
    pub memory_bytes: u64,
    /// Frequency governor, where the kernel tells.
    pub governor: Option<String>,
    /// Highest number of open files allowed for this process.
    pub max_open_files: u64,
    /// Load average over the minute before the run.
    pub load_average_1min: f64,
    /// Version of pubgauge.
    pub pubgauge_version: String,
    /// The newest calibration of this machine, as `pubgauge calibrate` stored it.
    pub calibration: Option<serde_json::Value>,
}

/// The study of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct StudyInfo {
    /// Its name.
    pub name: String,
    /// The question in one sentence.
    pub question: Option<String>,
    /// Start of the run, RFC 3339.
    pub started: String,
    /// Trials planned.
    pub planned_trials: u32,
    /// Criteria and whether they were met, once the run is over.
    pub criteria: Vec<CriterionOutcome>,
    /// The same criteria as they are evaluated trial by trial; empty in runs of older versions.
    #[serde(default)]
    pub criterion_specs: Vec<CriterionSpec>,
    /// Cells that could not be planned, with the reasons.
    pub unsupported: Vec<UnsupportedCell>,
    /// What each system of the run can do, as its driver and its file say.
    #[serde(default)]
    pub capabilities: Vec<SystemCapabilities>,
    /// The size of the study that was chosen by name; absent: the study as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<String>,
    /// Seed from which order and draws follow.
    pub seed: u64,
    /// Whether the run was cut off before all trials had run.
    pub cut_off: bool,
}

/// A criterion of the study and its outcome.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CriterionOutcome {
    /// The criterion as the study states it.
    pub criterion: String,
    /// Whether it was met; absent if undecided: a trial cannot tell, or no trial applies.
    pub met: Option<bool>,
    /// The figures that decided.
    pub figures: String,
}

/// A cell of the grid that a system cannot honour.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct UnsupportedCell {
    /// The system.
    pub system: String,
    /// The settings that it cannot honour.
    pub settings: Vec<Unsupported>,
}

/// What a system can do.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SystemCapabilities {
    /// The system, with its variant where it has several.
    pub system: String,
    /// An answer for every capability.
    pub answers: Vec<CapabilityAnswer>,
}

/// One answer.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CapabilityAnswer {
    /// `property:value`, or the property alone.
    pub capability: Capability,
    /// Whether the system has it, and what it is there.
    #[serde(flatten)]
    pub answer: Answer,
}

/// One trial.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Position in the plan; names the trial's files (`trials/0007/`).
    pub id: u32,
    /// Identifies the cell: equal for all repeats of it.
    pub cell: String,
    /// The system under test.
    pub system: System,
    /// What the application asked for.
    pub settings: Settings,
    /// Name of the variant of the settings, where the study names several.
    #[serde(default)]
    pub settings_name: String,
    /// Values of the grid's axes.
    #[serde(default)]
    pub axes: Vec<Axis>,
    /// Its place in the search that it is a part of; absent in a trial of a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchStep>,
    /// The limit that its load is a share of; absent where the study states the load itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_share: Option<LimitShare>,
    /// What the driver made of each setting.
    pub mappings: Vec<Mapping>,
    /// What was run.
    pub workload: WorkloadInfo,
    /// Repeat number, from 1.
    pub repeat: u32,
    /// Whether the figures can be trusted.
    pub verdict: Verdict,
    /// Start of the trial, RFC 3339.
    pub started: String,
    /// Seconds from the end of the trial before to the end of this one: its system's start and end, and the
    /// wait for what the last trial left in a system, are included. 0 if not known, as in simulated time.
    #[serde(default)]
    pub took_s: f64,
    /// Length of the measurement in seconds.
    pub duration_s: f64,
    /// Messages due in the measurement.
    pub offered: u64,
    /// Measured messages that the system took.
    pub published: u64,
    /// Measured messages that the system or its client library refused.
    pub refused: u64,
    /// Measured messages that were due but could not be handed over before the end.
    pub not_sent: u64,
    /// Deliveries of measured messages over all subscribers, duplicates included.
    pub delivered: u64,
    /// Deliveries expected: over all published messages, the subscribers (or groups) entitled.
    pub expected: u64,
    /// Expected deliveries that never come: something later of the same stream has come to the same
    /// subscriber, or nothing has come for longer than the trial was ever silent.
    pub lost: u64,
    /// Expected deliveries that were still on their way when the drain was cut short: neither
    /// delivered nor lost. `expected = delivered - duplicated + under_way + lost`.
    #[serde(default)]
    pub under_way: u64,
    /// Deliveries of a message that the same subscriber (or group) had already got.
    pub duplicated: u64,
    /// Deliveries overtaken by a later message of the same stream (RFC 4737).
    pub reordered: u64,
    /// Sentinel messages published to prove readiness.
    pub sentinels: u64,
    /// Traffic of the warm-up.
    pub warm_up: PhaseCounts,
    /// Deliveries of another trial, with a damaged body, before their sending time, or above the
    /// histogram's range, among others.
    pub odd: OddCounts,
    /// Messages due per second of the measurement.
    pub offered_msgs_per_s: f64,
    /// Messages taken by the system per second of the measurement.
    pub published_msgs_per_s: f64,
    /// First deliveries that arrived during the measurement, per second; repeated ones count once.
    pub delivered_msgs_per_s: f64,
    /// From the intended send time to arrival.
    pub latency_ns: Distribution,
    /// From the actual send time to arrival.
    pub latency_from_send_ns: Distribution,
    /// From the intended to the actual send time.
    pub send_lag_ns: Distribution,
    /// From the actual send time to the system's acknowledgement, where it acknowledges.
    pub acknowledgement_ns: Option<Distribution>,
    /// Round trip of ping-pong flows, from the intended send time of the question.
    pub round_trip_ns: Option<Distribution>,
    /// Half of each round trip, (T2 - T1) / 2: the one-way time where both ways are alike.
    #[serde(default)]
    pub half_round_trip_ns: Option<Distribution>,
    /// Processor seconds of the client during the measurement.
    pub client_cpu_s: ClientCpu,
    /// Processor seconds of the system's processes during the measurement; absent where the
    /// system is no process of its own or out of sight.
    pub system_cpu_s: Option<f64>,
    /// Each of several brokers side by side; empty where there is one. The figures of the system are
    /// of all together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub brokers: Vec<Broker>,
    /// Processes of the client on the host of the run, that of the run among them: 1 where all workers
    /// are its threads, or on other hosts. Absent where nothing was measured.
    #[serde(default)]
    pub client_processes: Option<u32>,
    /// Largest resident memory of these processes during the measurement.
    pub client_rss_bytes: u64,
    /// Largest resident memory of the system's processes during the measurement.
    pub system_rss_bytes: Option<u64>,
    /// Share of the measurement in which the busiest publisher / subscriber worker ran on a
    /// processor, and in which it was ready but had to wait for one; 0 to 1.
    pub worker_load: WorkerLoad,
    /// Context switches of the client during the measurement.
    pub client_context_switches: ContextSwitches,
    /// Context switches of the system's processes during the measurement.
    #[serde(default)]
    pub system_context_switches: Option<ContextSwitches>,
    /// Processor share of the system's busiest thread over the measurement, 1 = one core: a
    /// server with one thread is at its end when this is 1.
    #[serde(default)]
    pub system_busiest_thread_cpu: Option<f64>,
    /// Processes of the system at the end of the measurement.
    #[serde(default)]
    pub system_processes: Option<u32>,
    /// Bytes that the kernel was to write to disk for the system's processes during the measurement (`write_bytes`
    /// of `/proc/PID/io`), of those still alive at its end; absent where they are out of sight.
    #[serde(default)]
    pub system_written_bytes: Option<u64>,
    /// System calls of the measurement, where the study has them counted. Counting changes the rates and
    /// times of such a trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_calls: Option<SystemCalls>,
    /// What crossed a network interface during the measurement, where the study has it counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<InterfaceTraffic>,
    /// What crossed the links of a network's hosts during the measurement; absent: all ran on one host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkTraffic>,
    /// Hosts that the workers ran on, by rank; empty: they ran on the host of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<WorkerHost>,
    /// How exactly one-way times between hosts with different clocks are known; absent: all times are of one clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way: Option<OneWay>,
    /// Bytes on the wire during the trial, as the client sees them.
    pub wire_bytes_sent: u64,
    /// Bytes on the wire during the trial, as the client sees them.
    pub wire_bytes_received: u64,
    /// Connections: asked for, made, lost on the way, made again; and time to connect all.
    pub connections: Connections,
    /// How the drain went.
    #[serde(default)]
    pub drain: Drain,
    /// Longest time, from the start of the measurement on, for which nothing came to a subscribing
    /// worker although a message was under way to it, ns.
    #[serde(default)]
    pub longest_silence_ns: u64,
    /// Facts about the trial beside its figures, as the verdict used them.
    #[serde(default)]
    pub circumstances: Circumstances,
    /// What the study limits each instance of the system to, and how that was held; absent without
    /// limits.
    #[serde(default)]
    pub limits: Option<HeldLimits>,
    /// What the study limits each worker process to, and how that was held; absent without limits.
    #[serde(default)]
    pub client_limits: Option<HeldLimits>,
    /// Figures that were determined in two independent ways.
    #[serde(default)]
    pub checks: Vec<CountCheck>,
    /// The same figures flow by flow.
    pub flows: Vec<FlowFigures>,
    /// Groups that share messages, with what each member got; empty where no subscribers share.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupFigures>,
    /// Named spans of the measurement, in the order of the study, each with its own figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowFigures>,
    /// The state at the start of the measurement, after the warm-up.
    #[serde(default)]
    pub at_start: AtStart,
    /// The series, record by record.
    pub series: Vec<SeriesRecord>,
    /// How late a thread that only sleeps 1 ms at a time woke up during the measurement.
    pub noise_ns: Distribution,
    /// Points of the latency's distribution function for the page: (ns, share at or below).
    pub latency_ecdf: Vec<(u64, f64)>,
    /// The same for the machine's noise.
    pub noise_ecdf: Vec<(u64, f64)>,
    /// What went wrong, in order.
    pub errors: Vec<String>,
    /// Systems that did not end in order when the trial was over, each with what it did instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_in_order: Vec<String>,
    /// Empty: no version writes figures here since format 2.
    pub extra: BTreeMap<String, serde_json::Value>,
}

impl Trial {
    /// First deliveries of measured messages.
    pub fn unique(&self) -> u64 {
        self.delivered.saturating_sub(self.duplicated)
    }

    /// Whether the system works inside the client's own threads or processes (a brokerless
    /// library), so that its processor time is part of the client's. Tells a system without
    /// processor time of its own from one that is merely out of sight.
    pub fn system_in_client(&self) -> bool {
        self.circumstances.system_in_client
    }
}

/// One of several brokers side by side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Broker {
    /// Where its clients connect.
    pub address: String,
    /// Its clients.
    pub connections: u64,
    /// Processor seconds of its processes during the measurement; absent where they are out of sight.
    pub cpu_s: Option<f64>,
    /// Largest resident memory of its processes during the measurement.
    pub rss_bytes: Option<u64>,
    /// Processor share of its busiest thread over the measurement, 1 = one core.
    pub busiest_thread_cpu: Option<f64>,
    /// Messages that it says it received from publishers during the trial, sentinels and warm-up
    /// included; absent where it was not read.
    pub published: Option<u64>,
    /// Messages that it says it sent to subscribers.
    pub delivered: Option<u64>,
}

/// Facts about a trial that its figures do not contain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Circumstances {
    /// Why the trial could not be run to its end: not ready in time, interrupted. Completes the
    /// sentence "not run as planned: ...".
    pub not_run: Option<String>,
    /// The client's own resource that was used up, where that is why connections or the whole trial
    /// failed: file descriptors, memory, ports.
    pub exhausted: Option<String>,
    /// Processes of the system that ended during the trial, each with how.
    pub system_died: Vec<String>,
    /// The study cuts connections on purpose: lost connections are no fault.
    pub disconnects_allowed: bool,
    /// Loss is the study's subject. Settings that permit loss (`on-full = "drop"`, `conflate`,
    /// `lifespan-ms`) say so by themselves.
    pub losses_allowed: bool,
    /// The system works inside the client's own threads or processes (brokerless libraries): a
    /// busy worker is then a busy system.
    pub system_in_client: bool,
    /// The arrivals vary by design (bursts, replayed traces): a rate that varies is no fault.
    pub rate_varies_by_design: bool,
    /// Processors available; 0 if not known.
    pub cores: u32,
    /// How much later than due the study lets scheduled messages leave, ns, so that several leave
    /// in one wake-up (`pacing-within`). 0: each leaves at its own time.
    pub pacing_within_ns: u64,
}

/// The most of the machine that each instance of a system, or each worker process, may use, and how
/// that was held.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeldLimits {
    /// Instances or worker processes, each with these limits.
    #[serde(default)]
    pub instances: u32,
    /// Processor time in processors; absent: not limited.
    pub cores: Option<f64>,
    /// How they were held, in words; absent: they were not.
    pub cores_by: Option<String>,
    /// Whether the kernel held them as a quota of time: none of them can have had more.
    #[serde(default)]
    pub cores_by_quota: bool,
    /// Memory in bytes; absent: not limited.
    pub memory_bytes: Option<u64>,
    /// How it was held, in words; absent: it was not.
    pub memory_by: Option<String>,
    /// The client's workers were kept off the system's processors; set in the system's limits only.
    #[serde(default)]
    pub clients_apart: bool,
    /// What could not be held as asked for, each with the reason.
    pub not_held: Vec<String>,
}

/// One figure, determined in two independent ways.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CountCheck {
    /// What was counted.
    pub what: String,
    /// Who counted, and what each found; a count that could not be read is absent, see
    /// `not_compared`.
    pub counts: Vec<(String, u64)>,
    /// The largest difference that is no disagreement: messages sent while clients closed, which
    /// may or may not be counted.
    #[serde(default)]
    pub tolerance: u64,
    /// Why the other count could not be read or compared; the check then has no result.
    #[serde(default)]
    pub not_compared: Option<String>,
}

impl CountCheck {
    /// Whether the counts differ.
    pub fn disagrees(&self) -> bool {
        let differ = |pair: &[(String, u64)]| pair[0].1.abs_diff(pair[1].1) > self.tolerance;
        self.not_compared.is_none() && self.counts.windows(2).any(differ)
    }
}

/// How a drain went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Drain {
    /// Its length, s.
    pub seconds: f64,
    /// Its time was over while messages were still coming or might be.
    pub cut_short: bool,
}

/// The state at the start of the measurement, after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AtStart {
    /// Messages published.
    pub published: u64,
    /// First deliveries.
    pub delivered: u64,
    /// Deliveries due that had not come.
    pub backlog: u64,
}

/// A system and its version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct System {
    /// Name of its file in `systems/`, or the address of an external one.
    pub name: String,
    /// Its version as it reports it; `unknown` where it does not.
    pub version: String,
}

/// What was run, in short.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadInfo {
    /// Name.
    pub name: String,
    /// Publishing devices.
    pub publishers: u32,
    /// Subscribing devices.
    pub subscribers: u32,
    /// Distinct topics.
    pub topics: u32,
    /// Payload in words, for example `64 B`.
    pub payload: String,
    /// Arrivals in words, for example `100/s` or `flat out`.
    pub arrivals: String,
    /// Flat-out traffic among the flows: throughput is the figure to look at.
    pub flat_out: bool,
}

/// Whether the figures of a trial can be trusted.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The verdict.
    pub status: Status,
    /// The rules that led to it, each with the figures that decided it.
    pub reasons: Vec<String>,
}

/// The verdicts.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// The figures describe the system.
    Valid,
    /// No steady state.
    Unsteady,
    /// The client or the machine was the limit.
    ClientBound,
    /// More was offered than the system could carry: the backlog grew.
    Overloaded,
    /// Messages were lost.
    Lossy,
    /// The trial did not run as planned.
    #[default]
    Broken,
}

impl Status {
    /// All of them, mildest first.
    pub const ALL: [Status; 6] = [
        Status::Valid,
        Status::Unsteady,
        Status::ClientBound,
        Status::Overloaded,
        Status::Lossy,
        Status::Broken,
    ];

    /// As it is written.
    pub fn word(self) -> &'static str {
        match self {
            Status::Valid => "valid",
            Status::Unsteady => "unsteady",
            Status::ClientBound => "client-bound",
            Status::Overloaded => "overloaded",
            Status::Lossy => "lossy",
            Status::Broken => "broken",
        }
    }
}

/// Messages of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseCounts {
    /// Taken by the system.
    pub published: u64,
    /// Delivered over all subscribers.
    pub delivered: u64,
}

/// Deliveries that are unusual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OddCounts {
    /// Not of this trial, or for another subscriber.
    pub foreign: u64,
    /// Of this trial, with a damaged body.
    pub corrupt: u64,
    /// Arrived before their intended send time; recorded as 1 ns, never left out.
    pub negative: u64,
    /// Above the histogram's range of one hour; recorded as one hour.
    pub overflowed: u64,
    /// Last values that the system kept from before the trial.
    pub retained: u64,
    /// Marked by the system as possibly a second delivery.
    pub redelivered: u64,
}

/// Processor seconds of the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientCpu {
    /// Of the workers that publish, with their libraries' threads.
    pub publishers: f64,
    /// Of the workers that subscribe, with their libraries' threads.
    pub subscribers: f64,
}

/// How busy the workers were; shares of the measurement, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerLoad {
    /// Busiest publishing worker: running.
    pub publishers_running: f64,
    /// Busiest publishing worker: ready, but waiting for a processor.
    pub publishers_waiting: f64,
    /// Busiest subscribing worker: running.
    pub subscribers_running: f64,
    /// Busiest subscribing worker: ready, but waiting for a processor.
    pub subscribers_waiting: f64,
    /// Publishing worker that was stalled longest: neither running nor waiting for a processor
    /// though its sleep was over, in stretches of 5 ms and more.
    #[serde(default)]
    pub publishers_stalled: f64,
    /// The same of the subscribing workers.
    #[serde(default)]
    pub subscribers_stalled: f64,
    /// The whole machine: a thread that only sleeps 1 ms at a time woke up 10 ms and more too late.
    #[serde(default)]
    pub machine_stalled: f64,
    /// Processors that programs other than client and system kept busy, on average, 1 = one; absent where
    /// the system's own use is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_others: Option<f64>,
    /// The longest stall of any of these, ns.
    #[serde(default)]
    pub longest_stall_ns: u64,
}

/// Context switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContextSwitches {
    /// The thread went to sleep.
    pub voluntary: u64,
    /// The thread was preempted: a sign of a crowded machine.
    pub involuntary: u64,
}

/// Connections of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Connections {
    /// Planned.
    pub planned: u64,
    /// Made.
    pub made: u64,
    /// Lost before the end.
    pub lost: u64,
    /// Made again.
    pub remade: u64,
    /// Seconds from the first attempt until all were connected.
    pub connect_s: f64,
    /// Seconds from all connected until every subscriber was proven to receive.
    pub ready_s: f64,
    /// Client processor seconds spent on connecting.
    pub connect_cpu_s: f64,
}

/// The figures of one flow.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct FlowFigures {
    /// Its name.
    pub name: String,
    /// As in [`Trial`].
    pub offered: u64,
    /// As in [`Trial`].
    pub published: u64,
    /// As in [`Trial`].
    pub refused: u64,
    /// As in [`Trial`].
    pub not_sent: u64,
    /// As in [`Trial`].
    pub delivered: u64,
    /// As in [`Trial`].
    pub expected: u64,
    /// As in [`Trial`].
    pub lost: u64,
    /// As in [`Trial`].
    #[serde(default)]
    pub under_way: u64,
    /// As in [`Trial`].
    pub duplicated: u64,
    /// As in [`Trial`].
    pub reordered: u64,
    /// As in [`Trial`].
    pub delivered_msgs_per_s: f64,
    /// As in [`Trial`].
    pub latency_ns: Distribution,
    /// As in [`Trial`].
    pub latency_from_send_ns: Distribution,
    /// As in [`Trial`].
    pub send_lag_ns: Distribution,
    /// As in [`Trial`].
    pub round_trip_ns: Option<Distribution>,
    /// What was asked for, where the flow has settings of its own.
    #[serde(default)]
    pub settings: Option<Settings>,
    /// What each of these became.
    #[serde(default)]
    pub mappings: Vec<Mapping>,
    /// Whether it sends as fast as the system takes messages.
    #[serde(default)]
    pub flat_out: bool,
    /// Its bursts, where it sends messages back to back in bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bursts: Option<BurstFigures>,
    /// Its series, where the workload has several flows.
    #[serde(default)]
    pub series: Vec<FlowSeriesRecord>,
    /// Its figures in the windows of the measurement, where the workload has several flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowFigures>,
}

/// One record of the series of one flow; as in [`SeriesRecord`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowSeriesRecord {
    /// As in [`SeriesRecord`].
    pub t_s: f64,
    /// As in [`SeriesRecord`].
    pub published: u64,
    /// As in [`SeriesRecord`].
    pub due: u64,
    /// As in [`SeriesRecord`].
    pub delivered: u64,
    /// As in [`SeriesRecord`].
    pub backlog: u64,
    /// As in [`SeriesRecord`].
    pub waiting: u64,
}

/// One record of the series: a second or a shorter interval of the measurement (and of the drain,
/// where `t_s` is beyond the duration). Counts are of all messages, those of the warm-up included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesRecord {
    /// Its end, seconds from the start of the measurement.
    pub t_s: f64,
    /// Messages taken by the system.
    pub published: u64,
    /// Deliveries that these messages should cause.
    #[serde(default)]
    pub due: u64,
    /// First deliveries.
    pub delivered: u64,
    /// Deliveries of messages that the subscriber already had.
    #[serde(default)]
    pub duplicated: u64,
    /// Deliveries due that had not come by its end, without those that are known to be lost. Never
    /// negative.
    pub backlog: i64,
    /// Deliveries of messages that were due at its end but held back before the system.
    #[serde(default)]
    pub waiting: u64,
    /// Median latency of the deliveries in it.
    pub latency_p50_ns: u64,
    /// 99th percentile of the latency of the deliveries in it.
    pub latency_p99_ns: u64,
    /// Largest latency of the deliveries in it.
    pub latency_max_ns: u64,
    /// Processor share of the publishing workers, 1 = one core; where they were on other hosts, that of the
    /// whole measurement.
    pub publishers_cpu: f64,
    /// The same of the subscribing workers.
    pub subscribers_cpu: f64,
    /// Processor share of the system, 1 = one core.
    pub system_cpu: Option<f64>,
    /// Resident memory of the client.
    pub client_rss_bytes: u64,
    /// Resident memory of the system.
    pub system_rss_bytes: Option<u64>,
    /// Context switches of the client.
    #[serde(default)]
    pub client_context_switches: ContextSwitches,
    /// Context switches of the system.
    #[serde(default)]
    pub system_context_switches: Option<ContextSwitches>,
    /// Longest stall of the machine in it, measured by the noise thread.
    pub noise_max_ns: u64,
}
