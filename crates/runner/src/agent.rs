//! A host's own side: an agent that waits with one joined connection, gives each order that comes to a worker
//! process, and joins again for the next.

use std::io::{self, Read, Write};
use std::path::PathBuf;
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

/// How long a conductor that was there is dialled again.
const AGAIN: Duration = Duration::from_secs(10);
/// Time between two attempts while the conductor still thinks that the connection before is there.
const REST: Duration = Duration::from_millis(250);
/// How long a worker may go on whose connection has ended.
const LAST_MOMENT: Duration = Duration::from_secs(10);
/// Bytes that are passed on at once.
const AT_ONCE: usize = 64 << 10;
/// The longest report that is passed on.
const LONGEST: u64 = 1 << 30;

/// An agent.
#[derive(Clone, Debug)]
pub struct Agent {
    /// The conductor, and this host's rank.
    pub dial: Dial,
    /// The program of the workers: `PROGRAM worker`.
    pub program: PathBuf,
}

/// Why an agent has ended before it was told to.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// It was never let in.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The conductor has gone without a word.
    #[error("the run is gone: {why}; it could not be joined again: {again}")]
    Gone {
        /// How the connection ended.
        why: String,
        /// What became of joining again.
        again: JoinError,
    },
    /// The conductor has another clock and tells nothing of it.
    #[error(
        "the run's clock is another than this host's, and the run does not tell it\n  hint: the workers' program must be the one that runs the study"
    )]
    NoClock,
    /// The conductor's clock cannot be asked for.
    #[error("the run's clock cannot be asked for: {0}")]
    Clock(io::Error),
}

/// What came first on a connection.
enum First {
    /// The beginning of an order.
    Order(Vec<u8>),
    /// The run is over.
    Over,
    /// The connection is lost, and how.
    Lost(String),
}

impl Agent {
    /// Works for the run until that is over; `say` is told what happens.
    ///
    /// # Errors
    /// If it is not let in, or the conductor is gone without having said that the run is over.
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
            // It has told its conductor what became of it.
            let _ = worker.join();
        }
        ended
    }

    /// The conductor's clock, where it is another one.
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

    /// Joins once more.
    fn again(&self) -> Result<Member, JoinError> {
        let until = Instant::now() + AGAIN;
        let dial = Dial {
            patience: AGAIN,
            ..self.dial.clone()
        };
        loop {
            match join(&dial) {
                // A connection that is lost may not be known to be lost at the other end.
                Err(JoinError::Refused { .. }) if Instant::now() < until => {
                    std::thread::sleep(REST);
                }
                done => return done,
            }
        }
    }

    /// Gives a connection to a worker process, on a thread of its own.
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
                // A conductor that is gone needs no reason.
                let _ = refuse(&mut writer, format!("{whom}: {why}"));
                return;
            }
        };
        let mut arguments = vec!["worker".to_owned()];
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
        // Either end may be gone: both then hear of it.
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
        // It has no reason to panic, and no result.
        let _ = telling.join();
    }
}

/// Waits for the conductor to say something.
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

/// Passes on what the conductor says, until either is gone. A worker that then goes on is killed.
fn tell(
    order: Vec<u8>,
    mut reader: Reader,
    mut input: std::fs::File,
    process: &Piped,
    over: &Receiver<()>,
) {
    let passed = input.write_all(&order);
    drop(order);
    // A worker that reads no more has ended, which is seen elsewhere.
    let _ = passed.and_then(|()| io::copy(&mut reader, &mut input));
    drop(input);
    if over.recv_timeout(LAST_MOMENT) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
        process.kill();
    }
}

/// Passes on what a worker says, frame by frame: of one that is cut off nothing is passed on.
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
