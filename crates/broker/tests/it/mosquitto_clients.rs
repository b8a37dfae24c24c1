//! The broker as an independent client sees it: `mosquitto_pub` and
//! `mosquitto_sub` of mosquitto-clients, which these tests require.

use crate::common;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use common::{Running, start};
use pubgauge_broker::Options;

const VERSIONS: [&str; 2] = ["mqttv311", "mqttv5"];

fn command(program: &str, broker: &Running, version: &str, args: &[&str]) -> Command {
    // Line by line, though it writes to a pipe. `stdbuf` becomes the program, so
    // killing it kills that.
    let mut command = Command::new("stdbuf");
    command.args(["-oL", program]);
    let port = broker.address.port().to_string();
    command
        .args(["-h", "127.0.0.1", "-p", &port, "-V", version])
        .args(args);
    command
}

fn publish(broker: &Running, version: &str, args: &[&str]) {
    let output = command("mosquitto_pub", broker, version, args)
        .output()
        .expect("mosquitto_pub runs; install the package mosquitto-clients");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {errors}");
}

/// A `mosquitto_sub` whose lines are read as they come.
struct Subscriber {
    child: Child,
    lines: Receiver<String>,
}

impl Subscriber {
    /// Runs it, and returns once its subscription is acknowledged.
    fn new(broker: &Running, version: &str, args: &[&str]) -> Subscriber {
        let mut subscriber = Subscriber::raw(broker, version, &[args, &["-d"]].concat());
        subscriber.line(|l| l.contains("SUBACK"));
        subscriber
    }

    /// Runs it; what comes before its SUBACK is not lost.
    fn raw(broker: &Running, version: &str, args: &[&str]) -> Subscriber {
        let mut child = command("mosquitto_sub", broker, version, args)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("mosquitto_sub runs; install the package mosquitto-clients");
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            stdout
                .lines()
                .map_while(Result::ok)
                .all(|line| send.send(line).is_ok())
        });
        Subscriber { child, lines }
    }

    /// The next line that fits; fails if none comes.
    fn line(&mut self, fits: impl Fn(&str) -> bool) -> String {
        loop {
            let line = self
                .lines
                .recv_timeout(Duration::from_secs(10))
                .expect("a line in time");
            if fits(&line) {
                return line;
            }
        }
    }

    /// The next message as printed by `-F '=...'`.
    fn message(&mut self) -> String {
        self.line(|l| l.starts_with('='))
    }

    /// All messages until the client ends by itself (`-W`).
    fn rest(self) -> Vec<String> {
        self.lines.iter().filter(|l| l.starts_with('=')).collect()
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn every_qos_in_both_versions() {
    let broker = start(Options::default());
    for version in VERSIONS {
        for qos in ["0", "1", "2"] {
            let args = ["-q", qos, "-t", "a/+/c", "-F", "=%t %q %r %p"];
            let mut subscriber = Subscriber::new(&broker, version, &args);
            for i in 0..3 {
                publish(
                    &broker,
                    version,
                    &["-q", qos, "-t", "a/b/c", "-m", &format!("m {i}")],
                );
                assert_eq!(subscriber.message(), format!("=a/b/c {qos} 0 m {i}"));
            }
        }
    }
}

#[test]
fn many_messages_from_one_client() {
    let broker = start(Options::default());
    for version in VERSIONS {
        for qos in ["0", "1", "2"] {
            let args = ["-q", qos, "-t", "n", "-F", "=%p"];
            let mut subscriber = Subscriber::new(&broker, version, &args);
            let args = ["-q", qos, "-t", "n", "-m", "x", "--repeat", "500"];
            publish(&broker, version, &args);
            for _ in 0..500 {
                assert_eq!(subscriber.message(), "=x");
            }
        }
    }
}

#[test]
fn retained_exact_and_by_wildcard() {
    let broker = start(Options::default());
    for version in VERSIONS {
        publish(&broker, version, &["-r", "-t", "r/1/x", "-m", "one"]);
        publish(
            &broker,
            version,
            &["-r", "-q", "2", "-t", "r/2/x", "-m", "two"],
        );
        for (filter, expected) in [
            ("r/1/x", vec!["=r/1/x 1 one"]),
            ("r/+/x", vec!["=r/1/x 1 one", "=r/2/x 1 two"]),
            ("r/#", vec!["=r/1/x 1 one", "=r/2/x 1 two"]),
            ("r/+", vec![]),
        ] {
            let args = ["-t", filter, "-F", "=%t %r %p", "-W", "1"];
            let mut got = Subscriber::new(&broker, version, &args).rest();
            got.sort();
            assert_eq!(got, expected, "{filter}");
        }
        publish(&broker, version, &["-r", "-t", "r/1/x", "-n"]);
        publish(&broker, version, &["-r", "-t", "r/2/x", "-n"]);
        let args = ["-t", "r/#", "-F", "=%p", "-W", "1"];
        assert!(Subscriber::new(&broker, version, &args).rest().is_empty());
    }
}

#[test]
fn a_share_is_split() {
    let broker = start(Options::default());
    for version in VERSIONS {
        let args = ["-q", "1", "-t", "$share/g/s/#", "-F", "=%p"];
        let mut members: Vec<_> = (0..2)
            .map(|_| Subscriber::new(&broker, version, &args))
            .collect();
        publish(
            &broker,
            version,
            &["-q", "1", "-t", "s/x", "-m", "x", "--repeat", "20"],
        );
        for member in &mut members {
            for _ in 0..10 {
                member.message();
            }
            assert!(
                member
                    .lines
                    .recv_timeout(Duration::from_millis(100))
                    .is_err()
            );
        }
    }
}

#[test]
fn a_durable_session_has_what_came_meanwhile() {
    let broker = start(Options::default());
    for version in VERSIONS {
        let mut args = vec![
            "-c", "-i", "durable", "-q", "1", "-t", "d/#", "-F", "=%t %p",
        ];
        if version == "mqttv5" {
            args.extend(["-x", "1000"]);
        }
        drop(Subscriber::new(&broker, version, &args));
        publish(&broker, version, &["-q", "1", "-t", "d/1", "-m", "one"]);
        publish(&broker, version, &["-q", "2", "-t", "d/2", "-m", "two"]);
        publish(
            &broker,
            version,
            &["-q", "0", "-t", "d/0", "-m", "not kept"],
        );
        publish(&broker, version, &["-q", "1", "-t", "d/3", "-m", "three"]);
        let mut again = Subscriber::raw(&broker, version, &args);
        let got: Vec<_> = (0..3).map(|_| again.message()).collect();
        assert_eq!(got, ["=d/1 one", "=d/2 two", "=d/3 three"]);
        drop(again);
        // A clean start ends it, for the other version's turn.
        drop(Subscriber::new(
            &broker,
            version,
            &["-i", "durable", "-t", "none"],
        ));
    }
}

#[test]
fn a_killed_clients_will() {
    let broker = start(Options::default());
    for version in VERSIONS {
        let mut watcher = Subscriber::new(&broker, version, &["-t", "will/#", "-F", "=%t %p"]);
        let will = [
            "--will-topic",
            "will/x",
            "--will-payload",
            "gone",
            "-t",
            "none",
        ];
        let mut client = Subscriber::new(&broker, version, &will);
        client.child.kill().unwrap();
        assert_eq!(watcher.message(), "=will/x gone");
    }
}

#[test]
fn version_5_properties_and_expiry() {
    let broker = start(Options::default());
    let args = ["-t", "p", "-F", "=%p %P %R %C %E"];
    let mut subscriber = Subscriber::new(&broker, "mqttv5", &args);
    let property = |p: &'static [&'static str]| [&["-D", "publish"], p].concat();
    let mut args = vec!["-t", "p", "-m", "load"];
    args.extend(property(&["user-property", "key", "value"]));
    args.extend(property(&["response-topic", "answer"]));
    args.extend(property(&["content-type", "text"]));
    args.extend(property(&["message-expiry-interval", "60"]));
    publish(&broker, "mqttv5", &args);
    assert_eq!(subscriber.message(), "=load key:value answer text 60");

    for (topic, expiry) in [("e/short", "1"), ("e/long", "60")] {
        let mut args = vec!["-r", "-t", topic, "-m", "x"];
        let expiry = ["-D", "publish", "message-expiry-interval", expiry];
        args.extend(expiry);
        publish(&broker, "mqttv5", &args);
    }
    std::thread::sleep(Duration::from_millis(1100));
    let args = ["-t", "e/#", "-F", "=%t", "-W", "1"];
    assert_eq!(
        Subscriber::new(&broker, "mqttv5", &args).rest(),
        ["=e/long"]
    );
}

#[test]
fn user_names_and_passwords() {
    let credential = pubgauge_broker::Credential {
        username: "u".into(),
        password: b"right".to_vec(),
    };
    let broker = start(Options {
        credentials: vec![credential],
        ..Options::default()
    });
    for version in VERSIONS {
        publish(
            &broker,
            version,
            &["-u", "u", "-P", "right", "-t", "x", "-m", "y"],
        );
        let args = ["-u", "u", "-P", "wrong", "-t", "x", "-m", "y"];
        let output = command("mosquitto_pub", &broker, version, &args)
            .output()
            .unwrap();
        assert!(!output.status.success());
    }
}
