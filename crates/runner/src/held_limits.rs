//! How shares of the machine were held, over all that were to have one.

use pubgauge_figures::model::HeldLimits;
use pubgauge_quantities::lists::unique;
use pubgauge_testbed::shares::{HeldShare, Share};

/// The kernel's quota does not limit threads with a real-time priority.
pub(crate) fn beside_realtime(mut limits: HeldLimits, realtime: Option<u8>) -> HeldLimits {
    if let (Some(_), Some(cores), true) = (realtime, limits.cores, limits.cores_by_quota) {
        limits.cores_by = None;
        limits.cores_by_quota = false;
        limits.not_held.push(format!(
            "{cores} cores as a quota: workers with a real-time priority are not bound by one"
        ));
    }
    limits
}

/// A share counts as held where it is held on all instances that were to have it.
pub(crate) fn on_all(share: &Share, held: &[&HeldShare]) -> Option<HeldLimits> {
    // Workers may be on different processors.
    let how = |how: fn(&HeldShare) -> Option<&String>| {
        let all: Option<Vec<&String>> = held.iter().map(|held| how(held)).collect();
        let all = unique(all.unwrap_or_default().into_iter().cloned());
        (!all.is_empty()).then(|| all.join("; "))
    };
    let not_held = unique(held.iter().flat_map(|held| held.not_held.clone()));
    (!share.is_none()).then(|| HeldLimits {
        instances: held.len() as u32,
        cores: share.cores,
        cores_by: how(|held| held.cores_by.as_ref()),
        cores_by_quota: !held.is_empty() && held.iter().all(|held| held.cores_by_quota),
        memory_bytes: share.memory_bytes,
        memory_by: how(|held| held.memory_by.as_ref()),
        clients_apart: false,
        not_held,
    })
}

/// The shares of hosts, and how they were held. Hosts of several sizes count as one that has what all of them have.
pub(crate) fn on_hosts(sizes: &[Share], held: &[&HeldShare]) -> Option<HeldLimits> {
    let first = sizes.first()?;
    if sizes.iter().all(|size| size == first) {
        return on_all(first, held);
    }
    let all = Share {
        cores: sizes.iter().map(|size| size.cores).sum(),
        memory_bytes: sizes.iter().map(|size| size.memory_bytes).sum(),
    };
    Some(HeldLimits {
        instances: 1,
        ..on_all(&all, held)?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_several_sizes_count_as_one_with_all_of_theirs() {
        let quota = HeldShare {
            cores_by: Some("a quota".into()),
            cores_by_quota: true,
            ..HeldShare::default()
        };
        let size = |cores| Share {
            cores: Some(cores),
            memory_bytes: None,
        };
        let told = on_hosts(&[size(0.1), size(0.4)], &[&quota, &quota]).expect("asked for");
        assert_eq!(
            (told.instances, told.cores, told.cores_by_quota),
            (1, Some(0.5), true)
        );
        let alike = on_hosts(&[size(0.4); 2], &[&quota, &quota]).expect("asked for");
        assert_eq!((alike.instances, alike.cores), (2, Some(0.4)));
        assert_eq!(on_hosts(&[], &[]), None);
    }

    #[test]
    fn what_became_of_the_share_of_each_worker_is_told() {
        let on = |cpu: u32, cores_by_quota| HeldShare {
            cores_by: Some(format!("affinity to processors {cpu}")),
            cores_by_quota,
            ..HeldShare::default()
        };
        let share = Share {
            cores: Some(0.5),
            memory_bytes: None,
        };
        let (one, other) = (on(1, false), on(0, false));
        let told = on_all(&share, &[&one, &other, &one]).expect("asked for");
        assert_eq!(
            told.cores_by.as_deref(),
            Some("affinity to processors 1; affinity to processors 0")
        );
        assert_eq!((told.instances, told.cores_by_quota), (3, false));
        assert_eq!(on_all(&Share::default(), &[&one]), None);
        // No process was started.
        let told = on_all(&share, &[]).expect("asked for");
        assert_eq!((told.cores_by, told.cores_by_quota), (None, false));

        let quota = on(0, true);
        let told = on_all(&share, &[&quota]).expect("asked for");
        let as_it_is = beside_realtime(told.clone(), None);
        assert_eq!(as_it_is, told);
        let realtime = beside_realtime(told, Some(10));
        assert_eq!((realtime.cores_by, realtime.cores_by_quota), (None, false));
        assert!(realtime.not_held[0].contains("real-time priority"));
    }
}
