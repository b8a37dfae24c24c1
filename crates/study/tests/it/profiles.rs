//! Profiles: what a study or `--profile` gets by naming one.

use std::path::Path;

use pubgauge_driver::{Batching, Durability, Mapping, Reliability, Settings, Unsupported};
use pubgauge_strict_toml::InvalidInput;
use pubgauge_study::{Plan, PlanOptions, Study};

fn study(settings: &str, rate: &str) -> Study {
    let text = format!(
        "name = \"t\"\n{settings}\n[[workload]]\nname = \"w\"\n[[workload.flow]]\n\
         payload = \"64B\"\nrate = \"{rate}\"\n"
    );
    Study::parse("study.toml", &text, Path::new("")).expect("TOML")
}

fn plan(study: &Study) -> Result<Plan, InvalidInput> {
    study.plan(&PlanOptions::with_systems(["a"]))
}

fn planned(study: &Study) -> Plan {
    plan(study).unwrap_or_else(|error| panic!("{error}"))
}

fn profiles(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| name.to_string()).collect()
}

fn names(plan: &Plan) -> Vec<&str> {
    let mut names: Vec<&str> = plan
        .trials
        .iter()
        .map(|t| t.settings_name.as_str())
        .collect();
    names.sort_unstable();
    names
}

/// A system without batching and without disks.
fn plain_system(_: &str, settings: &Settings) -> Result<(), Vec<Unsupported>> {
    let refused = |setting: &str| Unsupported {
        setting: setting.into(),
        value: settings.value_of(setting),
        reason: "it has none".into(),
    };
    let mut all = Vec::new();
    if settings.batching.is_some() {
        all.push(refused("batching"));
    }
    if settings.durability == Some(Durability::Disk) {
        all.push(refused("durability"));
    }
    if settings.native("amqp", "prefetch").is_some() {
        all.push(refused("native.amqp.prefetch"));
    }
    if all.is_empty() { Ok(()) } else { Err(all) }
}

#[test]
fn a_study_begins_with_a_profile_and_has_the_last_word() {
    let text = "[[settings]]\nprofile = \"durable\"\nreliability = \"exactly-once\"";
    let mut plan = planned(&study(text, "1/s"));
    plan.grant_wishes(|_, _| Ok(()));
    let trial = &plan.trials[0];
    assert_eq!(trial.settings_name, "durable");
    assert_eq!(trial.settings.reliability, Some(Reliability::ExactlyOnce));
    assert_eq!(trial.settings.durability, Some(Durability::Disk));
    assert!(
        plan.resolved.contains("profile = \"durable\""),
        "{}",
        plan.resolved
    );
    // Read again, it is the same plan.
    let again = Study::parse("again", &plan.resolved, Path::new("")).expect("TOML");
    assert_eq!(planned(&again).trials[0].settings, trial.settings);
}

#[test]
fn flags_run_every_variant_with_every_profile() {
    let mut plain = study("", "1/s");
    plain
        .apply_profiles(&profiles(&["latency", "durable"]))
        .expect("profiles");
    assert_eq!(names(&planned(&plain)), ["durable", "latency"]);

    let text = "[[settings]]\nname = \"x\"\nin-flight = 7\n[[settings]]\nname = \"y\"\nprofile = \"durable\"";
    let mut named = study(text, "1/s");
    named
        .apply_profiles(&profiles(&["latency", "default"]))
        .expect("profiles");
    let plan = planned(&named);
    assert_eq!(
        names(&plan),
        ["x-default", "x-latency", "y-default", "y-latency"]
    );
    for trial in &plan.trials {
        let x = trial.settings_name.starts_with('x');
        assert_eq!(trial.settings.in_flight, x.then_some(7));
        assert_eq!(
            trial.settings.durability, None,
            "the flag takes the profile's place"
        );
    }

    let mut set = study("", "1/s");
    set.apply_profiles(&profiles(&["latency"]))
        .expect("profiles");
    set.apply_set("settings.latency.in-flight=3")
        .expect_err("it has no name of its own");
    set.apply_set("settings.in-flight=3").expect("all variants");
    assert_eq!(planned(&set).trials[0].settings.in_flight, Some(3));
}

#[test]
fn wishes_in_vain_are_told_and_promises_are_kept_or_refused() {
    let mut latency = study("[[settings]]\nprofile = \"latency\"", "1/s");
    let mut plan = planned(&latency);
    plan.grant_wishes(plain_system);
    plan.split_unsupported(plain_system);
    let trial = &plan.trials[0];
    assert_eq!(trial.settings.batching, None);
    assert_eq!(trial.settings.reliability, Some(Reliability::AtMostOnce));
    let row = Mapping {
        setting: "batching".into(),
        value: "default".into(),
        native: "one by one".into(),
        term: None,
        qos: None,
    };
    let told = trial.mappings(vec![row]);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].value, "off");
    assert_eq!(
        told[0].native,
        "one by one; the profile's wish is not to be had here (it has none)"
    );

    // A user's demand is no wish.
    latency
        .apply_set("settings.batching=adaptive")
        .expect("set");
    let mut plan = planned(&latency);
    plan.grant_wishes(plain_system);
    plan.split_unsupported(plain_system);
    assert_eq!(plan.trials.len(), 0);
    assert_eq!(plan.unsupported[0].settings[0].setting, "batching");

    // Nor is a profile's promise.
    let mut plan = planned(&study("[[settings]]\nprofile = \"durable\"", "1/s"));
    plan.grant_wishes(plain_system);
    plan.split_unsupported(plain_system);
    assert_eq!(plan.unsupported[0].settings[0].setting, "durability");
}

#[test]
fn tuned_depends_on_driver_and_workload() {
    let tuned = |rate: &str, driver: &str| {
        let mut plan = planned(&study("[[settings]]\nprofile = \"tuned\"", rate));
        plan.tune(|_| Some(driver.to_owned()));
        plan.grant_wishes(|_, _| Ok(()));
        plan.trials.remove(0).settings
    };
    assert_eq!(tuned("1/s", "cyclonedds").batching, Some(Batching::Off));
    assert_eq!(
        tuned("max", "cyclonedds").batching,
        Some(Batching::Adaptive)
    );
    assert_eq!(tuned("1/s", "zeromq").queue_limit, None);
    assert_eq!(tuned("max", "zeromq").queue_limit, Some(10_000));
    assert!(tuned("max", "mqtt").native("mqtt", "no-delay").is_some());
    // A flow that only subscribes is not flat out.
    let listening = "[[settings]]\nprofile = \"tuned\"\n[[workload]]\nname = \"two\"\n\
                     [[workload.flow]]\nname = \"sub\"\npublishers = 0\nsubscribe = \"m/#\"\n\
                     [[workload.flow]]\nname = \"pub\"\ntopic = \"m\"\nsubscribers = 0\n\
                     payload = \"64B\"\nrate = \"1/s\"";
    let text = format!("name = \"t\"\n{listening}\n");
    let mut plan = planned(&Study::parse("study.toml", &text, Path::new("")).expect("TOML"));
    plan.tune(|_| Some("cyclonedds".to_owned()));
    plan.grant_wishes(|_, _| Ok(()));
    assert_eq!(plan.trials[0].settings.batching, Some(Batching::Off));
    // A native setting in vain goes alone.
    let mut plan = planned(&study("[[settings]]\nprofile = \"tuned\"", "max"));
    plan.tune(|_| Some("amqp".to_owned()));
    plan.grant_wishes(plain_system);
    let trial = &plan.trials[0];
    assert_eq!(trial.settings.native("amqp", "prefetch"), None);
    assert!(trial.settings.native("amqp", "no-delay").is_some());
    let names: Vec<&str> = trial
        .not_granted
        .iter()
        .map(|u| u.setting.as_str())
        .collect();
    assert_eq!(names, ["batching", "native.amqp.prefetch"]);
    // Settings without a row get one.
    assert_eq!(trial.mappings(Vec::new()).len(), 2);
}

#[test]
fn flows_with_settings_of_their_own_keep_them_above_the_wishes() {
    let text = "name = \"t\"\n[[settings]]\nprofile = \"latency\"\n[[workload]]\nname = \"w\"\n\
        [[workload.flow]]\nname = \"own\"\npayload = \"64B\"\nrate = \"1/s\"\n\
        settings = { batching = \"adaptive\" }\n";
    let mut plan = planned(&Study::parse("study.toml", text, Path::new("")).expect("TOML"));
    plan.grant_wishes(|_, _| Ok(()));
    assert_eq!(plan.trials[0].settings.batching, Some(Batching::Off));
    assert_eq!(
        plan.trials[0].of_flows[0].batching,
        Some(Batching::Adaptive)
    );
}

#[test]
fn a_wrong_profile_is_named_with_the_nearest() {
    let text = "[[settings]]\nname = \"x\"\nprofile = \"latncy\"";
    let error = plan(&study(text, "1/s"))
        .expect_err("no profile")
        .to_string();
    assert!(error.starts_with("study.toml:4:11: `latncy`"), "{error}");
    assert!(error.contains("did you mean `latency`"), "{error}");
    assert!(error.contains("hint:"), "{error}");
    let text = "[[settings]]\nprofile = 3";
    let error = plan(&study(text, "1/s")).expect_err("no name").to_string();
    assert!(error.contains("the name of a profile"), "{error}");

    let mut flags = study("", "1/s");
    let error = flags
        .apply_profiles(&profiles(&["tuend"]))
        .expect_err("no profile");
    let error = error.to_string();
    assert!(
        error.starts_with("--profile tuend: there is no profile `tuend`"),
        "{error}"
    );
    assert!(
        error.contains("hint: there is default, tuned, latency"),
        "{error}"
    );
    let error = flags.apply_profiles(&profiles(&["latency", "latency"]));
    let error = error.expect_err("twice").to_string();
    assert_eq!(error.trim(), "--profile latency: is given twice");
}
