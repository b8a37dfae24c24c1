//! A fleet with a note-book, and private servers that vanish on every path.
#![allow(dead_code)] // Each test file uses its own part.

pub mod peer;
pub mod raw;
pub mod systems;

use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pubgauge_driver::*;
use pubgauge_driver_mqtt::MqttDriver;

pub use pubgauge_testing::*;

pub fn target(port: u16) -> Target {
    Target {
        endpoints: vec![format!("mqtt://127.0.0.1:{port}")],
        ..Target::default()
    }
}

pub fn open(target: Target, settings: Settings) -> Rig {
    Rig::open(&MqttDriver, target, settings)
}

pub fn on(port: u16, settings: Settings) -> Rig {
    open(target(port), settings)
}

pub fn version(v: &str) -> Settings {
    let mut settings = Settings::default();
    native(&mut settings, "version", v.into());
    settings
}

pub fn native(settings: &mut Settings, name: &str, value: serde_json::Value) {
    pubgauge_testing::native(settings, "mqtt", name, value);
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
        let end = Instant::now() + Duration::from_secs(60);
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
    pub fn counters<const N: usize>(&self, names: [&str; N]) -> [i64; N] {
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
