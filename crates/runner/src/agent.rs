//! An agent on another host: it keeps one connection to the conductor, gives each order that comes to a
//! worker process, and joins again for the next.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pubgauge_engine::link::frames;
use pubgauge_engine::link::stream::{Peer, refuse};
use pubgauge_engine::worker::Report;
use pubgauge_hosts::{Dial, JoinError, Member, Reader, Writer, join};
use pubgauge_testbed::{Confinement, Piped};

use crate::other_clock::OtherClock;

/// How long an agent dials a lost conductor again.
const AGAIN: Duration = Duration::from_secs(10);
/// Pause between two attempts while the conductor still holds the earlier connection.
const REST: Duration = Duration::from_millis(250);
/// How long a worker may continue after its connection has ended.
const LAST_MOMENT: Duration = Duration::from_secs(10);
/// Bytes that are read at once.
const AT_ONCE: usize = 64 << 10;
/// Size limit of a report, in bytes; a longer one ends the connection.
const LONGEST: u64 = 1 << 30;

/// An agent.
#[derive(Clone, Debug)]
pub struct Agent {
    /// The conductor, and this host's rank.
    pub dial: Dial,
    /// The program of the workers: `PROGRAM worker`.
    pub program: PathBuf,
    /// The folder with the files of this host that orders may name; none if absent.
    pub files: Option<PathBuf>,
}

/// Why an agent ended before the run was over.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The conductor never let it in.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The connection to the conductor was lost.
    #[error("the run is gone: {why}; it could not be joined again: {again}")]
    Gone {
        /// How the connection ended.
        why: String,
        /// Why it could not join again.
        again: JoinError,
    },
    /// The conductor has a different clock and does not offer its readings.
    #[error(
        "the run's clock is another than this host's, and the run does not tell it\n  hint: the workers' program must be the one that runs the study"
    )]
    NoClock,
    /// The conductor's clock cannot be queried.
    #[error("the run's clock cannot be asked for: {0}")]
    Clock(io::Error),
}

/// What a connection brought first.
enum First {
    /// The beginning of an order.
    Order(Vec<u8>),
    /// The run is over.
    Over,
    /// The connection is lost, and how.
    Lost(String),
}

impl Agent {
    /// Works for the run until that is over; calls `say` with messages for the user.
    ///
    /// # Errors
    /// If it is not let in, or the connection is lost before the run is over.
    pub fn serve(&self, say: &mut dyn FnMut(&str)) -> Result<(), AgentError> {
        let mut member = join(&self.dial)?;
        say(&format!(
            "joined {} as rank {} of {}",
            self.dial.conductor, self.dial.rank.rank, member.welcome.size
        ));
        let mut workers: Vec<JoinHandle<()>> = Vec::new();
        let clock = self.clock(&member)?;
        let ended = loop {
            let why = match first(&mut member) {
                First::Over => break Ok(()),
                First::Order(bytes) => {
                    workers.push(self.start(bytes, member, clock.clone()));
                    "it was joined again for the next worker".to_owned()
                }
                First::Lost(why) => {
                    say(&why);
                    drop(member);
                    why
                }
            };
            workers.retain(|worker| !worker.is_finished());
            member = match self.again() {
                Ok(member) => member,
                Err(again) => break Err(AgentError::Gone { why, again }),
            };
        };
        for worker in workers {
            // The worker's thread has reported to the conductor itself.
            let _ = worker.join();
        }
        ended
    }

    /// The conductor's clock, where it is not this host's.
    fn clock(&self, member: &Member) -> Result<Option<Arc<OtherClock>>, AgentError> {
        let welcome = &member.welcome;
        if welcome.machine.shares_clock(&self.dial.machine) {
            return Ok(None);
        }
        let server = welcome.clock.as_ref();
        let server = server.and_then(|server| Some((server.port, server.key()?)));
        let (port, key) = server.ok_or(AgentError::NoClock)?;
        let server = (member.address.ip(), port).into();
        let clock = OtherClock::follow(server, key).map_err(AgentError::Clock)?;
        Ok(Some(Arc::new(clock)))
    }

    /// Joins again.
    fn again(&self) -> Result<Member, JoinError> {
        let until = Instant::now() + AGAIN;
        let dial = Dial {
            patience: AGAIN,
            ..self.dial.clone()
        };
        loop {
            match join(&dial) {
                // The conductor may not have noticed yet that the earlier connection is lost.
                Err(JoinError::Refused { .. }) if Instant::now() < until => {
                    std::thread::sleep(REST);
                }
                done => return done,
            }
        }
    }

    /// Starts a worker process for a connection, on a thread of its own.
    fn start(
        &self,
        order: Vec<u8>,
        member: Member,
        clock: Option<Arc<OtherClock>>,
    ) -> JoinHandle<()> {
        let agent = self.clone();
        std::thread::spawn(move || agent.work(order, member, clock.as_deref()))
    }

    /// One worker from its order to its end.
    fn work(&self, order: Vec<u8>, member: Member, clock: Option<&OtherClock>) {
        let mut writer = member.writer;
        let whom = format!(
            "host {}, rank {}",
            self.dial.machine.host, self.dial.rank.rank
        );
        let used = match clock.map(OtherClock::begin).transpose() {
            Ok(used) => used,
            Err(why) => {
                // The conductor may be gone: then nobody needs the reason.
                let _ = refuse(&mut writer, format!("{whom}: {why}"));
                return;
            }
        };
        // Nothing lies below a file.
        let files = self.files.as_deref().unwrap_or(Path::new("/dev/null"));
        let files = files.display().to_string();
        let mut arguments = ["worker", "--files", &files].map(str::to_owned).to_vec();
        if let Some(used) = &used {
            arguments.extend(["--clock".to_owned(), used.course().to_string()]);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let started = Piped::start(&self.program, &arguments, &Confinement::default());
        let (process, streams) = match started {
            Ok((process, streams)) => (Arc::new(process), streams),
            Err(error) => {
                let program = self.program.display();
                let why = format!("{whom} cannot start a worker, {program} worker: {error}");
                let _ = refuse(&mut writer, why);
                return;
            }
        };
        let (over, until_over) = channel::<()>();
        let (theirs, reader) = (Arc::clone(&process), member.reader);
        let telling = std::thread::spawn(move || {
            tell(order, reader, streams.input, &theirs, &until_over);
        });
        let mut output = streams.output;
        // Either end may be gone: the other then learns of it.
        let _ = pass_on(&mut output, &mut writer);
        if let Some(used) = used {
            let _ = frames::write(&mut writer, &Report::Clock(used.end(&whom)));
        }
        let why = format!("its process on {whom} {}", process.ending());
        let _ = frames::write(&mut writer, &Report::Gone(why));
        drop(writer);
        drop(over);
        let end = Instant::now() + LAST_MOMENT;
        while !telling.is_finished() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        member.connection.kill();
        // It should not panic, and has no result.
        let _ = telling.join();
    }
}

/// Waits for the conductor's first message.
fn first(member: &mut Member) -> First {
    let mut bytes = vec![0; AT_ONCE];
    match member.reader.read(&mut bytes) {
        Ok(0) if member.connection.was_closed() => First::Over,
        Ok(0) => First::Lost(member.connection.ending()),
        Ok(length) => {
            bytes.truncate(length);
            First::Order(bytes)
        }
        Err(error) => First::Lost(format!("{}: {error}", member.connection.ending())),
    }
}

/// Passes the conductor's messages on, until either end is gone; then kills a worker that goes on.
fn tell(
    order: Vec<u8>,
    mut reader: Reader,
    mut input: std::fs::File,
    process: &Piped,
    over: &Receiver<()>,
) {
    let passed = input.write_all(&order);
    drop(order);
    // A worker that no longer reads has ended, which is handled elsewhere.
    let _ = passed.and_then(|()| io::copy(&mut reader, &mut input));
    drop(input);
    if over.recv_timeout(LAST_MOMENT) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
        process.kill();
    }
}

/// Passes a worker's messages on, frame by frame: a frame that is cut off is not passed on.
fn pass_on(output: &mut impl Read, writer: &mut Writer) -> io::Result<()> {
    let mut output = io::BufReader::with_capacity(AT_ONCE, output);
    loop {
        let mut length = [0; 4];
        output.read_exact(&mut length)?;
        let bytes = u64::from(u32::from_be_bytes(length)).min(LONGEST);
        let mut frame = length.to_vec();
        (&mut output).take(bytes).read_to_end(&mut frame)?;
        if frame.len() as u64 != bytes + length.len() as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        writer.write_all(&frame)?;
    }
}
