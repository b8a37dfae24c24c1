//! Traffic through a driver's fleets, every message of it counted here and by the system.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use pubgauge_driver::*;
use pubgauge_testbed::{Running, SystemCount, SystemCounts, SystemFile, Testbed};
use pubgauge_testing::*;

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
    let testbed = Testbed::new().unwrap().drivers(driver);
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

/// Where the numbers begin of messages that only try whether they are heard.
const NONE_OF_THEM: u64 = 1 << 32;

#[derive(Clone, Copy, Debug, Default)]
pub struct Happened {
    /// Messages that publishers published, those included that tried whether they are heard.
    pub published: u64,
    /// Messages that subscribers got.
    pub delivered: u64,
}

impl Happened {
    /// The counts of a system that keeps both.
    pub fn both(self) -> SystemCounts {
        SystemCounts {
            published: Some(SystemCount::Messages(self.published)),
            delivered: Some(SystemCount::Messages(self.delivered)),
        }
    }
}

/// Lets it happen, and tells what the system counted. The counts are read until they stay as they
/// are, whatever they are, so that one that goes on rising is found out.
pub fn counted(
    running: &Running,
    driver: &dyn Driver,
    settings: &Settings,
    traffic: Traffic,
) -> (Happened, SystemCounts) {
    let counting = running
        .begin_counting(std::slice::from_ref(settings))
        .expect("a file with [counters]");
    let happened = exchange(running, driver, settings, traffic);
    (happened, counting.finish(running, driver, |_| false))
}

fn exchange(
    running: &Running,
    driver: &dyn Driver,
    settings: &Settings,
    traffic: Traffic,
) -> Happened {
    let open = |clients: u32, worker| {
        let mut config = config(running.target.clone(), settings.clone());
        (config.clients, config.worker) = (clients as usize, worker);
        Rig {
            fleet: driver.open(config).unwrap(),
            seen: Observations::default(),
        }
    };
    // Topics of its own: what an earlier exchange has retained is not to come again.
    static EXCHANGES: AtomicU32 = AtomicU32::new(0);
    let place = format!("exchange{}", EXCHANGES.fetch_add(1, Ordering::Relaxed));
    let heard = |n: u32| format!("{place}/heard/{n}");
    let mut subscribing = open(traffic.subscribers + 1, 0);
    for n in 0..traffic.subscribers {
        let client = subscribing.named(&format!("subscriber{n}"));
        // Under point-to-point a receiver names its topics.
        if settings.pattern == Some(MessagingPattern::PointToPoint) {
            for n in 0..traffic.publishers {
                subscribing.subscribe(client, &heard(n));
            }
        } else {
            subscribing.subscribe(client, &format!("{place}/heard/#"));
        }
    }
    let mut publishing = open(traffic.publishers, 1);
    let mut published = 0;
    let mut clients = Vec::new();
    for n in 0..traffic.publishers {
        clients.push(publishing.named_publisher(&format!("publisher{n}")));
        if traffic.heard > 0 {
            published += prove(&mut publishing, &mut subscribing, &heard(n), traffic);
        }
    }
    for (&client, n) in clients.iter().zip(0..) {
        let unheard = format!("{place}/unheard/{n}");
        for (topic, count) in [(heard(n), traffic.heard), (unheard, traffic.unheard)] {
            let topic = publishing.fleet.advertise(client, &topic).unwrap();
            for number in 0..count {
                publishing.publish(client, topic, number, 100);
                if number % 64 == 0 {
                    subscribing.fleet.poll(0, &mut subscribing.seen).unwrap();
                }
            }
            published += count;
        }
    }
    let until = clock::monotonic_now() + 60 * SECOND;
    while publishing.fleet.unsettled() > 0 {
        let now = clock::monotonic_now();
        assert!(
            now < until,
            "not all is acknowledged: {:?}",
            publishing.seen.failed
        );
        publishing
            .fleet
            .poll(now + 10_000_000, &mut publishing.seen)
            .unwrap();
        subscribing.fleet.poll(0, &mut subscribing.seen).unwrap();
    }
    // Each publisher's messages come in order.
    let last = |m: &&DeliveredMessage| Some(sequence(&m.payload)) == traffic.heard.checked_sub(1);
    let mut due = traffic.publishers * traffic.subscribers;
    let all = |seen: &Observations, due| seen.messages.iter().filter(last).count() == due as usize;
    if traffic.heard > 0 {
        subscribing.until("all delivered", |seen| all(seen, due));
    }
    if settings.last_value == Some(true) && traffic.heard > 0 {
        let late = subscribing.named("late");
        for n in 0..traffic.publishers {
            subscribing.subscribe(late, &heard(n));
        }
        due += traffic.publishers;
        subscribing.until("the last values", |seen| all(seen, due));
    }
    // Subscribers first, as in a trial: they do not hear what takes last values away.
    for rig in [&mut subscribing, &mut publishing] {
        rig.fleet.close(clock::monotonic_now() + 5 * SECOND);
        published += rig.fleet.parting_messages();
    }
    Happened {
        published,
        delivered: subscribing.seen.delivered as u64,
    }
}

/// Publishes from the client that came last until every subscriber has got a message, and tells how many that
/// took: one, unless the system drops what was published before a subscription has reached it.
fn prove(publishing: &mut Rig, subscribing: &mut Rig, name: &str, traffic: Traffic) -> u64 {
    let client = ClientId(publishing.seen.connected.len() as u32 - 1);
    let topic = publishing.fleet.advertise(client, name).unwrap();
    let got =
        |seen: &Observations, n| (seen.messages.iter()).any(|m| m.client == n && m.topic == name);
    for sent in 1..=1000 {
        publishing.publish(client, topic, NONE_OF_THEM + sent, 16);
        for _ in 0..100 {
            let soon = clock::monotonic_now() + 1_000_000;
            publishing.fleet.poll(0, &mut publishing.seen).unwrap();
            subscribing.fleet.poll(soon, &mut subscribing.seen).unwrap();
            if (0..traffic.subscribers).all(|n| got(&subscribing.seen, n)) {
                return sent;
            }
        }
    }
    panic!("nothing is delivered");
}
