//! TLS and passwords, against mosquitto: who is taken, and what is said of the others.

use pubgauge_testing::certificates::Authority;

use super::*;

/// Puts NAME.pem and NAME.key for these host names into the place, valid to the end of that year.
fn issue(authority: &Authority, place: &Place, name: &str, hosts: &[&str], until: i32) {
    let (pem, key) = authority.sign(name, hosts, |params| {
        params.not_after = rcgen::date_time_ymd(until, 12, 31);
    });
    std::fs::copy(pem, place.path_to(&format!("{name}.pem"))).unwrap();
    std::fs::copy(key, place.path_to(&format!("{name}.key"))).unwrap();
}

/// A broker with one of the certificates that stand in the place, which wants one of the client.
fn broker(place: &Place, certificate: &str, more: &str) -> Mosquitto {
    let file = |name: &str| place.path_to(name).display().to_string();
    let lines = format!(
        "cafile {}\ncertfile {}\nkeyfile {}\nrequire_certificate true\n{more}",
        file("ca.pem"),
        file(&format!("{certificate}.pem")),
        file(&format!("{certificate}.key")),
    );
    Mosquitto::start_with(&lines)
}

const FULL: &str = "ca = \"ca.pem\"\ncert = \"client.pem\"\nkey = \"client.key\"\n";

/// Begins to collect, with this below `[tls]`.
fn collect<'a>(place: &'a Place, host: &str, port: u16, tls: &str) -> Started<'a> {
    let text = format!(
        "brokers = [\"mqtts://{host}:{port}\"]\ntopics = [\"m/#\"]\nto = \"data\"\n[tls]\n{tls}"
    );
    place.write("collect.toml", text);
    place.start(&["--config", "collect.toml"])
}

/// It says this, and ends in order.
fn says(mut collector: Started<'_>, words: &str) -> Done {
    collector.until_said(words);
    collector.signal(libc::SIGTERM);
    collector.wait_for_end().exits(0)
}

const TAKEN: &str = "connected, with";

#[test]
fn a_broker_and_a_collector_with_certificates_take_each_other_and_nobody_else() {
    let place = new_place();
    let (ca, other) = (Authority::new(), Authority::new());
    std::fs::copy(ca.file("ca.pem"), place.path_to("ca.pem")).unwrap();
    std::fs::copy(other.file("ca.pem"), place.path_to("other-ca.pem")).unwrap();
    let names = ["localhost", "127.0.0.1"];
    issue(&ca, &place, "server", &names, 2090);
    issue(&ca, &place, "expired", &names, 2020);
    issue(&ca, &place, "client", &[], 2090);
    issue(&ca, &place, "old-client", &[], 2020);
    issue(&other, &place, "stranger", &[], 2090);
    let good = broker(&place, "server", "allow_anonymous true");
    let expired = broker(&place, "expired", "allow_anonymous true");

    for host in names {
        says(collect(&place, host, good.port, FULL), TAKEN);
    }
    let by_flags = format!("mqtts://localhost:{}", good.port);
    let flags = collector_flags(&by_flags, "data");
    let tls = [
        "--ca",
        "ca.pem",
        "--cert",
        "client.pem",
        "--key",
        "client.key",
    ];
    says(place.start(&[&flags[..], &tls].concat()), TAKEN);
    let anybody = ["--insecure", "--cert", "client.pem", "--key", "client.key"];
    says(place.start(&[&flags[..], &anybody].concat()), TAKEN);

    let wrong_ca = FULL.replace("\"ca.pem\"", "\"other-ca.pem\"");
    let stranger = FULL.replace("client.", "stranger.");
    let old = FULL.replace("client.", "old-client.");
    let elsewhere = format!("{FULL}server-name = \"elsewhere.example\"\n");
    for (port, tls, words) in [
        (good.port, &*wrong_ca, "nobody in"),
        (
            good.port,
            &elsewhere,
            "the server's certificate is not for elsewhere.example, but for",
        ),
        (expired.port, FULL, "the server's certificate expired at"),
        (
            good.port,
            "ca = \"ca.pem\"\n",
            "the server may want a client certificate",
        ),
        (
            good.port,
            &stranger,
            "the server does not take this client's certificate",
        ),
        (
            good.port,
            &old,
            "the server does not take this client's certificate",
        ),
    ] {
        let done = says(collect(&place, "localhost", port, tls), words);
        assert!(done.err.contains("hint: "), "{done:?}");
        assert!(!done.err.contains(TAKEN), "{done:?}");
    }
    // A peer without TLS, either way round.
    let plain = Mosquitto::start();
    says(collect(&place, "localhost", plain.port, FULL), "hint: ");
    let without = format!("mqtt://localhost:{}", good.port);
    let flags = collector_flags(&without, "data");
    says(place.start(&flags), "hint: ");
}

#[test]
fn a_password_comes_from_a_file() {
    let place = new_place();
    let broker = Mosquitto::with_password("right", "");
    let wrong = "the user name or the password is wrong";
    for (password, other, words) in [("right", "wr0ng", TAKEN), ("wr0ng", "right", wrong)] {
        place.write("password", format!("{password}\n"));
        let text = format!(
            "brokers = [\"mqtt://ann@127.0.0.1:{}\"]\ntopics = [\"m/#\"]\nto = \"data\"\npassword-file = \"password\"\n",
            broker.port
        );
        place.write("collect.toml", text);
        let mut command = place.command(&["--config", "collect.toml"]);
        // The file comes before the variable.
        command.env("PUBGAUGE_PASSWORD", other);
        let done = says(place.spawn(command), words);
        assert!(
            !done.err.contains("wr0ng") && !done.out.contains("wr0ng"),
            "{done:?}"
        );
    }
}
