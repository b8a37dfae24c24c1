//! Links by `wirefilter`: delay, jitter, loss in bursts, duplicates, reordering. Needs root, `ip`, `nft`, and vde2
//! where the kernel has no netem.

use crate::common;

use std::net::{SocketAddrV4, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{alone, network, publisher, rate, subscriber};
use pubgauge_lab::{Act, Backends, Lab, NetworkNames, NetworkPlan, StepNamespace, Subnet};
use pubgauge_network::{Link, Loss, Reordering};
use pubgauge_testbed::Namespace;

const MS: u64 = 1_000_000;

/// A network of two whose subscriber has this link.
fn up(link: Link) -> Lab {
    Lab::up(&network((1, Link::default()), (1, link))).unwrap_or_else(|why| panic!("{why}"))
}

/// Sends numbered datagrams, one in each pause; the numbers as they came.
fn came(lab: &Lab, sent: u32, pause: Duration) -> Vec<u32> {
    let [here, there] = [publisher(1), subscriber(1)].map(|host| {
        let own = lab.host(host).unwrap();
        let at = SocketAddrV4::new(own.address(), 7000);
        own.namespace().run(|| UdpSocket::bind(at)).unwrap()
    });
    there
        .set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    let to = there.local_addr().unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..sent {
                here.send_to(&number.to_le_bytes(), to).unwrap();
                std::thread::sleep(pause);
            }
            over.store(true, Ordering::Release);
        });
        let mut numbers = Vec::new();
        let mut datagram = [0; 4];
        // Until nothing has come for half a second after the last was sent.
        loop {
            let last = over.load(Ordering::Acquire);
            match there.recv(&mut datagram) {
                Ok(_) => numbers.push(u32::from_le_bytes(datagram)),
                Err(_) if last => return numbers,
                Err(_) => {}
            }
        }
    })
}

fn delayed(delay_ms: u64) -> Link {
    Link {
        delay_ns: delay_ms * MS,
        ..Link::default()
    }
}

/// Median round trip of a network of two, in nanoseconds.
fn round_trip(lab: &Lab) -> u64 {
    let span = Duration::from_millis(500);
    let measured = lab
        .round_trips(publisher(1), &[subscriber(1)], span)
        .unwrap();
    let trips = &measured[0];
    assert!(trips.answered >= 3, "{trips:?}");
    println!("{trips:?}");
    trips.p50_ns
}

#[test]
fn twenty_milliseconds_each_way_are_forty_there_and_back() {
    let _turn = alone();
    let (plain, wired) = (up(Link::default()), up(delayed(20)));
    let netem = Backends::look().unwrap().netem.is_ok();
    assert_eq!((plain.shape_only(), wired.shape_only()), (false, !netem));
    let mut said = Vec::new();
    // Who lacks a processor answers late; nothing comes early.
    for _ in 0..20 {
        let (empty, delayed) = (round_trip(&plain), round_trip(&wired));
        assert!(delayed as f64 > 40e6 * 0.98, "{delayed}");
        if delayed as f64 <= 40e6 * 1.02 + empty as f64 {
            return;
        }
        said.push((empty, delayed));
    }
    panic!("more than 40 ms, 2 % and the empty link's: {said:?}");
}

#[test]
fn loss_in_bursts_has_its_share_and_its_length() {
    let _turn = alone();
    let loss = Loss::Gilbert {
        share: 0.1,
        burst_packets: 4.0,
    };
    let lab = up(Link {
        loss: Some(loss),
        ..Link::default()
    });
    let sent = 6000;
    let numbers = came(&lab, sent, Duration::from_micros(300));
    let gaps: Vec<u32> = numbers
        .windows(2)
        .filter_map(|pair| pair[1].checked_sub(pair[0] + 1))
        .filter(|lost| *lost > 0)
        .collect();
    let lost: u32 = gaps.iter().sum();
    // Standard deviations: 0.01 of the share, 0.3 of the length. Single losses would be 1.1 long.
    let share = f64::from(lost) / f64::from(sent);
    let length = f64::from(lost) / gaps.len() as f64;
    println!("{share} {length}");
    assert!((0.05..=0.15).contains(&share), "{share}");
    assert!((2.6..=5.4).contains(&length), "{length}");
}

#[test]
fn packets_come_twice() {
    let _turn = alone();
    let lab = up(Link {
        duplicated: 0.05,
        ..Link::default()
    });
    let sent = 4000;
    let mut numbers = came(&lab, sent, Duration::from_micros(300));
    let all = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), sent as usize);
    // 200 are to be expected, and 10 of those three times; the standard deviation is 15.
    let twice = all - numbers.len();
    assert!((130..=290).contains(&twice), "{twice}");
}

#[test]
fn jitter_reorders_only_where_it_is_asked_for() {
    let _turn = alone();
    let jitter = Link {
        jitter_ns: 10 * MS,
        ..delayed(10)
    };
    let overtaken = |link: Link| {
        let numbers = came(&up(link), 500, Duration::from_millis(1));
        assert_eq!(numbers.len(), 500);
        numbers.windows(2).filter(|pair| pair[1] < pair[0]).count()
    };
    assert_eq!(overtaken(jitter.clone()), 0);
    let reordering = Link {
        reordering: Some(Reordering::Jitter),
        ..jitter
    };
    let overtakings = overtaken(reordering);
    assert!(overtakings > 50, "{overtakings}");
}

#[test]
fn a_delayed_link_has_its_rate() {
    let _turn = alone();
    let bits = 10_000_000;
    let link = Link {
        delay_ns: 5 * MS,
        ..rate(bits)
    };
    let lab = up(link);
    let mut said = Vec::new();
    for _ in 0..6 {
        let span = Duration::from_secs(1);
        let measured = lab.baseline(publisher(1), &[subscriber(1)], span).unwrap();
        let share = measured.tcp.bits_per_s() / bits as f64;
        assert!(share <= 0.99, "{share}");
        if share >= 0.9 {
            return;
        }
        said.push(share);
    }
    panic!("less than 0.9 of the rate: {said:?}");
}

/// `tc` reads what netem is told, on kernels without netem too, and where there is netem it is taken.
#[test]
fn tc_understands_what_netem_is_told() {
    let _turn = alone();
    let place = Namespace::create().unwrap();
    let there = Backends::look().unwrap().netem.is_ok();
    let full = Link {
        jitter_ns: 5 * MS,
        duplicated: 0.01,
        loss: Some(Loss::Gilbert {
            share: 0.02,
            burst_packets: 4.0,
        }),
        ..rate(95_000_000)
    };
    let kinds = [
        None,
        Some(Reordering::Jitter),
        Some(Reordering::Share { share: 0.25 }),
    ];
    for reordering in kinds {
        let link = Link {
            delay_ns: 20 * MS + 1,
            reordering,
            ..full.clone()
        };
        for line in lines_of_tc(link) {
            let line = line.replace("eth0", "lo");
            let words: Vec<&str> = line.split(' ').collect();
            let run = || Command::new("tc").args(&words).output();
            let output = place.run(run).unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            // The kernel's answer, to something that tc could read.
            let unknown = said.contains("qdisc kind is unknown") || said.contains("Failed to find");
            assert!(
                output.status.success() || !there && unknown,
                "{line}: {said}"
            );
        }
        let clear = || {
            Command::new("tc")
                .args(["qdisc", "del", "dev", "lo", "root"])
                .output()
        };
        place.run(clear).unwrap();
    }
}

/// Settings of a subscriber's interface where there is netem.
fn lines_of_tc(link: Link) -> Vec<String> {
    let network = network((1, Link::default()), (1, link));
    let names = NetworkNames {
        hosts: vec!["/proc/1/ns/net".into(); 2],
        sockets: "/nowhere".into(),
        subnet: Subnet {
            base: [10, 0, 0, 0].into(),
            prefix: 24,
        },
    };
    let plan = NetworkPlan::for_network(&network, &Backends::all(), &names).unwrap();
    let lines: Vec<String> = plan
        .steps
        .iter()
        .filter(|step| step.place == StepNamespace::Host(subscriber(1)))
        .filter_map(|step| match &step.act {
            Act::Run { argv, input } if argv[0] == "tc" => Some(input.lines()),
            _ => None,
        })
        .flatten()
        .map(str::to_owned)
        .collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    lines
}

/// The time before the first packet has come is not counted.
#[test]
fn a_long_link_has_its_rate() {
    let _turn = alone();
    let bits = 10_000_000;
    let lab = up(Link {
        delay_ns: 300 * MS,
        ..rate(bits)
    });
    let mut said = Vec::new();
    for _ in 0..4 {
        let span = Duration::from_secs(1);
        let measured = lab.baseline(publisher(1), &[subscriber(1)], span).unwrap();
        let [tcp, udp] = [&measured.tcp, &measured.udp].map(|of| of.bits_per_s() / bits as f64);
        // TCP may have lost packets at the end of its slow start.
        if tcp >= 0.5 && udp >= 0.85 {
            return;
        }
        said.push((tcp, udp));
    }
    panic!("less than the rate: {said:?}");
}
