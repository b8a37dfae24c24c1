//! Emulated networks in studies.

use std::path::Path;

use pubgauge_network::{HostRole, HostSizes, Loss, Network, Reordering};
use pubgauge_study::{Plan, PlanOptions, Study};

const FLOW: &str = "flow = [{ pattern = \"1-1\", payload = \"64B\", rate = \"1/s\" }]\n";

fn study(text: &str) -> Study {
    Study::parse("network.toml", text, Path::new("")).expect("a study")
}

fn options() -> PlanOptions {
    PlanOptions::with_systems(["a"])
}

fn plan(text: &str) -> Plan {
    study(text)
        .plan(&options())
        .unwrap_or_else(|error| panic!("{error}"))
}

/// A study on this network.
fn on(network: &str) -> String {
    format!("name = \"n\"\nsystems = [\"a\"]\n{network}\n[[workload]]\nname = \"w\"\n{FLOW}")
}

fn networks(plan: &Plan) -> Vec<Option<&Network>> {
    let trials = plan.trials.iter();
    trials.map(|trial| trial.setup.network.as_deref()).collect()
}

#[test]
fn links_are_read_with_their_units() {
    let plan = plan(&on("[testbed.network]
broker = {}
publisher = { hosts = 2, rate = \"95Mbit/s\", queue = \"10ms\", delay = \"20ms\", jitter = \"5ms\", reordered-by-jitter = true }
subscriber = { hosts = 7, loss = \"1%\", loss-burst = 4.0, duplicated = \"0.5%\" }"));
    let [Some(network)] = networks(&plan)[..] else {
        panic!("one trial on a network");
    };
    assert_eq!(network.hosts().count(), 10);
    assert_eq!(network.broker.link, Default::default());
    let link = &network.hosts_of(HostRole::Publisher).link;
    assert_eq!(link.rate_bits_per_s, Some(95_000_000));
    assert_eq!(link.queue_ns, 10_000_000);
    assert_eq!((link.delay_ns, link.jitter_ns), (20_000_000, 5_000_000));
    assert_eq!(link.reordering, Some(Reordering::Jitter));
    let link = &network.hosts_of(HostRole::Subscriber).link;
    assert_eq!(link.duplicated, 0.005);
    let loss = Loss::Gilbert {
        share: 0.01,
        burst_packets: 4.0,
    };
    assert_eq!(link.loss, Some(loss));
}

#[test]
fn a_grid_varies_a_link_and_a_workload_may_have_a_network_of_its_own() {
    let text = format!(
        "name = \"n\"\nsystems = [\"a\"]\n[testbed.network]\npublisher = {{}}\nsubscriber = {{ rate = \"1Mbit/s\" }}\n\
         [grid]\n\"testbed.network.subscriber.rate\" = [\"10Mbit/s\", \"100Mbit/s\"]\n\
         [[workload]]\nname = \"as-the-study\"\n{FLOW}\
         [[workload]]\nname = \"its-own\"\ngrid = {{}}\ntestbed.network = {{ publisher = {{ hosts = 3 }} }}\n{FLOW}"
    );
    let plan = plan(&text);
    let mut rates: Vec<(String, Option<u64>, u32)> = (plan.trials.iter())
        .map(|trial| {
            let network = trial.setup.network.as_deref().expect("a network");
            let rate = network.subscriber.link.rate_bits_per_s;
            (trial.workload.name.clone(), rate, network.publisher.hosts)
        })
        .collect();
    rates.sort();
    let of = |name: &str, rate, hosts| (name.to_owned(), rate, hosts);
    let own = of("its-own", None, 3);
    assert_eq!(
        rates,
        [
            of("as-the-study", Some(10_000_000), 1),
            of("as-the-study", Some(100_000_000), 1),
            own
        ]
    );
    // Without a grid of its own the axis would name its cells, and vary nothing there.
    let said = match study(&text.replace("grid = {}\n", "")).plan(&options()) {
        Ok(_) => panic!("planned"),
        Err(error) => error.to_string(),
    };
    assert!(said.contains("which this axis does not reach"), "{said}");
}

#[test]
fn without_a_network_all_is_on_this_host() {
    assert_eq!(networks(&plan(&on(""))), [None]);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (link, expected) in [
        ("publisher = { rate = \"95\" }", "95Mbit/s"),
        (
            "publisher = { rate = \"1kbit/s\" }",
            "1000 bit/s is not within 64 kbit/s and 10 Gbit/s",
        ),
        ("publisher = { rates = \"95Mbit/s\" }", "rates"),
        ("publisher = { hosts = 0 }", "there is at least one"),
        (
            "publisher = { delay = \"1ms\", jitter = \"2ms\" }",
            "2 ms is more than the delay, 1 ms",
        ),
        ("publisher = { loss-burst = 3.0 }", "nothing is lost"),
        ("publisher = { loss = \"120%\" }", "is not a share"),
        (
            "publisher = { reordered = \"1%\" }",
            "without delay no packet overtakes another",
        ),
        ("publisher = { hosts = 250 }", "more than 250"),
        ("", "a network has two hosts at least"),
        ("router = {}", "router"),
    ] {
        let subscriber = if link.is_empty() {
            ""
        } else {
            "subscriber = {}"
        };
        let text = on(&format!("[testbed.network]\n{link}\n{subscriber}"));
        let said = match study(&text).plan(&options()) {
            Ok(_) => panic!("{link} is planned"),
            Err(error) => error.to_string(),
        };
        assert!(said.contains(expected), "{link}: {said}");
        assert!(said.contains("network.toml:"), "{link}: {said}");
    }
}

/// Hosts of a workload on this machine are in place of a network of the study, and a network's hosts have sizes too.
#[test]
fn a_study_has_several_beds() {
    let text = format!(
        "name = \"n\"\nsystems = [\"a\"]\n[testbed.network]\nbroker = {{ cores = 0.5 }}\npublisher = {{ memory = \"64MiB\" }}\n\
         subscriber = {{ hosts = 2 }}\n\
         [[workload]]\nname = \"links\"\n{FLOW}\
         [[workload]]\nname = \"free\"\ntestbed.network = {{ publisher = {{}}, subscriber = {{}} }}\n{FLOW}\
         [[workload]]\nname = \"sizes\"\ntestbed.hosts = {{ subscriber = {{ hosts = 3, cores = 0.2 }} }}\n{FLOW}\
         [[workload]]\nname = \"unequal\"\ntestbed.hosts = {{ subscriber = {{ hosts = 3, cores = [0.1, 0.4, 0.4] }} }}\n{FLOW}\
         [[workload]]\nname = \"here\"\ntestbed.hosts = {{}}\n{FLOW}"
    );
    let plan = plan(&text);
    let mut beds: Vec<_> = (plan.trials.iter())
        .map(|trial| {
            let sizes = trial.setup.hosts.as_deref().map(HostSizes::describe);
            let name = trial.workload.name.as_str();
            let on_network = trial.setup.network.is_some();
            (
                name,
                on_network,
                sizes.unwrap_or_default(),
                trial.setup.worker_hosts(),
            )
        })
        .collect();
    beds.sort();
    let words =
        |words: &[&str]| -> Vec<String> { words.iter().copied().map(str::to_owned).collect() };
    let free = [
        "1 broker host of no given size",
        "1 publisher host of no given size",
        "1 subscriber host of no given size",
    ];
    let sizes = [free[0], free[1], "3 subscriber hosts of 0.2 cores each"];
    let unequal = [
        free[0],
        free[1],
        "1 subscriber host of 0.1 cores",
        "2 subscriber hosts of 0.4 cores each",
    ];
    let links = [
        "1 broker host of 0.5 cores",
        "1 publisher host of 64 MiB of memory",
        "2 subscriber hosts of no given size",
    ];
    assert_eq!(
        beds,
        [
            ("free", true, Vec::new(), Some((1, 1))),
            ("here", false, words(&free), Some((1, 1))),
            ("links", true, words(&links), Some((1, 2))),
            ("sizes", false, words(&sizes), Some((1, 3))),
            ("unequal", false, words(&unequal), Some((1, 3))),
        ]
    );
}

#[test]
fn a_bed_that_contradicts_itself_is_refused_where_it_is_written() {
    let hosts = "[testbed.hosts]\n";
    for (bed, says) in [
        (
            "[testbed.hosts.publisher]\ncores = 0.05".to_owned(),
            "expected a number of processors from 0.1 on",
        ),
        (
            format!("{hosts}subscriber = {{ hosts = 3, cores = [0.1, 0.2] }}"),
            "2 numbers for 3 hosts",
        ),
        (
            format!("{hosts}subscriber = {{ hosts = 2, cores = [0.05, 0.2] }}"),
            "expected a number of processors from 0.1 on",
        ),
        (
            format!("{hosts}broker = {{ cores = \"all\" }}"),
            "a number of processors such as 0.5, or a list with one for each host",
        ),
        (
            format!("{hosts}broker = {{ hosts = 0 }}"),
            "there is at least one",
        ),
        (
            format!("{hosts}subscriber = {{ hosts = 251 }}"),
            "there are 253 hosts, more than 250",
        ),
        (
            format!("{hosts}[testbed.network]\npublisher = {{}}\nsubscriber = {{}}"),
            "these are hosts without links",
        ),
        (
            "[testbed]\nlimits = { cores = 0.5 }\nhosts = { broker = { cores = 0.5 } }".to_owned(),
            "an instance of a system is limited here, and its host has a size",
        ),
        (
            "[client]\nlimits = { cores = 0.5 }\n[testbed.network]\npublisher = { cores = 0.5 }\nsubscriber = {}"
                .to_owned(),
            "a worker process is limited here, and its host has a size",
        ),
    ] {
        let refused = study(&on(&bed)).plan(&options()).err();
        let refused = refused.unwrap_or_else(|| panic!("{bed}")).to_string();
        assert!(refused.contains(says), "{refused}");
        assert!(refused.contains("network.toml:"), "{refused}");
    }
}
