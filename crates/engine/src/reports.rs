//! Commands of the conductor and reports of workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::Sender;

use pubgauge_driver::{Failure, Nanos};
use serde::{Deserialize, Serialize};

use crate::groups::Got;
use crate::live::LiveCounters;
use crate::recording::Recording;
use crate::times::Interval;
use crate::timetable::Timetable;

/// How much was sent of some streams: (stream, [measured messages, warm-up messages]).
pub type Positions = Vec<(u32, [u32; 2])>;

/// A command of the conductor to a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Command {
    /// Connect all clients and subscribe. Subscribers of brokerless systems get the addresses of
    /// the publishers: (device, address).
    Connect(Vec<(u32, String)>),
    /// Where every client can be reached, now that all are connected; for those that publish and
    /// subscribe in a brokerless system: (device, address).
    Peers(Vec<(u32, String)>),
    /// Send a round of sentinels: one on every stream.
    Prove,
    /// Tell with [`Report::Unproven`] on which streams a party here has heard no sentinel: so many at most, first those from
    /// this number on: (number, most).
    TellUnproven(u32, u32),
    /// Send a sentinel on each of these streams.
    ProveAgain(Vec<u32>),
    /// Run by this timetable.
    Run(Timetable),
    /// The measurement ends, or ended, at this time: send nothing that is due later.
    Stop(Nanos),
    /// Sentinels from this time on close their streams: send a round of them. `Prove` has another sent.
    CloseStreams(Nanos),
    /// The messages sent on these streams so far no longer count as under way.
    GiveUp(Positions),
    /// More tokens of a flow's window, see `window`: (flow, tokens).
    Grant(u32, u64),
    /// The next burst of a flow whose bursts wait for one another begins: (flow, when).
    Burst(u32, Nanos),
    /// Connections are about to be closed: after the answer ([`Report::Closing`]) one that ends does
    /// not count as lost.
    Closing,
    /// End all connections by this time, and give the recording.
    Finish(Nanos),
}

/// A report of a worker to the conductor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Report {
    /// It has started: its process, and the threads that work for it, library threads included.
    Hello { process: u32, threads: Vec<u32> },
    /// Its counts: some hundred times a second while they change, and at least twice a second.
    Counters(Box<LiveCounters>),
    /// Groups with members on several workers that a sentinel has reached here: (party, stream).
    Proven(Vec<(u32, u32)>),
    /// Streams on which a party here has heard no sentinel; the answer to [`Command::TellUnproven`].
    Unproven(Vec<u32>),
    /// The deliveries to members of such groups.
    Got(Vec<Got>),
    /// Tokens of a window that come back: (flow, tokens).
    Passed(u32, u64),
    /// A burst is handed over, of a flow whose bursts wait for one another: (flow, tokens that it
    /// took).
    BurstSent(u32, u64),
    /// A record's histogram.
    Interval(Interval),
    /// All clients are connected and subscribed; the addresses under which publishers can be
    /// reached.
    Ready(Vec<(u32, String)>),
    /// Starting, connecting, subscribing or the fleet has failed for good.
    Failed(Failure),
    /// A flow's window has been full, or its next burst has waited, without anything coming back: (for
    /// how long, ns; what was sent of the flow).
    Stuck(Nanos, Positions),
    /// It knows that connections are about to be closed.
    Closing,
    /// Everything it saw.
    Recording(Box<Recording>),
    /// It is gone, and why; ignored after the recording.
    Gone(String),
}

/// A report on its way to the conductor.
#[derive(Debug)]
pub struct Sent {
    /// The worker's number.
    pub worker: u32,
    /// The content of the report.
    pub report: Report,
    /// Its share of the bytes that the worker may have unread; `None` for a worker of this program, which has no such bound.
    pub held: Option<HeldBytes>,
}

/// Bytes of one worker's reports that were not read yet.
#[derive(Clone, Debug, Default)]
pub struct Unread(Arc<AtomicUsize>);

/// Bytes of [`Unread`], until this is dropped.
#[derive(Debug)]
pub struct HeldBytes(Unread, usize);

impl Unread {
    /// Adds so many bytes; `None` if more than `most` are there already.
    pub fn hold(&self, bytes: usize, most: usize) -> Option<HeldBytes> {
        if self.0.load(Relaxed) > most {
            return None;
        }
        self.0.fetch_add(bytes, Relaxed);
        Some(HeldBytes(self.clone(), bytes))
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.0.0.fetch_sub(self.1, Relaxed);
    }
}

/// Where a worker's reports go. The conductor knows them by the worker's number.
#[derive(Clone, Debug)]
pub struct Outbox {
    worker: u32,
    sender: Sender<Sent>,
}

impl Outbox {
    /// Reports of worker `worker` to `sender`.
    pub fn new(worker: u32, sender: Sender<Sent>) -> Self {
        Outbox { worker, sender }
    }

    /// Reports; false if the conductor no longer takes reports.
    pub fn send(&self, report: Report) -> bool {
        self.pass_on(report, None)
    }

    /// As [`Outbox::send`]; `held` is given back when the report is read.
    pub fn pass_on(&self, report: Report, held: Option<HeldBytes>) -> bool {
        let worker = self.worker;
        let sent = Sent {
            worker,
            report,
            held,
        };
        self.sender.send(sent).is_ok()
    }
}
