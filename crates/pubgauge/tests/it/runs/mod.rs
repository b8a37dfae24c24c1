//! Whole runs over real systems: what is counted, stored, shown and resumed.

use crate::common;
mod traffic;

use std::path::Path;

use common::*;
use pubgauge_figures::processor_shares::shares;
use serde_json::Value;

/// A study of one simulated trial, with criteria. The delay is long against anything that a busy
/// machine does to the client, so that the trial is valid.
fn judged(criteria: &str) -> String {
    format!(
        r#"
name = "judged"
[phases]
warm-up = "200ms"
measure = "1s"
[[settings]]
native.simulated.delay-median-ns = 200_000_000
[[workload]]
name = "slow"
[[workload.flow]]
payload = "64B"
rate = "50/s"
{criteria}
"#
    )
}

#[test]
fn criteria_decide_the_exit_code() {
    let place = Place::new();
    let run = |name: &str, criteria: &str| {
        place.write("judged.toml", judged(criteria));
        place.run(&["run", "judged.toml", "--on", "simulated", "--out", name])
    };
    let unmet = "[[criterion]]\nfigure = \"published\"\nabove = 50\n";
    run("unmet", unmet).exits(1);
    assert_eq!(place.results("unmet")["study"]["criteria"][0]["met"], false);

    let met = "[[criterion]]\nfigure = \"lost\"\nequals = 0\n\
               [[criterion]]\nfigure = \"delivered\"\nequals = 50\n";
    // Counts are judged whatever the machine is busy with; the trial itself has to be valid too
    // for exit code 0, and that may need more than one attempt.
    for attempt in 0..8 {
        let name = format!("met{attempt}");
        let done = run(&name, met);
        let results = place.results(&name);
        for criterion in results["study"]["criteria"].as_array().unwrap() {
            assert_eq!(criterion["met"], true, "{criterion}");
        }
        let valid = verdict(&results["trials"][0]) == "valid";
        let done = done.exits(if valid { 0 } else { 2 });
        if valid {
            assert!(done.out.contains("simulated"), "{}", done.out);
            place.is_clean();
            return;
        }
    }
    panic!("no valid trial in eight attempts on a simulated system");
}

#[test]
fn repeats_are_counted_and_shuffled_by_the_seed() {
    let place = Place::new();
    let mut args = vec!["run", "--on", "simulated", "--repeats", "3", "--out", "run"];
    args.extend(argv("--rate 50/s --duration 300ms --warm-up 100ms"));
    place.run(&args);
    let results = place.results("run");
    let trials = results["trials"].as_array().unwrap();
    let mut repeats: Vec<u64> = trials.iter().map(|t| count(t, "repeat")).collect();
    repeats.sort_unstable();
    assert_eq!(repeats, [1, 2, 3]);
    assert!(trials.iter().all(|t| t["cell"] == trials[0]["cell"]));
}

#[test]
fn json_is_the_results_file() {
    let place = Place::new();
    let mut args = argv("run --on simulated --json --quiet --out run");
    args.extend(argv("--rate 50/s --duration 300ms --warm-up 100ms"));
    let done = place.run(&args);
    assert_eq!(done.err, "", "--quiet");
    let mut printed: Value = serde_json::from_str(&done.out).unwrap();
    let answer = printed.as_object_mut().unwrap().remove("answer");
    assert!(answer.is_some_and(|answer| answer["study"] == "flags"));
    assert_eq!(printed, place.results("run"));
}

#[test]
fn a_run_without_out_makes_a_folder_of_its_own() {
    let place = Place::new();
    let mut args = vec!["run", "--on", "simulated"];
    args.extend(argv("--rate 50/s --duration 300ms --warm-up 100ms"));
    let done = place.run(&args);
    let mut lines = done.out.lines();
    let page = lines
        .find_map(|line| line.strip_prefix("page: "))
        .expect("a page");
    assert!(page.starts_with("results/"), "{page}");
    assert!(place.path_to(page).exists());
}

#[test]
fn a_run_that_was_cut_goes_on_and_measures_no_trial_twice() {
    let place = Place::new();
    let args = |last: &'static str| {
        let mut args = vec!["run", "--on", "simulated,reference-broker"];
        args.extend(["--repeats", "2", "--rate", "100/s"]);
        args.extend(["--duration", "1s", "--warm-up", "100ms"]);
        args.extend([last, "run"]);
        args
    };
    let mut started = place.start(&args("--out"));
    let first = place.path_to("run/trials/0000");
    started.until("the first trial is stored", || first.exists());
    started.measures();
    started.signal(libc::SIGINT);
    started
        .ends_within(std::time::Duration::from_secs(60))
        .exits(2)
        .assert_says("--resume run");
    place.is_clean();
    let before = place.results("run");
    let stored = before["trials"].as_array().unwrap().clone();
    assert_eq!(before["study"]["cut_off"], true);
    assert!((1..4).contains(&stored.len()), "{} trials", stored.len());

    // Another study must not be mixed in.
    let mut other = args("--resume");
    other[4] = "3";
    place
        .run(&other)
        .exits(3)
        .assert_says("not the one this run began with");

    place.run(&args("--resume"));
    place.is_clean();
    let after = place.results("run");
    let trials = after["trials"].as_array().unwrap();
    assert_eq!(after["study"]["cut_off"], false);
    assert_eq!(trials[..stored.len()], stored[..], "kept as they were");
    let mut ids: Vec<u64> = trials.iter().map(|t| count(t, "id")).collect();
    ids.sort_unstable();
    assert_eq!(ids, [0, 1, 2, 3]);
    assert!(trials.iter().all(|t| verdict(t) != "broken"));
}

#[test]
fn the_resume_command_that_is_printed_goes_on() {
    let place = Place::new();
    // A folder that a shell must be shown in quotes; flags that the command does not repeat.
    let mut args = argv("run --on simulated,reference-broker --repeats 2");
    args.extend(["--rate", "100/s", "--duration", "1s", "--warm-up", "100ms"]);
    args.extend(["--publisher-workers", "2", "--out", "the run"]);
    let mut started = place.start(&args);
    let first = place.path_to("the run/trials/0000");
    started.until("the first trial is stored", || first.exists());
    started.measures();
    started.signal(libc::SIGINT);
    let done = started
        .ends_within(std::time::Duration::from_secs(60))
        .exits(2);
    let command = done.err.split("go on with: pubgauge ").nth(1);
    let command = command
        .and_then(|rest| rest.lines().next())
        .expect("a command");
    assert_eq!(command, "run --resume 'the run'");
    let before = place.results("the run");
    let stored = before["trials"].as_array().unwrap().clone();

    // Other workers must not be mixed in.
    let other = ["run", "--resume", "the run", "--publisher-workers", "3"];
    place
        .run(&other)
        .exits(3)
        .assert_says("began with other workers");

    let mut shell = std::process::Command::new("sh");
    shell
        .args(["-c", &format!("\"$0\" {command}")])
        .arg(program());
    place.run_here(&mut shell);
    let done = place.finish(shell);
    assert!(done.code == 0 || done.code == 2, "{done:?}");
    place.is_clean();
    let after = place.results("the run");
    let trials = after["trials"].as_array().unwrap();
    assert_eq!(after["study"]["cut_off"], false);
    assert_eq!(trials[..stored.len()], stored[..], "kept as they were");
    assert_eq!(trials.len(), 4);
    // Once more, there is nothing left to do.
    place
        .run(&["run", "--resume", "the run"])
        .assert_says("every trial has been measured already");
    assert_eq!(place.results("the run")["trials"], after["trials"]);
}

#[test]
fn a_broker_file_of_the_users_own_runs() {
    let place = Place::new();
    let path = place.system("mosquitto", "my-broker", &[]);
    let mut args = argv("run --systems mine --on my-broker --out run");
    args.extend(["--rate", "100/s"]);
    args.extend(SHORT);
    place.run(&args);
    place.is_clean();
    let trial = place.trial("run");
    adds_up(&trial);
    assert_eq!(trial["system"]["name"], "my-broker");
    assert_eq!(trial["errors"], Value::Array(Vec::new()));
    assert_ne!(trial["system"]["version"], "unknown");
    assert!(trial["system_cpu_s"].is_number());
    let listed = place.run(&["systems", "--systems", "mine"]).exits(0);
    assert!(listed.out.contains("my-broker"));

    // A mistake in it is shown with its place.
    let wrong = place.system("mosquitto", "my-broker", &[("[ready]", "[redy]")]);
    assert_eq!(wrong, path);
    let before = place.files();
    place
        .run(&args)
        .exits(3)
        .assert_says("my-broker.toml:")
        .assert_says("redy");
    assert_eq!(place.files(), before);
}

#[test]
fn traces_are_converted_shown_and_replayed() {
    let place = Place::new();
    let mut rows = String::from("when;meter;watts\n");
    for i in 0..40 {
        rows.push_str(&format!(
            "{}.{:03};m{};{}\n",
            1_500_000_000 + i / 20,
            i % 20 * 50,
            i % 4,
            i
        ));
    }
    place.write("readings.csv", rows);
    let convert = [
        "trace",
        "convert",
        "readings.csv",
        "--delimiter",
        ";",
        "--time",
        "when",
    ];
    let mut args = convert.to_vec();
    args.extend(argv("--time-format epoch-s --device meter --size-bytes 48"));
    args.extend(["--out", "trace.csv.gz"]);
    place.run(&args).exits(0);
    let shown = place.run(&["trace", "show", "trace.csv.gz"]).exits(0);
    assert!(
        shown.out.starts_with("40 messages of 4 devices"),
        "{}",
        shown.out
    );
    place.write(
        "replay.toml",
        r#"
name = "replay"
[phases]
warm-up = "0s"
measure = "1s"
[trace.meters]
files = ["trace.csv.gz"]
[[workload]]
name = "meters"
[[workload.flow]]
pattern = "n-1"
publishers = 4
replay = { trace = "meters" }
"#,
    );
    place.run(&argv("run replay.toml --on reference-broker --out run"));
    place.is_clean();
    let trial = place.trial("run");
    adds_up(&trial);
    assert_eq!(trial["workload"]["arrivals"], "replayed trace");
}

#[test]
fn calibration_is_stored_and_goes_with_every_later_run() {
    let place = Place::new();
    let done = place.run(&["calibrate", "--json"]).exits(0);
    let mut calibration: Value = serde_json::from_str(&done.out).unwrap();
    // Conclusions from the figures are printed and not stored.
    let good_for = calibration
        .as_object_mut()
        .unwrap()
        .remove("good_for")
        .unwrap();
    assert!(good_for["received_msgs_per_s_per_core"].as_f64().unwrap() > 0.0);
    let truth = &calibration["truth"];
    for of in ["lost", "duplicated", "reordered"] {
        assert_eq!(truth[of][0], truth[of][1], "{of}: true and reported");
        assert!(truth[of][0].as_u64().unwrap() > 0, "{of}");
    }
    assert!(truth["worst_error"].as_f64().unwrap() <= 0.02, "{truth}");
    place.is_clean();
    let mut args = vec!["run", "--on", "simulated", "--rate", "50/s", "--out", "run"];
    args.extend(["--duration", "300ms", "--warm-up", "100ms"]);
    place.run(&args);
    assert_eq!(place.results("run")["machine"]["calibration"], calibration);
}

#[test]
fn the_path_of_the_page_is_a_file_that_works_offline() {
    let place = Place::new();
    let mut args = vec!["run", "--on", "simulated", "--rate", "50/s", "--out", "run"];
    args.extend(["--duration", "300ms", "--warm-up", "100ms"]);
    let done = place.run(&args);
    assert!(
        done.out.contains("\npage: run/report.html\n"),
        "{}",
        done.out
    );
    let page = std::fs::read_to_string(Path::new(&place.path_to("run/report.html"))).unwrap();
    for outside in ["src=\"http", "href=\"http", "@import", "url(http"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

/// A system that stays up serves one trial after the other, each is counted alone, and nothing is left at the end.
/// Counts over HTTP (NATS) are read before and after each trial; those on topics begin with the system.
#[test]
fn a_system_stays_up_from_trial_to_trial() {
    for (system, keep, earlier, counted) in [
        ("nats:mqtt", true, [0, 1, 2], [true, true, true]),
        ("reference-broker", true, [0, 1, 2], [true, false, false]),
        ("reference-broker", false, [0, 0, 0], [true, true, true]),
    ] {
        let place = Place::new();
        let keep = format!("testbed.keep-running={keep}");
        let mut args = vec!["run", "--on", system, "--rate", "200/s", "--out", "run"];
        args.extend(["--duration", "1s", "--warm-up", "100ms", "--repeats", "3"]);
        args.extend(["--set", &keep]);
        place.run(&args).ran_to_its_end();
        place.has_no_process_soon();
        place.is_clean();
        let results = place.results("run");
        let trials = results["trials"].as_array().unwrap();
        assert_eq!(trials.len(), 3);
        for (trial, (earlier, counted)) in trials.iter().zip(earlier.into_iter().zip(counted)) {
            adds_up(trial);
            let before = &trial["circumstances"]["earlier_trials"];
            assert_eq!(before.as_u64().unwrap_or(0), earlier, "{system}, {keep}");
            let served = |check: &Value| {
                let why = check["not_compared"].as_str().unwrap_or_default();
                why.contains("has served a trial already")
            };
            let left_out = trial["checks"].as_array().unwrap().iter().any(served);
            assert_eq!(!left_out, counted, "{system}, {keep}: {}", trial["checks"]);
        }
    }
}

/// Systems flat out with a share of the machine that holds, each with what it used of it; what could not be held is told.
fn held_to_a_share(used_of_share: fn(&str, f64)) {
    for system in ["mosquitto", "reference-broker"] {
        let place = Place::new();
        let mut args = vec!["run", "--on", system, "--rate", "max", "--out", "run"];
        args.extend(["--duration", "2s", "--warm-up", "500ms"]);
        args.extend(["--set", "testbed.limits.cores=0.2"]);
        args.extend(["--set", "testbed.limits.memory=256MiB"]);
        place.run(&args);
        let trial = &place.results("run")["trials"][0];
        adds_up(trial);
        let limits = &trial["limits"];
        assert_eq!(limits["cores"], 0.2, "{limits:#}");
        assert_eq!(limits["memory_bytes"], 256 << 20, "{limits:#}");
        let not_held = limits["not_held"].as_array().unwrap();
        if limits["cores_by_quota"] == true {
            assert!(limits["cores_by"].as_str().unwrap().contains("quota"));
            // Within a tenth, and the slices that were given out when the measurement began.
            let most = 0.22 * trial["duration_s"].as_f64().unwrap() + 0.02;
            let used = trial["system_cpu_s"].as_f64().unwrap();
            assert!(used <= most, "{system}: {used} s, {most} s at most");
            let parsed = serde_json::from_value(trial.clone()).expect("a trial");
            let of_share = shares(&parsed).and_then(|shares| shares.system);
            let of_share = of_share.expect("the system is in sight");
            assert!(of_share <= 1.15, "{system}: {of_share}");
            used_of_share(system, of_share);
        } else {
            assert!(
                not_held
                    .iter()
                    .any(|what| what.as_str().unwrap().contains("quota"))
            );
        }
        assert!(
            limits["memory_by"].is_string() || !not_held.is_empty(),
            "{limits:#}"
        );
    }
}

#[test]
fn a_system_gets_no_more_than_its_share() {
    held_to_a_share(|_, _| {});
}

mod real_time {
    use super::*;

    /// Where nothing else runs.
    #[test]
    fn flat_out_a_system_uses_all_of_its_share() {
        held_to_a_share(|system, of_share| assert!(of_share > 0.8, "{system}: {of_share}"));
    }
}
