//! Counts beside a trial on request: system calls of client and system, and interface
//! traffic.

use std::time::Duration;

use pubgauge_driver::Nanos;
use pubgauge_driver::clock::monotonic_now;
use pubgauge_engine::conductor::TrialRecord;
use pubgauge_engine::live::Live;
use pubgauge_engine::recording::Recording;
use pubgauge_figures::SizedHost;
use pubgauge_figures::network::NetworkTraffic;
use pubgauge_figures::on_request::{InterfaceTraffic, SyscallCounts, SystemCalls};
use pubgauge_testbed::{Crossed, InterfaceCounter, SyscallCounter, Syscalls, procfs};
use pubgauge_workload::{Exchange, Sizes, Workload};

use pubgauge_setup::CountRequests;

use crate::instances::Instances;
use crate::network::{LinkCounters, TrialNetwork};
use crate::sizes::{OwnCost, SizeMeter};

/// How long an interface is watched before clients connect, and again after all have closed.
const QUIET: Duration = Duration::from_millis(500);

/// The largest delay of both readings together, as a share of the measurement.
const LATE: f64 = 0.02;

/// The counts beside one trial, as far as they were asked for.
#[derive(Default)]
pub struct CountedOnRequest {
    pub sized_hosts: Vec<SizedHost>,
    pub system_calls: Option<SystemCalls>,
    pub interface: Option<InterfaceTraffic>,
    pub network: Option<NetworkTraffic>,
}

/// Counts system calls and traffic beside one trial.
pub struct CountersOnRequest {
    /// System calls of the client and of the system.
    calls: Option<[Side; 2]>,
    /// Whether the kernel counts system calls yet.
    opened: bool,
    interface: Option<Interface>,
    links: Option<LinkCounters>,
    /// Hosts of given sizes.
    hosts: SizeMeter,
    /// Whether the system works inside the client.
    in_client: bool,
    /// When the first readings of a measurement were taken, and the last ones.
    read: Option<(Nanos, Nanos)>,
}

/// One side: its counter with the first count, then the result; or why there is none.
enum Side {
    Not(String),
    From(SyscallCounter, Syscalls),
    Counted(Syscalls),
}

impl Side {
    fn from_counter(counter: std::io::Result<SyscallCounter>) -> Side {
        match counter {
            Ok(counter) => Side::From(counter, Syscalls::default()),
            Err(error) => Side::Not(error.to_string()),
        }
    }

    /// Reads the counter; with `over` it replaces the first count by the difference.
    fn read(&mut self, over: bool) {
        let Side::From(counter, before) = self else {
            return;
        };
        match counter.read() {
            Ok(now) if over => *self = Side::Counted(now - *before),
            Ok(now) => *before = now,
            Err(error) => *self = Side::Not(error.to_string()),
        }
    }

    fn finish(self, of: &str, not_counted: &mut Vec<String>) -> Option<SyscallCounts> {
        let why = match self {
            Side::Counted(calls) => {
                return Some(SyscallCounts {
                    all: calls.all,
                    sends: calls.sends,
                    receives: calls.receives,
                    syncs: calls.syncs,
                });
            }
            Side::Not(why) => why,
            Side::From(..) => "there was no end of a measurement".to_owned(),
        };
        not_counted.push(format!("{of}: {why}"));
        None
    }
}

struct Interface {
    traffic: InterfaceTraffic,
    counter: Option<InterfaceCounter>,
    before: Crossed,
    /// Bytes per second that crossed it while no client was connected; the larger of both times.
    foreign_per_s: f64,
}

impl Interface {
    fn open(asked: &str) -> Interface {
        let (namespace, name) = match asked.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, asked),
        };
        let mut traffic = InterfaceTraffic {
            interface: name.to_owned(),
            namespace: namespace.map(str::to_owned),
            ..InterfaceTraffic::default()
        };
        let opened = InterfaceCounter::open(name, namespace);
        let counter = opened
            .map_err(|error| traffic.not_told = Some(error.to_string()))
            .ok();
        Interface {
            traffic,
            counter,
            before: Crossed::default(),
            foreign_per_s: 0.0,
        }
    }

    fn read(&mut self) -> Crossed {
        let Some(counter) = &self.counter else {
            return Crossed::default();
        };
        counter.read().unwrap_or_else(|error| {
            self.traffic.not_told = Some(error.to_string());
            self.counter = None;
            Crossed::default()
        })
    }
}

impl CountersOnRequest {
    /// Prepares to count what is asked for, on a network the traffic on its links, and what is used of `hosts` of given
    /// sizes. `in_client`: the system works inside the client's processes.
    pub(crate) fn new(
        asked: &CountRequests,
        network: Option<&TrialNetwork>,
        hosts: SizeMeter,
        in_client: bool,
    ) -> CountersOnRequest {
        let not = || Side::Not("it was never measured".to_owned());
        CountersOnRequest {
            calls: asked.system_calls.then(|| [not(), not()]),
            opened: false,
            interface: asked.interface.as_deref().map(Interface::open),
            links: network.map(|network| LinkCounters::open(network, in_client)),
            hosts,
            in_client,
            read: None,
        }
    }

    /// Watches the interface for [`QUIET`] while the system runs and no client is connected: this traffic is
    /// not the trial's.
    pub fn quiet(&mut self) {
        let Some(interface) = &mut self.interface else {
            return;
        };
        let (before, began) = (interface.read(), monotonic_now());
        std::thread::sleep(QUIET);
        let crossed = interface.read() - before;
        let seconds = (monotonic_now() - began) as f64 / 1e9;
        interface.foreign_per_s = interface.foreign_per_s.max(crossed.bytes as f64 / seconds);
    }

    /// Opens the counters of system calls once traffic flows: for threads that exist and those that they
    /// start.
    pub fn open(&mut self, running: &Instances, live: &Live) {
        let Some([client, system]) = self.calls.as_mut().filter(|_| !self.opened) else {
            return;
        };
        self.opened = true;
        let threads = live.threads.iter().map(|thread| thread.thread as i32);
        *client = Side::from_counter(SyscallCounter::of_threads(threads));
        let roots: Option<Vec<i32>> = running.root_pids().into_iter().collect();
        *system = match roots {
            _ if self.in_client => {
                Side::Not("it lives in the client, whose calls are its own as well".to_owned())
            }
            None => Side::Not("pubgauge did not start it, and does not see it".to_owned()),
            Some(roots) => {
                let all = || roots.iter().flat_map(|r| procfs::descendants(*r)).collect();
                Side::from_counter(SyscallCounter::of_processes(all))
            }
        };
    }

    /// The measurement begins.
    pub fn begin(&mut self) {
        let began = monotonic_now();
        if let Some(interface) = &mut self.interface {
            interface.before = interface.read();
        }
        if let Some(links) = &mut self.links {
            links.begin();
        }
        self.hosts.begin();
        for side in self.calls.iter_mut().flatten() {
            side.read(false);
        }
        self.read = Some((began, began));
    }

    /// The measurement has ended.
    pub fn end_measurement(&mut self) {
        let Some((_, ended)) = &mut self.read else {
            return;
        };
        *ended = monotonic_now();
        if let Some(interface) = &mut self.interface {
            let crossed = interface.read() - interface.before;
            interface.traffic.bytes = crossed.bytes;
            interface.traffic.packets = crossed.packets;
        }
        if let Some(links) = &mut self.links {
            links.end_measurement();
        }
        self.hosts.end_measurement();
        for side in self.calls.iter_mut().flatten() {
            side.read(true);
        }
    }

    /// The counts of a trial. `own` is what pubgauge itself takes for a message; `realtime` the workers' priority.
    pub fn finish(
        self,
        workload: &Workload,
        record: &TrialRecord,
        (own, realtime): (Option<OwnCost>, Option<u8>),
    ) -> CountedOnRequest {
        let sized_hosts = match self.read {
            Some(_) => self.hosts.finish(record, own, realtime),
            None => Vec::new(),
        };
        let late = late(self.read, record);
        let network = self.links.map(|links| links.finish(late.clone()));
        let system_calls = self.calls.map(|sides| {
            let [client, system] = sides.map(|side| match (side, &late) {
                (Side::Counted(_), Some(late)) => Side::Not(late.clone()),
                (side, _) => side,
            });
            let mut not_counted = Vec::new();
            SystemCalls {
                client: client.finish("the client", &mut not_counted),
                system: system.finish("the system", &mut not_counted),
                not_counted,
            }
        });
        let interface = self.interface.map(|interface| {
            let mut traffic = interface.traffic;
            let seconds = record.duration() as f64 / 1e9;
            let quiet = (interface.foreign_per_s * seconds).round() as u64;
            let beyond =
                traffic
                    .bytes
                    .saturating_sub(largest_traffic(&traffic, record, self.in_client));
            traffic.foreign_bytes = quiet.max(beyond);
            let payload = payload_bytes(workload, record);
            traffic.payload_bytes = payload.as_ref().ok().copied();
            let why = payload.err().map(str::to_owned);
            let told = traffic.not_told.take();
            traffic.not_told = told.or(late).or(why).or_else(|| crowded(&traffic));
            traffic
        });
        CountedOnRequest {
            sized_hosts,
            system_calls,
            interface,
            network,
        }
    }
}

/// Why the readings at these times do not cover the measurement.
fn late(read: Option<(Nanos, Nanos)>, record: &TrialRecord) -> Option<String> {
    let (Some((began, ended)), Some(table)) = (read, record.table) else {
        return Some("it was never measured".to_owned());
    };
    let late = began.abs_diff(table.measure) + ended.abs_diff(table.end);
    let share = late as f64 / record.duration().max(1) as f64;
    (share > LATE).then(|| {
        format!(
            "it was read late by {:.1} % of the measurement, more than {} %",
            100.0 * share,
            100.0 * LATE
        )
    })
}

/// Why the traffic of others on an interface was too much for figures of the trial's messages; `None`
/// if it was not.
fn crowded(traffic: &InterfaceTraffic) -> Option<String> {
    let of = traffic.bytes.max(traffic.payload_bytes.unwrap_or(0));
    let share = traffic.foreign_bytes as f64 / of.max(1) as f64;
    (share > InterfaceTraffic::MOST_FOREIGN).then(|| {
        format!(
            "others sent over {} as well: at least {} B in the time of the measurement, at the rate of before and \
             after the trial or beyond what its clients say, {:.1} % of what crossed it, more than {} %",
            traffic.interface,
            traffic.foreign_bytes,
            100.0 * share,
            100.0 * InterfaceTraffic::MOST_FOREIGN
        )
    })
}

/// The most bytes that the trial's messages can have caused on an interface, by the bytes that its clients report as
/// sent and received: the measurement's part of both, by messages, 10 % more, and 100 B of headers for each packet,
/// which is more than any have. [`u64::MAX`] where clients report no bytes.
fn largest_traffic(traffic: &InterfaceTraffic, record: &TrialRecord, in_client: bool) -> u64 {
    let (within, sum) = (record.in_measurement(None), record.sum());
    let part = |bytes: fn(&Recording) -> u64, within: u64, all: u64| {
        let bytes: u64 = record.recordings.iter().map(bytes).sum();
        bytes as f64 * within as f64 / all.max(1) as f64
    };
    let published = sum.messages.published + sum.warm_up_published;
    let sent = part(|r| r.wire.sent, within.published, published);
    let delivered = sum.messages.delivered + sum.warm_up_delivered;
    let received = part(|r| r.wire.received, within.unique, delivered);
    // Bytes from a client to a broker cross once; between clients the same bytes are sent and received.
    let said = if in_client {
        sent.max(received)
    } else {
        sent + received
    };
    if said > 0.0 {
        (1.1 * said) as u64 + 100 * traffic.packets
    } else {
        u64::MAX
    }
}

/// Payload bytes of the first deliveries that came during the measurement.
fn payload_bytes(workload: &Workload, record: &TrialRecord) -> Result<u64, &'static str> {
    let mut sum = 0;
    for (number, flow) in workload.flows.iter().enumerate() {
        let Sizes::Fixed { bytes } = flow.size else {
            return Err("payloads have several sizes, and their delivered bytes are not counted");
        };
        if flow.exchange == Exchange::PingPong {
            return Err("answers cross it as well, and are no deliveries");
        }
        sum += record.in_measurement(Some(number)).unique * u64::from(bytes);
    }
    match sum {
        0 => Err("nothing was delivered"),
        sum => Ok(sum),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_a_hundred_of_others_is_too_much() {
        let traffic = |bytes, payload_bytes, foreign_bytes| InterfaceTraffic {
            interface: "lo".into(),
            bytes,
            payload_bytes: Some(payload_bytes),
            foreign_bytes,
            ..InterfaceTraffic::default()
        };
        assert_eq!(crowded(&traffic(10_000, 5_000, 100)), None);
        let why = crowded(&traffic(10_000, 5_000, 101)).unwrap();
        assert!(why.contains("101 B") && why.contains("lo"), "{why}");
        // With shared memory hardly anything crosses it; the error is 1 % of the payload.
        assert_eq!(crowded(&traffic(300, 1_000_000, 10_000)), None);
        assert!(crowded(&traffic(300, 1_000_000, 10_001)).is_some());
    }
}
