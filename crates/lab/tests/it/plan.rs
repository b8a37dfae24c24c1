//! The scripts that make networks, without making them.

use crate::common;

use std::collections::BTreeSet;
use std::path::PathBuf;

use common::{network, rate};
use proptest::prelude::*;
use pubgauge_lab::{
    Act, Backends, Bucket, NetworkNames, NetworkPlan, PlanError, StepNamespace, Subnet, possible,
    states_script,
};
use pubgauge_network::{HostRole, Hosts, Link, LinkState, Loss, Network, Reordering};

fn names(network: &Network) -> NetworkNames {
    NetworkNames {
        hosts: (0..network.hosts().count())
            .map(|i| format!("/proc/7/fd/{i}"))
            .collect(),
        sockets: PathBuf::from("/scratch"),
        subnet: Subnet {
            base: [10, 87, 0, 0].into(),
            prefix: 24,
        },
    }
}

fn plan(network: &Network, backends: &Backends) -> NetworkPlan {
    NetworkPlan::for_network(network, backends, &names(network)).unwrap()
}

fn without(names: &[&str]) -> Backends {
    let mut backends = Backends::all();
    let no = |why: &str| Err(why.into());
    for name in names {
        match *name {
            "ip" => backends.ip = no("there is no program `ip`"),
            "nft" => backends.nft = no("there is no program `nft`"),
            "tbf" => backends.tbf = no("there is no program `tc`"),
            "netem" => backends.netem = no("Specified qdisc kind is unknown."),
            "wirefilter" => backends.wirefilter = no("there is no program `vde_switch`"),
            other => panic!("{other}"),
        }
    }
    backends
}

/// All that a link can do.
fn everything() -> Link {
    Link {
        rate_bits_per_s: Some(95_000_000),
        delay_ns: 20_000_000,
        jitter_ns: 5_000_000,
        loss: Some(Loss::Gilbert {
            share: 0.02,
            burst_packets: 4.0,
        }),
        duplicated: 0.001,
        reordering: Some(Reordering::Jitter),
        ..Link::default()
    }
}

fn lossy() -> Network {
    let lossy = Link {
        loss: Some(Loss::Independent { share: 0.01 }),
        state: LinkState::SendsNothing,
        ..rate(95_000_000)
    };
    network((1, lossy), (1, everything()))
}

#[test]
fn scripts_without_netem() {
    let plan = plan(&lossy(), &without(&["netem"]));
    assert!(plan.shape_only);
    insta::assert_snapshot!(plan);
}

#[test]
fn scripts_with_netem() {
    let plan = plan(&lossy(), &without(&["wirefilter"]));
    assert!(!plan.shape_only);
    insta::assert_snapshot!(plan);
}

#[test]
fn words() {
    let mut eight = network((1, rate(95_000_000)), (7, rate(95_000_000)));
    let mut text = eight.describe();
    eight.broker = Hosts {
        hosts: 1,
        link: everything(),
    };
    eight.subscriber.link = Link {
        loss: Some(Loss::Independent { share: 0.000_05 }),
        state: LinkState::HearsNothing,
        ..Link::default()
    };
    text += &eight.describe();
    insta::assert_snapshot!(text);
}

#[test]
fn what_is_missing_is_named_with_what_adds_it() {
    let mut text = String::new();
    let mut fine = everything();
    fine.delay_ns += 1;
    fine.reordering = Some(Reordering::Share { share: 0.1 });
    for (link, missing) in [
        (
            everything(),
            vec!["ip", "nft", "tbf", "netem", "wirefilter"],
        ),
        (fine, vec!["netem"]),
    ] {
        let network = network((1, link), (1, Link::default()));
        let refused = possible(&network, &without(&missing)).unwrap_err();
        assert!(matches!(refused, PlanError::Refused(_)));
        text += &format!("{refused}\n\n");
        assert_eq!(possible(&network, &Backends::all()), Ok(false));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn buckets() {
    let of = |rate, queue_ns| Bucket::for_rate(rate, queue_ns);
    // 2 ms and 50 ms of 95 Mbit/s.
    assert_eq!(
        of(95_000_000, 50_000_000),
        Bucket {
            rate_bits_per_s: 95_000_000,
            burst_bytes: 23_750,
            peak_bits_per_s: 104_500_000,
            peak_bytes: 3028,
            limit_bytes: 593_750
        }
    );
    // Two frames, and one.
    let slow = of(64_000, 1_000_000);
    assert_eq!((slow.burst_bytes, slow.limit_bytes), (3028, 1514));
}

#[test]
fn files_of_networks_are_read_and_slips_found() {
    let text = "[publisher]\nhosts = 1\n[subscriber]\nhosts = 7\n[subscriber.link]\nrate_bits_per_s = 95000000\n\
                loss = { kind = \"gilbert\", share = 0.02, burst_packets = 4.0 }\nstate = \"cut\"\n";
    let read: Network = toml::from_str(text).unwrap();
    assert_eq!(read.hosts().count(), 8);
    assert_eq!(read.subscriber.link.rate_bits_per_s, Some(95_000_000));
    assert_eq!(read.subscriber.link.state, LinkState::Cut);
    let again: Network = toml::from_str(&toml::to_string(&read).unwrap()).unwrap();
    assert_eq!(again, read);
    for slip in ["rate = 9", "loss = { kind = \"gilbert\", share = 0.1 }"] {
        let text = format!("[publisher]\nhosts = 1\n[publisher.link]\n{slip}\n");
        assert!(toml::from_str::<Network>(&text).is_err(), "{slip}");
    }
}

fn links() -> impl Strategy<Value = Link> {
    let share = 0.001..0.5f64;
    let loss = prop_oneof![
        Just(None),
        share
            .clone()
            .prop_map(|share| Some(Loss::Independent { share })),
        (share.clone(), 1.0..9.0f64).prop_map(|(share, burst_packets)| Some(Loss::Gilbert {
            share,
            burst_packets
        })),
    ];
    let states = prop_oneof![
        Just(LinkState::Up),
        Just(LinkState::Cut),
        Just(LinkState::SendsNothing),
        Just(LinkState::HearsNothing)
    ];
    let rates = prop::option::of(64_000u64..=10_000_000_000);
    let duplicated = prop_oneof![Just(0.0), share];
    (rates, 0u64..100, 0u64..100, loss, duplicated, states).prop_map(
        |(rate, delay, jitter, loss, duplicated, state)| Link {
            rate_bits_per_s: rate,
            delay_ns: delay * 1_000_000,
            jitter_ns: jitter.min(delay) * 1_000_000,
            loss,
            duplicated,
            state,
            ..Link::default()
        },
    )
}

fn networks() -> impl Strategy<Value = Network> {
    let hosts = || (1u32..6, links()).prop_map(|(hosts, link)| Hosts { hosts, link });
    let some = prop_oneof![Just(Hosts::default()), hosts()];
    (some, hosts(), hosts()).prop_map(|(broker, publisher, subscriber)| Network {
        broker,
        publisher,
        subscriber,
    })
}

/// The lines that a program is given in a place.
fn lines(plan: &NetworkPlan, at: StepNamespace, program: &str) -> Vec<String> {
    let steps = plan.steps.iter().filter(|step| step.place == at);
    let inputs = steps.filter_map(|step| match &step.act {
        Act::Run { argv, input } if argv[0] == program => Some(input.as_str()),
        _ => None,
    });
    inputs.flat_map(str::lines).map(str::to_owned).collect()
}

#[test]
fn jitter_lets_packets_overtake_only_where_it_is_asked_for() {
    let in_order = |reordering| {
        let link = Link {
            reordering,
            ..everything()
        };
        let network = network((1, Link::default()), (1, link));
        let plan = plan(&network, &Backends::all());
        let host = StepNamespace::Host(common::subscriber(1));
        lines(&plan, host, "tc").concat().contains(" rate 100gbit")
    };
    assert!(in_order(None) && in_order(Some(Reordering::Share { share: 0.01 })));
    assert!(!in_order(Some(Reordering::Jitter)));
}

fn starting(lines: &[String], with: &str) -> usize {
    lines.iter().filter(|line| line.starts_with(with)).count()
}

proptest! {
    #[test]
    fn every_host_is_joined_once_and_knows_all_others(network in networks(), netem: bool) {
        let backends = if netem { Backends::all() } else { without(&["netem"]) };
        let plan = plan(&network, &backends);
        let hosts: Vec<_> = network.hosts().collect();
        let switch = lines(&plan, StepNamespace::Switch, "ip");
        let mut addresses = BTreeSet::new();
        let mut wired = 0;
        for host in &hosts {
            let own = lines(&plan, StepNamespace::Host(*host), "ip");
            prop_assert_eq!(starting(&own, "neigh replace"), hosts.len() - 1);
            let address = own.iter().find(|line| line.starts_with("addr add 10.87.0."));
            prop_assert!(addresses.insert(address.unwrap().clone()));
            prop_assert_eq!(starting(&switch, &format!("link set {host} ")), 1);
            let by_wire = !netem && network.link(*host).delays();
            wired += usize::from(by_wire);
            let pair = starting(&switch, &format!("link add {host} type veth"));
            prop_assert_eq!(pair, usize::from(!by_wire));
        }
        let starts = plan.steps.iter().filter(|step| matches!(step.act, Act::Start { .. })).count();
        prop_assert_eq!(starts, 3 * wired);
        prop_assert_eq!(plan.shape_only, wired > 0);
        prop_assert_eq!(possible(&network, &backends), Ok(wired > 0));
        prop_assert_eq!(lines(&plan, StepNamespace::Switch, "bridge").len(), hosts.len());
    }

    #[test]
    fn both_ends_of_a_link_send_by_the_same_queue(network in networks(), netem: bool) {
        let backends = if netem { Backends::all() } else { without(&["netem"]) };
        let plan = plan(&network, &backends);
        let ports = lines(&plan, StepNamespace::Switch, "tc");
        for host in network.hosts() {
            let link = network.link(host);
            let near = lines(&plan, StepNamespace::Host(host), "tc");
            let far: Vec<String> = ports
                .iter()
                .filter(|line| line.contains(&format!("dev {host} ")))
                .map(|line| line.replace(&host.to_string(), "eth0"))
                .collect();
            prop_assert_eq!(&near, &far);
            let of = |kind: &str| near.iter().filter(|line| line.contains(kind)).count();
            prop_assert_eq!(of(" tbf "), usize::from(link.rate_bits_per_s.is_some()));
            prop_assert_eq!(of(" netem "), usize::from(netem && link.delays()));
        }
    }

    #[test]
    fn loss_and_partitions_are_on_the_ports_they_were_asked_for(network in networks()) {
        let plan = plan(&network, &Backends::all());
        let [opened, closed] = ["{", "}"].map(|brace| plan.rules.matches(brace).count());
        prop_assert_eq!(opened, closed);
        let mut states = Vec::new();
        for host in network.hosts() {
            let link = network.link(host);
            let lost = matches!(link.loss, Some(Loss::Independent { .. }));
            for side in ["iifname", "oifname"] {
                let rules = plan.rules.matches(&format!("{side} \"{host}\" numgen")).count();
                prop_assert_eq!(rules, usize::from(lost));
            }
            states.push((host, link.state));
        }
        let script = states_script(&states);
        prop_assert!(plan.rules.ends_with(&script));
        for (set, cut) in [("silent", LinkState::SendsNothing), ("deaf", LinkState::HearsNothing)] {
            let line = script.lines().find(|line| line.starts_with(&format!("add element bridge lab {set} ")));
            for (host, state) in &states {
                let named = line.is_some_and(|line| line.contains(&format!("\"{host}\"")));
                prop_assert_eq!(named, [cut, LinkState::Cut].contains(state));
            }
        }
    }

    #[test]
    fn no_line_of_words_is_longer_than_80_columns(network in networks()) {
        let text = network.describe();
        for line in text.lines() {
            prop_assert!(line.len() <= 80, "{line}");
        }
        for role in HostRole::ALL {
            let said = text.contains(&format!(" {} host", role.name()));
            prop_assert_eq!(said, network.hosts_of(role).hosts > 0);
        }
    }
}
