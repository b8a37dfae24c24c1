//! Slow subscribers over real servers: what each server does with what they do not take.

use crate::common;

use common::*;
use serde_json::Value;

/// One of three subscribers takes a message each 20 ms, over a server of `name` in `mine`.
fn one_of_three(place: &Place, name: &str, flow: &str, settings: &str) -> Value {
    place.write(
        "slow.toml",
        format!(
            "name = \"slow\"\nsystems = [\"{name}\"]\n\
             phases = {{ warm-up = \"300ms\", measure = \"3s\" }}\n{settings}\n\
             [[workload]]\nname = \"w\"\n[[workload.flow]]\nsubscribers = 3\n\
             slow = {{ subscribers = 1, takes = \"20ms\" }}\n{flow}\n"
        ),
    );
    let run = || {
        let _ = std::fs::remove_dir_all(place.path_to("run"));
        place.run(&["run", "slow.toml", "--systems", "mine", "--out", "run"]);
        place.is_clean();
        place.trial("run")
    };
    // A publisher that has no processor sends too little for any queue to fill, and others that have none are slow, too.
    let sends = |trial: &Value| 10 * count(trial, "published") >= 9 * count(trial, "offered");
    let others_get_all = |trial: &Value| verdict(trial) != "broken" && count(trial, "lost") == 0;
    let trial = tried_until(run, |trial| sends(trial) && others_get_all(trial));
    accounted(&trial);
    let slow = &trial["slow"];
    let told = ["taken", "behind", "lost", "under_way"].map(|what| count(slow, what));
    assert_eq!(told.iter().sum::<u64>(), count(slow, "expected"), "{slow}");
    assert_eq!(count(slow, "expected"), count(&trial, "published"));
    // 150 in 3 s, fewer on a machine that stands still.
    let taken = count(slow, "taken");
    assert!((1..=151).contains(&taken), "{slow}");
    assert_eq!(count(slow, "fell_behind"), 1, "{slow}");
    slow.clone()
}

#[test]
fn mosquitto_keeps_all_without_a_bound() {
    let place = Place::new();
    place.system("mosquitto", "kept", &[]);
    let slow = one_of_three(
        &place,
        "kept",
        "payload = \"1KiB\"\nrate = \"500/s\"",
        "settings = [{ reliability = \"at-least-once\" }]",
    );
    assert_eq!(
        (count(&slow, "lost"), count(&slow, "disconnects")),
        (0, 0),
        "{slow}"
    );
    assert!(count(&slow, "behind") > 1_200, "{slow}");
    let told = place.run(&["report", "run"]).exits(0).out;
    assert!(
        told.contains("1 of 1 slow subscribers fell behind"),
        "{told}"
    );
}

#[test]
fn mosquitto_drops_at_qos_1_what_its_queue_has_no_room_for() {
    let place = Place::new();
    let bounds = [("\nmax_queued_messages 0", "\nmax_queued_messages 100")];
    place.system("mosquitto", "bounded", &bounds);
    let slow = one_of_three(
        &place,
        "bounded",
        "payload = \"1KiB\"\nrate = \"500/s\"",
        "settings = [{ reliability = \"at-least-once\", options.bounded.max-inflight = 20 }]",
    );
    assert_eq!(count(&slow, "disconnects"), 0, "{slow}");
    // 20 wait for their acknowledgements and 100 in the queue, beside what lies in the socket acknowledged by nobody.
    assert!((100..=160).contains(&count(&slow, "behind")), "{slow}");
    assert!(count(&slow, "lost") > 1_000, "{slow}");
}

#[test]
fn mosquitto_drops_at_qos_0_what_the_socket_has_no_room_for() {
    let place = Place::new();
    let bounds = [("\nmax_queued_messages 0", "\nmax_queued_messages 100")];
    place.system("mosquitto", "bounded", &bounds);
    let flow = "payload = \"64KiB\"\nrate = \"200/s\"";
    let slow = one_of_three(&place, "bounded", flow, "");
    assert_eq!(count(&slow, "disconnects"), 0, "{slow}");
    assert!(count(&slow, "lost") > 100, "{slow}");
}

#[test]
fn nats_disconnects_who_is_too_far_behind() {
    let place = Place::new();
    place.system(
        "nats",
        "strict",
        &[
            // The sockets' buffers take some 20 MB before the server waits at all.
            ("max_pending: 1GB", "max_pending: 2MB"),
            ("write_deadline: \"60s\"", "write_deadline: \"500ms\""),
            ("max_payload: 8MB", "max_payload: 1MB"),
        ],
    );
    let slow = one_of_three(
        &place,
        "strict",
        "publishers = 20\npayload = \"64KiB\"\nrate = \"400/s\"",
        "",
    );
    assert_eq!(count(&slow, "disconnects"), 1, "{slow}");
    assert!(count(&slow, "lost") > 0, "{slow}");
    assert_eq!(slow["of"][0]["disconnects"], 1);
}

#[test]
fn who_cannot_stop_reading_says_so_in_the_plan() {
    let place = Place::new();
    place.write(
        "slow.toml",
        "name = \"slow\"\nsystems = [\"mosquitto\"]\n\
         settings = [{ reliability = \"at-least-once\", session = \"durable\", native.mqtt.collect = true }]\n\
         [[workload]]\nname = \"w\"\n[[workload.flow]]\nsubscribers = 3\nrate = \"10/s\"\n\
         payload = \"64B\"\nslow = { subscribers = 1, takes = \"20ms\" }\n",
    );
    let said = place.run(&["plan", "slow.toml"]);
    assert!((said.out + &said.err).contains("slow"));
}

/// Applications that take a millisecond for each of 2,000 messages a second: one takes half of them, three that share take all.
#[test]
fn applications_that_take_their_time_are_the_limit_until_they_are_enough() {
    let place = Place::new();
    let trial_with = |name: &str, subscribers: &str| {
        place.write(
            "take.toml",
            format!(
                "name = \"take\"\nsystems = [\"mosquitto\"]\n\
                 phases = {{ warm-up = \"300ms\", measure = \"2s\", drain-within = \"30s\" }}\n\
                 [[workload]]\nname = \"w\"\n[[workload.flow]]\n{subscribers}\npayload = \"64B\"\nrate = \"2k/s\"\n\
                 subscribers-take = \"1ms\"\n"
            ),
        );
        place.run(&["run", "take.toml", "--out", name]);
        place.is_clean();
        let trial = place.trial(name);
        accounted(&trial);
        trial
    };
    let one = trial_with("one", "subscribers = 1");
    // The application takes 2,000 in 2 s at the most, fewer where the machine stands still.
    let rate = one["delivered_msgs_per_s"].as_f64().unwrap();
    assert!((300.0..=1_001.0).contains(&rate), "{rate}");
    let attempt = || {
        let _ = std::fs::remove_dir_all(place.path_to("again"));
        trial_with("again", "subscribers = 1")
    };
    let full = |trial: &Value| reasons(trial).contains("application of a subscriber");
    let trial = tried_until(attempt, full);
    assert!(full(&trial), "{}", reasons(&trial));
    assert_eq!(verdict(&trial), "client-bound");
    let three = trial_with("three", "pattern = \"shared\"\nsubscribers = 3");
    let busy = three["worker_load"]["applications_busy"].as_f64().unwrap();
    // Each of three takes 667 of 1,000 that it could.
    assert!((0.1..=0.75).contains(&busy), "{busy}");
    assert_eq!(count(&three, "lost"), 0);
}
