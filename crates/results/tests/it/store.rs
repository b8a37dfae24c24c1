//! The folder of a run on a real file system: whole or not at all, resumed, refused, full.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use hdrhistogram::Histogram;
use pubgauge_figures::histogram::{Interval, read_log, write_log};
use pubgauge_figures::{Machine, Results, StudyInfo, Trial};
use pubgauge_fixtures::TrialBuilder;
use pubgauge_results::store::{self, NewRun, RunFolder, StoreError, TrialFiles};
use serde_json::{Value, json};

fn new_run() -> NewRun {
    NewRun {
        invocation: "{}\n".into(),
        study_toml: "name = \"first look\"\n".into(),
        study_resolved: json!({"name": "first look", "trials": [{"cell": "a", "rate": 100}]}),
        machine: Machine {
            cores: 2,
            pubgauge_version: "0.1.0".into(),
            ..Default::default()
        },
        study: StudyInfo {
            name: "first look".into(),
            planned_trials: 2,
            ..Default::default()
        },
    }
}

/// Goes on with that run.
fn resume(root: &Path) -> Result<RunFolder, StoreError> {
    let run = new_run();
    RunFolder::open_for_resume(root, &run.study_resolved, Value::clone, &run.machine)
}

fn trial(id: u32) -> Trial {
    TrialBuilder::periodic(10.0, 1.0)
        .id(id)
        .cell(format!("cell-{id}"))
        .build()
}

fn files() -> TrialFiles {
    let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
    for value in 1..5_000u64 {
        histogram.record(value * 977).unwrap();
    }
    let interval = |tag: &str| Interval {
        tag: Some(tag.into()),
        start: Duration::ZERO,
        length: Duration::from_secs(2),
        histogram: histogram.clone(),
    };
    let log = write_log(&["latency"], [interval("meters"), interval("cars")]).unwrap();
    TrialFiles {
        logs: vec![("latency".into(), log)],
        configs: vec![("mosquitto.conf".into(), "listener 1883 127.0.0.1\n".into())],
    }
}

#[test]
fn a_trial_is_on_disk_at_once_and_reads_back() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("run");
    let mut run = RunFolder::create(&root, new_run()).unwrap();
    assert!(store::load(&root).unwrap().trials.is_empty());
    run.append_trial(trial(7), &files()).unwrap();

    let loaded = store::load(&root).unwrap();
    assert_eq!(loaded.trials.len(), 1);
    assert_eq!(loaded.trials[0].cell, "cell-7");
    assert_eq!(loaded.machine.cores, 2);
    assert!(
        loaded.study.cut_off,
        "a run is cut off until it is finished"
    );
    let conf = root.join("trials/0007/system/mosquitto.conf");
    assert_eq!(
        fs::read_to_string(conf).unwrap(),
        "listener 1883 127.0.0.1\n"
    );
    let log = store::load_log(&root, 7, "latency").unwrap();
    assert_eq!(log.len(), 2);
    assert_eq!(log[1].tag.as_deref(), Some("cars"));
    let written = read_log(&files().logs[0].1).unwrap();
    assert_eq!(log[0].histogram, written[0].histogram);
    assert!(store::load_log(&root, 7, "send-lag").unwrap().is_empty());

    run.append_trial(trial(3), &TrialFiles::default()).unwrap();
    run.finish(Vec::new()).unwrap();
    let loaded = store::load(&root).unwrap();
    assert!(!loaded.study.cut_off);
    let ids: Vec<u32> = loaded.trials.iter().map(|trial| trial.id).collect();
    assert_eq!(ids, [7, 3], "in the order in which they ran");
    assert!(matches!(
        run.append_trial(trial(3), &files()),
        Err(StoreError::Duplicate(3))
    ));
}

#[test]
fn a_folder_with_something_else_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("thesis.tex"), "x").unwrap();
    let error = RunFolder::create(dir.path(), new_run()).unwrap_err();
    assert!(matches!(error, StoreError::NotARun(_)));
    assert!(error.to_string().contains("hint:"), "{error}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);

    let root = dir.path().join("run");
    drop(RunFolder::create(&root, new_run()).unwrap());
    let error = RunFolder::create(&root, new_run()).unwrap_err();
    assert!(matches!(error, StoreError::AlreadyARun(_)));
    assert!(error.to_string().contains("--resume"), "{error}");
    assert!(matches!(store::load(dir.path()), Err(StoreError::NoRun(_))));
}

#[test]
fn a_run_that_was_ended_before_it_began_begins_again() {
    // In the order in which they are written, and the last of them as it is before it gets its name.
    let written = [
        ".lock",
        "invocation.json",
        "trials",
        "study.toml",
        "study.resolved.json",
        ".results.json.partial",
    ];
    for last in 0..written.len() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("run");
        drop(RunFolder::create(&root, new_run()).unwrap());
        fs::rename(
            root.join("results.json"),
            root.join(".results.json.partial"),
        )
        .unwrap();
        for later in &written[last + 1..] {
            let path = root.join(later);
            if path.is_dir() {
                fs::remove_dir(path).unwrap()
            } else {
                fs::remove_file(path).unwrap()
            }
        }
        // Half of it may be on disk.
        if last > 0 && last != 2 {
            fs::write(root.join(written[last]), "{").unwrap();
        }
        assert!(store::ended_before_it_began(&root).unwrap());
        let mut run = RunFolder::create(&root, new_run()).unwrap();
        assert!(!store::ended_before_it_began(&root).unwrap());
        run.append_trial(trial(0), &files()).unwrap();
        drop(run);
        resume(&root).unwrap();
        assert!(!root.join(".results.json.partial").exists());
    }
}

#[test]
fn a_folder_with_a_trial_is_not_taken_for_one_that_was_only_begun() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("run");
    let mut run = RunFolder::create(&root, new_run()).unwrap();
    run.append_trial(trial(0), &files()).unwrap();
    drop(run);
    fs::remove_file(root.join("results.json")).unwrap();
    let error = RunFolder::create(&root, new_run()).unwrap_err();
    assert!(matches!(error, StoreError::NotARun(_)), "{error}");
    assert!(root.join("trials/0000/trial.json").exists());
}

#[test]
fn a_lock_that_is_a_link_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("run");
    drop(RunFolder::create(&root, new_run()).unwrap());
    fs::remove_file(root.join(".lock")).unwrap();
    let target = dir.path().join("target");
    std::os::unix::fs::symlink(&target, root.join(".lock")).unwrap();
    let error = resume(&root).unwrap_err();
    assert!(error.to_string().contains(".lock"), "{error}");
    assert!(!target.exists());
}

#[test]
fn two_writers_are_one_too_many() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("run");
    let first = RunFolder::create(&root, new_run()).unwrap();
    let error = resume(&root).unwrap_err();
    assert!(matches!(error, StoreError::InUse(_)), "{error}");
    drop(first);
    resume(&root).unwrap();
}

#[test]
fn resume_keeps_what_is_whole_and_removes_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("run");
    let mut run = RunFolder::create(&root, new_run()).unwrap();
    run.append_trial(trial(1), &files()).unwrap();
    let before = fs::read(root.join("results.json")).unwrap();
    run.append_trial(trial(0), &files()).unwrap();
    drop(run);
    // Killed between the rename of the trial and that of results.json ...
    fs::write(root.join("results.json"), before).unwrap();
    // ... and once more in the middle of the next trial.
    fs::create_dir(root.join("trials/.0002.partial")).unwrap();
    fs::write(root.join("trials/.0002.partial/trial.json"), "{\"id\": 2, ").unwrap();

    let mut run = resume(&root).unwrap();
    let has = |run: &RunFolder, id: u32| {
        let mut trials = run.results().trials.iter();
        trials.any(|trial| trial.id == id && trial.cell == format!("cell-{id}"))
    };
    assert!(has(&run, 0) && has(&run, 1) && !has(&run, 2));
    assert!(!root.join("trials/.0002.partial").exists());
    run.append_trial(trial(2), &files()).unwrap();
    let ids: Vec<u32> = store::load(&root)
        .unwrap()
        .trials
        .iter()
        .map(|trial| trial.id)
        .collect();
    assert_eq!(ids, [1, 0, 2]);
}

#[test]
fn resume_refuses_another_study_and_says_what_differs() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("run");
    drop(RunFolder::create(&root, new_run()).unwrap());
    let other = json!({"name": "first look", "trials": [{"cell": "a", "rate": 200}]});
    let error = RunFolder::open_for_resume(&root, &other, Value::clone, &new_run().machine)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("plan.trials[0].rate was 100 and is 200 now"),
        "{error}"
    );
    let empty = tempfile::tempdir().unwrap();
    let error = RunFolder::open_for_resume(empty.path(), &other, Value::clone, &new_run().machine)
        .unwrap_err();
    assert!(matches!(error, StoreError::NoRun(_)));
}

#[test]
fn resume_refuses_a_run_of_another_machine() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("run");
    drop(RunFolder::create(&root, new_run()).unwrap());
    let before = fs::read(root.join("results.json")).unwrap();
    let NewRun {
        study_resolved,
        mut machine,
        ..
    } = new_run();
    machine.cores = 4;
    let error = RunFolder::open_for_resume(&root, &study_resolved, Value::clone, &machine)
        .unwrap_err()
        .to_string();
    let (was, is) = ("began with 2 processors", "this machine has 4");
    assert!(error.contains(was) && error.contains(is), "{error}");
    assert_eq!(fs::read(root.join("results.json")).unwrap(), before);
    // Load and version may change between the parts of a run.
    machine.cores = 2;
    machine.load_average_1min = 7.0;
    RunFolder::open_for_resume(&root, &study_resolved, Value::clone, &machine).unwrap();
}

#[test]
fn newer_and_damaged_files_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("run");
    drop(RunFolder::create(&root, new_run()).unwrap());
    let path = root.join("results.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        text.replace("pubgauge-results/2", "pubgauge-results/9"),
    )
    .unwrap();
    let error = store::load(&root).unwrap_err().to_string();
    assert!(error.contains("newer version; update pubgauge"), "{error}");
    let older = text.replace("pubgauge-results/2", "pubgauge-results/1");
    fs::write(&path, older).unwrap();
    let error = store::load(&root).unwrap_err().to_string();
    assert!(error.contains("older version"), "{error}");
    fs::write(&path, text.replace("pubgauge-results/2", "vegeta")).unwrap();
    let error = store::load(&root).unwrap_err().to_string();
    assert!(error.contains("no results file of pubgauge"), "{error}");
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    let error = store::load(&root).unwrap_err().to_string();
    assert!(
        error.contains("damaged") && error.contains("line"),
        "{error}"
    );
}

#[test]
fn names_cannot_leave_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("run");
    let mut run = RunFolder::create(&root, new_run()).unwrap();
    for name in ["../evil", "a/b", "", ".hidden"] {
        let files = TrialFiles {
            configs: vec![(name.into(), "x".into())],
            ..Default::default()
        };
        let outcome = run.append_trial(trial(1), &files);
        assert!(matches!(outcome, Err(StoreError::FileName(_))), "{name}");
    }
    assert!(!root.join("trials/0001").exists());
    run.append_trial(trial(1), &files()).unwrap();
}

/// A real file system with no room: a private one of 256 KiB in memory, mounted in a mount
/// namespace of its own that ends with the child. This test runs itself again inside.
#[test]
fn a_full_disk_keeps_what_was_there() {
    const INSIDE: &str = "PUBGAUGE_TEST_FULL_DISK";
    if let Some(mount) = std::env::var_os(INSIDE) {
        return fill_up(&PathBuf::from(mount));
    }
    let dir = tempfile::tempdir().unwrap();
    let own_namespace: &[&str] = if may_mount() {
        &["--mount"]
    } else {
        &["--user", "--map-root-user", "--mount"]
    };
    let output = Command::new("unshare")
        .args(own_namespace)
        .args([
            "sh",
            "-c",
            "mount -t tmpfs -o size=256k tmpfs \"$1\" && shift && exec \"$@\"",
            "sh",
        ])
        .arg(dir.path())
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "store::a_full_disk_keeps_what_was_there",
            "--nocapture",
        ])
        .env(INSIDE, dir.path())
        .output()
        .expect("this test needs `unshare` of util-linux");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("full after"),
        "a private tmpfs of 256 KiB is needed (root or user namespaces):\n{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Whether this process may mount, judged by its user in /proc.
fn may_mount() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    status
        .lines()
        .any(|line| line.starts_with("Uid:") && line.split_whitespace().nth(2) == Some("0"))
}

fn fill_up(mount: &Path) {
    let root = mount.join("run");
    let mut run = RunFolder::create(&root, new_run()).unwrap();
    let (stored, error) = (0..1000)
        .find_map(|id| {
            run.append_trial(trial(id), &files())
                .err()
                .map(|error| (id, error))
        })
        .expect("256 KiB cannot hold a thousand trials");
    println!("full after {stored} trials: {error}");
    assert!(matches!(error, StoreError::NoSpace { .. }), "{error}");
    let said = error.to_string();
    assert!(
        said.contains("no space left") && said.contains("--resume"),
        "{said}"
    );
    assert!(stored > 0);
    // Everything stored before is whole; the last trial is there or not, but never in half.
    let loaded: Results = store::load(&root).unwrap();
    assert!(loaded.trials.len() >= stored as usize - 1);
    for trial in &loaded.trials {
        assert_eq!(
            store::load_log(&root, trial.id, "latency").unwrap().len(),
            2
        );
    }
    let leftovers = fs::read_dir(root.join("trials")).unwrap().filter(|entry| {
        entry
            .as_ref()
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with('.')
    });
    assert_eq!(
        leftovers.count(),
        0,
        "the half-written trial left no remains"
    );
    drop(run);
    // With room again the run goes on where it stopped.
    for trial in ["trials/0000", "trials/0001"] {
        fs::remove_dir_all(root.join(trial)).unwrap();
    }
    let run = resume(&root).unwrap();
    let last = format!("cell-{}", stored - 1);
    assert!(run.results().trials.iter().any(|trial| trial.cell == last));
}
