//! A collector: one thread that reads from all brokers at the rhythm of the commits and acknowledges what is on disk.

mod brokers;
mod ending;
mod lead;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pubgauge_net::tls::Setup;
use serde::Serialize;

use crate::Error;
use crate::config::Config;
use crate::folder::Folder;
use crate::gather::Gather;
use crate::known::Known;
use crate::names::{LookUp, Names};
use crate::notice::Watch;
use crate::session::{Asked, InFlight};
use crate::status::Status;
use crate::storage::{Shared, Storage};
use crate::waker::Waker;
use lead::Loop;

/// When a collection ends by itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Until {
    /// Once at least so many messages are stored.
    pub messages: Option<u64>,
    /// After so long.
    pub time: Option<Duration>,
    /// Once nothing came for so long while all brokers were connected, or one of them was not for 10 s more.
    pub quiet: Option<Duration>,
}

/// What a collection came to.
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
    /// Brokers that were not connected at the end.
    pub out_of_reach: u64,
    /// Everything is in finished files; if not, the next start goes on with it.
    pub complete: bool,
    /// Finished files that are to be put to a store, which the next start goes on with.
    pub not_uploaded: u64,
}

/// A collector, before it begins.
pub struct Collector {
    config: Config,
    look_up: LookUp,
    tls: Option<Setup>,
    /// None where messages are acknowledged once they are uploaded.
    folder: Option<Arc<Folder>>,
    name: String,
    status: Arc<Status>,
    watch: Watch,
}

impl Collector {
    /// Takes the data folder and reads the certificates.
    ///
    /// # Errors
    /// A folder that cannot be used, certificates that cannot be read.
    pub fn new(config: Config, look_up: LookUp, watch: Watch) -> Result<Collector, Error> {
        let wants_tls = config
            .brokers
            .iter()
            .any(|broker| broker.encryption.is_on());
        let tls = wants_tls.then(|| {
            let host = |place: usize| config.brokers[place].host.as_str();
            Setup::new(&config.tls, &config.brokers, host, &[b"mqtt"])
        });
        let tls = tls.transpose().map_err(|error| Error {
            is_input: true,
            what: error.what,
            hint: error.hint,
        })?;
        let name = config.name.as_deref();
        let folder = config
            .to
            .as_ref()
            .map(|to| Folder::open(to, name))
            .transpose()?;
        let name = match (&folder, name) {
            (Some(folder), _) => folder.name.clone(),
            (None, name) => name.unwrap_or_default().to_owned(),
        };
        Ok(Collector {
            config,
            look_up,
            tls,
            folder: folder.map(Arc::new),
            name,
            status: Arc::default(),
            watch,
        })
    }

    /// Its figures.
    pub fn status(&self) -> Arc<Status> {
        self.status.clone()
    }

    /// Collects until `stop` is set, or as `until` says.
    ///
    /// # Errors
    /// If the log cannot be taken, or the system gives no descriptors.
    pub fn run(self, until: Until, stop: &AtomicBool) -> Result<Summary, Error> {
        let waker = Waker::new()?;
        let shared = Shared {
            status: self.status.clone(),
            watch: self.watch.clone(),
            waker: waker.clone(),
        };
        let config = &self.config;
        let (storage, in_flight) = self.storage(&shared)?;
        let names = Names::begin(
            config.brokers.clone(),
            config.resolve_every,
            self.look_up.clone(),
            waker.clone(),
        );
        let known = self
            .folder
            .as_ref()
            .map(|folder| Known::read(&folder.sessions()));
        let known = known.unwrap_or_default();
        let asked = Asked {
            client_id: self.name.clone(),
            version: config.version,
            qos: config.qos,
            filters: config.filters.clone(),
            dropped_filters: known
                .filters
                .iter()
                .filter(|old| !config.filters.contains(old))
                .cloned()
                .collect(),
            expiry_s: config.session_expiry_s,
            keep_alive_s: config.keep_alive_s,
            password: config.password.clone(),
            in_flight,
        };
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
            first: 0,
            began: now,
            heard_at: now,
            reached_at: now,
            collector: &self,
        };
        lead.recall(&known);
        lead.run(until, stop)?;
        Ok(lead.end())
    }

    /// Begins to store; and what a broker must allow, where messages are acknowledged once they are uploaded.
    fn storage(&self, shared: &Shared) -> Result<(Storage, Option<InFlight>), Error> {
        let config = &self.config;
        match (&self.folder, config.direct()) {
            (Some(folder), _) => Ok((Storage::open(shared, folder, config)?, None)),
            (None, Some(direct)) => {
                let (storage, put) = Storage::direct(shared, config, &self.name)?;
                Ok((storage, InFlight::of(direct, put)))
            }
            (None, None) => Err(Error::input(
                "a data folder is needed",
                "say with `to` which",
            )),
        }
    }
}
