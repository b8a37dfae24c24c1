//! Studies become the plans they describe.

use std::path::Path;

use pubgauge_driver::Reliability;
use pubgauge_quantities::{Rate, Size, Span};
use pubgauge_study::{DailyFlags, Plan, PlanOptions, Study};
use pubgauge_workload::{Arrivals, Exchange, SECOND, Sizes, Until, Workload};

fn options(found: &[&str]) -> PlanOptions {
    PlanOptions::with_systems(found.iter().copied())
}

fn plan(text: &str) -> Plan {
    let study = Study::parse("test.toml", text, Path::new("")).expect("TOML");
    match study.plan(&options(&["a", "b"])) {
        Ok(plan) => plan,
        Err(error) => panic!("{error}"),
    }
}

/// The workload of a study with this flow only.
fn flow(keys: &str) -> Workload {
    let text = format!(
        "name = \"t\"\n[[workload]]\nname = \"w\"\n[[workload.flow]]\npayload = \"64B\"\n\
         rate = \"10/s\"\n{keys}\n"
    );
    let workload = plan(&text).trials[0].workload.clone();
    workload.as_ref().clone()
}

fn filters(workload: &Workload) -> Vec<Vec<&str>> {
    let subscribers = workload.flows[0].subscribers.iter();
    subscribers
        .map(|s| s.filters.iter().map(String::as_str).collect())
        .collect()
}

fn topics(workload: &Workload) -> Vec<Vec<&str>> {
    let publishers = workload.flows[0].publishers.iter();
    publishers
        .map(|p| p.topics.iter().map(String::as_str).collect())
        .collect()
}

/// The number of brokers may vary; a list of addresses says it by itself.
#[test]
fn workloads_are_placed_on_brokers() {
    let text = "name = \"t\"\n[grid]\nbrokers = [1, 2]\n[[workload]]\nname = \"w\"\n\
                [[workload.flow]]\npublishers = 4\ntopics = 4\nsubscribers = 1\n\
                subscribe = [\"#\"]\npayload = \"64B\"\nrate = \"10/s\"\n";
    let connections = |plan: &Plan| -> Vec<(String, u32, usize)> {
        let mut all: Vec<_> = (plan.trials.iter())
            .map(|t| (t.system.clone(), t.setup.brokers, t.workload.devices.len()))
            .collect();
        all.sort();
        all
    };
    let of = |system: &str, brokers, devices| (system.to_owned(), brokers, devices);
    let both = plan(text);
    assert_eq!(
        connections(&both),
        [of("a", 1, 5), of("a", 2, 6), of("b", 1, 5), of("b", 2, 6)]
    );
    assert!(both.trials.iter().any(|t| t.cell.ends_with("brokers=2")));

    let text = text.replace("[grid]\nbrokers = [1, 2]\n", "");
    let mut study = Study::parse("test.toml", &text, Path::new("")).expect("TOML");
    let mut options = options(&["a", "lab"]);
    options.known.brokers.insert("lab".into(), 2);
    options.on = vec![
        "a".into(),
        "lab".into(),
        "mqtt://h:1+mqtt://i:1+mqtt://j:1".into(),
    ];
    let plan = study.plan(&options).expect("sound");
    assert_eq!(
        connections(&plan),
        [
            of("a", 1, 5),
            of("lab", 2, 6),
            of("mqtt://h:1+mqtt://i:1+mqtt://j:1", 3, 7)
        ]
    );
    study
        .apply_flag("--brokers", "topology.brokers", "2")
        .expect("a table");
    let plan = study.plan(&options).expect("sound");
    assert!(plan.trials.iter().all(|t| t.setup.brokers == 2));
}

#[test]
fn the_first_look_fits_into_a_minute() {
    let systems = [
        "reference-broker",
        "mosquitto",
        "zeromq",
        "zeromq-forwarder",
        "rabbitmq",
    ];
    let plan = Study::first_look().plan(&options(&systems)).expect("sound");
    assert_eq!(plan.trials.len(), 15);
    assert!(
        plan.duration_estimate() < 50 * SECOND,
        "{}",
        plan.duration_estimate()
    );
    assert!(
        plan.trials
            .iter()
            .all(|t| t.duration_estimate() <= 33 * SECOND / 10)
    );
    let fleet = plan
        .trials
        .iter()
        .find(|t| t.workload.name == "fleet")
        .expect("there");
    assert_eq!(fleet.workload.flows[0].publishers.len(), 100);
    assert_eq!(
        fleet.workload.flows[0].publishers[99].topics,
        ["site/3/24/power"]
    );
    assert_eq!(filters(&fleet.workload), [["site/#"]]);
    assert_eq!(
        fleet.workload.flows[0].arrivals,
        Arrivals::Periodic { per_s: 1000.0 }
    );
}

#[test]
fn patterns() {
    let pairs = flow("pattern = \"1-1\"\npublishers = 2");
    assert_eq!(topics(&pairs), [["pubgauge/w/0"], ["pubgauge/w/1"]]);
    assert_eq!(filters(&pairs), topics(&pairs));

    let two_each = flow("pattern = \"1-1\"\npublishers = 2\ntopics = 4\ntopic = \"t\"");
    assert_eq!(topics(&two_each), [["t/0", "t/2"], ["t/1", "t/3"]]);
    assert_eq!(filters(&two_each), topics(&two_each));

    let fan_out = flow("pattern = \"1-n\"\nsubscribers = 3\ntopics = 2\ntopic = \"t\"");
    assert_eq!(filters(&fan_out), [["t/#"], ["t/#"], ["t/#"]]);

    let collect = flow("pattern = \"n-1\"\npublishers = 3\ntopic = \"t\"");
    assert_eq!(topics(&collect), [["t/0"], ["t/1"], ["t/2"]]);
    assert_eq!(filters(&collect), [["t/#"]]);

    let everybody = flow("pattern = \"n-m\"\npublishers = 2\nsubscribers = 2\ntopic = \"t\"");
    assert_eq!(topics(&everybody), [["t"], ["t"]]);
    assert_eq!(filters(&everybody), [["t"], ["t"]]);

    let dealt = flow("publishers = 4\nsubscribers = 2\ntopics = 4\ntopic = \"t\"");
    assert_eq!(filters(&dealt), [["t/0", "t/2"], ["t/1", "t/3"]]);

    let shared = flow("pattern = \"shared\"\npublishers = 2\nsubscribers = 4\ngroups = 2");
    let groups: Vec<_> = shared.flows[0]
        .subscribers
        .iter()
        .map(|s| s.group.clone())
        .collect();
    assert_eq!(groups[0], groups[2]);
    assert_ne!(groups[0], groups[1]);
    assert_eq!(shared.check().expect("sound").parties.len(), 2);

    // MQTT's own words for a group.
    let named = flow("topic = \"a/b\"\nsubscribe = \"$share/g/a/#\"\nsubscribers = 3");
    assert_eq!(filters(&named), [["a/#"], ["a/#"], ["a/#"]]);
    let groups = named.flows[0]
        .subscribers
        .iter()
        .map(|s| s.group.as_deref());
    assert_eq!(groups.collect::<Vec<_>>(), [Some("g"); 3]);
    let parties = named.check().expect("sound").parties;
    assert_eq!((parties.len(), parties[0].members.len()), (1, 3));

    let idle = flow("publishers = 0\nsubscribers = 5");
    assert_eq!((idle.flows[0].publishers.len(), idle.devices.len()), (0, 5));
    let deaf = flow("publishers = 5\nsubscribers = 0");
    assert_eq!(
        (deaf.flows[0].subscribers.len(), deaf.devices.len()),
        (0, 5)
    );
}

#[test]
fn templates() {
    let site = flow(
        "topic = \"site/{subsystem}/{device}/{parameter}\"\n\
         dimensions = { subsystem = [\"hvac\", \"light\"], device = 2, parameter = [\"p\", \"q\"] }\n\
         publisher-per = [\"subsystem\", \"device\"]\n\
         subscribe = [\"site/{subsystem}/+/p\", \"site/{subsystem}/0/q\"]",
    );
    assert_eq!(topics(&site).len(), 4);
    assert_eq!(topics(&site)[1], ["site/hvac/1/p", "site/hvac/1/q"]);
    assert_eq!(
        filters(&site),
        [
            ["site/hvac/+/p", "site/hvac/0/q"],
            ["site/light/+/p", "site/light/0/q"]
        ]
    );
}

#[test]
fn a_device_may_publish_and_subscribe() {
    let text = "name = \"t\"\n[[workload]]\nname = \"w\"\n\
        [[workload.flow]]\nname = \"up\"\npublishers = 3\npattern = \"n-1\"\npayload = \"64B\"\n\
        rate = \"1/s-each\"\npublish-as = \"meter\"\n\
        [[workload.flow]]\nname = \"down\"\npattern = \"1-n\"\nsubscribers = 3\npayload = \"1KiB\"\n\
        rate = \"1/15min\"\nsubscribe-as = \"meter\"\nstart = \"30s\"\nlasts = \"10s\"";
    let plan = plan(text);
    assert_eq!(
        plan.notes,
        [
            "workload `w`: 3 connections publish and subscribe; their client processor time is counted as \
          publishing, all of it"
        ]
    );
    let workload = &plan.trials[0].workload;
    assert_eq!(workload.devices.len(), 5);
    for k in 0..3 {
        let meter = workload.flows[0].publishers[k].device;
        assert_eq!(meter, workload.flows[1].subscribers[k].device);
        assert_eq!(workload.devices[meter as usize].name, format!("meter-{k}"));
    }
    assert_eq!(
        workload.flows[0].arrivals,
        Arrivals::Periodic { per_s: 3.0 }
    );
    assert_eq!(workload.flows[1].start_offset, Some(30 * SECOND));
    assert_eq!(workload.flows[1].active_for, Some(10 * SECOND));
}

#[test]
fn sizes_and_arrivals() {
    let size = |payload: &str| {
        let text = format!(
            "name = \"t\"\n[[workload]]\nname = \"w\"\n[[workload.flow]]\nrate = \"max\"\npayload = {payload}"
        );
        plan(&text).trials[0].workload.flows[0].size.clone()
    };
    assert_eq!(size("\"1kB\""), Sizes::Fixed { bytes: 1000 });
    assert_eq!(
        size("[\"64B\", \"1KiB\"]"),
        Sizes::List {
            bytes: vec![64, 1024]
        }
    );
    assert_eq!(
        size("{ uniform = { min = \"16B\", max = \"2MB\" } }"),
        Sizes::Uniform {
            min: 16,
            max: 2_000_000
        }
    );
    assert_eq!(
        size("{ normal = { mean = \"100B\", sd = \"10B\" } }"),
        Sizes::Normal {
            mean: 100.0,
            sd: 10.0,
            min: 16,
            max: 160
        }
    );
    assert!(matches!(
        size("{ log-normal = { median = \"1kB\", sigma = 0.5, max = \"1MB\" } }"),
        Sizes::LogNormal { max: 1_000_000, .. }
    ));
    let bursts = flow("bursts = { on = \"1s\", off = \"9s\" }");
    assert_eq!(
        bursts.flows[0].arrivals,
        Arrivals::OnOff {
            per_s: Some(10.0),
            on: SECOND,
            off: 9 * SECOND
        }
    );
    let poisson = flow("arrivals = \"poisson\"");
    assert_eq!(poisson.flows[0].arrivals, Arrivals::Poisson { per_s: 10.0 });
    let ping_pong = flow("exchange = \"ping-pong\"\ntopics = 2");
    assert_eq!(ping_pong.flows[0].exchange, Exchange::PingPong);
    assert_eq!(filters(&ping_pong), [["pubgauge/w/0", "pubgauge/w/1"]]);
}

const GRID: &str = r#"
name = "grid"
repeats = 3
seed = 7
[phases]
measure = { messages = 100, within = "1min" }
[grid]
payload = ["64B", "1KiB"]
"workload.two.flow.rate" = ["1k/s", "max"]
[[settings]]
name = "fast"
[[settings]]
name = "safe"
reliability = "at-least-once"
[[workload]]
name = "one"
phases = { measure = "3s" }
[[workload.flow]]
payload = "16B"
rate = "5/s"
[[workload]]
name = "two"
[[workload.flow]]
payload = "16B"
rate = "5/s"
"#;

#[test]
fn a_grid_is_every_combination() {
    let plan = plan(GRID);
    // 2 payloads, 2 rates, 2 settings, 2 workloads, 2 systems, 3 repeats.
    assert_eq!(plan.trials.len(), 96);
    let cells: std::collections::HashSet<&str> =
        plan.trials.iter().map(|t| t.cell.as_str()).collect();
    assert_eq!(cells.len(), 32);
    assert!(
        plan.trials
            .iter()
            .enumerate()
            .all(|(i, t)| t.order as usize == i)
    );
    // Each repeat is complete before the next begins.
    assert!(
        plan.trials
            .chunks(32)
            .enumerate()
            .all(|(i, c)| c.iter().all(|t| t.repeat as usize == i + 1))
    );
    for trial in &plan.trials {
        let axis = |n: usize| trial.axes[n].1.as_str();
        let flow = &trial.workload.flows[0];
        let bytes = if axis(0) == "64B" { 64 } else { 1024 };
        assert_eq!(flow.size, Sizes::Fixed { bytes });
        let two = trial.workload.name == "two";
        match (two, axis(1)) {
            (true, "max") => assert_eq!(flow.arrivals, Arrivals::FlatOut),
            (true, _) => assert_eq!(flow.arrivals, Arrivals::Periodic { per_s: 1000.0 }),
            _ => assert_eq!(flow.arrivals, Arrivals::Periodic { per_s: 5.0 }),
        }
        let measure = trial.workload.phases.measure;
        if two {
            assert_eq!(measure, Until::Count(100, 60 * SECOND))
        } else {
            assert_eq!(measure, Until::Time(3 * SECOND))
        }
        let safe = trial.settings.reliability == Some(Reliability::AtLeastOnce);
        assert_eq!(safe, trial.settings_name == "safe");
    }
}

#[test]
fn the_order_follows_from_the_seed() {
    let order = |text: &str| {
        plan(text)
            .trials
            .iter()
            .map(|t| t.cell.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(order(GRID), order(GRID));
    assert_ne!(order(GRID), order(&GRID.replace("seed = 7", "seed = 8")));
    let listed = order(&GRID.replace("seed = 7", "order = \"listed\""));
    assert_eq!(
        listed[0],
        "a / fast / one / payload=64B / workload.two.flow.rate=1k/s"
    );
    assert_eq!(
        listed[1],
        "b / fast / one / payload=64B / workload.two.flow.rate=1k/s"
    );
}

#[test]
fn sets_change_values() {
    let mut study = Study::parse("test.toml", GRID, Path::new("")).expect("TOML");
    for set in [
        "grid.payload=[\"32B\"]",
        "workload.one.flow.publishers=4",
        "settings.safe.reliability=exactly-once",
        "settings.in-flight=20",
        "workload.1.phases.measure=250ms",
        "repeats=1",
    ] {
        study
            .apply_set(set)
            .unwrap_or_else(|error| panic!("{error}"));
    }
    let plan = study
        .plan(&options(&["a"]))
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(plan.trials.len(), 8);
    for trial in &plan.trials {
        assert_eq!(trial.settings.in_flight, Some(20));
        let one = trial.workload.name == "one";
        assert_eq!(
            trial.workload.flows[0].publishers.len(),
            if one { 4 } else { 1 }
        );
        assert_eq!(trial.workload.flows[0].size, Sizes::Fixed { bytes: 32 });
        let measure = if one { 3 * SECOND } else { SECOND / 4 };
        assert_eq!(trial.workload.phases.measure, Until::Time(measure));
    }
    assert!(
        plan.trials
            .iter()
            .any(|t| t.settings.reliability == Some(Reliability::ExactlyOnce))
    );
}

#[test]
fn daily_flags_are_a_study() {
    let flags = DailyFlags {
        publishers: vec![100],
        subscribers: vec![0],
        payload: vec![Size(1000)],
        rate: vec![Rate::Each(1.0)],
        duration: Some(Span(5 * SECOND)),
        warm_up: Some(Span(0)),
        qos: vec![1],
        mqtt: vec!["5".into()],
        ..DailyFlags::default()
    };
    let mut study = flags.study().expect("sound");
    study.apply_set("payload=2kB").expect("a path");
    let plan = study
        .plan(&options(&["a"]))
        .unwrap_or_else(|error| panic!("{error}"));
    let trial = &plan.trials[0];
    assert_eq!(trial.workload.flows[0].publishers.len(), 100);
    assert_eq!(trial.workload.flows[0].size, Sizes::Fixed { bytes: 2000 });
    assert_eq!(
        trial.workload.flows[0].arrivals,
        Arrivals::Periodic { per_s: 100.0 }
    );
    assert_eq!(trial.workload.phases.measure, Until::Time(5 * SECOND));
    assert_eq!(trial.workload.phases.warm_up, Until::Time(0));
    assert_eq!(trial.settings.reliability, Some(Reliability::AtLeastOnce));
    assert_eq!(trial.settings.native("mqtt", "version"), Some(&"5".into()));
    // A stored study can be read and planned again.
    let again = Study::parse("stored", &plan.resolved, Path::new("")).expect("TOML");
    let again = again
        .plan(&options(&["a"]))
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again.trials[0].workload, trial.workload);

    assert!(
        DailyFlags {
            qos: vec![3],
            ..DailyFlags::default()
        }
        .study()
        .is_err()
    );
    let wrong = DailyFlags {
        mqtt: vec!["4".into()],
        ..DailyFlags::default()
    };
    assert_eq!(
        wrong.study().expect_err("no such version").to_string(),
        "--mqtt 4: expected 3.1.1 or 5"
    );
}

/// Several values of flags are measured each with each of the others.
#[test]
fn lists_in_daily_flags_are_a_grid() {
    let flags = DailyFlags {
        subscribers: vec![1, 10],
        payload: vec![Size(64), Size(1024)],
        rate: vec![Rate::All(1_000.0)],
        qos: vec![0, 1],
        mqtt: vec!["3.1.1".into(), "5".into()],
        ..DailyFlags::default()
    };
    let plan = flags.study().expect("sound").plan(&options(&["a"]));
    let plan = plan.unwrap_or_else(|error| panic!("{error}"));
    let cell = |trial: &pubgauge_study::PlannedTrial| {
        let flow = &trial.workload.flows[0];
        let version = trial
            .settings
            .native("mqtt", "version")
            .map(|value| value.to_string());
        let quality = trial
            .settings
            .reliability
            .map(|quality| format!("{quality:?}"));
        (
            flow.subscribers.len(),
            format!("{:?}", flow.size),
            quality,
            version,
        )
    };
    let cells: std::collections::BTreeSet<_> = plan.trials.iter().map(cell).collect();
    assert_eq!((plan.trials.len(), cells.len()), (16, 16), "{cells:?}");
}

#[test]
fn a_fleet_of_a_hundred_thousand() {
    let fleet = flow("pattern = \"n-1\"\npublishers = 100_000");
    assert_eq!(fleet.devices.len(), 100_001);
}

#[test]
fn what_a_system_cannot_honour_is_set_aside() {
    let mut plan = plan(GRID);
    plan.split_unsupported(|system, settings| {
        if system == "b" && settings.reliability.is_some() {
            return Err(vec![pubgauge_driver::Unsupported {
                setting: "reliability".into(),
                value: "at-least-once".into(),
                reason: "no".into(),
            }]);
        }
        Ok(())
    });
    assert_eq!(plan.trials.len(), 72);
    assert_eq!(plan.unsupported.len(), 8);
    assert!(
        plan.trials
            .iter()
            .enumerate()
            .all(|(i, t)| t.order as usize == i)
    );
}

/// A dashboard that hears everything, on a connection that also subscribes to something narrower.
#[test]
fn overlapping_subscriptions_are_resolved_and_told() {
    let text = r##"
        name = "t"
        [[workload]]
        name = "w"
        [[workload.flow]]
        name = "readings"
        topic = "site/{meter}"
        dimensions = { meter = 3 }
        subscribe = ["#", "site/+"]
        subscribe-as = "dashboard"
        payload = "64B"
        rate = "10/s"
        [[workload.flow]]
        name = "commands"
        topic = "commands"
        subscribe-as = "dashboard"
        payload = "64B"
        rate = "1/s"
    "##;
    let plan = plan(text);
    let workload = &plan.trials[0].workload;
    assert_eq!(filters(workload), [["#"]]);
    assert!(workload.flows[1].subscribers.is_empty());
    let audience = workload.check().expect("no overlap is left");
    assert!((0..4).all(|stream| audience.fan_out(stream) == 1));
    assert_eq!(plan.notes.len(), 2, "{:?}", plan.notes);
    assert!(plan.notes[0].contains("hears `commands` by its subscription to `#`"));

    // Topics that no filter covers are refused with a way out.
    let text = text.replace(r##"["#", "site/+"]"##, r#"["+/1", "site/+"]"#);
    let study = Study::parse("test.toml", &text, Path::new("")).expect("TOML");
    let error = study
        .plan(&options(&["a"]))
        .expect_err("an overlap")
        .to_string();
    assert!(
        error.contains("hint: use one filter that covers both"),
        "{error}"
    );
}

/// Flows that ask for the same share connections, whether or not the study says it twice.
#[test]
fn flows_with_equal_settings_share_a_connection() {
    let with = |asked: &str| {
        format!(
            "name = \"t\"
            [[workload]]
            name = \"w\"
            flow = [
                {{ name = \"data\", payload = \"64B\", rate = \"1/s\", subscribe-as = \"both\", settings = {{ reliability = \"at-least-once\" }} }},
                {{ name = \"beacon\", payload = \"16B\", rate = \"1/s\", publish-as = \"both\", settings = {{ reliability = \"{asked}\" }} }},
            ]"
        )
    };
    let plan = plan(&with("at-least-once"));
    let trial = &plan.trials[0];
    assert_eq!(trial.of_flows.len(), 1);
    assert!(trial.workload.flows.iter().all(|flow| flow.settings == 1));

    let study = Study::parse("test.toml", &with("exactly-once"), Path::new("")).expect("TOML");
    let refused = study.plan(&options(&["a"])).expect_err("two settings");
    let refused = refused.to_string();
    assert!(
        refused.contains("a connection has one set of settings"),
        "{refused}"
    );
}

#[test]
fn how_the_client_paces_may_be_varied_and_is_told() {
    let flow = "[[workload]]\nname = \"w\"\n[[workload.flow]]\npayload = \"64B\"\nrate = \"1/s\"\n";
    let plain = plan(&format!("name = \"t\"\n{flow}"));
    assert!(
        plain
            .trials
            .iter()
            .all(|t| t.setup.client.pacing_within == 0)
    );
    assert!(plain.notes.is_empty() && !plain.resolved.contains("client"));

    let grid = "[grid]\n\"client.pacing-within\" = [\"1ms\", \"100ms\"]\n";
    let varied = plan(&format!("name = \"t\"\norder = \"listed\"\n{grid}{flow}"));
    let spans: Vec<u64> = varied
        .trials
        .iter()
        .map(|t| t.setup.client.pacing_within)
        .collect();
    assert_eq!(spans, [1, 1, 100, 100].map(|ms| ms * SECOND / 1000));
    assert!(varied.notes.iter().any(|n| n.contains("up to 100ms after")));

    let refused = |value: &str| {
        let text = format!("name = \"t\"\n[client]\npacing-within = \"{value}\"\n{flow}");
        let study = Study::parse("test.toml", &text, Path::new("")).expect("TOML");
        study.plan(&options(&["a"])).expect_err(value).to_string()
    };
    for value in ["0s", "100001us", "1s"] {
        let said = refused(value);
        assert!(
            said.contains("above 0 and up to 100ms") && said.contains("hint:"),
            "{said}"
        );
        assert!(said.contains("test.toml:3"), "{said}");
    }
}

#[test]
fn limits_of_systems_and_workers_may_be_varied() {
    let flow = "[[workload]]\nname = \"w\"\n[[workload.flow]]\npayload = \"64B\"\nrate = \"1/s\"\n";
    let limits = "[testbed.limits]\ncores = 1\nmemory = \"64MiB\"\n[client.limits]\ncores = 0.1\n";
    let grid =
        "[grid]\n\"testbed.limits.cores\" = [0.5, 2]\n\"client.limits.memory\" = [\"4MiB\"]\n";
    let plan = plan(&format!(
        "name = \"t\"\norder = \"listed\"\n{limits}{grid}{flow}"
    ));
    let cores: Vec<_> = plan.trials.iter().map(|t| t.setup.limits.cores).collect();
    assert_eq!(cores, [0.5, 0.5, 2.0, 2.0].map(Some));
    assert!(
        plan.trials
            .iter()
            .all(|t| t.setup.limits.memory_bytes == Some(64 << 20))
    );
    let of_workers = plan.trials.iter().map(|t| &t.setup.client_limits);
    assert!(
        of_workers
            .into_iter()
            .all(|l| (l.cores, l.memory_bytes) == (Some(0.1), Some(4 << 20)))
    );
    for (wrong, says) in [
        ("cores = 0.05", "from 0.1 on"),
        ("cores = -1", "from 0.1 on"),
        ("cores = nan", "from 0.1 on"),
        ("memory = \"64MB\"", "whole MiB"),
        ("memory = \"0B\"", "whole MiB"),
    ] {
        for of in ["testbed", "client"] {
            let text = format!("name = \"t\"\n[{of}.limits]\n{wrong}\n{flow}");
            let study = Study::parse("test.toml", &text, Path::new("")).expect("TOML");
            let said = study.plan(&options(&["a"])).expect_err(wrong).to_string();
            assert!(
                said.contains(says) && said.contains("test.toml:3"),
                "{said}"
            );
        }
    }
}

/// Topics are those of the recording, each with the quality of service that it was published with.
#[test]
fn recorded_contents_bring_their_topics() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let recording =
        "time,device,topic,payload,qos\n0,a,t/1,x,0\n1,a,t/1,y,1\n2,b,t/2,z,\n3,b,,w,\n";
    std::fs::write(folder.path().join("rec.csv"), recording).expect("written");
    let study = |flow: &str| {
        let text = format!(
            "name = \"s\"\n[trace.t]\nfiles = [\"rec.csv\"]\n[[workload]]\nname = \"w\"\n\
             [[workload.flow]]\nreplay = {{ trace = \"t\", contents = \"recorded\" }}\n{flow}\n"
        );
        let study = Study::parse("s.toml", &text, folder.path()).expect("TOML");
        study.plan(&options(&["a"]))
    };
    let plan = study("topic = \"rest\"").unwrap_or_else(|e| panic!("{e}"));
    let workload = &plan.trials[0].workload;
    assert_eq!(topics(workload), [vec!["t/1", "t/1"], vec!["t/2", "rest"]]);
    assert_eq!(filters(workload), [["rest", "t/1", "t/2"]]);
    for (flow, says) in [
        (
            "payload = \"64B\"",
            "`payload` and recorded contents exclude one another",
        ),
        (
            "topics = 3",
            "`topics` and recorded contents exclude one another",
        ),
        (
            "exchange = \"ping-pong\"",
            "recorded contents travel one way",
        ),
    ] {
        let error = study(flow).expect_err(flow).to_string();
        assert!(error.contains(says), "{error}");
    }
}
