//! Workers on other hosts: agents that join from network namespaces with names of their own. They count as one
//! process does; what happens to one of them breaks its trial and is told by name; who has no business here is
//! refused. Needs root and `ip`.

use crate::common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use common::hosts::{Agent, Hosts, counts, listens, nothing_is_left, paced, paced_on, token};
use common::servers::free_port;
use common::*;
use serde_json::Value;

/// Until a lost host is given up, and some time more on a busy machine.
const GIVEN_UP: Duration = Duration::from_secs(100);

/// The same load from one process and from three hosts: a trial of each, whose parts agree.
fn alone_and_from_three_hosts() -> [Value; 2] {
    let place = Place::new();
    let length = ["--duration", "2s", "--warm-up", "500ms"];
    let done = place.run(&paced("alone", &length));
    done.ran_to_its_end();
    let alone = place.trial("alone");

    let hosts = Hosts::make(3, 0);
    let port = free_port();
    let at = format!("{}:{port}", hosts.own);
    let mut more = length.to_vec();
    more.extend(["--workers-from", "join", "--hosts", "3", "--join-at", &at]);
    let mut run = place.start(&paced("hosts", &more));
    listens(&mut run, &place);
    let token = token(&place);
    let agents: Vec<Agent> = (0..3)
        .map(|rank| Agent::on(&place, &hosts, rank, port))
        .collect();
    let done = run.ends();
    done.ran_to_its_end();
    let said = done.says("waiting up to 300 s for 3 hosts");
    for agent in agents {
        assert_eq!(agent.ends(), Some(0), "told that the run is over");
    }
    nothing_is_left(&place, &token);
    let several = place.trial("hosts");
    adds_up(&alone);
    adds_up(&several);
    assert!(count(&alone, "offered") >= 12 * 20 * 2 - 12, "{said:?}");
    assert_eq!(count(&several, "offered"), count(&alone, "offered"));
    // On a busy machine some may not leave before the end.
    let all_left = |trial| count(trial, "not_sent") == 0;
    if all_left(&alone) && all_left(&several) {
        assert_eq!(counts(&several), counts(&alone), "{}", brief(&several));
    }
    let names: Vec<&str> = several["hosts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|host| host["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["node-0", "node-1", "node-2"]);
    // What the workers cost was told by them; the run's own processes are those of its host.
    for side in ["publishers", "subscribers"] {
        assert!(several["client_cpu_s"][side].as_f64().unwrap() > 0.0);
    }
    assert_eq!(count(&several, "client_processes"), 1);
    let checks = several["checks"].as_array().unwrap();
    assert!(checks.iter().any(|check| {
        let what = check["counts"].to_string();
        what.contains("mosquitto") && check["not_compared"].is_null()
    }));
    [alone, several]
}

#[test]
fn three_hosts_count_as_one_process_does() {
    alone_and_from_three_hosts();
}

/// A clock that is 1000 s ahead is converted to that of the run, to within a bound that is told.
#[test]
fn another_clock_is_converted() {
    let place = Place::new();
    let port = free_port();
    let at = format!("127.0.0.1:{port}");
    let more = [
        "--workers-from",
        "join",
        "--hosts",
        "2",
        "--join-at",
        &at,
        "--duration",
        "2s",
        "--warm-up",
        "200ms",
    ];
    let mut run = place.start(&paced("run", &more));
    listens(&mut run, &place);
    let token = token(&place);
    let own = ["worker", "--join", &at, "--rank", "0", "--quiet"];
    let own = Agent::start(&place, place.command(&own), "pubgauge-join");
    let mut ahead = Command::new("unshare");
    ahead.args(["--time", "--monotonic", "1000", "--fork", "--kill-child"]);
    ahead.arg(program());
    ahead.args(["worker", "--join", &at, "--rank", "1", "--quiet"]);
    let ahead = Agent::start(&place, ahead, "pubgauge-join");
    let done = run.ends();
    done.ran_to_its_end();
    assert_eq!((own.ends(), ahead.ends()), (Some(0), Some(0)));
    nothing_is_left(&place, &token);

    let trial = place.trial("run");
    adds_up(&trial);
    let clock = |rank: usize| &trial["hosts"][rank]["clock"];
    assert_eq!(clock(0)["shared"], true);
    assert_eq!(clock(1)["shared"], false);
    let bound = count(clock(1), "bound_ns");
    let offset = clock(1)["offset_ns"].as_i64().unwrap();
    // The true offset is known. The bound is that of the worker's time, which began a moment later.
    let wrong = (offset + 1_000_000_000_000).unsigned_abs();
    assert!(wrong <= bound + 1_000, "{wrong} ns, bound {bound} ns");
    // Exchanges over loopback take less than 20 ms also where processors are busy.
    assert!((1..20_000_000).contains(&bound), "{bound} ns");
    assert_eq!(count(&trial, "one_way.bound_ns"), bound);
    // What is quoted is known to within a tenth.
    for figure in ["min", "mean", "p50", "p90", "p99", "max"] {
        if let Some(quoted) = trial["latency_ns"][figure].as_f64() {
            assert!(quoted >= 10.0 * bound as f64, "{figure}: {quoted}");
        }
    }
    // Before the sending came at most what the bound explains.
    let largest = trial["latency_ecdf"].as_array().unwrap().last().unwrap()[0].as_u64();
    assert!(largest.unwrap() < 10_000_000_000, "{}", brief(&trial));
    let table = place.run(&["report", "run"]);
    let words: Vec<&str> = table.out.split_whitespace().collect();
    let said = words.join(" ").contains("one-way times are known to");
    assert!(said, "{}", table.out);
}

#[test]
fn strangers_are_refused_and_counted() {
    let place = Place::new();
    let port = free_port();
    let at = format!("127.0.0.1:{port}");
    let more = [
        "--workers-from",
        "join",
        "--hosts",
        "2",
        "--join-at",
        &at,
        "--duration",
        "1s",
        "--warm-up",
        "200ms",
    ];
    let mut run = place.start(&paced("run", &more));
    listens(&mut run, &place);
    let credentials = std::fs::read_to_string(place.at("pubgauge-join")).unwrap();
    let token = token(&place);
    let agent = |file: &str, rank: &str| {
        let args = ["worker", "--join", &at, "--rank", rank, "--quiet"];
        Agent::start(&place, place.command(&args), file)
    };
    let private = |name: &str, text: &str| {
        use std::os::unix::fs::PermissionsExt;
        let path = place.write(name, text);
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).unwrap();
    };
    // The token of another rank.
    let swapped = credentials.replace("token 0 ", "token 2 ");
    private("swapped", &swapped.replace("token 1 ", "token 0 "));
    assert_eq!(agent("swapped", "0").ends(), Some(2));
    // Another run's certificate.
    let digits = credentials.split_whitespace().nth(3).unwrap();
    private("other", &credentials.replace(digits, &"0".repeat(64)));
    assert_eq!(agent("other", "0").ends(), Some(2));
    // Credentials that others may read are not taken.
    place.write("open", &credentials);
    assert_eq!(agent("open", "0").ends(), Some(3));
    for name in ["swapped", "other", "open"] {
        std::fs::remove_file(place.at(name)).unwrap();
    }
    let mut stranger = TcpStream::connect(&at).unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let _ = stranger.read_to_end(&mut Vec::new());

    let first = agent("pubgauge-join", "0");
    run.until_said("1 of 2");
    // A second host of a rank that is here.
    assert_eq!(agent("pubgauge-join", "0").ends(), Some(2));
    let agents = [first, agent("pubgauge-join", "1")];
    let done = run.ends();
    done.ran_to_its_end();
    let done = done.says("1 had a wrong token");
    let done = done.says("1 had a rank that had joined");
    done.says("2 left without a word");
    for agent in agents {
        assert_eq!(agent.ends(), Some(0));
    }
    nothing_is_left(&place, &token);
    adds_up(&place.trial("run"));
}

#[test]
fn hosts_that_do_not_come_are_told_by_rank() {
    let place = Place::new();
    let at = format!("127.0.0.1:{}", free_port());
    let more = ["--workers-from", "join", "--hosts", "3", "--join-at", &at];
    let mut args = paced("run", &more);
    args.extend(["--join-within", "1s"]);
    let done = place.run(&args).exits(2);
    let done = done.says("3 of 3 workers have not joined within 1 s: rank 0, 1, 2");
    done.says("hint:");
    assert!(!place.at("run").exists(), "nothing was begun");
    assert!(!place.at("pubgauge-join").exists());
    place.is_clean();
}

#[test]
fn what_other_hosts_cannot_do_is_told_before_they_are_waited_for() {
    let place = Place::new();
    for (args, says) in [
        (
            vec![
                "run",
                "--on",
                "zeromq-direct",
                "--hosts",
                "2",
                "--set",
                "settings.transport=ipc",
            ],
            "stay on one host",
        ),
        (vec!["run", "--on", "mosquitto"], "--hosts N"),
        (
            vec!["run", "--on", "mosquitto", "--hosts", "2", "--pin", "0"],
            "--pin names processors of this host",
        ),
        (
            vec![
                "run",
                "--on",
                "mosquitto",
                "--hosts",
                "2",
                "--count-interface",
                "lo",
            ],
            "counted on the host of the run alone",
        ),
        (
            vec![
                "run",
                "--on",
                "mosquitto",
                "--set",
                "testbed.network.publisher.hosts=2",
                "--set",
                "testbed.network.subscriber.hosts=3",
                "--hosts",
                "4",
            ],
            "2 publisher and 3 subscriber hosts, and the run has 4",
        ),
        (
            vec![
                "run",
                "--on",
                "mosquitto",
                "--set",
                "testbed.network.publisher.rate=95Mbit/s",
                "--set",
                "testbed.network.subscriber.hosts=1",
                "--hosts",
                "2",
            ],
            "leave all but `hosts` out",
        ),
    ] {
        let mut args = args;
        args.extend(["--workers-from", "join", "--out", "run"]);
        place.run(&args).exits(3).says(says);
        assert!(!place.at("run").exists());
    }
    // An agent that lacks what it needs.
    let nobody = place.run(&["worker", "--join", "127.0.0.1:1"]);
    nobody.exits(3).says("PUBGAUGE_JOIN_FILE=FILE");
    place.is_clean();
}

/// What takes long.
mod long {
    use super::*;

    #[test]
    fn a_lost_host_breaks_its_trial_and_may_come_again() {
        let place = Place::new();
        let hosts = Hosts::make(2, 1);
        let port = free_port();
        let at = format!("{}:{port}", hosts.own);
        let mut run = place.start(&paced(
            "run",
            &[
                "--workers-from",
                "join",
                "--hosts",
                "2",
                "--join-at",
                &at,
                "--repeats",
                "3",
                "--duration",
                "2s",
                "--warm-up",
                "200ms",
            ],
        ));
        listens(&mut run, &place);
        let token = token(&place);
        let first = Agent::on(&place, &hosts, 0, port);
        let second = Agent::on(&place, &hosts, 1, port);
        run.measures();
        kill(second.pid(), libc::SIGKILL);
        drop(second);
        run.until_said("broken");
        // It comes again for the next trial, and is lost for good in it.
        let second = Agent::on(&place, &hosts, 1, port);
        run.measures();
        kill(second.pid(), libc::SIGKILL);
        drop(second);
        let done = run.ends_within(GIVEN_UP).exits(2);
        let done = done.says("lost: host node-1, rank 1");
        done.says("has not joined again within 30 s");
        assert_eq!(first.ends(), Some(0));
        nothing_is_left(&place, &token);
        let results = place.results("run");
        let trials = results["trials"].as_array().unwrap();
        assert_eq!(trials.len(), 2, "the third was not begun");
        for trial in trials {
            is_broken(trial, &["host node-1, rank 1"]);
        }
    }
}

/// What shows on a machine alone that is not busy with other things.
mod real_time {
    use super::*;

    /// All that is due leaves where nothing else runs.
    #[test]
    fn three_hosts_count_as_one_process_does() {
        let [alone, several] = alone_and_from_three_hosts();
        assert_eq!(counts(&several), counts(&alone), "{}", brief(&several));
    }

    /// Publishers of one host are found by subscribers of the others, with nothing between.
    #[test]
    fn without_a_broker_they_count_as_one_process_does() {
        for (number, system) in ["zeromq-direct", "fastdds"].into_iter().enumerate() {
            let place = Place::new();
            let length = ["--duration", "2s", "--warm-up", "500ms"];
            let done = place.run(&paced_on(system, "alone", &length));
            done.ran_to_its_end();

            let hosts = Hosts::make(3, 2 + number as u32);
            let port = free_port();
            let at = format!("{}:{port}", hosts.own);
            let mut more = length.to_vec();
            more.extend(["--workers-from", "join", "--hosts", "3", "--join-at", &at]);
            let mut run = place.start(&paced_on(system, "hosts", &more));
            listens(&mut run, &place);
            let token = token(&place);
            let agents = [0, 1, 2].map(|rank| Agent::on(&place, &hosts, rank, port));
            let done = run.ends();
            done.ran_to_its_end();
            for agent in agents {
                assert_eq!(agent.ends(), Some(0));
            }
            nothing_is_left(&place, &token);
            let several = place.trial("hosts");
            adds_up(&several);
            let alone = counts(&place.trial("alone"));
            assert_eq!(counts(&several), alone, "{system}: {}", brief(&several));
        }
    }
}
