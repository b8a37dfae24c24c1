//! A link over two streams of bytes, such as a process's standard input and output: both its ends.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pubgauge_driver::{Attempt, Clock, Driver, DriverError, Secret};
use serde::{Deserialize, Serialize};

use super::{Here, Link, Order, PrepareThread, Secrets, VERSION, frames};
use crate::assignment::Brief;
use crate::reports::{Command, Outbox, Report, Sent, Unread};

/// How long a worker that has given its recording may take to end by itself.
const LAST_MOMENT: Duration = Duration::from_secs(5);

/// The longest report, bytes: a recording with the series of hundreds of flows has some tens of MB.
const LONGEST_REPORT: usize = 256 << 20;

/// Bytes of a worker's reports that may wait for the conductor when the next one comes: a worker reports less than
/// 100 kB/s, and the conductor reads what is there before it does anything else.
const MOST_UNREAD: usize = 64 << 20;

/// The longest greeting, bytes.
const LONGEST_GREETING: usize = 4 << 10;

/// The first frame that a worker sends.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Greeting {
    /// [`VERSION`].
    link: u32,
    /// Version of the program.
    pubgauge: String,
}

impl Greeting {
    fn own() -> Self {
        Greeting {
            link: VERSION,
            pubgauge: env!("CARGO_PKG_VERSION").into(),
        }
    }

    /// # Errors
    /// Why this worker cannot be used.
    fn check(&self) -> Result<(), String> {
        if self.link == VERSION {
            return Ok(());
        }
        Err(format!(
            "it is pubgauge {} and speaks version {} of the link, not {VERSION}\n  hint: the workers' program must be the one that runs the study",
            self.pubgauge, self.link
        ))
    }
}

/// The second frame to a worker: what the order must not contain.
#[derive(Serialize, Deserialize)]
struct Letter {
    password: Option<String>,
}

/// The process at the other end.
pub trait Peer: Send + Sync {
    /// Ends it at once.
    fn kill(&self);

    /// How it ended, in words; waits a moment for its end.
    fn ending(&self) -> String;

    /// The host that it is on, in words; `None` if that is this one.
    fn host(&self) -> Option<String> {
        None
    }
}

/// The conductor's end: commands go out over `output`, reports come in over `input`.
///
/// # Errors
/// If the threads cannot be started.
pub fn link(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    order: Order,
    secrets: Secrets,
    outbox: Outbox,
    peer: Arc<dyn Peer>,
) -> Result<Box<dyn Link>, DriverError> {
    let (sender, commands) = channel();
    let number = order.assignment.worker;
    let tell = move || {
        // Where a worker takes no more commands, the stream of its reports shows it.
        let _ = tell(output, &order, &secrets, &commands);
    };
    let theirs = peer.clone();
    let hear = move || {
        let why = match hear(input, &outbox) {
            Ok(()) => theirs.ending(),
            Err(error) => {
                theirs.kill();
                error
            }
        };
        outbox.send(Report::Gone(format!("worker {number} is gone: {why}")));
    };
    let start = |name: &str, run: Box<dyn FnOnce() + Send>| {
        let thread = std::thread::Builder::new().name(format!("{name}-{number}"));
        thread.spawn(run).map_err(|error| {
            peer.kill();
            DriverError::of_io("cannot start a thread for a link", Attempt::Start, &error)
        })
    };
    let threads = vec![
        start("tell", Box::new(tell))?,
        start("hear", Box::new(hear))?,
    ];
    Ok(Box::new(StreamLink {
        sender: Some(sender),
        threads,
        peer,
    }))
}

fn tell(
    output: impl Write,
    order: &Order,
    secrets: &Secrets,
    commands: &Receiver<Command>,
) -> io::Result<()> {
    let mut output = BufWriter::new(output);
    frames::write(&mut output, order)?;
    let password = secrets.password.as_ref();
    let letter = Letter {
        password: password.map(|password| password.reveal().to_owned()),
    };
    frames::write(&mut output, &letter)?;
    pass_on(&mut output, commands, |command| command)
}

/// Writes what comes until the channel is closed: as much at once as there is.
fn pass_on<T, U: Serialize>(
    output: &mut impl Write,
    from: &Receiver<T>,
    what: fn(T) -> U,
) -> io::Result<()> {
    while let Ok(first) = from.recv() {
        frames::put(output, &what(first))?;
        while let Ok(next) = from.try_recv() {
            frames::put(output, &what(next))?;
        }
        output.flush()?;
    }
    Ok(())
}

/// Takes in a worker's reports until the stream ends.
fn hear(input: impl Read, outbox: &Outbox) -> Result<(), String> {
    let mut input = BufReader::new(input);
    let strange = |error: io::Error| {
        format!("what it says makes no sense ({error}): it may be another program or version")
    };
    let Some(greeting) =
        frames::read_within::<Greeting>(&mut input, LONGEST_GREETING).map_err(strange)?
    else {
        return Ok(());
    };
    greeting.check()?;
    let unread = Unread::default();
    while let Some(bytes) = frames::read_bytes(&mut input, LONGEST_REPORT).map_err(strange)? {
        let held = unread
            .hold(bytes.len().max(size_of::<Sent>()), MOST_UNREAD)
            .ok_or_else(|| format!("its reports come faster than they are read, and {} MiB of them wait: it may be another program or version", MOST_UNREAD >> 20))?;
        let report = serde_json::from_slice(&bytes).map_err(|error| strange(error.into()))?;
        if !outbox.pass_on(report, Some(held)) {
            break;
        }
    }
    Ok(())
}

struct StreamLink {
    sender: Option<Sender<Command>>,
    threads: Vec<JoinHandle<()>>,
    peer: Arc<dyn Peer>,
}

impl Link for StreamLink {
    fn send(&mut self, command: Command) {
        if let Some(sender) = &self.sender {
            // A worker that is gone has been reported.
            let _ = sender.send(command);
        }
    }

    fn join(&mut self) {
        // Its input ends, and so does the worker.
        self.sender = None;
        let until = Instant::now() + LAST_MOMENT;
        while !self.threads.iter().all(JoinHandle::is_finished) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn host(&self) -> Option<String> {
        self.peer.host()
    }
}

impl Drop for StreamLink {
    fn drop(&mut self) {
        self.sender = None;
        self.peer.kill();
        for thread in self.threads.drain(..) {
            // These threads have no reason to panic; a panic would have been reported as silence.
            let _ = thread.join();
        }
    }
}

/// The worker's end, where there is no worker: reports why it cannot work.
///
/// # Errors
/// If the conductor does not read any more.
pub fn refuse(output: &mut impl Write, why: String) -> io::Result<()> {
    frames::put(output, &Greeting::own())?;
    frames::write(output, &Report::Failed(why.into()))
}

/// The worker's end: carries out an order from `input`, on `clock`, which has the conductor's time, and reports
/// to `output`, until the recording is given or the input ends. With `below`, an order that names other files than
/// those below that folder is refused.
///
/// # Errors
/// If the conductor does not read any more, or the input is not an order.
pub fn serve(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    driver_of: impl FnOnce(&str) -> Option<Arc<dyn Driver>>,
    prepare_thread: PrepareThread,
    clock: Clock,
    below: Option<&Path>,
) -> io::Result<()> {
    let (mut input, mut output) = (BufReader::new(input), BufWriter::new(output));
    frames::write(&mut output, &Greeting::own())?;
    let Some(order) = frames::read::<Order>(&mut input)? else {
        return Ok(());
    };
    let letter = frames::read::<Letter>(&mut input)?;
    let secrets = Secrets {
        password: letter.and_then(|letter| letter.password).map(Secret::new),
    };
    let (reports, told) = channel::<Sent>();
    let outbox = Outbox::new(order.assignment.worker, reports);
    let writer = std::thread::Builder::new()
        .name("reports".into())
        .spawn(move || pass_on(&mut output, &told, |sent| sent.report))?;
    let (sender, commands) = channel();
    std::thread::Builder::new()
        .name("commands".into())
        .spawn(move || {
            // The worker ends when no more commands can come.
            while let Ok(Some(command)) = frames::read(&mut input) {
                if sender.send(command).is_err() {
                    return;
                }
            }
        })?;
    let ready =
        own_files(&order, below).and_then(|()| ready(&order, driver_of, prepare_thread, clock));
    match ready {
        Ok(here) => here.run(order, secrets, commands, outbox),
        Err(why) => {
            outbox.send(Report::Failed(why.into()));
            drop(outbox);
        }
    }
    writer.join().unwrap_or(Ok(()))
}

/// Checks that an order of another host names no files but those that this host gives.
fn own_files(order: &Order, below: Option<&Path>) -> Result<(), String> {
    let Some(below) = below else {
        return Ok(());
    };
    let folder = below.canonicalize();
    // Links in it are followed, and what they lead to must lie there too.
    let given = |file: &Path| matches!((&folder, file.canonicalize()), (Ok(folder), Ok(file)) if file.starts_with(folder));
    match order.files().find(|file| !given(file)) {
        None => Ok(()),
        Some(file) => Err(format!(
            "the run asks this host for {}, which is not below the folder that this host gives\n  hint: where the run may have it: pubgauge worker --join ... --files DIR",
            file.display()
        )),
    }
}

fn ready(
    order: &Order,
    driver_of: impl FnOnce(&str) -> Option<Arc<dyn Driver>>,
    prepare_thread: PrepareThread,
    clock: Clock,
) -> Result<Here, String> {
    let driver = driver_of(&order.driver)
        .ok_or_else(|| format!("the workers' program has no driver `{}`", order.driver))?;
    let brief = Brief::new(order.workload.clone())?;
    // A process shares nothing with others: the order says it all.
    Ok(Here::new(brief, driver, [], clock, prepare_thread))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use pubgauge_driver::{Mark, Settings, Target, Tls, Transport};
    use pubgauge_workload::trace::TraceSource;
    use pubgauge_workload::{Arrivals, Replay, Workload};

    use super::*;
    use crate::assignment::{Assignment, Role};

    /// An order of another host that would have these files.
    fn order(trace: Option<&Path>, key: Option<&Path>, more: fn(&mut Order)) -> Order {
        let replay = |file: &Path| {
            let source = TraceSource {
                files: vec![file.to_owned()],
                ..TraceSource::default()
            };
            let replay = Replay {
                source,
                ..Replay::default()
            };
            Arrivals::Replay(Box::new(replay))
        };
        let arrivals = trace.map_or(Arrivals::FlatOut, replay);
        let key_file = key.map(Path::to_owned);
        let mut order = Order {
            version: VERSION,
            assignment: Assignment {
                worker: 0,
                role: Role::Publishers,
                devices: Vec::new(),
                settings: 0,
                broker: 0,
                host: 0,
                mark: Mark::from_seed(1),
                measured_limit: None,
                default_window: None,
                pacing_within: 0,
                realtime: None,
                pin_to: None,
            },
            workload: Arc::new(Workload::fan(1, 1, arrivals)),
            driver: "mqtt".into(),
            target: Target {
                tls: Some(Tls {
                    key_file,
                    ..Tls::default()
                }),
                ..Target::default()
            },
            settings: [Settings::default()].into(),
            epoch: 0,
            spread: Vec::new().into(),
        };
        more(&mut order);
        order
    }

    /// A worker that reports without end, and faster than its reports are read, takes no more than its room.
    #[test]
    fn reports_that_nobody_reads_have_an_end() {
        struct Endless(Vec<u8>, usize);
        impl Read for Endless {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                let from = &self.0[self.1..];
                let n = from.len().min(into.len());
                into[..n].copy_from_slice(&from[..n]);
                self.1 = (self.1 + n) % self.0.len();
                Ok(n)
            }
        }
        let report = |report| {
            let mut frame = Vec::new();
            frames::write(&mut frame, &report).unwrap();
            frame
        };
        let mut greeting = Vec::new();
        frames::write(&mut greeting, &Greeting::own()).unwrap();
        for one in [Report::Closing, Report::Gone("x".repeat(100_000))] {
            let one = report(one);
            let most = MOST_UNREAD / one.len().max(size_of::<Sent>());
            for (frames, fits) in [(most, true), (2 * most, false)] {
                let (sender, unread) = channel();
                let bytes = (frames * one.len()) as u64;
                let input = greeting.chain(Endless(one.clone(), 0).take(bytes));
                let outcome = hear(input, &Outbox::new(0, sender));
                assert_eq!(outcome.is_ok(), fits, "{outcome:?}");
                let count = unread.try_iter().count();
                assert!((most..most + 3).contains(&count), "{count} of {most}");
            }
        }
    }

    /// A host that joins gives a folder, or nothing; the run's own host gives everything.
    #[test]
    fn an_order_has_no_files_but_those_that_its_host_gives() {
        let all = tempfile::tempdir().unwrap();
        let given = all.path().join("given");
        std::fs::create_dir(&given).unwrap();
        let (fine, other) = (given.join("tape.csv"), all.path().join("secret"));
        for file in [&fine, &other] {
            std::fs::write(file, "").unwrap();
        }
        let link = given.join("link");
        std::os::unix::fs::symlink(&other, &link).unwrap();
        let around: PathBuf = given.join("../secret");
        let nothing = |_: &mut Order| {};
        for (order, is_given) in [
            (order(None, None, nothing), true),
            (order(Some(&fine), None, nothing), true),
            (order(Some(&fine), Some(&fine), nothing), true),
            (order(Some(&other), None, nothing), false),
            (order(Some(&around), None, nothing), false),
            (order(Some(&link), None, nothing), false),
            (order(Some(&fine), Some(&other), nothing), false),
            (order(Some(Path::new("/etc/shadow")), None, nothing), false),
            (
                order(None, None, |order| {
                    order.target.endpoints = vec!["ipc:///tmp/x".into()]
                }),
                false,
            ),
            (
                order(None, None, |order| {
                    let transport = Some(Transport::Ipc);
                    let scratch = PathBuf::from("/tmp");
                    order.settings = [Settings {
                        transport,
                        ..Settings::default()
                    }]
                    .into();
                    order.target.scratch = scratch;
                }),
                false,
            ),
        ] {
            assert_eq!(
                own_files(&order, Some(&given)).is_ok(),
                is_given,
                "{order:?}"
            );
            let nothing_given = own_files(&order, Some(Path::new("/dev/null")));
            assert_eq!(nothing_given.is_ok(), order.files().next().is_none());
            assert_eq!(own_files(&order, None), Ok(()));
        }
    }
}
