//! Studies that cannot fit into this process or this host are refused before anything is started.

use crate::common;

use std::process::Command;

use common::*;

/// A run that is refused: says so, and leaves nothing.
#[track_caller]
fn refused(place: &Place, command: Command, says: &[&str]) {
    let before = place.files();
    let mut done = place.finish(command).exits(3);
    for text in says {
        done = done.assert_says(text);
    }
    done.assert_says("hint: ");
    assert_eq!(place.files(), before);
    place.is_clean();
}

fn crowd<'a>(on: &'a str, publishers: &'a str, subscribers: &'a str) -> Vec<&'a str> {
    let mut args = vec!["run", "--on", on, "--out", "run", "--rate", "100/s"];
    args.extend(["--publishers", publishers, "--subscribers", subscribers]);
    args.extend(SHORT);
    args
}

#[test]
fn descriptors_of_both_ends_of_every_link() {
    // 40 publishers and 40 subscribers are 80 clients, but 1600 connections with both ends here:
    // too many for one process on each side.
    let place = Place::new();
    let mut args = crowd("zeromq-direct", "40", "40");
    args.extend(["--processes", "1"]);
    let command = place.command_after("ulimit -n 1200", &args);
    refused(&place, command, &["40 clients need 1", "may open 1200"]);
    // Enough for two, which it takes by itself.
    args.truncate(args.len() - 2);
    let command = place.command_after("ulimit -n 1200", &args);
    place.finish(command);
    let trial = place.trial("run");
    assert_eq!(count(&trial, "connections.made"), 80, "{}", brief(&trial));
    adds_up(&trial);
    // As much as the estimate says is enough.
    let place = Place::new();
    let args = crowd("zeromq-direct", "20", "20");
    let command = place.command_after("ulimit -n 1200", &args);
    place.finish(command);
    let trial = place.trial("run");
    assert_eq!(count(&trial, "connections.made"), 40, "{}", brief(&trial));
    adds_up(&trial);
}

#[test]
fn descriptors_of_the_server() {
    let place = Place::new();
    let limit = [("[stop]", "[limits]\nopen-files = 60\n\n[stop]")];
    place.system("mosquitto", "mosquitto", &limit);
    let mut args = crowd("mosquitto", "50", "3");
    args.extend(["--systems", "mine"]);
    let says = [
        "mosquitto needs 61 open files for 53 connections",
        "may open 60",
    ];
    refused(&place, place.command(&args), &says);
    // One less than that is served.
    let mut args = crowd("mosquitto", "50", "2");
    args.extend(["--systems", "mine"]);
    place.run(&args);
    let trial = place.trial("run");
    assert_eq!(count(&trial, "connections.made"), 52, "{}", brief(&trial));
    adds_up(&trial);
}

#[test]
fn local_ports() {
    let place = Place::new();
    let narrow = "echo 40000 40009 > /proc/sys/net/ipv4/ip_local_port_range";
    for (on, publishers, needed) in [
        // One source address for all, as nothing says otherwise.
        ("mqtt://192.0.2.1:1883", "10", "11 local ports"),
        // Each publisher is reached under a port of its own.
        ("zeromq-direct", "10", "11 local ports"),
    ] {
        let args = crowd(on, publishers, "1");
        let command = place.command_apart(&["--net"], narrow, &args);
        refused(&place, command, &[needed, "there are 10", "source address"]);
    }
}

#[test]
fn memory_for_the_accounts() {
    // 10^10 pairs of a subscriber and a stream are more than any machine has memory for.
    let place = Place::new();
    let args = crowd("simulated", "100000", "100000");
    refused(
        &place,
        place.command(&args),
        &[
            "GiB of memory at the least",
            "are available",
            "10000000000 pairs of subscriber and stream",
        ],
    );
    // `plan` says the same.
    let mut args = crowd("simulated", "100000", "100000");
    args[0] = "plan";
    args.retain(|arg| *arg != "--out" && *arg != "run");
    refused(&place, place.command(&args), &["GiB of memory"]);
}
