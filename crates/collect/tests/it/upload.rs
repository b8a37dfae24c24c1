//! Finished files that are moved to object storage.

use std::collections::BTreeSet;
use std::path::Path;

use pubgauge_collect::verify::{self, Verified};
use pubgauge_collect::{Config, Notice};
use pubgauge_driver::Reliability;
use pubgauge_testing::object_store::{Answer, KEY, ObjectStore};

use crate::common::*;

const TO: &str = "s3://fleet/raw";

/// A collect file whose files are moved to a store.
fn moved(data: &Path, broker: &Broker, store: &ObjectStore) -> Config {
    let upload = store.upload(TO, &data.with_extension("env"));
    let rest = format!("topics = [\"t/#\"]\nname = \"c\"\nstop-within = \"60s\"\n{upload}");
    config(data, &[broker.url()], &rest)
}

fn verified(data: &Path, fetch: bool) -> Verified {
    verify::verify_with(data, look(data, fetch), &mut |_| {}).unwrap()
}

/// A data folder whose only file is in the store, and the numbers in it.
fn one_file(data: &Path, store: &ObjectStore) -> BTreeSet<u64> {
    let broker = Broker::start();
    let collecting = Collecting::begin(moved(data, &broker, store));
    collecting.connected(1);
    let sent = Publisher::on(&broker, Reliability::AtLeastOnce).publish("t/a", 500, 200);
    collecting.stored(500);
    let summary = collecting.end();
    assert!(summary.complete && summary.not_uploaded == 0, "{summary:?}");
    sent
}

fn is_moved(notice: &Notice) -> bool {
    matches!(notice, Notice::Uploaded { .. })
}

fn is_kept(notice: &Notice) -> bool {
    matches!(notice, Notice::NotUploaded { .. })
}

#[test]
fn finished_files_are_moved_and_found_where_they_are() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let store = ObjectStore::start();
    let sent = one_file(&data, &store);
    let objects = store.objects();
    let numbers = numbers_there(&objects);
    assert_eq!(numbers.keys().copied().collect::<BTreeSet<_>>(), sent);
    assert_eq!((objects.len(), store.put_count()), (1, 1));
    let path = objects.keys().next().unwrap();
    assert!(
        path.starts_with("fleet/raw/date=")
            && path.contains("/c.")
            && path.ends_with("-0000000000000001-0000000000000500.parquet"),
        "{path}"
    );
    let left: Vec<_> = std::fs::read_dir(&data)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(
        left,
        ["collectors"],
        "nothing but the collector's own is left here"
    );
    let told = verified(&data, false);
    assert_eq!((&told.faults[..], &told.not_seen[..]), (&[][..], &[][..]));
    assert_eq!(
        (told.files, told.files_elsewhere, told.messages_elsewhere),
        (0, 1, 500)
    );
    let read = verified(&data, true);
    assert_eq!(read.faults, []);
    assert_eq!(
        (read.files, read.files_elsewhere, read.messages, read.by_qos),
        (1, 0, 500, [0, 500, 0])
    );
}

#[test]
fn while_the_store_does_not_answer_files_stay_and_collecting_goes_on() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let broker = Broker::start();
    let store = ObjectStore::start();
    let config = moved(&data, &broker, &store);
    let address = store.address.to_string();
    drop(store);
    let collecting = Collecting::begin(config.clone());
    collecting.connected(1);
    let mut publisher = Publisher::on(&broker, Reliability::AtLeastOnce);
    let mut sent = publisher.publish("t/a", 500, 200);
    collecting.stored(500);
    let summary = collecting.end();
    assert!(summary.complete && summary.not_uploaded == 1, "{summary:?}");
    assert_eq!(finished(&data).len(), 1);
    all_is_well(&data);
    // It begins with what is left, and collects meanwhile.
    let collecting = Collecting::begin(config);
    collecting.told("the file is kept", is_kept);
    sent.extend(publisher.publish("t/a", 300, 200));
    collecting.stored(300);
    assert_eq!(collecting.status.ill(), None);
    assert_eq!(collecting.status.waiting_files.get(), 1);
    let store = ObjectStore::start_at(&address, Default::default());
    collecting.told("the file is moved", is_moved);
    let waits: Vec<u64> = collecting
        .notices()
        .iter()
        .filter_map(|notice| match notice {
            Notice::NotUploaded { again_in_ms, .. } => *again_in_ms,
            _ => None,
        })
        .collect();
    assert!(
        waits.windows(2).all(|two| two[1] == 2 * two[0]),
        "{waits:?}"
    );
    assert_eq!(collecting.end().not_uploaded, 0);
    assert_eq!(
        numbers_there(&store.objects())
            .into_keys()
            .collect::<BTreeSet<_>>(),
        sent
    );
    assert_eq!(verified(&data, true).faults, []);
}

#[test]
fn a_kill_on_either_side_of_the_confirmation_leaves_one_whole_file() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let store = ObjectStore::start();
    one_file(&data, &store);
    let list = data.join("collectors/c/files.ndjson");
    let listed = std::fs::read_to_string(&list).unwrap();
    let (there, bytes) = store.objects().into_iter().next().unwrap();
    let here = data.join(there.strip_prefix("fleet/raw/").unwrap());
    let broker = Broker::start();
    // Killed in between: it is in the store and listed so, and not removed here.
    std::fs::create_dir_all(here.parent().unwrap()).unwrap();
    std::fs::write(&here, &bytes).unwrap();
    Collecting::begin(moved(&data, &broker, &store)).end();
    assert!(!here.exists());
    assert_eq!(
        (store.put_count(), std::fs::read_to_string(&list).unwrap()),
        (1, listed.clone())
    );
    // Killed before: it is in the store, and not listed so. It is there as it is here.
    std::fs::create_dir_all(here.parent().unwrap()).unwrap();
    std::fs::write(&here, &bytes).unwrap();
    let (before, _uploaded) = listed.trim_end().rsplit_once('\n').unwrap();
    std::fs::write(&list, format!("{before}\n")).unwrap();
    let collecting = Collecting::begin(moved(&data, &broker, &store));
    collecting.told("it is moved", is_moved);
    collecting.end();
    assert!(!here.exists());
    assert_eq!((store.put_count(), store.objects().len()), (1, 1));
    assert_eq!(std::fs::read_to_string(&list).unwrap(), listed);
    let found = verified(&data, true);
    assert_eq!((&found.faults[..], found.messages), (&[][..], 500));
}

#[test]
fn lives_of_one_name_with_fresh_folders_keep_all_that_was_acknowledged() {
    let place = tempfile::tempdir().unwrap();
    let store = ObjectStore::start();
    let broker = Broker::start();
    let mut publisher = Publisher::on(&broker, Reliability::AtLeastOnce);
    let mut sent = BTreeSet::new();
    for life in 0..10 {
        let data = place.path().join(format!("data-{life}"));
        let collecting = Collecting::begin(moved(&data, &broker, &store));
        collecting.connected(1);
        sent.extend(publisher.publish("t/a", 100, 50));
        collecting.stored(100);
        let summary = collecting.end();
        assert_eq!((summary.acknowledged, summary.conflicts), (100, 0));
        assert_eq!(verified(&data, true).faults, []);
    }
    let there = numbers_there(&store.objects());
    assert_eq!(there.into_keys().collect::<BTreeSet<_>>(), sent);
    assert_eq!(sent.len(), 1000);
}

/// A folder of a version without marks, whose only file has the name of an object that is there.
fn conflicting(data: &Path, store: &ObjectStore) -> (String, BTreeSet<u64>) {
    let own = data.join("collectors/c");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("files.ndjson"), "").unwrap();
    let broker = Broker::start();
    store.answer(Answer::Refuses);
    let collecting = Collecting::begin(moved(data, &broker, store));
    collecting.connected(1);
    let sent = Publisher::on(&broker, Reliability::AtLeastOnce).publish("t/a", 20, 50);
    collecting.stored(20);
    assert_eq!(collecting.end().not_uploaded, 1);
    store.answer(Answer::Works);
    let path = finished(data)[0].strip_prefix(data).unwrap().to_owned();
    assert!(
        path.ends_with("c-0000000000000001-0000000000000020.parquet"),
        "{path:?}"
    );
    (format!("fleet/raw/{}", path.display()), sent)
}

#[test]
fn another_object_of_a_files_name_is_told_and_never_replaced() {
    for answer in [Answer::Works, Answer::TakesNoConditions] {
        let place = tempfile::tempdir().unwrap();
        let data = place.path().join("data");
        let store = ObjectStore::start();
        let (path, sent) = conflicting(&data, &store);
        store.change(|objects| drop(objects.insert(path.clone(), b"theirs".to_vec())));
        store.answer(answer);
        let broker = Broker::start();
        let collecting = Collecting::begin(moved(&data, &broker, &store));
        let told = collecting.told("the conflict", |notice| {
            matches!(notice, Notice::Conflict { .. })
        });
        assert!(told.to_string().contains("is not replaced"), "{told}");
        // Others go on.
        collecting.connected(1);
        Publisher::on(&broker, Reliability::AtLeastOnce).publish("t/b", 10, 50);
        collecting.stored(10);
        let ill = collecting.status.ill();
        assert!(ill.is_some_and(|why| why.contains("other objects")));
        let summary = collecting.end();
        assert_eq!((summary.conflicts, summary.not_uploaded), (1, 1));
        let objects = store.objects();
        assert_eq!(objects[&path], b"theirs");
        assert_eq!(objects.len(), 2);
        let kept = numbers(&data).into_keys().collect::<BTreeSet<_>>();
        assert_eq!(kept, sent);
        // Once it is out of the way, the next start goes on with it.
        store.change(|objects| drop(objects.remove(&path)));
        let collecting = Collecting::begin(moved(&data, &broker, &store));
        collecting.told("it is moved", is_moved);
        assert_eq!(collecting.end().not_uploaded, 0);
    }
}

#[test]
fn what_the_store_does_not_have_as_it_was_put_is_not_removed_here() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let broker = Broker::start();
    let store = ObjectStore::start();
    store.answer(Answer::Halves);
    let collecting = Collecting::begin(moved(&data, &broker, &store));
    collecting.connected(1);
    Publisher::on(&broker, Reliability::AtLeastOnce).publish("t/a", 500, 200);
    collecting.stored(500);
    let summary = collecting.end();
    assert_eq!((summary.not_uploaded, finished(&data).len()), (1, 1));
    // A file that is damaged here is not put at all.
    store.answer(Answer::Works);
    let puts = store.put_count();
    let path = &finished(&data)[0];
    let mut bytes = std::fs::read(path).unwrap();
    bytes[100] ^= 1;
    std::fs::write(path, bytes).unwrap();
    let collecting = Collecting::begin(moved(&data, &broker, &store));
    collecting.told("it is damaged", |notice| {
        matches!(notice, Notice::DamagedFile { .. })
    });
    collecting.end();
    assert_eq!((store.put_count(), path.exists()), (puts, true));
    let found = verified(&data, false);
    assert!(
        found.faults.len() == 1 && found.faults[0].what.contains("checksum"),
        "{found:?}"
    );
}

#[test]
fn what_happened_to_a_file_in_the_store_is_found() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let store = ObjectStore::start();
    one_file(&data, &store);
    let (path, whole) = store.objects().into_iter().next().unwrap();
    let plant = |bytes: Option<Vec<u8>>| {
        store.change(|objects| {
            objects.remove(&path);
            objects.extend(bytes.map(|bytes| (path.clone(), bytes)));
        });
        verified(&data, false).faults
    };
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    for (planted, words) in [
        (None, "is missing in s3://fleet/raw"),
        (Some(whole[..whole.len() - 1].to_vec()), "bytes instead of"),
        (Some(flipped(0)), "was written again"),
        (Some(flipped(whole.len() / 2)), "was written again"),
    ] {
        let faults = plant(planted);
        assert!(
            faults.len() == 1 && faults[0].what.contains(words),
            "{words}: {faults:?}"
        );
    }
    assert_eq!(plant(Some(whole)), []);
}

#[test]
fn a_store_that_does_not_answer_is_no_fault_of_the_files_and_no_secret_is_told() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let broker = Broker::start();
    let store = ObjectStore::start();
    one_file(&data, &store);
    // It repeats what it was sent, the key among that.
    store.answer(Answer::Refuses);
    let found = verified(&data, false);
    assert_eq!(found.faults, []);
    assert!(
        found.not_seen.len() == 1 && found.not_seen[0].files == 1,
        "{found:?}"
    );
    let collecting = Collecting::begin(moved(&data, &broker, &store));
    collecting.connected(1);
    Publisher::on(&broker, Reliability::AtLeastOnce).publish("t/a", 10, 50);
    collecting.stored(10);
    assert_eq!(collecting.end().not_uploaded, 1);
    let collecting = Collecting::begin(moved(&data, &broker, &store));
    let kept = collecting.told("the file is kept", is_kept);
    assert!(collecting.status.failed_uploads.get() > 0);
    collecting.end();
    for told in [kept.to_string(), found.not_seen[0].why.clone()] {
        assert!(told.contains("s3://fleet/raw/date="), "{told}");
        assert!(!told.contains(KEY.0) && !told.contains(KEY.1), "{told}");
    }
}

/// Tests that need a package of PyPI: moto, which speaks S3 as others read its documentation.
mod long {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::process::{Child, Command};

    struct Moto(Child);

    impl Drop for Moto {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_server_of_others_takes_files_and_gives_them_back() {
        let unused = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = unused.local_addr().unwrap().to_string();
        drop(unused);
        let port = address.rsplit(':').next().unwrap();
        let mut moto = Command::new("moto_server");
        let moto = moto.args(["-H", "127.0.0.1", "-p", port]).spawn();
        let _moto = Moto(moto.expect("this test needs moto (pip install 'moto[server]')"));
        let mut answer = String::new();
        until("a bucket", || {
            let Ok(mut stream) = TcpStream::connect(&address) else {
                return false;
            };
            let head = format!(
                "PUT /fleet HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).unwrap();
            stream.read_to_string(&mut answer).is_ok()
        });
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let place = tempfile::tempdir().unwrap();
        let data = place.path().join("data");
        let broker = Broker::start();
        std::fs::write(
            data.with_extension("env"),
            "AWS_ACCESS_KEY_ID=a\nAWS_SECRET_ACCESS_KEY=b\n",
        )
        .unwrap();
        let credentials = data.with_extension("env");
        let rest = format!(
            "topics = [\"t/#\"]\nname = \"c\"\nstop-within = \"60s\"\n[upload]\nto = {TO:?}\nendpoint = \"http://{address}\"\nregion = \"us-east-1\"\ncredentials-file = {credentials:?}\n"
        );
        let collecting = Collecting::begin(config(&data, &[broker.url()], &rest));
        collecting.connected(1);
        Publisher::on(&broker, Reliability::AtLeastOnce).publish("t/a", 500, 200);
        collecting.stored(500);
        let summary = collecting.end();
        assert_eq!((summary.complete, summary.not_uploaded), (true, 0));
        assert_eq!(finished(&data).len(), 0);
        let told = verified(&data, false);
        assert_eq!(
            (
                &told.faults[..],
                &told.not_seen[..],
                told.messages_elsewhere
            ),
            (&[][..], &[][..], 500)
        );
        let read = verified(&data, true);
        assert_eq!((&read.faults[..], read.messages), (&[][..], 500));
    }
}
