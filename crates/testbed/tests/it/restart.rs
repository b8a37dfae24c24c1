//! A system that is killed or stopped, and started again in its folder on its ports.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use pubgauge_testbed::{Catalog, Running, Stopped, SystemFile, Testbed};
use pubgauge_testing::{alive, port_of};

fn start(system: &SystemFile, variant: Option<&str>, scratch: &Path) -> Running {
    let testbed = Testbed::new().unwrap();
    testbed.start(system, variant, scratch).unwrap()
}

fn is_empty(folder: &Path) -> bool {
    folder.read_dir().unwrap().next().is_none()
}

/// Whether a program that insists on a port of its own could have this one.
fn can_bind(port: u16) -> bool {
    use rustix::net::{AddressFamily, SocketType, bind, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddr::from(([127, 0, 0, 1], port))).is_ok()
}

/// A system with a daemon of its own, which counts its starts and writes a log of its own.
const COUNTING: &str = r#"
name = "counting"
driver = "mqtt"
endpoints = ["mqtt://127.0.0.1:{port}"]
[find]
executables = ["/bin/sh"]
[run]
command = ["{exe}", "-c", '''
echo start >> {dir}/starts
(setsid sh -c 'echo $$ > {dir}/daemon; while :; do sleep 1; done' &)
while [ ! -s {dir}/daemon ]; do sleep 0.02; done
sleep 0.2
echo "life $(wc -l < {dir}/starts)"
echo "ready as ever" >> {dir}/own.log
exec sleep 100
''']
ports = ["port"]
[ready]
log-line = "ready as ever"
log-file = "{dir}/own.log"
time-out-s = 20
[[hooks]]
when = "after-ready"
command = ["/bin/sh", "-c", "echo each >> {dir}/hooks"]
[[hooks]]
when = "after-ready"
command = ["/bin/sh", "-c", "echo first >> {dir}/hooks"]
first-start-only = true
[[hooks]]
when = "before-stop"
command = ["/bin/sh", "-c", "echo asked >> {dir}/hooks"]
"#;

#[test]
fn a_killed_system_comes_back_in_its_folder_on_its_ports() {
    let scratch = tempfile::tempdir().unwrap();
    let system = SystemFile::parse(COUNTING, "counting.toml").unwrap();
    let mut running = start(&system, None, scratch.path());
    let folder = running.target.scratch.clone();
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let daemon: i32 = read("daemon").trim().parse().unwrap();
    let (port, pids) = (port_of(&running), running.pids());
    assert!(pids.contains(&daemon));

    assert_eq!(running.kill(), Stopped::Killed);
    assert!(pids.iter().all(|pid| !alive(*pid)));
    assert!(running.exit_reason().unwrap().contains("SIGKILL"));
    assert_eq!(read("starts"), "start\n");
    // Connections are refused, but the port is not given to anybody.
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    assert!(!can_bind(port));
    assert_eq!(running.kill(), Stopped::Killed);

    let took = running.restart().unwrap();
    assert!(can_bind(port), "nothing listens in this script");
    assert!(took >= Duration::from_millis(200), "the old log counted");
    assert_eq!(running.exit_reason(), None);
    assert_eq!(port_of(&running), port);
    assert_eq!(running.target.scratch, folder);
    assert_eq!(read("starts").lines().count(), 2);
    assert_eq!(running.output()[0], "life 2\n");
    assert_eq!(read("hooks"), "each\nfirst\neach\n");

    // Once more without killing it first: it is stopped in order.
    running.restart().unwrap();
    assert_eq!(read("starts").lines().count(), 3);
    assert_eq!(read("hooks"), "each\nfirst\neach\nasked\neach\n");
    let pids = running.pids();
    drop(running);
    assert!(pids.iter().all(|pid| !alive(*pid)));
    assert!(is_empty(scratch.path()));
}

#[test]
fn a_system_that_is_down_leaves_nothing_either() {
    let scratch = tempfile::tempdir().unwrap();
    let system = SystemFile::parse(COUNTING, "counting.toml").unwrap();
    for way in [Running::kill, Running::halt] {
        let mut running = start(&system, None, scratch.path());
        way(&mut running);
        assert!(!is_empty(scratch.path()));
        drop(running);
        assert!(is_empty(scratch.path()));
    }
}

/// Waits until all processes are stopped, or none is.
fn all_are(pids: &[i32], stopped: bool) {
    let is_stopped = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(") ").unwrap().1.starts_with('T')
    };
    let end = std::time::Instant::now() + Duration::from_secs(60);
    while pids.iter().any(|pid| is_stopped(pid) != stopped) {
        assert!(std::time::Instant::now() < end, "stopped: not {stopped}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_paused_system_stands_still_goes_on_and_ends() {
    let scratch = tempfile::tempdir().unwrap();
    let system = SystemFile::parse(COUNTING, "counting.toml").unwrap();
    let running = start(&system, None, scratch.path());
    let folder = running.target.scratch.clone();
    let daemon = std::fs::read_to_string(folder.join("daemon")).unwrap();
    let group = [running.pid().unwrap(), daemon.trim().parse().unwrap()];
    running.pause(true);
    all_are(&group, true);
    running.pause(false);
    all_are(&group, false);
    // A system that is never let go on ends all the same.
    running.pause(true);
    all_are(&group, true);
    let pids = running.pids();
    drop(running);
    assert!(pids.iter().all(|pid| !alive(*pid)));
    assert!(is_empty(scratch.path()));
}

#[test]
fn a_system_that_does_not_come_back_says_why() {
    let scratch = tempfile::tempdir().unwrap();
    let text = COUNTING.replace(
        "sleep 0.2",
        "[ $(wc -l < {dir}/starts) = 1 ] || { echo no more >&2; exit 3; }",
    );
    let system = SystemFile::parse(&text, "counting.toml").unwrap();
    let mut running = start(&system, None, scratch.path());
    running.kill();
    let error = running.restart().unwrap_err().to_string();
    assert!(error.contains("ended with exit code 3"), "{error}");
    assert!(error.contains("no more"), "{error}");
    drop(running);
    assert!(is_empty(scratch.path()));
}

/// A small MQTT 3.1.1 client.
struct Client(TcpStream);

impl Client {
    /// Connects with a durable session of this one-letter name; tells whether there was one.
    fn connect(port: u16, name: u8) -> (Client, bool) {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let timeout = Some(Duration::from_secs(5));
        stream.set_read_timeout(timeout).unwrap();
        stream
            .write_all(b"\x10\x0d\x00\x04MQTT\x04\x00\x00\x3c\x00\x01")
            .unwrap();
        stream.write_all(&[name]).unwrap();
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!((answer[0], answer[3]), (0x20, 0));
        (Client(stream), answer[2] == 1)
    }

    fn send(&mut self, packet: &[u8], answer: u8) {
        self.0.write_all(packet).unwrap();
        assert_eq!(self.packet()[0], answer);
    }

    fn packet(&mut self) -> Vec<u8> {
        let mut packet = vec![0; 2];
        self.0.read_exact(&mut packet).unwrap();
        packet.resize(2 + usize::from(packet[1]), 0);
        self.0.read_exact(&mut packet[2..]).unwrap();
        packet
    }
}

const SUBSCRIBE: &[u8] = b"\x82\x06\x00\x01\x00\x01t\x01";
const PUBLISH: &[u8] = b"\x32\x0a\x00\x01t\x00\x07hello";

/// Whether a message for an absent durable subscriber is delivered after `down` and a restart.
fn queued_message_survives(variant: &str, down: fn(&mut Running) -> Stopped) -> bool {
    let scratch = tempfile::tempdir().unwrap();
    let mosquitto = Catalog::load(&[]).unwrap().get("mosquitto").unwrap();
    let mut running = start(&mosquitto, Some(variant), scratch.path());
    let port = port_of(&running);
    let (mut subscriber, present) = Client::connect(port, b's');
    assert!(!present);
    subscriber.send(SUBSCRIBE, 0x90);
    subscriber.0.write_all(b"\xe0\x00").unwrap();
    drop(subscriber);
    let (mut publisher, _) = Client::connect(port, b'p');
    publisher.send(PUBLISH, 0x40);
    down(&mut running);
    running.restart().unwrap();
    let (mut subscriber, present) = Client::connect(port, b's');
    if !present {
        return false;
    }
    let packet = subscriber.packet();
    assert!(packet.ends_with(b"hello"), "{packet:?}");
    true
}

#[test]
fn the_persistent_mosquitto_survives_a_stop_and_the_one_in_memory_does_not() {
    assert!(queued_message_survives("persistent", Running::halt));
    assert!(!queued_message_survives("memory", Running::halt));
    // It saves once a minute: what came since is lost with a crash.
    assert!(!queued_message_survives("persistent", Running::kill));
}
