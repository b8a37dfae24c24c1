//! Passwords, virtual hosts, TLS and client certificates on a private RabbitMQ.

use crate::common;

use common::*;
use pubgauge_driver::*;
use pubgauge_driver_amqp::AmqpDriver;
use pubgauge_testing::certificates::Authority;

/// Why a client cannot connect.
fn failure(target: Target, settings: Settings) -> String {
    Rig::failure(&AmqpDriver, target, settings)
}

#[test]
fn user_name_password_and_virtual_host_are_checked() {
    let rabbit = Rabbit::shared();
    rabbit.ctl(&["add_user", "meter", "right"]);
    rabbit.ctl(&["add_vhost", "site/7"]);
    for host in ["/", "site/7"] {
        rabbit.ctl(&["set_permissions", "-p", host, "meter", ".*", ".*", ".*"]);
    }
    let login = |user: Option<&str>, password: Option<&str>| Target {
        username: user.map(str::to_owned),
        password: password.map(Secret::new),
        ..rabbit.target.clone()
    };
    open(login(Some("meter"), Some("right")), Settings::default()).named("c");
    // User name and virtual host may stand in the URL.
    let mut in_url = login(None, Some("right"));
    in_url.endpoints = vec![format!("amqp://meter@127.0.0.1:{}/site%2F7", rabbit.port())];
    let mut rig = open(in_url, Settings::default());
    let client = rig.named("in-url");
    rig.subscribe(client, "a");
    let connections = rabbit.ctl(&["list_connections", "-q", "user", "vhost"]);
    assert!(connections.contains("meter\tsite/7"), "{connections}");
    let host = native(Settings::default(), "virtual-host", "site/7".into());
    open(login(Some("meter"), Some("right")), host.clone()).named("c");

    for (wrong, what) in [
        (
            login(Some("meter"), Some("wr0ng")),
            "the user name or the password is wrong",
        ),
        (
            login(Some("meter"), None),
            "a user name was given, but no password",
        ),
    ] {
        let why = failure(wrong, Settings::default());
        assert!(
            why.contains("ACCESS_REFUSED") && why.contains(what),
            "{why}"
        );
        assert!(why.contains("PUBGAUGE_PASSWORD"), "{why}");
        assert!(!why.contains("wr0ng"), "no password in messages");
    }
    let why = failure(login(None, None), host);
    assert!(
        why.contains("site/7") && why.contains("virtual host"),
        "{why}"
    );
    let nowhere = native(Settings::default(), "virtual-host", "nowhere".into());
    let why = failure(login(None, None), nowhere);
    assert!(
        why.contains("nowhere") && why.contains("virtual host"),
        "{why}"
    );
}

#[test]
fn tls_and_client_certificates() {
    let authority = Authority::new();
    let tls = authority.both_sides("meter");
    let dir = authority.dir().display();
    let rabbit = Rabbit::start(|system| {
        system
            .values
            .insert("plugins".into(), "rabbitmq_auth_mechanism_ssl".into());
        system.run.ports.push("secure".into());
        system.endpoints.push("amqps://127.0.0.1:{secure}".into());
        for file in system
            .files
            .iter_mut()
            .filter(|f| f.path == "rabbitmq.conf")
        {
            file.content += &format!(
                "listeners.ssl.1 = 127.0.0.1:{{secure}}\n\
                 ssl_options.cacertfile = {dir}/ca.pem\n\
                 ssl_options.certfile = {dir}/server.pem\n\
                 ssl_options.keyfile = {dir}/server.key\n\
                 ssl_options.verify = verify_peer\n\
                 ssl_options.fail_if_no_peer_cert = false\n\
                 auth_mechanisms.1 = PLAIN\n\
                 auth_mechanisms.2 = EXTERNAL\n\
                 ssl_cert_login_from = common_name\n"
            );
        }
    });
    rabbit.ctl(&["add_user", "meter", "unused"]);
    rabbit.ctl(&["clear_password", "meter"]);
    rabbit.ctl(&["set_permissions", "-p", "/", "meter", ".*", ".*", ".*"]);
    let secure = |tls: Option<Tls>| Target {
        tls,
        ..Target::single(&rabbit.target.endpoints[1])
    };
    let server_only = Tls {
        cert_file: None,
        key_file: None,
        ..tls.clone()
    };
    // PLAIN over TLS, and EXTERNAL, which a certificate without a user name asks for.
    for (tls, who, reliability) in [
        (server_only.clone(), "guest", Reliability::AtMostOnce),
        (tls.clone(), "meter", Reliability::AtLeastOnce),
    ] {
        let settings = Settings {
            reliability: Some(reliability),
            ..Settings::default()
        };
        let mut rig = open(secure(Some(tls)), settings);
        let client = rig.named("secure");
        rig.subscribe(client, "s/#");
        let topic = rig.fleet.advertise(client, "s/a").unwrap();
        for n in 0..2000 {
            rig.publish(client, topic, n, if n % 100 == 0 { 200_000 } else { 64 });
        }
        rig.until("all", |s| s.messages.len() == 2000);
        assert_eq!(rig.sequences(client), (0..2000).collect::<Vec<_>>());
        rig.until("settled", |s| {
            reliability == Reliability::AtMostOnce || s.acknowledged.len() == 2000
        });
        let users = rabbit.ctl(&["list_connections", "-q", "user", "ssl"]);
        assert!(users.contains(&format!("{who}\ttrue")), "{users}");
        rig.fleet.close(clock::monotonic_now() + SECOND);
    }
    // By force, where nothing would do it by itself.
    let external = native(Settings::default(), "sasl", "external".into());
    let why = failure(secure(Some(server_only.clone())), external.clone());
    assert!(why.contains("hint"), "{why}");
    let mut plain = rabbit.target.clone();
    plain.endpoints.truncate(1);
    let why = failure(plain, external);
    assert!(
        why.contains("EXTERNAL") || why.contains("ACCESS_REFUSED"),
        "{why}"
    );
    let plain = native(Settings::default(), "sasl", "plain".into());
    open(secure(Some(tls.clone())), plain).named("c");

    // An authority that did not sign, and a name that the certificate is not for.
    let other = Authority::new();
    let stranger = other.both_sides("meter");
    let why = failure(secure(Some(stranger)), Settings::default());
    assert!(
        why.contains("has issued the server's certificate") && why.contains("--ca FILE"),
        "{why}"
    );
    let wrong_name = Tls {
        server_name: Some("elsewhere.example".into()),
        ..server_only.clone()
    };
    let why = failure(secure(Some(wrong_name)), Settings::default());
    assert!(why.contains("not for elsewhere.example"), "{why}");
    // The server's own certificate named, and nothing checked.
    let insecure = Tls {
        insecure: true,
        ..Tls::default()
    };
    let named = Tls {
        ca_file: Some(authority.file("server.pem")),
        ..Tls::default()
    };
    for tls in [&insecure, &named] {
        open(secure(Some(tls.clone())), Settings::default()).named("c");
    }
    // TLS to the port without, plain text to the one with it.
    let mut mixed = secure(Some(insecure));
    mixed.endpoints[0] = rabbit.target.endpoints[0].replace("amqp:", "amqps:");
    let why = failure(mixed, Settings::default());
    assert!(
        why.contains("Without TLS the address begins with amqp://"),
        "{why}"
    );
    let mut mixed = secure(None);
    mixed.endpoints[0] = mixed.endpoints[0].replace("amqps:", "amqp:");
    let why = failure(mixed, Settings::default());
    assert!(
        why.contains("With TLS the address begins with amqps://"),
        "{why}"
    );
}
