//! The conductor's end of one host: its companion, from the start to the end of the run.

use std::fs::File;
use std::io::{self, Read};
use std::net::IpAddr;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pubgauge_driver::monotonic_now;
use pubgauge_engine::link::frames;
use pubgauge_testbed::{Confinement, Piped, Streams};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::{ClockWatch, EchoKey, Hello, Host, HostError, HostIdentity, lock};

/// How long a companion may take to say hello.
const PATIENCE: Duration = Duration::from_secs(60);
/// A host of which nothing is heard for this long is lost; it says something each second.
const LOST: Duration = Duration::from_secs(10);
/// How long a companion may take to end after its input has.
const ENDING: Duration = Duration::from_secs(2);
/// Starts what a prefix says: it finds the program as a shell does.
const ENV: &str = "/usr/bin/env";

/// A host whose companion runs. Dropping it ends the companion.
pub struct Companion {
    hello: Hello,
    /// Follows its clock, where that is not this host's.
    watch: Option<ClockWatch>,
    state: Arc<Mutex<CompanionState>>,
    process: Arc<Piped>,
    /// The companion ends when this is closed.
    input: Option<File>,
    reader: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct CompanionState {
    /// Why the host is lost, once it is.
    lost: Option<String>,
    /// Everything else that runs there, which ends with it.
    workers: Vec<Weak<Piped>>,
}

/// A companion that has not said hello yet.
pub(crate) struct Starting {
    said: Receiver<Result<Hello, HostError>>,
    key: EchoKey,
    companion: Companion,
}

impl Starting {
    /// Starts the companion of a host, which reaches this one at `at`.
    pub fn new(host: &Host, at: IpAddr) -> Result<Starting, HostError> {
        let at = at.to_string();
        let arguments = ["--echo", &at];
        let command = host.worker(&arguments);
        let key = EchoKey::random()?;
        let (process, streams) = start(&command)?;
        let (mut input, output) = (streams.input, streams.output);
        // A process that does not read its input has ended: its output shows that.
        let _ = frames::write(&mut input, key.bytes());
        let process = Arc::new(process);
        let state = Arc::<Mutex<CompanionState>>::default();
        let (sender, said) = channel();
        let reading = CompanionReader {
            output: Patient {
                file: output,
                longest: PATIENCE,
            },
            process: process.clone(),
            state: state.clone(),
            command: command[..command.len() - 3].join(" "),
        };
        let reader = std::thread::Builder::new().name("host".into());
        let reader = reader.spawn(move || reading.run(&sender))?;
        let companion = Companion {
            hello: Hello::default(),
            watch: None,
            state,
            process,
            input: Some(input),
            reader: Some(reader),
        };
        Ok(Starting {
            said,
            key,
            companion,
        })
    }

    /// Its first message, if that has come after at most `longest`.
    pub fn first_message(&self, longest: Duration) -> Option<Result<Hello, HostError>> {
        self.said.recv_timeout(longest).ok()
    }

    /// The companion that has said this.
    pub fn accept(self, hello: Hello) -> Result<Companion, HostError> {
        let mut companion = self.companion;
        if !hello.machine.shares_clock(&HostIdentity::of_this_host()) {
            let address = (hello.address, hello.port).into();
            companion.watch = Some(ClockWatch::start(address, self.key, monotonic_now)?);
        }
        companion.hello = hello;
        Ok(companion)
    }
}

impl Companion {
    /// Its description of its host.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Follows its clock; `None` if that is this host's.
    pub fn watch(&self) -> Option<&ClockWatch> {
        self.watch.as_ref()
    }

    /// Why the host is lost, if it is.
    pub fn lost(&self) -> Option<String> {
        lock(&self.state).lost.clone()
    }

    /// Starts a worker of a trial by the same prefix; it ends with the host.
    ///
    /// # Errors
    /// If nothing can be started here.
    pub fn worker(&self, command: &[&str]) -> io::Result<(Arc<Piped>, Streams)> {
        let (process, streams) = start(command)?;
        let process = Arc::new(process);
        let mut state = lock(&self.state);
        state.workers.retain(|worker| worker.strong_count() > 0);
        state.workers.push(Arc::downgrade(&process));
        if state.lost.is_some() {
            process.kill();
        }
        Ok((process, streams))
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        self.input = None;
        let Some(reader) = self.reader.take() else {
            return;
        };
        let end = Instant::now() + ENDING;
        while !reader.is_finished() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.process.kill();
        // It has no reason to panic, and no result.
        let _ = reader.join();
    }
}

/// Starts a command without a terminal to ask for passwords at.
fn start(command: &[&str]) -> io::Result<(Piped, Streams)> {
    Piped::start(Path::new(ENV), command, &Confinement::default())
}

/// Reads what a companion says.
struct CompanionReader {
    output: Patient,
    process: Arc<Piped>,
    state: Arc<Mutex<CompanionState>>,
    /// The prefix and the program.
    command: String,
}

impl CompanionReader {
    fn run(mut self, said: &Sender<Result<Hello, HostError>>) {
        let hello = self.greeting();
        let failed = hello.is_err();
        if failed {
            self.process.kill();
        }
        if said.send(hello).is_err() || failed {
            return;
        }
        self.output.longest = LOST;
        let why = loop {
            match frames::read_within::<()>(&mut self.output, 16) {
                Ok(Some(())) => {}
                Ok(None) => break self.process.ending(),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    break format!("nothing was heard of it for {} s", LOST.as_secs());
                }
                Err(error) => break format!("what it says makes no sense: {error}"),
            }
        };
        self.process.kill();
        let mut state = lock(&self.state);
        state.lost = Some(why);
        for worker in state.workers.iter().filter_map(Weak::upgrade) {
            worker.kill();
        }
    }

    fn greeting(&mut self) -> Result<Hello, HostError> {
        let of = |error: io::Error| match error.kind() {
            io::ErrorKind::TimedOut => HostError::Silent(PATIENCE),
            _ => HostError::Strange(error.to_string()),
        };
        let mut first = [0; 1];
        if self.output.read(&mut first).map_err(of)? == 0 {
            let how = format!("what was started there {}", self.process.ending());
            let command = self.command.clone();
            return Err(HostError::Ended { how, command });
        }
        // A hello begins with its length, whose first byte is 0; a text, such as a login banner, does not.
        if first[0] != 0 {
            let mut said = [0; 80];
            let length = self.output.read(&mut said).unwrap_or(0);
            let text = [&first, &said[..length]].concat();
            let text = String::from_utf8_lossy(&text);
            let line = text.lines().next().unwrap_or_default();
            return Err(HostError::Strange(line.to_owned()));
        }
        let mut whole = first.chain(&mut self.output);
        let hello = Hello::read(&mut whole).map_err(of)?;
        let hello = hello.ok_or(HostError::Silent(PATIENCE))?;
        hello.check()?;
        Ok(hello)
    }
}

/// A stream that is read with patience: an error comes of a longer silence.
struct Patient {
    file: File,
    longest: Duration,
}

impl Read for Patient {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let end = Instant::now() + self.longest;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let mut waiting = [PollFd::new(&self.file, PollFlags::IN)];
            // A wait that a signal ended is a wait that found nothing.
            let _ = poll(&mut waiting, Timespec::try_from(left).ok().as_ref());
            if !waiting[0].revents().is_empty() {
                return self.file.read(into);
            }
        }
    }
}
