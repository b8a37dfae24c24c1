//! Hosts of given sizes: their shares, held for a trial, and what of them was used during the measurement.

use std::collections::BTreeMap;
use std::sync::Arc;

use pubgauge_driver::Nanos;
use pubgauge_driver::clock::monotonic_now;
use pubgauge_engine::assignment::Role;
use pubgauge_engine::conductor::TrialRecord;
use pubgauge_engine::recording::Recording;
use pubgauge_figures::SizedHost;
use pubgauge_network::{Host, HostRole, HostSizes};
use pubgauge_testbed::shares::HostShare;
use pubgauge_testbed::{ProcessSampler, usable_cpus};

use crate::held_limits::{beside_realtime, on_all};

/// The shares of hosts, held while this lives.
pub(crate) type HostShares = BTreeMap<Host, Arc<HostShare>>;

/// Pubgauge's own processor time for a message, beyond that of the same bytes through a bare socket, as a calibration
/// measured it; ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnCost {
    /// For each message published.
    pub publish_ns: f64,
    /// For each delivery.
    pub receive_ns: f64,
}

/// Holds the shares of the hosts of a role that have a size.
pub(crate) fn hold(sizes: Option<&HostSizes>, role: HostRole) -> HostShares {
    let mut next = 0;
    let all = sizes.into_iter().flat_map(HostSizes::hosts);
    let placed = all.map(|(host, size)| {
        let taken = next;
        next += size.cores.map_or(0, |cores| cores.ceil() as usize);
        (taken, host, size)
    });
    let sized = placed.filter(|(_, host, size)| host.role == role && !size.is_none());
    sized
        .map(|(taken, host, size)| (host, Arc::new(HostShare::hold(size, taken))))
        .collect()
}

/// The host of a role with this number, from 0, where hosts are used in turn.
pub(crate) fn host(sizes: &HostSizes, role: HostRole, number: u32) -> Option<Host> {
    let number = number.checked_rem(sizes.sizes_of(role).count())? + 1;
    Some(Host { role, number })
}

/// The role of the hosts that have the workers of a role.
pub(crate) fn host_role(role: Role) -> HostRole {
    match role {
        Role::Publishers => HostRole::Publisher,
        Role::Subscribers => HostRole::Subscriber,
    }
}

/// Reads what is used of hosts with a size.
pub(crate) struct SizeMeter {
    hosts: Vec<Metered>,
    began: Nanos,
    ended: Nanos,
}

struct Metered {
    host: Host,
    share: Arc<HostShare>,
    processes: u32,
    threads: u32,
    /// Its processes at the beginning.
    pids: Vec<i32>,
    sampler: Option<ProcessSampler>,
    before: SizeReading,
    used: SizeReading,
}

#[derive(Clone, Copy, Default)]
struct SizeReading {
    cpu_ns: Option<u64>,
    throttled_ns: Option<u64>,
}

impl Metered {
    fn read(&mut self) -> SizeReading {
        let sample = self.sampler.as_mut().map(ProcessSampler::sample);
        let threads = sample.as_ref().map_or(0, |sample| sample.threads);
        self.threads = self.threads.max(threads);
        SizeReading {
            cpu_ns: sample.map(|sample| sample.cpu_ns),
            throttled_ns: self.share.throttled_ns(),
        }
    }
}

impl SizeMeter {
    pub(crate) fn new<'a>(
        shares: impl Iterator<Item = (&'a Host, &'a Arc<HostShare>)>,
    ) -> SizeMeter {
        let metered = |(host, share): (&Host, &Arc<HostShare>)| Metered {
            host: *host,
            share: share.clone(),
            processes: 0,
            threads: 0,
            pids: Vec::new(),
            sampler: None,
            before: SizeReading::default(),
            used: SizeReading::default(),
        };
        SizeMeter {
            hosts: shares.map(metered).collect(),
            began: 0,
            ended: 0,
        }
    }

    /// The measurement begins.
    pub(crate) fn begin(&mut self) {
        self.began = monotonic_now();
        for metered in &mut self.hosts {
            let pids = metered.share.pids();
            metered.processes = pids.len() as u32;
            metered.sampler = (!pids.is_empty()).then(|| ProcessSampler::only(&pids));
            metered.pids = pids;
            metered.before = metered.read();
        }
    }

    /// The measurement has ended.
    pub(crate) fn end_measurement(&mut self) {
        self.ended = monotonic_now();
        for metered in &mut self.hosts {
            let (now, before) = (metered.read(), metered.before);
            let since = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
            // All that processes used which began in the measurement. Of those that ended in it as well, nothing is known.
            let mut begun = metered.share.pids();
            begun.retain(|pid| !metered.pids.contains(pid));
            let of_begun = ProcessSampler::only(&begun).sample().cpu_ns;
            metered.used = SizeReading {
                cpu_ns: since(now.cpu_ns, before.cpu_ns).map(|ns| ns + of_begun),
                throttled_ns: since(now.throttled_ns, before.throttled_ns),
            };
        }
    }

    /// The use of each host. `own` is what pubgauge itself takes for a message.
    pub(crate) fn finish(
        self,
        record: &TrialRecord,
        own: Option<OwnCost>,
        realtime: Option<u8>,
    ) -> Vec<SizedHost> {
        let span = self.ended.saturating_sub(self.began).max(1) as f64;
        let hosts = self.hosts.into_iter().filter_map(|metered| {
            let limits = on_all(&metered.share.share(), &[metered.share.held()])?;
            let realtime = realtime.filter(|_| metered.host.role != HostRole::Broker);
            let mut limits = beside_realtime(limits, realtime);
            limits.instances = metered.processes;
            let share_of = |ns: Option<u64>| ns.map(|ns| ns as f64 / span);
            let on_host = |r: &&Recording| {
                (host_role(r.role), r.host + 1) == (metered.host.role, metered.host.number)
            };
            let workers: Vec<&Recording> = record.recordings.iter().filter(on_host).collect();
            Some(SizedHost {
                host: metered.host.to_string(),
                limits,
                used_cores: share_of(metered.used.cpu_ns),
                throttled: share_of(metered.used.throttled_ns),
                processors: metered.threads.min(usable_cpus().len() as u32),
                waited: waited(&workers),
                own: own.zip(metered.used.cpu_ns).and_then(|(own, cpu_ns)| {
                    let all = own_ns(record, &workers, own);
                    (!workers.is_empty() && cpu_ns > 0).then(|| all / cpu_ns as f64)
                }),
            })
        });
        hosts.collect()
    }
}

/// Share of the measurement for which the worker that waited most was ready and waited for a processor.
fn waited(workers: &[&Recording]) -> f64 {
    let of = |r: &&Recording| r.usage.own_waiting as f64 / r.usage.span.max(1) as f64;
    workers.iter().map(of).fold(0.0, f64::max)
}

/// Pubgauge's own processor time in the measurement for the messages of these workers, ns. Deliveries of the drain take
/// processor time of the drain: its share is taken for that of all workers.
fn own_ns(record: &TrialRecord, workers: &[&Recording], own: OwnCost) -> f64 {
    let flows = || workers.iter().flat_map(|r| &r.flows);
    let published: u64 = flows().map(|flow| flow.messages.published).sum();
    let delivered: u64 = flows().map(|flow| flow.messages.delivered).sum();
    let (within, all) = (record.in_measurement(None), record.sum());
    let part = |within: u64, all: u64| (within as f64 / all.max(1) as f64).min(1.0);
    published as f64 * part(within.published, all.messages.published) * own.publish_ns
        + delivered as f64
            * part(within.unique + within.repeated, all.messages.delivered)
            * own.receive_ns
}
