//! Workers in processes of their own: they count as threads do, and what happens to one of them
//! breaks its trial and nothing else.

mod common;

use std::process::Command;
use std::time::Duration;

use common::servers::Mosquitto;
use common::*;
use serde_json::Value;

/// A worker that hangs is noticed after ten seconds.
const NOTICED: Duration = Duration::from_secs(60);

fn args<'a>(on: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["run", "--on", on, "--out", "run"];
    args.extend(["--publishers", "6", "--subscribers", "4"]);
    args.extend(more);
    args
}

/// The ids of the worker processes.
fn workers(place: &Place) -> Vec<i32> {
    let all = place.processes().into_iter();
    all.filter(|(_, line)| line.trim_end().ends_with(" worker"))
        .map(|(pid, _)| pid)
        .collect()
}

/// Valid, everything arrived, and the system counted the same.
#[track_caller]
fn agrees(trial: &Value) {
    adds_up(trial);
    let checks = trial["checks"].as_array().unwrap();
    assert!(!checks.is_empty(), "{}", brief(trial));
    for check in checks {
        assert!(check["not_compared"].is_null(), "{check}");
        let counts = check["counts"].as_array().unwrap();
        let (one, other) = (
            counts[0][1].as_u64().unwrap(),
            counts[1][1].as_u64().unwrap(),
        );
        let tolerance = check["tolerance"].as_u64().unwrap();
        assert!(one > 0 && one.abs_diff(other) <= tolerance, "{check}");
    }
}

#[test]
fn processes_count_as_the_system_does() {
    for (on, more) in [
        ("reference-broker", ["--rate", "100/s-each", "--qos", "1"]),
        ("mosquitto", ["--rate", "max", "--qos", "0"]),
        ("nats", ["--rate", "100/s-each", "--qos", "0"]),
    ] {
        let place = Place::new();
        let mut args = args(on, &more);
        args.extend(["--processes", "2", "--duration", "2s", "--warm-up", "500ms"]);
        let mut run = place.start(&args);
        run.measures();
        assert_eq!(workers(&place).len(), 4, "two on each side");
        let done = run.ends();
        assert!([0, 2].contains(&done.code), "{done:?}");
        place.is_clean();
        let trial = place.trial("run");
        agrees(&trial);
        assert_eq!(count(&trial, "client_processes"), 5, "four and the run");
        let cost = &trial["client_cpu_s"];
        for side in ["publishers", "subscribers"] {
            assert!(cost[side].as_f64().unwrap() > 0.0, "{cost}");
        }
        // Each process has some megabytes at the least; threads of one share theirs.
        assert!(
            count(&trial, "client_rss_bytes") > 5 * 4_000_000,
            "{}",
            brief(&trial)
        );
    }
}

/// A run of two trials, the first of which something happens to in the middle; both, and what was
/// said.
fn disturbed(disturb: impl FnOnce(&[i32])) -> [Value; 2] {
    let place = Place::new();
    let mut args = args("reference-broker", &["--rate", "100/s-each"]);
    args.extend(["--processes", "1", "--repeats", "2"]);
    args.extend(["--duration", "2s", "--warm-up", "200ms"]);
    let mut run = place.start(&args);
    run.measures();
    disturb(&workers(&place));
    run.ends_within(NOTICED).exits(2);
    place.is_clean();
    let results = place.results("run");
    let trials = results["trials"].as_array().unwrap().clone();
    trials.try_into().unwrap()
}

#[test]
fn a_killed_worker_breaks_its_trial_alone() {
    let [first, second] = disturbed(|workers| kill(workers[0], libc::SIGKILL));
    is_broken(&first, &["is gone: was ended by SIGKILL"]);
    agrees(&second);
}

#[test]
fn a_worker_that_hangs_breaks_its_trial_alone() {
    let [first, second] = disturbed(|workers| kill(workers[1], libc::SIGSTOP));
    is_broken(&first, &["worker 1 ", "did not tell what it saw"]);
    agrees(&second);
}

#[test]
fn workers_end_with_their_run() {
    for signal in [libc::SIGINT, libc::SIGKILL] {
        let place = Place::new();
        let mut args = args("reference-broker", &["--rate", "max"]);
        args.extend(["--processes", "2", "--duration", "100s"]);
        let mut run = place.start(&args);
        run.measures();
        assert_eq!(workers(&place).len(), 4);
        run.signal(signal);
        let done = run.ends();
        match signal {
            libc::SIGINT => {
                done.exits(2).says("ending in order");
                place.is_clean();
            }
            _ => place.has_no_process_soon(),
        }
    }
}

/// 300 clients with a limit of 256 open files, on a broker that may open more.
#[test]
fn processes_come_by_themselves_where_one_may_not_open_enough() {
    let place = Place::new();
    let broker = Mosquitto::start();
    let address = broker.address();
    let mut line = Command::new("sh");
    line.args(["-c", "ulimit -n 256 && exec \"$0\" \"$@\""]);
    line.arg(program());
    line.args(["run", "--on", &address, "--out", "run"]);
    line.args([
        "--publishers",
        "290",
        "--subscribers",
        "10",
        "--topics",
        "10",
    ]);
    line.args(["--rate", "2/s-each", "--duration", "2s"]);
    place.here(&mut line);
    let mut run = place.spawn(line);
    run.measures();
    let processes = workers(&place).len();
    assert!((3..=8).contains(&processes), "{processes}");
    run.ends();
    let trial = place.trial("run");
    adds_up(&trial);
    assert_eq!(count(&trial, "connections.made"), 300, "{}", brief(&trial));
}

#[test]
fn secrets_reach_workers_and_nothing_else() {
    let place = Place::new();
    let password = "kept-from-every-file-and-command-line";
    let broker = Mosquitto::with_password(password);
    let address = broker.address().replace("mqtt://", "mqtt://ann@");
    let mut args = args(&address, &["--rate", "20/s-each", "--processes", "1"]);
    args.extend(["--duration", "1s"]);
    let mut command = place.command(&args);
    command.env("PUBGAUGE_PASSWORD", password);
    let mut run = place.spawn(command);
    run.measures();
    for pid in workers(&place) {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
        assert!(!String::from_utf8_lossy(&environment).contains(password));
    }
    assert!(
        place
            .processes()
            .iter()
            .all(|(_, line)| !line.contains(password))
    );
    run.ends();
    adds_up(&place.trial("run"));
    assert_eq!(place.mentions(password), None);
}

#[test]
fn a_worker_is_told_by_a_run_alone() {
    let place = Place::new();
    // Whatever stands on its standard input: an error, no panic.
    let mut line = Command::new("sh");
    line.args(["-c", "printf 'GET / HTTP/1.1\\r\\n\\r\\n' | \"$0\" worker"]);
    line.arg(program());
    place.here(&mut line);
    place
        .finish(line)
        .exits(2)
        .says("a frame of 1195725856 bytes is too long");
    let args = args("simulated", &["--processes", "1"]);
    place.run(&args).exits(3).says("leave `processes` out");
}

/// The whole client stands still for longer than a worker may be silent: nobody hangs.
#[test]
fn a_client_that_sleeps_has_no_worker_that_hangs() {
    for more in [&["--processes", "1"][..], &[]] {
        let place = Place::new();
        let mut args = args("reference-broker", &["--rate", "50/s-each"]);
        args.extend(more);
        args.extend(["--duration", "14s", "--warm-up", "200ms"]);
        let mut run = place.start(&args);
        run.measures();
        let mut all = workers(&place);
        all.push(run.pid());
        all.iter().for_each(|pid| kill(*pid, libc::SIGSTOP));
        std::thread::sleep(Duration::from_millis(11_000));
        all.iter().for_each(|pid| kill(*pid, libc::SIGCONT));
        run.ends_within(NOTICED);
        let trial = place.trial("run");
        assert!(!reasons(&trial).contains("heard of"), "{}", reasons(&trial));
        assert!(
            ["client-bound", "unsteady"].contains(&verdict(&trial)),
            "{}",
            reasons(&trial)
        );
        // What was due in the meantime was sent late, and none of it is missing.
        assert_eq!(count(&trial, "offered"), 14 * 300, "{}", brief(&trial));
        adds_up(&trial);
    }
}
