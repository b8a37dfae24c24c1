//! A collector: one thread that reads from all brokers at the rhythm of the commits and acknowledges what is on disk.

mod brokers;
mod canaries;
mod certificates;
mod ending;
mod lead;
mod leaving;
mod pace;
mod reload;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::Error;
use crate::Message;
use crate::clock::Steps;
use crate::config::Config;
use crate::folder::{self, Folder};
use crate::gather::Gather;
use crate::known::Known;
use crate::names::{LookUp, Names};
use crate::notice::Watch;
use crate::session::{Asked, InFlight};
use crate::status::Status;
use crate::storage::{Shared, Storage};
pub(crate) use certificates::Certificates;
use lead::Loop;
use pace::Pace;
use pubgauge_net::waker::Waker;
pub use reload::Reloads;

/// How long giving up the sessions may take, where nothing is said.
const LEAVE_WITHIN: Duration = Duration::from_secs(600);

/// When a collector gives up its sessions, which it keeps otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// At the end of the collection, within the time of an orderly end.
    AtEnd,
    /// At once: nothing is subscribed to.
    AtOnce,
}

/// When a collection ends by itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct EndsAfter {
    /// Once at least so many messages are stored.
    pub messages: Option<u64>,
    /// After so long.
    pub time: Option<Duration>,
    /// Once nothing came for so long while all brokers were connected, or one of them was not for 10 s more.
    pub quiet: Option<Duration>,
    /// The sessions are given up then; `time` bounds that if it is done at once.
    pub leave: Option<Leave>,
}

/// The outcome of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Messages stored.
    pub messages: u64,
    /// Messages whose acknowledgement was handed to the connection that they came on.
    pub acknowledged: u64,
    /// Finished files.
    pub files: u64,
    /// Messages in the log that cannot be read.
    pub damaged: u64,
    /// Messages that cannot be stored with the others.
    pub dead_letters: u64,
    /// Brokers that were not connected at the end.
    pub out_of_reach: u64,
    /// Brokers that were never connected.
    pub never_connected: u64,
    /// Brokers that may still have a session, where the sessions were to be given up.
    pub not_left: u64,
    /// Messages of the collector's own that a broker has acknowledged and lost.
    pub canaries_lost: u64,
    /// Everything is in finished files; if not, the next start goes on with it.
    pub complete: bool,
    /// Finished files that are to be put to a store, which the next start goes on with.
    pub not_uploaded: u64,
    /// Those of them of whose names the store has other objects, which are not replaced.
    pub conflicts: u64,
}

/// Sees messages of a commit, once they are stored.
pub type Tap = Box<dyn FnMut(&mut dyn Iterator<Item = Message<'_>>) + Send>;

/// A collector, before it begins.
pub struct Collector {
    config: Config,
    look_up: LookUp,
    certificates: Certificates,
    /// None where messages are acknowledged once they are uploaded.
    folder: Option<Arc<Folder>>,
    name: String,
    status: Arc<Status>,
    watch: Watch,
    reloads: Reloads,
    tap: Option<Tap>,
}

impl Collector {
    /// Takes the data folder and reads the certificates.
    ///
    /// # Errors
    /// A folder that cannot be used, certificates that cannot be read.
    pub fn new(config: Config, look_up: LookUp, watch: Watch) -> Result<Collector, Error> {
        let certificates = Certificates::read(&config.brokers)?;
        let name = config.name.as_deref();
        let folder = config
            .to
            .as_ref()
            .map(|to| Folder::open(to, name, config.access))
            .transpose()?;
        let name = match (&folder, name) {
            (Some(folder), _) => folder.name.clone(),
            (None, name) => name.unwrap_or_default().to_owned(),
        };
        Ok(Collector {
            config,
            look_up,
            certificates,
            folder: folder.map(Arc::new),
            name,
            status: Arc::default(),
            watch,
            reloads: Reloads::default(),
            tap: None,
        })
    }

    /// Its figures.
    pub fn status(&self) -> Arc<Status> {
        self.status.clone()
    }

    /// Takes other configurations while it runs.
    pub fn reloads(&self) -> Reloads {
        self.reloads.clone()
    }

    /// Has `tap` called by the collector's loop for each commit.
    pub fn with_tap(mut self, tap: Tap) -> Collector {
        self.tap = Some(tap);
        self
    }

    /// Collects until `stop` is set, or as `until` says.
    ///
    /// # Errors
    /// If the log cannot be taken, or the system gives no descriptors.
    pub fn run(self, until: EndsAfter, stop: &AtomicBool) -> Result<Summary, Error> {
        self.status.threads.note_current();
        let waker = Waker::new().map_err(|error| Error::failed(error.to_string()))?;
        let shared = Shared {
            status: self.status.clone(),
            watch: self.watch.clone(),
            waker: waker.clone(),
        };
        let known = match &self.folder {
            Some(folder) => Known::read(folder.collectors_folder()).map_err(|error| {
                folder::unusable(folder.collectors_folder().display_path(), &error)
            })?,
            None => Known::default(),
        };
        let (storage, in_flight) = self.storage(&shared)?;
        let names = names(&self.config, &self.look_up, &waker);
        let asked = session_requests(&self.config, &self.name, &known.filters, in_flight);
        let now = Instant::now();
        let mut lead = Loop {
            gather: Gather::new(storage.mark, storage.next_seq),
            storage,
            names,
            asked,
            waker,
            peers: Vec::new(),
            next_peer: 0,
            tick: None,
            pace: Pace::new(),
            first: 0,
            began: now,
            heard_at: now,
            reached_at: now,
            steps: Steps::default(),
            is_leaving: false,
            collector: self,
        };
        lead.recall(&known);
        let leaves_at_once = until.leave == Some(Leave::AtOnce);
        if !leaves_at_once {
            lead.run(until, stop)?;
        }
        match until.leave {
            None => {}
            // Leaving goes on, whatever has ended the collection.
            Some(Leave::AtEnd) => lead.leave(lead.collector.config.stop_within, None)?,
            Some(Leave::AtOnce) => lead.leave(until.time.unwrap_or(LEAVE_WITHIN), Some(stop))?,
        }
        Ok(lead.finish())
    }

    /// Begins to store; and what a broker must allow, where messages are acknowledged once they are uploaded.
    fn storage(&self, shared: &Shared) -> Result<(Storage, Option<InFlight>), Error> {
        let config = &self.config;
        match (&self.folder, config.direct()) {
            (Some(folder), _) => Ok((Storage::open(shared, folder, config)?, None)),
            (None, Some(direct)) => {
                let (storage, put) = Storage::direct(shared, config, &self.name)?;
                Ok((storage, InFlight::for_direct(direct, put)))
            }
            (None, None) => Err(Error::input(
                "a data folder is needed",
                "say with `to` which",
            )),
        }
    }
}

fn names(config: &Config, look_up: &LookUp, waker: &Waker) -> Names {
    let endpoints = config.brokers.iter().map(|broker| broker.endpoint.clone());
    Names::begin(
        endpoints.collect(),
        config.resolve_every,
        look_up.clone(),
        waker.clone(),
    )
}

/// Subscriptions and limits of sessions; `before` are filters that they may be subscribed to.
fn session_requests(
    config: &Config,
    client_id: &str,
    before: &[String],
    in_flight: Option<InFlight>,
) -> Asked {
    let canary = config.canary.as_ref();
    let own_filter = canary.map(|canary| canary.filter_of(client_id, config.group.as_deref()));
    let mut filters = config.filters.clone();
    filters.extend(own_filter.clone());
    let dropped = before.iter().filter(|old| !filters.contains(old));
    Asked {
        client_id: client_id.to_owned(),
        version: config.version,
        qos: config.qos,
        dropped_filters: dropped.cloned().collect(),
        filters,
        own_filter,
        expiry_s: config.session_expiry_s,
        keep_alive_s: config.keep_alive_s,
        largest_message: config.largest_message,
        announces_largest: config.announces_largest,
        in_flight,
    }
}
