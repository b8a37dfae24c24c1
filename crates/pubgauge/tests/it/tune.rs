//! `pubgauge tune` before its first trial, and profiles of the user's own.

use crate::common::*;

/// A reference broker with an option whose cost is planted, as the system `mine/NAME.toml`.
pub fn planted_system(place: &Place, name: &str) {
    let listen = r#""--listen", "{host}:{port}""#;
    let planted = format!(r#"{listen}, "--cpu-per-message", "{{cost}}us""#);
    let ready = "[ready]";
    let tunable = r#"[[tunable]]
option = "cost"
about = "processor time that a message costs"
values = [20, 400]
default = 200
costs = "nothing: it is made up"

[[tunable]]
option = "autosave"
about = "nothing"
values = [1]
default = 0
gives-up = "what it kept"

[[tunable]]
setting = "batching"
about = "whether messages are gathered"
values = ["off"]
default = "adaptive"

[ready]"#;
    let run = r#"ports = ["port"]"#;
    let env = format!("{run}\nenv = {{ AUTOSAVE = \"{{autosave}}\" }}");
    place.system(
        "reference-broker",
        name,
        &[(listen, &planted), (run, &env), (ready, tunable)],
    );
}

#[test]
fn what_cannot_be_tuned_is_said_before_anything_starts() {
    let place = Place::new();
    planted_system(&place, "planted");
    let of = ["tune", "--systems", "mine", "--on", "planted"];
    // One workload, where the flags do not describe another.
    let one = ["--duration", "1s"];
    for (more, words) in [
        (&["--rate", "max"][..], "a flow is flat out"),
        (
            &["--vary", "cots"],
            "has no such setting to tune (did you mean `cost`?)",
        ),
        (&["--give-up", "all"], "planted has no such setting to tune"),
        (
            &["--vary", "autosave"],
            "gives up what it kept; --give-up autosave varies it",
        ),
        (
            &["--payload", "64B,1KiB"],
            "one cell can be tuned at a time, and this plan has 2",
        ),
        (&["--repeats", "3"], "a tuning decides itself how often"),
        (
            &["--save-profile", "tuned"],
            "`tuned` is a profile that comes with pubgauge",
        ),
        (
            &["--save-profile", "a b"],
            "cannot be the name of a profile",
        ),
        (&["--budget", "soon"], "--budget soon"),
        (&["--for", "speed"], "p99, limit, cost"),
        (&["--pairs", "4"], "4 is not in 5..=100"),
    ] {
        let args = [&of[..], &one, more, &["--out", "run"]].concat();
        let done = place.run(&args);
        assert!(
            done.err.contains(words),
            "{more:?}: {}\nnot: {words}",
            done.err
        );
        done.exits(3);
        assert!(!place.path_to("run").exists(), "{more:?}");
    }
    let done = place.run(&["tune", "--rate", "1k/s"]);
    assert!(
        done.err.contains("one system is tuned at a time"),
        "{}",
        done.err
    );
    done.exits(3);
    // A system whose file says nothing of it.
    let done = place.run(&["tune", "--on", "reference-broker", "--rate", "1k/s"]);
    assert!(
        done.err.contains("there is nothing to vary"),
        "{}",
        done.err
    );
    done.exits(3);
}

#[test]
fn options_of_a_system_are_settings() {
    let place = Place::new();
    planted_system(&place, "planted");
    let plan = |set: &str| {
        place.run(&[
            "plan",
            "-v",
            "--systems",
            "mine",
            "--on",
            "planted",
            "--rate",
            "1k/s",
            "--set",
            set,
        ])
    };
    let done = plan("settings.options.planted.cost=20");
    assert!(
        done.out.contains("options.planted.cost = 20: 20us"),
        "{}",
        done.out
    );
    done.exits(0);
    for (set, words) in [
        (
            "settings.options.planted.cots=20",
            "it has no such option; did you mean `cost`?",
        ),
        ("settings.options.planted.cost=much", "expected a number"),
    ] {
        let done = plan(set);
        assert!(done.err.contains(words), "{set}: {}", done.err);
        done.exits(3);
    }
    // Those of another system count for nothing.
    let done = plan("settings.options.other.cost=20");
    assert!(!done.out.contains("options.other"), "{}", done.out);
    done.exits(0);
}

#[test]
fn the_systems_verb_shows_what_can_be_tuned() {
    let place = Place::new();
    planted_system(&place, "planted");
    let done = place.run(&["systems", "--systems", "mine"]);
    let words = done.out.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = "can be tuned: options.planted.cost (20, 400); options.planted.autosave (1); batching (off)";
    assert!(words.contains(line), "{}", done.out);
}

#[test]
fn profiles_of_the_users_own_are_named_as_others_are() {
    let place = Place::new();
    std::fs::create_dir_all(place.path_to("config/pubgauge")).unwrap();
    let mine = "[[profile]]\nname = \"mine\"\nabout = \"for the gate\"\n[profile.wish]\nbatching = \"off\"\n";
    place.write("config/pubgauge/profiles.toml", mine);
    let config = place.path_to("config").display().to_string();
    let plan = |profile: &str| {
        let mut command = place.command(&[
            "plan",
            "-v",
            "--on",
            "reference-broker",
            "--profile",
            profile,
        ]);
        command.env("XDG_CONFIG_HOME", &config);
        place.finish(command)
    };
    let done = plan("mine");
    assert!(
        done.out.contains("mine: for the gate") && done.out.contains("batching = off"),
        "{}",
        done.out
    );
    done.exits(0);
    let done = plan("mien");
    assert!(
        done.err
            .contains("there is no profile `mien`, did you mean `mine`?")
            || done.err.contains("`mine`"),
        "{}",
        done.err
    );
    done.exits(3);
    place.write(
        "config/pubgauge/profiles.toml",
        format!("{mine}in-fligt = 3\n"),
    );
    let done = plan("mine");
    assert!(
        done.err.contains("profiles.toml") && done.err.contains("in-fligt"),
        "{}",
        done.err
    );
    done.exits(3);
}
