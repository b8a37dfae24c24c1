//! A link over two streams of bytes, such as a process's standard input and output: both its ends.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pubgauge_driver::{Attempt, Clock, Driver, DriverError, OwnCertificate, Secret};
use pubgauge_workload::Workload;
use serde::{Deserialize, Serialize};

use super::allowance::Allowance;
use super::{Here, Order, PrepareThread, Secrets, VERSION, WorkerLink, frames};
use crate::assignment::Brief;
use crate::reports::{Command, Outbox, Report, Sent, Unread};

/// How long a worker that has given its recording may take to end by itself.
const LAST_MOMENT: Duration = Duration::from_secs(5);

/// Bytes of memory that a worker's reports may take which wait for the conductor when the next one comes: a worker reports
/// less than 100 kB/s, and the conductor reads what is there before it does anything else.
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
    fn of_this_program() -> Self {
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
    key_passphrase: Option<String>,
    /// Of the worker's devices that have some of their own.
    devices: Vec<DeviceSecrets>,
}

/// The secrets of one device.
#[derive(Serialize, Deserialize)]
struct DeviceSecrets {
    /// Index into the workload's devices.
    device: u32,
    password: Option<String>,
    /// The file of its certificate, for messages, and both certificate and key.
    certificate: Option<(PathBuf, String)>,
}

impl DeviceSecrets {
    /// Those of the devices of an order.
    fn take_from(order: &Order) -> Vec<DeviceSecrets> {
        let devices = order.assignment.devices.iter();
        let own = devices.filter_map(|device| {
            let identity = order.workload.devices[*device as usize].identity.as_ref()?;
            identity.has_secret().then(|| DeviceSecrets {
                device: *device,
                password: identity.password.as_ref().map(|p| p.reveal().to_owned()),
                certificate: identity
                    .certificate
                    .as_ref()
                    .map(|own| (own.file.clone(), own.pem.reveal().to_owned())),
            })
        });
        own.collect()
    }

    /// Gives the devices of a workload their secrets; an identity that is not there has none.
    fn give_all(secrets: Vec<DeviceSecrets>, workload: &mut Arc<Workload>) {
        if secrets.is_empty() {
            return;
        }
        let devices = &mut Arc::make_mut(workload).devices;
        for own in secrets {
            let device = devices.get_mut(own.device as usize);
            if let Some(identity) = device.and_then(|device| device.identity.as_mut()) {
                identity.password = own.password.map(Secret::new);
                identity.certificate = own.certificate.map(|(file, pem)| {
                    let pem = Secret::new(pem);
                    Arc::new(OwnCertificate { file, pem })
                });
            }
        }
    }
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
) -> Result<Box<dyn WorkerLink>, DriverError> {
    let (sender, commands) = channel();
    let number = order.assignment.worker;
    let allowance = Allowance::for_order(&order);
    let tell = move || {
        // Where a worker takes no more commands, the stream of its reports shows it.
        let _ = write_commands(output, &order, &secrets, &commands);
    };
    let theirs = peer.clone();
    let hear = move || {
        let gone = match hear(input, &outbox, &allowance) {
            Ok(()) => format!("worker {number} is gone: {}", theirs.ending()),
            Err(error) => {
                theirs.kill();
                let host = theirs
                    .host()
                    .map_or(String::new(), |host| format!(" ({host})"));
                format!("worker {number}{host} is gone: {error}")
            }
        };
        outbox.send(Report::Gone(gone));
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

fn write_commands(
    output: impl Write,
    order: &Order,
    secrets: &Secrets,
    commands: &Receiver<Command>,
) -> io::Result<()> {
    let mut output = BufWriter::new(output);
    frames::write(&mut output, order)?;
    let revealed = |secret: &Option<Secret>| secret.as_ref().map(|one| one.reveal().to_owned());
    let letter = Letter {
        password: revealed(&secrets.password),
        key_passphrase: revealed(&secrets.key_passphrase),
        devices: DeviceSecrets::take_from(order),
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
        frames::write_frame(output, &what(first))?;
        while let Ok(next) = from.try_recv() {
            frames::write_frame(output, &what(next))?;
        }
        output.flush()?;
    }
    Ok(())
}

/// Takes in a worker's reports until the stream ends.
fn hear(input: impl Read, outbox: &Outbox, allowance: &Allowance) -> Result<(), String> {
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
    let another = "it may be another program or version";
    while let Some(bytes) = frames::read_bytes(&mut input, allowance.longest()).map_err(strange)? {
        let size = allowance
            .check(&bytes)
            .map_err(|why| format!("{why}: {another}"))?;
        let held = unread
            .hold(size.max(size_of::<Sent>()), MOST_UNREAD)
            .ok_or_else(|| format!("its reports come faster than they are read, and {} MiB of them wait: {another}", MOST_UNREAD >> 20))?;
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

impl WorkerLink for StreamLink {
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

/// The worker's end: carries out an order from `input`, on `clock`, which has the conductor's time, and reports
/// to `output`, until the recording is given or the input ends.
///
/// # Errors
/// If the conductor does not read any more, or the input is not an order.
pub fn serve(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    driver_of: impl FnOnce(&str) -> Option<Arc<dyn Driver>>,
    prepare_thread: PrepareThread,
    clock: Clock,
) -> io::Result<()> {
    let (mut input, mut output) = (BufReader::new(input), BufWriter::new(output));
    frames::write(&mut output, &Greeting::of_this_program())?;
    let Some(mut order) = frames::read::<Order>(&mut input)? else {
        return Ok(());
    };
    let letter = frames::read::<Letter>(&mut input)?;
    let secrets = letter.map_or_else(Secrets::default, |letter| {
        DeviceSecrets::give_all(letter.devices, &mut order.workload);
        Secrets {
            password: letter.password.map(Secret::new),
            key_passphrase: letter.key_passphrase.map(Secret::new),
        }
    });
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
    match ready(&order, driver_of, prepare_thread, clock) {
        Ok(here) => here.run(order, secrets, commands, outbox),
        Err(why) => {
            outbox.send(Report::Failed(why.into()));
            drop(outbox);
        }
    }
    writer.join().unwrap_or(Ok(()))
}

fn ready(
    order: &Order,
    driver_of: impl FnOnce(&str) -> Option<Arc<dyn Driver>>,
    prepare_thread: PrepareThread,
    clock: Clock,
) -> Result<Here, DriverError> {
    let none = || format!("the workers' program has no driver `{}`", order.driver);
    let driver = driver_of(&order.driver).ok_or_else(|| DriverError::new(none()))?;
    let brief = Brief::new(order.workload.clone());
    let brief = brief.map_err(|error| DriverError::new(error.to_string()))?;
    // A process shares nothing with others: the order says it all.
    Ok(Here::new(brief, driver, [], clock, prepare_thread))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::allowance;

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
        frames::write(&mut greeting, &Greeting::of_this_program()).unwrap();
        let allowance = Allowance::for_order(&allowance::tests::order());
        for one in [Report::Closing, Report::Gone("x".repeat(100_000))] {
            let one = report(one);
            let size = allowance.check(&one[4..]).unwrap();
            let most = MOST_UNREAD / size.max(size_of::<Sent>());
            for (frames, fits) in [(most, true), (2 * most, false)] {
                let (sender, unread) = channel();
                let bytes = (frames * one.len()) as u64;
                let input = greeting.chain(Endless(one.clone(), 0).take(bytes));
                let outcome = hear(input, &Outbox::new(0, sender), &allowance);
                assert_eq!(outcome.is_ok(), fits, "{outcome:?}");
                let count = unread.try_iter().count();
                assert!((most..most + 3).contains(&count), "{count} of {most}");
            }
        }
    }
}
