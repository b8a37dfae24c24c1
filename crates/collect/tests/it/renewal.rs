//! Credentials of a store that expire, and are renewed while the collector works.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pubgauge_collect::Notice;
use pubgauge_driver::Reliability;
use pubgauge_testing::object_store::ObjectStore;

use crate::common::*;

/// Access keys, with the secret and the token that belong to each.
const KEYS: [(&str, &str, &str); 3] = [
    (
        "FIRST-KEY",
        "first-secret-of-the-store",
        "first-token-of-the-store",
    ),
    (
        "SECOND-KEY",
        "second-secret-of-the-store",
        "second-token-of-the-store",
    ),
    (
        "THIRD-KEY",
        "third-secret-of-the-store",
        "third-token-of-the-store",
    ),
];

/// A collector whose messages go to a store, and the file with its credentials.
struct Fleet {
    _place: tempfile::TempDir,
    credentials: PathBuf,
    store: ObjectStore,
    collecting: Collecting,
    publisher: Publisher,
    _broker: Broker,
    sent: BTreeSet<u64>,
}

impl Fleet {
    /// `lines` is what the file begins with. Without a folder, messages are acknowledged once they are in the store.
    fn start(has_folder: bool, lines: &str) -> Fleet {
        let place = tempfile::tempdir().unwrap();
        let (broker, store) = (Broker::start(), ObjectStore::start());
        store.take_keys(&[KEYS[0].0]);
        let data = place.path().join("data");
        let credentials = data.with_extension("env");
        let mut rest = store.upload("s3://fleet/raw", &credentials);
        std::fs::write(&credentials, lines).unwrap();
        rest.insert_str(0, "topics = [\"t/#\"]\nname = \"c\"\n");
        let config = if has_folder {
            rest += "[log]\nsegment-age = \"1s\"\n";
            config(&data, &[broker.url()], &rest)
        } else {
            rest += "acknowledge = \"uploaded\"\nevery = \"50ms\"\nrate = \"10/s\"\n";
            let text = text(&data, &[broker.url()], &rest);
            let to = format!("to = {data:?}\n");
            let file = data.with_extension("toml");
            std::fs::write(&file, text.replacen(&to, "", 1)).unwrap();
            pubgauge_collect::config::read(&file, &Default::default()).unwrap()
        };
        let collecting = Collecting::begin(config);
        collecting.connected(1);
        let publisher = Publisher::on(&broker, Reliability::AtLeastOnce);
        Fleet {
            _place: place,
            credentials,
            store,
            collecting,
            publisher,
            _broker: broker,
            sent: BTreeSet::new(),
        }
    }

    fn publish(&mut self, count: u64) {
        self.sent.extend(self.publisher.publish("t/a", count, 50));
    }

    /// Waits until everything that was published is in the store.
    #[track_caller]
    fn all_there(&self) {
        until("all messages are in the store", || {
            let there = numbers_there(&self.store.objects());
            let is_there = there.into_keys().collect::<BTreeSet<_>>() == self.sent;
            // It is looked at once more after it was put.
            is_there && self.collecting.status.waiting_files.get() == 0
        });
    }

    fn count(&self, is_it: impl Fn(&Notice) -> bool) -> usize {
        self.collecting
            .notices()
            .iter()
            .filter(|one| is_it(one))
            .count()
    }

    /// Ends it, and asserts that everything is there and no secret was told.
    fn end(self) {
        let told: Vec<String> = self
            .collecting
            .notices()
            .iter()
            .map(|one| format!("{one} {one:?}"))
            .collect();
        let summary = self.collecting.end();
        assert!(summary.complete && summary.not_uploaded == 0, "{summary:?}");
        let there = numbers_there(&self.store.objects());
        assert_eq!(there.into_keys().collect::<BTreeSet<_>>(), self.sent);
        let told = told.join("\n");
        for (_, secret, token) in KEYS {
            assert!(!told.contains(secret) && !told.contains(token), "{told}");
        }
    }
}

fn lines((key, secret, token): (&str, &str, &str)) -> String {
    format!("AWS_ACCESS_KEY_ID={key}\nAWS_SECRET_ACCESS_KEY={secret}\nAWS_SESSION_TOKEN={token}\n")
}

/// As tools that renew credentials do: whoever reads has the old one or the new one.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, path).unwrap();
}

fn is_refused(notice: &Notice) -> bool {
    let why = match notice {
        Notice::NotUploaded { why, .. } | Notice::Stalled { why } => why,
        _ => return false,
    };
    assert!(
        why.contains("ExpiredToken: The provided token has expired."),
        "{why}"
    );
    true
}

fn is_renewed(notice: &Notice) -> bool {
    matches!(notice, Notice::CredentialsRenewed { .. })
}

#[test]
fn a_file_that_changes_before_its_key_expires_is_used_at_once() {
    for has_folder in [true, false] {
        let mut fleet = Fleet::start(has_folder, &lines(KEYS[0]));
        fleet.publish(20);
        fleet.all_there();
        for (old, new) in [(KEYS[0], KEYS[1]), (KEYS[1], KEYS[2])] {
            fleet.store.take_keys(&[old.0, new.0]);
            replace(&fleet.credentials, &lines(new));
            fleet.store.take_keys(&[new.0]);
            fleet.publish(20);
            fleet.all_there();
        }
        assert_eq!((fleet.count(is_refused), fleet.count(is_renewed)), (0, 2));
        fleet.end();
    }
}

#[test]
fn a_key_that_has_expired_loses_nothing_and_its_successor_is_used() {
    for has_folder in [true, false] {
        let mut fleet = Fleet::start(has_folder, &lines(KEYS[0]));
        fleet.publish(20);
        fleet.all_there();
        fleet.store.take_keys(&[KEYS[1].0]);
        fleet.publish(20);
        fleet.collecting.told("it is refused", is_refused);
        replace(&fleet.credentials, &lines(KEYS[1]));
        fleet.all_there();
        assert_eq!(fleet.count(is_renewed), 1);
        fleet.end();
    }
}

#[test]
fn a_file_that_is_wrong_changes_nothing_and_is_told_once() {
    let mut fleet = Fleet::start(true, &lines(KEYS[0]));
    let key_alone = "AWS_ACCESS_KEY_ID=SECOND-KEY\n";
    let wrong = [
        ("", "has nothing in it now"),
        ("second-secret-of-the-store\n", "line 1 of "),
        (key_alone, "Missing"),
    ];
    for (nth, (text, words)) in wrong.into_iter().enumerate() {
        replace(&fleet.credentials, text);
        // Each is a file of its own.
        for _ in 0..2 {
            fleet.publish(10);
            fleet.all_there();
        }
        let is_kept = |notice: &Notice| match notice {
            Notice::CredentialsKept { why } => why.to_lowercase().contains(&words.to_lowercase()),
            _ => false,
        };
        fleet.collecting.told(words, is_kept);
        let kept = |notice: &Notice| matches!(notice, Notice::CredentialsKept { .. });
        assert_eq!(fleet.count(kept), nth + 1);
    }
    assert_eq!((fleet.count(is_renewed), fleet.count(is_refused)), (0, 0));
    replace(&fleet.credentials, &lines(KEYS[1]));
    fleet.store.take_keys(&[KEYS[1].0]);
    fleet.publish(10);
    fleet.all_there();
    assert_eq!(fleet.count(is_renewed), 1);
    fleet.end();
}

/// A server that gives credentials to the containers of a host, such as EKS Pod Identity: one JSON object for each request.
fn agent(credentials: &Arc<Mutex<(&'static str, &'static str, &'static str)>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let credentials = credentials.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut request = BufReader::new(&stream).lines();
            while request
                .next()
                .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
            {}
            let (key, secret, token) = *credentials.lock().unwrap();
            let body = format!(
                r#"{{"AccessKeyId":"{key}","SecretAccessKey":"{secret}","Token":"{token}","Expiration":"2099-01-01T00:00:00Z"}}"#
            );
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = (&stream).write_all((head + &body).as_bytes());
        }
    });
    format!("http://{address}/v1/credentials")
}

/// It says that they are good until 2099: only the store knows better.
#[test]
fn credentials_of_the_host_that_the_store_refuses_are_asked_for_anew() {
    for has_folder in [true, false] {
        let given = Arc::new(Mutex::new(KEYS[0]));
        let token = tempfile::NamedTempFile::new().unwrap();
        let lines = format!(
            "AWS_CONTAINER_CREDENTIALS_FULL_URI={}\nAWS_CONTAINER_AUTHORIZATION_TOKEN_FILE={}\n",
            agent(&given),
            token.path().display()
        );
        let mut fleet = Fleet::start(has_folder, &lines);
        fleet.publish(20);
        fleet.all_there();
        *given.lock().unwrap() = KEYS[1];
        fleet.store.take_keys(&[KEYS[1].0]);
        fleet.publish(20);
        fleet.all_there();
        assert_eq!((fleet.count(is_refused), fleet.count(is_renewed)), (1, 0));
        fleet.end();
    }
}
