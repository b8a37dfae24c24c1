//! `pubgauge-collect` with object storage, as it is typed.

use std::time::Duration;

use pubgauge_testing::object_store::{Answer, KEY, ObjectStore};
use pubgauge_testing::stranger::StrangersPort;

use super::*;

#[test]
fn files_are_moved_and_verified_with_an_exit_code_for_each_outcome() {
    let (place, broker, store) = (new_place(), Mosquitto::start(), ObjectStore::start());
    let port = broker.port.to_string();
    let upload = store.upload("s3://fleet/raw", &place.path_to("s3.env"));
    let file = format!(
        "brokers = [\"mqtt://127.0.0.1:{port}\"]\ntopics = [\"m/#\"]\nto = \"data\"\nname = \"c\"\n{upload}"
    );
    place.write("collect.toml", file);
    let mut collector = place.start(&["--config", "collect.toml", "--messages", "20"]);
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
    let verify = ["verify", "data", "--config", "collect.toml"];
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
        .run(&["verify", "data", "--credentials-file", "wrong.env"])
        .exits(3);
    assert!(wrong.err.contains("line 1 of wrong.env"), "{wrong:?}");
}

/// A data folder whose list says that a file is in a store, as anybody can write one.
fn list_of_a_stranger(place: &Place, upload: &str) {
    let file = "date=2026-11-26/hour=07/c-0000000000000001-0000000000000002.parquet";
    std::fs::create_dir_all(place.path_to("data/collectors/c/log")).unwrap();
    place.write("data/collectors/c/log/0000000000000003.log", "");
    place.write(
        "data/collectors/c/files.ndjson",
        format!(
            "{{\"file\":{{\"path\":\"{file}\",\"bytes\":9,\"crc32\":1,\"first\":1,\"last\":2,\"messages\":2}}}}\n\
             {{\"uploaded\":{{\"path\":\"{file}\",\"to\":{upload},\"e_tag\":null}}}}\n"
        ),
    );
}

/// A store's address, its kind, and the variables that open it.
type Store = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

#[test]
fn credentials_go_to_no_store_that_a_strangers_list_names() {
    let stranger = StrangersPort::start();
    let endpoint = format!("http://{}", stranger.address);
    let all: [Store; 3] = [
        (
            "s3://fleet/raw",
            "AWS",
            &[
                ("AWS_ACCESS_KEY_ID", "key-of-the-user"),
                ("AWS_SECRET_ACCESS_KEY", "secret-of-the-user"),
                ("AWS_SESSION_TOKEN", "token-of-the-user"),
            ],
        ),
        ("gs://fleet/raw", "GOOGLE", &[]),
        (
            "az://fleet/raw",
            "AZURE",
            &[
                ("AZURE_STORAGE_ACCOUNT_NAME", "user"),
                ("AZURE_STORAGE_TOKEN", "bearer-of-the-user"),
            ],
        ),
    ];
    for (url, kind, variables) in all {
        let place = new_place();
        list_of_a_stranger(
            &place,
            &format!(r#"{{"url":"{url}","endpoint":"{endpoint}"}}"#),
        );
        for more in [
            &[][..],
            &["--fetch"],
            &["--upload-to", "s3://mine/raw"],
            &["--upload-to", url],
        ] {
            let args = [&["verify", "data"][..], more].concat();
            let mut command = place.command(&args);
            command.envs(variables.iter().copied());
            let done = place.finish(command).exits(2);
            let hint = format!("--upload-to '{url}' --upload-endpoint '{endpoint}'");
            let hint = hint.replace("'", "");
            assert!(
                done.out.replace("'", "").contains(&hint),
                "{kind}: {done:?}"
            );
        }
        assert_eq!(stranger.received_text(), "", "{kind}");
    }
}
