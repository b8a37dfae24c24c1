//! Systems that run already: measured, left alone, logged in to.

use pubgauge_testing::certificates::{Authority, SelfSigned};
use pubgauge_testing::mosquitto::Mosquitto;
use pubgauge_testing::throttle::Rules;

use crate::common;

use common::*;
use serde_json::Value;

#[test]
fn a_broker_that_runs_already_is_measured_and_left_alone() {
    let place = Place::new();
    let broker = Mosquitto::start();
    let address = broker.address();
    let mut args = vec!["run", "--on", &address, "--rate", "200/s", "--out", "run"];
    args.extend(SHORT);
    place.run(&args);
    place.is_clean();
    let trial = place.trial("run");
    adds_up(&trial);
    assert_eq!(trial["system"]["name"], address.as_str());
    assert_eq!(trial["system_cpu_s"], Value::Null, "out of sight");
    // It still serves.
    args[6] = "again";
    place.run(&args);
    adds_up(&place.trial("again"));
}

#[test]
fn a_password_opens_the_door_and_is_written_nowhere() {
    const SECRET: &str = "Xy7-hunting-high";
    let place = Place::new();
    let broker = Mosquitto::with_password(SECRET, "");
    let address = format!("mqtt://ann@127.0.0.1:{}", broker.port);
    let args = |out: &'static str| {
        let mut args = vec!["run".to_owned(), "--on".into(), address.clone()];
        args.extend(["--rate", "100/s", "--out", out].map(String::from));
        args.extend(SHORT.map(String::from));
        args
    };
    let mut command = place.command(&args("run"));
    command.env("PUBGAUGE_PASSWORD", SECRET);
    let done = place.finish(command);
    adds_up(&place.trial("run"));

    let outside = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(outside.path(), format!("{SECRET}\n")).unwrap();
    let mut from_file = args("from-file");
    from_file.extend([
        "--password-file".into(),
        outside.path().display().to_string(),
    ]);
    let other = place.finish(place.command(&from_file));
    adds_up(&place.trial("from-file"));

    for text in [&done.out, &done.err, &other.out, &other.err] {
        assert!(!text.contains(SECRET), "{text}");
    }
    assert_eq!(place.mentions(SECRET), None);
    assert!(place.mentions("127.0.0.1").is_some(), "the search finds");
    place.is_clean();

    // The wrong one is refused, with a hint.
    let mut command = place.command(&args("wrong"));
    command.env("PUBGAUGE_PASSWORD", "something else");
    place
        .finish(command)
        .exits(2)
        .assert_says("nothing was measured")
        .assert_says("the user name or the password is wrong")
        .assert_says("PUBGAUGE_PASSWORD");
    assert!(!place.path_to("wrong").exists());
    place.is_clean();

    // A password in an address is refused before anything happens.
    let done = place
        .run(&[
            "run",
            "--on",
            &format!("mqtt://ann:{SECRET}@127.0.0.1:1"),
            "--out",
            "url",
        ])
        .exits(3)
        .assert_says("PUBGAUGE_PASSWORD");
    assert!(!done.err.contains(SECRET));
    assert!(!place.path_to("url").exists());
}

#[test]
fn tls_with_a_private_authority_and_client_certificates() {
    let place = Place::new();
    let authority = Authority::new();
    authority.both_sides("client");
    let file = |name: &str| authority.file(name).display().to_string();
    let lines = format!(
        "allow_anonymous true\ncafile {}\ncertfile {}\nkeyfile {}\nrequire_certificate true",
        file("ca.pem"),
        file("server.pem"),
        file("server.key")
    );
    let broker = Mosquitto::start_with(&lines);
    let address = format!("mqtts://localhost:{}", broker.port);
    let run = |out: &str, more: &[&str]| {
        let mut args = vec!["run", "--on", &address, "--rate", "200/s", "--out", out];
        args.extend(SHORT);
        args.extend(more);
        let done = place.run(&args);
        place.is_clean();
        done
    };
    let (ca, cert, key) = (file("ca.pem"), file("client.pem"), file("client.key"));
    run("all", &["--ca", &ca, "--cert", &cert, "--key", &key]);
    let trial = place.trial("all");
    adds_up(&trial);
    assert_eq!(count(&trial, "connections.made"), 2);

    // The server asks for a certificate, and the client for a known authority.
    run("no-cert", &["--ca", &ca])
        .exits(2)
        .assert_says("nothing was measured")
        .assert_says("localhost");
    run("no-ca", &[])
        .exits(2)
        .assert_says("certificate")
        .assert_says("--ca FILE");
}

#[test]
fn a_self_signed_broker_with_passwords_by_ca_and_by_insecure() {
    const SECRET: &str = "Xy7-hunting-low";
    let place = Place::new();
    let folder = tempfile::tempdir().unwrap();
    let (pem, key) = SelfSigned::Authority.write(folder.path());
    let lines = format!("certfile {}\nkeyfile {}", pem.display(), key.display());
    let broker = Mosquitto::with_password(SECRET, &lines);
    let address = format!("mqtts://ann@localhost:{}", broker.port);
    let run = |out: &str, password: Option<&str>, more: &[&str]| {
        let mut args = vec!["run", "--on", &address, "--rate", "200/s", "--out", out];
        args.extend(SHORT);
        args.extend(more);
        let mut command = place.command(&args);
        if let Some(password) = password {
            command.env("PUBGAUGE_PASSWORD", password);
        }
        let done = place.finish(command);
        place.is_clean();
        done
    };
    let ca = pem.display().to_string();
    run("ca", Some(SECRET), &["--ca", &ca]);
    let trial = place.trial("ca");
    adds_up(&trial);
    assert!(!trial["mappings"].to_string().contains("insecure"));

    let done = run("insecure", Some(SECRET), &["--insecure"]);
    let gives_up = "the server's certificate is not checked";
    assert!(done.err.contains(gives_up), "{}", done.err);
    let trial = place.trial("insecure");
    adds_up(&trial);
    let mappings = trial["mappings"].as_array().unwrap();
    let recorded = mappings.iter().find(|m| m["setting"] == "tls").unwrap();
    assert_eq!(recorded["value"], "insecure");
    assert!(recorded["native"].as_str().unwrap().contains(gives_up));
    let plan = ["plan", "--on", &address, "--rate", "1/s", "--insecure"];
    let planned = place.run(&plan).exits(0);
    let words = planned.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(gives_up), "{words}");
    let plain = [
        "plan",
        "--on",
        "mqtt://localhost",
        "--rate",
        "1/s",
        "--insecure",
    ];
    assert!(!place.run(&plain).exits(0).out.contains("not checked"));

    run("unknown", Some(SECRET), &[])
        .exits(2)
        .assert_says("self-signed")
        .assert_says("hint: name the certificate itself: --ca FILE");
    run("none", None, &["--ca", &ca])
        .exits(2)
        .assert_says("a user name was given, but no password")
        .assert_says("PUBGAUGE_PASSWORD");
    run("wrong", Some("not-the-one"), &["--ca", &ca])
        .exits(2)
        .assert_says("the user name or the password is wrong")
        .assert_says("PUBGAUGE_PASSWORD");
    assert_eq!(place.mentions(SECRET), None);
    assert_eq!(place.mentions("not-the-one"), None);
    place
        .run(&["run", "--on", &address, "--ca", &ca, "--insecure"])
        .exits(3)
        .assert_says("--insecure");
}

/// Tests that need a machine that is not busy with other things.
mod real_time {
    use super::*;

    #[test]
    fn lost_connections_are_made_again_where_the_study_says_so() {
        let place = Place::new();
        let broker = Mosquitto::start();
        let throttle = broker.throttled(Rules::default(), Rules::default());
        place.write(
            "again.toml",
            r#"
    name = "again"
    [phases]
    reconnect-after = "300ms"
    warm-up = "200ms"
    measure = "3s"
    [[workload]]
    name = "pair"
    [[workload.flow]]
    payload = "64B"
    rate = "200/s"
    "#,
        );
        let address = format!("mqtt://{}", throttle.address());
        let mut run = place.start(&["run", "again.toml", "--on", &address, "--out", "run"]);
        run.measures();
        works(broker.pid());
        assert_eq!(throttle.cut(""), 2);
        run.wait_for_end();
        place.is_clean();
        let trial = place.trial("run");
        assert_eq!(count(&trial, "connections.lost"), 2);
        assert_eq!(count(&trial, "connections.remade"), 2);
        is_broken(&trial, &["2 of 2 connections were lost, 2 made again"]);
        assert!(trial["duration_s"].as_f64().unwrap() >= 3.0, "it went on");
        let series = trial["series"].as_array().unwrap();
        let late = series.iter().filter(|s| s["t_s"].as_f64().unwrap() > 2.0);
        let late: u64 = late.map(|s| count(s, "delivered")).sum();
        assert!(late > 100, "{late} deliveries in the last second");
        assert_eq!(
            count(&trial, "delivered") - count(&trial, "duplicated") + count(&trial, "lost"),
            count(&trial, "expected")
        );
    }
}
