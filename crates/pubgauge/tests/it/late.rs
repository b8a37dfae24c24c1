//! Late subscribers over real servers: the last values that each server keeps, and what comes afterwards.

use crate::common;

use common::*;
use serde_json::Value;

/// Four of five subscribers come after a second, and hear 200 topics whose last values a server of this system keeps.
pub fn four_of_five(system: &str) -> (Place, Value) {
    let place = Place::new();
    place.write(
        "late.toml",
        format!(
            "name = \"late\"\nsystems = [\"{system}\"]\n\
             phases = {{ warm-up = \"300ms\", measure = \"3s\" }}\n\
             settings = [{{ reliability = \"at-least-once\", last-value = true }}]\n\
             [[workload]]\nname = \"w\"\n[[workload.flow]]\npublishers = 10\nsubscribers = 5\n\
             topic = \"meters/{{meter}}/{{value}}\"\ndimensions = {{ meter = 10, value = 20 }}\n\
             publisher-per = [\"meter\"]\nsubscribe = \"meters/#\"\npayload = \"120B\"\nrate = \"200/s\"\n\
             late = {{ subscribers = 4, after = \"1s\" }}\n"
        ),
    );
    place.run(&["run", "late.toml", "--out", "run"]);
    place.is_clean();
    let trial = place.trial("run");
    assert_ne!(verdict(&trial), "broken", "{}", reasons(&trial));
    accounted(&trial);
    // Of the one that was there from the beginning nothing is lost, repeated or late.
    assert_eq!(count(&trial, "lost"), 0, "{}", reasons(&trial));
    assert_eq!(count(&trial, "expected"), count(&trial, "published"));
    let late = trial["late"].clone();
    assert_eq!(count(&late, "subscribed"), 4, "{late}");
    assert_eq!(count(&late, "last_values_due"), 800, "{late}");
    assert_eq!(count(&late, "last_values"), 800, "{late}");
    let none = ["last_values_repeated", "lost", "open_paths", "duplicated"];
    for what in none {
        assert_eq!(count(&late, what), 0, "{what}: {late}");
    }
    // Of 600 messages to each of them: how many came after it had asked is for a quiet machine (`real_time::late`).
    let came = count(&late, "live") + count(&late, "backlog");
    assert!((1..=2_400).contains(&came), "{late}");
    assert_eq!(count(&late["last_values_ns"], "count"), 4, "{late}");
    (place, late)
}

#[test]
fn mosquitto_sends_the_last_value_of_each_topic() {
    let (place, _) = four_of_five("mosquitto");
    let told = place.run(&["report", "run"]).exits(0).out;
    let words = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("4 of 4 late subscribers subscribed"),
        "{told}"
    );
    assert!(words.contains("800 of 800 last values came"), "{told}");
}

#[test]
fn nats_sends_the_last_value_of_each_topic_over_mqtt() {
    four_of_five("nats:mqtt");
}

#[test]
fn who_keeps_no_last_values_says_so_in_the_plan() {
    let place = Place::new();
    let study = |settings: &str| {
        format!(
            "name = \"late\"\nsystems = [\"nats\"]\n{settings}[[workload]]\nname = \"w\"\n\
             [[workload.flow]]\nsubscribers = 3\nrate = \"10/s\"\npayload = \"64B\"\n\
             late = {{ subscribers = 1, after = \"1s\" }}\n"
        )
    };
    place.write("asked.toml", study("settings = [{ last-value = true }]\n"));
    let said = place.run(&["plan", "asked.toml"]);
    assert!((said.out + &said.err).contains("last-value"));
    place.write("not-asked.toml", study(""));
    let said = place.run(&["plan", "not-asked.toml"]).exits(0).out;
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("is not asked to keep last values"), "{said}");
}

#[test]
fn who_has_no_broker_says_so_in_the_plan() {
    let place = Place::new();
    place.write(
        "late.toml",
        "name = \"late\"\nsystems = [\"zeromq-direct\"]\n[[workload]]\nname = \"w\"\n[[workload.flow]]\n\
         subscribers = 3\nrate = \"10/s\"\npayload = \"64B\"\nlate = { subscribers = 1, after = \"1s\" }\n",
    );
    let said = place.run(&["plan", "late.toml"]);
    let words = said.out + &said.err;
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("when a subscription has its effect"),
        "{words}"
    );
}
