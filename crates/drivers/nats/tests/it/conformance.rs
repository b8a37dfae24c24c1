//! The seam's conformance suite on a private nats-server, what is refused, and TLS after INFO.

use std::io::{Read, Write};

use pubgauge_driver::{Batching, Publish, Refusal, Secret, Settings, Subscription, Target, Tls};
use pubgauge_driver_nats::NatsDriver;
use pubgauge_testing::certificates::SelfSigned;
use pubgauge_testing::{Rig, Server, conforms_with_kill, scripted, system};

/// A private server with these lines added to its configuration.
fn start(lines: &str) -> Server {
    let mut system = system("nats");
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
    Rig::failure(&NatsDriver, target, Settings::default())
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
fn a_message_above_the_servers_limit_is_refused() {
    let server = start("");
    let mut rig = rig(server.target.clone());
    let publisher = rig.named_publisher("p");
    let topic = rig.fleet.advertise(publisher, "a").unwrap();
    let refused = rig.try_publish(publisher, topic, 0, 9 << 20);
    assert_eq!(refused, Publish::Refused(Refusal::TooLarge));
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
    for filter in ["closed/a", "open/a"] {
        let subscription = Subscription::matching(filter);
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
    let (certificate, key) = SelfSigned::EndEntity.write(folder.path());
    let server = start(&format!(
        "tls {{ cert_file: {certificate:?}, key_file: {key:?} }}\n"
    ));
    let endpoint = |of: &Server| of.target.endpoints[0].replace("nats://", "nats+tls://");
    let secure = Target {
        tls: Some(Tls {
            ca_file: Some(certificate),
            ..Tls::default()
        }),
        ..Target::single(endpoint(&server))
    };
    let mut encrypted = rig(secure.clone());
    let subscriber = encrypted.named("s");
    encrypted.subscribe(subscriber, "a/b.c");
    let publisher = encrypted.named_publisher("p");
    let topic = encrypted.fleet.advertise(publisher, "a/b.c").unwrap();
    for n in 0..100 {
        encrypted.publish(publisher, topic, n, 20_000);
    }
    encrypted.until("all", |s| s.messages.len() == 100);
    assert_eq!(encrypted.seen.messages[0].topic, "a/b.c");
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
    let without = Target {
        tls: Some(Tls {
            insecure: true,
            ..Tls::default()
        }),
        ..Target::single(endpoint(&plain))
    };
    assert!(failure(without).contains("has no TLS"));
}

#[test]
fn what_comes_between_info_and_tls_is_not_believed() {
    let (port, server) = scripted(|listener| {
        let (mut stream, _) = listener.accept().unwrap();
        let words = b"INFO {\"max_payload\":9,\"tls_required\":true}\r\nPONG\r\n";
        stream.write_all(words).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let target = Target {
        tls: Some(Tls {
            insecure: true,
            ..Tls::default()
        }),
        ..Target::single(format!("nats+tls://127.0.0.1:{port}"))
    };
    assert!(failure(target).contains("data between INFO and TLS"));
    server.join().unwrap();
}
