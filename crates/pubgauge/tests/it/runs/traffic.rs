//! Every pattern of traffic over the systems of the first look: that the counts add up.

use serde_json::Value;

use crate::common::*;

const SYSTEMS: [&str; 5] = [
    "reference-broker",
    "mosquitto",
    "zeromq-direct",
    "zeromq-forwarder",
    "simulated",
];

/// The names in `results.json` that other tools read: for a trial, by the part before the dot if
/// there is one.
const TRIAL_NAMES: [&str; 30] = [
    "system.name",
    "system.version",
    "settings",
    "workload",
    "repeat",
    "verdict.status",
    "verdict.reasons",
    "duration_s",
    "published",
    "refused",
    "delivered",
    "lost",
    "duplicated",
    "reordered",
    "sentinels",
    "offered_msgs_per_s",
    "published_msgs_per_s",
    "delivered_msgs_per_s",
    "latency_ns",
    "latency_from_send_ns",
    "send_lag_ns",
    "client_cpu_s.publishers",
    "client_cpu_s.subscribers",
    "system_cpu_s",
    "client_rss_bytes",
    "system_rss_bytes",
    "connections.made",
    "series",
    "flows",
    "errors",
];

const STATISTICS: [&str; 9] = [
    "count", "min", "mean", "p50", "p90", "p99", "p99_9", "p99_99", "max",
];

/// Every pattern of traffic side by side, a quarter of a second long, without loss by contract.
const PATTERNS: &str = r#"
name = "patterns"

[phases]
ready-within = "60s"
warm-up = "200ms"
measure = "1s"
drain-quiet = "5s"
drain-within = "60s"

[[workload]]
name = "pairs"
[[workload.flow]]
pattern = "1-1"
publishers = 3
subscribers = 3
payload = "64B"
rate = "300/s"

[[workload]]
name = "gathering"
[[workload.flow]]
pattern = "n-1"
topic = "site/{subsystem}/{meter}/power"
dimensions = { subsystem = 2, meter = 5 }
payload = ["16B", "64B", "1KiB"]
rate = "30/s-each"

[[workload]]
name = "spreading"
[[workload.flow]]
pattern = "1-n"
subscribers = 5
payload = "64B"
rate = "100/s"

[[workload]]
name = "asking"
[[workload.flow]]
pattern = "1-1"
exchange = "ping-pong"
payload = "64B"
rate = "100/s"
"#;

#[track_caller]
fn has_every_name(results: &Value) {
    for name in ["format", "machine", "study", "trials"] {
        assert!(results.get(name).is_some(), "top level lacks {name}");
    }
    for trial in results["trials"].as_array().unwrap() {
        for name in TRIAL_NAMES {
            let field = name
                .split('.')
                .try_fold(trial, |value, part| value.get(part));
            assert!(field.is_some(), "a trial lacks {name}");
        }
        for distribution in ["latency_ns", "latency_from_send_ns", "send_lag_ns"] {
            for statistic in STATISTICS {
                // On a busy machine a percentile may fall among what was not sent in time.
                let value = &trial[distribution][statistic];
                let is_known =
                    value.is_number() || count(trial, &format!("{distribution}.censored")) > 0;
                assert!(is_known, "{distribution}.{statistic} is {value}");
            }
        }
    }
}

/// The trials of a workload.
fn of<'a>(results: &'a Value, workload: &str) -> Vec<&'a Value> {
    let trials = results["trials"].as_array().unwrap().iter();
    let found: Vec<_> = trials
        .filter(|t| t["workload"]["name"] == workload)
        .collect();
    assert_eq!(found.len(), SYSTEMS.len(), "{workload}");
    found
}

#[test]
fn flows_with_settings_of_their_own() {
    let place = Place::new();
    std::fs::write(
        place.path_to("study.toml"),
        r#"
name = "fleet"
[phases]
warm-up = "200ms"
measure = "1s"
[[workload]]
name = "fleet"
[[workload.flow]]
name = "readings"
publishers = 5
payload = "64B"
rate = "500/s"
[[workload.flow]]
name = "commands"
pattern = "1-n"
subscribers = 5
payload = "64B"
rate = "20/s"
settings = { reliability = "at-least-once" }
[[criterion]]
figure = "lost"
equals = 0
flow = "commands"
[[criterion]]
figure = "delivered"
at-least = 200
flow = "readings"
"#,
    )
    .unwrap();
    place.run(&["run", "study.toml", "--on", "mosquitto", "--out", "run"]);
    let trial = place.trial("run");
    adds_up(&trial);
    let flows = trial["flows"].as_array().unwrap();
    assert_eq!(flows[0]["settings"], Value::Null);
    assert_eq!(flows[1]["settings"]["reliability"], "at-least-once");
    let mappings = flows[1]["mappings"].as_array().unwrap();
    let qos = mappings.iter().find(|m| m["setting"] == "reliability");
    assert_eq!(qos.unwrap()["native"], "QoS 1 published, QoS 1 subscribed");
    // Only the commands are acknowledged, and only their criterion is about them.
    assert_eq!(trial["acknowledgement_ns"]["count"], flows[1]["published"]);
    assert_eq!(count(&trial, "connections.planned"), 12);
    let results = place.results("run");
    let criteria = results["study"]["criteria"].as_array().unwrap();
    assert!(
        criteria[0]["criterion"]
            .as_str()
            .unwrap()
            .contains("of flow commands")
    );
    assert!(criteria.iter().all(|c| c["met"] == true), "{criteria:?}");
    // The series of each flow adds up to that of the trial.
    let sum = |list: &Value| -> u64 {
        let records = list.as_array().unwrap().iter();
        records.map(|r| r["delivered"].as_u64().unwrap()).sum()
    };
    assert_eq!(
        sum(&flows[0]["series"]) + sum(&flows[1]["series"]),
        sum(&trial["series"])
    );
}

#[test]
fn more_topics_than_the_window_are_proven_ready() {
    let place = Place::new();
    for system in ["reference-broker", "mosquitto"] {
        let mut args = vec!["run", "--on", system, "--qos", "1", "--publishers", "1"];
        args.extend(["--topics", "21", "--subscribers", "1", "--out", system]);
        args.extend(SHORT);
        place.run(&args);
        adds_up(&place.trial(system));
    }
    place.is_clean();
}

#[test]
fn members_of_a_shared_group_get_each_message_once_between_them() {
    let place = Place::new();
    place.write(
        "shared.toml",
        r#"
name = "shared"
[phases]
warm-up = "200ms"
measure = "1s"
[[settings]]
reliability = "at-least-once"
[[workload]]
name = "shared"
[[workload.flow]]
pattern = "shared"
publishers = 2
subscribers = 6
groups = 2
payload = "64B"
rate = "200/s"
"#,
    );
    place.run(&argv(
        "run shared.toml --on reference-broker,mosquitto --out run",
    ));
    place.is_clean();
    for trial in place.results("run")["trials"].as_array().unwrap() {
        adds_up(trial);
        // On a busy machine some may not leave before the end.
        assert_eq!(count(trial, "offered"), 200);
        let published = count(trial, "published");
        assert_eq!(
            count(trial, "delivered"),
            2 * published,
            "one for each group"
        );
        assert_eq!(count(trial, "acknowledgement_ns.count"), published);
    }
}

#[test]
fn publishers_alone_and_subscribers_alone_are_allowed() {
    let place = Place::new();
    let on = ["--on", "reference-broker", "--rate", "200/s"];
    let alone = |flags: [&str; 4], run: &str| {
        let mut args = vec!["run", "--out", run];
        args.extend(flags);
        args.extend(on);
        args.extend(SHORT);
        place.run(&args);
        place.trial(run)
    };
    let trial = alone(["--publishers", "2", "--subscribers", "0"], "publishers");
    assert_eq!(count(&trial, "offered"), 200);
    assert!(count(&trial, "published") > 0);
    assert_eq!(count(&trial, "expected"), 0);
    assert_ne!(verdict(&trial), "broken", "{}", reasons(&trial));
    let trial = alone(["--publishers", "0", "--subscribers", "2"], "subscribers");
    assert_eq!(count(&trial, "published"), 0);
    assert_eq!(count(&trial, "connections.made"), 2);
    assert_ne!(verdict(&trial), "broken", "{}", reasons(&trial));
    place.is_clean();
}

#[test]
fn a_phase_ends_by_count() {
    let place = Place::new();
    place.write(
        "count.toml",
        r#"
name = "count"
[phases]
warm-up = { messages = 50, within = "10s" }
measure = { messages = 1234, within = "60s" }
[[workload]]
name = "counted"
[[workload.flow]]
payload = "64B"
rate = "max"
"#,
    );
    place.run(&["run", "count.toml", "--on", "mosquitto", "--out", "run"]);
    place.is_clean();
    let trial = place.trial("run");
    adds_up(&trial);
    assert!(count(&trial, "published") >= 1234);
    assert!(trial["duration_s"].as_f64().unwrap() < 60.0);
}

/// Settings that a system cannot have are known before anything starts: beside others it stands as
/// unsupported, alone it is bad input.
#[test]
fn a_subscription_that_a_system_cannot_have_is_no_broken_trial() {
    let place = Place::new();
    place.write(
        "team.toml",
        r#"
name = "team"

[phases]
warm-up = "100ms"
measure = "300ms"

[[workload]]
name = "team"

[[workload.flow]]
name = "team"
pattern = "shared"
publishers = 2
subscribers = 2
payload = "64B"
rate = "100/s"
"#,
    );
    place
        .run(&argv("run team.toml --on zeromq-direct --out alone"))
        .exits(3)
        .assert_says("no shared subscriptions");
    assert!(
        !place.path_to("alone").exists(),
        "bad input changes nothing on disk"
    );
    place
        .run(&argv(
            "run team.toml --on zeromq-direct,reference-broker --out both",
        ))
        .ran_to_its_end();
    let results = place.results("both");
    assert_eq!(results["trials"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        results["study"]["unsupported"][0]["system"],
        "zeromq-direct"
    );
    place.is_clean();
}

/// The trial has the lateness that the client was allowed; lateness is recorded as it was.
#[test]
fn gathered_messages_say_so() {
    let place = Place::new();
    let mut args = argv("run --on mosquitto --rate 2000/s --out run");
    args.extend(argv("--duration 1s --warm-up 200ms --pacing-within 5ms"));
    place.run(&args);
    let trial = &place.results("run")["trials"][0];
    adds_up(trial);
    assert_eq!(trial["published"], 2000);
    assert_eq!(trial["circumstances"]["pacing_within_ns"], 5_000_000);
    assert_eq!(trial["workload"]["arrivals"], "2000/s, within 5 ms");
    // The first of each wake-up waits for the whole span.
    assert!(
        trial["send_lag_ns"]["max"].as_u64() >= Some(4_950_000),
        "{trial:#}"
    );
    let study = std::fs::read_to_string(place.path_to("run/study.toml")).unwrap();
    assert!(study.contains("pacing-within = \"5ms\""), "{study}");
}

/// The wake-up latency that the kernel allows idle processors, us: 0 has them poll. None where only others may know.
fn wake_up_latency() -> Option<i32> {
    let mut value = [0; 4];
    let mut device = std::fs::File::open("/dev/cpu_dma_latency").ok()?;
    std::io::Read::read_exact(&mut device, &mut value).ok()?;
    Some(i32::from_ne_bytes(value))
}

/// Workers are threads, then processes: idle processors poll during each trial and sleep after it. Where this program
/// may not have that, the study is refused.
#[test]
fn idle_processors_poll_during_the_trials_that_ask_for_it() {
    let place = Place::new();
    place.write(
        "idle.toml",
        "name = \"idle\"\nsystems = [\"reference-broker\"]\n[phases]\nwarm-up = \"200ms\"\nmeasure = \"1s\"\n\
         [client]\npoll-when-idle = true\n[[workload]]\nname = \"threads\"\n\
         flow = [{ pattern = \"1-1\", payload = \"64B\", rate = \"200/s\" }]\n\
         [[workload]]\nname = \"processes\"\nclient = { processes = 1 }\n\
         flow = [{ pattern = \"1-1\", payload = \"64B\", rate = \"200/s\" }]\n",
    );
    if wake_up_latency().is_none() {
        let refused = place.run(&argv("run idle.toml --out run"));
        assert_eq!(refused.code, 3, "{}", refused.err);
        assert!(
            refused.err.contains("client.poll-when-idle: "),
            "{}",
            refused.err
        );
        assert!(!place.path_to("run").exists());
        return;
    }
    let over = std::sync::atomic::AtomicBool::new(false);
    let polled = std::thread::scope(|scope| {
        let seen = scope.spawn(|| {
            // From sleep to polling, so often.
            let (mut begun, mut polls) = (0, false);
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                let now = wake_up_latency() == Some(0);
                begun += u32::from(now && !polls);
                polls = now;
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            begun
        });
        place.run(&argv("run idle.toml --out run"));
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        seen.join().unwrap()
    });
    assert!(
        polled >= 2,
        "each trial has a beginning and an end: {polled}"
    );
    assert_ne!(wake_up_latency(), Some(0), "a wish outlived its trial");
    for trial in place.results("run")["trials"].as_array().unwrap() {
        assert_eq!(trial["circumstances"]["poll_when_idle"], true);
    }
}

/// Tests that take long.
mod long {
    use super::*;

    #[test]
    fn every_system_carries_every_pattern_and_the_counts_add_up() {
        let place = Place::new();
        place.write("patterns.toml", PATTERNS);
        let on = SYSTEMS.join(",");
        let done = place.run(&["run", "patterns.toml", "--on", &on, "--out", "run"]);
        place.is_clean();
        let results = place.results("run");
        assert_eq!(results["study"]["cut_off"], false);
        // How busy this machine is must not matter here: trials may be called client-bound.
        done.ran_to_its_end();
        for trial in results["trials"].as_array().unwrap() {
            adds_up(trial);
            let status = verdict(trial);
            assert!(
                status != "broken" && status != "lossy",
                "{} on {}: {}; {}",
                trial["workload"]["name"],
                trial["system"]["name"],
                reasons(trial),
                trial["errors"]
            );
            let planned = count(trial, "connections.planned");
            assert_eq!(count(trial, "connections.made"), planned);
        }
        has_every_name(&results);
        // On a busy machine some may be due and not sent.
        for (workload, offered, subscribers) in [
            ("pairs", 300, 1),
            ("gathering", 300, 1),
            ("spreading", 100, 5),
        ] {
            for trial in of(&results, workload) {
                assert_eq!(count(trial, "offered"), offered, "{}", brief(trial));
                let published = count(trial, "published");
                assert!(published > offered / 2, "{}", brief(trial));
                assert_eq!(count(trial, "delivered"), subscribers * published);
            }
        }
        for trial in of(&results, "gathering") {
            assert_eq!(count(trial, "workload.publishers"), 10);
        }
        for trial in of(&results, "asking") {
            assert_eq!(
                count(trial, "round_trip_ns.count"),
                count(trial, "published")
            );
            assert!(count(trial, "round_trip_ns.min") > 0);
        }

        // The system's configuration is kept, and the histograms are.
        let files = place.files();
        let has = |end: &str| files.iter().any(|f| f.ends_with(end));
        assert!(has("system/mosquitto.conf") && has("latency.hlog") && has("round-trip.hlog"));
        assert!(has("study.toml") && has("study.resolved.json") && has("report.html"));

        // The answer fits, and is rebuilt as it was.
        let lines = done.out.lines();
        for line in lines.filter(|l| !l.starts_with("page: ") && !l.starts_with("next: ")) {
            assert!(line.chars().count() <= 80, "longer than 80: {line}");
        }
        std::fs::remove_file(place.path_to("run/report.html")).unwrap();
        let again = place.run(&["report", "run"]).exits(0);
        assert_eq!(again.out, done.out);
        assert!(place.path_to("run/report.html").exists());
        let json = place.run(&["report", "run", "--json"]).exits(0);
        // Those of the file, and the answer beside them.
        let mut shown: Value = serde_json::from_str(&json.out).unwrap();
        let answer = shown.as_object_mut().unwrap().remove("answer");
        assert_eq!(answer.unwrap()["study"], results["study"]["name"]);
        assert_eq!(shown, results);
    }
}
