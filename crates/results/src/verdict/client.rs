//! Whether the client, or the machine that it shares with the system, was the limit.

use super::quota::HeldBack;

use pubgauge_figures::model::{Evidence, Reason, Rule, Status, Trial};
use pubgauge_figures::network::full_link;
use pubgauge_figures::processors;
use pubgauge_quantities::shown::{self, time};

use super::cores::{cores_in_use, in_use};
use super::findings::Findings;
use super::growth::Growth;
use super::host::{self, AtEnd};
use super::others::crowded;
use super::thresholds;

/// Findings from the workers' load.
pub(super) struct Load {
    /// The busiest publishing worker had no time left.
    pub publishers_full: bool,
    /// The busiest subscribing worker, or a subscriber's application, had no time left.
    pub subscribers_full: bool,
    /// For what share of the measurement the busiest subscriber's application was busy, where that left it no time.
    busy_application: Option<f64>,
    /// Shares of the measurement for which the publishing worker that waited most was ready and waited for a processor;
    /// without what a host of a given size makes it wait at the end of its share.
    pub publishers_waiting: f64,
    /// Share of the measurement for which the subscribing worker that waited most was ready and waited for a processor, likewise.
    pub subscribers_waiting: f64,
    /// A host of publishing devices that came to the end of its size.
    publishers_host: Option<AtEnd>,
    /// A host of the other devices that came to the end of its size.
    subscribers_host: Option<AtEnd>,
    /// How the client, or the machine, had no time for a good part of the measurement: it stood still, a quota was used
    /// up, or a hypervisor took it.
    pub stalled: Option<String>,
    /// How it stood still for a good part of the measurement: servers may have closed its connections meanwhile.
    pub stopped: Option<String>,
    /// The time that a hypervisor took, where it is enough to count.
    stolen: Option<Reason>,
    /// A quota around client and system (a container's), where it held them back for as long as counts.
    quota: Option<HeldBack>,
    /// The worker, or the machine, that was stalled most, however little; without what such a quota explains.
    still: Option<Still>,
    running_limit: f64,
    /// Processor time, in processors, to which the kernel held each worker process, where that is
    /// less than one.
    held: Option<f64>,
    /// In a flat-out trial, the system had a thread that was never idle, or a link was full.
    system_full: bool,
    /// A link was full: a stalled worker then waits for the link, in a system call.
    link_full: bool,
    /// The system, which a quota holds to a size, used it up.
    system_used_its_size: bool,
}

impl Load {
    pub fn from_trial(trial: &Trial) -> Load {
        let circumstances = &trial.circumstances;
        let limits = trial.client_limits.as_ref().filter(|l| l.cores_by_quota);
        let held = limits.and_then(|l| l.cores).filter(|cores| *cores < 1.0);
        let running_limit = held.unwrap_or(1.0)
            * if trial.workload.flat_out {
                thresholds::FLAT_OUT_RUNNING
            } else {
                thresholds::PACED_RUNNING
            };
        let load = &trial.worker_load;
        let (client_cores, system_cores) = cores_in_use(trial);
        let link_full = full_link(trial).is_some();
        let used_up = system_used_its_size(trial, system_cores);
        let never_rested = trial.workload.flat_out
            && (used_up
                || system_cores.is_some_and(|system_cores| {
                    system_is_the_limit(system_cores, client_cores, circumstances.processors())
                }));
        let system_full = link_full || never_rested;
        // Time spent waiting for a processor is time in which the worker was ready to run; it does
        // not count where the system itself was never idle.
        let full = |running: f64, waiting: f64| {
            !circumstances.system_in_client
                && (running >= running_limit
                    || !system_full && running + waiting >= thresholds::FLAT_OUT_RUNNING)
        };
        let still = stood_still(trial, link_full);
        let quota = HeldBack::from_trial(trial).filter(|held_back| {
            let by_quota =
                |still: &Still| still.counts() && !still.unexplained_by(held_back).counts();
            held_back.counts(trial) || still.as_ref().is_some_and(by_quota)
        });
        let beyond = (still.as_ref()).map(|still| match &quota {
            Some(quota) => still.unexplained_by(quota),
            None => still.clone(),
        });
        let stopped = (still.as_ref())
            .filter(|still| still.share >= thresholds::STALLED)
            .map(|still| match (&quota, &beyond) {
                (Some(quota), Some(beyond)) if !beyond.counts() => quota.describe(),
                (_, beyond) => describe_stall(beyond.as_ref().unwrap_or(still)),
            });
        let held_back = (quota.as_ref())
            .filter(|quota| quota.share >= thresholds::STALLED)
            .map(HeldBack::describe);
        let stolen = stolen(trial);
        let waiting = |role, waited: f64| host::crowded(trial, role).unwrap_or(waited);
        let publishers_waiting = waiting("publisher", load.publishers_waiting);
        let subscribers_waiting = waiting("subscriber", load.subscribers_waiting);
        let at_end = |role| host::at_end(trial, role);
        let (publishers_host, subscribers_host) = (at_end("publisher"), at_end("subscriber"));
        let busy_application =
            (load.applications_busy).filter(|busy| *busy >= thresholds::FLAT_OUT_RUNNING);
        let host_full = |host: &Option<AtEnd>| host.as_ref().is_some_and(|host| host.is_full);
        Load {
            publishers_full: full(load.publishers_running, publishers_waiting)
                || host_full(&publishers_host),
            subscribers_full: full(load.subscribers_running, subscribers_waiting)
                || host_full(&subscribers_host)
                || busy_application.is_some(),
            busy_application,
            publishers_waiting,
            subscribers_waiting,
            publishers_host,
            subscribers_host,
            stalled: (stopped.clone().or(held_back))
                .or_else(|| Some(stolen.as_ref()?.text.clone())),
            stopped,
            stolen,
            quota,
            still: beyond,
            running_limit,
            held,
            system_full,
            link_full,
            system_used_its_size: used_up,
        }
    }

    pub fn judge(&self, trial: &Trial, growth: Option<&Growth>, findings: &mut Findings) {
        self.running(trial, growth, findings);
        if !self.system_full {
            self.waiting(trial, findings);
        }
        if let Some(reason) = &self.stolen {
            findings.blame_client(reason.clone());
        }
        if let Some(quota) = &self.quota {
            findings.blame_client(quota.reason(trial));
        }
        if let Some(still) = self.still.as_ref().filter(|still| still.counts()) {
            let stalled = describe_stall(still);
            let text =
                format!("{stalled}: what was sent and received late then was the client's doing");
            let reason = Reason::new(Rule::ClientStalled, text)
                .limited(Evidence::StalledShare, still.share, still.limit())
                .figure(Evidence::LongestStall, still.longest_ns as f64);
            findings.blame_client(reason);
        }
        // Messages that the system, or a link, did not take in time left late for that reason.
        if !trial.workload.flat_out && !findings.has(Rule::Unsent) && !self.link_full {
            self.late(trial, findings);
        }
    }

    /// Why subscribers may not have read in time what was sent to them.
    pub fn subscriber_trouble(&self, trial: &Trial) -> Option<String> {
        if let Some(host) = self.subscribers_host.as_ref().filter(|host| host.is_full) {
            Some(host.reason.text.clone())
        } else if let Some(busy) = self.busy_application {
            Some(describe_application(busy))
        } else if self.subscribers_full {
            Some(self.busy_subscriber(trial) + &self.share())
        } else {
            self.stalled.clone()
        }
    }

    /// Whether a publishing worker had too little time for what it had to send.
    pub fn publishers_short_of_time(&self) -> bool {
        self.publishers_full || self.publishers_waiting > thresholds::WAITING
    }

    /// The status of a trial in which something is the doing of publishing workers: that of their host where it was
    /// full.
    pub fn publishers_blame(&self) -> Status {
        self.blame(&self.publishers_host)
    }

    /// The status where subscribing workers are to blame.
    pub fn subscribers_blame(&self) -> Status {
        self.blame(&self.subscribers_host)
    }

    fn blame(&self, host: &Option<AtEnd>) -> Status {
        let full = host
            .as_ref()
            .filter(|host| host.is_full && self.stalled.is_none());
        full.map_or(Status::ClientBound, |host| host.status)
    }

    /// The share that a worker may have used up, as the end of a clause; empty where workers were
    /// not held to less than a processor each.
    pub fn share(&self) -> String {
        self.held.map_or(String::new(), |cores| {
            format!(", each worker process being held to {cores} cores")
        })
    }

    /// How busy the busiest subscribing worker was.
    fn busy_subscriber(&self, trial: &Trial) -> String {
        let ran = percent(trial.worker_load.subscribers_running);
        let waited = percent(self.subscribers_waiting);
        format!(
            "the busiest subscribing worker ran {ran} of the time and waited {waited} for a processor"
        )
    }

    /// That a subscriber's application, which takes its time, left itself none.
    fn application_full(&self, growth: Option<&Growth>) -> Option<Reason> {
        let (busy, limit) = (self.busy_application?, thresholds::FLAT_OUT_RUNNING);
        let growth = growth.map_or(String::new(), |growth| format!("; {growth}"));
        let text = format!(
            "{} (limit {}): what it did not take in time is not the system's doing{growth}",
            describe_application(busy),
            percent(limit)
        );
        let reason = Reason::new(Rule::ApplicationFull, text);
        Some(reason.limited(Evidence::ApplicationsBusy, busy, limit))
    }

    fn running(&self, trial: &Trial, growth: Option<&Growth>, findings: &mut Findings) {
        let load = &trial.worker_load;
        let (limit, share) = (percent(self.running_limit), self.share());
        // In a flat-out trial a publisher is meant to outrun the system: it is the limit only if
        // the system kept up with all that it got.
        let behind = [
            Rule::Lost,
            Rule::Refused,
            Rule::Unsent,
            Rule::NothingTaken,
            Rule::SubscriberBehind,
        ];
        let system_kept_up = growth.is_none()
            && trial.shortfall.under_way == 0
            && !behind.iter().any(|rule| findings.has(*rule));
        let publishers = self.publishers_host.as_ref().filter(|_| system_kept_up);
        for host in publishers.into_iter().chain(&self.subscribers_host) {
            findings.add(host.status, host.reason.clone());
        }
        if let Some(reason) = self.application_full(growth) {
            findings.blame_client(reason);
        }
        if trial.circumstances.system_in_client {
            // A library's work and the worker's own cannot be told apart by load. A full worker is
            // the library's limit flat out; a paced trial must leave it idle time.
            let busiest = load.publishers_running.max(load.subscribers_running);
            if !trial.workload.flat_out && busiest >= self.running_limit {
                let busy = percent(busiest);
                let text = format!(
                    "the busiest worker, which the system's library runs in, was busy {busy} of the \
                     time (limit {limit}{share})"
                );
                let reason = Reason::new(Rule::LibraryFull, text);
                findings.blame_client(reason.limited(
                    Evidence::RunningShare,
                    busiest,
                    self.running_limit,
                ));
            }
            return;
        }
        let at_end = self.publishers_host.is_some();
        if load.publishers_running >= self.running_limit && system_kept_up && !at_end {
            let ran = percent(load.publishers_running);
            let text = format!(
                "the busiest publishing worker ran {ran} of the time (limit {limit}{share}): the \
                 system could have taken more"
            );
            findings.blame_client(Reason::new(Rule::PublisherFull, text).limited(
                Evidence::RunningShare,
                load.publishers_running,
                self.running_limit,
            ));
        }
        let by_worker = self.busy_application.is_none() && self.subscribers_host.is_none();
        if self.subscribers_full && by_worker {
            let (busy, both) = (
                self.busy_subscriber(trial),
                percent(thresholds::FLAT_OUT_RUNNING),
            );
            let growth = growth.map_or(String::new(), |growth| format!("; {growth}"));
            let text = format!(
                "{busy} (limit {limit} running, {both} both{share}): what it did not take in time is \
                 not the system's doing{growth}"
            );
            let running = load.subscribers_running;
            let both = running + self.subscribers_waiting;
            let reason = Reason::new(Rule::SubscriberFull, text)
                .limited(Evidence::RunningShare, running, self.running_limit)
                .limited(
                    Evidence::RunningAndWaiting,
                    both,
                    thresholds::FLAT_OUT_RUNNING,
                );
            findings.blame_client(reason);
        }
    }

    /// Workers that are ready but wait for a processor: the machine is crowded, or the workers'
    /// share of it is used up. Where publishing workers gather messages and hand them over in time,
    /// their waits delay nothing beyond the span that the study asks for, and do not count. A system that used up its
    /// own size carried no less for them: they count where they may be a good part of its latency, or where other
    /// programs crowd the machine, which may keep a worker waiting for longer at a time.
    fn waiting(&self, trial: &Trial, findings: &mut Findings) {
        let publishers = if gathered_in_time(trial) {
            0.0
        } else {
            self.publishers_waiting
        };
        let worst = publishers.max(self.subscribers_waiting);
        let beside_a_full_system = self.system_used_its_size && crowded(trial).is_none();
        let by_quota = |quota: &HeldBack| quota.unexplained(worst) <= thresholds::WAITING;
        if worst <= thresholds::WAITING
            || self.quota.as_ref().is_some_and(by_quota)
            || beside_a_full_system && is_little(trial, worst)
        {
            return;
        }
        let (cores, quota) = (trial.circumstances.cores, trial.circumstances.quota_cores);
        let machine = match (self.held, processors::quota(cores, quota)) {
            (Some(cores), _) => {
                format!("the share of each worker process, {cores} cores, or the machine")
            }
            (None, Some(quota)) => format!(
                "the machine, of whose {cores} processors this container may use {},",
                shown::three_decimals(quota)
            ),
            (None, None) if cores == 0 => "the machine".to_owned(),
            (None, None) => format!("the machine with its {cores} processors"),
        };
        let [publishing, subscribing] =
            [self.publishers_waiting, self.subscribers_waiting].map(percent);
        let limit = percent(thresholds::WAITING);
        let text = format!(
            "{machine} was the limit: the busiest workers waited for a processor {publishing} \
             (publishing) and {subscribing} (subscribing) of the time (limit {limit}); in use were {}",
            in_use(trial)
        );
        let limit = thresholds::WAITING;
        let reason = Reason::new(Rule::MachineFull, text)
            .limited(Evidence::PublishersWaiting, self.publishers_waiting, limit)
            .limited(
                Evidence::SubscribersWaiting,
                self.subscribers_waiting,
                limit,
            );
        findings.blame_client(reason);
    }

    /// Lateness of the client itself in a paced trial.
    fn late(&self, trial: &Trial, findings: &mut Findings) {
        // Without subscribers there is no latency that lateness could spoil.
        let (lag, from_send) = (
            &trial.messages.send_lag_ns,
            &trial.messages.latency_from_send_ns,
        );
        if trial.messages.latency_ns.count == 0 {
            return;
        }
        // A publisher that neither ran nor waited for a processor was held back by the system, and
        // latency from the intended time rightly contains that; unless the machine's own timers
        // were as late.
        let load = &trial.worker_load;
        let at_fault = self.publishers_short_of_time()
            || load.publishers_running + self.publishers_waiting >= thresholds::LAG_AT_FAULT
            || self.stalled.is_some();
        // Lateness that the study asks for is ignored; lateness beyond it is not.
        let asked = trial.circumstances.client.pacing_within;
        let allowed = match asked {
            0 => String::new(),
            asked => format!(
                " (beyond the {} that pacing-within allows)",
                time(asked as f64)
            ),
        };
        let by_noise = |lag: u64, noise: Option<u64>| noise.unwrap_or(0) >= lag / 2;
        let beyond = |lag: Option<u64>| lag.unwrap_or(0).saturating_sub(asked);
        let (half, median) = (beyond(lag.p50), trial.messages.latency_ns.p50);
        let (tail, own_tail) = (beyond(lag.counted(0.99)), from_send.p99);
        if half > thresholds::LAG_FLOOR_NS
            && median.is_some_and(|p50| half as f64 > thresholds::LAG_SHARE * p50 as f64)
            && (at_fault || by_noise(half, trial.noise_ns.p50))
        {
            let limit_ns = thresholds::LAG_SHARE * median.unwrap_or(0) as f64;
            let figure = (Evidence::SendLagMedian, half as f64, limit_ns);
            let (half, median) = (time(half as f64), time(median.unwrap_or(0) as f64));
            let limit = percent(thresholds::LAG_SHARE);
            let text = format!(
                "half of all messages left more than {half} late{allowed}, against a median latency of \
                 {median} (limit {limit})"
            );
            let reason = Reason::new(Rule::ClientLate, text);
            let reason = reason.limited(figure.0, figure.1, figure.2);
            findings.add(self.publishers_blame(), reason);
        } else if tail > thresholds::LAG_TAIL_FLOOR_NS
            && own_tail.is_some_and(|p99| tail > p99)
            && (at_fault || by_noise(tail, trial.noise_ns.p99))
        {
            let figure = (
                Evidence::SendLagTail,
                tail as f64,
                own_tail.unwrap_or(0) as f64,
            );
            let (tail, own_tail) = (time(tail as f64), time(own_tail.unwrap_or(0) as f64));
            let text = format!(
                "the tail is the client's own: 1 % of messages left more than {tail} late{allowed}, and \
                 the system's part of the latency is {own_tail} at the 99th percentile"
            );
            let reason = Reason::new(Rule::ClientLate, text);
            let reason = reason.limited(figure.0, figure.1, figure.2);
            findings.add(self.publishers_blame(), reason);
        }
    }
}

/// How busy the busiest subscriber's application was.
fn describe_application(share: f64) -> String {
    format!(
        "the application of a subscriber, which takes its time for each message (`subscribers-take`), was busy {} of the time",
        percent(share)
    )
}

/// Whether publishing workers were to gather messages for a span (`pacing-within`), and 99 % of the
/// messages left within it.
fn gathered_in_time(trial: &Trial) -> bool {
    let asked = trial.circumstances.client.pacing_within;
    let tail = trial.messages.send_lag_ns.counted(0.99);
    asked > 0 && !trial.workload.flat_out && tail.is_some_and(|lag| lag <= asked)
}

/// Whether a wait for a processor, of this share of the time, is a small part of the latency. Workers and a system that a
/// quota holds to a size crowd each other while the system runs, once in each of the quota's periods: a message waits
/// that share of a period.
fn is_little(trial: &Trial, waiting: f64) -> bool {
    let median = trial.messages.latency_from_send_ns.p50.unwrap_or(0);
    waiting * thresholds::QUOTA_PERIOD_NS <= thresholds::LAG_SHARE * median as f64
}

/// A stall of a worker or of the whole machine.
#[derive(Clone)]
struct Still {
    who: &'static str,
    /// Share of the measurement.
    share: f64,
    longest_ns: u64,
    /// Whether the longest makes up the tail of the latencies.
    fills_tail: bool,
    /// Whether what a quota held back is taken off the share.
    beside_quota: bool,
}

impl Still {
    /// A stall that a quota does not explain: whoever it holds back stands still, for no fault of the machine.
    fn unexplained_by(&self, quota: &HeldBack) -> Still {
        Still {
            share: quota.unexplained(self.share),
            beside_quota: true,
            ..self.clone()
        }
    }

    /// Whether it is long enough to count; a shorter one is if the tail of the latencies may consist of nothing else.
    fn counts(&self) -> bool {
        self.share >= thresholds::STALLED
            || self.share >= thresholds::STALLED_TAIL && self.fills_tail
    }

    /// The share from which it counts.
    fn limit(&self) -> f64 {
        if self.share >= thresholds::STALLED {
            thresholds::STALLED
        } else {
            thresholds::STALLED_TAIL
        }
    }
}

/// The worker, or the machine, that was stalled for the largest share of the measurement.
fn stood_still(trial: &Trial, link_full: bool) -> Option<Still> {
    let load = &trial.worker_load;
    // A worker that waits for a full link waits in a system call, which looks like a stall.
    let of_worker = |share: f64| if link_full { 0.0 } else { share };
    let longest = load.longest_stall_ns;
    // A stall of a worker says nothing of how long the machine's own were.
    let of_machine = load.machine_longest_stall_ns.unwrap_or(longest);
    let (publishers, subscribers) = (load.publishers_stalled, load.subscribers_stalled);
    let (who, share, longest_ns) = [
        ("a publishing worker", of_worker(publishers), longest),
        ("a subscribing worker", of_worker(subscribers), longest),
        ("the machine", load.machine_stalled, of_machine),
    ]
    .into_iter()
    .max_by(|a, b| a.1.total_cmp(&b.1))?;
    let tail = trial.messages.latency_ns.p99.unwrap_or(u64::MAX);
    Some(Still {
        who,
        share,
        longest_ns,
        fills_tail: longest_ns >= tail / 2,
        beside_quota: false,
    })
}

fn describe_stall(still: &Still) -> String {
    let limit = if still.share >= thresholds::STALLED {
        percent(thresholds::STALLED)
    } else {
        format!(
            "{} where the longest of these times is half the 99th percentile of latency or more",
            percent(thresholds::STALLED_TAIL)
        )
    };
    let beside = if still.beside_quota {
        ", beside what the quota of this container held back"
    } else {
        ""
    };
    format!(
        "{} stood still for {:.1} % of the measurement{beside} (limit {limit}), up to {} at a time",
        still.who,
        still.share * 100.0,
        time(still.longest_ns as f64)
    )
}

/// The time that a hypervisor took, where it is enough to count.
fn stolen(trial: &Trial) -> Option<Reason> {
    let (share, limit) = (trial.worker_load.machine_stolen?, thresholds::STOLEN);
    (share >= limit).then(|| {
        let text = format!(
            "a hypervisor gave {:.1} % of the processors' time to other machines (limit {}): what was slow may be \
             its doing",
            100.0 * share,
            percent(limit)
        );
        Reason::new(Rule::TimeStolen, text).limited(Evidence::StolenShare, share, limit)
    })
}

/// Whether a quota holds the system to a size that it used up.
fn system_used_its_size(trial: &Trial, system_cores: Option<f64>) -> bool {
    let limits = trial.limits.as_ref().filter(|limits| limits.cores_by_quota);
    let held = limits.and_then(|l| Some(l.cores? * f64::from(l.instances.max(1))));
    held.zip(system_cores)
        .is_some_and(|(held, used)| used >= thresholds::SYSTEM_BUSY_CORES * held)
}

/// A system with a thread that is never idle is its own limit, unless it has several threads and
/// the machine had no more processors for them.
fn system_is_the_limit(system_cores: f64, client_cores: f64, processors: f64) -> bool {
    system_cores >= thresholds::SYSTEM_BUSY_CORES
        && (system_cores <= thresholds::SINGLE_THREAD_CORES
            || system_cores + client_cores < thresholds::MACHINE_BUSY * processors)
}

fn percent(share: f64) -> String {
    shown::percent(share, 0)
}
