//! Nothing is left of a network whose process is killed; and who may make one. This program starts itself again as
//! the process that is killed. Needs root, and vde2 where the kernel has no netem.

#[path = "it/common/mod.rs"]
mod common;

use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use common::network;
use pubgauge_lab::Lab;
use pubgauge_network::Link;
use pubgauge_testbed::procfs;
use pubgauge_testing::alive;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("--victim") => victim(),
        Some("--once") => once(Link::default()),
        Some("--once-delayed") => once(delayed()),
        _ => {
            return pubgauge_testing::own_main(&[
                ("killed_without_a_chance", killed_without_a_chance),
                ("without_privileges", without_privileges),
            ]);
        }
    }
    ExitCode::SUCCESS
}

/// Two networks, one of them with programs; names the namespaces, and waits.
fn victim() {
    let labs = [delayed(), Link::default()].map(|link| {
        Lab::up(&network((1, Link::default()), (1, link))).unwrap_or_else(|why| panic!("{why}"))
    });
    let hosts = labs.iter().flat_map(Lab::hosts);
    let inodes = hosts.map(|host| host.namespace().file().metadata().expect("open").ino());
    let words: Vec<String> = inodes.map(|inode| inode.to_string()).collect();
    println!("{}", words.join(" "));
    std::thread::sleep(Duration::from_secs(100));
}

/// A network up and down; says why not.
fn once(link: Link) {
    match Lab::up(&network((1, Link::default()), (1, link))) {
        Ok(lab) => println!("up: {}", lab.hosts().len()),
        Err(why) => println!("not up: {why}"),
    }
}

/// A link that takes programs where the kernel has no netem.
fn delayed() -> Link {
    Link {
        delay_ns: 2_000_000,
        ..Link::default()
    }
}

fn own() -> PathBuf {
    std::env::current_exe().expect("own program")
}

fn killed_without_a_chance() {
    let scratch = tempfile::tempdir().expect("folder");
    let mut victim: Child = Command::new(own())
        .arg("--victim")
        .env("TMPDIR", scratch.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut line = String::new();
    let mut lines = BufReader::new(victim.stdout.take().expect("piped"));
    lines.read_line(&mut line).expect("line");
    let inodes: Vec<u64> = line
        .split_whitespace()
        .map(|inode| inode.parse().expect("number"))
        .collect();
    assert_eq!(inodes.len(), 4, "two hosts each: {line}");
    assert!(inodes.iter().all(|inode| is_held(*inode)));
    let programs = procfs::descendants(victim.id() as i32);
    // The folders of both, with the sockets of the one's programs, if it has any.
    assert_eq!(entries(scratch.path()), 2);
    // Another process takes nothing from one that lives.
    assert_eq!(
        run_once("--once-delayed", &own(), scratch.path(), &[]),
        "up: 2\n"
    );
    assert_eq!(entries(scratch.path()), 2);

    victim.kill().expect("killed");
    victim.wait().expect("reaped");
    let deadline = Instant::now() + Duration::from_secs(60);
    let left = || {
        let held = inodes.iter().filter(|inode| is_held(**inode)).count();
        held + programs.iter().filter(|pid| alive(**pid)).count()
    };
    while left() > 0 {
        assert!(Instant::now() < deadline, "{} left of {programs:?}", left());
        std::thread::sleep(Duration::from_millis(5));
    }
    // The folders are left, until the next start.
    assert_eq!(entries(scratch.path()), 2);
    assert_eq!(
        run_once("--once-delayed", &own(), scratch.path(), &[]),
        "up: 2\n"
    );
    assert_eq!(entries(scratch.path()), 0);
}

/// A user without privileges is told what it takes; in a user namespace all works.
fn without_privileges() {
    let place = tempfile::tempdir().expect("folder");
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o777)).expect("ours");
    let program = place.path().join("lab");
    std::fs::copy(own(), &program).expect("copied");
    let nobody = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ];
    let said = run_once("--once", &program, place.path(), &nobody);
    let hint = "`unshare --user --map-root-user pubgauge ...`";
    assert!(
        said.starts_with("not up: ") && said.contains("takes root") && said.contains(hint),
        "{said}"
    );
    let mapped = ["unshare", "--user", "--map-root-user"];
    let said = run_once(
        "--once",
        &program,
        place.path(),
        &[&nobody[..], &mapped].concat(),
    );
    assert_eq!(said, "up: 2\n");
}

/// Output of a process that makes a network once, started by `before`.
fn run_once(how: &str, program: &Path, scratch: &Path, before: &[&str]) -> String {
    let program = program.to_str().expect("plain");
    let argv = [before, &[program, how]].concat();
    let output = Command::new(argv[0])
        .args(&argv[1..])
        .env("TMPDIR", scratch)
        .stderr(Stdio::inherit())
        .output()
        .expect("this test needs util-linux");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn entries(folder: &Path) -> usize {
    folder.read_dir().expect("folder").count()
}

/// Whether any process is in a namespace or has its file open.
fn is_held(inode: u64) -> bool {
    let name = format!("net:[{inode}]");
    let is = |path: PathBuf| std::fs::read_link(path).is_ok_and(|to| to.as_os_str() == &name[..]);
    let processes = std::fs::read_dir("/proc").expect("proc").flatten();
    processes.into_iter().any(|process| {
        let files = std::fs::read_dir(process.path().join("fd"));
        let mut files = files.into_iter().flatten().flatten();
        is(process.path().join("ns/net")) || files.any(|file| is(file.path()))
    })
}
