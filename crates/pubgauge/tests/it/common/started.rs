//! A pubgauge that runs.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Child;
use std::time::{Duration, Instant};

use super::{Done, PATIENCE, Place, code, kill};

/// Standard error of what was started last.
fn said_in(place: &Place) -> String {
    let said = std::fs::read(place.folder.path().join("stderr")).unwrap_or_default();
    String::from_utf8_lossy(&said).into_owned()
}

/// Where a pubgauge that said this answers over HTTP; `None` before it has said so.
pub fn listens_at(said: &str) -> Option<String> {
    let address = said.split("http://").nth(1)?.split('/').next()?;
    Some(address.to_owned())
}

/// A live figure of the run that was started last, with `--listen 0`; `None` while no trial runs.
fn live(place: &Place, name: &str) -> Option<f64> {
    let address = listens_at(&said_in(place))?;
    let mut stream = TcpStream::connect(address).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let line = answer.lines().find(|line| line.starts_with(name))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// A pubgauge that runs; killed if the test gives up.
pub struct Started<'a> {
    pub(super) place: &'a Place,
    pub(super) child: Child,
}

impl Started<'_> {
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: i32) {
        kill(self.pid(), signal);
    }

    /// Whether a trial is being measured: the thread that measures the machine's noise lives exactly
    /// as long.
    pub fn is_measuring(pid: i32) -> bool {
        let is_noise = |task: std::io::Result<std::fs::DirEntry>| {
            let comm = task.and_then(|task| std::fs::read_to_string(task.path().join("comm")));
            comm.is_ok_and(|comm| comm == "noise\n")
        };
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
        tasks.is_ok_and(|mut tasks| tasks.any(is_noise))
    }

    /// Waits until the measurement of a trial has begun.
    #[track_caller]
    pub fn measures(&mut self) {
        let pid = self.pid();
        self.until("a measurement", || Started::is_measuring(pid));
    }

    /// Waits until the measurement of a trial has begun, and 30 messages have been delivered since: more
    /// than those of a warm-up of 200 ms at 100 a second. The run was started with `--listen 0`.
    #[track_caller]
    pub fn delivers(&mut self) {
        self.measures();
        let place = self.place;
        let delivered = || live(place, "pubgauge_live_deliveries_total").unwrap_or(0.0);
        let before = delivered();
        self.until("deliveries", || delivered() > before + 30.0);
    }

    /// Waits until nothing more is published: two answers, which are a tenth of a second apart, say the
    /// same. The run was started with `--listen 0`.
    #[track_caller]
    pub fn is_held_back(&mut self) {
        let place = self.place;
        let mut last = None;
        self.until("publishers that are held back", || {
            let now = live(place, "pubgauge_live_published_messages_total");
            std::mem::replace(&mut last, now).is_some_and(|last| Some(last) == now)
        });
    }

    /// Waits until something holds, while pubgauge runs.
    #[track_caller]
    pub fn until(&mut self, what: &str, mut holds: impl FnMut() -> bool) {
        let end = Instant::now() + PATIENCE;
        while !holds() {
            if let Some(status) = self.child.try_wait().unwrap() {
                let done = self.said(code(status));
                panic!("pubgauge ended before {what}: {done:?}");
            }
            assert!(Instant::now() < end, "waited in vain for {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until this stands in its standard error.
    #[track_caller]
    pub fn until_said(&mut self, text: &str) {
        let place = self.place;
        self.until(text, || said_in(place).contains(text));
    }

    /// Its standard error so far.
    pub fn said_so_far(&self) -> String {
        said_in(self.place)
    }

    /// The processes of systems that pubgauge started: those that live here with another command
    /// line than pubgauge itself and its guards, which are forks of it.
    pub fn systems(&self) -> Vec<i32> {
        let own = std::fs::read(format!("/proc/{}/cmdline", self.pid())).unwrap_or_default();
        let own = String::from_utf8_lossy(&own).replace('\0', " ");
        let others = self.place.processes().into_iter();
        others
            .filter(|(_, line)| *line != own)
            .map(|(pid, _)| pid)
            .collect()
    }

    /// Waits for the end, which must come within this time.
    #[track_caller]
    pub fn ends_within(mut self, time: Duration) -> Done {
        let end = Instant::now() + time;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return self.said(code(status));
            }
            assert!(
                Instant::now() < end,
                "pubgauge has not ended within {time:?}: {:?}",
                self.said(0)
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the end.
    #[track_caller]
    pub fn ends(self) -> Done {
        self.ends_within(PATIENCE)
    }

    fn said(&self, code: i32) -> Done {
        let text = |name: &str| {
            let bytes = std::fs::read(self.place.folder.path().join(name)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        Done {
            code,
            out: text("stdout"),
            err: text("stderr"),
        }
    }
}

impl Drop for Started<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
