//! Traffic through a driver's fleets, every message of it counted here and by the system.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pubgauge_driver::*;
use pubgauge_testbed::{Counted, Running, SystemFile, Testbed};
use pubgauge_testing::*;

/// One system at a time: several servers at once starve each other on a small machine.
pub fn one_at_a_time() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The description of a system in this tree, which is embedded too.
pub fn system(name: &str) -> SystemFile {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../systems");
    SystemFile::read(&folder.join(format!("{name}.toml"))).unwrap()
}

/// Starts a system; fails loudly if it is not installed.
pub fn start<D: Driver + Copy + 'static>(
    system: &SystemFile,
    variant: Option<&str>,
    driver: D,
    scratch: &Path,
) -> Running {
    let probe = move |_: &str, what, target: &Target, until| {
        pubgauge_testbed::probe(&driver, what, target, until)
    };
    let testbed = Testbed::new().unwrap().probe(Box::new(probe));
    testbed
        .start(system, variant, scratch)
        .unwrap_or_else(|error| {
            panic!(
                "{error}\nthis test needs it: pubgauge systems --install {} --yes",
                system.name
            )
        })
}

/// Who publishes, and who hears.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    pub publishers: u32,
    pub subscribers: u32,
    /// Messages of each publisher that every subscriber gets.
    pub heard: u64,
    /// Messages of each publisher that nobody is subscribed to.
    pub unheard: u64,
}

impl Traffic {
    /// Messages published.
    pub fn published(&self) -> u64 {
        u64::from(self.publishers) * (self.heard + self.unheard)
    }

    /// Messages that somebody was subscribed to.
    pub fn routed(&self) -> u64 {
        u64::from(self.publishers) * self.heard
    }

    /// Messages delivered.
    pub fn delivered(&self) -> u64 {
        self.routed() * u64::from(self.subscribers)
    }
}

/// Lets it happen, and tells what the system counted. The counts are read until they stay as they
/// are, whatever they are, so that one that goes on rising is found out.
pub fn counted(
    running: &Running,
    driver: &dyn Driver,
    settings: &Settings,
    traffic: Traffic,
) -> Counted {
    let counting = running
        .begin_counting(settings)
        .expect("a file with [counters]");
    exchange(running, driver, settings, traffic);
    counting.finish(running, driver, |_| false)
}

fn exchange(running: &Running, driver: &dyn Driver, settings: &Settings, traffic: Traffic) {
    let open = |clients: u32, worker| {
        let mut config = config(running.target.clone(), settings.clone());
        (config.clients, config.worker) = (clients as usize, worker);
        let seen = Seen {
            count_only: true,
            ..Seen::default()
        };
        Bench {
            fleet: driver.open(config).unwrap(),
            seen,
        }
    };
    let mut subscribing = open(traffic.subscribers, 0);
    for n in 0..traffic.subscribers {
        let client = subscribing.named(&format!("subscriber{n}"));
        subscribing.subscribe(client, "heard/#");
    }
    let mut publishing = open(traffic.publishers, 1);
    let mut sequence = 0;
    for n in 0..traffic.publishers {
        let client = publishing.named_publisher(&format!("publisher{n}"));
        for (kind, count) in [("heard", traffic.heard), ("unheard", traffic.unheard)] {
            let topic = publishing
                .fleet
                .advertise(client, &format!("{kind}/{n}"))
                .unwrap();
            for _ in 0..count {
                publishing.publish(client, topic, sequence, 100);
                sequence += 1;
                if sequence % 64 == 0 {
                    subscribing.fleet.poll(0, &mut subscribing.seen).unwrap();
                }
            }
        }
    }
    let until = clock::monotonic_now() + 20 * SECOND;
    while publishing.fleet.unsettled() > 0 {
        let now = clock::monotonic_now();
        assert!(
            now < until,
            "not all is acknowledged: {:?}",
            publishing.seen.failed
        );
        publishing
            .fleet
            .poll(now + 50_000_000, &mut publishing.seen)
            .unwrap();
        subscribing.fleet.poll(0, &mut subscribing.seen).unwrap();
    }
    let due = traffic.delivered() as usize;
    subscribing.until("all delivered", |seen| seen.delivered >= due);
    for bench in [&mut publishing, &mut subscribing] {
        bench.fleet.close(clock::monotonic_now() + 5 * SECOND);
    }
    assert_eq!(subscribing.seen.delivered, due);
}
