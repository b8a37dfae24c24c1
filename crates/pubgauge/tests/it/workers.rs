//! Workers in processes of their own: they count as threads do, and what happens to one of them
//! breaks its trial and nothing else.

use crate::common;

use std::process::Command;
use std::time::{Duration, Instant};

use pubgauge_testing::mosquitto::Mosquitto;

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

/// Two groups of two members each, whose members are in two processes.
#[test]
fn a_group_in_two_processes_counts_as_the_system_does() {
    for (system, qos) in [("mosquitto", "at-least-once"), ("nats", "at-most-once")] {
        let place = Place::new();
        place.write(
            "shared.toml",
            format!(
                "name = \"shared\"\nsystems = [\"{system}\"]\n\
                 [phases]\nwarm-up = \"500ms\"\nmeasure = \"2s\"\nready-within = \"60s\"\ndrain-within = \"60s\"\n\
                 [client]\nprocesses = 2\n[[settings]]\nreliability = \"{qos}\"\n\
                 [[workload]]\nname = \"teams\"\n\
                 flow = [{{ pattern = \"shared\", groups = 2, publishers = 3, subscribers = 4, topics = 3, \
                 payload = \"64B\", rate = \"1000/s\" }}]\n"
            ),
        );
        let mut run = place.start(&["run", "shared.toml", "--out", "run"]);
        run.measures();
        assert_eq!(workers(&place).len(), 4, "two on each side");
        let done = run.wait_for_end();
        done.ran_to_its_end();
        let trial = place.trial("run");
        agrees(&trial);
        assert_eq!((count(&trial, "lost"), count(&trial, "duplicated")), (0, 0));
        let groups = trial["groups"].as_array().unwrap();
        assert_eq!(groups.len(), 2, "{}", brief(&trial));
        for group in groups {
            let members = group["deliveries"].as_array().unwrap();
            let got: Vec<u64> = members.iter().map(|n| n.as_u64().unwrap()).collect();
            assert_eq!(got.len(), 2);
            assert!(got.iter().all(|got| *got > 0), "{group}");
            assert_eq!(
                got.iter().sum::<u64>(),
                count(&trial, "published"),
                "{group}"
            );
        }
    }
}

#[test]
fn processes_count_as_the_system_does() {
    for (on, more) in [
        ("reference-broker", ["--rate", "100/s-each", "--qos", "1"]),
        ("mosquitto", ["--rate", "500/s-each", "--qos", "0"]),
        ("nats:mqtt", ["--rate", "100/s-each", "--qos", "0"]),
    ] {
        let place = Place::new();
        let mut args = args(on, &more);
        args.extend(["--processes", "2", "--duration", "2s", "--warm-up", "500ms"]);
        let mut run = place.start(&args);
        run.measures();
        assert_eq!(workers(&place).len(), 4, "two on each side");
        let done = run.wait_for_end();
        done.ran_to_its_end();
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
    is_broken(&first, &["worker 1 was not heard of for 10 s"]);
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
        let done = run.wait_for_end();
        match signal {
            libc::SIGINT => {
                done.exits(2).assert_says("ending in order");
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
    let mut args = vec!["run", "--on", &address, "--out", "run", "--topics", "10"];
    args.extend(["--publishers", "290", "--subscribers", "10"]);
    args.extend(["--rate", "2/s-each", "--duration", "2s"]);
    let mut run = place.spawn(place.command_after("ulimit -n 256", &args));
    run.measures();
    let processes = workers(&place).len();
    assert!((3..=8).contains(&processes), "{processes}");
    run.wait_for_end();
    let trial = place.trial("run");
    adds_up(&trial);
    assert_eq!(count(&trial, "connections.made"), 300, "{}", brief(&trial));
}

/// Processor time of all threads of a process; `None` if it has ended.
fn used(pid: i32) -> Option<Duration> {
    let mut all = Duration::ZERO;
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        all += Duration::from_nanos(text.split(' ').next()?.parse().ok()?);
    }
    Some(all)
}

/// A run with a tenth of a core for each worker, and so many subscribers and messages a second; its
/// trial, and whether the kernel could hold that. Nothing of what follows is laid on the system.
fn held_to_a_tenth(subscribers: &str, rate: &str) -> (Value, bool) {
    let place = Place::new();
    let mut args = vec!["run", "--on", "reference-broker", "--out", "run"];
    args.extend(["--publishers", "6", "--subscribers", subscribers]);
    args.extend(["--rate", rate, "--processes", "1"]);
    args.extend(["--duration", "3s", "--warm-up", "200ms"]);
    args.extend(["--set", "client.limits.cores=0.1"]);
    args.extend(["--set", "client.limits.memory=512MiB"]);
    args.extend(["--set", "phases.ready-within=60s"]);
    args.extend(["--set", "phases.drain-within=60s"]);
    let begun = Instant::now();
    let mut run = place.start(&args);
    run.measures();
    let workers = workers(&place);
    assert_eq!(workers.len(), 2);
    let quota = workers.iter().all(|pid| {
        let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
        groups.contains("/pubgauge-")
    });
    // The kernel's accounts, beside pubgauge's. The time between is read wider than the processor
    // time: the bound holds on a busy machine.
    let from = Instant::now();
    let before: Vec<Duration> = workers.iter().map(|pid| used(*pid).unwrap()).collect();
    let mut most = vec![Duration::ZERO; workers.len()];
    run.until("a second", || from.elapsed() > Duration::from_secs(1));
    for (nth, pid) in workers.iter().enumerate().filter(|_| quota) {
        most[nth] = used(*pid).unwrap() - before[nth];
        let share = from.elapsed().mul_f64(0.11) + Duration::from_millis(20);
        assert!(most[nth] <= share, "{:?}, {share:?} at most", most[nth]);
    }
    let done = run.wait_for_end().exits(2);
    let whole = begun.elapsed();
    place.is_clean();
    let trial = place.trial("run");
    let limits = &trial["client_limits"];
    assert_eq!(limits["instances"], 2, "{limits:#}");
    assert_eq!(limits["cores"], 0.1, "{limits:#}");
    assert_eq!(limits["memory_bytes"], 512 << 20, "{limits:#}");
    assert!(trial["limits"].is_null());
    assert_eq!(limits["cores_by_quota"], quota, "{limits:#}");
    let page = std::fs::read_to_string(place.path_to("run/report.html")).unwrap();
    assert!(page.contains("each worker process had 0.1 cores"));
    if !quota {
        let not_held = limits["not_held"].to_string();
        assert!(not_held.contains("0.1 cores as a quota"), "{limits:#}");
        return (trial, quota);
    }
    // A worker that waits for its share reads its clock late: the bound is that of the whole run.
    let share = 0.11 * whole.as_secs_f64() + 0.02;
    for side in ["publishers", "subscribers"] {
        let used = trial["client_cpu_s"][side].as_f64().unwrap();
        assert!(0.0 < used && used <= share, "{side}: {used} s of {share} s");
    }
    let reasons = reasons(&trial);
    assert_eq!(verdict(&trial), "client-bound", "{reasons}\n{}", done.err);
    assert!(
        reasons.contains("each worker process being held to 0.1 cores"),
        "{reasons}"
    );
    (trial, quota)
}

#[test]
fn publishers_that_used_up_their_share_are_client_bound() {
    let (trial, quota) = held_to_a_tenth("1", "2M/s");
    let unsent = "never offered to the system, because the publishers were behind";
    assert!(
        !quota || count(&trial, "not_sent") > 0 && reasons(&trial).contains(unsent),
        "{}",
        brief(&trial)
    );
}

#[test]
fn subscribers_that_used_up_their_share_are_client_bound() {
    let (trial, quota) = held_to_a_tenth("8", "120k/s");
    let late = "the busiest subscribing worker ran";
    assert!(
        !quota || reasons(&trial).contains(late),
        "{}",
        brief(&trial)
    );
}

/// The kernel ends a worker that needs more memory than it was given; the system is not to blame.
#[test]
fn a_worker_that_outgrows_its_memory_says_so() {
    let place = Place::new();
    let mut args = args("reference-broker", &["--rate", "10/s-each"]);
    args.extend(["--processes", "1", "--duration", "1s"]);
    args.extend(["--set", "client.limits.memory=4MiB"]);
    // A pool of payloads takes more.
    args.extend(["--payload", "64MiB"]);
    place.run(&args).exits(2);
    place.is_clean();
    let trial = place.trial("run");
    if trial["client_limits"]["memory_by"].is_string() {
        is_broken(&trial, &["its memory is limited to 4 MiB"])
    } else {
        assert!(
            trial["client_limits"]["not_held"]
                .to_string()
                .contains("4 MiB")
        )
    }
}

#[test]
fn limits_of_workers_need_worker_processes() {
    let place = Place::new();
    let before = place.files();
    let limits = ["--set", "client.limits.cores=0.5"];
    for (on, hint) in [
        ("reference-broker", "add `processes = 1` to [client]"),
        ("simulated", "leave [client.limits] out"),
    ] {
        let plan = ["plan", "--on", on, "--rate", "1/s", limits[0], limits[1]];
        for args in [&args(on, &limits)[..], &plan] {
            let done = place.run(args).exits(3);
            done.assert_says("[client.limits] are for worker processes")
                .assert_says(hint);
        }
    }
    assert_eq!(place.files(), before);
    let study = ["--set", "client.processes=1"];
    let plan = ["plan", "--on", "reference-broker", "--rate", "1/s"];
    let plan = [&plan[..], &limits[..], &study[..]].concat();
    let done = place.run(&plan).exits(0);
    let told = "each worker process gets 0.5 cores";
    assert!(done.out.contains(told), "{}", done.out);
}

#[test]
fn secrets_reach_workers_and_nothing_else() {
    let place = Place::new();
    let password = "kept-from-every-file-and-command-line";
    let broker = Mosquitto::with_password(password, "");
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
    run.wait_for_end();
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
    place.run_here(&mut line);
    place
        .finish(line)
        .exits(2)
        .assert_says("a frame of 1195725856 bytes is too long");
    let args = args("simulated", &["--processes", "1"]);
    place
        .run(&args)
        .exits(3)
        .assert_says("leave `processes` out");
}

/// A trial of `length` whose whole client stands still for a while, from soon after the beginning.
fn sleeps(more: &[&'static str], length: &'static str, still: Duration) -> Value {
    let place = Place::new();
    let mut args = args("reference-broker", &["--rate", "50/s-each"]);
    args.extend(more);
    args.extend(["--duration", length, "--warm-up", "200ms"]);
    let mut run = place.start(&args);
    run.measures();
    let mut all = workers(&place);
    all.push(run.pid());
    all.iter().for_each(|pid| kill(*pid, libc::SIGSTOP));
    std::thread::sleep(still);
    all.iter().for_each(|pid| kill(*pid, libc::SIGCONT));
    run.ends_within(NOTICED);
    place.trial("run")
}

/// Tests that take long.
mod long {
    use super::*;

    /// The whole client stands still for longer than a worker may be silent: nobody hangs.
    #[test]
    fn a_client_that_sleeps_has_no_worker_that_hangs() {
        for more in [&["--processes", "1"][..], &[]] {
            let trial = sleeps(more, "14s", Duration::from_millis(11_000));
            assert!(!reasons(&trial).contains("heard of"), "{}", reasons(&trial));
            assert!(
                ["client-bound", "unsteady"].contains(&verdict(&trial)),
                "{}",
                reasons(&trial)
            );
            // Messages due in the meantime were sent late, and none is missing.
            assert_eq!(count(&trial, "offered"), 14 * 300, "{}", brief(&trial));
            adds_up(&trial);
        }
    }
}

mod real_time {
    use super::*;

    /// The whole client stands still across the end of the measurement: it is named, with its share of the measurement.
    #[test]
    fn a_client_that_sleeps_across_the_end_is_named() {
        for more in [&["--processes", "1"][..], &[]] {
            let trial = sleeps(more, "5s", Duration::from_millis(7_000));
            assert_eq!(verdict(&trial), "client-bound", "{}", reasons(&trial));
            let load = &trial["worker_load"];
            for who in ["publishers", "subscribers", "machine"] {
                let stalled = load[format!("{who}_stalled")].as_f64().unwrap();
                assert!((0.05..=1.0).contains(&stalled), "{who}: {stalled}");
            }
            assert!(load["longest_stall_ns"].as_u64() <= Some(5_000_000_000));
            // Messages that were due and did not leave are the client's.
            assert_eq!(count(&trial, "offered"), 5 * 300, "{}", brief(&trial));
            adds_up(&trial);
        }
    }
}
