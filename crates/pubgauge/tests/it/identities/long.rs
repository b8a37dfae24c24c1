//! Servers that start slowly.

use pubgauge_driver::Drivers;
use pubgauge_testbed::SystemFile;
use pubgauge_testing::Server;
use pubgauge_testing::certificates::{CertificateParams, OtherNameValue, SanType, date_time_ymd};

use super::*;

const TOPIC: &str = "meters/meter-{device}";

/// Measures three devices and an application, each with its own user, on a system of this file.
fn measure(place: &Place, name: &str) {
    let secrets = tempfile::tempdir().unwrap();
    for who in ["meter-0", "meter-1", "meter-2", "board"] {
        std::fs::write(secrets.path().join(who), format!("{SECRET}-{who}")).unwrap();
    }
    let identities = |wrong: &str| {
        format!(
            r#"identities.publishers = {{ client-id = "dev-{{n}}", user = "meter-{{n}}", password-file = "{0}/{{user}}" }}
               identities.subscribers = {{ user = "board{wrong}", password-file = "{0}/board" }}"#,
            secrets.path().display()
        )
    };
    for (out, wrong) in [("own", ""), ("wrong", "er")] {
        let study = study(3, TOPIC, "meters/meter-0", "50/s-each", &identities(wrong));
        place.write(&format!("{out}.toml"), study);
        let file = format!("{out}.toml");
        let args = [
            "run",
            &file,
            "--systems",
            "mine",
            "--on",
            name,
            "--out",
            out,
        ];
        let done = place.run(&args);
        place.is_clean();
        assert!(!(done.out + &done.err).contains(SECRET));
    }
    for out in ["own", "wrong"] {
        assert!(!place.results(out).to_string().contains(SECRET));
    }
    adds_up(&place.trial("own"));
    is_broken(
        &place.trial("wrong"),
        &[
            "user boarder",
            "the user name or the password of this client is wrong",
        ],
    );
}

/// The users of the tests here, as RabbitMQ's `definitions.json` has them: a file of the system.
fn rabbitmq_users() -> String {
    // SHA-256 of a salt and the password "Xy7-hunt-USER", both behind the salt; guest's is "guest".
    let users = [
        ("guest", "ChssPYAaTQZZ9LqZoubibmBISBv5Jrti0dvv7EYbjXWpS0+X"),
        (
            "meter-0",
            "ChssPZfBTXHp5jhBAmOfhKHccwFktoV7QUzSlW7VcJcsQkfw",
        ),
        (
            "meter-1",
            "ChssPfe1mc9/VJkd+w8SsoFAAPJ4I5R4ZXoF2b5GkZym0P6z",
        ),
        (
            "meter-2",
            "ChssPcWU+HEp8DgeuSkHXxmdstukNjLX84tFrOvTD38lqRF9",
        ),
        ("board", "ChssPZ7PE1o7FtvVtDS8ny0JJuGvG/FroRn9dzGP8jcgxGze"),
    ];
    let user = |(name, hash): &(&str, &str)| {
        format!(
            r#"{{"name":"{name}","password_hash":"{hash}","hashing_algorithm":"rabbit_password_hashing_sha256","tags":""}}"#
        )
    };
    let permission = |(name, _): &(&str, &str)| {
        format!(r#"{{"user":"{name}","vhost":"/","configure":".*","write":".*","read":".*"}}"#)
    };
    let joined = |each: &dyn Fn(&(&str, &str)) -> String| {
        users.iter().map(each).collect::<Vec<_>>().join(",")
    };
    let definitions = format!(
        r#"{{"rabbit_version":"3.10.8","vhosts":[{{"name":"/"}}],"users":[{}],"permissions":[{}]}}"#,
        joined(&user),
        joined(&permission)
    );
    format!(
        "[[files]]\npath = \"definitions.json\"\ncontent = '''{definitions}'''\n\n[[files]]\npath = \"enabled_plugins\""
    )
}

/// Has RabbitMQ read them.
const WITH_USERS: (&str, &str) = (
    "loopback_users = none\n",
    "loopback_users = none\nload_definitions = {dir}/definitions.json\n",
);

#[test]
fn users_of_rabbitmq() {
    let place = Place::new();
    place.system(
        "rabbitmq",
        "users",
        &[
            WITH_USERS,
            ("[[files]]\npath = \"enabled_plugins\"", &rabbitmq_users()),
        ],
    );
    measure(&place, "users");
}

#[test]
fn accounts_of_ejabberd() {
    let account = |user: &str| {
        format!(
            r#"ok = ejabberd_auth:try_register(<<\"{user}\">>, <<\"localhost\">>, <<\"{SECRET}-{user}\">>), "#
        )
    };
    let accounts: String = ["meter-0", "meter-1", "meter-2", "board"]
        .map(account)
        .concat();
    let place = Place::new();
    place.system(
        "ejabberd",
        "accounts",
        &[(
            "io:format(\\\"accounts made",
            &format!("{accounts}io:format(\\\"accounts made"),
        )],
    );
    measure(&place, "accounts");
}

/// An authority, with a certificate for each of three devices and an application, changed by `change`, and for a server.
fn authority(change: impl Fn(&str, &mut CertificateParams)) -> Authority {
    let authority = Authority::new();
    for who in ["meter-0", "meter-1", "meter-2", "board"] {
        authority.sign(who, &[], |params| change(who, params));
    }
    // ejabberd sets a timer for the end of a certificate, and falls over one that is too far away.
    let (pem, key) = authority.sign("server", &["localhost", "127.0.0.1"], |params| {
        params.not_after = date_time_ymd(2080, 1, 1);
    });
    let both = [&pem, &key].map(|file| std::fs::read_to_string(file).unwrap());
    std::fs::write(authority.file("both.pem"), both.concat()).unwrap();
    authority
}

/// Measures three devices and an application, each with its own certificate and neither user nor password. Who shows another
/// authority's certificate does not get in.
fn measure_certificates(place: &Place, authority: &Authority, args: &[&str]) {
    let others = Authority::new();
    others.sign("board", &[], |_| {});
    let board = |of: &Authority| {
        for ending in ["pem", "key"] {
            let from = of.file(&format!("board.{ending}"));
            std::fs::copy(from, of.file(&format!("board-0.{ending}"))).unwrap();
        }
        of.file("board-{n}").display().to_string()
    };
    for (out, board) in [("own", board(authority)), ("wrong", board(&others))] {
        let identities = format!(
            r#"identities.publishers = {{ client-id = "dev-{{n}}", certs = "{}/meter-{{n}}" }}
               identities.subscribers = {{ certs = "{board}" }}"#,
            authority.dir().display()
        );
        let study = study(3, TOPIC, "meters/meter-0", "50/s-each", &identities);
        let file = format!("{out}.toml");
        place.write(&file, study);
        let done = place.run(&[&["run", &file, "--out", out], args].concat());
        place.is_clean();
        for text in [&done.out, &done.err] {
            assert!(!text.contains("PRIVATE KEY"), "{text}");
        }
        if !place.path_to(out).exists() {
            // The server says at the first login that it does not take the certificate.
            assert_eq!(out, "wrong", "{}", done.err);
            for words in [
                "nothing was measured",
                "does not take this client's certificate",
            ] {
                assert!(done.err.contains(words), "{}", done.err);
            }
            continue;
        }
        assert!(!place.results(out).to_string().contains("PRIVATE KEY"));
        if out == "wrong" {
            is_broken(&place.trial(out), &[]);
        }
    }
    adds_up(&place.trial("own"));
    assert_eq!(count(&place.trial("own"), "connections.made"), 4);
}

#[test]
fn certificates_of_rabbitmq() {
    let authority = authority(|_, _| {});
    let ca = authority.file("ca.pem").display().to_string();
    let place = Place::new();
    let verified = "ssl_options.verify = verify_peer\nssl_options.fail_if_no_peer_cert = true\nauth_mechanisms.1 = EXTERNAL\n\
                    ssl_cert_login_from = common_name\"\"\" }";
    place.system(
        "rabbitmq",
        "certificates",
        &[
            WITH_USERS,
            ("[[files]]\npath = \"enabled_plugins\"", &rabbitmq_users()),
            ("plugins = \"\"", "plugins = \"rabbitmq_auth_mechanism_ssl\""),
            ("probe = \"connect\"\n", ""),
            ("cacertfile = {ca-file}", &format!("cacertfile = {ca}")),
            (
                "ssl_options.verify = verify_none\nssl_options.fail_if_no_peer_cert = false\"\"\" }",
                verified,
            ),
        ],
    );
    let on = ["--systems", "mine", "--on", "certificates:tls"];
    measure_certificates(&place, &authority, &on);
}

#[test]
fn certificates_of_nats() {
    let authority = authority(|_, _| {});
    let ca = authority.file("ca.pem").display().to_string();
    let place = Place::new();
    let meter = |n| {
        format!(r#"{{ user: "CN=meter-{n}", permissions: {{ publish: "meters.meter-{n}" }} }}"#)
    };
    let board = r#"{ user: "CN=board", permissions: { subscribe: "meters.>" } }"#;
    let users: Vec<String> = (0..3).map(meter).chain([board.to_owned()]).collect();
    let mapped = format!(
        "tls {{ cert_file: \"{{cert-file}}\", key_file: \"{{key-file}}\", ca_file: \"{ca}\", verify_and_map: true }}\n\
         authorization {{ users = [ {} ] }}\"\"\" }}",
        users.join(", ")
    );
    place.system(
        "nats",
        "certificates",
        &[
            ("probe = \"connect\"\n", ""),
            (
                "tls { cert_file: \"{cert-file}\", key_file: \"{key-file}\" }\"\"\" }",
                &mapped,
            ),
        ],
    );
    let on = ["--systems", "mine", "--on", "certificates:tls"];
    measure_certificates(&place, &authority, &on);
}

/// SASL EXTERNAL: a certificate says whose account it is (XEP-0178).
#[test]
fn certificates_of_ejabberd() {
    let address = |who: &str| OtherNameValue::Utf8String(format!("{who}@localhost"));
    // id-on-xmppAddr, RFC 6120, section 13.7.1.4.
    let xmpp_address = vec![1, 3, 6, 1, 5, 5, 7, 8, 5];
    let authority = authority(|who, params| {
        let name = SanType::OtherName((xmpp_address.clone(), address(who)));
        params.subject_alt_names.push(name);
    });
    let file = |name: &str| authority.file(name).display().to_string();
    let text = std::fs::read_to_string(repository("systems/ejabberd.toml")).unwrap();
    let tls = format!(
        "    shaper: none\n    tls: true\n    tls_verify: true\n    cafile: {}\n",
        file("ca.pem")
    );
    let text = text.replacen("    shaper: none\n", &tls, 1).replacen(
        "listen:\n",
        &format!("certfiles:\n  - {}\nlisten:\n", file("both.pem")),
        1,
    );
    let system = SystemFile::parse(&text, "ejabberd.toml").unwrap();
    let server = Server::start(Drivers::default(), &system, Some("xmpp"));
    let place = Place::new();
    let on = server.target.endpoints[0].replacen("xmpp", "xmpps", 1);
    let ca = file("ca.pem");
    measure_certificates(&place, &authority, &["--on", &on, "--ca", &ca]);
}
