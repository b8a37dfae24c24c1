//! The system of a trial: one instance, or several brokers side by side.

use pubgauge_driver::{Mark, Settings, Target};
use pubgauge_engine::assignment::Brief;
use pubgauge_engine::conductor::TrialRecord;
use pubgauge_figures::model::{Broker, CountCheck, HeldLimits};
use pubgauge_network::HostRole;
use pubgauge_testbed::shares::{HeldShare, Share};
use pubgauge_testbed::{
    Counting, OwnMemory, Running, Site, Stopped, SystemCount, SystemCounts, SystemFile, SystemKind,
};

use crate::counters;
use crate::held_limits::on_hosts;
use crate::hosts::own_host;
use crate::job::{Environment, Job};
use crate::sizes::{self, HostShares};

/// The instances of a system, in the order in which brokers are counted. All are stopped, and their
/// folders removed, when this is dropped.
pub struct Instances {
    all: Vec<Running>,
    /// Trials that they have served before this one.
    pub earlier_trials: u32,
    /// Shares of the hosts that they run on.
    pub(crate) shares: HostShares,
}

impl Instances {
    /// Starts as many as the job asks for, each with its own process, ports and folder; reaches each
    /// address of a system that runs already.
    ///
    /// # Errors
    /// Which instance could not be started, and why; the others are stopped then.
    pub fn start(
        job: &Job<'_>,
        system: &SystemFile,
        environment: &Environment<'_>,
        mark: Mark,
    ) -> Result<Instances, String> {
        let count = job.setup.brokers.max(1) as usize;
        let mut all = Vec::with_capacity(count);
        let started = matches!(system.kind, SystemKind::Process | SystemKind::Builtin);
        let hosts = job.setup.hosts.as_deref().filter(|_| started);
        let shares = sizes::hold(hosts, HostRole::Broker);
        for number in 0..count {
            let at = |why: String| named(number, count, &why);
            let system = match system.kind {
                SystemKind::External => &at_one_address(system, number),
                _ => system,
            };
            let host = match (&environment.client.hosts, system.kind) {
                (Some((hosts, _)), SystemKind::Process | SystemKind::Builtin) => {
                    Some(own_host(hosts)?)
                }
                _ => job.network.as_ref().and_then(|n| n.broker(number)),
            };
            let own = hosts.and_then(|hosts| sizes::host(hosts, HostRole::Broker, number as u32));
            let site = Site {
                host,
                share: own.and_then(|own| shares.get(&own).cloned()),
                number,
            };
            let started =
                environment
                    .testbed
                    .start_on(&site, system, job.variant, environment.scratch);
            let mut running = started.map_err(|error| at(error.to_string()))?;
            // A system with a certificate of the run is checked by that.
            if environment.tls.is_some() && running.target.tls.is_none() {
                running.target.tls.clone_from(&environment.tls);
            }
            running.target.shared = job.driver.shared(&job.asked.settings.settings, mark);
            all.push(running);
        }
        Ok(Instances {
            all,
            earlier_trials: 0,
            shares,
        })
    }

    /// Readies them for another trial.
    pub fn for_trial(mut self, job: &Job<'_>, mark: Mark) -> Instances {
        for running in &mut self.all {
            running.target.shared = job.driver.shared(&job.asked.settings.settings, mark);
        }
        self.earlier_trials += 1;
        self
    }

    /// The target of each.
    pub fn targets(&self) -> Vec<Target> {
        self.all.iter().map(|one| one.target.clone()).collect()
    }

    /// The guards of each; `None` where nothing was started.
    pub fn root_pids(&self) -> Vec<Option<i32>> {
        self.all.iter().map(Running::root_pid).collect()
    }

    /// How each one's share of the machine is held.
    pub fn held(&self) -> Vec<&HeldShare> {
        self.all.iter().map(|one| &one.record.share).collect()
    }

    /// The size of the hosts that they run on, and how it was held; `None` where these have none.
    pub(crate) fn host_limits(&self) -> Option<HeldLimits> {
        let hosts = || self.shares.values().take(self.all.len());
        let sizes: Vec<Share> = hosts().map(|host| host.share()).collect();
        let held: Vec<&HeldShare> = hosts().map(|host| host.held()).collect();
        on_hosts(&sizes, &held)
    }

    /// The version that the first reports.
    pub fn version(&self) -> Option<String> {
        self.all.first()?.version.clone()
    }

    /// Checks that all still run.
    ///
    /// # Errors
    /// Which one ended, how, and its last lines.
    pub fn check(&self) -> Result<(), String> {
        for (number, one) in self.all.iter().enumerate() {
            if let Some(how) = one.exit_reason() {
                return Err(named(number, self.all.len(), &how));
            }
        }
        Ok(())
    }

    /// The configuration of each, as files for the record.
    pub fn configs(&self) -> Vec<(String, String)> {
        let several = self.all.len() > 1;
        let mut files = Vec::new();
        for (number, one) in (1..).zip(&self.all) {
            let prefix = if several {
                format!("broker-{number}-")
            } else {
                String::new()
            };
            let record = &one.record;
            let name = |path: &str| format!("{prefix}{}", path.replace('/', "_"));
            let written = record.files.iter();
            files.extend(written.map(|(path, text)| (name(path), text.clone())));
            if let Ok(text) = serde_json::to_string_pretty(record) {
                files.push((name("started.json"), text));
            }
        }
        files
    }

    /// Reads the own counts of each, before the trial.
    pub fn begin_counting(&self, settings: &[Settings]) -> Vec<Option<Counting>> {
        let begin = |one: &Running| one.begin_counting(settings);
        self.all.iter().map(begin).collect()
    }

    /// The own counts, compared with those of their clients: over all of them, and for each of
    /// several whose counts disagree. The counts of each are stored in `brokers`.
    pub fn finish_counting(
        &self,
        counting: &[Option<Counting>],
        job: &Job<'_>,
        (brief, record): (&Brief, &TrialRecord),
        brokers: &mut [Broker],
    ) -> Vec<CountCheck> {
        let shown_as = &job.asked.system;
        let mut sum: Option<SystemCounts> = None;
        let mut alone = Vec::new();
        for (number, (one, counting)) in (0..).zip(self.all.iter().zip(counting)) {
            let Some(counting) = counting else { continue };
            let traffic = counters::Ours::from_record(record, Some(number));
            let agree = |counted: &SystemCounts| counters::agree(brief, record, &traffic, counted);
            let counted = counting.finish(one, &*job.driver, agree);
            if let Some(broker) = brokers.get_mut(number as usize) {
                broker.published = messages(&counted.published);
                broker.delivered = messages(&counted.delivered);
                let name = named(number as usize, self.all.len(), shown_as);
                let checks = counters::checks(brief, record, &traffic, &name, &counted);
                alone.extend(checks.into_iter().filter(CountCheck::disagrees));
            }
            sum = Some(match sum {
                None => counted,
                Some(sum) => SystemCounts {
                    published: added(sum.published, counted.published),
                    delivered: added(sum.delivered, counted.delivered),
                },
            });
        }
        let Some(sum) = sum else { return alone };
        let all = counters::Ours::from_record(record, None);
        let mut checks = counters::checks(brief, record, &all, shown_as, &sum);
        checks.append(&mut alone);
        checks
    }

    /// The sum of the memory that they report; nothing where one of them says nothing.
    ///
    /// # Errors
    /// Why one that should say it does not.
    pub fn own_memory(&self, counting: &[Option<Counting>]) -> Result<OwnMemory, String> {
        let each = self.all.iter().zip(counting);
        let told = each.map(|(one, counting)| match counting {
            Some(counting) => counting.memory(one),
            None => Ok(OwnMemory::default()),
        });
        let told: Vec<OwnMemory> = told.collect::<Result<_, _>>()?;
        Ok(told
            .into_iter()
            .reduce(OwnMemory::combined_with)
            .unwrap_or_default())
    }

    /// Stops all of a system with this name: how each ended, and what is to be said of those that did not end in
    /// order.
    pub fn stop(self, name: &str) -> (Vec<Stopped>, Vec<String>) {
        let ends: Vec<Stopped> = self.all.into_iter().map(Running::stop).collect();
        let words = ends.iter().filter_map(|end| end.in_words());
        let words = words.map(|words| format!("{name} {words}")).collect();
        (ends, words)
    }

    /// Each of several, without the figures of the measurement.
    pub fn brokers(&self, brief: &Brief) -> Vec<Broker> {
        if self.all.len() < 2 {
            return Vec::new();
        }
        let devices = &brief.workload.devices;
        let broker = |(number, one): (u32, &Running)| Broker {
            address: one.target.endpoints.join(" "),
            connections: devices.iter().filter(|d| d.broker == number).count() as u64,
            ..Broker::default()
        };
        (0..).zip(&self.all).map(broker).collect()
    }
}

/// A message about one of several brokers.
fn named(number: usize, count: usize, what: &str) -> String {
    match count {
        1 => what.to_owned(),
        _ => format!("broker {} of {count}: {what}", number + 1),
    }
}

/// An external system with only one of its addresses.
fn at_one_address(system: &SystemFile, number: usize) -> SystemFile {
    let only = |endpoints: &mut Vec<String>| {
        *endpoints = endpoints.get(number).cloned().into_iter().collect();
    };
    let mut one = system.clone();
    only(&mut one.endpoints);
    let variants = one.variants.values_mut();
    variants.filter_map(|v| v.endpoints.as_mut()).for_each(only);
    one
}

fn messages(count: &Option<SystemCount>) -> Option<u64> {
    match count {
        Some(SystemCount::Messages(n) | SystemCount::Routed(n)) => Some(*n),
        _ => None,
    }
}

/// The sum of the counts of two brokers; if one could not be read, the reason.
fn added(one: Option<SystemCount>, other: Option<SystemCount>) -> Option<SystemCount> {
    Some(match (one?, other?) {
        (SystemCount::Messages(a), SystemCount::Messages(b)) => SystemCount::Messages(a + b),
        (SystemCount::Routed(a), SystemCount::Routed(b)) => SystemCount::Routed(a + b),
        (SystemCount::Messages(_) | SystemCount::Routed(_), why) | (why, _) => why,
    })
}
