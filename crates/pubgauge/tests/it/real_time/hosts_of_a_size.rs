//! Hosts of given sizes: what is carried in proportion to a host's size, a crowded machine beside one, and beds of
//! all kinds in one study. Needs root.

use crate::common;

use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use common::*;
use serde_json::Value;

fn run(place: &Place, study: &str) -> Vec<Value> {
    place.write("sizes.toml", study);
    let done = place
        .start(&["run", "sizes.toml", "--out", "run"])
        .ends_within(Duration::from_secs(300));
    done.ran_to_its_end();
    let results = place.results("run");
    results["trials"].as_array().unwrap().clone()
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// A host of a trial.
fn host<'a>(trial: &'a Value, name: &str) -> &'a Value {
    let hosts = trial["sized_hosts"].as_array().unwrap();
    let own = hosts.iter().find(|own| own["host"] == name);
    own.unwrap_or_else(|| panic!("no host {name}: {hosts:?}"))
}

fn cores(trial: &Value) -> f64 {
    number(&host(trial, "publisher-1")["limits"]["cores"])
}

/// A library's publisher and subscriber, whose messages are large enough that pubgauge's own part is small.
fn flood(sizes: &str) -> String {
    format!(
        "name = \"sizes\"\nsystems = [\"zeromq-direct\"]\n\
         [phases]\nwarm-up = \"500ms\"\nmeasure = \"3s\"\nready-within = \"60s\"\ndrain-within = \"60s\"\n\
         [testbed.hosts]\npublisher = {{ cores = 0.5 }}\n\
         [[settings]]\ntransport = \"tcp\"\non-full = \"block\"\nqueue-limit = 100\n\
         [[workload]]\nname = \"flood\"\ngrid = {{ \"testbed.hosts.publisher.cores\" = {sizes} }}\n\
         flow = [{{ payload = \"32KiB\", rate = \"max\" }}]\n"
    )
}

/// With half a core for the publisher the subscriber, which needs more of one, would wait for the two processors of a
/// small machine.
#[test]
fn what_a_host_carries_is_in_proportion_to_its_size() {
    let place = Place::new();
    let trials = run(&place, &flood("[0.1, 0.2, 0.4]"));
    let mut each = Vec::new();
    for trial in &trials {
        let (own, cores) = (host(trial, "publisher-1"), cores(trial));
        let used = number(&own["used_cores"]) / cores;
        assert!((0.85..1.1).contains(&used), "{used} of {cores}: {own}");
        let rate = number(&trial["published_msgs_per_s"]);
        println!("{cores} cores: {rate:.0}/s, {} {own}", trial["verdict"]);
        each.push(rate / cores);
        assert_eq!(
            trial["verdict"]["status"], "host-bound",
            "{}",
            trial["verdict"]
        );
    }
    let (least, most) = each
        .iter()
        .fold((f64::MAX, 0.0_f64), |(a, b), x| (a.min(*x), b.max(*x)));
    assert!(
        most / least < 1.8,
        "messages a second for each core: {each:?}"
    );
}

/// Processes that compute without end.
struct Crowd(Vec<Child>);

impl Crowd {
    fn of(count: usize) -> Crowd {
        let one = || {
            Command::new("sh")
                .args(["-c", "while :; do :; done"])
                .spawn()
        };
        Crowd((0..count).map(|_| one().unwrap()).collect())
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for one in &mut self.0 {
            let _ = one.kill();
            let _ = one.wait();
        }
    }
}

#[test]
fn a_crowded_machine_beside_a_host_is_the_limit() {
    let place = Place::new();
    let processors = std::thread::available_parallelism().unwrap().get();
    let _crowd = Crowd::of(8 * processors);
    let trials = run(&place, &flood("[0.5]"));
    let trial = &trials[0];
    println!("{} {}", trial["verdict"], host(trial, "publisher-1"));
    assert_eq!(
        trial["verdict"]["status"], "client-bound",
        "{}",
        trial["verdict"]
    );
}

/// Others that take the processors half of the time leave a host less than its size, also where its workers are on
/// several processors at once.
#[test]
fn a_crowd_that_comes_and_goes_is_the_limit() {
    let place = Place::new();
    let processors = std::thread::available_parallelism().unwrap().get();
    let crowd = Crowd::of(8 * processors);
    let done = AtomicBool::new(false);
    let two = flood("[0.2]").replace("{ payload", "{ pattern = \"n-1\", publishers = 2, payload");
    place.write("sizes.toml", &two);
    let flags = [
        "run",
        "sizes.toml",
        "--publisher-workers",
        "2",
        "--out",
        "run",
    ];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let signals = [libc::SIGSTOP, libc::SIGCONT].into_iter().cycle();
            for signal in signals.take_while(|_| !done.load(Relaxed)) {
                std::thread::sleep(Duration::from_millis(500));
                crowd.0.iter().for_each(|one| kill(one.id() as i32, signal));
            }
        });
        place
            .start(&flags)
            .ends_within(Duration::from_secs(300))
            .ran_to_its_end();
        done.store(true, Relaxed);
    });
    let results = place.results("run");
    let trial = &results["trials"][0];
    let own = host(trial, "publisher-1");
    println!("{} {own}", trial["verdict"]);
    // Where the machine gave the host all of its size in spite of them, its figures are its own.
    let used = number(&own["used_cores"]) / cores(trial);
    let status = &trial["verdict"]["status"];
    assert!(
        used >= 0.9 || status == "client-bound",
        "{} {own}",
        trial["verdict"]
    );
}

/// Broker and workers on loopback, on hosts of given sizes and on a network of such hosts, in one run.
#[test]
fn one_study_has_several_beds() {
    let place = Place::new();
    let trials = run(
        &place,
        "name = \"sizes\"\nsystems = [\"mosquitto\"]\nrepeats = 2\n\
         [phases]\nwarm-up = \"200ms\"\nmeasure = \"1s\"\nready-within = \"60s\"\ndrain-within = \"60s\"\n\
         [[workload]]\nname = \"here\"\nflow = [{ payload = \"64B\", rate = \"100/s\" }]\n\
         [[workload]]\nname = \"sizes\"\nflow = [{ pattern = \"1-n\", subscribers = 2, payload = \"64B\", rate = \"100/s\" }]\n\
         testbed = { hosts = { broker = { cores = 0.3 }, subscriber = { hosts = 2, cores = 0.2, memory = \"128MiB\" } } }\n\
         [[workload]]\nname = \"links\"\nflow = [{ payload = \"64B\", rate = \"100/s\" }]\n\
         testbed = { network = { broker = { cores = 0.3 }, publisher = { rate = \"10Mbit/s\", cores = 0.2 }, subscriber = {} } }\n\
         [[workload]]\nname = \"others\"\nflow = [{ payload = \"64B\", rate = \"100/s\" }]\n\
         testbed = { network = { broker = { rate = \"20Mbit/s\" }, publisher = {}, subscriber = {} } }\n",
    );
    assert_eq!(trials.len(), 8);
    for trial in &trials {
        assert_ne!(trial["verdict"]["status"], "broken", "{}", trial["verdict"]);
        let hosts = trial["sized_hosts"].as_array().cloned().unwrap_or_default();
        let names: Vec<&str> = hosts
            .iter()
            .filter_map(|host| host["host"].as_str())
            .collect();
        let on_links = !trial["network"].is_null();
        let (expected, links): (&[&str], bool) = match trial["workload"]["name"].as_str().unwrap() {
            "here" => (&[], false),
            "sizes" => (&["broker-1", "subscriber-1", "subscriber-2"], false),
            "links" => (&["broker-1", "publisher-1"], true),
            _ => (&[], true),
        };
        assert_eq!((&names[..], on_links), (expected, links));
        for host in &hosts {
            let limits = &host["limits"];
            assert_eq!(limits["cores_by_quota"], true, "{host}");
            assert_eq!(limits["instances"], 1, "{host}");
            assert!(number(&host["used_cores"]) > 0.0, "{host}");
        }
    }
    let results = place.results("run");
    assert_eq!(results["networks"].as_array().unwrap().len(), 2);
}

/// Two brokers on one host have one share between them, and keep it while they stay up for the next trial.
#[test]
fn brokers_of_a_host_share_what_it_has() {
    let place = Place::new();
    let trials = run(
        &place,
        "name = \"sizes\"\nsystems = [\"mosquitto\"]\n\
         [phases]\nwarm-up = \"200ms\"\nmeasure = \"2s\"\nready-within = \"60s\"\ndrain-within = \"60s\"\n\
         [topology]\nbrokers = 2\n[testbed]\nkeep-running = true\n[testbed.hosts]\nbroker = { cores = 0.2 }\n\
         [[workload]]\nname = \"flood\"\nrepeats = 2\n\
         flow = [{ pattern = \"1-1\", publishers = 4, payload = \"64B\", rate = \"max\", \
         settings = { reliability = \"at-least-once\", in-flight = 10 } }]\n",
    );
    assert_eq!(trials.len(), 2);
    for trial in &trials {
        let own = host(trial, "broker-1");
        assert_eq!(own["limits"]["instances"], 2, "{own}");
        assert!(number(&own["used_cores"]) <= 0.22, "{own}");
        assert_eq!(
            trial["limits"]["instances"], 1,
            "one host: {}",
            trial["limits"]
        );
    }
    assert_eq!(trials[1]["circumstances"]["earlier_trials"], 1);
}

/// A broker deals in turn; the member whose host is a fifth of the other's does not keep up, and what waits for it beyond
/// the broker's queue is dropped.
#[test]
fn members_on_hosts_of_different_sizes_get_different_shares() {
    let study = "name = \"sizes\"\nsystems = [\"mosquitto:queues-100\"]\n\
         [phases]\nwarm-up = \"500ms\"\nmeasure = \"4s\"\nready-within = \"60s\"\ndrain-within = \"60s\"\n\
         [testbed.hosts]\nsubscriber = { hosts = 2, cores = [0.1, 0.5] }\n\
         [[workload]]\nname = \"flood\"\n\
         flow = [{ pattern = \"shared\", publishers = 8, subscribers = 2, topics = 1, payload = \"64B\", rate = \"max\", \
         settings = { reliability = \"at-least-once\", in-flight = 1 } }]\n";
    // A member at the end of its host waits for its own share; a stolen processor makes the other one wait too.
    let trial = &tried_until(|| run(&Place::new(), study).remove(0), |t| !stolen(t));
    let groups = trial["groups"].as_array().unwrap();
    let members = groups[0]["deliveries"].as_array().unwrap();
    let got: Vec<u64> = members.iter().map(|n| n.as_u64().unwrap()).collect();
    println!("{got:?} {}", trial["verdict"]);
    assert!(got[0] > 0 && got[0] * 5 < got[1] * 4, "{got:?}");
    // Everything is accounted for.
    let (lost, duplicated) = (count(trial, "lost"), count(trial, "duplicated"));
    assert!(lost > 0, "{}", brief(trial));
    assert_eq!(got.iter().sum::<u64>() + lost, count(trial, "expected"));
    assert_eq!(duplicated, 0);
    assert!(number(&host(trial, "subscriber-1")["used_cores"]) <= 0.11);
}

/// Hosts that do not fit into the machine together are refused before anything starts.
#[test]
fn hosts_larger_than_the_machine_are_refused() {
    let place = Place::new();
    place.write("sizes.toml", flood("[4096]"));
    let done = place
        .start(&["plan", "sizes.toml"])
        .ends_within(Duration::from_secs(60));
    let done = done.exits(3);
    assert!(
        done.err.contains("its hosts get 4096 cores together"),
        "{}",
        done.err
    );
}
