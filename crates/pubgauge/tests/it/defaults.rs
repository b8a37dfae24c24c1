//! Options that nobody typed: pubgauge.toml and variables, what comes first, and what is refused.

use crate::common::*;

use serde_json::Value;

/// The payload, the rate and the repeats of a plan, of a workload without a study.
fn planned(place: &Place, typed: &[&str], variables: &[(&str, &str)]) -> (String, String, usize) {
    let args = [&["plan", "--on", "simulated", "--json"], typed].concat();
    let mut command = place.command(&args);
    command.envs(variables.iter().copied());
    let done = place.finish(command).exits(0);
    let plan: Value = serde_json::from_str(&done.out).unwrap();
    let mut args = args;
    args.retain(|arg| *arg != "--json");
    let mut command = place.command(&args);
    command.envs(variables.iter().copied());
    let text = place.finish(command).exits(0).out;
    let line = text.lines().find(|line| line.contains("1 publisher"));
    let words = line.unwrap_or_else(|| panic!("{text}")).trim();
    let parts: Vec<&str> = words.rsplit(": ").next().unwrap().split(", ").collect();
    let trials = plan["trials"].as_array().unwrap().len();
    (parts[0].to_owned(), parts[1].to_owned(), trials)
}

#[test]
fn typed_comes_before_variables_before_the_file_before_the_default() {
    let place = Place::new();
    let of = |typed: &[&str], variables: &[(&str, &str)]| planned(&place, typed, variables);
    let is = |found: (String, String, usize), payload: &str, rate: &str, repeats: usize| {
        assert_eq!(found, (payload.to_owned(), rate.to_owned(), repeats));
    };
    is(of(&["--rate", "1k/s"], &[]), "64 B", "1000/s", 1);
    place.write(
        "pubgauge.toml",
        "# of this folder\nrate = \"200/s\"\npayload = [\"1KiB\"]\nrepeats = 3\n[find]\nrate = \"7/s\"\n",
    );
    is(of(&[], &[]), "1 KiB", "200/s", 3);
    let variables = [("PUBGAUGE_RATE", "300/s"), ("PUBGAUGE_REPEATS", "2")];
    is(of(&[], &variables), "1 KiB", "300/s", 2);
    is(of(&["--rate", "400/s"], &variables), "1 KiB", "400/s", 2);
    // The table of a verb comes before what stands for all.
    place.write(
        "pubgauge.toml",
        "rate = \"200/s\"\n[plan]\nrate = \"5/s\"\n",
    );
    is(of(&[], &[]), "64 B", "5/s", 1);
    // A named file takes the place of that in the folder; none, if its name is empty.
    place.write("other.toml", "rate = \"9/s\"\n");
    is(of(&["--config", "other.toml"], &[]), "64 B", "9/s", 1);
    is(
        of(&[], &[("PUBGAUGE_CONFIG", "other.toml")]),
        "64 B",
        "9/s",
        1,
    );
    let none = [("PUBGAUGE_CONFIG", "")];
    is(of(&["--rate", "1k/s"], &none), "64 B", "1000/s", 1);
}

#[test]
fn where_a_value_is_from_is_told() {
    let place = Place::new();
    place.write("pubgauge.toml", "\nrate = \"200/s\"\n");
    let mut command = place.command(&["plan", "--on", "simulated"]);
    command.env("PUBGAUGE_PAYLOAD", "1KiB");
    command.env("PUBGAUGE_RAET", "1");
    let done = place.finish(command).exits(0);
    for said in [
        "--rate=200/s (pubgauge.toml:2)",
        "--payload=1KiB (PUBGAUGE_PAYLOAD)",
        "PUBGAUGE_RAET is no variable of pubgauge (did you mean `PUBGAUGE_RATE`?)",
    ] {
        assert!(done.err.contains(said), "{}", done.err);
    }
    // An error that comes of it says so, too.
    place.write("pubgauge.toml", "\nrate = \"often\"\n");
    let done = place.run(&["plan", "--on", "simulated"]).exits(3);
    assert!(
        done.err.contains("note: --rate is from pubgauge.toml:2"),
        "{}",
        done.err
    );
    // The machine is spared the words.
    place.write("pubgauge.toml", "rate = \"200/s\"\nquiet = true\n");
    let done = place.run(&["plan", "--on", "simulated"]).exits(0);
    assert_eq!(done.err, "");
}

#[test]
fn a_named_study_is_measured_as_it_is_written() {
    let place = Place::new();
    place.write(
        "pubgauge.toml",
        "rate = \"200/s\"\nrepeats = 7\non = \"nats\"\nprofile = \"latency\"\nverbose = true\n",
    );
    let study = "name = \"mine\"\nsystems = [\"simulated\"]\n[[workload]]\nname = \"w\"\n[[workload.flow]]\npayload = \"64B\"\nrate = \"10/s\"\n";
    place.write("mine.toml", study);
    let done = place.run(&["plan", "mine.toml"]).exits(0);
    assert!(done.err.contains("left to the study: "), "{}", done.err);
    assert!(done.err.contains("--repeats=7"), "{}", done.err);
    assert!(done.out.contains("1 trial,"), "{}", done.out);
    assert!(done.out.contains("10/s"), "{}", done.out);
    // A value that is no matter of the study applies: each trial is listed.
    assert!(!done.out.contains("--verbose"), "{}", done.out);
    let done = place.run(&["plan", "mine.toml", "--repeats", "2"]).exits(0);
    assert!(done.out.contains("2 trials,"), "{}", done.out);
}

#[test]
fn wrong_keys_are_refused_where_they_stand() {
    let place = Place::new();
    for (text, said) in [
        (
            "raet = \"1/s\"",
            "pubgauge.toml:1:1: `raet` is no option (did you mean `rate`?)",
        ),
        (
            "\n  repeat = 3",
            "pubgauge.toml:2:3: `repeat` is no option (did you mean `repeats`?)",
        ),
        (
            "[rum]\nrate = \"1/s\"",
            "pubgauge.toml:1:2: `rum` is no verb (did you mean `run`?)",
        ),
        (
            "[report]\nrate = \"1/s\"",
            "`rate` is no option of `pubgauge report`",
        ),
        ("password = \"x\"", "PUBGAUGE_PASSWORD has it"),
        ("name = \"mine\"", "this is a key of a study"),
        ("yes = true", "`yes` is no option"),
        ("resume = \"x\"", "`resume` is no option"),
        ("repeats = 0", "pubgauge.toml:1: invalid value '0'"),
        ("repeats = [1, 2]", "takes one value"),
        ("verbose = \"on\"", "expected true or false"),
        ("publishers = [[1]]", "expected a text or a number"),
        ("rate = ", "pubgauge.toml:1:"),
        ("", "is empty"),
    ] {
        place.write("pubgauge.toml", text);
        let done = place
            .run(&["plan", "--on", "simulated", "--rate", "1/s"])
            .exits(3);
        assert!(done.err.contains(said), "{text}: {}", done.err);
        assert_eq!(done.out, "");
    }
    let mut command = place.command(&["plan", "--config", "none.toml"]);
    command.env("PUBGAUGE_VERBOSE", "perhaps");
    place.finish(command).exits(3);
    std::fs::remove_file(place.path_to("pubgauge.toml")).unwrap();
    let mut command = place.command(&["plan", "--on", "simulated", "--rate", "1/s"]);
    command.env("PUBGAUGE_VERBOSE", "perhaps");
    let done = place.finish(command).exits(3);
    done.assert_says("PUBGAUGE_VERBOSE=perhaps: expected true or false");
}

/// A file that lies in a folder by chance starts nothing, reads and writes nothing, and sends a password nowhere.
#[test]
fn a_file_that_nobody_named_does_no_harm() {
    let place = Place::new();
    for (text, verb) in [
        ("load-host = \"touch harm\"", "run"),
        ("on = \"mqtt://stranger.example\"", "run"),
        ("on = [\"simulated\", \"stranger.example:1883\"]", "run"),
        ("systems = \"mine\"", "plan"),
        ("junit = \"harm\"", "run"),
        ("out = \"harm\"", "run"),
        ("password-file = \"/etc/hostname\"", "run"),
        ("set = \"settings.in-flight=1\"", "plan"),
    ] {
        place.write("pubgauge.toml", text);
        let done = place.run(&[verb, "--rate", "1/s"]).exits(3);
        done.assert_says("merely lies in the current folder");
        assert!(!place.path_to("harm").exists(), "{text}");
    }
    // Whoever names it means it.
    let args = ["plan", "--rate", "1/s", "--on", "simulated"];
    let named = [&args[..], &["--config", "pubgauge.toml"]].concat();
    place.run(&named).exits(0);
}

/// Defaults that cannot be had together with what was typed give way, and verbs without such an option do not look.
#[test]
fn what_does_not_fit_gives_way() {
    let place = Place::new();
    place.write(
        "pubgauge.toml",
        "processes = 2\non = \"simulated\"\nprecision = \"3%\"\n",
    );
    let args = ["plan", "--rate", "1/s", "--repeats", "2"];
    let done = place.run(&args).exits(0);
    assert!(done.out.contains("2 trials,"), "{}", done.out);
    assert!(!done.err.contains("--precision"), "{}", done.err);
    // --on of `systems` needs --matrix.
    place.run(&["systems", "--json"]).exits(0);
    // A guard has its releases from the file.
    place.write("pubgauge.toml", "[guard]\nold = \"nats\"\nnew = \"nats\"\n");
    let done = place.run(&["guard", "--config", "pubgauge.toml"]).exits(3);
    done.assert_says("is the old one");
}
