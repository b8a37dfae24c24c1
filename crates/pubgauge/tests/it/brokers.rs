//! Several brokers of one system side by side: counts, shares, ends.

use crate::common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pubgauge_testing::free_port;
use pubgauge_testing::mosquitto::Mosquitto;

use common::*;
use serde_json::Value;

/// 6 publishers of a topic each, and 2 subscribers of all: 12 deliveries a round.
const STUDY: &str = r#"
name = "side by side"
[phases]
warm-up = "300ms"
measure = "1s"
[topology]
brokers = 3
[[workload]]
name = "fan"
[[workload.flow]]
publishers = 6
subscribers = 2
topic = "t/{n}"
dimensions = { n = 6 }
subscribe = ["t/#"]
payload = "64B"
rate = "600/s"
"#;

fn brokers(trial: &Value) -> &Vec<Value> {
    trial["brokers"].as_array().expect("several brokers")
}

/// The 600 messages of the measurement, but for those that a client without a processor left unsent, each delivered to both
/// subscribers, and nothing else.
#[track_caller]
fn is_exact(trial: &Value) {
    assert_ne!(verdict(trial), "broken", "{}", reasons(trial));
    adds_up(trial);
    // On a busy machine the last message that is due may not leave any more; one alone is no verdict.
    let unsent = count(trial, "not_sent");
    assert!(
        unsent <= 1 || verdict(trial) == "client-bound",
        "{}",
        brief(trial)
    );
    let sent = 600 - unsent;
    let counted = ["published", "expected", "delivered", "lost"].map(|name| count(trial, name));
    assert_eq!(counted, [sent, 2 * sent, 2 * sent, 0], "{}", brief(trial));
    assert_eq!(trial["workload"]["publishers"], 6);
    assert_eq!(trial["workload"]["subscribers"], 2);
}

/// Each publishes on its topics alone, and each of the two subscribers is connected to each broker.
#[test]
fn three_mosquittos_count_what_their_clients_count() {
    let place = Place::new();
    place.write("study.toml", STUDY);
    let run = ["run", "study.toml", "--on", "mosquitto", "--out", "run"];
    let done = place.run(&run);
    place.is_clean();
    assert!(
        done.out.contains("mosquitto: 3 brokers, each: "),
        "{}",
        done.out
    );
    let trial = place.trial("run");
    is_exact(&trial);
    assert_eq!(count(&trial, "connections.made"), 6 + 2 * 3);

    let own = count(&trial, "published")
        + count(&trial, "warm_up.published")
        + count(&trial, "sentinels");
    let of = |name: &str| {
        brokers(&trial)
            .iter()
            .map(|b| count(b, name))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("connections"), [4, 4, 4]);
    let published = of("published");
    assert_eq!(published.iter().sum::<u64>(), own);
    assert_eq!(of("delivered").iter().sum::<u64>(), 2 * own);
    // Two topics of six each, in turn: alike but for the sentinels.
    let measured = own - count(&trial, "sentinels");
    for share in published {
        assert!(share >= measured / 3 - 2, "{share} of {own}");
    }
    let cpu: f64 = brokers(&trial)
        .iter()
        .map(|b| b["cpu_s"].as_f64().unwrap())
        .sum();
    let all = trial["system_cpu_s"].as_f64().unwrap();
    assert!((cpu - all).abs() < 1e-6, "{cpu} s beside {all} s");
    assert!(
        brokers(&trial)
            .iter()
            .all(|b| count(b, "rss_bytes") > 1_000_000)
    );
    assert_eq!(count(&trial, "system_processes"), 3);
    let agreed = |check: &&Value| {
        check["counts"][1][0] == "mosquitto" && check["counts"][0][1] == check["counts"][1][1]
    };
    assert_eq!(
        trial["checks"]
            .as_array()
            .unwrap()
            .iter()
            .filter(agreed)
            .count(),
        2
    );
    let files = place.path_to("run/trials/0000/system");
    for number in 1..=3 {
        assert!(
            files
                .join(format!("broker-{number}-mosquitto.conf"))
                .exists()
        );
    }
    // One broker instead: the same messages.
    let one = [
        "run",
        "study.toml",
        "--on",
        "mosquitto",
        "--brokers",
        "1",
        "--out",
        "one",
    ];
    place.run(&one);
    let trial = place.trial("one");
    is_exact(&trial);
    assert_eq!(count(&trial, "connections.made"), 8);
    assert_eq!(trial.get("brokers"), None);
}

#[test]
fn one_of_three_is_killed_and_named() {
    let place = Place::new();
    let mut args = vec!["run", "--on", "mosquitto", "--brokers", "3", "--out", "run"];
    args.extend(["--publishers", "3", "--topics", "3", "--subscribers", "3"]);
    args.extend(argv("--rate 300/s --duration 100s --warm-up 200ms"));
    let mut run = place.start(&args);
    run.measures();
    let systems = run.systems();
    assert_eq!(systems.len(), 3, "{systems:?}");
    systems.iter().for_each(|pid| works(*pid));
    kill(systems[1], libc::SIGKILL);
    run.ends_within(Duration::from_secs(60))
        .exits(2)
        .assert_says("broken: ");
    place.is_clean();
    let trial = place.trial("run");
    is_broken(
        &trial,
        &[
            " of 3: mosquitto was ended by SIGKILL",
            "the system ended during the trial",
        ],
    );
    assert!(count(&trial, "published") > 0, "what was measured is kept");
}

/// One of three that cannot start: nothing of the others is left.
#[test]
fn a_broker_that_does_not_start_is_named() {
    let place = Place::new();
    // The second finds the mark of the first beside its folder.
    let hook =
        "[[hooks]]\nwhen = \"before-start\"\ncommand = [\"mkdir\", \"{dir}/../started\"]\n\n";
    let hook = [("[ready]", &*format!("{hook}[ready]"))];
    place.system("reference-broker", "once", &hook);
    let mut args = argv("run --systems mine --on once --brokers 2 --out run");
    args.extend(["--topics", "2", "--publishers", "2", "--rate", "100/s"]);
    args.extend(SHORT);
    place.run(&args).exits(2);
    place.is_clean();
    is_broken(&place.trial("run"), &["broker 2 of 2: "]);
}

#[test]
fn two_brokers_that_run_already_are_one_system() {
    let place = Place::new();
    let both = [Mosquitto::start(), Mosquitto::start()];
    let address = format!("{}+{}", both[0].address(), both[1].address());
    place.write("study.toml", STUDY.replace("[topology]\nbrokers = 3\n", ""));
    place.run(&["run", "study.toml", "--on", &address, "--out", "run"]);
    place.is_clean();
    let trial = place.trial("run");
    is_exact(&trial);
    assert_eq!(trial["system"]["name"], address.as_str());
    let there: Vec<&str> = brokers(&trial)
        .iter()
        .map(|b| b["address"].as_str().unwrap())
        .collect();
    assert_eq!(there, [both[0].address(), both[1].address()]);
    assert_eq!(trial["system_cpu_s"], Value::Null, "out of sight");

    // A file says the same.
    std::fs::create_dir(place.path_to("mine")).unwrap();
    let file = format!(
        "name = \"lab\"\ndriver = \"mqtt\"\nkind = \"external\"\nendpoints = [{:?}, {:?}]\n",
        both[0].address(),
        both[1].address()
    );
    place.write("mine/lab.toml", file);
    place.run(&argv("run study.toml --systems mine --on lab --out lab"));
    let trial = place.trial("lab");
    is_exact(&trial);
    assert_eq!(brokers(&trial).len(), 2);

    // Another number than there are addresses cannot be had.
    let args = [
        "run",
        "study.toml",
        "--on",
        &address,
        "--brokers",
        "3",
        "--out",
        "three",
    ];
    place
        .run(&args)
        .exits(3)
        .assert_says("has addresses of 2 of them");
    assert!(!place.path_to("three").exists());
}

/// Nobody watches the process of a broker that ran already: its connections tell.
#[test]
fn one_of_two_that_ran_already_is_killed_and_named() {
    let place = Place::new();
    let both = [Mosquitto::start(), Mosquitto::start()];
    let address = format!("{}+{}", both[0].address(), both[1].address());
    let mut args = vec!["run", "--on", &address, "--out", "run"];
    args.extend(["--publishers", "2", "--topics", "2", "--subscribers", "2"]);
    args.extend(argv("--rate 200/s --duration 100s --warm-up 200ms"));
    let mut run = place.start(&args);
    run.measures();
    both.iter().for_each(|broker| works(broker.pid()));
    both[1].signal(libc::SIGKILL);
    run.ends_within(Duration::from_secs(60)).exits(2);
    place.is_clean();
    let trial = place.trial("run");
    is_broken(&trial, &["all 2 connections to broker 2 of 2 were lost"]);
    assert!(count(&trial, "published") > 0, "what was measured is kept");
}

#[test]
fn what_cannot_be_placed_is_said_where_it_stands() {
    let place = Place::new();
    let cases = [
        ("brokers = 0", "there can be 1 to 64"),
        ("brokers = 65", "there can be 1 to 64"),
        ("brokers = 7", "has 6 topics"),
        ("brokers = \"two\"", "expected a whole number"),
    ];
    for (line, expected) in cases {
        place.write("study.toml", STUDY.replace("brokers = 3", line));
        let done = place
            .run(&["plan", "study.toml", "--on", "mosquitto"])
            .exits(3);
        let done = done.assert_says("study.toml:7:11: ").assert_says(expected);
        assert!(done.err.contains(line), "{}", done.err);
    }
    place.write("study.toml", STUDY);
    let on = ["--on", "zeromq-direct", "--brokers", "2"];
    let args: Vec<&str> = ["plan", "study.toml"].into_iter().chain(on).collect();
    place
        .run(&args)
        .exits(3)
        .assert_says("there is no broker to have several of");
    let flags = [
        "plan",
        "--on",
        "mosquitto",
        "--brokers",
        "2",
        "--topics",
        "1",
    ];
    place
        .run(&flags)
        .exits(3)
        .assert_says("--brokers 2: workload `flags` has 1 topic");
    let done = place
        .run(&["plan", "study.toml", "--on", "mosquitto"])
        .exits(0);
    assert!(
        done.out.contains("over 3 brokers\n  with 4 clients each"),
        "{}",
        done.out
    );
}

/// The reference broker keeps it too, over both versions of MQTT and with the handshakes of QoS 2.
#[test]
fn two_reference_brokers_that_run_already() {
    let (place, homes) = (Place::new(), [Place::new(), Place::new()]);
    let ports = homes.each_ref().map(|_| free_port());
    let listen = ports.map(|port| format!("127.0.0.1:{port}"));
    let mut servers = Vec::new();
    for (home, listen) in homes.iter().zip(&listen) {
        let mut server = home.start(&["serve", "reference-broker", "--listen", listen]);
        server.until("a listener", || {
            std::net::TcpStream::connect(listen).is_ok()
        });
        servers.push(server);
    }
    let address = listen.map(|listen| format!("mqtt://{listen}")).join("+");
    let study = STUDY.replace("[topology]\nbrokers = 3\n", "");
    for (version, qos) in [("3.1.1", "at-least-once"), ("5", "exactly-once")] {
        let settings = format!(
            "[[settings]]\nreliability = {qos:?}\nnative.mqtt.version = {version:?}\n[[workload]]"
        );
        place.write("study.toml", study.replace("[[workload]]", &settings));
        place.run(&["run", "study.toml", "--on", &address, "--out", qos]);
        place.is_clean();
        let trial = place.trial(qos);
        is_exact(&trial);
        let of = |name: &str| {
            brokers(&trial)
                .iter()
                .map(|b| count(b, name))
                .collect::<Vec<_>>()
        };
        assert_eq!(of("connections"), [5, 5]);
    }
}

/// Three nats-servers on loopback that are one cluster.
struct NatsCluster {
    nodes: Vec<Child>,
    /// Ports of clients and of the monitor, node by node.
    ports: Vec<[u16; 2]>,
    _folder: tempfile::TempDir,
}

impl NatsCluster {
    fn start() -> NatsCluster {
        let routes = free_port();
        let folder = tempfile::tempdir().unwrap();
        // Its own notes of who connects would cross, too.
        let file = folder.path().join("nats.conf");
        std::fs::write(&file, "no_sys_acc: true\n").unwrap();
        let mut cluster = NatsCluster {
            nodes: Vec::new(),
            ports: Vec::new(),
            _folder: folder,
        };
        for node in 0..3 {
            let [port, monitor] = [free_port(), free_port()];
            let own = if node == 0 { routes } else { free_port() };
            let line = format!(
                "-a 127.0.0.1 -p {port} -m {monitor} --cluster_name c --cluster nats://127.0.0.1:{own} --routes nats://127.0.0.1:{routes}"
            );
            let started = Command::new("nats-server")
                .arg("-c")
                .arg(&file)
                .args(argv(&line))
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            let started = started.expect("these tests need nats-server (apt install nats-server)");
            cluster.nodes.push(started);
            cluster.ports.push([port, monitor]);
        }
        let end = Instant::now() + Duration::from_secs(60);
        while (0..3).any(|node| cluster.routes(node).len() < 2) {
            assert!(Instant::now() < end, "no cluster of nats-servers");
            std::thread::sleep(Duration::from_millis(50));
        }
        cluster
    }

    /// The routes of a node as it tells them.
    fn routes(&self, node: usize) -> Vec<Value> {
        let ask = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(("127.0.0.1", self.ports[node][1]))?;
            stream.write_all(b"GET /routez HTTP/1.0\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        let answer = ask().unwrap_or_default();
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let told: Value = serde_json::from_str(body).unwrap_or_default();
        told["routes"].as_array().cloned().unwrap_or_default()
    }

    /// Messages that have crossed from one node to another.
    fn crossed(&self) -> u64 {
        let all = (0..3).flat_map(|node| self.routes(node));
        all.map(|route| count(&route, "in_msgs")).sum()
    }

    fn address(&self) -> String {
        let nodes = self
            .ports
            .iter()
            .map(|[port, _]| format!("nats://127.0.0.1:{port}"));
        nodes.collect::<Vec<_>>().join("+")
    }
}

impl Drop for NatsCluster {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            let _ = node.kill();
            let _ = node.wait();
        }
    }
}

/// Publishers and subscribers on different nodes: each message is delivered to both subscribers, and the servers saw as
/// many cross as the plan says.
#[test]
fn three_nodes_of_a_cluster_carry_one_load() {
    let place = Place::new();
    let cluster = NatsCluster::start();
    let address = cluster.address();
    let study = STUDY.replace("brokers = 3", "cluster = true");
    place.write("study.toml", study);
    let crossing =
        "8 of 12 paths from a publisher's topic to a subscriber cross from one node to another";
    let plan = place
        .run(&["plan", "study.toml", "--on", &address])
        .exits(0);
    let words = plan.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(crossing), "{words}");
    let before = cluster.crossed();
    place.run(&["run", "study.toml", "--on", &address, "--out", "run"]);
    place.is_clean();
    let trial = place.trial("run");
    is_exact(&trial);
    // A connection for each client, whatever it hears.
    assert_eq!(count(&trial, "connections.made"), 8);
    let connections = brokers(&trial).iter().map(|b| count(b, "connections"));
    assert_eq!(connections.collect::<Vec<_>>(), [2, 3, 3]);
    // Two publishers are at each node, in turn. What begins at the first, which has no subscriber, goes to both others;
    // what begins at these goes to the other of them: four crossings for three messages, but for the sentinels, which
    // some paths get more often.
    let sentinels = count(&trial, "sentinels");
    let paced = count(&trial, "published") + count(&trial, "warm_up.published");
    let crossed = (cluster.crossed() - before) as f64;
    let expected = (paced + sentinels) as f64 * 4.0 / 3.0;
    assert!(
        (crossed - expected).abs() <= sentinels as f64 + 4.0,
        "{crossed} crossed, not {expected} (with {sentinels} sentinels)"
    );

    // Servers that know nothing of each other are no cluster, and those that pubgauge starts are none.
    let apart = [Mosquitto::start(), Mosquitto::start()];
    let both = format!("{}+{}", apart[0].address(), apart[1].address());
    let mut args = vec!["run", "study.toml", "--on", &both, "--out", "apart"];
    args.extend(["--set", "phases.ready-within=4s"]);
    place.run(&args).exits(2);
    assert_eq!(verdict(&place.trial("apart")), "broken");
    place
        .run(&["plan", "study.toml", "--on", "mosquitto", "--brokers", "2"])
        .exits(3)
        .assert_says("at the addresses of its nodes");
    place
        .run(&["plan", "study.toml", "--on", "mqtt://127.0.0.1:1"])
        .exits(3)
        .assert_says("a cluster of 1 is not possible")
        .assert_says("study.toml:7:11");
}
