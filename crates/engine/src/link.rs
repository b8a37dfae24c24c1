//! The link between the conductor and a worker: plain, versioned data in both directions.
//!
//! A [`WorkerSite`] starts workers: in this process ([`Here`]), or other processes. Wherever a worker is, it
//! gets an [`Order`], then [`Command`]s, and answers with [`Report`]s.

pub(crate) mod allowance;
pub mod frames;
pub mod stream;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use pubgauge_driver::{
    Attempt, Clock, Driver, DriverError, Filler, Nanos, Secret, Settings, Target, Tls,
};
use pubgauge_workload::Workload;
use serde::{Deserialize, Serialize};

use crate::assignment::{Assignment, Brief, Role};
use crate::context::Context;
pub use crate::reports::{Command, Outbox};
use crate::reports::{Report, Sent};
use crate::worker::Worker;

/// Version of the link's protocol; both sides must have the same.
pub const VERSION: u32 = 17;

/// The assignment of a worker, and its trial.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    pub version: u32,
    /// The worker's part.
    pub assignment: Assignment,
    /// The workload, all of it: streams are numbered over the whole. Secrets of its devices travel apart.
    pub workload: Arc<Workload>,
    /// Name of the driver.
    pub driver: String,
    /// The system. Its password travels apart, and state shared by fleets of one process not at all.
    pub target: Target,
    /// The application's demands: the trial's own settings first.
    pub settings: Arc<[Settings]>,
    /// Origin of the times in headers, on the clock that all workers share, ns.
    pub epoch: Nanos,
    /// For each stream, how many workers have parties that hear it.
    pub spread: Arc<[u16]>,
    /// Groups with members on several workers, as indices into the audience's parties.
    pub apart: Arc<[u32]>,
}

/// The secrets of a trial, which an order must not contain.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    /// The password of the system.
    pub password: Option<Secret>,
    /// The passphrase of the clients' private key.
    pub key_passphrase: Option<Secret>,
}

impl Secrets {
    /// Those of a system.
    pub fn take_from(target: &Target) -> Secrets {
        Secrets {
            password: target.password.clone(),
            key_passphrase: target.tls.as_ref().and_then(|tls| tls.passphrase.clone()),
        }
    }

    /// The system with its secrets.
    fn given_to(self, target: Target) -> Target {
        Target {
            password: self.password,
            tls: target.tls.map(|tls| Tls {
                passphrase: self.key_passphrase,
                ..tls
            }),
            ..target
        }
    }
}

/// The conductor's end of a link. A worker whose link is dropped ends.
pub trait WorkerLink {
    /// Sends the worker a command. To a worker that is gone it is lost; the conductor learns of that
    /// from [`Report::Gone`] or from its silence.
    fn send(&mut self, command: Command);

    /// One turn of a worker that has no thread of its own.
    fn step(&mut self) {}

    /// Waits for the end of a worker that has given its recording, or is gone.
    fn join(&mut self) {}

    /// The host that the worker is on, in words; `None` if that is this one.
    fn host(&self) -> Option<String> {
        None
    }
}

/// Somewhere workers can be started.
pub trait WorkerSite: Send + Sync {
    /// Starts a worker. What goes wrong later arrives as a report.
    ///
    /// # Errors
    /// Why it cannot be started.
    fn start(
        &self,
        order: Order,
        secrets: Secrets,
        outbox: Outbox,
    ) -> Result<Box<dyn WorkerLink>, DriverError>;

    /// How long before something begins workers must be told, so that all know in time, ns; 20 ms by
    /// default.
    fn lead(&self) -> Nanos {
        20_000_000
    }

    /// How long before it begins a burst that waits for the one before is announced, ns; 12 ms by default, as a worker
    /// looks for commands at least every 10 ms. One that is told too late would seem to be served late.
    fn notice(&self) -> Nanos {
        12_000_000
    }

    /// The workers run on the conductor's thread.
    fn is_inline(&self) -> bool {
        false
    }

    /// The workers run on this host: their threads can be looked at here.
    fn is_here(&self) -> bool {
        true
    }
}

/// This process: each worker on a thread of its own in real time; in simulated time the one worker on the
/// conductor's thread.
#[derive(Clone)]
pub struct Here {
    brief: Arc<Brief>,
    driver: Arc<dyn Driver>,
    /// Broker by broker: what an order cannot say of them.
    targets: Arc<[Target]>,
    clock: Clock,
    filler: Arc<Filler>,
    prepare_thread: PrepareThread,
}

/// Called on each worker's thread before it opens its fleet: timer slack, processor, priority as the
/// assignment says.
pub type PrepareThread = fn(&Assignment) -> Result<(), DriverError>;

impl Here {
    /// A place for the workers of one trial, whose system has these brokers.
    pub fn new(
        brief: Arc<Brief>,
        driver: Arc<dyn Driver>,
        targets: impl Into<Arc<[Target]>>,
        clock: Clock,
        prepare_thread: PrepareThread,
    ) -> Self {
        let filler = Arc::new(Filler::new(brief.max_payload));
        Here {
            brief,
            driver,
            targets: targets.into(),
            clock,
            filler,
            prepare_thread,
        }
    }

    fn worker(
        self,
        order: Order,
        secrets: Secrets,
        commands: Receiver<Command>,
        outbox: Outbox,
    ) -> Result<Worker, DriverError> {
        let known = self.targets.get(order.assignment.broker as usize);
        let target = Target {
            shared: known.and_then(|target| target.shared.clone()),
            ..secrets.given_to(order.target)
        };
        let context = Context {
            brief: self.brief,
            driver: self.driver,
            target,
            settings: order.settings,
            clock: self.clock,
            epoch: order.epoch,
            filler: self.filler,
            spread: order.spread,
            apart: order.apart,
        };
        Worker::new(order.assignment, context, commands, outbox)
    }

    /// Runs a worker on the calling thread until it has given its recording or its link is dropped.
    pub fn run(self, order: Order, secrets: Secrets, commands: Receiver<Command>, outbox: Outbox) {
        let early = (self.prepare_thread)(&order.assignment);
        match self.worker(order, secrets, commands, outbox.clone()) {
            Ok(mut worker) => {
                if let Err(error) = early {
                    outbox.send(Report::Failed(error.into()));
                }
                while worker.step() {}
            }
            Err(error) => {
                outbox.send(Report::Failed(error.into()));
            }
        }
    }
}

impl WorkerSite for Here {
    fn start(
        &self,
        order: Order,
        secrets: Secrets,
        outbox: Outbox,
    ) -> Result<Box<dyn WorkerLink>, DriverError> {
        let (sender, commands) = channel();
        let here = self.clone();
        if self.is_inline() {
            let worker = here.worker(order, secrets, commands, outbox)?;
            return Ok(Box::new(InlineLink { sender, worker }));
        }
        let side = match order.assignment.role {
            Role::Publishers => "pub",
            Role::Subscribers => "sub",
        };
        let name = format!("{side}-{}", order.assignment.worker);
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            // A worker that ends without a recording is missed: also after a panic.
            let _gone = Gone(outbox.clone());
            here.run(order, secrets, commands, outbox);
        });
        let thread = thread.map_err(|error| {
            DriverError::of_io("cannot start a worker thread", Attempt::Start, &error)
        })?;
        Ok(Box::new(ThreadLink {
            sender,
            thread: Some(thread),
        }))
    }

    fn is_inline(&self) -> bool {
        matches!(self.clock, Clock::Virtual(_))
    }
}

/// Says that a worker is gone when it is dropped.
struct Gone(Outbox);

impl Drop for Gone {
    fn drop(&mut self) {
        let why = if std::thread::panicking() {
            "a worker ended in a panic; this is a defect of pubgauge"
        } else {
            "a worker ended before its time"
        };
        self.0.send(Report::Gone(why.into()));
    }
}

struct ThreadLink {
    sender: Sender<Command>,
    thread: Option<JoinHandle<()>>,
}

impl WorkerLink for ThreadLink {
    fn send(&mut self, command: Command) {
        // A worker that is gone has reported that.
        let _ = self.sender.send(command);
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic has been reported.
            let _ = thread.join();
        }
    }
}

struct InlineLink {
    sender: Sender<Command>,
    worker: Worker,
}

impl WorkerLink for InlineLink {
    fn send(&mut self, command: Command) {
        let _ = self.sender.send(command);
    }

    fn step(&mut self) {
        self.worker.step();
    }
}

/// Another place, with all orders, commands and reports encoded and decoded on the way, as between
/// processes.
pub struct Encoded(pub Arc<dyn WorkerSite>);

impl WorkerSite for Encoded {
    fn start(
        &self,
        order: Order,
        secrets: Secrets,
        outbox: Outbox,
    ) -> Result<Box<dyn WorkerLink>, DriverError> {
        let (sender, reports) = channel();
        let inner = Outbox::new(order.assignment.worker, sender);
        let again = |error: std::io::Error| DriverError::new(error.to_string());
        let order = frames::encode_and_decode(&order).map_err(again)?;
        let link = self.0.start(order, secrets, inner)?;
        Ok(Box::new(EncodedLink {
            link,
            reports,
            outbox,
        }))
    }

    fn lead(&self) -> Nanos {
        self.0.lead()
    }

    fn notice(&self) -> Nanos {
        self.0.notice()
    }

    fn is_inline(&self) -> bool {
        self.0.is_inline()
    }
}

struct EncodedLink {
    link: Box<dyn WorkerLink>,
    reports: Receiver<Sent>,
    outbox: Outbox,
}

impl EncodedLink {
    fn pass_on(&mut self) {
        while let Ok(sent) = self.reports.try_recv() {
            let report = match frames::encode_and_decode(&sent.report) {
                Ok(report) => report,
                Err(error) => Report::Gone(error.to_string()),
            };
            self.outbox.send(report);
        }
    }
}

impl WorkerLink for EncodedLink {
    fn send(&mut self, command: Command) {
        match frames::encode_and_decode(&command) {
            Ok(command) => self.link.send(command),
            Err(error) => {
                self.outbox.send(Report::Gone(error.to_string()));
            }
        }
    }

    fn step(&mut self) {
        self.link.step();
        self.pass_on();
    }

    fn join(&mut self) {
        self.link.join();
        self.pass_on();
    }
}
