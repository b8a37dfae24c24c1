//! `pubgauge find` against what was planted: a link that takes so much and no more, a search that is cut
//! off, questions that cannot be asked.

mod common;

use std::time::Duration;

use common::servers::Mosquitto;
use common::*;
use pubgauge_testing::proxy::{Direction, Proxy, Rate};
use serde_json::Value;

/// What the link takes, messages a second.
const LINK: f64 = 2_000.0;

/// A search that takes a minute or so.
fn short<'a>(on: &'a str, out: &'a str) -> Vec<&'a str> {
    let flags = ["--duration", "2s", "--confirm", "4s", "--budget", "90s"];
    let mut args = vec!["find", "--on", on, "--out", out];
    args.extend(flags);
    args
}

fn search(place: &Place, run: &str) -> Value {
    let results = place.results(run);
    let searches = results["searches"].as_array().unwrap();
    assert_eq!(searches.len(), 1);
    searches[0].clone()
}

/// What other tools read is there, and agrees with the trials.
#[track_caller]
fn is_whole(place: &Place, run: &str) -> Value {
    let search = search(place, run);
    for name in [
        "system",
        "settings",
        "axis",
        "low",
        "high",
        "confirmed",
        "bound",
        "gave_way",
    ] {
        assert!(search.get(name).is_some(), "no {name}: {search}");
    }
    let results = place.results(run);
    let trials = results["trials"].as_array().unwrap();
    let listed = search["trials"].as_array().unwrap();
    assert_eq!(trials.len(), listed.len());
    for (nth, (trial, listed)) in trials.iter().zip(listed).enumerate() {
        assert_eq!((&trial["id"], &listed["id"]), (&nth.into(), &nth.into()));
        assert_eq!(trial["search"]["load"], listed["load"]);
        if let Some(load) = listed["load"].as_f64() {
            let offered = trial["offered_msgs_per_s"].as_f64().unwrap();
            // To the message.
            let seconds = trial["duration_s"].as_f64().unwrap();
            let off = (offered - load).abs() * seconds;
            assert!(off <= 1.5 + 0.001 * load, "{offered} of {load}");
        }
    }
    assert_eq!(
        count(&results["study"], "planned_trials"),
        trials.len() as u64
    );
    search
}

#[test]
fn the_interval_holds_what_a_link_takes() {
    // A machine that is busy with other things is the limit then, and that is said: tried again.
    for _ in 0..4 {
        let place = Place::new();
        let broker = Mosquitto::start();
        let server = ([127, 0, 0, 1], broker.port).into();
        let rate = Rate::MessagesPerS(LINK);
        // A link's buffer is short: what a flat-out trial leaves in it is gone when the next begins.
        let link = || {
            Proxy::to(server)
                .rate(Direction::ToServer, rate)
                .buffer(Direction::ToServer, 64 * 1024)
        };
        let proxy = link().realtime(10).start().or_else(|_| link().start());
        let address = format!("mqtt://{}", proxy.as_ref().unwrap().address());
        let done = place
            .start(&short(&address, "run"))
            .ends_within(Duration::from_secs(300));
        assert!([0, 2].contains(&done.code), "{done:?}");
        let search = is_whole(&place, "run");

        let end = |name: &str| search[name].as_f64();
        // Whatever the machine does, more than the link takes is never promised.
        assert!(end("low").is_none_or(|low| low <= 1.02 * LINK), "{search}");
        assert!(
            end("confirmed").is_none_or(|load| load <= 1.02 * LINK),
            "{search}"
        );
        if search["bound"] == "system" {
            assert!(end("low").unwrap() <= 1.01 * LINK, "{search}");
            assert!(end("high").unwrap() >= LINK, "{search}");
            assert!(end("high").unwrap() <= 1.2 * LINK, "{search}");
            done.exits(0);
            return;
        }
    }
    panic!("this machine is too busy for this test");
}

#[test]
fn a_search_that_was_cut_off_goes_on() {
    let place = Place::new();
    let mut args = short("simulated", "run");
    args.extend(["--set", "settings.native.simulated.service-ns=2000000"]);
    let mut run = place.start(&args);
    run.until("three trials", || {
        place.at("run/trials/0002/trial.json").exists()
    });
    run.signal(libc::SIGINT);
    run.ends().exits(2).says("--resume run");
    let before = place.results("run")["trials"].clone();
    let resumed = place.start(&["run", "--resume", "run"]);
    let done = resumed.ends_within(Duration::from_secs(300));
    assert!([0, 2].contains(&done.code), "{done:?}");
    let search = is_whole(&place, "run");
    let after = place.results("run")["trials"].clone();
    for (nth, trial) in before.as_array().unwrap().iter().enumerate() {
        assert_eq!(*trial, after[nth], "trial {nth} was measured again");
    }
    // 500 messages a second: one every 2 ms.
    assert!(
        search["low"].as_f64().is_none_or(|low| low <= 510.0),
        "{search}"
    );
    place.is_clean();
}

#[test]
fn what_cannot_be_searched_for() {
    let place = Place::new();
    let says = |args: &[&str], text: &str| {
        let all: Vec<&str> = ["find", "--on", "simulated", "--out", "run"]
            .iter()
            .chain(args)
            .copied()
            .collect();
        place.run(&all).exits(3).says(text);
        assert!(!place.at("run").exists());
    };
    says(&["--width", "7"], "`width` is a share from 0.02 to 1");
    says(&["--budget", "soon"], "is not a duration");
    says(&["--axis", "devices"], "invalid value 'devices'");
    let flow = "[[workload.flow]]\nname = \"NAME\"\nrate = \"find\"\npayload = \"64B\"\n";
    let two = ["a", "b"].map(|name| flow.replace("NAME", name)).concat();
    place.write(
        "two.toml",
        format!("name = \"two\"\n[[workload]]\nname = \"w\"\n{two}"),
    );
    says(
        &["two.toml"],
        "one value of one flow can be searched for at a time",
    );
    place.write(
        "grid.toml",
        format!(
            "name = \"grid\"\n[grid]\nrate = [\"1/s\", \"2/s\"]\n[[workload]]\nname = \"w\"\n{flow}"
        ),
    );
    says(&["grid.toml"], "cannot vary over the grid too");
}

#[test]
fn a_broker_that_is_gone_gives_no_limit() {
    let place = Place::new();
    let address = "mqtt://127.0.0.1:1";
    let mut args = short(address, "run");
    args.extend(["--set", "phases.ready-within=1s"]);
    let done = place.start(&args).ends_within(Duration::from_secs(300));
    let done = done.exits(2);
    let search = search(&place, "run");
    assert_eq!(search["low"], Value::Null, "{}", done.err);
    assert_eq!(search["high"], Value::Null);
    assert_eq!(search["bound"], "budget");
}
