//! A private mosquitto.

use std::fs::File;
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::throttle::{Rules, Throttle};

/// A mosquitto of a test's or bench's own, which limits neither queues nor messages in flight; killed and waited for when
/// it is dropped.
pub struct Mosquitto {
    pub port: u16,
    host: Ipv4Addr,
    /// Most open files.
    open_files: Option<u32>,
    process: Option<Child>,
    folder: TempDir,
}

impl Mosquitto {
    /// Open to everybody on this host.
    pub fn start() -> Mosquitto {
        Mosquitto::start_with("allow_anonymous true")
    }

    /// Open to everybody on this host, at another address of it.
    pub fn start_at(host: Ipv4Addr) -> Mosquitto {
        Mosquitto::begin(host, "allow_anonymous true", None)
    }

    /// Open to everybody on this host, with at most so many files open.
    pub fn with_open_files(most: u32) -> Mosquitto {
        Mosquitto::begin(Ipv4Addr::LOCALHOST, "allow_anonymous true", Some(most))
    }

    /// With user `ann`, who has this password, and nobody else; with more lines of configuration.
    ///
    /// # Panics
    /// If no password file can be made.
    pub fn with_password(password: &str, more: &str) -> Mosquitto {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("users");
        let made = Command::new("mosquitto_passwd")
            .args(["-b", "-c"])
            .arg(&file)
            .args(["ann", password])
            .status()
            .expect("these tests need mosquitto_passwd (apt install mosquitto)");
        assert!(made.success());
        let lines = format!(
            "allow_anonymous false\npassword_file {}\n{more}",
            file.display()
        );
        // It has read the file once it serves.
        Mosquitto::start_with(&lines)
    }

    /// With these lines of configuration beside the listener; `{dir}` is its folder.
    pub fn start_with(lines: &str) -> Mosquitto {
        Mosquitto::begin(Ipv4Addr::LOCALHOST, lines, None)
    }

    fn begin(host: Ipv4Addr, lines: &str, open_files: Option<u32>) -> Mosquitto {
        let mut broker = Mosquitto {
            port: crate::free_port(),
            host,
            open_files,
            process: None,
            folder: tempfile::tempdir().unwrap(),
        };
        let dir = broker.dir().display().to_string();
        // As root it would become a user that cannot read its folder.
        let text = format!(
            "listener {} {host}\nuser root\nsys_interval 1\nmax_queued_messages 0\nmax_inflight_messages 0\n{}\n",
            broker.port,
            lines.replace("{dir}", &dir)
        );
        std::fs::write(broker.dir().join("mosquitto.conf"), text).unwrap();
        broker.run();
        broker
    }

    fn run(&mut self) {
        let log = File::create(self.dir().join("log")).unwrap();
        let limit = self.open_files.map(|most| format!("ulimit -n {most} && "));
        let limit = limit.unwrap_or_default();
        let child = Command::new("sh")
            .args(["-c", &format!("{limit}exec mosquitto -c mosquitto.conf")])
            .current_dir(self.dir())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.process = Some(child);
        let end = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect((self.host, self.port)).is_err() {
            assert!(
                Instant::now() < end,
                "mosquitto does not answer; these tests need it (apt install mosquitto): {}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Its log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir().join("log")).unwrap_or_default()
    }

    pub fn dir(&self) -> &Path {
        self.folder.path()
    }

    /// `mqtt://HOST:PORT`.
    pub fn address(&self) -> String {
        format!("mqtt://{}:{}", self.host, self.port)
    }

    /// A throttle in front of it.
    pub fn throttled(&self, to_server: Rules, to_client: Rules) -> Throttle {
        Throttle::start((self.host, self.port).into(), to_server, to_client)
    }

    /// Number of its process.
    ///
    /// # Panics
    /// If it was killed.
    pub fn pid(&self) -> i32 {
        self.process.as_ref().expect("it runs").id() as i32
    }

    /// # Panics
    /// If it was killed.
    pub fn signal(&self, signal: i32) {
        // SAFETY: the process is ours and has not been waited for, so its id is still its own.
        assert_eq!(unsafe { libc::kill(self.pid(), signal) }, 0);
    }

    /// Ends it in order, so that it writes its store, unless it was killed, and starts it again.
    ///
    /// # Panics
    /// If it does not come back.
    pub fn restart(&mut self) {
        if self.process.is_some() {
            self.signal(libc::SIGTERM);
        }
        if let Some(mut process) = self.process.take() {
            process.wait().unwrap();
        }
        self.run();
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Its own counts under `$SYS/broker/`, once it has brought them up to date, which it does every second. Nobody else
    /// may be subscribed to `$SYS`.
    ///
    /// # Panics
    /// If there is no such count.
    pub fn counters<const N: usize>(&self, names: [&str; N]) -> [i64; N] {
        std::thread::sleep(Duration::from_millis(2500));
        let mut command = Command::new("mosquitto_sub");
        let (host, port) = (self.host.to_string(), self.port.to_string());
        command.args(["-h", &host, "-p", &port, "-C", &N.to_string()]);
        command.args(["-W", "20", "-v"]);
        for name in names {
            command.args(["-t", &format!("$SYS/broker/{name}")]);
        }
        let output = command
            .output()
            .expect("these tests need mosquitto_sub (apt install mosquitto-clients)");
        let text = String::from_utf8(output.stdout).unwrap();
        names.map(|name| {
            let of_name = format!("$SYS/broker/{name} ");
            let line = text.lines().find_map(|line| line.strip_prefix(&of_name));
            line.unwrap_or_else(|| panic!("no {name} in {text:?}"))
                .parse()
                .unwrap()
        })
    }
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        self.kill();
    }
}
