//! Ctrl-C once and twice, a sudden death, a full disk, and limits that are too low.

use crate::common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pubgauge_testing::meddling::Scripted;

use common::*;

/// An interrupted run is over within this time: without the interruption it takes 100 s, and a stubborn system 600 s.
const SOON: Duration = Duration::from_secs(60);

fn long_run<'a>(on: &'a str, rate: &'a str) -> Vec<&'a str> {
    let mut args = vec!["run", "--on", on, "--rate", rate, "--out", "run"];
    args.extend(["--duration", "100s", "--warm-up", "200ms", "--listen", "0"]);
    args
}

#[test]
fn ctrl_c_once_ends_in_order() {
    for (system, signal) in [
        ("mosquitto", libc::SIGINT),
        ("zeromq-direct", libc::SIGINT),
        ("zeromq-forwarder", libc::SIGTERM),
        ("reference-broker", libc::SIGHUP),
    ] {
        let place = Place::new();
        let mut run = place.start(&long_run(system, "max"));
        run.delivers();
        run.signal(signal);
        run.ends_within(SOON)
            .exits(2)
            .assert_says("ending in order")
            .assert_says("--resume run");
        place.is_clean();
        let results = place.results("run");
        assert_eq!(results["study"]["cut_off"], true);
        // An interrupted trial is measured whole when the run goes on; it is not kept by halves.
        assert_eq!(results["trials"].as_array().unwrap().len(), 0);
        assert!(place.path_to("run/report.html").exists());
        place.run(&["report", "run"]).exits(0);
    }
}

#[test]
fn ctrl_c_keeps_the_trials_that_were_finished() {
    let place = Place::new();
    let mut args = vec!["run", "--on", "reference-broker", "--repeats", "9"];
    args.extend(["--rate", "100/s", "--out", "run"]);
    args.extend(["--duration", "500ms", "--warm-up", "100ms"]);
    let mut run = place.start(&args);
    let second = place.path_to("run/trials/0001");
    run.until("two trials are stored", || second.exists());
    run.signal(libc::SIGINT);
    run.ends_within(SOON).exits(2);
    place.is_clean();
    let results = place.results("run");
    assert_eq!(results["study"]["cut_off"], true);
    let trials = results["trials"].as_array().unwrap();
    assert!((2..9).contains(&trials.len()), "{} trials", trials.len());
    trials.iter().for_each(adds_up);
}

#[test]
fn ctrl_c_while_connecting() {
    let place = Place::new();
    let heard = Arc::new(AtomicU32::new(0));
    let server = Scripted::silent_and_counting(heard.clone());
    let address = server.address();
    let mut run = place.start(&long_run(&address, "100/s"));
    run.until("both are connecting", || heard.load(Ordering::Relaxed) >= 2);
    run.signal(libc::SIGINT);
    run.ends_within(SOON).exits(2);
    place.is_clean();
    assert_eq!(place.results("run")["study"]["cut_off"], true);
}

#[test]
fn ctrl_c_while_the_broker_hangs() {
    let place = Place::new();
    let mut run = place.start(&long_run("mosquitto", "max"));
    run.measures();
    kill(run.systems()[0], libc::SIGSTOP);
    run.is_held_back();
    run.signal(libc::SIGINT);
    run.ends_within(SOON).exits(2);
    place.is_clean();
    place.results("run");
}

/// The drain ends with what came until then, and the system with it: neither is what the system did.
/// Messages fall due while the system stands still, so that the drain has something to wait for.
#[test]
fn ctrl_c_in_the_drain_keeps_no_half_trial() {
    let place = Place::new();
    let mut args = vec![
        "run",
        "--on",
        "mosquitto",
        "--rate",
        "500/s",
        "--out",
        "run",
    ];
    args.extend(["--duration", "1s", "--warm-up", "200ms"]);
    args.extend([
        "--set",
        "phases.drain-within=100s",
        "--set",
        "phases.drain-quiet=100s",
    ]);
    let mut run = place.start(&args);
    run.measures();
    kill(run.systems()[0], libc::SIGSTOP);
    let pid = run.pid();
    run.until("the drain", || !is_measuring(pid));
    run.signal(libc::SIGINT);
    run.ends_within(SOON)
        .exits(2)
        .assert_says("ending in order");
    place.is_clean();
    let results = place.results("run");
    assert_eq!(results["trials"].as_array().unwrap().len(), 0, "{results}");
}

#[test]
fn ctrl_c_once_does_not_wait_for_a_stubborn_system() {
    let place = Place::new();
    place.stubborn_system("600");
    let mut args = long_run("stubborn", "500/s");
    args.extend(["--systems", "mine"]);
    let mut run = place.start(&args);
    run.measures();
    run.signal(libc::SIGINT);
    run.ends_within(SOON).exits(2);
    place.is_clean();
    assert_eq!(place.results("run")["study"]["cut_off"], true);
}

#[test]
fn ctrl_c_twice_ends_at_once() {
    let place = Place::new();
    place.stubborn_system("600");
    let mut args = long_run("stubborn", "max");
    args.extend(["--systems", "mine"]);
    let mut run = place.start(&args);
    run.measures();
    run.signal(libc::SIGINT);
    // Two signals of a kind that wait together are one.
    run.until_said("ending in order");
    let pid = run.pid();
    run.until("the end of the trial", || !is_measuring(pid));
    run.signal(libc::SIGINT);
    run.ends_within(Duration::from_secs(60)).exits(130);
    place.is_clean();
    place.results("run");
}

#[test]
fn ctrl_c_twice_while_the_broker_hangs() {
    for system in ["mosquitto", "reference-broker", "zeromq-forwarder"] {
        let place = Place::new();
        let mut run = place.start(&long_run(system, "max"));
        run.measures();
        kill(run.systems()[0], libc::SIGSTOP);
        run.signal(libc::SIGINT);
        run.until_said("ending in order");
        run.signal(libc::SIGINT);
        let done = run.ends_within(Duration::from_secs(60));
        // In order, if that was faster than the second signal.
        assert!([2, 130].contains(&done.code), "{done:?}");
        place.is_clean();
        place.results("run");
    }
}

#[test]
fn sudden_death_leaves_no_process() {
    for system in ["mosquitto", "reference-broker", "zeromq-forwarder"] {
        let place = Place::new();
        let mut run = place.start(&long_run(system, "500/s"));
        run.measures();
        let systems = run.systems();
        assert_eq!(systems.len(), 1);
        if system == "mosquitto" {
            kill(systems[0], libc::SIGSTOP);
        }
        run.signal(libc::SIGKILL);
        run.wait_for_end().exits(-libc::SIGKILL);
        place.has_no_process_soon();
        // The trials on disk are whole, and the run can go on.
        assert_eq!(place.results("run")["study"]["cut_off"], true);
    }
}

/// The control groups that pubgauge made for a process.
fn groups_of(pid: i32) -> Vec<PathBuf> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let mut groups = Vec::new();
    for line in text.lines().filter(|line| line.contains("/pubgauge-")) {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, own) = (fields.next().unwrap(), fields.next().unwrap());
        let group = Path::new("/sys/fs/cgroup")
            .join(controllers)
            .join(own.trim_start_matches('/'));
        assert!(group.is_dir(), "{}", group.display());
        groups.push(group);
    }
    groups
}

/// The processes between the program and its systems.
fn guards(place: &Place) -> Vec<i32> {
    let all = place.processes().into_iter().map(|(pid, _)| pid);
    all.filter(|pid| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim() == "pubgauge-guard"
    })
    .collect()
}

#[test]
fn groups_of_limited_systems_and_workers_go_with_them() {
    for signal in [libc::SIGINT, libc::SIGKILL] {
        let place = Place::new();
        let mut args = long_run("mosquitto", "500/s");
        args.extend(["--set", "testbed.limits.cores=0.5"]);
        args.extend(["--set", "testbed.limits.memory=64MiB"]);
        args.extend(["--processes", "1", "--set", "client.limits.cores=0.5"]);
        let plan = place.run(&["plan", "--set", "testbed.limits.cores=0.5", "--rate", "1/s"]);
        let mut run = place.start(&args);
        run.measures();
        // A broker and two workers.
        let held = run.systems();
        assert_eq!(held.len(), 3);
        let groups: Vec<PathBuf> = held.into_iter().flat_map(groups_of).collect();
        // A machine that lets no groups be made was named in the plan.
        let told = plan.out.contains("cannot be held here");
        assert_eq!(groups.is_empty(), told, "{}", plan.out);
        run.signal(signal);
        run.wait_for_end();
        place.has_no_process_soon();
        for group in groups {
            assert!(!group.exists(), "{signal}: {} is left", group.display());
        }
    }
}

#[test]
fn the_disk_is_full() {
    let place = Place::new();
    // A disk of its own, small enough for some trials; then room is made and the run goes on.
    let run = "run --on simulated --repeats 12 --rate 200/s --duration 200ms --warm-up 100ms";
    let script = format!(
        "mkdir disk && mount -t tmpfs -o size=160k tmpfs disk || exit 99\n\
         $0 {run} --out disk/run; echo code $?\n\
         cp -r disk/run full\n\
         mount -o remount,size=100m disk || exit 99\n\
         $0 {run} --resume disk/run; echo code $?\n\
         cp -r disk/run whole"
    );
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
    command.arg(program());
    place.run_here(&mut command);
    let done = place
        .finish(command)
        .assert_says("no space left")
        .assert_says("--resume disk/run");
    let codes: Vec<&str> = done
        .out
        .lines()
        .filter(|l| l.starts_with("code "))
        .collect();
    assert_eq!(codes[0], "code 2", "{done:?}");
    place.is_clean();

    let full = place.results("full");
    assert_eq!(full["study"]["cut_off"], true);
    let kept = full["trials"].as_array().unwrap();
    assert!(
        (1..12).contains(&kept.len()),
        "{} trials fitted",
        kept.len()
    );
    kept.iter().for_each(adds_up);
    let half = |path: &std::path::PathBuf| path.to_string_lossy().contains(".partial");
    assert!(!place.files().iter().any(half), "{:?}", place.files());

    let whole = place.results("whole");
    let trials = whole["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 12);
    assert_eq!(&trials[..kept.len()], &kept[..], "none was measured twice");
    assert_eq!(whole["study"]["cut_off"], false);
}

/// pubgauge under a limit of open files.
fn limited(place: &Place, limit: &str, publishers: u64, out: &str) -> Done {
    let mut command = Command::new("sh");
    let line = format!(
        "ulimit {limit} && exec $0 run --on reference-broker --publishers {publishers} \
         --rate 200/s --duration 500ms --warm-up 100ms --out {out}"
    );
    command.args(["-c", &line]).arg(program());
    place.run_here(&mut command);
    place.finish(command)
}

#[test]
fn too_few_file_descriptors_for_the_plan() {
    let place = Place::new();
    let before = place.files();
    let done = limited(&place, "-n 100", 200, "run")
        .exits(3)
        .assert_says("201 clients need ")
        .assert_says("this process may open 100")
        .assert_says("hint: ");
    assert_eq!(place.files(), before);
    place.is_clean();
    // The number that would fit does fit, and one more does not.
    let words: Vec<&str> = done.err.split_whitespace().collect();
    let at = words
        .windows(3)
        .position(|w| w == ["clients", "would", "fit"]);
    let fit: u64 = words[at.expect("what would fit") - 1].parse().unwrap();
    assert!((1..100).contains(&fit), "{fit}");
    limited(&place, "-n 100", fit - 1, "fits");
    let trial = place.trial("fits");
    adds_up(&trial);
    assert_eq!(count(&trial, "connections.made"), fit);
    // With one more publishers and subscribers are processes of their own.
    limited(&place, "-n 100", fit, "apart")
        .assert_says("the publishing devices of each broker run in 1 process");
    let trial = place.trial("apart");
    adds_up(&trial);
    assert_eq!(count(&trial, "connections.made"), fit + 1);
    place.is_clean();
}

#[test]
fn a_soft_limit_is_raised() {
    let place = Place::new();
    limited(&place, "-S -n 64", 150, "run");
    adds_up(&place.trial("run"));
    place.is_clean();
}

/// Tests that take long.
mod long {
    use super::*;

    /// RabbitMQ, because it starts processes that have another parent soon.
    #[test]
    fn what_program_and_guard_leave_ends_at_the_next_start() {
        let place = Place::new();
        let mut run = place.start(&long_run("rabbitmq", "100/s"));
        run.delivers();
        let guards = guards(&place);
        assert_eq!(guards.len(), 1);
        // A guard that does not run cannot do what it is for.
        kill(guards[0], libc::SIGSTOP);
        run.signal(libc::SIGKILL);
        run.wait_for_end().exits(-libc::SIGKILL);
        kill(guards[0], libc::SIGKILL);
        std::thread::sleep(Duration::from_millis(500));
        let left = place.processes();
        assert!(!left.is_empty(), "nothing of it outlives its guard");
        let mut args = vec!["run", "--on", "reference-broker", "--rate", "100/s"];
        args.extend(SHORT);
        place.run(&args);
        place.is_clean();
    }

    #[test]
    fn what_a_killed_guard_leaves_ends_with_its_trial() {
        let place = Place::new();
        let mut run = place.start(&long_run("rabbitmq", "100/s"));
        run.delivers();
        kill(guards(&place)[0], libc::SIGKILL);
        run.ends_within(SOON).exits(2);
        place.is_clean();
        is_broken(&place.trial("run"), &["SIGKILL"]);
    }
}
