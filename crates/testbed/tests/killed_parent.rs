//! No orphan when pubgauge itself is killed, and everything stopped when it is told to: this
//! program starts itself again as the victim.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use pubgauge_testbed::{Catalog, SystemFile, Testbed, stop_everything};
use pubgauge_testing::alive;

/// A broker beside a server with a daemon of its own that hears no signal but SIGKILL.
const FORKING: &str = r#"
name = "forking"
driver = "mqtt"
[find]
executables = ["/bin/sh"]
[run]
command = ["{exe}", "-c", '''(setsid sh -c 'trap "" TERM HUP; echo x > {dir}/up; while :; do sleep 1; done' &); while [ ! -e {dir}/up ]; do sleep 0.02; done; echo ready; exec sleep 100''']
[ready]
stdout-line = "ready"
[stop]
grace-s = 0.2
"#;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--victim") {
        victim(Path::new(&arguments[at + 1]), &arguments[at + 2]);
        return ExitCode::SUCCESS;
    }
    pubgauge_testing::own_main(&[
        ("killed_without_a_chance", killed_without_a_chance),
        ("stopped_from_another_thread", stopped_from_another_thread),
    ])
}

/// Starts two systems from a thread that ends, names their processes, and waits.
fn victim(scratch: &Path, then: &str) {
    let scratch = scratch.to_owned();
    let start = move || {
        let testbed = Testbed::new().expect("own program");
        let mosquitto = Catalog::load(&[])
            .expect("catalog")
            .get("mosquitto")
            .expect("known");
        let forking = SystemFile::parse(FORKING, "forking.toml").expect("right");
        [mosquitto, forking].map(|system| testbed.start(&system, None, &scratch).expect("starts"))
    };
    // The thread that starts a system may end long before it.
    let running = std::thread::spawn(start).join().expect("no panic");
    std::thread::sleep(Duration::from_millis(100));
    let pids: Vec<String> = running
        .iter()
        .flat_map(|r| r.pids())
        .map(|p| p.to_string())
        .collect();
    println!("{}", pids.join(" "));
    match then {
        "wait" => std::thread::sleep(Duration::from_secs(100)),
        _ => {
            // As on Ctrl-C: another thread stops everything, twice, while this one holds on.
            let stoppers = [0, 1].map(|_| std::thread::spawn(stop_everything));
            for stopper in stoppers {
                stopper.join().expect("no panic");
            }
            let testbed = Testbed::new().expect("own program");
            let forking = SystemFile::parse(FORKING, "forking.toml").expect("right");
            let late = testbed.start(&forking, None, &std::env::temp_dir());
            assert!(
                late.is_err(),
                "started although everything is being stopped"
            );
            println!("stopped");
            // Ends without destructors.
            std::process::exit(0);
        }
    }
}

fn killed_without_a_chance() {
    let scratch = tempfile::tempdir().expect("folder");
    let (mut victim, _, pids) = begin(scratch.path(), "wait");
    assert!(pids.len() >= 3, "mosquitto, server, daemon: {pids:?}");
    assert!(pids.iter().all(|pid| alive(*pid)));
    victim.kill().expect("killed");
    victim.wait().expect("reaped");
    let deadline = Instant::now() + Duration::from_secs(60);
    while pids.iter().any(|pid| alive(*pid)) {
        assert!(Instant::now() < deadline, "orphans: {pids:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn stopped_from_another_thread() {
    let scratch = tempfile::tempdir().expect("folder");
    let (mut victim, mut lines, pids) = begin(scratch.path(), "stop");
    let mut line = String::new();
    lines.read_line(&mut line).expect("line");
    assert_eq!(line, "stopped\n");
    assert!(pids.iter().all(|pid| !alive(*pid)), "left behind: {pids:?}");
    assert!(victim.wait().expect("reaped").success());
    assert!(scratch.path().read_dir().expect("folder").next().is_none());
}

fn begin(scratch: &Path, then: &str) -> (Child, impl BufRead, Vec<i32>) {
    let mut victim = Command::new(std::env::current_exe().expect("own program"))
        .arg("--victim")
        .arg(scratch)
        .arg(then)
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut lines = BufReader::new(victim.stdout.take().expect("piped"));
    let mut line = String::new();
    lines.read_line(&mut line).expect("line");
    let pids = line
        .split_whitespace()
        .map(|pid| pid.parse().expect("number"))
        .collect();
    (victim, lines, pids)
}
