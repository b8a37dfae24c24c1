//! A fleet with a note-book, and private servers that vanish on every path.
#![allow(dead_code)] // Each test file uses its own part.

pub mod peer;
pub mod raw;
pub mod systems;

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pubgauge_driver::*;
use pubgauge_driver_mqtt::MqttDriver;

pub const SECOND: u64 = 1_000_000_000;

/// A delivered message.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub client: u32,
    pub topic: String,
    pub payload: Vec<u8>,
    pub retained: bool,
    pub redelivered: bool,
}

/// All that a fleet reported.
#[derive(Default)]
pub struct Seen {
    pub arrivals: usize,
    pub messages: Vec<Message>,
    /// Keep only the count of messages.
    pub count_only: bool,
    pub delivered: usize,
    pub acknowledged: Vec<(u32, u64, Acknowledgement)>,
    pub connected: Vec<(u32, bool)>,
    pub failed: Vec<(u32, String)>,
    pub subscribed: Vec<u32>,
    pub refused: Vec<(u32, String)>,
    pub writable: Vec<u32>,
    pub closed: Vec<u32>,
}

impl Events for Seen {
    fn arrived(&mut self) {
        self.arrivals += 1;
    }
    fn delivered(&mut self, client: ClientId, d: Delivery<'_>) {
        assert!(self.arrivals > 0, "arrived() comes before the messages");
        self.delivered += 1;
        if !self.count_only {
            self.messages.push(Message {
                client: client.0,
                topic: d.topic.unwrap_or_default().to_owned(),
                payload: d.payload.to_vec(),
                retained: d.retained,
                redelivered: d.redelivered,
            });
        }
    }
    fn acknowledged(&mut self, client: ClientId, tag: u64, answer: Acknowledgement) {
        self.acknowledged.push((client.0, tag, answer));
    }
    fn changed(&mut self, client: ClientId, change: Change) {
        match change {
            Change::Connected {
                session_present, ..
            } => self.connected.push((client.0, session_present)),
            Change::Subscribed => self.subscribed.push(client.0),
            Change::SubscriptionRefused(why) => self.refused.push((client.0, why)),
            Change::Writable => self.writable.push(client.0),
            Change::Failed(why) => self.failed.push((client.0, why)),
            Change::Closed => self.closed.push(client.0),
        }
    }
}

/// A fleet and what it reported.
pub struct Bench {
    pub fleet: Box<dyn Fleet>,
    pub seen: Seen,
}

pub fn config(target: Target, settings: Settings) -> FleetConfig {
    FleetConfig {
        target,
        settings,
        clock: Clock::Monotonic,
        max_payload: 4 << 20,
        clients: 4,
        worker: 0,
    }
}

pub fn target(port: u16) -> Target {
    Target {
        endpoints: vec![format!("mqtt://127.0.0.1:{port}")],
        ..Target::default()
    }
}

impl Bench {
    pub fn open(target: Target, settings: Settings) -> Bench {
        Bench {
            fleet: MqttDriver.open(config(target, settings)).unwrap(),
            seen: Seen::default(),
        }
    }

    pub fn on(port: u16, settings: Settings) -> Bench {
        Bench::open(target(port), settings)
    }

    pub fn poll_for(&mut self, time: Duration) {
        let until = clock::monotonic_now() + time.as_nanos() as u64;
        while clock::monotonic_now() < until {
            self.fleet.poll(until, &mut self.seen).unwrap();
        }
    }

    /// Polls until the condition holds; panics after 20 s, saying what was waited for.
    #[track_caller]
    pub fn until(&mut self, what: &str, mut holds: impl FnMut(&Seen) -> bool) {
        let end = clock::monotonic_now() + 20 * SECOND;
        while !holds(&self.seen) {
            let now = clock::monotonic_now();
            assert!(
                now < end,
                "waited in vain for: {what}; connected {:?}, failed {:?}, refused {:?}, {} delivered, {} acknowledged",
                self.seen.connected,
                self.seen.failed,
                self.seen.refused,
                self.seen.delivered,
                self.seen.acknowledged.len()
            );
            self.fleet.poll(now + 50_000_000, &mut self.seen).unwrap();
        }
    }

    pub fn spec(name: &str) -> ClientSpec {
        ClientSpec {
            name: name.to_owned(),
            publishes: true,
            subscribes: true,
            ..ClientSpec::default()
        }
    }

    /// Connects a client and waits until it is.
    #[track_caller]
    pub fn client(&mut self, spec: &ClientSpec) -> ClientId {
        let before = self.seen.connected.len();
        let id = self.fleet.connect(spec).unwrap();
        self.until("connected", |s| s.connected.len() > before);
        id
    }

    #[track_caller]
    pub fn named(&mut self, name: &str) -> ClientId {
        self.client(&Bench::spec(name))
    }

    #[track_caller]
    pub fn subscribe(&mut self, client: ClientId, filter: &str) {
        self.subscribe_shared(client, filter, None);
    }

    #[track_caller]
    pub fn subscribe_shared(&mut self, client: ClientId, filter: &str, group: Option<&str>) {
        let before = self.seen.subscribed.len();
        let subscription = Subscription {
            filter: filter.to_owned(),
            group: group.map(str::to_owned),
        };
        self.fleet.subscribe(client, &subscription).unwrap();
        self.until("subscribed", |s| s.subscribed.len() > before);
    }

    /// Publishes, polling while it is blocked.
    #[track_caller]
    pub fn publish(&mut self, client: ClientId, topic: TopicId, sequence: u64, len: usize) {
        let head = head(sequence);
        let body = vec![sequence as u8; len - header::HEADER_LEN];
        let payload = Payload {
            head: &head,
            body: &body,
        };
        let end = clock::monotonic_now() + 20 * SECOND;
        loop {
            match self.fleet.publish(client, topic, payload, sequence) {
                Publish::Accepted => return,
                Publish::Blocked => {
                    let now = clock::monotonic_now();
                    assert!(now < end, "blocked for good; failed {:?}", self.seen.failed);
                    self.fleet.poll(now + 50_000_000, &mut self.seen).unwrap();
                }
                Publish::Refused(why) => panic!("refused: {why:?}; failed {:?}", self.seen.failed),
            }
        }
    }

    /// The sequence numbers delivered to a client, in their order.
    pub fn sequences(&self, client: ClientId) -> Vec<u64> {
        let of = |m: &&Message| m.client == client.0;
        self.seen
            .messages
            .iter()
            .filter(of)
            .map(|m| sequence(&m.payload))
            .collect()
    }
}

/// Sixteen bytes with a number in them.
pub fn head(sequence: u64) -> [u8; header::HEADER_LEN] {
    let mut head = [0x5a; header::HEADER_LEN];
    head[..8].copy_from_slice(&sequence.to_le_bytes());
    head
}

pub fn sequence(payload: &[u8]) -> u64 {
    u64::from_le_bytes(payload[..8].try_into().unwrap())
}

pub fn version(v: &str) -> Settings {
    let mut settings = Settings::default();
    native(&mut settings, "version", v.into());
    settings
}

pub fn native(settings: &mut Settings, name: &str, value: serde_json::Value) {
    settings
        .native
        .entry("mqtt".into())
        .or_default()
        .insert(name.into(), value);
}

/// A port of the loopback that nobody listens on at the moment.
pub fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// A process that is killed and waited for when it is dropped.
pub struct Process(pub Child);

impl Process {
    /// SIGSTOP or SIGCONT.
    pub fn signal(&self, signal: libc::c_int) {
        // SAFETY: the process is ours and has not been waited for, so its id is still its own.
        assert_eq!(unsafe { libc::kill(self.0.id() as libc::pid_t, signal) }, 0);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A private mosquitto.
pub struct Mosquitto {
    pub port: u16,
    process: Option<Process>,
    folder: tempfile::TempDir,
}

impl Mosquitto {
    pub fn start() -> Mosquitto {
        Mosquitto::with("allow_anonymous true\n")
    }

    /// Started with these lines of configuration beside the listener; `{dir}` is its folder.
    pub fn with(lines: &str) -> Mosquitto {
        let folder = tempfile::tempdir().unwrap();
        let mut broker = Mosquitto {
            port: free_port(),
            process: None,
            folder,
        };
        let dir = broker.folder.path().display().to_string();
        let text = format!(
            "listener {} 127.0.0.1\nsys_interval 1\nmax_queued_messages 0\n{}\n",
            broker.port,
            lines.replace("{dir}", &dir)
        );
        std::fs::write(broker.folder.path().join("mosquitto.conf"), text).unwrap();
        broker.run();
        broker
    }

    pub fn dir(&self) -> &Path {
        self.folder.path()
    }

    fn run(&mut self) {
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        let mut command = Command::new("mosquitto");
        command
            .arg("-c")
            .arg(self.folder.path().join("mosquitto.conf"));
        // Run as root it would change to a user that cannot read its folder.
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        let child = command
            .spawn()
            .expect("these tests need mosquitto (apt install mosquitto)");
        self.process = Some(Process(child));
        let end = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            let log =
                || std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < end, "mosquitto does not answer: {}", log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn signal(&self, signal: libc::c_int) {
        self.process.as_ref().unwrap().signal(signal);
    }

    /// Ends it in order, so that it writes its store, and starts it again.
    pub fn restart(&mut self) {
        self.signal(libc::SIGTERM);
        self.process.as_mut().unwrap().0.wait().unwrap();
        self.process = None;
        self.run();
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Its own counts under `$SYS/broker/`, once it has brought them up to date. Nobody else may
    /// be subscribed to `$SYS`.
    pub fn counters<const N: usize>(&self, names: [&str; N]) -> [u64; N] {
        std::thread::sleep(Duration::from_millis(2500));
        let mut command = Command::new("mosquitto_sub");
        let port = self.port.to_string();
        command.args(["-p", &port, "-C", &N.to_string(), "-W", "10", "-v"]);
        for name in names {
            command.args(["-t", &format!("$SYS/broker/{name}")]);
        }
        let output = command
            .output()
            .expect("these tests need mosquitto_sub (apt install mosquitto-clients)");
        let text = String::from_utf8(output.stdout).unwrap();
        names.map(|name| {
            let line = text
                .lines()
                .find_map(|l| l.strip_prefix(&format!("$SYS/broker/{name} ")));
            line.unwrap_or_else(|| panic!("no {name} in {text:?}"))
                .parse()
                .unwrap()
        })
    }
}

/// The reference broker, on a thread of the test; ends when it is dropped.
pub struct Reference {
    pub port: u16,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<pubgauge_broker::Counters>>,
}

impl Reference {
    pub fn start() -> Reference {
        let (tell, told) = std::sync::mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let ready = |address: std::net::SocketAddr| tell.send(address.port()).unwrap();
            pubgauge_broker::run(pubgauge_broker::Options::default(), ready, &flag).unwrap()
        });
        Reference {
            port: told.recv().unwrap(),
            stop,
            thread: Some(thread),
        }
    }

    /// Ends it and gives what it counted.
    pub fn finish(mut self) -> pubgauge_broker::Counters {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Runs a test on mosquitto and on the reference broker, each time with a fresh one's port.
pub fn on_both(test: impl Fn(u16)) {
    let mosquitto = Mosquitto::start();
    test(mosquitto.port);
    drop(mosquitto);
    let reference = Reference::start();
    test(reference.port);
}

/// Writes a file into a folder and gives its path as text.
pub fn write_file(dir: &Path, name: &str, content: &str) -> String {
    let path = dir.join(name);
    std::fs::File::create(&path)
        .unwrap()
        .write_all(content.as_bytes())
        .unwrap();
    path.display().to_string()
}
