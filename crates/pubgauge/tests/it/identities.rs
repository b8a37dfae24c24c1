//! Clients with identities of their own: on servers that let each do only what is its own.

mod long;

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use pubgauge_testing::certificates::Authority;
use pubgauge_testing::mosquitto::Mosquitto;

use crate::common;

use common::*;

/// The beginning of each password.
const SECRET: &str = "Xy7-hunt";

/// Devices of the fleets here that are large.
const DEVICES: usize = 200;

/// A study of `devices` that each publish on a topic of their own, and one application that hears all; with more lines
/// for the flow.
fn study(devices: usize, topic: &str, hears: &str, rate: &str, identities: &str) -> String {
    format!(
        r#"
name = "fleet"
[phases]
warm-up = "200ms"
measure = "1s"
ready-within = "60s"
drain-quiet = "1s"
drain-within = "60s"
[[workload]]
name = "meters"
[[workload.flow]]
topic = "{topic}"
dimensions = {{ device = {devices} }}
subscribe = "{hears}"
payload = "64B"
rate = "{rate}"
{identities}
"#
    )
}

/// A mosquitto with a user for each device and one for the application. A device may publish on the topic of its user
/// and its client identifier alone, the application hears all.
fn strict_mosquitto() -> Mosquitto {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let mut users = format!("board:{SECRET}-board\n");
    for n in 0..DEVICES {
        writeln!(users, "meter-{n}:{SECRET}-{n}").unwrap();
    }
    std::fs::write(file("users"), users).unwrap();
    let hashed = Command::new("mosquitto_passwd")
        .arg("-U")
        .arg(file("users"))
        .status();
    assert!(hashed.expect("these tests need mosquitto_passwd").success());
    let rules = "user board\ntopic read meters/#\n\npattern write meters/%u/%c\n";
    std::fs::write(file("acl"), rules).unwrap();
    let lines = format!(
        "allow_anonymous false\npassword_file {}\nacl_file {}",
        file("users").display(),
        file("acl").display()
    );
    // It has read its files once it serves.
    Mosquitto::start_with(&lines)
}

/// A list of the devices of [`strict_mosquitto`]; `password` gives that of each.
fn list(password: impl Fn(usize) -> String) -> String {
    let rows = (0..DEVICES).map(|n| format!("dev-{n},meter-{n},{}\n", password(n)));
    format!("id,user,password\n{}", rows.collect::<String>())
}

/// The identities of the list in this folder, and of the application.
fn of_list(folder: &Path) -> String {
    format!(
        r#"identities.publishers = {{ from = "{0}/meters.csv" }}
           identities.subscribers = {{ user = "board", password-file = "{0}/board" }}"#,
        folder.display()
    )
}

#[test]
fn each_of_two_hundred_devices_publishes_as_itself_alone() {
    let (place, secrets) = (Place::new(), tempfile::tempdir().unwrap());
    let broker = strict_mosquitto();
    let address = broker.address();
    let write = |name: &str, text: String| {
        std::fs::write(secrets.path().join(name), text).unwrap();
    };
    write("meters.csv", list(|n| format!("{SECRET}-{n}")));
    write("board", format!("{SECRET}-board\n"));
    let topic = "meters/meter-{device}/dev-{device}";
    let identities = of_list(secrets.path());
    place.write(
        "fleet.toml",
        study(DEVICES, topic, "meters/#", "5/s-each", &identities),
    );
    let run = |study: &str, out: &str, more: &[&str]| {
        let mut args = vec!["run", study, "--on", &address, "--out", out];
        args.extend(more);
        let done = place.run(&args);
        place.is_clean();
        for text in [&done.out, &done.err] {
            assert!(!text.contains(SECRET), "{text}");
        }
        assert_eq!(place.mentions(SECRET), None);
        done
    };
    // By workers that are processes of their own: they get the passwords over their links.
    run("fleet.toml", "run", &["--processes", "2"]);
    let trial = place.trial("run");
    adds_up(&trial);
    assert_eq!(count(&trial, "connections.made"), DEVICES as u64 + 1);
    let log = broker.log();
    assert!(log.contains("as dev-137 (p5, c1, k"), "{log}");
    assert!(log.contains("u'meter-137'"), "{log}");

    // The list is the proof: in another order each device would publish on the topic of another.
    let rows = list(|n| format!("{SECRET}-{n}"));
    let (headings, rows) = rows.split_once('\n').unwrap();
    let mut rows: Vec<&str> = rows.lines().collect();
    rows.swap(3, 4);
    write("meters.csv", format!("{headings}\n{}\n", rows.join("\n")));
    let ready = ["--set", "phases.ready-within=16s"];
    run("fleet.toml", "swapped", &ready);
    let trial = place.trial("swapped");
    is_broken(
        &trial,
        &["2 of the publisher-to-subscriber paths", "meters/meter-"],
    );

    // One of two hundred has a wrong password, and it is said which.
    let wrong = |n| match n {
        137 => format!("{SECRET}-wrong"),
        n => format!("{SECRET}-{n}"),
    };
    write("meters.csv", list(wrong));
    run("fleet.toml", "wrong", &ready).exits(2);
    let trial = place.trial("wrong");
    is_broken(
        &trial,
        &[
            "meters-pub-137",
            "id dev-137, user meter-137",
            "the user name or the password of this client is wrong",
        ],
    );

    // By pattern, with a file for each password.
    for n in 0..3 {
        write(&format!("meter-{n}.password"), format!("{SECRET}-{n}\n"));
    }
    let patterns = format!(
        r#"identities.publishers = {{ client-id = "dev-{{n}}", user = "meter-{{n}}", password-file = "{0}/{{user}}.password" }}
           identities.subscribers = {{ user = "board", password-file = "{0}/board" }}"#,
        secrets.path().display()
    );
    place.write(
        "three.toml",
        study(3, topic, "meters/#", "50/s-each", &patterns),
    );
    run("three.toml", "three", &[]);
    adds_up(&place.trial("three"));

    // Secrets of a study go to no address that the command line does not name, and a list that is too short is told.
    let of_study = format!("systems = [\"{address}\"]\n");
    let text = std::fs::read_to_string(place.path_to("three.toml")).unwrap();
    place.write("addressed.toml", of_study + &text);
    place
        .run(&["run", "addressed.toml", "--out", "addressed"])
        .exits(3)
        .assert_says("goes to none that this command line does not name");
    write("meters.csv", "id,user\ndev-0,meter-0\n".into());
    place
        .run(&["run", "fleet.toml", "--on", &address, "--out", "short"])
        .exits(3)
        .assert_says("meters.csv:3:1: the table ends after 1 row, and there are 200 clients");
    for out in ["addressed", "short"] {
        assert!(!place.path_to(out).exists());
    }
}

#[test]
fn each_device_has_a_certificate_of_its_own() {
    const DEVICES: usize = 20;
    let place = Place::new();
    let authority = Authority::new();
    authority.sign("server", &["127.0.0.1", "localhost"], |_| {});
    let all = (0..DEVICES).map(|n| format!("meter-{n}"));
    for who in all.chain(["board".to_owned()]) {
        authority.sign(&who, &[], |_| {});
    }
    let file = |name: &str| authority.file(name).display().to_string();
    let rules = "user board\ntopic read meters/#\n\npattern write meters/%u\n";
    std::fs::write(authority.file("acl"), rules).unwrap();
    let broker = Mosquitto::start_with(&format!(
        "cafile {}\ncertfile {}\nkeyfile {}\nacl_file {}\nrequire_certificate true\nuse_identity_as_username true",
        file("ca.pem"),
        file("server.pem"),
        file("server.key"),
        file("acl")
    ));
    let address = format!("mqtts://localhost:{}", broker.port);
    let certs = authority.dir().display();
    let identities = format!(
        r#"identities.publishers = {{ client-id = "meter-{{n}}", certs = "{certs}" }}
           identities.subscribers = {{ certs = "{certs}/board" }}"#
    )
    .replace("/board\"", "/board{n}\"");
    // One subscriber: its number is 0.
    for ending in ["pem", "key"] {
        let (from, to) = (
            file(&format!("board.{ending}")),
            file(&format!("board0.{ending}")),
        );
        std::fs::rename(from, to).unwrap();
    }
    let topic = "meters/meter-{device}";
    place.write(
        "fleet.toml",
        study(DEVICES, topic, "meters/#", "20/s-each", &identities),
    );
    let ca = file("ca.pem");
    let run = |out: &str, on: &str| {
        let done = place.run(&["run", "fleet.toml", "--on", on, "--ca", &ca, "--out", out]);
        place.is_clean();
        done
    };
    run("run", &address);
    let trial = place.trial("run");
    adds_up(&trial);
    assert_eq!(count(&trial, "connections.made"), DEVICES as u64 + 1);
    assert_eq!(place.mentions("PRIVATE KEY"), None);

    // Where there is no TLS, where a key is another's, and where one is missing it is told before anything starts.
    run("plain", "mqtt://localhost:1")
        .exits(3)
        .assert_says("its address has no TLS");
    std::fs::copy(authority.file("meter-3.key"), authority.file("meter-4.key")).unwrap();
    run("other", &address)
        .exits(3)
        .assert_says("id meter-4")
        .assert_says("must belong together");
    std::fs::remove_file(authority.file("meter-4.pem")).unwrap();
    run("missing", &address)
        .exits(3)
        .assert_says("client 4 (id meter-4)")
        .assert_says("meter-4.pem")
        .assert_says("fleet.toml:");
    for out in ["plain", "other", "missing"] {
        assert!(!place.path_to(out).exists());
    }
}

#[test]
fn users_of_nats_publish_on_their_own_subjects() {
    let (place, secrets) = (Place::new(), tempfile::tempdir().unwrap());
    let guest =
        r#"{ user: board, password: "Xy7-hunt-board", permissions: { subscribe: "meters.>" } }"#;
    let meter = |n| {
        format!(
            r#"{{ user: meter-{n}, password: "{SECRET}-{n}", permissions: {{ publish: "meters.meter-{n}" }} }}"#
        )
    };
    let users: Vec<String> = (0..3).map(meter).chain([guest.to_owned()]).collect();
    let strict = format!(
        "write_deadline: \"60s\"\nno_auth_user: probe\nauthorization {{ users = [ {{ user: probe, password: probe }}, {} ] }}\n",
        users.join(", ")
    );
    place.system("nats", "strict", &[("write_deadline: \"60s\"\n", &strict)]);
    for n in 0..3 {
        let password = format!("{SECRET}-{n}");
        std::fs::write(secrets.path().join(n.to_string()), password).unwrap();
    }
    std::fs::write(secrets.path().join("board"), format!("{SECRET}-board")).unwrap();
    let of = |user: &str| {
        format!(
            r#"identities.publishers = {{ client-id = "dev-{{n}}", user = "{user}", password-file = "{0}/{{n}}" }}
               identities.subscribers = {{ user = "board", password-file = "{0}/board" }}"#,
            secrets.path().display()
        )
    };
    let run = |out: &str, topic: &str| {
        let study = study(3, topic, "meters/+", "50/s-each", &of("meter-{n}"));
        place.write(&format!("{out}.toml"), study);
        let file = format!("{out}.toml");
        let args = [
            "run",
            &file,
            "--systems",
            "mine",
            "--on",
            "strict",
            "--out",
            out,
        ];
        let done = place.run(&args);
        place.is_clean();
        assert!(!(done.out + &done.err).contains(SECRET));
    };
    run("own", "meters/meter-{device}");
    let trial = place.trial("own");
    adds_up(&trial);
    // A subject that is nobody's own.
    run("others", "meters/device-{device}");
    is_broken(&place.trial("others"), &[]);
}

#[test]
fn a_system_without_users_is_told_so_in_the_plan() {
    let place = Place::new();
    let identities = r#"identities.publishers = { client-id = "dev-{n}" }"#;
    place.write(
        "fleet.toml",
        study(3, "meters/{device}", "meters/#", "50/s-each", identities),
    );
    place
        .run(&["plan", "fleet.toml", "--on", "simulated"])
        .exits(3)
        .assert_says("identities: client-id = dev-0: its clients do not log in");
    let plan = place
        .run(&["plan", "fleet.toml", "--on", "mqtt://127.0.0.1:1"])
        .exits(0);
    let words = plan.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("MQTT client identifier (3 of 4)"), "{words}");
    // A run of the flags alone has them by --set.
    let flags = "plan --rate 10/s --on mqtt://127.0.0.1:1 --set workload.flow.identities.publishers.user=meter-{n}";
    place.run(&argv(flags)).exits(0);
}
