//! Emulated networks in studies.

use std::path::Path;

use pubgauge_network::{Loss, Network, Reordering, Role};
use pubgauge_study::{Known, Plan, PlanOptions, Study};

const FLOW: &str = "flow = [{ pattern = \"1-1\", payload = \"64B\", rate = \"1/s\" }]\n";

fn study(text: &str) -> Study {
    Study::parse("network.toml", text, Path::new("")).expect("a study")
}

fn options() -> PlanOptions {
    PlanOptions {
        known: Known {
            all: vec!["a".into()],
            found: vec!["a".into()],
            ..Known::default()
        },
        ..PlanOptions::default()
    }
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
    trials.map(|trial| trial.network.as_deref()).collect()
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
    let link = &network.of(Role::Publisher).link;
    assert_eq!(link.rate_bits_per_s, Some(95_000_000));
    assert_eq!(link.queue_ns, 10_000_000);
    assert_eq!((link.delay_ns, link.jitter_ns), (20_000_000, 5_000_000));
    assert_eq!(link.reordering, Some(Reordering::Jitter));
    let link = &network.of(Role::Subscriber).link;
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
         [[workload]]\nname = \"its-own\"\ntestbed.network = {{ publisher = {{ hosts = 3 }} }}\n{FLOW}"
    );
    let plan = plan(&text);
    let mut rates: Vec<(String, Option<u64>, u32)> = (plan.trials.iter())
        .map(|trial| {
            let network = trial.network.as_deref().expect("a network");
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
            own.clone(),
            own
        ]
    );
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
