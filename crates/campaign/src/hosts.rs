//! Workers on other hosts: which trials can run there, and which host has whose workers.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use pubgauge_driver::{Transport, Unsupported};
use pubgauge_engine::assignment::{Role, Workers};
use pubgauge_hosts::{Hosts, HostsError};
use pubgauge_network::{HostRole, Link, Network};
use pubgauge_runner::hosts::Sides;
use pubgauge_study::PlannedTrial;
use pubgauge_testbed::SystemKind;
use pubgauge_testbed::template::{HOST, names};

use crate::{Chosen, ClientOptions, Error};

/// How long a host that was lost may take to come back before the next trial.
const AGAIN: Duration = Duration::from_secs(30);

/// Why a trial cannot have its workers on other hosts.
pub fn refused(trial: &PlannedTrial, chosen: &Chosen) -> Option<Unsupported> {
    let reason = stays_here(trial, chosen, "which no other host reaches", |_| None);
    let reason = reason.or_else(|| of_network(trial.setup.network.as_deref()?));
    let reason = reason.or_else(|| of_counts(trial))?;
    Some(Unsupported {
        setting: "--load-host".into(),
        value: "other hosts".into(),
        reason,
    })
}

/// Why a system and its clients can only be on one host: `there` is said of one in pubgauge's own process, and
/// `other` are the caller's own reasons.
pub fn stays_here(
    trial: &PlannedTrial,
    chosen: &Chosen,
    there: &str,
    other: impl FnOnce(SystemKind) -> Option<&'static str>,
) -> Option<String> {
    let own = chosen.file.variant(chosen.variant.as_deref()).ok();
    let endpoints = own.map(|file| file.endpoints).unwrap_or_default();
    let placed = |endpoint: &String| names(endpoint).any(|name| name == HOST);
    let local = |transport: Option<Transport>| {
        matches!(transport, Some(Transport::Ipc | Transport::SharedMemory))
    };
    if chosen.driver.lives_here() {
        return Some(format!("it runs in pubgauge's own process, {there}"));
    }
    let reason = match chosen.file.kind {
        SystemKind::Process | SystemKind::Builtin if !endpoints.iter().all(placed) => Some(
            "its file lets it listen on this host's loopback alone: write {host} in `endpoints` and where it listens",
        ),
        kind => other(kind),
    };
    let one_host = "`transport = \"ipc\"` and `\"shared-memory\"` stay on one host: use tcp or udp";
    let mut all = trial.all_settings();
    let reason = reason.or_else(|| {
        let some = all.any(|settings| local(settings.transport));
        some.then_some(one_host)
    });
    reason.map(str::to_owned)
}

/// Why real hosts cannot serve as a study's network: of it, only the numbers of hosts apply to them.
fn of_network(network: &Network) -> Option<String> {
    let plain = |role: &HostRole| network.hosts_of(*role).link == Link::default();
    if !HostRole::ALL.iter().all(plain) {
        return Some(
            "[testbed.network] says what links do, which only a network that pubgauge makes can be told: leave all but `hosts` out"
                .into(),
        );
    }
    if network.broker.hosts > 1 {
        return Some(format!(
            "[testbed.network] has {} broker hosts, and systems are started on the host of the run: one is possible",
            network.broker.hosts
        ));
    }
    let lacking = |role: &&HostRole| network.hosts_of(**role).hosts == 0;
    let role = [HostRole::Publisher, HostRole::Subscriber]
        .iter()
        .find(lacking)?;
    Some(format!("[testbed.network] has no {} host", role.name()))
}

fn of_counts(trial: &PlannedTrial) -> Option<String> {
    if trial.setup.counts.system_calls || trial.setup.counts.interface.is_some() {
        return Some("system calls and interfaces are counted on the host of the run alone".into());
    }
    if trial.setup.hosts.is_some() {
        return Some("hosts of given sizes are made of the host of the run alone".into());
    }
    let limited = !trial.setup.client_limits.is_none();
    limited.then(|| "[client.limits] hold on the host of the run alone".into())
}

/// Checks that the workers of all trials have their hosts.
///
/// # Errors
/// Bad input: numbers of hosts that do not fit a trial, or flags that are about this host.
pub fn check<'a>(
    hosts: &Hosts,
    client: &ClientOptions,
    trials: impl IntoIterator<Item = &'a PlannedTrial>,
) -> Result<(), Error> {
    if !client.pin.is_empty() {
        return Err(Error::bad_input(
            "--pin names processors of this host, and the workers run on others\n  hint: leave it out",
        ));
    }
    for trial in trials {
        resolve_sides(hosts, trial)?;
    }
    Ok(())
}

/// Which hosts have the workers of a trial: as the hosts say, else as its network says, else the first half of them, rounded
/// up, has those of the publishing devices; a single host has both sides.
///
/// # Errors
/// Bad input: numbers of hosts that do not fit.
pub fn resolve_sides(hosts: &Hosts, trial: &PlannedTrial) -> Result<Sides, Error> {
    let all: Vec<Option<Role>> = (0..hosts.count())
        .map(|number| hosts.host(number).role)
        .collect();
    let network = trial.setup.network.as_deref();
    let asked = network.map(|network| (network.publisher.hosts, network.subscriber.hosts));
    divided(&all, asked).map_err(|why| Error::bad_input(format!("{}: {why}", trial.workload.name)))
}

fn divided(all: &[Option<Role>], asked: Option<(u32, u32)>) -> Result<Sides, String> {
    let count = all.len();
    let of = |side| {
        let own = |number: &usize| all[*number].is_none_or(|own| own == side);
        (0..count).filter(own).collect::<Vec<_>>()
    };
    let split = |first: usize| Sides {
        publishers: (0..first).collect(),
        subscribers: (first..count).collect(),
    };
    let both = Sides {
        publishers: of(Role::Publishers),
        subscribers: of(Role::Subscribers),
    };
    let are_said = all.iter().any(Option::is_some);
    let asked = asked.map(|(publishers, subscribers)| (publishers as usize, subscribers as usize));
    let fits = |sides: &Sides| {
        asked.is_none_or(|asked| asked == (sides.publishers.len(), sides.subscribers.len()))
    };
    let found = match asked {
        _ if are_said || count == 1 => Some(both),
        None => Some(split(count - count / 2)),
        Some((publishers, subscribers)) if publishers + subscribers == count => {
            Some(split(publishers))
        }
        Some(_) => Some(both),
    };
    let (publishers, subscribers) = asked.unwrap_or_default();
    match found.filter(fits) {
        None => Err(format!(
            "[testbed.network] has {publishers} publisher and {subscribers} subscriber hosts, and the run has {count}\n  hint: --load-host for each of {}; where both are as many, so many hosts can have both",
            publishers + subscribers
        )),
        Some(sides) if sides.publishers.is_empty() => Err(
            "no host is for the publishers\n  hint: for = \"publishers\", or leave `for` out"
                .into(),
        ),
        Some(sides) if sides.subscribers.is_empty() => Err(
            "no host is for the subscribers\n  hint: for = \"subscribers\", or leave `for` out"
                .into(),
        ),
        Some(sides) => Ok(sides),
    }
}

/// The workers of a trial on these hosts.
pub fn place_workers(workers: Workers, sides: &Sides) -> Workers {
    Workers {
        publisher_hosts: sides.publishers.len() as u32,
        subscriber_hosts: sides.subscribers.len() as u32,
        ..workers
    }
}

/// Starts the companions of all hosts, before the first trial.
///
/// # Errors
/// A host that cannot be used.
pub fn gather(hosts: &Hosts, stop: &AtomicBool, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
    let gathered = hosts.gather(Duration::ZERO, &|| stop.load(Relaxed), say);
    gathered.map_err(Error::not_valid)
}

/// Waits for all hosts before the next trial; returns false if the user ends the run.
///
/// # Errors
/// A host that is lost.
pub fn gather_again(
    hosts: &Hosts,
    stop: &AtomicBool,
    say: &mut dyn FnMut(&str),
) -> Result<bool, Error> {
    match hosts.gather(AGAIN, &|| stop.load(Relaxed), say) {
        Ok(()) => Ok(true),
        Err(HostsError::Stopped) => Ok(false),
        Err(error) => Err(Error::not_valid(format!(
            "lost, and not back within {} s: {error}\n  hint: go on with --resume once it is back",
            AGAIN.as_secs()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: Option<Role> = Some(Role::Publishers);
    const S: Option<Role> = Some(Role::Subscribers);

    fn sides(publishers: &[usize], subscribers: &[usize]) -> Result<Sides, String> {
        Ok(Sides {
            publishers: publishers.to_vec(),
            subscribers: subscribers.to_vec(),
        })
    }

    #[test]
    fn hosts_of_publishers_come_first() {
        assert_eq!(divided(&[None], None), sides(&[0], &[0]));
        assert_eq!(divided(&[None; 3], None), sides(&[0, 1], &[2]));
        assert_eq!(divided(&[None; 3], Some((1, 2))), sides(&[0], &[1, 2]));
        assert_eq!(divided(&[None; 2], Some((2, 2))), sides(&[0, 1], &[0, 1]));
    }

    #[test]
    fn what_a_host_is_for_holds() {
        assert_eq!(divided(&[S, P, None], None), sides(&[1, 2], &[0, 2]));
        assert_eq!(divided(&[S, P], Some((1, 1))), sides(&[1], &[0]));
    }

    #[test]
    fn numbers_that_do_not_fit_are_told() {
        for (all, asked, says) in [
            (
                &[None; 4][..],
                Some((2, 3)),
                "2 publisher and 3 subscriber hosts, and the run has 4",
            ),
            (&[S, P], Some((2, 1)), "and the run has 2"),
            (&[S, S], None, "no host is for the publishers"),
            (&[P], None, "no host is for the subscribers"),
        ] {
            let why = divided(all, asked).unwrap_err();
            assert!(why.contains(says), "{why}");
        }
    }
}
