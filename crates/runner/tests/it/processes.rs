//! A worker's process that is none, or another version, or goes mad: the trial is not run, with the
//! reason.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use pubgauge_driver::{Clock, Mark, Settings, Target};
use pubgauge_engine::assignment::{Brief, Workers};
use pubgauge_engine::conductor::{Nobody, TrialEnd, TrialSpec, run};
use pubgauge_engine::link::VERSION;
use pubgauge_runner::{ProcessPlace, Processes};
use pubgauge_simulator::SimulatedDriver;
use pubgauge_workload::{Arrivals, SECOND, Workload};

/// The verdict of a trial whose workers are this program.
#[track_caller]
fn refused(program: PathBuf, namespace: Option<&str>, says: &str) {
    let mut workload = Workload::fan(1, 1, Arrivals::Periodic { per_s: 10.0 });
    workload.phases.ready_within = 20 * SECOND;
    let spec = TrialSpec {
        brief: Brief::new(workload).unwrap(),
        driver: Arc::new(SimulatedDriver),
        targets: vec![Target::default()],
        settings: vec![Settings::default()],
        clock: Clock::Monotonic,
        workers: Workers::default(),
        mark: Mark::from_seed(1),
        client: Default::default(),
        pin_to: Vec::new(),
        place: Arc::new(ProcessPlace::new(
            Processes {
                program,
                namespace: namespace.map(Into::into),
                ..Processes::default()
            },
            None,
            None,
        )),
    };
    let record = run(&spec, &mut Nobody, &AtomicBool::new(false));
    // A worker that is ready before it goes mad has its trial begun or not, by chance.
    let (TrialEnd::NotReady(why) | TrialEnd::Aborted(why)) = &record.outcome else {
        panic!("{:?}", record.outcome);
    };
    assert!(why.contains(says), "{why}");
}

/// No script can be started while a process that another test has just begun still has it open for
/// writing.
static ALONE: Mutex<()> = Mutex::new(());

/// A script instead of a worker.
#[track_caller]
fn script(text: &str, says: &str) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stranger");
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    refused(path, None, says);
}

/// A line of shell that says a frame.
fn frame(json: &str) -> String {
    format!("printf '\\000\\000\\000\\{:03o}%s' '{json}'", json.len())
}

#[test]
fn another_program() {
    script("echo usage: stranger FILE; sleep 100", "makes no sense");
    script("exit 7", "ended with exit code 7");
    let last_words = "echo cannot find libmosquitto.so >&2; exit 127";
    script(last_words, "its last words: cannot find libmosquitto.so");
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    refused("/no/such/program".into(), None, "/no/such/program");
}

#[test]
fn another_version() {
    let greeting = frame(r#"{"link":99,"pubgauge":"9.9.9"}"#);
    let says = "it is pubgauge 9.9.9 and speaks version 99 of the link";
    script(&format!("{greeting}; sleep 100"), says);
}

#[test]
fn one_that_goes_mad() {
    let greeting = frame(&format!(r#"{{"link":{VERSION},"pubgauge":"0.1.0"}}"#));
    let ready = frame(r#"{"Ready":[]}"#);
    let nonsense = frame(r#"{"Counters":"many"}"#);
    script(
        &format!("{greeting}; {ready}; {nonsense}; sleep 100"),
        "makes no sense",
    );
    // Half a report, and the end.
    script(
        &format!("{greeting}; printf '\\000\\000\\000\\007ab'"),
        "makes no sense",
    );
}

#[test]
fn a_network_namespace_that_is_not_there() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    refused(
        "/bin/true".into(),
        Some("pubgauge-none"),
        "ip netns add pubgauge-none",
    );
}
