//! One trial, as `results.json` has it.

use pubgauge_driver::{Mapping, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::acknowledgement::{PublisherWindow, SizeLimit};
use super::failure::ClientFailure;
use super::parts::{
    AtStart, Broker, Circumstances, ClientCpu, Connections, ContextSwitches, CountCheck, Drain,
    HeldLimits, Interruption, OddCounts, PhaseCounts, PresenceFigures, System, Verdict, WorkerLoad,
    WorkloadInfo,
};
use crate::axis::AxisValue;
use crate::bursts::BurstFigures;
use crate::distribution::Distribution;
use crate::group::GroupFigures;
use crate::host::{OneWay, WorkerHost};
use crate::late::LateFigures;
use crate::messages::{Messages, Shortfall};
use crate::party::PartyFigures;
use crate::search::{LimitShare, SearchStep};
use crate::sized_host::SizedHost;
use crate::slow::SlowFigures;
use crate::syscalls::SystemCalls;
use crate::traffic::{InterfaceTraffic, NetworkTraffic};
use crate::wills::WillFigures;
use crate::window_figures::WindowFigures;

/// One trial.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Position in the plan; names the trial's files (`trials/0007/`).
    pub id: u32,
    /// Identifies the cell: equal for all repeats of it.
    pub cell: String,
    /// The system under test.
    pub system: System,
    /// The application's demands.
    pub settings: Settings,
    /// Name of the variant of the settings, where the study names several.
    pub settings_name: String,
    /// Values of the grid's axes.
    pub axes: Vec<AxisValue>,
    /// The round of repeats for undecided claims that it belongs to; 0 in a trial of the plan.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub round: u32,
    /// Its place in the search that it is a part of; absent in a trial of a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchStep>,
    /// The limit that its load is a share of; absent where the study states the load itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_share: Option<LimitShare>,
    /// The driver's answer to each setting.
    pub mappings: Vec<Mapping>,
    /// The workload that was run.
    pub workload: WorkloadInfo,
    /// Repeat number, from 1.
    pub repeat: u32,
    /// Whether the figures can be trusted.
    pub verdict: Verdict,
    /// Start of the trial, RFC 3339.
    pub started: String,
    /// Seconds from the end of the trial before to the end of this one: its system's start and end, and the
    /// wait for what the last trial left in a system, are included. 0 if not known, as in simulated time.
    pub took_s: f64,
    /// Length of the measurement in seconds.
    pub duration_s: f64,
    /// Its measured messages.
    #[serde(flatten)]
    pub messages: Messages,
    /// Measured messages that did not come.
    #[serde(flatten)]
    pub shortfall: Shortfall,
    /// Sentinel messages published to prove readiness.
    pub sentinels: u64,
    /// Traffic of the warm-up.
    pub warm_up: PhaseCounts,
    /// Deliveries of another trial, with a damaged body, before their sending time, or above the
    /// histogram's range, among others.
    pub odd: OddCounts,
    /// For how much of the measurement a publisher was held back, mean over all publishers, 0 to 1: from when the system
    /// did not take a message, or a flow's bound on what is under way let none go, until the next one was taken. Of a
    /// library whose calls sleep until there is room (DDS) the sleep of calls of 1 ms and more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publishers_blocked: Option<f64>,
    /// The window of publishers whose messages are acknowledged; absent where none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publisher_window: Option<PublisherWindow>,
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
    pub client_processes: Option<u32>,
    /// Largest resident memory of these processes during the measurement.
    pub client_rss_bytes: u64,
    /// Largest resident memory of the system's processes during the measurement.
    pub system_rss_bytes: Option<u64>,
    /// Heap in use after a collection, the largest since the system was started, as it says itself; absent where it does
    /// not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_heap_bytes: Option<u64>,
    /// The memory that the system limits itself to, as it says itself: the largest heap of a Java server, the watermark
    /// above which RabbitMQ holds publishers back; absent where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_memory_limit_bytes: Option<u64>,
    /// Share of the measurement in which the busiest publisher / subscriber worker ran on a
    /// processor, and in which it was ready but had to wait for one; 0 to 1.
    pub worker_load: WorkerLoad,
    /// Context switches of the client during the measurement.
    pub client_context_switches: ContextSwitches,
    /// Context switches of the system's processes during the measurement.
    pub system_context_switches: Option<ContextSwitches>,
    /// Processor share of the system's busiest thread, 1 = one core: the mean of the busiest in each
    /// interval of the series, which may be another each time. A server with one thread is at its end when this is 1.
    pub system_busiest_thread_cpu: Option<f64>,
    /// Processes of the system at the end of the measurement.
    pub system_processes: Option<u32>,
    /// Open descriptors of the system's processes at the end of the measurement; absent where they are out of sight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_descriptors: Option<u64>,
    /// Bytes that the kernel was to write to disk for the system's processes during the measurement (`write_bytes`
    /// of `/proc/PID/io`), of those still alive at its end; absent where they are out of sight.
    pub system_written_bytes: Option<u64>,
    /// System calls of the measurement, where the study has them counted. Counting changes the rates and
    /// times of such a trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_calls: Option<SystemCalls>,
    /// The traffic of a network interface during the measurement, where the study has it counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<InterfaceTraffic>,
    /// The traffic on the links of a network's hosts during the measurement; absent: all ran on one host.
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
    pub drain: Drain,
    /// Longest time, from the start of the measurement on, for which nothing came to a subscribing
    /// worker although a message was under way to it, or fell due for it while its publisher was not
    /// connected, ns.
    pub longest_silence_ns: u64,
    /// The longest of these times after which several messages came, more than single stragglers, ns; absent in trials of
    /// older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence_before_several_ns: Option<u64>,
    /// Facts about the trial beside its figures, as the verdict used them.
    pub circumstances: Circumstances,
    /// The study's limits of each instance of the system, and how they were held; absent without
    /// limits.
    pub limits: Option<HeldLimits>,
    /// The study's limits of each worker process, and how they were held; absent without limits.
    pub client_limits: Option<HeldLimits>,
    /// Hosts of given sizes, brokers first; empty where no host has a size.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sized_hosts: Vec<SizedHost>,
    /// Figures that were determined in two independent ways.
    pub checks: Vec<CountCheck>,
    /// Figures flow by flow.
    pub flows: Vec<FlowFigures>,
    /// Groups that share messages, with what each member got; empty where no subscribers share.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupFigures>,
    /// Subscribers and groups that share: the worst of them; absent where there are fewer than two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parties: Option<PartyFigures>,
    /// Named spans of the measurement, in the order of the study, each with its own figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowFigures>,
    /// The state at the start of the measurement, after the warm-up.
    pub at_start: AtStart,
    /// The series, record by record.
    pub series: Vec<SeriesRecord>,
    /// The course of the backlog within the measurement, in steps of a 20th of a record or 600 in all: (seconds from
    /// its start, deliveries due that had not come or were held back before the system).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub course: Vec<(f64, u64)>,
    /// Deliveries due up to each moment of the course, those of the warm-up included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub course_due: Vec<u64>,
    /// How late a thread that only sleeps 1 ms at a time woke up during the measurement.
    pub noise_ns: Distribution,
    /// Points of the latency's distribution function for the page: (ns, share at or below).
    pub latency_ecdf: Vec<(u64, f64)>,
    /// The machine's noise as a distribution function.
    pub noise_ecdf: Vec<(u64, f64)>,
    /// Clients that came and went as the workload has it; absent if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence: Option<PresenceFigures>,
    /// The messages to slow subscribers, which are in no other figure; absent where none is slow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow: Option<SlowFigures>,
    /// The messages to subscribers that subscribed within the measurement, which are in no other figure; absent where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<LateFigures>,
    /// The wills of devices that come and go; absent where none has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wills: Option<WillFigures>,
    /// Times in which clients were without a connection that they had lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interruptions: Vec<Interruption>,
    /// The largest message that the system said it takes; absent where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_limit: Option<SizeLimit>,
    /// Errors of systems and hosts, in order; of results of versions before 0.3 those of clients, too.
    pub errors: Vec<String>,
    /// The failures of clients, in the words of the driver or the server: each once, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_failures: Vec<ClientFailure>,
    /// Systems that did not end in order when the trial was over, each with what it did instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_in_order: Vec<String>,
}

impl Trial {
    /// Whether the system works inside the client's own threads or processes (a brokerless
    /// library), so that its processor time is part of the client's. Tells a system without
    /// processor time of its own from one that is merely out of sight.
    pub fn system_in_client(&self) -> bool {
        self.circumstances.system_in_client
    }
}

/// The figures of one flow.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct FlowFigures {
    /// Its name.
    pub name: String,
    /// Its measured messages.
    #[serde(flatten)]
    pub messages: Messages,
    /// Those that did not come.
    #[serde(flatten)]
    pub shortfall: Shortfall,
    /// The demands of a flow with settings of its own.
    pub settings: Option<Settings>,
    /// The driver's answer to each of these.
    pub mappings: Vec<Mapping>,
    /// Whether it sends as fast as the system takes messages.
    pub flat_out: bool,
    /// Seconds after which its arrivals repeat: from the beginning of a burst to that of the next, or between two
    /// messages that are evenly spaced. Absent where they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycle_s: Option<f64>,
    /// Its rate over time, where that changes as the study asks: corners of straight lines, seconds from the start of the
    /// measurement and messages per second. A step has two at one time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rate_over_time: Vec<(f64, f64)>,
    /// Its bursts, where it sends messages back to back in bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bursts: Option<BurstFigures>,
    /// Its series, where the workload has several flows.
    pub series: Vec<TrafficRecord>,
    /// The course of its backlog, where the workload has several flows; as in [`Trial`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub course: Vec<(f64, u64)>,
    /// Its deliveries due up to each moment of the course.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub course_due: Vec<u64>,
    /// Its figures in the windows of the measurement, where the workload has several flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowFigures>,
}

/// The traffic of all flows, or of one, in a second or a shorter interval of the measurement (and of the drain, where
/// `t_s` is beyond the duration). Counts are of all messages, those of the warm-up included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrafficRecord {
    /// Its end, seconds from the start of the measurement.
    pub t_s: f64,
    /// Messages taken by the system.
    pub published: u64,
    /// Deliveries that these messages should cause.
    pub due: u64,
    /// First deliveries.
    pub delivered: u64,
    /// Deliveries due that had not come by its end, without those that are known to be lost.
    pub backlog: u64,
    /// Deliveries of messages that were due at its end but held back before the system.
    pub waiting: u64,
    /// Median latency of the deliveries in it.
    pub latency_p50_ns: u64,
    /// 90th percentile of the latency of the deliveries in it.
    pub latency_p90_ns: u64,
    /// 99th percentile of the latency of the deliveries in it.
    pub latency_p99_ns: u64,
    /// Largest latency of the deliveries in it.
    pub latency_max_ns: u64,
    /// 90th percentile of the latency from the send of the deliveries in it.
    pub latency_from_send_p90_ns: u64,
}

/// One record of the series of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesRecord {
    /// Its traffic, of all flows together.
    #[serde(flatten)]
    pub traffic: TrafficRecord,
    /// Deliveries of messages that the subscriber already had.
    pub duplicated: u64,
    /// Processor share of the publishing workers, 1 = one core; where they were on other hosts, that of the
    /// whole measurement.
    pub publishers_cpu: f64,
    /// Processor share of the busiest subscribing worker.
    pub subscribers_cpu: f64,
    /// Processor share of the system, 1 = one core.
    pub system_cpu: Option<f64>,
    /// Resident memory of the client.
    pub client_rss_bytes: u64,
    /// Resident memory of the system.
    pub system_rss_bytes: Option<u64>,
    /// Context switches of the client.
    pub client_context_switches: ContextSwitches,
    /// Context switches of the system.
    pub system_context_switches: Option<ContextSwitches>,
    /// Longest stall of the machine in it, measured by the noise thread.
    pub noise_max_ns: u64,
}

fn is_zero(round: &u32) -> bool {
    *round == 0
}
