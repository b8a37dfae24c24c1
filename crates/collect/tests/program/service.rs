//! Messages to a service manager, over a socket of the test's own; the unit that docs/ has.

use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;

use super::*;

/// The service manager: what it was told.
struct Manager(UnixDatagram);

impl Manager {
    fn new(place: &Place) -> Manager {
        let socket = UnixDatagram::bind(place.path_to("notify")).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(120)))
            .unwrap();
        Manager(socket)
    }

    /// The collector as it would start it, with a watchdog of two seconds.
    fn command(&self, place: &Place, args: &[&str]) -> Command {
        let mut command = place.command(args);
        command
            .env("NOTIFY_SOCKET", place.path_to("notify"))
            .env("WATCHDOG_USEC", "2000000");
        command
    }

    /// The next message, or nothing for so long.
    fn next(&self, within: Duration) -> Option<String> {
        self.0.set_read_timeout(Some(within)).unwrap();
        let mut bytes = [0; 4096];
        let read = self.0.recv(&mut bytes).ok()?;
        Some(String::from_utf8(bytes[..read].to_vec()).unwrap())
    }

    /// Waits until something is told that has this.
    #[track_caller]
    fn until(&self, what: &str) -> String {
        loop {
            let told = self.next(Duration::from_secs(120));
            let told = told.unwrap_or_else(|| panic!("waited in vain for {what}"));
            if told.contains(what) {
                return told;
            }
        }
    }
}

fn collect_file(place: &Place, broker: &Mosquitto) {
    let url = url(broker);
    let text = format!("brokers = [{url:?}]\ntopics = [\"m/#\"]\nto = \"data\"\n");
    place.write("collect.toml", text);
}

const COLLECT: [&str; 2] = ["--config", "collect.toml"];

#[test]
fn systemd_is_told_what_goes_on() {
    let broker = Mosquitto::start();
    let place = new_place();
    collect_file(&place, &broker);
    let manager = Manager::new(&place);
    let collector = place.spawn(manager.command(&place, &COLLECT));
    assert_eq!(manager.until("READY=1"), "READY=1\n");
    let alive = loop {
        let alive = manager.until("WATCHDOG=1");
        if alive.contains("1 of 1 broker") {
            break alive;
        }
    };
    let words = "STATUS=0 msg/s, 0 stored, oldest waits 0 ms, 0 files, 1 of 1 broker\nWATCHDOG=1\n";
    assert_eq!(alive, words);
    for text in [None, Some("to = 3")] {
        if let Some(text) = text {
            place.write("collect.toml", text);
        }
        collector.signal(libc::SIGHUP);
        let reloading = manager.until("RELOADING=1");
        assert!(reloading.contains("MONOTONIC_USEC="), "{reloading}");
        manager.until("READY=1");
    }
    collector.signal(libc::SIGTERM);
    manager.until("STOPPING=1");
    collector.wait_for_end().exits(0);
}

/// The loop hangs where it tells something and nobody reads it. Then there is no sign of life, and there is again when
/// it is read.
#[test]
fn a_loop_that_hangs_gives_no_sign_of_life() {
    let broker = Mosquitto::start();
    let place = new_place();
    collect_file(&place, &broker);
    let manager = Manager::new(&place);
    let (mut said, mut near) = std::io::pipe().unwrap();
    const ROOM: i32 = 4096;
    // SAFETY: the descriptor is open, and the call takes a number.
    let room = unsafe { libc::fcntl(near.as_raw_fd(), libc::F_SETPIPE_SZ, ROOM) };
    assert_eq!(room, ROOM);
    let mut command = manager.command(&place, &[&COLLECT[..], &["--listen", "0"]].concat());
    command.stderr(Stdio::from(near.try_clone().unwrap()));
    let collector = place.spawn_with_stderr(command);
    let mut text = String::new();
    while !text.contains("connected, with") {
        let mut bytes = [0; 4096];
        let read = said.read(&mut bytes).unwrap();
        text += std::str::from_utf8(&bytes[..read]).unwrap();
    }
    let address = listens_at(&text).unwrap();
    manager.until("WATCHDOG=1");
    near.write_all(&[b'.'; ROOM as usize]).unwrap();
    drop(broker);
    // Messages of the broker that is gone find no room.
    while get(&address, "/live").starts_with("HTTP/1.1 200") {
        std::thread::sleep(Duration::from_millis(200));
    }
    let until_empty = || while manager.next(Duration::from_millis(1)).is_some() {};
    until_empty();
    let told = manager.until("STATUS=");
    assert!(!told.contains("WATCHDOG=1"), "{told}");
    let reader = std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    manager.until("WATCHDOG=1");
    assert!(get(&address, "/live").starts_with("HTTP/1.1 200"));
    collector.signal(libc::SIGTERM);
    collector.wait_for_end();
    drop(near);
    reader.join().unwrap().unwrap();
}

/// systemd's own check of the unit, without a manager that runs.
#[test]
fn the_unit_is_valid() {
    let place = new_place();
    let unit = std::fs::read_to_string(repository("docs/pubgauge-collect@.service")).unwrap();
    let installed = "/usr/bin/pubgauge-collect";
    assert!(unit.contains(&format!("ExecStart={installed} --config")));
    let unit = unit.replace(installed, PROGRAM);
    let path = place.write("pubgauge-collect@meters.service", unit);
    let mut command = Command::new("systemd-analyze");
    command
        .args(["verify", "--man=no", "--recursive-errors=no"])
        .arg(path);
    let output = command
        .output()
        .expect("this test needs systemd-analyze (apt install systemd)");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}
