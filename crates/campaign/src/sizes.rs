//! Hosts of given sizes: which trials can run on them, and whether this machine has room for them.

use pubgauge_driver::Unsupported;
use pubgauge_network::{HostRole, HostSizes};
use pubgauge_quantities::Share;
use pubgauge_quantities::lists::unique;
use pubgauge_study::{Plan, PlannedTrial};
use pubgauge_testbed::{SystemKind, memory, processors};

use crate::{Chosen, Error};

/// Why a trial cannot run on hosts of the sizes that it asks for.
pub fn refused(trial: &PlannedTrial, chosen: &Chosen) -> Option<Unsupported> {
    let hosts = trial.setup.hosts.as_deref()?;
    let has_size = hosts.broker.are_limited();
    let reason = match chosen.file.kind {
        _ if chosen.driver.lives_here() => "it runs in pubgauge's own process, which is on no host",
        SystemKind::External if has_size => {
            "it runs already, and its host has the size that it has"
        }
        _ => return None,
    };
    Some(Unsupported {
        setting: "testbed.hosts".into(),
        value: hosts.describe().join(", "),
        reason: reason.into(),
    })
}

/// The share of the machine for each host of a role, and whose that is in words.
pub fn shares(hosts: &HostSizes) -> Vec<(&'static str, Share)> {
    let of = |role: HostRole| {
        let (each, one) = match role {
            HostRole::Broker => ("each broker host", "a broker host"),
            HostRole::Publisher => ("each publisher host", "a publisher host"),
            HostRole::Subscriber => ("each subscriber host", "a subscriber host"),
        };
        let by_size = hosts.sizes_of(role).by_size();
        let by_size: Vec<Share> = by_size.map(|(_, size)| size).collect();
        let who = if by_size.len() == 1 { each } else { one };
        by_size.into_iter().map(move |size| (who, size))
    };
    HostRole::ALL.into_iter().flat_map(of).collect()
}

/// Checks that the hosts of each trial fit into this machine, all of them together.
///
/// # Errors
/// Bad input: the first that do not, what they take together, and what there is.
pub fn check(plan: &Plan) -> Result<(), Error> {
    let there = Share {
        cores: Some(processors()),
        memory_bytes: Some(memory()),
    };
    for (hosts, workload) in unique(plan.trials.iter().filter_map(|trial| {
        let hosts = trial.setup.hosts.as_deref()?;
        Some((hosts.clone(), trial.workload.name.clone()))
    })) {
        fits(&hosts, there).map_err(|why| Error::bad_input(format!("{workload}: {why}")))?;
    }
    Ok(())
}

fn fits(hosts: &HostSizes, there: Share) -> Result<(), String> {
    let all = hosts.sum();
    let wanted = [
        (all.cores, there.cores, "cores"),
        (
            all.memory_bytes.map(|bytes| bytes as f64),
            there.memory_bytes.map(|bytes| bytes as f64),
            "memory",
        ),
    ];
    // Sums of numbers such as 0.1 are not exact.
    let beyond = |(all, there, _): &(Option<f64>, Option<f64>, &str)| {
        all.zip(*there)
            .is_some_and(|(all, there)| all > there * (1.0 + 1e-9))
    };
    if !wanted.iter().any(beyond) {
        return Ok(());
    }
    let words = |size: Share| size.describe().unwrap_or_default();
    let there = Share {
        cores: all.cores.and(there.cores),
        memory_bytes: all.memory_bytes.and(there.memory_bytes),
    };
    Err(format!(
        "its hosts get {} together ({}), and this machine has {}\n  hint: smaller or fewer hosts, or a larger machine",
        words(all),
        hosts.describe().join(", "),
        words(there)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubgauge_network::SizedHosts;

    #[test]
    fn hosts_share_one_machine() {
        let there = Share {
            cores: Some(2.0),
            memory_bytes: Some(8 << 30),
        };
        let of = |hosts, cores, memory_bytes| {
            SizedHosts::equal(
                hosts,
                Share {
                    cores,
                    memory_bytes,
                },
            )
        };
        let mut hosts = HostSizes {
            broker: of(1, Some(0.4), None),
            publisher: of(1, Some(0.2), None),
            subscriber: of(7, Some(0.2), None),
        };
        assert_eq!(fits(&hosts, there), Ok(()));
        hosts.subscriber = of(8, Some(0.2), None);
        let why = fits(&hosts, there).unwrap_err();
        assert!(
            why.starts_with("its hosts get 2.2 cores together (1 broker host of 0.4 cores,"),
            "{why}"
        );
        assert!(why.contains("this machine has 2 cores\n"), "{why}");
        hosts.subscriber = of(2, None, Some(5 << 30));
        let why = fits(&hosts, there).unwrap_err();
        assert!(why.contains("10240 MiB of memory"), "{why}");
    }
}
