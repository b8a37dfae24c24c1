//! `pubgauge-collect leave` and `--leave`, as they are typed.

use std::time::Duration;

use super::*;

#[test]
fn a_session_is_given_up_at_the_end_or_later() {
    let mut broker = Mosquitto::start();
    let place = new_place();
    let config = format!(
        "brokers = [{:?}]\ntopics = [\"m/#\"]\ngroup = \"g\"\nto = \"data\"\nname = \"c\"\n",
        url(&broker)
    );
    place.write("collect.toml", config);
    let collect = ["--config", "collect.toml"];
    let mut collector = place.start(&collect);
    collector.until_said("connected, with a new session");
    let leave = ["leave", "--config", "collect.toml"];
    let runs = place.run(&leave).exits(3);
    assert!(runs.err.contains("runs already"), "{runs:?}");
    collector.signal(libc::SIGTERM);
    collector.ends_within(Duration::from_secs(60)).exits(0);
    publish(&broker, "m/1", 30);
    let done = place.run(&leave).exits(0);
    assert!(
        done.out.starts_with("30 messages stored, 30 of"),
        "{done:?}"
    );
    assert!(done.err.contains("the broker has dropped it"), "{done:?}");
    // Nobody is subscribed any more.
    publish(&broker, "m/1", 30);
    let mut collector = place.start(&[&collect[..], &["--leave"]].concat());
    collector.until_said("connected, with a new session");
    publish(&broker, "m/1", 7);
    collector.signal(libc::SIGTERM);
    let done = collector.ends_within(Duration::from_secs(60)).exits(0);
    assert!(done.out.starts_with("7 messages stored"), "{done:?}");
    assert!(done.err.contains("the broker has dropped it"), "{done:?}");
    // Where the broker is away, that is told.
    let known = place.path_to("data/collectors/c/sessions.json");
    let known = std::fs::read_to_string(known).unwrap();
    assert!(known.contains("\"brokers\": {}"), "{known}");
    broker.kill();
    let done = place.run(&[&leave[..], &["--for", "1s"]].concat()).exits(2);
    let says = "the session is not given up at 1 broker";
    assert!(done.out.contains(says), "{done:?}");
    place.run(&["verify", "data"]).exits(0);
}
