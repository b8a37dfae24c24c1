//! SIGHUP has the collect file read again.

use super::*;

fn text(broker: &Mosquitto, topics: &str, rest: &str) -> String {
    let url = url(broker);
    format!("brokers = [{url:?}]\ntopics = [{topics}]\nto = \"data\"\n{rest}")
}

#[test]
fn sighup_has_the_file_read_again_and_a_wrong_one_changes_nothing() {
    let broker = Mosquitto::start();
    let place = new_place();
    let write = |topics: &str, rest: &str| {
        place.write("collect.toml", text(&broker, topics, rest));
    };
    write("\"m/#\"", "");
    let mut collector = place.start(&["--config", "collect.toml", "--name", "pod-0"]);
    collector.until_said("connected, with a new session");

    write("\"m#\"", "");
    collector.signal(libc::SIGHUP);
    collector.until_said("collect.toml:2:11: `m#` is no topic filter");
    write("\"n/#\"", "form = \"ndjson\"\n");
    collector.signal(libc::SIGHUP);
    collector.until_said("collect.toml:4:8: `form` cannot change while the collector works");
    let said = collector.said_so_far();
    assert_eq!(
        said.matches("the configuration stays as it was").count(),
        2,
        "{said}"
    );
    publish(&broker, "m/1", 10);

    write("\"m/#\", \"n/#\"", "[log]\ncommit-every = \"1ms\"\n");
    collector.signal(libc::SIGHUP);
    collector.until_said("goes on with the configuration as it was read again");
    // It was subscribed to in the same moment; the broker may not have taken it yet.
    let all = || {
        publish(&broker, "n/1", 1);
        place.files().iter().any(|path| {
            let log = path.extension().is_some_and(|extension| extension == "log");
            log && std::fs::read(path)
                .unwrap()
                .windows(3)
                .any(|bytes| bytes == b"n/1")
        })
    };
    collector.until("a message by the new filter", all);
    collector.signal(libc::SIGTERM);
    let done = collector.wait_for_end().exits(0);
    assert!(done.err.contains("ends in order"), "{done:?}");
    assert_eq!(done.err.matches("connected, with").count(), 1, "{done:?}");
    let found = place.run(&["verify", "data"]).exits(0);
    assert!(found.out.contains(" of 1 collector: 1"), "{found:?}");
    assert!(place.path_to("data/collectors/pod-0").is_dir());
}

/// Without a file there is nothing to read again.
#[test]
fn sighup_ends_a_collection_without_a_file() {
    let broker = Mosquitto::start();
    let place = new_place();
    let url = url(&broker);
    let flags = collector_flags(&url, "data");
    let mut collector = place.start(&flags);
    collector.until_said("connected, with a new session");
    collector.signal(libc::SIGHUP);
    collector.wait_for_end().exits(0);
}
