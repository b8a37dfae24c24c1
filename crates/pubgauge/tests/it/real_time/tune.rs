//! A tuning of a broker whose best option is planted.

use std::time::Duration;

use serde_json::Value;

use crate::common::*;
use crate::tune::planted_system;

/// Tunes for cost, with more arguments.
fn tuned(place: &Place, more: &[&str]) -> (Done, Value) {
    let mut args = vec![
        "tune",
        "--systems",
        "mine",
        "--on",
        "planted",
        "--for",
        "cost",
    ];
    args.extend(["--rate", "1k/s", "--duration", "1s", "--warm-up", "300ms"]);
    args.extend(["--budget", "90s", "--out", "run"]);
    args.extend(more);
    let config = place.path_to("config").display().to_string();
    let mut command = place.command(&args);
    command.env("XDG_CONFIG_HOME", config);
    let done = place.spawn(command).ends_within(Duration::from_secs(300));
    let text = std::fs::read_to_string(place.path_to("run/tune.json")).unwrap_or_default();
    (done, serde_json::from_str(&text).unwrap_or_default())
}

#[test]
fn a_planted_option_is_found_kept_and_measured_again() {
    let place = Place::new();
    planted_system(&place, "planted");
    let (done, found) = tuned(&place, &["--save-profile", "cheap"]);
    assert_eq!(
        found["verdict"]["is"], "better",
        "{}\n{}",
        done.out, done.err
    );
    let best = found["best"].as_array().unwrap();
    assert!(
        best.contains(&serde_json::json!(["options.planted.cost", "20"])),
        "{best:?}"
    );
    assert!(
        found["verdict"]["gain"]["high"].as_f64().unwrap() < 0.9,
        "{found}"
    );
    // A setting that gives something up was left alone.
    assert!(
        done.err
            .contains("options.planted.autosave: gives up what it kept"),
        "{}",
        done.err
    );
    assert!(
        done.out.contains("options.planted.cost = 20"),
        "{}",
        done.out
    );
    assert!(
        done.out.contains("options.planted.cost: 20us"),
        "{}",
        done.out
    );
    // The trials are those of a run: in pairs, and all stored.
    let results = place.results("run");
    let trials = results["trials"].as_array().unwrap();
    let pairs = |name: &str| trials.iter().filter(|t| t["settings_name"] == name).count();
    assert!(
        pairs("tuned") >= 6 && pairs("tuned") == pairs("default"),
        "{}",
        done.out
    );
    assert_eq!(found["measurements"].as_u64(), Some(trials.len() as u64));
    done.exits(0);
    // A run knows the profile.
    let profiles = std::fs::read_to_string(place.path_to("config/pubgauge/profiles.toml")).unwrap();
    assert!(profiles.contains("options.planted.cost = 20"), "{profiles}");
}

#[test]
fn nothing_is_claimed_where_nothing_helps() {
    let place = Place::new();
    planted_system(&place, "planted");
    let (done, found) = tuned(&place, &["--vary", "autosave", "--give-up", "autosave"]);
    let verdict = found["verdict"]["is"].as_str().unwrap_or_default();
    assert_ne!(verdict, "better", "{}\n{}", done.out, done.err);
    assert!(
        found["settings"].is_null() || verdict != "nothing-found",
        "{found}"
    );
}

/// A script leads: it names one combination, and then no more.
#[test]
fn a_script_leads() {
    let place = Place::new();
    planted_system(&place, "planted");
    let script = r#"while read -r line; do
    echo "$line" >> told
    case "$line" in
    '{"ask":1}') echo '{"point":{"options.planted.cost":20,"batching":"off"}}' ;;
    '{"ask":'*) echo '{"end":true}' ;;
    esac
done
"#;
    place.write("engine.sh", script);
    let (done, found) = tuned(&place, &["--engine", "sh engine.sh"]);
    assert_eq!(
        found["verdict"]["is"], "better",
        "{}\n{}",
        done.out, done.err
    );
    done.exits(0);
    let told = std::fs::read_to_string(place.path_to("told")).unwrap();
    let lines: Vec<Value> = told
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        lines[0]["begin"]["factors"][0]["values"],
        serde_json::json!([null, 20, 400])
    );
    // It is told what was measured before it was asked, and what its own combination came to.
    let first = lines.iter().position(|line| line["ask"] == 1).unwrap();
    assert!(
        lines[1..first]
            .iter()
            .all(|line| line["tell"]["ask"].is_null())
            && first > 5,
        "{told}"
    );
    let own = lines.iter().find(|line| line["tell"]["ask"] == 1).unwrap();
    assert_eq!(own["tell"]["point"]["batching"], "off");
    assert!(
        own["tell"]["value"].as_f64().is_some_and(|us| us > 0.0),
        "{told}"
    );
}

#[test]
fn a_script_that_makes_no_sense_ends_it() {
    let place = Place::new();
    planted_system(&place, "planted");
    for (answer, words) in [
        ("nonsense", "its answer is no JSON"),
        (
            r#"{"point":{"speed":1}}"#,
            "it names `speed`, which is not varied",
        ),
        (
            r#"{"point":{"options.planted.cost":21}}"#,
            "options.planted.cost cannot be 21",
        ),
        ("{}", "neither a point nor an end"),
    ] {
        let script = format!(
            "while read -r l; do case \"$l\" in '{{\"ask\":'*) echo '{answer}' ;; esac; done\n"
        );
        place.write("engine.sh", script);
        let _ = std::fs::remove_dir_all(place.path_to("run"));
        let (done, _) = tuned(&place, &["--engine", "sh engine.sh", "--vary", "cost"]);
        assert!(done.err.contains(words), "{answer}: {}", done.err);
        done.exits(3);
        assert!(
            !place.results("run")["trials"]
                .as_array()
                .unwrap()
                .is_empty()
        );
    }
}
