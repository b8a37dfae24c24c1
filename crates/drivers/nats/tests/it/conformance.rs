//! The seam's conformance suite on a private nats-server, shares of a queue group, sizes, and TLS after INFO.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use pubgauge_driver::{Batching, Refusal, Secret, Settings, Subscription, Target, Tls};
use pubgauge_driver_nats::NatsDriver;
use pubgauge_testing::certificates::SelfSigned;
use pubgauge_testing::{Rig, Server, conforms_with_kill, system};

/// A private server with these lines added to its configuration.
fn start(lines: &str) -> Server {
    let mut system = system("nats-core");
    system.files[0].content += lines;
    if !lines.is_empty() {
        system.ready.probe = None; // It knows neither password nor certificate.
    }
    Server::start(NatsDriver, &system, None)
}

fn rig(target: Target) -> Rig {
    Rig::open(&NatsDriver, target, Settings::default())
}

/// Why a client cannot connect.
fn failure(target: Target) -> String {
    let mut rig = rig(target);
    rig.fleet.connect(&Rig::spec("c")).unwrap();
    rig.until("failed", |s| !s.failed.is_empty());
    rig.seen.failed.remove(0).1
}

#[test]
fn core_nats_conforms_without_batching() {
    let mut server = start("");
    let target = server.target.clone();
    let settings = Settings {
        batching: Some(Batching::Off),
        ..Settings::default()
    };
    conforms_with_kill(&NatsDriver, &target, &settings, &[], &mut *server);
}

#[test]
fn members_of_a_queue_group_share() {
    let server = start("");
    let mut rig = rig(server.target.clone());
    let members = ["a", "b"].map(|name| rig.named(name));
    for member in members {
        rig.subscribe_shared(member, "work/+", Some("a group"));
    }
    let publisher = rig.named_publisher("p");
    let topic = rig.fleet.advertise(publisher, "work/1").unwrap();
    for n in 0..200 {
        rig.publish(publisher, topic, n, 64);
    }
    rig.until("all", |s| s.messages.len() == 200);
    let shares = members.map(|member| rig.sequences(member).len());
    assert!(shares.iter().all(|share| *share > 20), "{shares:?}");
    let mut all = members.map(|member| rig.sequences(member)).concat();
    all.sort_unstable();
    assert_eq!(all, (0..200).collect::<Vec<u64>>());
}

#[test]
fn large_messages_come_whole_and_larger_ones_are_refused() {
    let server = start("");
    let mut rig = rig(server.target.clone());
    let subscriber = rig.named("s");
    rig.subscribe(subscriber, "a/b.c");
    let publisher = rig.named_publisher("p");
    let topic = rig.fleet.advertise(publisher, "a/b.c").unwrap();
    for (n, len) in [(0, 3 << 20), (1, 100), (2, 300 << 10)] {
        rig.publish(publisher, topic, n, len);
    }
    rig.until("all", |s| s.messages.len() == 3);
    assert_eq!(rig.sequences(subscriber), [0, 1, 2]);
    assert_eq!(rig.seen.messages[0].topic, "a/b.c");
    let lengths: Vec<usize> = rig.seen.messages.iter().map(|m| m.payload.len()).collect();
    assert_eq!(lengths, [3 << 20, 100, 300 << 10]);
    let body = vec![0; 9 << 20];
    let payload = pubgauge_driver::Payload {
        head: &pubgauge_testing::head(3),
        body: &body,
    };
    let refused = rig.fleet.publish(publisher, topic, payload, 0);
    assert_eq!(
        refused,
        pubgauge_driver::Publish::Refused(Refusal::TooLarge)
    );
}

#[test]
fn logins_and_permissions_are_told_in_words() {
    let server = start(
        "authorization { users = [ { user: meter, password: right, permissions: { subscribe: \"open.>\" } } ] }\n",
    );
    let login = |user: &str, password: Option<&str>| Target {
        username: Some(user.to_owned()),
        password: password.map(Secret::new),
        ..server.target.clone()
    };
    let mut allowed = rig(login("meter", Some("right")));
    let client = allowed.named("c");
    let filters = ["closed/a", "open/a"];
    for filter in filters {
        let (filter, group) = (filter.to_owned(), None);
        let subscription = Subscription { filter, group };
        allowed.fleet.subscribe(client, &subscription).unwrap();
    }
    allowed.until("both", |s| s.subscribed.len() + s.refused.len() == 2);
    assert_eq!(allowed.seen.subscribed.len(), 1);
    let why = &allowed.seen.refused[0].1;
    assert!(
        why.contains("Permissions Violation") && why.contains("hint"),
        "{why}"
    );
    for (target, what) in [
        (login("meter", Some("wr0ng")), "the password is wrong"),
        (login("meter", None), "but no password"),
        (server.target.clone(), "no user name and no password"),
    ] {
        let why = failure(target);
        assert!(
            why.contains("Authorization Violation") && why.contains(what),
            "{why}"
        );
        assert!(!why.contains("wr0ng"), "no password in messages");
    }
}

#[test]
fn a_password_alone_is_a_token() {
    let server = start("authorization { token: secret }\n");
    let target = Target {
        password: Some(Secret::new("secret")),
        ..server.target.clone()
    };
    rig(target).named("c");
    assert!(failure(server.target.clone()).contains("Authorization Violation"));
}

#[test]
fn tls_begins_after_info() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = SelfSigned::EndEntity.make(folder.path());
    let server = start(&format!(
        "tls {{ cert_file: {certificate:?}, key_file: {key:?} }}\n"
    ));
    let secure = Target {
        endpoints: vec![server.target.endpoints[0].replace("nats://", "nats+tls://")],
        tls: Some(Tls {
            ca_file: Some(certificate),
            ..Tls::default()
        }),
        ..server.target.clone()
    };
    let mut encrypted = rig(secure.clone());
    let subscriber = encrypted.named("s");
    encrypted.subscribe(subscriber, "a");
    let publisher = encrypted.named_publisher("p");
    let topic = encrypted.fleet.advertise(publisher, "a").unwrap();
    for n in 0..100 {
        encrypted.publish(publisher, topic, n, 20_000);
    }
    encrypted.until("all", |s| s.messages.len() == 100);
    assert_eq!(
        encrypted.sequences(subscriber),
        (0..100).collect::<Vec<u64>>()
    );

    let why = failure(server.target.clone());
    assert!(
        why.contains("wants TLS") && why.contains("nats+tls://"),
        "{why}"
    );
    let untrusted = Target {
        tls: Some(Tls::default()),
        ..secure
    };
    assert!(failure(untrusted).contains("TLS failed"));
    let plain = start("");
    let endpoint = plain.target.endpoints[0].replace("nats://", "nats+tls://");
    let without = Target {
        endpoints: vec![endpoint],
        tls: Some(Tls {
            insecure: true,
            ..Tls::default()
        }),
        ..plain.target.clone()
    };
    assert!(failure(without).contains("has no TLS"));
}

#[test]
fn what_comes_between_info_and_tls_is_not_believed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = Target {
        endpoints: vec![format!("nats+tls://{}", listener.local_addr().unwrap())],
        tls: Some(Tls {
            insecure: true,
            ..Tls::default()
        }),
        ..Target::default()
    };
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let words = b"INFO {\"max_payload\":9,\"tls_required\":true}\r\nPONG\r\n";
        stream.write_all(words).unwrap();
        stream.read_to_end(&mut Vec::new())
    });
    assert!(failure(target).contains("data between INFO and TLS"));
    drop(server.join().unwrap());
}
