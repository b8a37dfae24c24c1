//! Checks of phases, client, limits, counts, networks and hosts.

use pubgauge_driver::share::{MAX_CORES, MIN_CORES, MIN_MEMORY_MIB};
use pubgauge_network::MOST_HOSTS;
use pubgauge_quantities::{Rate, Size, Span};

use crate::clash::Clash;
use crate::clash::Clashes;
use crate::file::{
    ClientFile, CoresFile, LimitsFile, PhasesFile, StudyFile, TestbedFile, UntilCount, UntilFile,
};

/// Checks what a study and each of its workloads may have: `phases`, `client` and `testbed`.
pub(crate) fn check_parts(
    (phases, client, testbed): (&PhasesFile, &ClientFile, &TestbedFile),
    clashes: &mut Clashes<'_>,
) {
    check_phases(phases, &mut clashes.below(&["phases"]));
    check_client(client, &mut clashes.below(&["client"]));
    check_limits(&testbed.limits, &mut clashes.below(&["testbed", "limits"]));
    check_limits(&client.limits, &mut clashes.below(&["client", "limits"]));
    check_counts(testbed, &mut clashes.below(&["testbed"]));
    check_network(testbed, &mut clashes.below(&["testbed"]));
    check_hosts(testbed, &mut clashes.below(&["testbed"]));
}

const HOUR: u64 = 3_600_000_000_000;

fn check_phases(phases: &PhasesFile, clashes: &mut Clashes<'_>) {
    if let Some(Rate::Each(_)) = phases.connect_rate {
        clashes.add(
            "connect-rate",
            "connections per second in all, such as \"500/s\", without `-each`",
        );
    }
    for (key, until) in [("measure", &phases.measure), ("warm-up", &phases.warm_up)] {
        match until {
            Some(UntilFile::Count(count)) if count.within.0 == 0 => {
                clashes.add(key, "`within` must be longer than 0");
            }
            Some(UntilFile::Count(count)) if count.messages == 0 && key == "measure" => {
                clashes.add(key, "a measurement of no messages measures nothing");
            }
            Some(UntilFile::Time(Span(0))) if key == "measure" => {
                clashes.add(key, "a measurement must be longer than 0");
            }
            _ => {}
        }
    }
    // With a day for connecting that makes 78 hours, the longest time that a message's header holds
    // (`pubgauge_driver::header::MAX_TRIAL`).
    for (key, until, hours) in [
        ("measure", &phases.measure, 48),
        ("warm-up", &phases.warm_up, 6),
    ] {
        let (Some(UntilFile::Time(span)) | Some(UntilFile::Count(UntilCount { within: span, .. }))) =
            until
        else {
            continue;
        };
        if *span > Span(hours * HOUR) {
            clashes.add(
                key,
                format!("at most {hours} hours: messages tell no longer times"),
            );
        }
    }
    let longest = Span(24 * HOUR);
    for (key, span) in [
        ("ready-within", phases.ready_within),
        ("drain-quiet", phases.drain_quiet),
        ("drain-within", phases.drain_within),
        ("reconnect-after", phases.reconnect_after),
    ] {
        if span.is_some_and(|span| span > longest) {
            clashes.add(key, "longer than a day is surely a slip");
        }
    }
}

/// Longest `pacing-within`: 100 ms.
const MAX_PACING: Span = Span(100_000_000);

fn check_client(client: &ClientFile, clashes: &mut Clashes<'_>) {
    let allowed = Span(1)..=MAX_PACING;
    if client.pacing_within.is_some_and(|s| !allowed.contains(&s)) {
        clashes.hinted(
            "pacing-within",
            "expected a span above 0 and up to 100ms, such as \"1ms\"",
            Some("leave it out to send each message at its own time".into()),
        );
    }
    if client.processes.is_some_and(|n| !(1..=64).contains(&n)) {
        clashes.hinted(
            "processes",
            "expected a number from 1 to 64",
            Some("leave it out to have all workers in one process".into()),
        );
    }
}

/// Checks an emulated network.
fn check_network(testbed: &TestbedFile, clashes: &mut Clashes<'_>) {
    let Some(network) = &testbed.network else {
        return;
    };
    for (role, hosts) in [
        ("broker", &network.broker),
        ("publisher", &network.publisher),
        ("subscriber", &network.subscriber),
    ] {
        let Some(hosts) = hosts else { continue };
        let mut clashes = clashes.below(&["network", role]);
        check_sizes(
            hosts.hosts,
            hosts.cores.as_ref(),
            hosts.memory,
            &mut clashes,
        );
        if hosts.hosts == Some(0) {
            clashes.hinted(
                "hosts",
                "there is at least one",
                Some(format!("leave `{role}` out to have none")),
            );
        }
        if hosts.loss_burst.is_some() && hosts.loss.is_none() {
            clashes.hinted(
                "loss-burst",
                "nothing is lost",
                Some("say with `loss` how much".into()),
            );
        }
        if hosts.reordered.is_some() && hosts.reordered_by_jitter == Some(true) {
            clashes.add(
                "reordered-by-jitter",
                "packets are reordered by a share of them, or by jitter; leave one of them out",
            );
        }
    }
    for problem in network.network().check().err().unwrap_or_default() {
        // Where the study has a key of another name.
        let key = problem.path.replace("reordering", "reordered");
        clashes.hinted(&format!("network.{key}"), problem.message, problem.hint);
    }
}

/// Checks the hosts of `[testbed.hosts]`, which are on this machine without links.
fn check_hosts(testbed: &TestbedFile, clashes: &mut Clashes<'_>) {
    let Some(hosts) = &testbed.hosts else { return };
    for (role, of) in [
        ("broker", &hosts.broker),
        ("publisher", &hosts.publisher),
        ("subscriber", &hosts.subscriber),
    ] {
        let Some(of) = of else { continue };
        let mut clashes = clashes.below(&["hosts", role]);
        if of.hosts == Some(0) {
            let hint = format!("leave `{role}` out to have one of no given size");
            clashes.hinted("hosts", "there is at least one", Some(hint));
        }
        check_sizes(of.hosts, of.cores.as_ref(), of.memory, &mut clashes);
    }
    let all = hosts.sizes().hosts().count();
    if all > MOST_HOSTS as usize {
        let message = format!("there are {all} hosts, more than {MOST_HOSTS}");
        clashes.add("hosts", message);
    }
}

/// Checks what the bed of a workload takes from the study and says itself, together.
pub(crate) fn check_bed(study: &StudyFile, nth: usize, found: &mut Vec<Clash>) {
    let workload = &study.workload[nth];
    let number = nth.to_string();
    let (testbed, client) = (
        workload.testbed(&study.testbed),
        workload.client(&study.client),
    );
    // Where a part is written: at the workload, or else at the study.
    let mut told = |own: bool, key: &str, message: &str, hint: &str| {
        let place = ["workload", &number];
        let base = if own { &place[..] } else { &[] };
        Clashes::new(base, found).hinted(key, message, Some(hint.into()));
    };
    if testbed.hosts.is_some() && testbed.network.is_some() {
        told(
            workload.testbed.hosts.is_some(),
            "testbed.hosts",
            "these are hosts without links, and [testbed.network] has hosts with links",
            "give the hosts of [testbed.network] their `cores` and `memory`, and leave this out",
        );
        return;
    }
    let Some(sizes) = testbed.sizes() else { return };
    if !testbed.limits.share().is_none() && sizes.broker.are_limited() {
        told(
            !workload.testbed.limits.share().is_none(),
            "testbed.limits",
            "an instance of a system is limited here, and its host has a size",
            "a host's size is for all of its processes together: leave one of the two out",
        );
    }
    let clients = sizes.publisher.are_limited() || sizes.subscriber.are_limited();
    if !client.limits.share().is_none() && clients {
        told(
            !workload.client.limits.share().is_none(),
            "client.limits",
            "a worker process is limited here, and its host has a size",
            "a host's size is for all of its processes together: leave one of the two out",
        );
    }
}

fn check_counts(testbed: &TestbedFile, clashes: &mut Clashes<'_>) {
    let Some(interface) = &testbed.count_interface else {
        return;
    };
    let part = |name: &str| !name.is_empty() && !name.contains(['/', ' ', ':']);
    let known = match interface.split_once('/') {
        Some((namespace, name)) => part(namespace) && part(name),
        None => part(interface),
    };
    if !known {
        clashes.hinted(
            "count-interface",
            "expected the name of a network interface, such as \"lo\", or \"NAMESPACE/INTERFACE\"",
            Some("`ip link` and `ip netns` list them; leave it out to count none".into()),
        );
    }
}

/// Checks the sizes of the hosts of a role.
fn check_sizes(
    hosts: Option<u32>,
    cores: Option<&CoresFile>,
    memory: Option<Size>,
    clashes: &mut Clashes<'_>,
) {
    for cores in cores.map_or(&[][..], CoresFile::as_slice) {
        let limits = LimitsFile {
            cores: Some(*cores),
            memory: None,
        };
        check_limits(&limits, clashes);
    }
    check_limits(
        &LimitsFile {
            cores: None,
            memory,
        },
        clashes,
    );
    let hosts = hosts.unwrap_or(1);
    if let Some(CoresFile::Each(all)) = cores
        && all.len() != hosts as usize
    {
        let message = format!("{} numbers for {hosts} hosts", all.len());
        let hint = "one for each host, or a single number for all".to_owned();
        clashes.hinted("cores", message, Some(hint));
    }
}

fn check_limits(limits: &LimitsFile, clashes: &mut Clashes<'_>) {
    let hint = || Some("leave it out to let each have what there is".into());
    let cores = MIN_CORES..=MAX_CORES;
    if limits.cores.is_some_and(|c| !cores.contains(&c)) {
        let message = format!("expected a number of processors from {MIN_CORES} on, such as 0.5");
        clashes.hinted("cores", message, hint());
    }
    let whole = |bytes: u64| bytes.is_multiple_of(1 << 20) && bytes >> 20 >= MIN_MEMORY_MIB;
    if limits.memory.is_some_and(|memory| !whole(memory.0)) {
        let message = format!("expected whole MiB, {MIN_MEMORY_MIB} and more, such as \"512MiB\"");
        clashes.hinted("memory", message, hint());
    }
}
