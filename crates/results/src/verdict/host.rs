//! Client hosts of a given size that came to the end of it: a result about such hosts, where it is the host and not
//! pubgauge or the machine that was at its end.

use pubgauge_figures::SizedHost;
use pubgauge_figures::model::{Evidence, Reason, Rule, Status, Trial};

use super::thresholds;

/// A client host at the end of its size.
pub(super) struct AtEnd {
    /// Which one, and how that was seen.
    pub reason: Reason,
    /// [`Status::HostBound`], or [`Status::ClientBound`] where it may have been pubgauge or the machine.
    pub status: Status,
    /// It had no processor time left for its load; else its waits are long enough to make up the tail of latencies
    /// alone.
    pub is_full: bool,
}

/// The hosts of a role that a quota holds to their size.
fn held<'a>(trial: &'a Trial, role: &str) -> impl Iterator<Item = &'a SizedHost> {
    let hosts = trial.sized_hosts.iter();
    hosts.filter(move |host| host.is_of(role) && host.limits.cores_by_quota)
}

/// Share of the measurement for which a worker of a role was ready and waited for a processor that others had; `None`
/// where no host of the role has a size.
pub(super) fn crowded(trial: &Trial, role: &str) -> Option<f64> {
    held(trial, role).map(of_others).reduce(f64::max)
}

/// Share of the measurement for which a worker of a host waited for a processor that others had: what it waited, less
/// what the kernel kept it waiting at the end of the host's share. That is known of all processors together alone. A
/// host that used up its size was kept from it by nobody, and all of that time is taken off. Of another host as
/// little is as there may have been on one processor: what it lacks may be what others had.
fn of_others(host: &SizedHost) -> f64 {
    let throttled = host.throttled.unwrap_or(0.0);
    let is_used_up = host
        .used()
        .is_some_and(|used| used >= thresholds::HOST_USED);
    let own = if is_used_up {
        throttled
    } else {
        throttled / f64::from(host.processors.max(1))
    };
    (host.waited - own).max(0.0)
}

/// The host of a role that came to the end of its size; of several one that is not host-bound, or the fullest.
pub(super) fn at_end(trial: &Trial, role: &str) -> Option<AtEnd> {
    let all = held(trial, role).filter_map(|host| {
        let at_end = of_host(trial, host)?;
        Some((host.used().unwrap_or(0.0), at_end))
    });
    let rank = |end: &AtEnd| (end.is_full, end.status);
    let worst =
        all.max_by(|(a_used, a), (b_used, b)| rank(a).cmp(&rank(b)).then(a_used.total_cmp(b_used)));
    worst.map(|(_, at_end)| at_end)
}

fn of_host(trial: &Trial, host: &SizedHost) -> Option<AtEnd> {
    let (cores, throttled) = (host.limits.cores?, host.throttled.unwrap_or(0.0));
    let used = host.used().unwrap_or(0.0);
    let is_full = used >= thresholds::HOST_USED || throttled > thresholds::WAITING;
    if !is_full && !spoils_tail(trial, cores, throttled) {
        return None;
    }
    let limit = if is_full {
        format!(
            "limits {} and {}",
            percent(thresholds::HOST_USED),
            percent(thresholds::WAITING)
        )
    } else {
        format!(
            "limit {} where its waits may be half the 99th percentile of latency or more",
            percent(thresholds::STALLED_TAIL)
        )
    };
    let ends = format!(
        "{} used {} of its {cores} cores and was kept waiting at the end of them for {} of the time, added up over \
         processors ({limit})",
        host.host,
        percent(used),
        percent(throttled)
    );
    let (status, why) = match host.own {
        _ if of_others(host) > thresholds::WAITING => (
            Status::ClientBound,
            format!(
                ", but its workers may have waited {} of the time for processors that others had (limit {})",
                percent(of_others(host)),
                percent(thresholds::WAITING)
            ),
        ),
        // A client that sends without a pause would have used up all that it got.
        _ if trial.workload.flat_out && used < thresholds::HOST_USED => (
            Status::ClientBound,
            ", but did not use them up: others may have had the processors, or the system held it back".into(),
        ),
        None => (
            Status::ClientBound,
            ", but how much of that pubgauge itself took is not known: `pubgauge calibrate` measures it".into(),
        ),
        Some(own) if own > thresholds::OWN_COST => (
            Status::ClientBound,
            format!(
                ", but pubgauge itself took {} of what it used, by calibration (limit {})",
                percent(own),
                percent(thresholds::OWN_COST)
            ),
        ),
        Some(own) => (
            Status::HostBound,
            format!(
                "; pubgauge itself took {} of what it used, by calibration (limit {})",
                percent(own),
                percent(thresholds::OWN_COST)
            ),
        ),
    };
    let mut reason = Reason::new(Rule::HostFull, ends + &why)
        .limited(Evidence::UsedShare, used, thresholds::HOST_USED)
        .limited(Evidence::ThrottledShare, throttled, thresholds::WAITING)
        .limited(
            Evidence::WaitedForOthers,
            of_others(host),
            thresholds::WAITING,
        );
    if let Some(own) = host.own {
        reason = reason.limited(Evidence::OwnCostShare, own, thresholds::OWN_COST);
    }
    Some(AtEnd {
        reason,
        status,
        is_full,
    })
}

/// Whether waits at the end of a share, each as long as a period has left, may make up the tail of latencies.
fn spoils_tail(trial: &Trial, cores: f64, throttled: f64) -> bool {
    let longest_ns = (1.0 - cores).max(0.0) * thresholds::QUOTA_PERIOD_NS;
    let tail = trial.messages.latency_ns.p99;
    !trial.workload.flat_out
        && throttled >= thresholds::STALLED_TAIL
        && tail.is_some_and(|p99| longest_ns >= p99 as f64 / 2.0)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
