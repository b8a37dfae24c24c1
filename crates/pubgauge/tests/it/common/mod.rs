//! Helpers of the program's tests: its place, and checks of its results.
#![allow(dead_code)] // Each test file uses its own part.

pub mod hosts;
pub mod hypervisor;
mod runs;

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use pubgauge_testing::program;
use serde_json::Value;

pub use pubgauge_testing::program::{
    Done, Started, argv, closed_terminal, kill, listens_at, most_memory, repository, terminal,
};
pub use runs::{RunStarted, is_measuring};

/// Longest time that a condition may take to come true. Only what hangs needs it.
const PATIENCE: Duration = Duration::from_secs(120);

/// Flags of a trial that is short, but patient with a machine that is busy with other things.
pub const SHORT: [&str; 10] = [
    "--duration",
    "1s",
    "--warm-up",
    "200ms",
    "--set",
    "phases.ready-within=60s",
    "--set",
    "phases.drain-quiet=1s",
    "--set",
    "phases.drain-within=60s",
];

/// Where pubgauge is.
pub fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_pubgauge"))
}

/// The place of a test, in which pubgauge runs.
pub struct Place(program::Place);

impl Deref for Place {
    type Target = program::Place;

    fn deref(&self) -> &program::Place {
        &self.0
    }
}

impl Place {
    pub fn new() -> Place {
        Place(program::Place::new(env!("CARGO_BIN_EXE_pubgauge")))
    }

    /// Writes `mine/NAME.toml`: the file of the system `of` under this name, with each first text
    /// replaced by the second. For `--systems mine`.
    ///
    /// # Panics
    /// If a text to replace is not there.
    #[track_caller]
    pub fn system(&self, of: &str, name: &str, changes: &[(&str, &str)]) -> PathBuf {
        let mut text = std::fs::read_to_string(repository(&format!("systems/{of}.toml"))).unwrap();
        let renamed = (format!("name = \"{of}\""), format!("name = \"{name}\""));
        let renamed = [(&*renamed.0, &*renamed.1)];
        for (from, to) in renamed.iter().chain(changes) {
            assert!(text.contains(from), "systems/{of}.toml has no {from:?}");
            text = text.replacen(from, to, 1);
        }
        std::fs::create_dir_all(self.path_to("mine")).unwrap();
        self.write(&format!("mine/{name}.toml"), text)
    }

    /// Writes `mine/stubborn.toml`: a mosquitto that does not end when it is asked to, and has `grace_s`
    /// seconds until it is killed.
    pub fn stubborn_system(&self, grace_s: &str) {
        // SIGHUP makes it read its configuration again.
        let asked = format!("signal = \"HUP\"\ngrace-s = {grace_s}");
        let changes = [("signal = \"TERM\"\ngrace-s = 5", &*asked)];
        self.system("mosquitto", "stubborn", &changes);
    }

    /// `results.json` of a run.
    #[track_caller]
    pub fn results(&self, run: &str) -> Value {
        let path = self.path_to(run).join("results.json");
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()));
        let results = serde_json::from_str(&text).unwrap();
        obeys_the_schema(&results);
        results
    }

    /// The only trial of a run.
    #[track_caller]
    pub fn trial(&self, run: &str) -> Value {
        let results = self.results(run);
        let trials = results["trials"].as_array().unwrap();
        assert_eq!(trials.len(), 1, "one trial");
        trials[0].clone()
    }
}

/// Local addresses of the sockets of these processes that listen or have no peer, TCP and UDP, as
/// `ss` tells them: with the interface where the socket is bound to one (`0.0.0.0%lo:7410`).
pub fn sockets(pids: &[i32]) -> Vec<String> {
    let of = |flags: &str| {
        let output = Command::new("ss").args(["-Hnp", flags]).output();
        let output = output.expect("this test needs ss (apt install iproute2)");
        String::from_utf8(output.stdout).unwrap()
    };
    let text = of("-lt") + &of("-au");
    let ours = |line: &&str| {
        let owned = |pid: &i32| line.contains(&format!("pid={pid},"));
        pids.iter().any(owned)
    };
    let local = |line: &str| line.split_whitespace().nth(3).map(str::to_owned);
    text.lines().filter(ours).filter_map(local).collect()
}

/// Waits until a process has been on a processor a hundred times more, and half a second: a
/// system that serves traffic then has carried some of it, also on a crowded machine.
#[track_caller]
pub fn works(pid: i32) {
    let schedule = || std::fs::read_to_string(format!("/proc/{pid}/schedstat"));
    let turns = |text: &str| {
        let turns = text.split_whitespace().nth(2).unwrap();
        turns.parse::<u64>().unwrap()
    };
    let before = schedule().unwrap();
    let began = Instant::now();
    std::thread::sleep(Duration::from_millis(500));
    let mut now = schedule().unwrap_or_else(|e| panic!("process {pid}: {e} after {before}"));
    while turns(&now) < turns(&before) + 100 {
        assert!(began.elapsed() < PATIENCE / 4, "process {pid} does nothing");
        std::thread::sleep(Duration::from_millis(10));
        now = schedule().unwrap_or_else(|e| {
            let time = began.elapsed();
            panic!("process {pid}: {e} after {time:?}; first {before}, last {now}")
        });
    }
}

#[track_caller]
fn obeys_the_schema(results: &Value) {
    let text = std::fs::read_to_string(repository("schema/results.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(results)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect();
    assert!(errors.is_empty(), "against the schema: {errors:#?}");
}

/// A count of a trial.
#[track_caller]
pub fn count(of: &Value, name: &str) -> u64 {
    let field = name.split('.').fold(of, |value, part| &value[part]);
    field
        .as_u64()
        .unwrap_or_else(|| panic!("{name} is {field}, no count"))
}

pub fn verdict(trial: &Value) -> &str {
    trial["verdict"]["status"].as_str().unwrap()
}

/// The reasons of a trial's verdict, as one text.
pub fn reasons(trial: &Value) -> String {
    let reasons = trial["verdict"]["reasons"].as_array().unwrap();
    let text = |reason: &Value| reason["text"].as_str().unwrap().to_owned();
    let texts: Vec<String> = reasons.iter().map(text).collect();
    texts.join("\n")
}

/// Asserts that a trial is broken, and that its reasons hold these texts.
#[track_caller]
pub fn is_broken(trial: &Value, because: &[&str]) {
    let reasons = reasons(trial);
    assert_eq!(verdict(trial), "broken", "{reasons}");
    for text in because {
        assert!(reasons.contains(text), "no {text:?} in: {reasons}");
    }
}

/// Every message and every delivery is accounted for once.
#[track_caller]
pub fn accounted(trial: &Value) {
    let count = |field| count(trial, field);
    let untaken = count("refused") + count("not_connected") + count("not_sent");
    assert_eq!(
        count("offered"),
        count("published") + untaken,
        "{}",
        brief(trial)
    );
    let unique = count("delivered") - count("duplicated");
    let deliveries = unique + count("under_way") + count("lost");
    assert_eq!(count("expected"), deliveries, "{}", brief(trial));
    let rate = |of: &Value| of["published_msgs_per_s"].as_f64().unwrap();
    let of_flows: f64 = trial["flows"].as_array().unwrap().iter().map(rate).sum();
    let differ = (of_flows - rate(trial)).abs();
    assert!(differ <= 1e-6 * of_flows.max(1.0), "{}", brief(trial));
    for record in trial["series"].as_array().unwrap() {
        assert!(record["backlog"].as_i64().unwrap() >= 0, "{record}");
    }
    assert_ne!(verdict(trial), "broken", "{}", reasons(trial));
}

/// Asserts that the counts of a trial add up, and that nothing was lost, doubled or reordered.
#[track_caller]
pub fn adds_up(trial: &Value) {
    let name = &trial["system"]["name"];
    let count = |field| count(trial, field);
    accounted(trial);
    // Client or system may get no processor for all of a second.
    let some = count("published") > 0 || verdict(trial) == "client-bound" || crowded(trial);
    assert!(some, "{name}: nothing was published: {}", brief(trial));
    assert_eq!(count("delivered"), count("expected"), "{name}: expected");
    for zero in [
        "lost",
        "under_way",
        "duplicated",
        "reordered",
        "odd.foreign",
        "odd.corrupt",
        "odd.misdirected",
        "odd.lowered",
    ] {
        assert_eq!(count(zero), 0, "{name}: {zero}");
    }
    assert_eq!(
        count("latency_ns.count"),
        count("delivered"),
        "{name}: latency"
    );
}

/// Whether a machine that is busy with other things stood in the way of a trial: its verdict says that
/// then, instead of what was planted.
pub fn crowded(trial: &Value) -> bool {
    let load = |field: &str| trial["worker_load"][field].as_f64().unwrap_or(0.0);
    let waited = load("publishers_waiting").max(load("subscribers_waiting"));
    load("machine_stalled") >= 0.01 || waited >= 0.1 || stolen(trial)
}

/// Whether a hypervisor gave processor time of this machine to others during a trial.
pub fn stolen(trial: &Value) -> bool {
    trial["worker_load"]["machine_stolen"]
        .as_f64()
        .is_some_and(|share| share >= 0.01)
}

/// A trial on a machine that is not: tried again until it is, five times at most.
pub fn calm(trial: impl FnMut() -> Value) -> Value {
    tried_until(trial, |trial| !crowded(trial))
}

/// Measures on a machine that fits: tried again until it does, five times at most.
pub fn tried_until<T>(measure: impl FnMut() -> T, fits: impl Fn(&T) -> bool) -> T {
    let mut tries = std::iter::repeat_with(measure).take(5);
    tries
        .find(fits)
        .expect("this machine is too busy for this test")
}

/// The figures of a trial without its long lists, for messages.
pub fn brief(trial: &Value) -> String {
    let mut trial = trial.clone();
    let fields = trial.as_object_mut().unwrap();
    fields.retain(|name, _| {
        ![
            "mappings",
            "course",
            "settings",
            "flows",
            "latency_ecdf",
            "noise_ecdf",
        ]
        .contains(&name.as_str())
    });
    trial.to_string()
}
