//! STARTTLS and TLS from the first byte, on a real ejabberd with certificates of our own.

use crate::common;

use std::path::Path;

use common::{Ejabberd, text};
use pubgauge_driver::{Driver, Secret, Settings, Target, Tls, monotonic_now};
use pubgauge_driver_xmpp::XmppDriver;
use pubgauge_testing::certificates::Authority;
use pubgauge_testing::{Rig, SECOND, config};

/// An authority, and a certificate for the XMPP domain (not for the address) with its key: `server.pem`.
fn authority() -> Authority {
    let authority = Authority::new();
    // ejabberd sets a timer for the end of a certificate, and falls over one that is too far away.
    let (pem, key) = authority.sign("server", &["localhost"], |params| {
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2080, 1, 1);
    });
    let both = [&pem, &key].map(|file| std::fs::read_to_string(file).unwrap());
    std::fs::write(&pem, both.concat()).unwrap();
    authority
}

/// A server that wants TLS: by STARTTLS (`required`), or from the first byte.
fn server(dir: &Path, options: &str) -> Ejabberd {
    let path = dir.join("server.pem");
    Ejabberd::start_with("xmpp", |text| {
        text.replace(
            "    shaper: none\n",
            &format!("    shaper: none\n    {options}\n"),
        )
        .replace(
            "listen:\n",
            &format!("certfiles:\n  - {}\nlisten:\n", path.display()),
        )
    })
}

fn target(server: &Ejabberd, scheme: &str, dir: &Path) -> Target {
    let mut target = server.target();
    target.endpoints[0] = target.endpoints[0].replace("xmpp", scheme);
    target.tls = Some(Tls {
        ca_file: Some(dir.join("ca.pem")),
        ..Tls::default()
    });
    target
}

/// Messages of many sizes, the largest longer than every buffer on the way.
fn round_trip(target: Target) {
    let mut rig = Rig::open(&XmppDriver, target, Settings::default());
    let publisher = rig.named_publisher("p");
    let subscriber = rig.named_subscriber("s");
    rig.subscribe(subscriber, "t");
    let topic = rig.fleet.advertise(publisher, "t").unwrap();
    let bodies: Vec<Vec<u8>> = (0..200)
        .map(|n| vec![n as u8; n])
        .chain([vec![9; 1 << 20]])
        .collect();
    for (tag, body) in bodies.iter().enumerate() {
        rig.publish_body(publisher, topic, body, tag as u64);
    }
    rig.until("all", |seen| seen.delivered == bodies.len());
    for (message, body) in rig.seen.messages.iter().zip(&bodies) {
        assert_eq!(text(message), body);
    }
    rig.until("all answers", |seen| {
        seen.acknowledged.len() == bodies.len()
    });
    // In order, so that its clients' names are free again.
    rig.fleet.close(monotonic_now() + 5 * SECOND);
}

fn failure(target: Target) -> String {
    Rig::failure(&XmppDriver, target, Settings::default())
}

#[test]
fn starttls() {
    let authority = authority();
    let dir = authority.dir();
    let server = server(dir, "starttls_required: true");
    let secure = target(&server, "xmpp+starttls", dir);
    round_trip(secure.clone());
    // The certificate is for the domain, whatever the address; and it must be.
    let mut other = secure.clone();
    other.tls.as_mut().unwrap().server_name = Some("example.org".into());
    let why = failure(other);
    assert!(
        why.contains("TLS failed") && why.contains("XMPP domain"),
        "{why}"
    );
    // Without encryption there is no way in.
    let why = failure(target(&server, "xmpp", dir));
    assert!(why.contains("hint"), "{why}");
    // TLS at once is not what is spoken there.
    let why = failure(target(&server, "xmpps", dir));
    assert!(
        why.contains("Without TLS the address begins with xmpp://"),
        "{why}"
    );
    // Nothing checked.
    let mut insecure = secure.clone();
    insecure.tls = Some(Tls {
        insecure: true,
        server_name: Some("example.org".into()),
        ..Tls::default()
    });
    round_trip(insecure);
    // Nobody's account, no password, the wrong one.
    let given = |user: Option<&str>, password: Option<&str>| Target {
        username: user.map(str::to_owned),
        password: password.map(Secret::new),
        ..secure.clone()
    };
    for (target, what) in [
        (given(None, None), "no account was given"),
        (
            given(Some("nobody"), None),
            "a user name was given, but no password",
        ),
        (
            given(Some("nobody"), Some("wr0ng")),
            "the user name or the password is wrong",
        ),
    ] {
        let why = failure(target);
        assert!(
            why.contains(what) && why.contains("PUBGAUGE_PASSWORD"),
            "{why}"
        );
        assert!(!why.contains("wr0ng"), "{why}");
    }
}

#[test]
fn tls_from_the_first_byte() {
    let authority = authority();
    let dir = authority.dir();
    let server = server(dir, "tls: true");
    round_trip(target(&server, "xmpps", dir));
    let why = failure(target(&server, "xmpp", dir));
    assert!(
        why.contains("With TLS the address begins with xmpps://"),
        "{why}"
    );
}

#[test]
fn authorities_are_needed_and_read_before_anything_is_sent() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("ca.pem"), "nothing").unwrap();
    let target = Target {
        tls: Some(Tls {
            ca_file: Some(dir.path().join("ca.pem")),
            ..Tls::default()
        }),
        ..Target::single("xmpps://127.0.0.1:1/localhost")
    };
    let opened = XmppDriver.open(config(target, Settings::default()));
    let error = opened.err().unwrap().to_string();
    assert!(error.contains("no usable CA certificate"), "{error}");
}
