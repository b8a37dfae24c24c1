//! Passwords, TLS and client certificates on real mosquitto.

use crate::common;

use common::*;
use pubgauge_driver::*;
use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_testing::certificates::Authority;

#[test]
fn user_name_and_password_are_checked() {
    let broker = Mosquitto::with_password("right", "");
    for version in ["3.1.1", "5"] {
        let login = |user: Option<&str>, password: Option<&str>| Target {
            username: user.map(str::to_owned),
            password: password.map(Secret::new),
            ..target(broker.port)
        };
        let mut rig = open(login(Some("ann"), Some("right")), common::version(version));
        rig.named("c");
        // The user name may stand in the URL.
        let mut in_url = login(None, Some("right"));
        in_url.endpoints = vec![format!("mqtt://ann@127.0.0.1:{}", broker.port)];
        open(in_url, common::version(version)).named("c");
        for (wrong, what) in [
            (
                login(Some("ann"), Some("wr0ng")),
                "the user name or the password is wrong",
            ),
            (
                login(Some("ann"), None),
                "a user name was given, but no password",
            ),
            (login(None, None), "no user name and no password were given"),
        ] {
            let why = Rig::failure(&MqttDriver, wrong, common::version(version));
            assert!(why.contains("not authorized"), "{why}");
            assert!(
                why.contains(what) && why.contains("PUBGAUGE_PASSWORD"),
                "{why}"
            );
            assert!(!why.contains("wr0ng"), "no password in messages");
        }
    }
}

#[test]
fn tls_with_client_certificates() {
    let authority = Authority::new();
    let full = authority.both_sides("meter");
    let dir = authority.dir().display();
    let broker = Mosquitto::start_with(&format!(
        "allow_anonymous true\ncafile {dir}/ca.pem\ncertfile {dir}/server.pem\nkeyfile {dir}/server.key\nrequire_certificate true"
    ));
    let secure = |tls: Tls, host: &str| Target {
        tls: Some(tls),
        ..Target::single(format!("mqtts://{host}:{}", broker.port))
    };
    let ca = Tls {
        ca_file: full.ca_file.clone(),
        ..Tls::default()
    };
    for (version, host) in [("3.1.1", "127.0.0.1"), ("5", "localhost")] {
        let settings = reliable(version, Reliability::AtLeastOnce);
        let mut rig = open(secure(full.clone(), host), settings);
        let s = rig.named("s");
        rig.subscribe(s, "secret");
        let p = rig.named("p");
        let topic = rig.fleet.advertise(p, "secret").unwrap();
        // Small ones in numbers, and one larger than every buffer on the way.
        for n in 0..500 {
            rig.publish(p, topic, n, 16 + n as usize);
        }
        rig.publish(p, topic, 500, 2 << 20);
        rig.until("all delivered", |s| s.delivered == 501);
        assert!(rig.sequences(s).into_iter().eq(0..501));
        assert_eq!(rig.seen.messages[500].payload.len(), 2 << 20);
        assert!(rig.fleet.wire_bytes().sent > 2 << 20);
        rig.disconnect(p);
        rig.fleet.close(clock::monotonic_now() + SECOND);
    }
    // No client certificate; no trust; not TLS at all: told apart, and none of them hangs.
    let failure = |target| Rig::failure(&MqttDriver, target, Settings::default());
    let why = failure(secure(ca.clone(), "127.0.0.1"));
    assert!(why.contains("certificate"), "{why}");
    let other = Authority::new();
    let foreign = Tls {
        ca_file: Some(other.file("ca.pem")),
        ..full.clone()
    };
    let why = failure(secure(foreign, "127.0.0.1"));
    assert!(
        why.contains("has issued the server's certificate") && why.contains("hint: --ca FILE"),
        "{why}"
    );
    let wrong_name = Tls {
        server_name: Some("elsewhere.test".into()),
        ..full
    };
    let why = failure(secure(wrong_name, "127.0.0.1"));
    assert!(
        why.contains("not for elsewhere.test, but for 127.0.0.1, localhost"),
        "{why}"
    );
    // Spoken to in plain text.
    let why = failure(target(broker.port));
    assert!(
        why.contains("With TLS the address begins with mqtts://"),
        "{why}"
    );
}

#[test]
fn a_port_without_tls_is_told() {
    let broker = Mosquitto::start();
    let insecure = Tls {
        insecure: true,
        ..Tls::default()
    };
    let target = Target {
        tls: Some(insecure),
        ..Target::single(format!("mqtts://localhost:{}", broker.port))
    };
    let why = Rig::failure(&MqttDriver, target, Settings::default());
    assert!(why.contains("during the TLS handshake"), "{why}");
    assert!(
        why.contains("Without TLS the address begins with mqtt://"),
        "{why}"
    );
}

#[test]
fn certificates_that_cannot_be_read_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let junk = folder.path().join("junk.pem");
    std::fs::write(&junk, "not a certificate").unwrap();
    for tls in [
        Tls {
            ca_file: Some("/nowhere/ca.pem".into()),
            ..Tls::default()
        },
        Tls {
            ca_file: Some(junk.clone()),
            ..Tls::default()
        },
        Tls {
            cert_file: Some(junk),
            ..Tls::default()
        },
    ] {
        let target = Target {
            tls: Some(tls),
            ..Target::single("mqtts://127.0.0.1:1")
        };
        let opened = MqttDriver.open(config(target, Settings::default()));
        let error = opened.err().expect("it cannot be opened");
        assert!(error.hint.is_some(), "{error}");
    }
}
