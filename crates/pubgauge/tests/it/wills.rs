//! Last wills over real servers: published for connections that were cut, and for no others.

use crate::common;

use common::*;
use serde_json::Value;

/// Meters that vanish, and sensors that leave in order, all with a will; two applications hear the wills of both.
fn study(system: &str, settings: &str, will: &str, offline: &str, measure: &str) -> String {
    // Core NATS and XMPP acknowledge nothing to subscribers.
    let reliability = match system {
        "nats" | "ejabberd" => "at-most-once",
        _ => "at-least-once",
    };
    let flow = |name: &str, leave: &str| {
        format!(
            "[[workload.flow]]\nname = \"{name}\"\npublishers = 5\nsubscribers = 1\npayload = \"64B\"\nrate = \"50/s\"\n\
             topic = \"{name}/{{m}}\"\ndimensions = {{ m = 5 }}\nsubscribe = \"{name}/#\"\n\
             [workload.flow.presence]\nof = \"publishers\"\nonline = \"700ms\"\noffline = \"{offline}\"\nleave = \"{leave}\"\n\
             will = {{ topic = \"state/{name}/{{n}}\"{will} }}\n"
        )
    };
    format!(
        "name = \"wills\"\nsystems = [\"{system}\"]\nphases = {{ warm-up = \"300ms\", measure = \"{measure}\", drain-quiet = \"8s\", drain-within = \"20s\" }}\n\
         settings = [{{ reliability = \"{reliability}\"{settings} }}]\n[[workload]]\nname = \"w\"\n{}{}\
         [[workload.flow]]\nname = \"watch\"\npublishers = 0\nsubscribers = 2\nsubscribe = \"state/#\"\n",
        flow("meters", "vanish"),
        flow("sensors", "disconnect"),
    )
}

/// Runs a study, and returns its figures of wills.
fn wills_of(place: &Place, study: String) -> Value {
    place.write("wills.toml", study);
    place.run(&["run", "wills.toml", "--out", "run"]);
    place.is_clean();
    let trial = place.trial("run");
    assert_ne!(verdict(&trial), "broken", "{}", reasons(&trial));
    assert_eq!(count(&trial["odd"], "foreign"), 0, "{}", reasons(&trial));
    trial["wills"].clone()
}

/// Each connection that was cut has its will at both applications, and no connection that ended in order has one.
#[track_caller]
fn come_for_cuts_alone(system: &str, will: &str) -> Place {
    let place = Place::new();
    let wills = wills_of(&place, study(system, "", will, "300ms..600ms", "3s"));
    // At the least twice each, unless the machine is busy.
    assert!(count(&wills, "cut") >= 5, "{wills}");
    assert!(count(&wills, "in_order") >= 5, "{wills}");
    let due = count(&wills, "due");
    assert_eq!(count(&wills, "published"), due, "{wills}");
    assert_eq!(
        due + count(&wills, "undecided"),
        count(&wills, "cut"),
        "{wills}"
    );
    assert_eq!(count(&wills, "deliveries_due"), 2 * due, "{wills}");
    assert_eq!(count(&wills, "deliveries"), 2 * due, "{wills}");
    for none in ["after_disconnect", "needless", "averted", "not_kept"] {
        assert_eq!(count(&wills, none), 0, "{none}: {wills}");
    }
    assert_eq!(count(&wills["time_ns"], "count"), 2 * due, "{wills}");
    place
}

#[test]
fn mosquitto_publishes_the_will_of_each_connection_that_is_cut() {
    let place = come_for_cuts_alone("mosquitto", ", payload = \"100B\", qos = 0");
    let told = place.run(&["report", "run"]).exits(0).out;
    let words = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("wills that were due for connections that were cut"),
        "{told}"
    );
    assert!(words.contains("none came for"), "{told}");
}

#[test]
fn nats_publishes_the_will_of_each_connection_that_is_cut() {
    come_for_cuts_alone("nats:mqtt", ", qos = 1");
}

#[test]
fn rabbitmq_publishes_the_will_of_each_connection_that_is_cut() {
    come_for_cuts_alone("rabbitmq:mqtt", ", retain = true");
}

/// Over MQTT 5 a will waits: it comes for who stays away, and not for who is back before.
#[test]
fn mosquitto_waits_for_the_delay_of_a_will() {
    let durable = ", session = \"durable\"";
    let place = Place::new();
    let waits = ", delay = \"1s\"";
    let wills = wills_of(&place, study("mosquitto", durable, waits, "5s", "4s"));
    assert_eq!(
        (count(&wills, "cut"), count(&wills, "due")),
        (5, 5),
        "{wills}"
    );
    assert_eq!(count(&wills, "published"), 5, "{wills}");
    // Its clock has seconds.
    let least = count(&wills["time_ns"], "min");
    assert!(least > 1_000_000, "{wills}");
    let place = Place::new();
    let waits = ", delay = \"10s\"";
    let wills = wills_of(&place, study("mosquitto", durable, waits, "500ms", "3s"));
    assert!(count(&wills, "cut") >= 5, "{wills}");
    assert_eq!(count(&wills, "averted"), count(&wills, "cut"), "{wills}");
    for none in ["due", "needless", "after_disconnect"] {
        assert_eq!(count(&wills, none), 0, "{none}: {wills}");
    }
}

#[test]
fn who_has_no_wills_says_so_in_the_plan() {
    let refused = |system: &str, settings: &str, will: &str, words: &str| {
        let place = Place::new();
        place.write("wills.toml", study(system, settings, will, "1s", "3s"));
        let said = place.run(&["plan", "wills.toml"]);
        let all = said.out + &said.err;
        let all = all.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(all.contains(words), "{system}: {all}");
    };
    for system in ["rabbitmq:amqp", "nats", "ejabberd"] {
        refused(system, "", "", "have no last will");
    }
    refused(
        "mosquitto",
        "",
        ", delay = \"5s\"",
        "a clean one ends with its connection",
    );
    let old = ", native.mqtt.version = \"3.1.1\"";
    refused("mosquitto", old, ", delay = \"5s\"", "needs MQTT 5");
    refused("mosquitto", "", "", "5 devices have a will");
}
