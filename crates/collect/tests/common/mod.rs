//! Brokers, a publisher whose acknowledgements are known, and what a collector has stored.
#![allow(dead_code)] // Each program uses its own part.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pubgauge_collect::config::Given;
use pubgauge_collect::store::Credentials;
use pubgauge_collect::{
    Collector, Config, EndsAfter, Notice, Reloads, Status, Summary, Tap, files, names, verify,
};
use pubgauge_driver::{ClientId, Reliability, Settings, Target, TopicId};
use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_testbed::{Catalog, Running, Testbed};
use pubgauge_testing::{Rig, sequence};

/// Only against hanging.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until something holds.
///
/// # Panics
/// After two minutes, with what was waited for.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A private mosquitto, with its folder.
pub struct Broker {
    pub running: Running,
    _scratch: tempfile::TempDir,
}

impl Broker {
    /// One that keeps sessions on disk when it is stopped in order.
    pub fn start() -> Broker {
        Broker::variant("persistent")
    }

    /// One of the variants of the system's file.
    pub fn variant(variant: &str) -> Broker {
        let systems = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../systems");
        let catalog = Catalog::load(&[systems]).unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let mosquitto = catalog.get("mosquitto").unwrap();
        let testbed = Testbed::new().unwrap();
        let running = testbed
            .start(&mosquitto, Some(variant), scratch.path())
            .unwrap();
        Broker {
            running,
            _scratch: scratch,
        }
    }

    /// SCHEME://HOST:PORT.
    pub fn url(&self) -> String {
        self.running.target.endpoints[0].clone()
    }

    /// HOST:PORT.
    pub fn address(&self) -> String {
        self.url().trim_start_matches("mqtt://").to_owned()
    }
}

/// A port of the loopback address that hears whoever comes, keeps all that is sent, and answers nothing.
pub struct Listener {
    pub address: std::net::SocketAddr,
    heard: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Listener {
    pub fn start() -> Listener {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let heard = Arc::<Mutex<Vec<Vec<u8>>>>::default();
        let keep = heard.clone();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let mut bytes = vec![0; 65536];
                let got = std::io::Read::read(&mut stream, &mut bytes).unwrap_or(0);
                bytes.truncate(got);
                keep.lock().unwrap().push(bytes);
            }
        });
        Listener { address, heard }
    }

    /// The first bytes of each connection; nothing of one that sent nothing.
    pub fn heard(&self) -> Vec<Vec<u8>> {
        self.heard.lock().unwrap().clone()
    }

    /// How many connections have sent this.
    pub fn heard_of(&self, text: &str) -> usize {
        let has = |bytes: &&Vec<u8>| {
            bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes())
        };
        self.heard().iter().filter(has).count()
    }
}

/// A publisher of numbered messages.
pub struct Publisher {
    bench: Rig,
    client: ClientId,
    topics: BTreeMap<String, TopicId>,
    next: u64,
    /// The number before its first.
    first: u64,
    acknowledged: bool,
}

impl Publisher {
    /// `reliability` is the QoS to publish with.
    pub fn on(broker: &Broker, reliability: Reliability) -> Publisher {
        Publisher::at(broker.url(), reliability)
    }

    /// As [`Publisher::on`], by the broker's address.
    pub fn at(url: String, reliability: Reliability) -> Publisher {
        let settings = Settings {
            reliability: Some(reliability),
            ..Settings::default()
        };
        let target = Target {
            endpoints: vec![url],
            ..Target::default()
        };
        let mut bench = Rig::open(&MqttDriver, target, settings);
        let client = bench.named_publisher("publisher");
        Publisher {
            bench,
            client,
            topics: BTreeMap::new(),
            next: 1,
            first: 0,
            acknowledged: reliability != Reliability::AtMostOnce,
        }
    }

    /// The numbers of an earlier publisher are not given again.
    pub fn skip(&mut self, last: u64) {
        self.next = last + 1;
        self.first = last;
    }

    /// Publishes so many messages of `len` bytes to a topic, and returns their numbers once all are acknowledged, or written at QoS 0.
    pub fn publish(&mut self, topic: &str, count: u64, len: usize) -> BTreeSet<u64> {
        let id = match self.topics.get(topic) {
            Some(id) => *id,
            None => {
                let id = self.bench.fleet.advertise(self.client, topic).unwrap();
                self.topics.insert(topic.to_owned(), id);
                id
            }
        };
        let numbers = self.next..self.next + count;
        self.next += count;
        for number in numbers.clone() {
            self.bench.publish(self.client, id, number, len);
        }
        if self.acknowledged {
            let all = self.next - 1 - self.first;
            self.bench.until("all acknowledged", |seen| {
                seen.acknowledged.len() as u64 == all
            });
        } else {
            until("all written", || {
                self.bench.poll_for(Duration::from_millis(1));
                self.bench.fleet.unsettled() == 0
            });
        }
        numbers.collect()
    }
}

/// A configuration, from TOML without `brokers` and `to`.
pub fn config(data: &Path, brokers: &[String], rest: &str) -> Config {
    let file = data.with_extension("toml");
    std::fs::write(&file, text(data, brokers, rest)).unwrap();
    pubgauge_collect::config::read(&file, &Given::default()).unwrap()
}

/// The text of a collect file.
pub fn text(data: &Path, brokers: &[String], rest: &str) -> String {
    format!("brokers = {brokers:?}\nto = {data:?}\n{rest}\n")
}

/// A collector on a thread of this process, with what it tells.
pub struct Collecting {
    pub status: Arc<Status>,
    pub reloads: Reloads,
    notices: Arc<Mutex<Vec<Notice>>>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Summary>,
}

impl Collecting {
    pub fn begin(config: Config) -> Collecting {
        Collecting::with(config, names::system(), EndsAfter::default())
    }

    pub fn with(config: Config, look_up: names::LookUp, until: EndsAfter) -> Collecting {
        Collecting::run(config, look_up, until, |collector| collector)
    }

    /// Has `tap` called for each commit.
    pub fn tapped(config: Config, tap: Tap) -> Collecting {
        let with_tap = |collector: Collector| collector.with_tap(tap);
        Collecting::run(config, names::system(), EndsAfter::default(), with_tap)
    }

    fn run(
        config: Config,
        look_up: names::LookUp,
        until: EndsAfter,
        change: impl FnOnce(Collector) -> Collector,
    ) -> Collecting {
        let notices = Arc::<Mutex<Vec<Notice>>>::default();
        let told = notices.clone();
        let watch = move |notice: &Notice| told.lock().unwrap().push(notice.clone());
        let collector = change(Collector::new(config, look_up, Arc::new(watch)).unwrap());
        let (status, reloads) = (collector.status(), collector.reloads());
        let stop = Arc::<AtomicBool>::default();
        let flag = stop.clone();
        let thread = std::thread::spawn(move || collector.run(until, &flag).unwrap());
        Collecting {
            status,
            reloads,
            notices,
            stop,
            thread,
        }
    }

    pub fn notices(&self) -> Vec<Notice> {
        self.notices
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Waits until something was told that fits.
    #[track_caller]
    pub fn told(&self, what: &str, fits: impl Fn(&Notice) -> bool) -> Notice {
        let mut found = None;
        until(what, || {
            found = self.notices().into_iter().find(&fits);
            found.is_some()
        });
        found.unwrap()
    }

    /// Waits for so many connections.
    #[track_caller]
    pub fn connected(&self, count: usize) {
        until("connected", || {
            let connected = |notice: &&Notice| matches!(notice, Notice::Connected { .. });
            self.notices().iter().filter(connected).count() >= count
        });
    }

    /// Waits until so many messages are on disk.
    #[track_caller]
    pub fn stored(&self, count: u64) {
        until("stored", || self.status.stored.get() >= count);
    }

    /// Ends it in order.
    pub fn end(self) -> Summary {
        self.stop.store(true, Relaxed);
        self.thread.join().unwrap()
    }

    /// Waits for an end by itself.
    pub fn ended(self) -> Summary {
        self.thread.join().unwrap()
    }
}

/// A stored message.
#[derive(Clone, Debug)]
pub struct Stored {
    pub topic: String,
    pub qos: u8,
    pub dup: bool,
    pub payload: Vec<u8>,
}

/// All messages of the finished files of a data folder, in the order of names.
pub fn stored(data: &Path) -> Vec<Stored> {
    let mut all = Vec::new();
    for path in files::partition_files(data).unwrap() {
        files::read_columns(&path, |rows| {
            all.extend(rows.into_iter().map(|row| Stored {
                topic: row.topic.as_utf8().unwrap().to_owned(),
                qos: row.qos,
                dup: row.dup,
                payload: row.payload.data().to_vec(),
            }));
        })
        .unwrap();
    }
    all
}

/// How often each number is stored.
pub fn numbers(data: &Path) -> BTreeMap<u64, u32> {
    let mut numbers = BTreeMap::new();
    for message in stored(data) {
        *numbers.entry(sequence(&message.payload)).or_default() += 1;
    }
    numbers
}

/// How often each number is in the objects of a store.
pub fn numbers_there(objects: &BTreeMap<String, Vec<u8>>) -> BTreeMap<u64, u32> {
    let mut numbers = BTreeMap::new();
    for bytes in objects
        .iter()
        .filter(|(path, _)| path.ends_with(".parquet"))
        .map(|(_, bytes)| bytes)
    {
        files::read_columns_of(bytes.clone().into(), |rows| {
            for row in rows {
                *numbers.entry(sequence(row.payload.data())).or_default() += 1;
            }
        })
        .unwrap();
    }
    numbers
}

/// Looks at files that were moved with the credentials beside a data folder, if there are some, and in the store of the
/// collect file there.
pub fn look(data: &Path, fetch: bool) -> verify::Look {
    let mut credentials = Credentials::default();
    let file = data.with_extension("env");
    if file.exists() {
        credentials.add_file(&file).unwrap();
    }
    let file = data.with_extension("toml");
    let config = file
        .exists()
        .then(|| pubgauge_collect::config::read(&file, &Given::default()).unwrap());
    let upload = config.and_then(|config| config.upload);
    verify::Look {
        credentials,
        named: upload.map(|upload| upload.place).into_iter().collect(),
        fetch,
    }
}

/// Whether a message whose payload begins so is in the log or in a finished file.
pub fn holds(data: &Path, start: &[u8]) -> bool {
    let mut holds = false;
    let mut see = |payload: &[u8]| holds |= payload.starts_with(start);
    verify::verify_with(data, look(data, true), &mut |counted| see(counted.payload)).unwrap();
    holds
}

/// Asserts that everything in a data folder is as it was written, and that nothing is in the log alone.
#[track_caller]
pub fn all_is_well(data: &Path) -> verify::Verified {
    let found = verify::verify_with(data, look(data, true), &mut |_| {}).unwrap();
    assert_eq!(found.not_seen, []);
    assert_eq!(found.faults, [], "{found:#?}");
    assert_eq!(found.messages_in_log, 0);
    found
}

/// The folders of finished files.
pub fn finished(data: &Path) -> Vec<PathBuf> {
    files::partition_files(data).unwrap()
}
