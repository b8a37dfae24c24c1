//! Files and sockets of a trial as others on the machine and on the network see them.

use crate::common;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use common::*;

/// Sockets that a library opens beyond loopback, and nothing can keep it from: system, start of the
/// local address. SECURITY.md says why.
const BEYOND_LOOPBACK: [(&str, &str); 0] = [];

/// Sockets that are gone within this are not open to others: Erlang has one on all interfaces for each list
/// of interfaces, and RabbitMQ one for a moment to see that its port is free.
const MOMENT: Duration = Duration::from_millis(500);

/// Files and folders below `folder` that the group or others may use, with their modes; symbolic
/// links have none of their own.
fn open_to_others(folder: &Path, found: &mut Vec<String>) -> usize {
    let mut files = 0;
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let (path, Ok(meta)) = (entry.path(), entry.path().symlink_metadata()) else {
            continue;
        };
        if meta.is_symlink() {
            continue;
        }
        if meta.mode() & 0o077 != 0 {
            found.push(format!("{:o} {}", meta.mode() & 0o7777, path.display()));
        }
        if meta.is_dir() {
            files += open_to_others(&path, found)
        } else {
            files += 1
        }
    }
    files
}

/// Whether a socket of this address hears the machine itself alone.
fn is_loopback(local: &str) -> bool {
    let address = local.rsplit_once(':').map_or(local, |(address, _)| address);
    address.ends_with("%lo")
        || address.starts_with("127.")
        || address == "[::1]"
        || address.starts_with("[::ffff:127.")
}

/// Runs a system under umask 0, and looks while it is measured.
fn shows_nothing(system: &str) {
    let place = Place::new();
    let mut command = Command::new("sh");
    command.args(["-c", r#"umask 0 && exec "$0" "$@""#]);
    command.arg(program());
    command.args(["run", "--on", system, "--rate", "100/s", "--out", "run"]);
    command.args(["--warm-up", "200ms", "--duration", "60s"]);
    place.run_here(&mut command);
    let mut run = place.spawn(command);
    // Some sockets are there only while a system starts. Of each: when it was seen first, and for how long.
    let mut all = BTreeMap::new();
    let mut look = || {
        let pids: Vec<i32> = place.processes().into_iter().map(|(pid, _)| pid).collect();
        for socket in sockets(&pids) {
            let (first, lasted) = all
                .entry(socket)
                .or_insert((Instant::now(), Duration::ZERO));
            *lasted = first.elapsed();
        }
    };
    let pid = run.pid();
    run.until("a measurement", || {
        look();
        is_measuring(pid)
    });
    look();
    std::thread::sleep(MOMENT);
    look();
    let mut open = Vec::new();
    let files = open_to_others(&place.path_to("../tmp"), &mut open);
    run.signal(libc::SIGINT);
    run.wait_for_end().exits(2);
    place.is_clean();

    let name = system.split(':').next().unwrap();
    if !["cyclonedds", "fastdds"].contains(&name) {
        assert!(files > 0, "{system}: no file was seen");
    }
    assert!(open.is_empty(), "{system}: others may use {open:#?}");
    assert!(!all.is_empty(), "{system}: no socket was seen");
    let excepted = |local: &str| {
        let mut known = BEYOND_LOOPBACK.iter();
        known.any(|(of, start)| *of == name && local.starts_with(start))
    };
    let lasting = all.iter().filter(|(_, (_, lasted))| *lasted >= MOMENT);
    let mut beyond = lasting.filter(|(local, _)| !is_loopback(local) && !excepted(local));
    assert!(beyond.next().is_none(), "{system}: {all:#?}");
}

#[test]
fn mosquitto_shows_nothing_to_others() {
    shows_nothing("mosquitto:persistent");
}

#[test]
fn nats_shows_nothing_to_others() {
    shows_nothing("nats:mqtt");
    shows_nothing("nats");
}

#[test]
fn cyclonedds_shows_nothing_to_others() {
    shows_nothing("cyclonedds");
}

#[test]
fn fastdds_shows_nothing_to_others() {
    shows_nothing("fastdds");
}

/// Tests that take long.
mod long {
    use super::*;

    #[test]
    fn rabbitmq_shows_nothing_to_others() {
        shows_nothing("rabbitmq:amqp");
        shows_nothing("rabbitmq:mqtt");
    }

    #[test]
    fn ejabberd_shows_nothing_to_others() {
        shows_nothing("ejabberd:xmpp");
        shows_nothing("ejabberd:mqtt");
    }
}
