//! `pubgauge systems --install`, with a Maven of our own that brings what it is told, and systems
//! from files outside the repository.

use crate::common;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use pubgauge_testing::free_port;
use pubgauge_testing::mosquitto::Mosquitto;
use pubgauge_testing::until;

use common::*;

/// A server in Java that does nothing but say so.
const SERVER: &str = r#"
name = "my-server"
driver = "mqtt"
[find]
executables = ["java"]
[find.paths]
home = ["{cache}/my-server-1.0"]
jar = ["{cache}/my-server-1.0/lib/*.jar"]
class = ["{cache}/my-server-1.0/classes/A.class"]
[version]
path = "{home}"
pattern = "my-server-{version}"
[install.maven]
folder = "my-server-1.0"
archives = ["org.example:dist:1.0:tar.gz:bin"]
jars = ["org.example:server:1.0"]
files = [{ path = "src/A.java", content = "class A { String braces = \"{dir}\"; }" }]
compile = ["src/A.java"]
download-mb = 7
[run]
command = ["{exe}", "-cp", "{home}/lib/*", "A"]
[ready]
stdout-line = "ready"
"#;

/// Copies into `-DoutputDirectory=...` what is asked for; `$MVN_DOES` comes first.
const MVN: &str = r#"#!/bin/sh
eval "$MVN_DOES"
for a; do case "$a" in
  -DoutputDirectory=*) to=${a#*=};;
  -Dartifact=*) artifact=${a#*=};;
  --file=*) grep -q '<artifactId>server</artifactId><version>1.0</version>' "${a#*=}" || exit 9;;
esac; done
mkdir -p "$to"
if [ -n "$artifact" ]; then
  mkdir -p "$to/x/dist-1.0" && echo hello > "$to/x/dist-1.0/readme"
  tar -C "$to/x" -czf "$to/dist-1.0-bin.tar.gz" dist-1.0 && rm -r "$to/x"
else
  echo jar > "$to/server-1.0.jar"
fi
"#;

/// Writes `classes/A.class`.
const JAVAC: &str = r#"#!/bin/sh
while [ "$1" != -d ]; do shift; done
grep -q '"{dir}"' "$3" && mkdir -p "$2" && echo class > "$2/A.class"
"#;

/// A place with a system file and tools of our own.
fn prepared() -> Place {
    let place = Place::new();
    for folder in ["bin", "systems"] {
        std::fs::create_dir(place.path_to(folder)).unwrap();
    }
    place.write("systems/my-server.toml", SERVER);
    for (name, text) in [("mvn", MVN), ("javac", JAVAC), ("java", "#!/bin/sh\n")] {
        let path = place.write(&format!("bin/{name}"), text);
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    place
}

/// `pubgauge systems --systems systems ...` in which Maven does this first.
fn systems(place: &Place, more: &[&str], mvn_does: &str) -> Command {
    let mut args = vec!["systems", "--systems", "systems"];
    args.extend(more);
    let mut command = place.command(&args);
    command
        .env(
            "PATH",
            format!("{}:/usr/bin:/bin", place.path_to("bin").display()),
        )
        .env("PUBGAUGE_CACHE", place.path_to("cache"))
        .env("MVN_DOES", mvn_does);
    command
}

/// The files of the cache, hidden things included, but for the lock.
fn cached(place: &Place) -> Vec<String> {
    let Ok(entries) = place.path_to("cache").read_dir() else {
        return Vec::new();
    };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name != ".lock").collect();
    names.sort();
    names
}

const INSTALL: [&str; 2] = ["--install", "my-server"];
const YES: [&str; 3] = ["--install", "my-server", "--yes"];

#[test]
fn what_will_be_done_is_shown_and_nobody_is_overruled() {
    let place = prepared();
    let before = place.files();
    let done = place.finish(systems(&place, &INSTALL, "")).exits(3);
    let folder = place.path_to("cache/my-server-1.0").display().to_string();
    for shown in [
        &format!("my-server: into {folder}, downloads about 7 MB"),
        "-Dartifact=org.example:dist:1.0:tar.gz:bin",
        &format!("tar -xzf {folder}/archives/dist-1.0-bin.tar.gz -C {folder}"),
        &format!("javac -cp '{folder}/lib/*' -d {folder}/classes {folder}/src/A.java"),
        ".m2/repository",
    ] {
        assert!(done.out.contains(shown), "{shown}\n{}", done.out);
    }
    done.assert_says("standard input is no terminal")
        .assert_says("pubgauge systems --install my-server --yes");
    assert_eq!(place.files(), before, "nothing was changed");
}

#[test]
fn an_installation_is_found_and_not_done_twice() {
    let place = prepared();
    let list = place.finish(systems(&place, &["--json"], "")).exits(0);
    let mine = |text: &str| {
        let list: serde_json::Value = serde_json::from_str(text).unwrap();
        let mut list = list.as_array().unwrap().iter();
        list.find(|s| s["name"] == "my-server").unwrap().clone()
    };
    assert_eq!(mine(&list.out)["found"], false);
    assert_eq!(
        mine(&list.out)["install"][0]["commands"][0],
        "pubgauge systems --install my-server"
    );
    let done = place.finish(systems(&place, &YES, "")).exits(0);
    assert!(
        done.out.ends_with("my-server is installed\n"),
        "{}",
        done.out
    );
    assert_eq!(cached(&place), ["my-server-1.0"]);
    let read =
        |path: &str| std::fs::read_to_string(place.path_to("cache/my-server-1.0").join(path));
    assert_eq!(read("readme").unwrap(), "hello\n");
    assert_eq!(read("classes/A.class").unwrap(), "class\n");
    let list = place.finish(systems(&place, &["--json"], "")).exits(0);
    assert_eq!(mine(&list.out)["version"], "1.0");
    // Again: nothing to do, and Maven is not asked.
    let done = place.finish(systems(&place, &YES, "exit 1")).exits(0);
    assert_eq!(done.out, "my-server is installed already: 1.0\n");
    // Described anew: out of date, and done anew.
    place.write(
        "systems/my-server.toml",
        SERVER.replace("String braces", "String more"),
    );
    let list = place.finish(systems(&place, &["--json"], "")).exits(0);
    let reason = mine(&list.out)["reason"].to_string();
    assert!(reason.contains("from another description"), "{reason}");
    place.finish(systems(&place, &YES, "")).exits(0);
    let source = read("src/A.java").unwrap();
    assert!(source.contains("String more"), "{source}");
    // Damaged: done anew.
    std::fs::remove_file(place.path_to("cache/my-server-1.0/lib/server-1.0.jar")).unwrap();
    place.finish(systems(&place, &YES, "")).exits(0);
    assert_eq!(cached(&place), ["my-server-1.0"]);
    place.is_clean();
}

#[test]
fn a_failure_is_quoted_and_leaves_nothing() {
    let place = prepared();
    let does = "echo 'Could not transfer artifact: Connection refused' >&2; exit 1";
    place
        .finish(systems(&place, &YES, does))
        .exits(2)
        .assert_says("Connection refused")
        .assert_says("is Maven Central within reach?");
    assert_eq!(cached(&place), [""; 0]);
    // A file where the folder should be.
    std::fs::remove_dir_all(place.path_to("cache")).unwrap();
    place.write("cache", "");
    place
        .finish(systems(&place, &YES, ""))
        .exits(2)
        .assert_says("another folder: PUBGAUGE_CACHE");
}

#[test]
fn an_interrupted_installation_leaves_nothing_half_done() {
    let place = prepared();
    let slow = "echo up > up; sleep 100";
    let going = || {
        let command = systems(&place, &YES, slow);
        let started = place.spawn(command);
        // The step works in the folder that is being prepared.
        until("Maven is at work", || {
            cached(&place).iter().any(|name| {
                name.starts_with(".installing-")
                    && place.path_to("cache").join(name).join("up").exists()
            })
        });
        started
    };
    let run = going();
    run.signal(libc::SIGINT);
    run.wait_for_end()
        .exits(2)
        .assert_says("ended by the user; nothing is left of it");
    assert_eq!(cached(&place), [""; 0]);
    place.is_clean();

    // Killed: Maven goes with it, and the next installation clears up.
    let run = going();
    run.signal(libc::SIGKILL);
    run.wait_for_end().exits(-libc::SIGKILL);
    place.has_no_process_soon();
    assert_eq!(cached(&place).len(), 1);
    place.finish(systems(&place, &YES, "")).exits(0);
    assert_eq!(cached(&place), ["my-server-1.0"]);
}

#[test]
fn two_at_once_do_not_collide() {
    let place = prepared();
    let place = &place;
    std::thread::scope(|scope| {
        let both = [0, 1]
            .map(|_| scope.spawn(move || place.finish(systems(place, &YES, "sleep 0.5")).exits(0)));
        for one in both {
            one.join().unwrap();
        }
    });
    assert_eq!(cached(place), ["my-server-1.0"]);
    place.is_clean();
}

#[test]
fn what_cannot_be_installed_says_why() {
    let place = prepared();
    let before = place.files();
    let fails = |name: &str| {
        let done = place.finish(systems(&place, &["--install", name, "--yes"], ""));
        done.exits(3)
    };
    fails("my-sever").assert_says("did you mean `my-server`?");
    fails("connext").assert_says("licence file");
    fails("jorammq").assert_says("PUBGAUGE_JORAMMQ=mqtt://HOST:PORT");
    assert_eq!(place.files(), before);
    std::fs::remove_file(place.path_to("bin/mvn")).unwrap();
    let mut command = systems(&place, &YES, "");
    command.env("PATH", place.path_to("bin"));
    place
        .finish(command)
        .exits(3)
        .assert_says("there is no mvn on PATH")
        .assert_says("hint: install it with: ");
    place
        .finish(systems(&place, &["--yes"], ""))
        .exits(3)
        .assert_says("--install");
}

/// A broker of the user's own, as docs/add-a-broker.md shows it.
fn own_broker(folder: &Path) {
    let page = std::fs::read_to_string(repository("docs/add-a-broker.md")).unwrap();
    let (_, rest) = page.split_once("```toml\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    std::fs::write(folder.join("my-broker.toml"), example).unwrap();
}

#[test]
fn a_broker_of_the_users_own_is_listed_and_measured() {
    let place = Place::new();
    // Neither in the repository nor where pubgauge works.
    let outside = tempfile::tempdir().unwrap();
    own_broker(outside.path());
    let folder = outside.path().display().to_string();
    let done = place.run(&["systems", "--systems", &folder]).exits(0);
    let line = done.out.lines().find(|l| l.starts_with("my-broker "));
    let words: Vec<&str> = line.unwrap().split_whitespace().collect();
    assert_eq!(words[1..3], ["mqtt", "found"], "{line:?}");
    let mut args = argv("run --on my-broker --rate 200/s --out run");
    args.extend(SHORT);
    args.extend(["--systems", &folder]);
    place.run(&args);
    let trial = place.trial("run");
    adds_up(&trial);
    assert_eq!(trial["system"]["name"], "my-broker");
    assert!(trial["system_cpu_s"].is_number());
    place.is_clean();
    // An environment variable sets it too; without either it is not known.
    let mut command = place.command(&["plan", "--on", "my-broker", "--rate", "9/s"]);
    command.env("PUBGAUGE_SYSTEMS", outside.path());
    place.finish(command).exits(0);
    place
        .run(&["plan", "--on", "my-broker", "--rate", "9/s"])
        .exits(3);
    // A mistake in it is shown with its place.
    std::fs::write(
        outside.path().join("my-broker.toml"),
        "name = \"x\"\ndrivr = 1\n",
    )
    .unwrap();
    place
        .run(&["systems", "--systems", &folder])
        .exits(3)
        .assert_says("my-broker.toml:2:1: there is no key `drivr` here");
}

#[test]
fn a_described_broker_that_runs_elsewhere_is_measured_under_its_name() {
    let place = Place::new();
    let broker = Mosquitto::start();
    let mut args = vec!["run", "--on", "jorammq", "--rate", "200/s", "--out", "run"];
    args.extend(SHORT);
    place
        .run(&args)
        .exits(3)
        .assert_says("PUBGAUGE_JORAMMQ does not give its address");
    let mut command = place.command(&args);
    command.env("PUBGAUGE_JORAMMQ", broker.address());
    place.finish(command);
    let trial = place.trial("run");
    adds_up(&trial);
    assert_eq!(trial["system"]["name"], "jorammq");
    let mut command = place.command(&args);
    command.env("PUBGAUGE_JORAMMQ", "mqtt://u:secret@h");
    let done = place.finish(command).exits(3);
    assert!(!done.err.contains("secret"), "{}", done.err);
    for (given, says) in [
        ("h:1883", "for example PUBGAUGE_JORAMMQ=mqtt://HOST:PORT"),
        ("amqp://h", "the driver mqtt does not speak to amqp://h"),
    ] {
        let mut command = place.command(&args);
        command.env("PUBGAUGE_JORAMMQ", given);
        place.finish(command).exits(3).assert_says(says);
    }
}

#[test]
fn publishers_and_subscribers_connect_to_ports_of_their_own() {
    let place = Place::new();
    let second = free_port();
    let lines = format!("allow_anonymous true\nlistener {second} 127.0.0.1");
    let broker = Mosquitto::start_with(&lines);
    let address = format!("mqtt://127.0.0.1:{},{second}", broker.port);
    let mut args = vec!["run", "--on", &address, "--rate", "200/s", "--out", "run"];
    args.extend(SHORT);
    place.run(&args);
    adds_up(&place.trial("run"));
    // Nobody listens where the subscribers should connect to.
    let address = format!("mqtt://127.0.0.1:{},{}", broker.port, free_port());
    (args[2], args[6]) = (&address, "half");
    place
        .run(&args)
        .exits(2)
        .assert_says("nothing was measured");
    assert!(!place.path_to("half").exists());
    place.is_clean();
}

#[test]
fn what_a_killed_pubgauge_left_is_removed_by_the_next() {
    let place = Place::new();
    let tmp = || {
        let entries = place.path_to("../tmp").read_dir().unwrap();
        entries.map(|e| e.unwrap().path()).collect::<Vec<_>>()
    };
    let mut args = argv("run --on mosquitto --rate 200/s --out killed");
    args.extend(["--duration", "60s"]);
    let run = place.start(&args);
    until("the system runs in its folder", || {
        !tmp().is_empty() && !run.systems().is_empty()
    });
    let [left] = tmp().try_into().unwrap();
    run.signal(libc::SIGKILL);
    run.wait_for_end().exits(-libc::SIGKILL);
    place.has_no_process_soon();
    assert!(left.exists());
    // Something of the same name that another process still uses stays.
    let other = place.path_to("../tmp/pubgauge-run-0123456789abcdef");
    std::fs::create_dir(&other).unwrap();
    let lock = std::fs::File::open(&other).unwrap();
    lock.lock().unwrap();
    let mut args = argv("run --on mosquitto --rate 200/s --out run");
    args.extend(SHORT);
    place.run(&args);
    assert!(!left.exists());
    assert_eq!(tmp(), [other]);
}

/// A system that a package manager installs.
const PACKAGED: &str = r#"
name = "packaged"
driver = "mqtt"
[find]
executables = ["packaged-server"]
[install]
apt = ["apt-get install -y packaged"]
[run]
command = ["{exe}"]
[ready]
stdout-line = "ready"
"#;

/// Says when it has begun, and installs once `$GO` is there.
const APT: &str = r#"#!/bin/sh
[ "$1" = update ] && exit 0
echo up > "$AT/up"
until [ -e "$AT/go" ]; do sleep 0.01; done
printf '#!/bin/sh\n' > "$AT/bin/packaged-server" && chmod +x "$AT/bin/packaged-server"
echo done > "$AT/done"
"#;

/// Says of the packages of dpkg what is in a file.
const DPKG_QUERY: &str = "#!/bin/sh\ncat \"$AT/statuses\"\n";

/// A place with a package manager of our own, and the command that installs with it.
fn with_packages() -> (Place, impl Fn(&Place) -> Command) {
    let place = Place::new();
    for folder in ["bin", "systems", "dpkg", "dpkg/updates"] {
        std::fs::create_dir(place.path_to(folder)).unwrap();
    }
    place.write("systems/packaged.toml", PACKAGED);
    place.write("statuses", "installed ok bash\nconfig-files ok old\n");
    for (name, text) in [("apt-get", APT), ("dpkg-query", DPKG_QUERY)] {
        let path = place.write(&format!("bin/{name}"), text);
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let install = |place: &Place| {
        let args = ["systems", "--systems", "systems", "--install", "packaged"];
        let mut command = place.command(&[&args[..], &["--yes"]].concat());
        let path = format!("{}:/usr/bin:/bin", place.path_to("bin").display());
        command.env("PATH", path).env("AT", place.path_to("."));
        command.env("DPKG_ADMINDIR", place.path_to("dpkg"));
        command
    };
    (place, install)
}

#[test]
fn a_package_manager_runs_to_its_end_whatever_ends_pubgauge() {
    for (signal, code) in [
        (libc::SIGINT, 2),
        (libc::SIGTERM, 2),
        (libc::SIGHUP, 2),
        (libc::SIGKILL, -libc::SIGKILL),
    ] {
        let (place, install) = with_packages();
        let run = place.spawn(install(&place));
        until("the package manager is at work", || {
            place.path_to("up").exists()
        });
        run.signal(signal);
        let done = run.wait_for_end().exits(code);
        if signal != libc::SIGKILL {
            done.assert_says("finishes in the background")
                .assert_says("`apt-get install -y packaged` (process ");
        }
        assert!(
            !place.path_to("done").exists(),
            "it is at work all the time"
        );
        place.write("go", "");
        until("it has come to its end", || place.path_to("done").exists());
        place.has_no_process_soon();
        let done = place.finish(install(&place)).exits(0);
        assert_eq!(done.out, "packaged is installed already\n");
    }
}

#[test]
fn a_dpkg_that_was_interrupted_is_named_with_what_mends_it() {
    let (place, install) = with_packages();
    // Half installed: the executable is there, and nothing is installed before dpkg is mended.
    place.write("go", "");
    place.finish(install(&place)).exits(0);
    place.write(
        "statuses",
        "installed ok bash\nhalf-installed reinstreq packaged\ntriggers-pending ok libc-bin\n",
    );
    place
        .finish(install(&place))
        .exits(3)
        .assert_says("packaged is half-installed, libc-bin is triggers-pending")
        .assert_says("hint: as root: dpkg --configure -a; apt-get install -f -y");
    place.write("statuses", "installed ok bash\n");
    place.write("dpkg/updates/0001", "");
    place
        .finish(install(&place))
        .exits(3)
        .assert_says("dpkg --configure -a");
    std::fs::remove_file(place.path_to("dpkg/updates/0001")).unwrap();
    // At work, started by another.
    let lock = std::fs::File::create(place.path_to("dpkg/lock-frontend")).unwrap();
    let mut held: libc::flock = unsafe { std::mem::zeroed() };
    held.l_type = libc::F_WRLCK as libc::c_short;
    // SAFETY: the structure is whole, the file is open for writing.
    let locked =
        unsafe { libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(&lock), libc::F_SETLK, &held) };
    assert_eq!(locked, 0);
    place
        .finish(install(&place))
        .exits(3)
        .assert_says(&format!("process {} has locked", std::process::id()));
    drop(lock);
    place.finish(install(&place)).exits(0);
}
