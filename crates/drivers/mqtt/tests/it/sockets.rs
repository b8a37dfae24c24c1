//! Where clients connect to and with which socket options, as the other end and the kernel see it.

use crate::common;

use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::BorrowedFd;
use std::time::Duration;

use common::{Rig, native, open};
use pubgauge_driver::{ClientSpec, Settings, Target};
use rustix::net::sockopt;

/// In which connections are made and CONNECT is on its way.
const MOMENT: Duration = Duration::from_millis(100);

fn client(name: &str, publishes: bool, subscribes: bool) -> ClientSpec {
    ClientSpec {
        publishes,
        subscribes,
        ..Rig::spec(name)
    }
}

/// The client identifier of the next CONNECT that a listener gets.
fn who(listener: &TcpListener) -> String {
    let (mut stream, _) = listener.accept().unwrap();
    let timeout = Some(Duration::from_secs(5));
    stream.set_read_timeout(timeout).unwrap();
    let mut packet = [0; 256];
    let n = stream.read(&mut packet).unwrap();
    // MQTT 3.1.1: fixed header 2, name and level 7, flags 1, keep-alive 2, then the identifier.
    let length = usize::from(packet[13]);
    assert_eq!(n, 14 + length);
    String::from_utf8(packet[14..14 + length].to_vec()).unwrap()
}

#[test]
fn publishers_and_subscribers_have_ports_of_their_own() {
    let listeners = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    let [first, second] = [0, 1].map(|n: usize| listeners[n].local_addr().unwrap().port());
    for endpoint in [
        format!("mqtt://127.0.0.1:{first},{second}"),
        format!("mqtt://127.0.0.1:{first},127.0.0.1:{second}"),
    ] {
        let mut rig = open(Target::single(endpoint), common::version("3.1.1"));
        for spec in [
            client("subscriber", false, true),
            client("publisher", true, false),
        ] {
            rig.fleet.connect(&spec).unwrap();
        }
        rig.poll_for(MOMENT);
        assert_eq!(who(&listeners[0]), "publisher");
        assert_eq!(who(&listeners[1]), "subscriber");
        // One connection is to one place.
        rig.fleet.connect(&client("both", true, true)).unwrap();
        rig.poll_for(MOMENT);
        assert_eq!(who(&listeners[0]), "both");
        let elsewhere = ClientSpec {
            endpoint: 1,
            ..client("x", true, false)
        };
        let error = rig.fleet.connect(&elsewhere).unwrap_err();
        assert!(error.to_string().contains("there are 1"), "{error}");
    }
}

/// Send buffer, receive buffer and TCP_NODELAY of this process's socket that is connected to
/// `peer`.
fn options_of_connection_to(peer: SocketAddr) -> (usize, usize, bool) {
    let numbers = std::fs::read_dir("/proc/self/fd").unwrap();
    for number in numbers.flatten() {
        let number: i32 = number.file_name().to_str().unwrap().parse().unwrap();
        // SAFETY: used at once; one that was closed meanwhile is answered with an error.
        let fd = unsafe { BorrowedFd::borrow_raw(number) };
        let connected = rustix::net::getpeername(fd)
            .ok()
            .flatten()
            .and_then(|address| SocketAddr::try_from(address).ok());
        if connected == Some(peer) {
            return (
                sockopt::socket_send_buffer_size(fd).unwrap(),
                sockopt::socket_recv_buffer_size(fd).unwrap(),
                sockopt::tcp_nodelay(fd).unwrap(),
            );
        }
    }
    panic!("no socket is connected to {peer}");
}

#[test]
fn socket_options_reach_the_socket() {
    let of = |settings: &Settings| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = listener.local_addr().unwrap();
        let mut rig = open(Target::single(format!("mqtt://{peer}")), settings.clone());
        rig.fleet.connect(&client("c", true, false)).unwrap();
        rig.poll_for(MOMENT);
        options_of_connection_to(peer)
    };
    let mut settings = Settings::default();
    let (usual_send, usual_receive, no_delay) = of(&settings);
    assert!(no_delay, "no waiting by Nagle's algorithm");
    native(&mut settings, "send-buffer-bytes", 20_000.into());
    native(&mut settings, "receive-buffer-bytes", 30_000.into());
    native(&mut settings, "no-delay", false.into());
    // Linux doubles what it is asked for, for its own book-keeping (socket(7)).
    assert_eq!(of(&settings), (40_000, 60_000, false));
    assert!(usual_send != 40_000 && usual_receive != 60_000);
}
