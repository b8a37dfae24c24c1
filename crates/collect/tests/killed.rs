//! Collectors and brokers that are killed at random moments: what a publisher has an acknowledgement for is stored.

mod common;
#[path = "common/disk.rs"]
mod disk;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use common::{Broker, Publisher, all_is_well, numbers, text, until};
use pubgauge_collect::config::Given;
use pubgauge_collect::{Collector, EndsAfter, Notice, names, verify};
use pubgauge_driver::Reliability;
#[cfg(feature = "upload")]
use pubgauge_testing::object_store::ObjectStore;
use pubgauge_testing::sequence;

/// The collect file of a process that is to be a collector. It tells its notices in the file beside it that ends in
/// `.told`, and ends in order once there is one that ends in `.stop`.
const COLLECT: &str = "PUBGAUGE_TEST_COLLECT";

fn main() -> ExitCode {
    if let Some(file) = std::env::var_os(COLLECT) {
        collect(Path::new(&file));
        return ExitCode::SUCCESS;
    }
    pubgauge_testing::own_main(&[
        ("acknowledged_messages_are_there_after_kills", kills),
        #[cfg(feature = "upload")]
        (
            "uploads::acknowledged_messages_are_there_after_kills",
            moved_kills,
        ),
        #[cfg(feature = "upload")]
        (
            "direct::acknowledged_messages_are_there_after_kills",
            direct_kills,
        ),
        (
            "messages_of_two_brokers_are_there_after_kills_of_a_group_and_of_brokers",
            group_kills,
        ),
        (
            "long::acknowledged_messages_are_there_after_100_kills",
            many_kills,
        ),
        (
            "long::messages_of_two_brokers_are_there_after_100_kills_of_a_group_and_of_brokers",
            many_group_kills,
        ),
        (
            "long::acknowledged_messages_are_there_after_power_losses",
            power_losses,
        ),
    ])
}

fn collect(file: &Path) {
    let told = OpenOptions::new()
        .create(true)
        .append(true)
        .open(file.with_extension("told"))
        .unwrap();
    let watch = move |notice: &Notice| {
        // In one write, so that a kill cuts no line.
        let line = format!("{}\n", serde_json::to_string(notice).unwrap());
        (&told).write_all(line.as_bytes()).unwrap();
    };
    let config = pubgauge_collect::config::read(file, &Given::default()).unwrap();
    let collector = Collector::new(config, names::system(), Arc::new(watch)).unwrap();
    let stop = Arc::<AtomicBool>::default();
    let (flag, stop_file) = (stop.clone(), file.with_extension("stop"));
    std::thread::spawn(move || {
        while !stop_file.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        flag.store(true, Relaxed);
    });
    collector.run(EndsAfter::default(), &stop).unwrap();
}

/// A collector in a process of its own, killed when it is dropped.
struct Process {
    child: Child,
    file: PathBuf,
}

impl Process {
    fn start(file: &Path) -> Process {
        let child = Command::new(std::env::current_exe().unwrap())
            .env(COLLECT, file)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Process {
            child,
            file: file.to_owned(),
        }
    }

    /// How often an event was told, over all processes of this file.
    fn told(&self, event: &str) -> usize {
        let told = std::fs::read_to_string(self.file.with_extension("told")).unwrap_or_default();
        told.matches(&format!("\"event\":\"{event}\"")).count()
    }

    /// Stops it where it is.
    fn pause(&self) {
        // SAFETY: the process is ours and has not been waited for, so its id is still its own.
        assert_eq!(
            unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGSTOP) },
            0
        );
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it in order.
    fn end(mut self) {
        std::fs::write(self.file.with_extension("stop"), "").unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A number from 0 to below `below`, the same in each run for the same `turn`.
fn drawn(turn: u64, below: u64) -> u64 {
    let mut z = turn.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (z ^ (z >> 27)) % below
}

fn kills() {
    killed(12, 1500, Kept::Here);
}

fn many_kills() {
    killed(100, 3000, Kept::Here);
}

fn group_kills() {
    group_killed(8, 300);
}

fn many_group_kills() {
    group_killed(100, 1000);
}

#[cfg(feature = "upload")]
fn moved_kills() {
    killed(12, 1500, Kept::Moved(ObjectStore::start()));
}

#[cfg(feature = "upload")]
fn direct_kills() {
    killed(12, 1500, Kept::There(ObjectStore::start()));
}

/// Where messages are kept.
enum Kept {
    /// In the data folder.
    Here,
    /// In the data folder, until their files are in a store.
    #[cfg(feature = "upload")]
    Moved(ObjectStore),
    /// In a store alone.
    #[cfg(feature = "upload")]
    There(ObjectStore),
}

impl Kept {
    /// The collect file.
    fn text(&self, data: &Path, broker: &str) -> String {
        let brokers = [broker.to_owned()];
        match self {
            Kept::Here => text(data, &brokers, REST),
            #[cfg(feature = "upload")]
            Kept::Moved(store) => {
                let upload = store.upload("s3://fleet/raw", &data.with_extension("env"));
                text(
                    data,
                    &brokers,
                    &format!("stop-within = \"60s\"\n{REST}\n{upload}"),
                )
            }
            #[cfg(feature = "upload")]
            Kept::There(store) => {
                let upload = store.upload("s3://fleet/raw", &data.with_extension("env"));
                format!(
                    "brokers = {brokers:?}\ntopics = [\"t/#\"]\nname = \"c\"\n{upload}acknowledge = \"uploaded\"\nevery = \"20ms\"\nrate = \"1k/s\"\n"
                )
            }
        }
    }

    /// Whether a message of this number is stored.
    fn holds(&self, data: &Path, number: u64) -> bool {
        match self {
            #[cfg(feature = "upload")]
            Kept::There(store) => common::numbers_there(&store.objects()).contains_key(&number),
            _ => common::holds(data, &number.to_le_bytes()),
        }
    }

    /// How often each number is stored, after an orderly end; all is where it belongs, as it was written.
    fn numbers(&self, data: &Path) -> BTreeMap<u64, u32> {
        let stored = match self {
            Kept::Here => numbers(data),
            #[cfg(feature = "upload")]
            Kept::Moved(store) => {
                assert_eq!(common::finished(data).len(), 0);
                common::numbers_there(&store.objects())
            }
            #[cfg(feature = "upload")]
            Kept::There(store) => return common::numbers_there(&store.objects()),
        };
        let copies: u64 = stored.values().map(|copies| u64::from(*copies)).sum();
        assert_eq!(all_is_well(data).messages, copies);
        stored
    }
}

const REST: &str = "topics = [\"t/#\"]\nname = \"c\"\n[log]\ncommit-every = \"1ms\"\nsegment = \"1MiB\"\nsegment-age = \"1s\"\nreserve = \"1MiB\"\n[session]\nkeep-alive = \"5s\"";

/// As [`killed`]; what ends on the way is the power of the disk that the collector stores on. Takes root.
fn power_losses() {
    let place = tempfile::tempdir().unwrap();
    let mut disk = disk::Loop::new(place.path(), 256);
    let data = disk.folder.join("data");
    let broker = Broker::start();
    let file = place.path().join("collect.toml");
    std::fs::write(&file, text(&data, &[broker.url()], REST)).unwrap();
    let mut collector = Process::start(&file);
    until("the first session", || collector.told("connected") == 1);
    let mut publisher = Publisher::on(&broker, Reliability::AtLeastOnce);
    let mut acknowledged = BTreeSet::new();
    for turn in 0..25 {
        acknowledged.extend(publisher.publish("t/a", 1000, 500));
        std::thread::sleep(Duration::from_micros(drawn(turn, 20_000)));
        collector.pause();
        disk.lose_power();
        collector.kill();
        disk.mount_again();
        let connected = collector.told("connected");
        collector = Process::start(&file);
        until("connected again", || {
            collector.told("connected") > connected
        });
    }
    let last = *acknowledged.last().unwrap();
    acknowledged.extend(publisher.publish("t/end", 1, 100));
    until("all is stored", || {
        common::holds(&data, &(last + 1).to_le_bytes())
    });
    collector.end();
    all_is_well(&data);
    assert_eq!(
        numbers(&data).into_keys().collect::<BTreeSet<_>>(),
        acknowledged
    );
}

/// In each turn, messages are published while the collector is away, which the broker saves; then the collector
/// drains them, and it or the broker is killed on the way. A broker that is killed has sent all that it had to again.
fn killed(turns: u64, count: u64, kept: Kept) {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let mut broker = Broker::start();
    // Where `common::look` finds the store.
    let file = data.with_extension("toml");
    std::fs::write(&file, kept.text(&data, &broker.url())).unwrap();
    let mut acknowledged = BTreeSet::new();
    let mut base = 0;
    let mut collector = Process::start(&file);
    until("the first session", || collector.told("connected") == 1);
    for turn in 0..turns {
        collector.kill();
        let mut publisher = Publisher::on(&broker, Reliability::AtLeastOnce);
        publisher.skip(base);
        acknowledged.extend(publisher.publish("t/a", count, 100));
        base += count;
        drop(publisher);
        // Saves what it holds.
        broker.running.restart().unwrap();
        let connected = collector.told("connected");
        collector = Process::start(&file);
        until("connected again", || {
            collector.told("connected") > connected
        });
        std::thread::sleep(Duration::from_micros(drawn(turn, 60_000)));
        if turn % 4 == 3 {
            broker.running.kill();
            broker.running.restart().unwrap();
        }
    }
    // The last turn's messages are drained.
    let last = *acknowledged.last().unwrap();
    let mut publisher = Publisher::on(&broker, Reliability::AtLeastOnce);
    publisher.skip(last);
    acknowledged.extend(publisher.publish("t/end", 1, 100));
    // It is the last that the broker sends.
    until("all is stored", || kept.holds(&data, last + 1));
    collector.end();
    nothing_is_lost(turns, &acknowledged, &kept.numbers(&data));
}

/// All that was acknowledged is stored, and nothing else.
#[track_caller]
fn nothing_is_lost(turns: u64, acknowledged: &BTreeSet<u64>, stored: &BTreeMap<u64, u32>) {
    let lost: Vec<u64> = acknowledged
        .iter()
        .filter(|number| !stored.contains_key(number))
        .copied()
        .collect();
    assert_eq!(lost, [0; 0], "lost of {}", acknowledged.len());
    assert_eq!(stored.len(), acknowledged.len(), "nothing else is there");
    let copies: u64 = stored.values().map(|copies| u64::from(*copies)).sum();
    let again = copies - stored.len() as u64;
    println!(
        "{turns} kills: {} messages acknowledged, 0 lost, {again} stored again",
        acknowledged.len()
    );
}

/// Four collectors in one group on two brokers. In each turn messages wait for a collector that was away, or at a broker
/// while all were; then they are drained, and that collector or that broker is killed on the way.
fn group_killed(turns: u64, count: u64) {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let mut brokers = [Broker::start(), Broker::start()];
    let urls = brokers.each_ref().map(Broker::url);
    let mut collectors: Vec<Process> = (0..4)
        .map(|nth| {
            let file = place.path().join(format!("c{nth}.toml"));
            let named = format!("name = \"c{nth}\"\ngroup = \"g\"");
            let rest = REST.replace("name = \"c\"", &named);
            std::fs::write(&file, text(&data, &urls, &rest)).unwrap();
            Process::start(&file)
        })
        .collect();
    for collector in &collectors {
        until("the first sessions", || {
            collector.told("connected") == brokers.len()
        });
    }
    let mut acknowledged = BTreeSet::new();
    let mut publish = |broker: &Broker| {
        let mut publisher = Publisher::on(broker, Reliability::AtLeastOnce);
        publisher.skip(acknowledged.len() as u64);
        acknowledged.extend(publisher.publish("t/a", count, 600));
    };
    for turn in 0..turns {
        let kills_broker = turn % 4 == 3;
        let nth = drawn(turn, 1000) as usize;
        let (first, others) = match nth % collectors.len() {
            _ if kills_broker => (0, collectors.len()),
            nth => (nth, 1),
        };
        let away = first..first + others;
        let broker = &mut brokers[nth % 2];
        collectors[away.clone()].iter_mut().for_each(Process::kill);
        publish(broker);
        if kills_broker {
            // Saves what it holds: what it loses of that is not the collectors' fault.
            broker.running.restart().unwrap();
        }
        let before = collectors[first].told("connected");
        for collector in &mut collectors[away] {
            *collector = Process::start(&collector.file);
        }
        until("connected again", || {
            collectors[first].told("connected") >= before + urls.len()
        });
        std::thread::sleep(Duration::from_micros(drawn(turn, 60_000)));
        if kills_broker {
            let told = |collector: &Process| collector.told("connected");
            let before: Vec<usize> = collectors.iter().map(told).collect();
            broker.running.kill();
            broker.running.restart().unwrap();
            // mosquitto 2.0.11 does not restore shared subscriptions: what came before members subscribe again would have
            // an acknowledgement and no group.
            until("the group again", || {
                before
                    .iter()
                    .zip(&collectors)
                    .all(|(before, now)| told(now) > *before)
            });
        } else {
            collectors[first].kill();
            collectors[first] = Process::start(&collectors[first].file);
        }
    }
    until("all is stored", || {
        let mut seen = BTreeSet::new();
        let look = common::look(&data, false);
        let mut see = |counted: &verify::Counted<'_>| {
            seen.insert(sequence(counted.payload));
        };
        // Files go while they are looked at.
        verify::verify_with(&data, look, &mut see).is_ok() && seen.is_superset(&acknowledged)
    });
    collectors.into_iter().for_each(Process::end);
    nothing_is_lost(turns, &acknowledged, &Kept::Here.numbers(&data));
}
