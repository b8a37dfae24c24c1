//! Networks of rate, loss, partitions and multicast, made and measured. Needs root, `ip`, `tc` and `nft`.

use crate::common;

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

use common::{alone, network, publisher, rate, subscriber};
use pubgauge_lab::{Lab, LabError};
use pubgauge_network::{Host, Link, LinkState, Loss, Network};

fn up(network: &Network) -> Lab {
    Lab::up(network).unwrap_or_else(|why| panic!("{why}"))
}

/// A socket on a host.
fn socket(lab: &Lab, host: Host, port: u16) -> UdpSocket {
    let own = lab.host(host).unwrap();
    let at = SocketAddrV4::new(own.address(), port);
    let socket = own.namespace().run(|| UdpSocket::bind(at)).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    socket
}

/// Takes what is there; how many datagrams.
fn drain(socket: &UdpSocket) -> u64 {
    socket.set_nonblocking(true).unwrap();
    let mut datagrams = 0;
    while socket.recv(&mut [0; 2000]).is_ok() {
        datagrams += 1;
    }
    datagrams
}

#[test]
fn a_link_of_95_mbit_carries_its_rate() {
    let _turn = alone();
    let bits = 95_000_000;
    let lab = up(&network((1, rate(bits)), (7, rate(bits))));
    assert!(!lab.shape_only());
    let subscribers: Vec<Host> = (1..=7).map(subscriber).collect();
    let span = Duration::from_secs(1);
    let ends = [publisher(1), subscriber(1)];
    let counters = ends.map(|host| lab.host(host).unwrap().counter().unwrap());
    let kinds = [
        "TCP",
        "UDP",
        "multicast",
        "TCP to 7",
        "UDP to 7",
        "multicast to 7",
    ];
    let mut fitting = [false; 6];
    let mut said = String::new();
    // A thread that lacks a processor for longer than a bucket lasts loses rate: each kind fits in one round of many.
    for _ in 0..12 {
        let begin = Instant::now();
        let before = counters
            .each_ref()
            .map(|counter| counter.read_ways().unwrap());
        let one = lab.baseline(publisher(1), &subscribers[..1], span).unwrap();
        let all = lab.baseline(publisher(1), &subscribers, span).unwrap();
        let now = counters
            .each_ref()
            .map(|counter| counter.read_ways().unwrap());
        // In any span no link carries more than its rate and what a bucket and a late reading hold.
        let most = bits as f64 / 8.0 * begin.elapsed().as_secs_f64() + 24_000.0 + 1514.0;
        for crossed in [(now[0] - before[0]).sent, (now[1] - before[1]).received] {
            assert!(crossed.bytes as f64 <= most, "{crossed:?} {most}");
        }
        let answered = all.round_trips.iter().map(|to| to.answered).min();
        assert!(answered >= Some(10), "{:?}", all.round_trips);
        let each = [
            &one.tcp,
            &one.udp,
            &one.multicast,
            &all.tcp,
            &all.udp,
            &all.multicast,
        ];
        let mut shares = each.map(|measured| measured.bits_per_s() / bits as f64);
        // Each of seven has its own copy of what the publisher sent once.
        shares[5] /= 7.0;
        for (fits, share) in fitting.iter_mut().zip(shares) {
            *fits |= (0.94..=0.99).contains(&share);
        }
        said += &format!("{shares:.4?} {:?}\n", one.round_trips[0]);
        if fitting == [true; 6] {
            println!("{said}");
            return;
        }
    }
    panic!("not within 0.94 and 0.99 of the rate: {kinds:?} {fitting:?}\n{said}");
}

#[test]
fn what_is_lost_is_what_the_counters_of_both_ends_differ_by() {
    let _turn = alone();
    let lossy = Link {
        loss: Some(Loss::Independent { share: 0.01 }),
        ..Link::default()
    };
    // On the receiver's link, and on the sender's.
    for network in [
        network((1, Link::default()), (1, lossy.clone())),
        network((1, lossy), (1, Link::default())),
    ] {
        let lab = up(&network);
        let hosts = [publisher(1), subscriber(1)];
        let [here, there] = hosts.map(|host| socket(&lab, host, 7000));
        let counters = hosts.map(|host| lab.host(host).unwrap().counter().unwrap());
        let read = || {
            counters
                .each_ref()
                .map(|counter| counter.read_ways().unwrap())
        };
        let before = read();
        let (sent, payload) = (20_000, 100);
        let mut received = 0;
        for number in 0..sent {
            here.send_to(&vec![1; payload], there.local_addr().unwrap())
                .unwrap();
            if number % 50 == 49 {
                received += drain(&there);
            }
        }
        std::thread::sleep(Duration::from_millis(200));
        received += drain(&there);
        let now = read();
        let [near, far] = [now[0] - before[0], now[1] - before[1]];
        let frame = payload as u64 + 8 + 20 + 14;
        assert_eq!((near.sent.packets, near.sent.bytes), (sent, sent * frame));
        let came = (far.received.packets, far.received.bytes);
        assert_eq!(came, (received, received * frame));
        assert_eq!((near.received.packets, far.sent.packets), (0, 0));
        // 200 are to be expected, with a standard deviation of 14.
        let lost = sent - received;
        assert!((130..=270).contains(&lost), "{lost}");
    }
}

#[test]
fn partitions_cut_one_way_both_ways_and_heal() {
    let _turn = alone();
    let lab = up(&network((1, Link::default()), (2, Link::default())));
    let hosts = [publisher(1), subscriber(1), subscriber(2)];
    let sockets = hosts.map(|host| socket(&lab, host, 7000));
    // Which of the others' datagrams each host hears.
    let heard = || {
        for socket in &sockets {
            drain(socket);
            socket.set_nonblocking(false).unwrap();
        }
        let mut heard = [[false; 3]; 3];
        for (from, sender) in sockets.iter().enumerate() {
            for receiver in &sockets {
                sender
                    .send_to(&[from as u8], receiver.local_addr().unwrap())
                    .unwrap();
            }
        }
        // Through the switch this takes microseconds.
        std::thread::sleep(Duration::from_millis(200));
        for (to, receiver) in sockets.iter().enumerate() {
            receiver.set_nonblocking(true).unwrap();
            let mut datagram = [0];
            while receiver.recv(&mut datagram).is_ok() {
                heard[to][usize::from(datagram[0])] = true;
            }
        }
        heard
    };
    for state in [
        LinkState::Up,
        LinkState::SendsNothing,
        LinkState::HearsNothing,
        LinkState::Cut,
        LinkState::Up,
    ] {
        lab.set(hosts[1], state).unwrap();
        assert_eq!(lab.state(hosts[1]), Some(state));
        let [sends, hears] = [state.sends(), state.hears()];
        // Each host hears itself, and the others are not concerned.
        let expected = [
            [true, sends, true],
            [hears, true, hears],
            [true, sends, true],
        ];
        assert_eq!(heard(), expected, "{state:?}");
    }
    lab.set_all(&hosts.map(|host| (host, LinkState::Cut)))
        .unwrap();
    assert_eq!(
        heard(),
        [
            [true, false, false],
            [false, true, false],
            [false, false, true]
        ]
    );
    let stranger = lab.set(subscriber(3), LinkState::Cut);
    assert!(matches!(stranger, Err(LabError::NoHost(host)) if host == subscriber(3)));
    lab.set_all(&hosts.map(|host| (host, LinkState::Up)))
        .unwrap();
    assert_eq!(heard(), [[true; 3]; 3]);
}

#[test]
fn a_link_may_be_cut_from_the_beginning() {
    let _turn = alone();
    let cut = Link {
        state: LinkState::Cut,
        ..Link::default()
    };
    let lab = up(&network((1, Link::default()), (1, cut)));
    let to = [subscriber(1)];
    let span = Duration::from_millis(300);
    let nothing = lab.baseline(publisher(1), &to, span).unwrap();
    for measured in [&nothing.tcp, &nothing.udp, &nothing.multicast] {
        assert_eq!(measured.received_bytes, [0]);
    }
    let trips = &nothing.round_trips[0];
    assert!(
        trips.answered == 0 && trips.lost > 0 && trips.p99_ns == 0,
        "{trips:?}"
    );
    lab.set(subscriber(1), LinkState::Up).unwrap();
    let all = lab.baseline(publisher(1), &to, span).unwrap();
    assert!(
        all.tcp.received_bytes[0] > 0 && all.round_trips[0].lost == 0,
        "{all:?}"
    );
}

#[test]
fn multicast_reaches_all_and_is_sent_once() {
    let _turn = alone();
    let lab = up(&network((1, Link::default()), (7, Link::default())));
    let group = Ipv4Addr::new(239, 255, 1, 2);
    let members: Vec<UdpSocket> = (1..=7)
        .map(|number| {
            let own = lab.host(subscriber(number)).unwrap();
            let join = || {
                let socket = UdpSocket::bind(SocketAddrV4::new(group, 7400))?;
                // By the route of multicast, as applications do that name no interface.
                socket.join_multicast_v4(&group, &Ipv4Addr::UNSPECIFIED)?;
                Ok(socket)
            };
            own.namespace().run(join).unwrap()
        })
        .collect();
    let counter = |host| lab.host(host).unwrap().counter().unwrap();
    let (sender, receiver) = (counter(publisher(1)), counter(subscriber(7)));
    let before = [sender.read_ways().unwrap(), receiver.read_ways().unwrap()];
    let publisher = socket(&lab, publisher(1), 0);
    let (sent, payload) = (100, 1000);
    let mut heard = [0; 7];
    let to: SocketAddr = (group, 7400).into();
    for _ in 0..sent {
        publisher.send_to(&vec![9; payload], to).unwrap();
        // A socket that nobody reads from holds less than all.
        for (member, heard) in members.iter().zip(&mut heard) {
            *heard += drain(member);
        }
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    while heard != [sent; 7] && Instant::now() < deadline {
        for (member, heard) in members.iter().zip(&mut heard) {
            *heard += drain(member);
        }
    }
    assert_eq!(heard, [sent; 7]);
    let now = [sender.read_ways().unwrap(), receiver.read_ways().unwrap()];
    let [near, far] = [now[0] - before[0], now[1] - before[1]];
    let bytes = sent * (payload as u64 + 8 + 20 + 14);
    assert_eq!((near.sent.packets, near.sent.bytes), (sent, bytes));
    // Besides what other members say about their membership.
    assert!(far.received.packets >= sent, "{far:?}");
}

#[test]
fn packets_cross_links_in_frames_of_ethernet() {
    let _turn = alone();
    let lab = up(&network((1, Link::default()), (1, Link::default())));
    let counter = lab.host(publisher(1)).unwrap().counter().unwrap();
    let before = counter.read_ways().unwrap();
    let span = Duration::from_millis(300);
    let measured = lab.baseline(publisher(1), &[subscriber(1)], span).unwrap();
    let sent = (counter.read_ways().unwrap() - before).sent;
    let received: u64 = measured.tcp.received_bytes[0];
    assert!(received > 1_000_000, "{measured:?}");
    assert!(
        sent.bytes > received && sent.bytes <= sent.packets * 1514,
        "{sent:?}"
    );
}

#[test]
fn two_networks_do_not_meet() {
    let _turn = alone();
    let one = network((1, Link::default()), (1, Link::default()));
    let labs = [up(&one), up(&one)];
    // They have the same addresses.
    let addresses = labs.each_ref().map(|lab| lab.hosts()[1].address());
    assert_eq!(addresses[0], addresses[1]);
    let receivers = labs.each_ref().map(|lab| socket(lab, subscriber(1), 7000));
    for (which, lab) in labs.iter().enumerate() {
        let sender = socket(lab, publisher(1), 0);
        sender
            .send_to(&[which as u8], (addresses[0], 7000))
            .unwrap();
    }
    std::thread::sleep(Duration::from_millis(200));
    for (which, receiver) in receivers.iter().enumerate() {
        let mut datagram = [7];
        receiver.recv(&mut datagram).unwrap();
        assert_eq!(usize::from(datagram[0]), which);
        assert_eq!(drain(receiver), 0);
    }
    // The end of one is nothing to the other.
    let [first, second] = labs;
    drop(first);
    let span = Duration::from_millis(100);
    let measured = second
        .baseline(publisher(1), &[subscriber(1)], span)
        .unwrap();
    assert_eq!(measured.round_trips[0].lost, 0);
}

/// The machine's interfaces, IPv4 routes, rules and named namespaces.
fn machine() -> Vec<String> {
    let said = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output();
        let output = output.expect("these tests need iproute2 and nftables");
        assert!(output.status.success(), "{program}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    vec![
        said("ip", &["-oneline", "link", "show"]),
        said("ip", &["-4", "-oneline", "addr", "show"]),
        said("ip", &["-4", "route", "show", "table", "all"]),
        said("ip", &["-4", "neigh", "show", "nud", "permanent"]),
        said("nft", &["-s", "list", "ruleset"]),
        said("bridge", &["fdb", "show"]),
    ]
}

#[test]
fn the_machine_has_what_it_had() {
    let _turn = alone();
    let before = machine();
    let lossy = Link {
        loss: Some(Loss::Independent { share: 0.01 }),
        ..rate(1_000_000)
    };
    let lab = up(&network((2, lossy.clone()), (2, lossy)));
    assert_eq!(machine(), before);
    lab.set(publisher(1), LinkState::Cut).unwrap();
    assert_eq!(machine(), before);
    let routes = &before[2];
    let subnet = lab.subnet().to_string();
    assert!(!routes.contains(&subnet), "{subnet} is among\n{routes}");
    drop(lab);
    assert_eq!(machine(), before);
}

#[test]
fn what_is_wrong_is_said_before_anything_is_made() {
    let _turn = alone();
    let none = network((1, rate(7)), (0, Link::default()));
    let why = Lab::up(&none).err().unwrap().to_string();
    assert!(why.contains("publisher.rate: 7 bit/s "), "{why}");
    assert!(why.contains("has two hosts at least"), "{why}");
}
