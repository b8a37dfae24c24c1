//! One system for many tests. The test runner starts a process for each test, so that the system belongs to none of
//! them: it lives in a keeper, which is the first test's program started again, and ends with the runner.

use std::any::Any;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, PidfdFlags, getpid, getppid, pidfd_open};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::this_test;

/// Set in a keeper: the process that it outlives for a moment only, and the file that it tells the system in.
const OWNER: &str = "PUBGAUGE_TESTING_OWNER";
const TOLD: &str = "PUBGAUGE_TESTING_TOLD";

/// Text that `start` tells of the system called `name`: it is started by the first test of a run that asks for it, and
/// stopped when the run is over. Tests that share a system must not disturb each other.
///
/// `start` also gives what stops the system when it is dropped. Without a test runner (`cargo test`) each program of
/// tests is a run of its own.
///
/// # Panics
/// If the system could not be started, with what was said.
pub fn shared<T: Serialize + DeserializeOwned>(
    name: &str,
    start: impl FnOnce() -> (T, Box<dyn Any>),
) -> T {
    if let (Ok(owner), Some(told)) = (std::env::var(OWNER), std::env::var_os(TOLD)) {
        keep(owner.parse().expect("a process"), Path::new(&told), start);
    }
    let runner = std::env::var_os("NEXTEST").and_then(|_| getppid());
    let owner = runner.unwrap_or_else(getpid).as_raw_nonzero().get();
    let folder = std::env::temp_dir().join(format!("pubgauge-shared-{owner}"));
    std::fs::create_dir_all(&folder).unwrap();
    let told = folder.join(format!("{name}.json"));
    let lock = File::create(folder.join(format!("{name}.lock"))).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    if !told.exists() {
        begin(owner, &told);
    }
    serde_json::from_slice(&std::fs::read(&told).unwrap()).unwrap()
}

/// Starts a keeper, and returns when its system serves.
// The keeper outlives this process, which does not wait for its end.
#[allow(clippy::zombie_processes)]
fn begin(owner: i32, told: &Path) {
    let log = told.with_extension("log");
    let said = File::create(&log).unwrap();
    let mut keeper = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &this_test(), "--nocapture"])
        .env(OWNER, owner.to_string())
        .env(TOLD, told)
        .stdin(Stdio::null())
        .stdout(said.try_clone().unwrap())
        .stderr(said)
        // A signal to the test is none to the keeper.
        .process_group(0)
        .spawn()
        .unwrap();
    while !told.exists() {
        if let Some(status) = keeper.try_wait().unwrap() {
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            panic!("no system for the tests ({status}): {said}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Holds the system until the owner has ended, and ends the process.
fn keep<T: Serialize>(owner: i32, told: &Path, start: impl FnOnce() -> (T, Box<dyn Any>)) -> ! {
    let owner = Pid::from_raw(owner).expect("a process");
    let alive = pidfd_open(owner, PidfdFlags::empty()).expect("the test runner");
    let (facts, system) = start();
    let partial = PathBuf::from(format!("{}.partial", told.display()));
    std::fs::write(&partial, serde_json::to_vec(&facts).unwrap()).unwrap();
    std::fs::rename(&partial, told).unwrap();
    while poll(&mut [PollFd::new(&alive, PollFlags::IN)], None).is_err() {}
    drop(system);
    for part in ["json", "lock", "log"] {
        let _ = std::fs::remove_file(told.with_extension(part));
    }
    // Another keeper may still have files there.
    let _ = std::fs::remove_dir(told.parent().expect("a folder"));
    std::process::exit(0)
}
