//! The parts of a trial that are not figures of its traffic: system, client, circumstances, verdict, checks.

use pubgauge_quantities::shown;
use pubgauge_setup::ClientSetup;

use super::reason::{Reason, Rule};
use crate::distribution::Distribution;
use crate::processors;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// Processor share of its busiest thread, 1 = one core: the mean of the busiest in each interval of the series.
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
    /// The system promises that messages of one publisher on one topic come in the order in which they were published.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub order_promised: bool,
    /// Subscribers come and go as the workload has it: a backlog that the system keeps for who is away is no queue.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub subscribers_come_and_go: bool,
    /// The arrivals vary by design (bursts, replayed traces): a rate that varies is no fault.
    pub rate_varies_by_design: bool,
    /// Processors that pubgauge may run on; 0 if not known. [`Circumstances::processors`] says how many these are worth.
    pub cores: u32,
    /// The tightest quota of processor time around pubgauge (a container's), in processors; absent: there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota_cores: Option<f64>,
    /// How each worker was to work.
    #[serde(flatten)]
    pub client: ClientSetup,
    /// Trials that the system had served since it was started, where it stays up from trial to trial
    /// (`keep-running`). 0: it was started for this one.
    #[serde(skip_serializing_if = "none")]
    pub earlier_trials: u32,
}

impl Circumstances {
    /// How many processors the machine has for client and system, or less by a quota around them (a container's); 0 if not
    /// known.
    pub fn processors(&self) -> f64 {
        processors::available(self.cores, self.quota_cores)
    }

    /// The processors in words: `the machine's 4 processors`, `the 1.5 processors that this container may use`.
    pub fn all_processors(&self) -> String {
        let number = shown::three_decimals(self.processors());
        match processors::quota(self.cores, self.quota_cores) {
            Some(_) => format!("the {number} processors that this container may use"),
            None => format!("the machine's {number} processors"),
        }
    }
}

fn none(count: &u32) -> bool {
    *count == 0
}

/// The most of the machine that each instance of a system, or each worker process, may use, and how
/// that was held.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeldLimits {
    /// Instances, or hosts that these are on, or worker processes, each with these limits.
    pub instances: u32,
    /// Processor time in processors; absent: not limited.
    pub cores: Option<f64>,
    /// How they were held, in words; absent: they were not.
    pub cores_by: Option<String>,
    /// Whether the kernel held them as a quota of time: none of them can have had more.
    pub cores_by_quota: bool,
    /// Memory in bytes; absent: not limited.
    pub memory_bytes: Option<u64>,
    /// How it was held, in words; absent: it was not.
    pub memory_by: Option<String>,
    /// The client's workers were kept off the system's processors; set in the system's limits only.
    pub clients_apart: bool,
    /// Limits that could not be held as asked for, each with the reason.
    pub not_held: Vec<String>,
}

/// One figure, determined in two independent ways.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CountCheck {
    /// The counted things.
    pub what: String,
    /// Who counted, and what each found; a count that could not be read is absent, see
    /// `not_compared`.
    pub counts: Vec<(String, u64)>,
    /// The largest difference that is no disagreement: messages sent while clients closed, which
    /// may or may not be counted.
    pub tolerance: u64,
    /// Why the other count could not be read or compared; the check then has no result.
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

/// A summary of the workload that was run.
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
    /// Subscriptions of all subscribing devices: one for each of their filters. Absent in results of versions before 0.3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriptions: Option<u64>,
    /// Payload in words, for example `64 B`.
    pub payload: String,
    /// Payload of all flows, bytes: the mean of sizes that are listed or uniform. Absent where flows differ in it, or it is
    /// not known beforehand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_bytes: Option<f64>,
    /// Arrivals in words, for example `100/s` or `flat out`.
    pub arrivals: String,
    /// Messages a second that are due, over all flows. Absent where one of them has no rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_msgs_per_s: Option<f64>,
    /// Flat-out traffic among the flows: throughput is the figure to look at.
    pub flat_out: bool,
}

/// Whether the figures of a trial can be trusted.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The verdict.
    pub status: Status,
    /// The rules that led to it, worst first.
    pub reasons: Vec<Reason>,
    /// Seconds for which the measurement would have had to last at least, where it was too short to tell whether the
    /// system carried what it was offered. What it sees then may ask for more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs_s: Option<f64>,
    /// The trial is broken because the system failed: it ended, closed connections, took nothing, delivered nothing or
    /// damaged messages. Any other broken trial measured nothing that can be held against the system: it was never ready,
    /// the client ended it, or its figures contradict each other.
    pub system_failed: bool,
    /// Latency from when messages were due bounds the system's from above, although the client, or a client host, was the
    /// limit, or latency fell: no rule says anything else, everything due was sent and came, and no queue grew.
    pub latency_is_upper_bound: bool,
    /// Other programs had processors that the system needed, so that slow figures may be due to them; whether or not the
    /// verdict is of that. Absent if they had not, or if it is not known what the system used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_busy: Option<Reason>,
}

impl Verdict {
    /// The first reason by a rule.
    pub fn reason(&self, rule: Rule) -> Option<&Reason> {
        self.reasons.iter().find(|reason| reason.rule == rule)
    }

    /// Whether a rule applied.
    pub fn has(&self, rule: Rule) -> bool {
        self.reason(rule).is_some()
    }

    /// The excess of a latency that bounds the system's from above; `None` where it is no such bound.
    pub fn excess(&self) -> Option<Excess> {
        let fell = |reason: &Reason| reason.rule == Rule::LatencyFalls;
        self.latency_is_upper_bound.then(|| {
            if self.reasons.iter().all(fell) {
                Excess::WarmingUp
            } else {
                Excess::Lateness
            }
        })
    }

    /// Its reasons in words, in their order.
    pub fn sentences(&self) -> Vec<String> {
        self.reasons.iter().map(Reason::to_string).collect()
    }
}

/// The part of a latency that is not the system's at this load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// The client's own lateness.
    Lateness,
    /// Latency was falling, to where the system settles.
    WarmingUp,
}

impl Excess {
    /// The meaning of `<=` before a latency.
    pub fn meaning(self) -> &'static str {
        match self {
            Excess::Lateness => "the client's own lateness is in it; the system's latency is lower",
            Excess::WarmingUp => "latency was still falling; the system settles lower",
        }
    }
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
    /// A client host of a given size was at the end of it: rates are those of such a host.
    HostBound,
    /// A window of the settings held publishers back, over a system with room: rates are those of such a setting, at least.
    SettingBound,
    /// The measurement was too short to tell whether the system carried what it was offered.
    TooShort,
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
    pub const ALL: [Status; 9] = [
        Status::Valid,
        Status::HostBound,
        Status::SettingBound,
        Status::TooShort,
        Status::Unsteady,
        Status::ClientBound,
        Status::Overloaded,
        Status::Lossy,
        Status::Broken,
    ];

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Valid => "valid",
            Status::HostBound => "host-bound",
            Status::SettingBound => "setting-bound",
            Status::TooShort => "too-short",
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
    /// Of this trial, on another topic than the message was published on, where the system tells the topic.
    pub misdirected: u64,
    /// Of this trial, with a lower quality of service (MQTT's QoS) than both publisher and subscriber asked for.
    pub lowered: u64,
    /// Deliveries of which the body was compared with the one that was published: none where the study publishes
    /// recorded contents.
    pub compared: u64,
    /// Of these, those of which all of the body was compared; of the others its first and last 64 bytes.
    pub compared_whole: u64,
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
    /// Of `publishers`, that of the libraries' threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publishers_library: Option<f64>,
    /// Of `subscribers`, that of the libraries' threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscribers_library: Option<f64>,
}

impl ClientCpu {
    /// Of all workers.
    pub fn total(&self) -> f64 {
        self.publishers + self.subscribers
    }
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
    /// The publishing and the subscribing worker that waited most for a processor, together, without what a thread waits
    /// whenever it is switched to, 10 us.
    pub workers_kept_waiting: f64,
    /// The most that a worker waited for a processor within some 20 ms, ns: no single wait was longer.
    pub workers_longest_wait_ns: u64,
    /// The application of a subscriber that was busy longest, of flows whose subscribers take their time for each message
    /// (`subscribers-take`); absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applications_busy: Option<f64>,
    /// Publishing worker that was stalled longest: neither running nor waiting for a processor
    /// though its sleep was over, in stretches of 5 ms and more.
    pub publishers_stalled: f64,
    /// Subscribing worker that was stalled longest, likewise.
    pub subscribers_stalled: f64,
    /// The whole machine: a thread that only sleeps 1 ms at a time woke up 10 ms and more too late.
    pub machine_stalled: f64,
    /// Processors that programs other than client and system kept busy, of those that pubgauge may use (a container's
    /// quota leaves others the rest), on average, 1 = one. Where the system's own use is not known (`system_cpu_s` is
    /// absent and it does not work inside the client), it is in this figure if it runs on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_others: Option<f64>,
    /// The whole machine: share of all its processors' time that a hypervisor gave to other virtual machines although
    /// this one had work (`steal` in proc_stat(5)); where workers are on other hosts, the largest of all machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_stolen: Option<f64>,
    /// The effect of a quota of processor time around pubgauge (a container's) during the measurement; absent without one, and
    /// where the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<QuotaUse>,
    /// The system's thread that waited most: ready, but waiting for a processor; absent where it is out of sight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_waiting: Option<f64>,
    /// The most that a thread of the system waited for a processor within one record of the series, ns: no single wait was
    /// longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_longest_waiting_ns: Option<u64>,
    /// The longest stall of any of these, ns.
    pub longest_stall_ns: u64,
    /// The longest stall of the machine alone, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_longest_stall_ns: Option<u64>,
}

/// A quota of processor time of a control group around pubgauge (a container's), for client and system together where both
/// are in it, and what it did during the measurement (`cpu.stat`). Of several quotas the one that held back longest, the
/// tightest if none did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuotaUse {
    /// Processor time of each period, in processors.
    pub cores: f64,
    /// Length of a period, ns.
    pub period_ns: u64,
    /// Periods in which processes of the group ran.
    pub periods: u64,
    /// Those at the end of which processes were held back because the quota was used up.
    pub held_back_periods: u64,
    /// For how long they were, ns, added up over processors.
    pub held_back_ns: u64,
}

impl QuotaUse {
    /// Share of a measurement, 0 to 1, for which a thread may have been held back at the most: no thread is for longer
    /// than all processors together, and none beyond the periods in which any was.
    pub fn share(&self, duration_s: f64) -> f64 {
        let in_periods = self.held_back_periods.saturating_mul(self.period_ns);
        let longest = self.held_back_ns.min(in_periods) as f64;
        (longest / (1e9 * duration_s.max(f64::MIN_POSITIVE))).min(1.0)
    }

    /// For how long a thread was held back at a time, at the most, mean over the periods in which any was, ns.
    pub fn mean_ns(&self) -> u64 {
        let mean = self.held_back_ns / self.held_back_periods.max(1);
        mean.min(self.period_ns)
    }
}

/// A time in which clients were without a connection that they had lost: a restart of the system, or of something between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interruption {
    /// When the first connection was lost, from the start of the measurement, s.
    pub at_s: f64,
    /// From then until the first was made again, its subscriptions included, s; absent if none was.
    pub out_s: Option<f64>,
    /// From then until the last was, s; absent if some never were.
    pub back_s: Option<f64>,
    /// Connections that were lost.
    pub lost: u64,
}

/// Clients that came and went as the workload has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PresenceFigures {
    /// How often a client left.
    pub left: u64,
    /// How often one was back: connected, with its subscriptions.
    pub returned: u64,
    /// From when a subscriber was back to the first delivery to it after that; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_message_ns: Option<Distribution>,
    /// From when a subscriber was back to each delivery of a message that was due before: the largest is how long the
    /// longest backlog took. Absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog_ns: Option<Distribution>,
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
    /// Attempts that the system turned away.
    #[serde(default)]
    pub refused: u64,
    /// Connections made a second, from the first attempt to the last first connection; absent for a single one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_per_s: Option<f64>,
    /// Subscriptions taken a second, from when the first was asked for to when the last was taken; absent for a single one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscribed_per_s: Option<f64>,
    /// From the beginning of the attempt by which a client was first connected to the system's answer; clients that never
    /// were are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_to_connect_ns: Option<Distribution>,
    /// Likewise of connections that were made again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_to_reconnect_ns: Option<Distribution>,
}
