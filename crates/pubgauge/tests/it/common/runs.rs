//! The progress of runs that go on.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::Started;

/// A live figure of the run that answers there; `None` while no trial runs.
fn live(address: &str, name: &str) -> Option<f64> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let line = answer.lines().find(|line| line.starts_with(name))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// Whether a trial is being measured by a process: the thread that measures the machine's noise lives exactly
/// as long.
pub fn is_measuring(pid: i32) -> bool {
    let is_noise = |task: std::io::Result<std::fs::DirEntry>| {
        let comm = task.and_then(|task| std::fs::read_to_string(task.path().join("comm")));
        comm.is_ok_and(|comm| comm == "noise\n")
    };
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    tasks.is_ok_and(|mut tasks| tasks.any(is_noise))
}

/// A run of pubgauge that goes on.
pub trait RunStarted {
    /// Waits until the measurement of a trial has begun.
    fn measures(&mut self);

    /// Waits until the measurement of a trial has begun, and 30 messages have been delivered since: more
    /// than those of a warm-up of 200 ms at 100 a second. The run was started with `--listen 0`.
    fn delivers(&mut self);

    /// Waits until nothing more is published: two answers, which are a tenth of a second apart, say the
    /// same. The run was started with `--listen 0`.
    fn is_held_back(&mut self);
}

impl RunStarted for Started<'_> {
    #[track_caller]
    fn measures(&mut self) {
        let pid = self.pid();
        self.until("a measurement", || is_measuring(pid));
    }

    #[track_caller]
    fn delivers(&mut self) {
        self.measures();
        let address = self.address();
        let delivered = || live(&address, "pubgauge_live_deliveries_total").unwrap_or(0.0);
        let before = delivered();
        self.until("deliveries", || delivered() > before + 30.0);
    }

    #[track_caller]
    fn is_held_back(&mut self) {
        let address = self.address();
        let mut last = None;
        self.until("publishers that are held back", || {
            let now = live(&address, "pubgauge_live_published_messages_total");
            std::mem::replace(&mut last, now).is_some_and(|last| Some(last) == now)
        });
    }
}
