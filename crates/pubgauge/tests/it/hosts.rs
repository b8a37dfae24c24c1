//! Workers on other hosts, which are network namespaces with names of their own. They count as one process does; what
//! happens to one of them breaks its trial and is told by name; a prefix that reaches no host is told with the reason. Needs
//! root and `ip`.

use crate::common;

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use common::hosts::{Hosts, counts, flags, paced, paced_on};
use common::hypervisor;
use common::*;
use serde_json::Value;

/// Until a lost host is given up, and some time more on a busy machine.
const GIVEN_UP: Duration = Duration::from_secs(100);

const LENGTH: [&str; 4] = ["--duration", "2s", "--warm-up", "500ms"];

/// These flags and those.
fn with<S: AsRef<str>>(flags: &[S], more: &[&str]) -> Vec<String> {
    let flags = flags.iter().map(|flag| flag.as_ref().to_owned());
    flags.chain(more.iter().map(ToString::to_string)).collect()
}

/// The names of a trial's hosts.
fn names(trial: &Value) -> Vec<&str> {
    let hosts = trial["hosts"].as_array().unwrap().iter();
    hosts.map(|host| host["name"].as_str().unwrap()).collect()
}

/// Nothing is left of a run.
#[track_caller]
fn nothing_is_left(place: &Place) {
    place.has_no_process_soon();
    place.is_clean();
}

/// One load from one process and from three hosts: a trial of each, whose parts agree.
fn alone_and_from_three_hosts() -> [Value; 2] {
    let place = Place::new();
    place.run(&paced("alone", &LENGTH)).ran_to_its_end();
    let alone = place.trial("alone");

    let hosts = Hosts::make(3, 0);
    let done = place.run(&paced("hosts", &with(&hosts.flags(), &LENGTH)));
    done.ran_to_its_end();
    let said = done
        .assert_says("host node-1")
        .assert_says("is there: 3 of 3");
    nothing_is_left(&place);
    let several = place.trial("hosts");
    adds_up(&alone);
    adds_up(&several);
    assert!(count(&alone, "offered") >= 12 * 20 * 2 - 12, "{said:?}");
    assert_eq!(count(&several, "offered"), count(&alone, "offered"));
    // On a busy machine some may not leave before the end.
    let all_left = |trial| count(trial, "not_sent") == 0;
    if all_left(&alone) && all_left(&several) {
        assert_eq!(counts(&several), counts(&alone), "{}", brief(&several));
    }
    assert_eq!(names(&several), ["node-0", "node-1", "node-2"]);
    // The workers told their own costs; the run's own processes are those of its host.
    for side in ["publishers", "subscribers"] {
        assert!(several["client_cpu_s"][side].as_f64().unwrap() > 0.0);
    }
    assert_eq!(count(&several, "client_processes"), 1);
    let checks = several["checks"].as_array().unwrap();
    assert!(checks.iter().any(|check| {
        let what = check["counts"].to_string();
        what.contains("mosquitto") && check["not_compared"].is_null()
    }));
    [alone, several]
}

#[test]
fn three_hosts_count_as_one_process_does() {
    alone_and_from_three_hosts();
}

/// A file says what each host is for: the first has the subscribers alone.
#[test]
fn a_file_says_what_hosts_are_for() {
    let place = Place::new();
    let hosts = Hosts::make(2, 1);
    let entry = |rank: usize, side: &str| {
        let command = hosts.prefix(rank);
        format!("[[host]]\ncommand = {command:?}\nfor = \"{side}\"\n")
    };
    let text = entry(0, "subscribers") + &entry(1, "publishers");
    place.write("hosts.toml", text);
    let mut all = flags::<&str>(&hosts.own.to_string(), &[]);
    all.extend(with(&LENGTH, &["--hosts", "hosts.toml"]));
    place.run(&paced("run", &all)).ran_to_its_end();
    nothing_is_left(&place);
    let trial = place.trial("run");
    adds_up(&trial);
    assert_eq!(names(&trial), ["node-0", "node-1"]);
    place.write(
        "hosts.toml",
        "[[host]]\ncommand = \"ssh a\"\nfor = \"both\"\n",
    );
    let wrong = place.run(&paced("wrong", &all)).exits(3);
    wrong
        .assert_says("--hosts hosts.toml: ")
        .assert_says("line 3, column 7");
    assert!(!place.path_to("wrong").exists());
}

/// A clock that is 1000 s ahead is converted to that of the run, to within a bound that is told.
#[test]
fn another_clock_is_converted() {
    let place = Place::new();
    let ahead = "unshare --time --monotonic 1000 --fork --kill-child";
    let all = with(&flags("127.0.0.1", &["env", ahead]), &LENGTH);
    place.run(&paced("run", &all)).ran_to_its_end();
    nothing_is_left(&place);

    let trial = place.trial("run");
    adds_up(&trial);
    let clock = |rank: usize| &trial["hosts"][rank]["clock"];
    assert_eq!(clock(0)["shared"], true);
    assert_eq!(clock(1)["shared"], false);
    let bound = count(clock(1), "bound_ns");
    let offset = clock(1)["offset_ns"].as_i64().unwrap();
    // The true offset is known. The bound is that of the worker's time, which began a moment later.
    let wrong = (offset + 1_000_000_000_000).unsigned_abs();
    assert!(wrong <= bound + 1_000, "{wrong} ns, bound {bound} ns");
    // Exchanges over loopback take less than 20 ms also where processors are busy.
    assert!((1..20_000_000).contains(&bound), "{bound} ns");
    assert_eq!(count(&trial, "one_way.bound_ns"), bound);
    // Quoted times are known to within a tenth.
    for figure in ["min", "mean", "p50", "p90", "p99", "max"] {
        if let Some(quoted) = trial["latency_ns"][figure].as_f64() {
            assert!(quoted >= 10.0 * bound as f64, "{figure}: {quoted}");
        }
    }
    // Before the sending came at most what the bound explains.
    let largest = trial["latency_ecdf"].as_array().unwrap().last().unwrap()[0].as_u64();
    assert!(largest.unwrap() < 10_000_000_000, "{}", brief(&trial));
    let table = place.run(&["report", "run", "-v"]);
    let words: Vec<&str> = table.out.split_whitespace().collect();
    let said = words.join(" ").contains("one-way times are known to");
    assert!(said, "{}", table.out);
}

/// A hypervisor that takes processor time of one of two hosts, the machine of the run itself not being it.
#[test]
fn processor_time_that_a_hypervisor_takes_from_another_host_is_told() {
    let place = Place::new();
    let stat = place.path_to("stat");
    let script = format!("mount --bind {} /proc/stat && exec \"$@\"", stat.display());
    let host = format!("unshare --mount sh -c '{script}' sh");
    let all = with(&flags("127.0.0.1", &["env", &host]), &LENGTH);
    hypervisor::takes(10, &stat, || {
        place.run(&paced("run", &all)).ran_to_its_end();
    });
    nothing_is_left(&place);
    let trial = place.trial("run");
    adds_up(&trial);
    let stolen = trial["worker_load"]["machine_stolen"].as_f64().unwrap();
    assert!(stolen > 0.1 - 1e-9, "{stolen}");
    let rules = trial["verdict"]["reasons"].as_array().unwrap();
    let told = rules.iter().any(|reason| reason["rule"] == "time-stolen");
    assert!(told, "{}", brief(&trial));
    assert_eq!(verdict(&trial), "client-bound", "{}", brief(&trial));
}

/// Each way in which a prefix reaches no host: told with the host and the reason before anything is begun.
#[test]
fn hosts_that_cannot_be_used_are_told() {
    let place = Place::new();
    // A greeting of another version: four bytes of length, and JSON.
    let old = r#"{"link":1,"pubgauge":"0.0.9"}"#;
    let script = format!("#!/bin/sh\nprintf '\\000\\000\\000\\035%s' '{old}'\ncat >/dev/null\n");
    assert_eq!(old.len(), 0o35);
    let program = place.write("old", script);
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let old = program.display().to_string();
    for (prefix, program, says) in [
        (
            "no-such-ssh host",
            None,
            &["host 0 (no-such-ssh host)", "No such file"][..],
        ),
        (
            "env",
            Some("no-such-pubgauge"),
            &["no-such-pubgauge", "ended with exit code 127"],
        ),
        (
            "sh -c 'echo permission denied >&2; exit 255'",
            None,
            &["ended with exit code 255", "permission denied"],
        ),
        (
            "sh -c 'exec \"$0\" \"$@\" </dev/null'",
            None,
            &[
                "ended with exit code 0",
                "standard input on (kubectl exec -i)",
            ],
        ),
        (
            "sh -c 'echo Welcome to node-7; exec \"$0\" \"$@\"'",
            None,
            &["Welcome to node-7", "start-up file"],
        ),
        (
            "env",
            Some(&*old),
            &["pubgauge 0.0.9", "version 1 of the link", "--host-program"],
        ),
    ] {
        let mut all = flags("127.0.0.1", &[prefix]);
        if let Some(program) = program {
            all[3] = program.to_owned();
        }
        let mut done = place.run(&paced("run", &all)).exits(2);
        for part in says {
            done = done.assert_says(part);
        }
        assert!(!place.path_to("run").exists(), "nothing was begun");
        nothing_is_left(&place);
    }
}

#[test]
fn what_other_hosts_cannot_do_is_told_before_they_are_started() {
    let place = Place::new();
    let two = [
        "--load-host",
        "no-such-ssh a",
        "--load-host",
        "no-such-ssh b",
    ];
    let network = "testbed.network";
    for (system, more, says) in [
        (
            "zeromq-direct",
            &["--set", "settings.transport=ipc"][..],
            "stay on one host",
        ),
        (
            "mosquitto",
            &["--pin", "0"],
            "--pin names processors of this host",
        ),
        (
            "mosquitto",
            &["--count-interface", "lo"],
            "counted on the host of the run alone",
        ),
        (
            "mosquitto",
            &[
                "--set",
                &format!("{network}.publisher.hosts=2"),
                "--set",
                &format!("{network}.subscriber.hosts=3"),
            ],
            "2 publisher and 3 subscriber hosts, and the run has 2",
        ),
        (
            "mosquitto",
            &[
                "--set",
                &format!("{network}.publisher.rate=95Mbit/s"),
                "--set",
                &format!("{network}.subscriber.hosts=1"),
            ],
            "leave all but `hosts` out",
        ),
        (
            "mosquitto",
            &["--load-host", "ssh 'a"],
            "a quote is not closed",
        ),
        ("mosquitto", &["--load-host", ""], "an empty command"),
    ] {
        let start = ["run", "--on", system, "--at", "127.0.0.1", "--out", "run"];
        let args = [&start, &two[..], more].concat();
        place.run(&args).exits(3).assert_says(says);
        assert!(!place.path_to("run").exists());
    }
    let nowhere = ["run", "--on", "mosquitto", "--load-host", "ssh a"];
    place.run(&nowhere).exits(3).assert_says("--at <ADDRESS>");
    let anywhere = ["--at", "0.0.0.0"];
    let anywhere = [&nowhere[..], &anywhere].concat();
    place
        .run(&anywhere)
        .exits(3)
        .assert_says("the address of one interface");
    place.is_clean();
}

/// Tests that take long.
mod long {
    use super::*;

    #[test]
    fn a_lost_host_breaks_its_trial_and_may_come_again() {
        let place = Place::new();
        let hosts = Hosts::make(2, 2);
        // A host is there as long as its file is.
        let prefixes: Vec<String> = (0..2)
            .map(|rank| {
                let file = place.write(&format!("up-{rank}"), "");
                let file = file.display();
                format!(
                    "sh -c '[ -e {file} ] && exec \"$0\" \"$@\"' {}",
                    hosts.prefix(rank)
                )
            })
            .collect();
        let more = ["--repeats", "3", "--duration", "2s", "--warm-up", "200ms"];
        let all = with(&flags(&hosts.own.to_string(), &prefixes), &more);
        let mut run = place.start(&paced("run", &all));
        let ends = |rank: usize| {
            for process in hosts.processes(rank) {
                kill(process, libc::SIGKILL);
            }
        };
        run.measures();
        ends(1);
        run.until_said("broken");
        // It is back for the next trial, and lost for good in it.
        run.measures();
        std::fs::remove_file(place.path_to("up-1")).unwrap();
        ends(1);
        let done = run.ends_within(GIVEN_UP).exits(2);
        let done = done.assert_says("lost, and not back within 30 s: host node-1 (");
        done.assert_says("--resume");
        nothing_is_left(&place);
        let results = place.results("run");
        let trials = results["trials"].as_array().unwrap();
        assert_eq!(trials.len(), 2, "the third was not begun");
        for trial in trials {
            is_broken(trial, &["host node-1 ("]);
        }
    }

    /// A host that says nothing more, and does not end either, as one without power: its companion and its workers stand
    /// still.
    #[test]
    fn a_host_that_falls_silent_is_lost() {
        let place = Place::new();
        let hosts = Hosts::make(2, 3);
        let more = ["--duration", "30s", "--warm-up", "200ms"];
        let mut run = place.start(&paced("run", &with(&hosts.flags(), &more)));
        run.measures();
        for process in hosts.processes(1) {
            kill(process, libc::SIGSTOP);
        }
        let done = run.ends_within(GIVEN_UP).exits(2);
        done.assert_says("nothing was heard of it for 10 s");
        nothing_is_left(&place);
        is_broken(&place.trial("run"), &["host node-1 ("]);
    }
}

/// Tests that need a machine that is not busy with other things.
mod real_time {
    use super::*;

    /// All that is due leaves where nothing else runs.
    #[test]
    fn three_hosts_count_as_one_process_does() {
        let [alone, several] = alone_and_from_three_hosts();
        assert_eq!(counts(&several), counts(&alone), "{}", brief(&several));
    }

    /// Publishers of one host are found by subscribers of the others, with nothing between.
    #[test]
    fn without_a_broker_they_count_as_one_process_does() {
        for (number, system) in ["zeromq-direct", "fastdds"].into_iter().enumerate() {
            let place = Place::new();
            place
                .run(&paced_on(system, "alone", &LENGTH))
                .ran_to_its_end();
            let hosts = Hosts::make(3, 4 + number as u32);
            let all = with(&hosts.flags(), &LENGTH);
            place.run(&paced_on(system, "hosts", &all)).ran_to_its_end();
            nothing_is_left(&place);
            let several = place.trial("hosts");
            adds_up(&several);
            let alone = counts(&place.trial("alone"));
            assert_eq!(counts(&several), alone, "{system}: {}", brief(&several));
        }
    }
}
