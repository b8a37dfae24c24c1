//! The counters of an interface against datagrams that cross it, between two network namespaces of this test.
//! Needs root and `ip`.

use std::fs::File;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;

use pubgauge_testbed::{Crossed, InterfaceCounter};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

fn ip(line: &str) {
    let output = Command::new("ip").args(line.split(' ')).output();
    let output = output.expect("this test needs ip (apt install iproute2)");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "ip {line} (needs root): {}",
        said.trim()
    );
}

/// Two namespaces, joined by a pair of interfaces that nothing crosses by itself: no IPv6, and hardware addresses
/// that are known. Both are removed when this is dropped.
struct Pair {
    names: [String; 2],
}

impl Pair {
    const INTERFACE: &str = "cross0";

    fn make() -> Pair {
        let pid = std::process::id();
        let names = ["a", "b"].map(|side| format!("pgcount-{pid}-{side}"));
        let pair = Pair { names };
        let [a, b] = &pair.names;
        for name in [a, b] {
            ip(&format!("netns add {name}"));
            for which in ["all", "default"] {
                // A kernel without IPv6 has no such file.
                let path = format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6");
                within(name, move || std::fs::write(path, "1").ok());
            }
        }
        let interface = Pair::INTERFACE;
        ip(&format!(
            "-n {a} link add {interface} address 02:00:00:00:00:01 type veth peer name {interface} address \
             02:00:00:00:00:02 netns {b}"
        ));
        for (name, own, other) in [(a, 1, 2), (b, 2, 1)] {
            ip(&format!(
                "-n {name} addr add 198.18.0.{own}/30 dev {interface}"
            ));
            ip(&format!("-n {name} link set {interface} up"));
            ip(&format!(
                "-n {name} neigh replace 198.18.0.{other} lladdr 02:00:00:00:00:0{other} dev {interface} nud permanent"
            ));
        }
        pair
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

/// Does something from within a namespace.
fn within<T: Send + 'static>(name: &str, what: impl FnOnce() -> T + Send + 'static) -> T {
    let file = File::open(Path::new("/run/netns").join(name)).unwrap();
    let thread = std::thread::spawn(move || {
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        what()
    });
    thread.join().unwrap()
}

#[test]
fn every_datagram_is_counted_with_its_headers() {
    let pair = Pair::make();
    let [a, b] = &pair.names;
    let socket =
        |name: &str, own: &'static str| within(name, move || UdpSocket::bind(own).unwrap());
    let (here, there) = (socket(a, "198.18.0.1:7000"), socket(b, "198.18.0.2:7000"));
    let counters = [a, b].map(|name| InterfaceCounter::open(Pair::INTERFACE, Some(name)).unwrap());
    let read = || counters.each_ref().map(|counter| counter.read().unwrap());
    let mut received = vec![0; 2000];
    for (datagrams, payload) in [(100, 64), (1, 0), (250, 1400)] {
        let before = read();
        for _ in 0..datagrams {
            here.send_to(&vec![7; payload], "198.18.0.2:7000").unwrap();
            assert_eq!(there.recv(&mut received).unwrap(), payload);
        }
        // UDP, IPv4, Ethernet.
        let bytes = datagrams * (payload as u64 + 8 + 20 + 14);
        let all = Crossed {
            bytes,
            packets: datagrams,
        };
        let now = read();
        assert_eq!([now[0] - before[0], now[1] - before[1]], [all; 2]);
    }
    // Both ways together.
    let before = read();
    there.send_to(&[1; 10], "198.18.0.1:7000").unwrap();
    here.recv(&mut received).unwrap();
    here.send_to(&[1; 20], "198.18.0.2:7000").unwrap();
    there.recv(&mut received).unwrap();
    let both = Crossed {
        bytes: 10 + 20 + 2 * 42,
        packets: 2,
    };
    assert_eq!(read()[0] - before[0], both);

    // Loopback has no Ethernet header, and what is sent is what comes.
    ip(&format!("-n {a} link set lo up"));
    let lo = InterfaceCounter::open("lo", Some(a)).unwrap();
    let socket = socket(a, "127.0.0.1:7001");
    let before = lo.read().unwrap();
    for _ in 0..50 {
        socket.send_to(&[5; 100], "127.0.0.1:7001").unwrap();
        socket.recv(&mut received).unwrap();
    }
    let crossed = Crossed {
        bytes: 50 * (100 + 8 + 20),
        packets: 50,
    };
    assert_eq!(lo.read().unwrap() - before, crossed);

    let gone = InterfaceCounter::open("cross1", Some(a)).err().unwrap();
    assert!(
        gone.to_string().contains("`cross1`") && gone.to_string().contains(a.as_str()),
        "{gone}"
    );
}
