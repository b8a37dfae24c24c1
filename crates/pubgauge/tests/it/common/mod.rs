//! A place of its own for each test, in which pubgauge runs and must leave nothing behind.
#![allow(dead_code)] // Each test file uses its own part.

pub mod heard;
pub mod hosts;
pub mod hypervisor;
pub mod servers;
mod started;

use std::fs::File;
use std::os::fd::FromRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

pub use started::{Started, listens_at};

/// Longest time that one run of pubgauge may take in a test. Only a run that hangs needs it.
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

/// A file of the repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

/// A folder that holds all that pubgauge may touch: where it works, its home, its scratch.
///
/// The folder's path stands in the environment of every process that is started here, which tells
/// them from those of other tests.
pub struct Place {
    folder: tempfile::TempDir,
}

/// How a run ended.
#[derive(Debug)]
pub struct Done {
    /// The exit code; minus the signal's number if a signal ended it.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// The arguments of a command line; none of them has a space in it.
pub fn argv(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

impl Done {
    /// Asserts the exit code, showing what was said otherwise.
    #[track_caller]
    pub fn exits(self, code: i32) -> Done {
        assert_eq!(
            self.code, code,
            "exit code\n--- stdout\n{}\n--- stderr\n{}",
            self.out, self.err
        );
        self
    }

    /// Asserts that it ran to its end. A machine that is busy with other tests may make a trial invalid (2), and no
    /// more.
    #[track_caller]
    pub fn ran_to_its_end(&self) -> &Done {
        assert!(
            [0, 2].contains(&self.code),
            "exit code {}\n--- stdout\n{}\n--- stderr\n{}",
            self.code,
            self.out,
            self.err
        );
        self
    }

    /// Asserts that standard error holds a text.
    #[track_caller]
    pub fn says(self, text: &str) -> Done {
        assert!(
            self.err.contains(text),
            "standard error lacks {text:?}:\n{}",
            self.err
        );
        self
    }
}

impl Place {
    pub fn new() -> Place {
        let folder = tempfile::Builder::new()
            .prefix("pubgauge-test-")
            .tempdir()
            .unwrap();
        for part in ["work", "home", "state", "tmp"] {
            std::fs::create_dir(folder.path().join(part)).unwrap();
        }
        Place { folder }
    }

    /// A path in the folder in which pubgauge works.
    pub fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join("work").join(path)
    }

    /// Writes a file into that folder.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at(path);
        std::fs::write(&path, content).unwrap();
        path
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
        std::fs::create_dir_all(self.at("mine")).unwrap();
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

    /// Makes a command run here.
    pub fn here(&self, command: &mut Command) {
        let part = |name: &str| self.folder.path().join(name);
        command
            .current_dir(part("work"))
            .env("HOME", part("home"))
            .env("XDG_STATE_HOME", part("state"))
            .env("TMPDIR", part("tmp"))
            .env_remove("PUBGAUGE_PASSWORD")
            .env_remove("PUBGAUGE_SYSTEMS")
            .stdin(Stdio::null());
    }

    /// pubgauge with these arguments, not started yet.
    pub fn command<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(program());
        command.args(args);
        self.here(&mut command);
        command
    }

    /// The same after a line of shell.
    pub fn after<S: AsRef<std::ffi::OsStr>>(&self, line: &str, args: &[S]) -> Command {
        self.apart(&[], line, args)
    }

    /// The same in namespaces of its own, those of these flags of `unshare`.
    pub fn apart<S: AsRef<std::ffi::OsStr>>(
        &self,
        flags: &[&str],
        line: &str,
        args: &[S],
    ) -> Command {
        let mut command = match flags {
            [] => Command::new("sh"),
            flags => {
                let mut command = Command::new("unshare");
                command.arg("--map-root-user").args(flags).arg("sh");
                command
            }
        };
        command.args(["-c", &format!("{line} && exec \"$0\" \"$@\"")]);
        command.arg(program()).args(args);
        self.here(&mut command);
        command
    }

    /// Runs pubgauge to its end, which must come.
    #[track_caller]
    pub fn run<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Done {
        self.finish(self.command(args))
    }

    /// Runs a command to its end, which must come.
    #[track_caller]
    pub fn finish(&self, command: Command) -> Done {
        let output = assert_cmd::Command::from_std(command)
            .timeout(PATIENCE)
            .output()
            .unwrap();
        Done {
            code: code(output.status),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Starts pubgauge.
    pub fn start<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Started<'_> {
        self.spawn(self.command(args))
    }

    pub fn spawn(&self, mut command: Command) -> Started<'_> {
        let file = |name: &str| std::fs::File::create(self.folder.path().join(name)).unwrap();
        command.stderr(file("stderr"));
        self.spawn_with_stderr(command)
    }

    /// The same, with the command's own standard error.
    pub fn spawn_with_stderr(&self, mut command: Command) -> Started<'_> {
        let out = std::fs::File::create(self.folder.path().join("stdout")).unwrap();
        let child = command.stdout(out).spawn().unwrap();
        Started { place: self, child }
    }

    /// `results.json` of a run.
    #[track_caller]
    pub fn results(&self, run: &str) -> Value {
        let path = self.at(run).join("results.json");
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

    /// Processes that live here, as (id, command line); this test's own process is none of them.
    pub fn processes(&self) -> Vec<(i32, String)> {
        let tag = self.folder.path().to_str().unwrap();
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|n| n.parse::<i32>().ok()) else {
                continue;
            };
            let text = |file: &str| {
                let bytes = std::fs::read(entry.path().join(file)).unwrap_or_default();
                String::from_utf8_lossy(&bytes).replace('\0', " ")
            };
            let cwd = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
            let line = text("cmdline");
            if pid != std::process::id() as i32
                && (line.contains(tag) || text("environ").contains(tag) || cwd.starts_with(tag))
            {
                found.push((pid, line));
            }
        }
        found
    }

    /// Asserts that no process and no scratch folder is left.
    #[track_caller]
    pub fn is_clean(&self) {
        let left = self.processes();
        assert!(left.is_empty(), "processes are left: {left:?}");
        let scratch: Vec<_> = std::fs::read_dir(self.folder.path().join("tmp"))
            .unwrap()
            .flatten()
            .map(|e| e.path())
            .collect();
        assert!(scratch.is_empty(), "scratch is left: {scratch:?}");
    }

    /// Asserts that no process is left a moment after pubgauge was killed.
    #[track_caller]
    pub fn has_no_process_soon(&self) {
        let end = Instant::now() + Duration::from_secs(60);
        while !self.processes().is_empty() {
            let left = self.processes();
            assert!(Instant::now() < end, "processes are left: {left:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The names of all files here but pubgauge's scratch, for tests that nothing was changed.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                found.push(entry.path());
                if entry.path().is_dir() {
                    folders.push(entry.path());
                }
            }
        }
        found.sort();
        found
    }

    /// Whether a text stands in any file here, or in a file's name.
    pub fn mentions(&self, secret: &str) -> Option<PathBuf> {
        let holds = |path: &PathBuf| {
            path.to_string_lossy().contains(secret)
                || std::fs::read(path).is_ok_and(|bytes| {
                    bytes
                        .windows(secret.len())
                        .any(|part| part == secret.as_bytes())
                })
        };
        self.files().into_iter().find(holds)
    }
}

fn code(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status
        .code()
        .unwrap_or_else(|| -status.signal().unwrap_or_default())
}

/// The largest resident memory of any child that has ended, bytes.
pub fn most_memory() -> u64 {
    // SAFETY: the call writes to a valid local structure.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    usage.ru_maxrss as u64 * 1024
}

/// Sends a signal to a process of this test.
pub fn kill(pid: i32, signal: i32) {
    // SAFETY: kill takes no pointers; the id is that of a process this test has started or found
    // in its own place.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0, "process {pid}");
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

/// What is measured on a machine that fits: tried again until it does, five times at most.
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

/// A terminal: its far end, where what is written shows, and the near end, where a program writes.
pub fn terminal() -> [File; 2] {
    let (mut far, mut near) = (0, 0);
    let nothing = std::ptr::null_mut();
    // SAFETY: both numbers are valid places; names and sizes are not asked for.
    let opened = unsafe {
        libc::openpty(
            &raw mut far,
            &raw mut near,
            nothing,
            nothing.cast(),
            nothing.cast(),
        )
    };
    assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: both are open and nobody else's.
    unsafe { [far, near].map(|end| File::from_raw_fd(end)) }
}

/// The near end of a terminal whose far end is gone: each write to it fails.
pub fn closed_terminal() -> File {
    let [_, near] = terminal();
    near
}
