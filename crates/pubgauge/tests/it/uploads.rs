//! `pubgauge collect` with object storage, as it is typed.

use std::time::Duration;

use pubgauge_testing::object_store::{Answer, KEY, ObjectStore};

use crate::common::servers::Mosquitto;
use crate::common::*;

#[test]
fn files_are_moved_and_verified_with_an_exit_code_for_each_outcome() {
    let (place, broker, store) = (Place::new(), Mosquitto::start(), ObjectStore::start());
    let port = broker.port.to_string();
    let upload = store.upload("s3://fleet/raw", &place.at("s3.env"));
    let file = format!(
        "brokers = [\"mqtt://127.0.0.1:{port}\"]\ntopics = [\"m/#\"]\nto = \"data\"\nname = \"c\"\n{upload}"
    );
    place.write("collect.toml", file);
    let mut collector = place.start(&["collect", "--config", "collect.toml", "--messages", "20"]);
    collector.until_said("connected, with a new session");
    let mut publish = std::process::Command::new("mosquitto_pub");
    publish.args([
        "-p", &port, "-q", "1", "-t", "m/1", "-m", "100", "--repeat", "20",
    ]);
    let published = publish.status();
    let published =
        published.expect("these tests need mosquitto_pub (apt install mosquitto-clients)");
    assert!(published.success());
    let done = collector.ends_within(Duration::from_secs(60)).exits(0);
    assert!(
        done.err.contains(".parquet: moved to s3://fleet/raw"),
        "{done:?}"
    );
    let verify = ["collect", "verify", "data", "--credentials-file", "s3.env"];
    let told = place.run(&verify).exits(0);
    let words = "20 messages in 1 finished file elsewhere, by what the store tells of them\n";
    assert!(told.out.contains(words), "{told:?}");
    let read = place.run(&[&verify[..], &["--fetch"]].concat()).exits(0);
    assert!(
        read.out
            .starts_with("20 messages of 1 collector: 20 in 1 finished file"),
        "{read:?}"
    );
    // One that cannot be asked is no fault found.
    store.answer(Answer::Refuses);
    let unasked = place.run(&verify).exits(2);
    assert!(
        unasked
            .out
            .contains("not looked at: 1 finished file in s3://fleet/raw: "),
        "{unasked:?}"
    );
    assert!(
        !unasked.out.contains(KEY.0) && !unasked.out.contains(KEY.1),
        "{unasked:?}"
    );
    store.answer(Answer::Works);
    store.change(std::collections::BTreeMap::clear);
    let missing = place.run(&verify).exits(1);
    assert!(
        missing
            .out
            .contains(".parquet is missing in s3://fleet/raw\n"),
        "{missing:?}"
    );
    place.write("wrong.env", "secret\n");
    let wrong = place
        .run(&[
            "collect",
            "verify",
            "data",
            "--credentials-file",
            "wrong.env",
        ])
        .exits(3);
    assert!(wrong.err.contains("line 1 of wrong.env"), "{wrong:?}");
}
