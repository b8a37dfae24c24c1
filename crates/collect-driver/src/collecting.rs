//! One collector: how it begins, takes more filters and ends, and what it tells.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::Duration;

use pubgauge_collect::{
    Collector, Config, EndsAfter, Leave, Notice, Reloads, Status, Tap, Wire, folder, names,
};
use pubgauge_driver::{Change, ClientId, ClientSpec, DriverError, Subscription, WireBytes};

use crate::setup::Setup;
use crate::told::{Batch, CollectorReports, What};

/// How long a session may take to be given up.
const LEAVE_WITHIN: Duration = Duration::from_secs(5);

/// A client that is a collector.
pub(crate) struct Collecting {
    pub id: ClientId,
    /// Counts its collectors.
    pub run: u32,
    config: Config,
    /// Its session outlives the trial unless it is given up.
    is_durable: bool,
    /// It is to begin.
    wanted: bool,
    connected: bool,
    /// Subscriptions that the collector has not taken yet, and those without an answer.
    more: bool,
    unanswered: usize,
    leaving: bool,
    running: Option<Running>,
    /// Bytes of those before.
    wire: WireBytes,
}

struct Running {
    status: Arc<Status>,
    reloads: Reloads,
    stop: Arc<AtomicBool>,
    /// Whether it gives its session up at its end.
    leaves: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Collecting {
    pub(crate) fn new(
        id: ClientId,
        spec: &ClientSpec,
        setup: &Setup,
    ) -> Result<Collecting, DriverError> {
        if !folder::is_name(&spec.name) {
            let what = format!("{:?} cannot be a collector's name", spec.name);
            return Err(DriverError::new(what));
        }
        Ok(Collecting {
            id,
            run: 0,
            config: setup.config(&spec.name, spec.endpoint)?,
            is_durable: setup.is_durable(),
            wanted: true,
            connected: false,
            more: false,
            unanswered: 0,
            leaving: false,
            running: None,
            wire: WireBytes::default(),
        })
    }

    /// Subscribes, with the next [`Collecting::go_on`]; whether the answer is still to come.
    pub(crate) fn subscribe(&mut self, asked: &Subscription) -> bool {
        let filter = match &asked.group {
            Some(group) => format!("$share/{group}/{}", asked.filter),
            None => asked.filter.clone(),
        };
        if self.config.filters.contains(&filter) {
            return false;
        }
        self.config.filters.push(filter);
        self.unanswered += 1;
        self.more = true;
        true
    }

    /// Begins, or takes more filters, if that was asked for.
    pub(crate) fn go_on(
        &mut self,
        setup: &Setup,
        tell: &Sender<CollectorReports>,
    ) -> Result<(), DriverError> {
        if std::mem::take(&mut self.wanted) {
            // The one before holds the folder until it has ended.
            self.wait();
            std::fs::create_dir_all(&setup.folder).map_err(|error| {
                DriverError::new(format!("{}: {error}", setup.folder.display()))
            })?;
            self.running = Some(self.start(tell)?);
        }
        if self.connected
            && std::mem::take(&mut self.more)
            && let Some(running) = &self.running
        {
            running.reloads.replace(self.config.clone());
        }
        Ok(())
    }

    fn start(&mut self, tell: &Sender<CollectorReports>) -> Result<Running, DriverError> {
        self.run += 1;
        let (client, run) = (self.id, self.run);
        let tell = tell.clone();
        let say = move |what| {
            // The fleet may be gone.
            let _ = tell.send(CollectorReports { client, run, what });
        };
        let (notify, deliver) = (say.clone(), say.clone());
        let watch = move |notice: &Notice| notify(What::Notice(notice.clone()));
        let failed = |error: pubgauge_collect::Error| DriverError {
            hint: error.hint,
            ..DriverError::new(error.what)
        };
        let collector = Collector::new(self.config.clone(), names::system(), Arc::new(watch))
            .map_err(failed)?
            .with_tap(tap(deliver.clone()));
        let status = collector.status();
        let reloads = collector.reloads();
        let stop = Arc::<AtomicBool>::default();
        let leaves = Arc::<AtomicBool>::default();
        let (flag, flag_leaves) = (stop.clone(), leaves.clone());
        let config = self.config.clone();
        let thread = std::thread::spawn(move || {
            let outcome = collector.run(EndsAfter::default(), &flag);
            let outcome = outcome.and_then(|_| {
                if flag_leaves.load(Relaxed) {
                    give_session_up(config, deliver)?;
                }
                Ok(())
            });
            let outcome = outcome.map_err(|error| error.to_string());
            say(What::Ended(outcome));
        });
        Ok(Running {
            status,
            reloads,
            stop,
            leaves,
            thread,
        })
    }

    /// The changes of the client that a notice brings.
    pub(crate) fn apply_notice(&mut self, notice: Notice) -> Vec<Change> {
        if let Some(why) = failure(&notice) {
            let failed = Change::Failed(why.to_owned().into());
            // The engine says when it is tried again.
            self.give_up();
            return vec![failed];
        }
        match notice {
            Notice::Connected {
                session_present, ..
            } => {
                self.connected = true;
                let address = None;
                vec![Change::Connected {
                    session_present,
                    address,
                }]
            }
            Notice::Subscribed { .. } if !self.more => {
                vec![Change::Subscribed; std::mem::take(&mut self.unanswered)]
            }
            Notice::SubscriptionRefused { filter, why, .. } => {
                vec![Change::SubscriptionRefused(format!("{filter}: {why}"))]
            }
            Notice::NotReloaded { why } => vec![Change::SubscriptionRefused(why)],
            _ => Vec::new(),
        }
    }

    /// The changes of the client that its end brings.
    pub(crate) fn apply_end(&mut self, outcome: Result<(), String>) -> Vec<Change> {
        self.connected = false;
        match outcome {
            Err(why) => vec![Change::Failed(why.into())],
            Ok(()) if std::mem::take(&mut self.leaving) => vec![Change::Closed],
            Ok(()) => Vec::new(),
        }
    }

    /// Ends in order; whether its end is told.
    pub(crate) fn leave(&mut self) -> bool {
        self.wanted = false;
        let runs = |running: &&Running| !running.thread.is_finished();
        let Some(running) = self.running.as_ref().filter(runs) else {
            return false;
        };
        self.leaving = true;
        running.leaves.store(self.is_durable, Relaxed);
        running.stop.store(true, Relaxed);
        true
    }

    /// Ends, and nothing more is told of it but what it stores.
    pub(crate) fn give_up(&mut self) {
        (self.wanted, self.connected, self.leaving) = (false, false, false);
        if let Some(running) = &self.running {
            running.stop.store(true, Relaxed);
            self.run += 1;
        }
    }

    /// Begins again in the same folder, and with the same session if the broker still has it.
    pub(crate) fn begin_again(&mut self) {
        self.wanted = true;
        (self.connected, self.more, self.unanswered) = (false, false, 0);
        self.config.filters.clear();
    }

    /// Waits for the end of one that was told to end, which is bounded.
    pub(crate) fn wait(&mut self) {
        let Some(running) = self.running.take() else {
            return;
        };
        running.stop.store(true, Relaxed);
        // A panic there was printed already.
        let _ = running.thread.join();
        let Wire { sent, received } = &*running.status.wire;
        self.wire.sent += sent.get();
        self.wire.received += received.get();
    }

    /// Kernel's identifiers of the threads of its collector.
    pub(crate) fn threads(&self) -> Vec<u32> {
        let running = self.running.as_ref();
        running.map_or(Vec::new(), |running| running.status.threads.ids())
    }

    pub(crate) fn wire_bytes(&self) -> WireBytes {
        let mut bytes = self.wire;
        if let Some(running) = &self.running {
            bytes.sent += running.status.wire.sent.get();
            bytes.received += running.status.wire.received.get();
        }
        bytes
    }
}

/// Reports what is stored.
fn tap(deliver: impl Fn(What) + Send + 'static) -> Tap {
    Box::new(move |messages| {
        let batch = Batch::from_messages(messages);
        if !batch.is_empty() {
            deliver(What::Stored(batch));
        }
    })
}

/// Collects what the session holds, and has the broker drop it.
fn give_session_up(
    config: Config,
    deliver: impl Fn(What) + Send + 'static,
) -> Result<(), pubgauge_collect::Error> {
    let until = EndsAfter {
        leave: Some(Leave::AtOnce),
        time: Some(LEAVE_WITHIN),
        ..EndsAfter::default()
    };
    let collector = Collector::new(config, names::system(), Arc::new(|_| {}))?;
    let collector = collector.with_tap(tap(deliver));
    collector.run(until, &AtomicBool::new(false)).map(drop)
}

/// Whether a notice says that a connection cannot go on, and why.
fn failure(notice: &Notice) -> Option<&str> {
    match notice {
        Notice::Failed { why, .. } | Notice::NameNotFound { why, .. } => Some(why),
        _ => None,
    }
}
