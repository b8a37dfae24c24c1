//! Profiles: what `plan` says of them, the tables of docs/profiles.md, and what reaches a real server.
//!
//! To renew the tables: `PUBGAUGE_RENEW=1 cargo test -p pubgauge --features cyclonedds,fastdds
//! --test profiles`.

use crate::common;

use std::os::unix::fs::PermissionsExt;

use common::*;
use serde_json::Value;

#[test]
fn the_plan_of_two_profiles() {
    let place = Place::new();
    let on = "mosquitto,zeromq-direct";
    let done = place
        .run(&[
            "plan",
            "--profile",
            "latency,durable",
            "--on",
            on,
            "--rate",
            "1k/s",
        ])
        .exits(0);
    assert!(done.out.lines().all(|l| l.chars().count() <= 80));
    insta::assert_snapshot!("plan-profiles", done.out);
    // Settings that the user names are taken or refused, not replaced.
    let done = place
        .run(&["plan", "--profile", "durable", "--on", "mosquitto:memory"])
        .exits(3);
    assert!(
        done.err.contains("take a variant with persistence"),
        "{}",
        done.err
    );
    // Nor is it measured twice under one name.
    let on = "mosquitto,mosquitto:persistent";
    let done = place
        .run(&["plan", "--profile", "durable", "--on", on])
        .exits(0);
    let said: Vec<&str> = done.out.split_whitespace().collect();
    let said = said.join(" ");
    assert!(said.contains("take a variant with persistence"), "{said}");
    insta::assert_snapshot!(
        "wrong-profile",
        place.run(&["plan", "--profile", "latncy"]).exits(3).err
    );
    place.is_clean();
}

/// mosquitto, with its configuration and all that it logs kept in `folder`.
fn spied_on(place: &Place, folder: &str) -> std::process::Command {
    std::fs::create_dir(place.path_to(folder)).unwrap();
    let kept = place.path_to(folder).display().to_string();
    let script = format!(
        "#!/bin/sh\nPATH=/usr/sbin:$PATH\n[ \"$1\" = -c ] || exec mosquitto \"$@\"\n\
         cp \"$2\" '{kept}/conf'\nexec mosquitto -v \"$@\" 2>'{kept}/log'\n"
    );
    let path = place.write(&format!("{folder}/mosquitto"), script);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let out = format!("out-{folder}");
    let mut args = vec![
        "run",
        "--profile",
        folder,
        "--on",
        "mosquitto",
        "--out",
        &out,
    ];
    args.extend(["--rate", "50/s"]);
    args.extend(SHORT);
    let mut command = place.command(&args);
    command.env("PUBGAUGE_MOSQUITTO", path);
    command
}

#[test]
fn durable_reaches_the_server_and_default_does_not() {
    let place = Place::new();
    for (profile, quality, clean, persistence) in [
        ("durable", "q1", "c0", "persistence true"),
        ("default", "q0", "c1", "persistence false"),
    ] {
        // Whether the figures are valid is up to the machine.
        let done = place.finish(spied_on(&place, profile));
        done.ran_to_its_end();
        let read = |file: &str| {
            std::fs::read_to_string(place.path_to(&format!("{profile}/{file}"))).unwrap()
        };
        assert!(read("conf").contains(persistence), "{}", read("conf"));
        let log = read("log");
        let published: Vec<&str> = log
            .lines()
            .filter(|l| l.contains("Received PUBLISH "))
            .collect();
        assert!(published.len() > 20, "{log}");
        let other = |line: &&&str| !line.contains(&format!(", {quality}, "));
        assert_eq!(published.iter().find(other), None, "{profile}");
        // Clean Start, in mosquitto's words.
        let connected: Vec<&str> = log
            .lines()
            .filter(|l| l.contains("New client connected"))
            .collect();
        assert!(connected.len() >= 2, "{log}");
        let publisher_or_subscriber = |line: &&&str| line.contains(&format!(", {clean}, "));
        assert!(
            connected.iter().any(|l| publisher_or_subscriber(&l)),
            "{connected:?}"
        );
        let trial = place.trial(&format!("out-{profile}"));
        assert_eq!(trial["settings_name"], profile);
        assert_eq!(trial["lost"], 0);
        assert!(trial["delivered"].as_u64().unwrap() > 20, "{trial}");
    }
    place.is_clean();
}

/// One system for each driver, and those whose answers differ from it.
const SHOWN: &str =
    "mosquitto,nats:mqtt,rabbitmq,ejabberd,zeromq-direct,cyclonedds,fastdds,fastdds-cyclonedds";

/// Settings that a profile becomes on each system, as a table.
fn table(place: &Place, profile: &str, rate: &str) -> String {
    let done = place
        .run(&[
            "plan",
            "--json",
            "--profile",
            profile,
            "--on",
            SHOWN,
            "--rate",
            rate,
        ])
        .exits(0);
    let plan: Value = serde_json::from_str(&done.out).unwrap();
    let text = |value: &Value| value.as_str().unwrap().replace('|', "\\|");
    // (setting, value), what it became, on which systems; in the order of settings.
    let mut rows: Vec<((String, String), String, Vec<String>)> = Vec::new();
    let mut add = |setting: &Value, value: &Value, native: String, system: &Value| {
        let key = (text(setting), text(value));
        match rows.iter_mut().find(|(k, n, _)| *k == key && *n == native) {
            Some((_, _, systems)) => systems.push(text(system)),
            None => rows.push((key, native, vec![text(system)])),
        }
    };
    let mut trials: Vec<&Value> = plan["trials"].as_array().unwrap().iter().collect();
    trials.sort_by_key(|trial| {
        let system = trial["system"].as_str().unwrap();
        SHOWN
            .split(',')
            .position(|s| system.split(':').next() == Some(s))
    });
    for trial in trials {
        for m in trial["mappings"].as_array().unwrap() {
            if m["value"] != "default" {
                add(
                    &m["setting"],
                    &m["value"],
                    text(&m["native"]),
                    &trial["system"],
                );
            }
        }
    }
    let mut cells: Vec<&Value> = plan["unsupported"].as_array().unwrap().iter().collect();
    cells.sort_by_key(|cell| SHOWN.find(cell["system"].as_str().unwrap()));
    for cell in cells {
        for u in cell["settings"].as_array().unwrap() {
            let native = format!("**unsupported**: {}", text(&u["reason"]));
            add(&u["setting"], &u["value"], native, &cell["system"]);
        }
    }
    let order = |name: &str| {
        let neutral = pubgauge_driver::Settings::NAMES;
        neutral
            .iter()
            .position(|n| *n == name)
            .unwrap_or(neutral.len())
    };
    rows.sort_by_key(|((setting, _), _, _)| (order(setting), setting.clone()));
    let mut out = String::from("| setting | on | becomes |\n|---|---|---|\n");
    for ((setting, value), native, systems) in rows {
        let systems = systems.join(", ");
        out.push_str(&format!(
            "| `{setting} = {value}` | {systems} | {native} |\n"
        ));
    }
    out
}

#[test]
fn the_tables_of_the_documentation_are_what_plans_say() {
    let place = Place::new();
    let mut tables = String::new();
    for profile in pubgauge_study::profiles() {
        let (name, about) = (&profile.name, &profile.about);
        tables.push_str(&format!(
            "### `{name}`\n\n{}{}.\n\n",
            about[..1].to_uppercase(),
            &about[1..]
        ));
        match name.as_str() {
            "default" => {}
            "tuned" => {
                for (kind, rate) in [("Paced", "1k/s"), ("Flat out", "max")] {
                    tables.push_str(&format!("{kind}:\n\n{}\n", table(&place, name, rate)));
                }
                tables.push_str("Sources:\n\n");
                for (driver, tuned) in pubgauge_study::tuned() {
                    let sources = tuned.sources.join("; ");
                    tables.push_str(&format!("- `{driver}`: {sources}.\n"));
                }
                tables.push('\n');
            }
            _ => tables.push_str(&format!("{}\n", table(&place, name, "1k/s"))),
        }
    }
    let path = repository("docs/profiles.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = (
        "<!-- tables: made by a test -->\n\n",
        "<!-- end of tables -->\n",
    );
    let (before, rest) = page.split_once(begin).unwrap();
    let (committed, after) = rest.split_once(end).unwrap();
    if std::env::var_os("PUBGAUGE_RENEW").is_some() {
        std::fs::write(&path, format!("{before}{begin}{tables}{end}{after}")).unwrap();
        return;
    }
    assert!(
        committed == tables,
        "docs/profiles.md is out of date; renew it with PUBGAUGE_RENEW=1:\n{tables}"
    );
    place.is_clean();
}

#[test]
fn every_driver_is_tuned_and_nothing_of_it_is_refused_without_a_reason() {
    let place = Place::new();
    for rate in ["1k/s", "max"] {
        let args = [
            "plan",
            "--json",
            "--profile",
            "tuned",
            "--on",
            SHOWN,
            "--rate",
            rate,
        ];
        let plan: Value = serde_json::from_str(&place.run(&args).exits(0).out).unwrap();
        assert_eq!(plan["unsupported"], serde_json::json!([]));
        assert_eq!(
            plan["trials"].as_array().unwrap().len(),
            SHOWN.split(',').count()
        );
        for trial in plan["trials"].as_array().unwrap() {
            for m in trial["mappings"].as_array().unwrap() {
                if m["native"].as_str().unwrap().contains("not to be had") {
                    // Without acknowledgements there is no prefetch and no window.
                    let known = ["native.amqp.prefetch", "in-flight"];
                    assert!(known.contains(&m["setting"].as_str().unwrap()), "{m}");
                }
            }
        }
    }
}
