//! Starting and stopping, against the real mosquitto and against scripts that misbehave.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use pubgauge_driver::{
    Driver, DriverError, Fleet, FleetConfig, Mapping, Mark, Settings, Target, Traits, Unsupported,
};
use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_simulator::SimulatedDriver;
use pubgauge_testbed::{
    Catalog, Running, StartError, Stopped, SystemFile, Testbed, from_address, procfs,
};
use pubgauge_testing::{alive, port_of, until};

/// A system made of a shell script, for which `$PORT` and `$DIR` are set.
fn script(script: &str, rest: &str) -> SystemFile {
    let text = format!(
        r#"
name = "script"
driver = "mqtt"
endpoints = ["mqtt://127.0.0.1:{{port}}"]
[find]
executables = ["/bin/sh"]
[run]
command = ["{{exe}}", "-c", '''{script}''']
ports = ["port"]
env = {{ PORT = "{{port}}", DIR = "{{dir}}" }}
{rest}
"#
    );
    SystemFile::parse(&text, "script.toml").unwrap()
}

const READY_LINE: &str = "[ready]\nstdout-line = \"ready\"\ntime-out-s = 10";

fn start(system: &SystemFile, scratch: &Path) -> Result<Running, StartError> {
    Testbed::new().unwrap().start(system, None, scratch)
}

fn fail(system: &SystemFile) -> String {
    let scratch = tempfile::tempdir().unwrap();
    let error = start(system, scratch.path())
        .err()
        .expect("must not start")
        .to_string();
    assert!(
        is_empty(scratch.path()),
        "the private folder is left behind"
    );
    error
}

fn is_empty(folder: &Path) -> bool {
    folder.read_dir().unwrap().next().is_none()
}

/// Logs in with MQTT 3.1.1 and expects the broker's consent.
fn mqtt_connect(port: u16) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream
        .write_all(b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x3c\x00\x01a")
        .unwrap();
    let mut answer = [0; 4];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer, [0x20, 2, 0, 0]);
}

#[test]
fn mosquitto_starts_serves_and_stops() {
    let scratch = tempfile::tempdir().unwrap();
    let mosquitto = Catalog::load(&[]).unwrap().get("mosquitto").unwrap();
    for (variant, persistence) in [
        (None, "persistence false"),
        (Some("persistent"), "persistence true"),
    ] {
        let testbed = Testbed::new().unwrap();
        let running = testbed.start(&mosquitto, variant, scratch.path()).unwrap();
        mqtt_connect(port_of(&running));
        assert_eq!(running.exit_reason(), None);
        assert!(
            running
                .version
                .as_deref()
                .unwrap()
                .starts_with(|c: char| c.is_ascii_digit())
        );
        assert!(running.record.files["mosquitto.conf"].contains(persistence));
        assert!(!running.record.files["mosquitto.conf"].contains('{'));
        assert!(running.target.features.contains(&"mqtt-5".to_owned()));
        assert_eq!(
            running.target.features.contains(&"persistent".to_owned()),
            variant.is_some()
        );
        let pids = running.pids();
        assert_eq!(pids, [running.pid().unwrap()]);
        let name = std::fs::read_to_string(format!("/proc/{}/comm", pids[0])).unwrap();
        assert_eq!(name.trim(), "mosquitto");
        assert_eq!(running.stop(), Stopped::Orderly);
        assert!(!alive(pids[0]));
        assert!(is_empty(scratch.path()));
    }
}

#[test]
fn a_folder_that_systems_misread_is_refused_by_name() {
    use std::os::unix::ffi::OsStringExt;
    let mosquitto = Catalog::load(&[]).unwrap().get("mosquitto").unwrap();
    let within = tempfile::tempdir().unwrap();
    for (name, what) in [
        ("a b", "a space"),
        ("a'b", "the character `'`"),
        ("a\"b", "the character `\"`"),
        ("a:b", "the character `:`"),
        ("a\nb", "the character `\n`"),
    ] {
        let scratch = within.path().join(name);
        let error = start(&mosquitto, &scratch).err().expect(name).to_string();
        assert!(error.contains(what) && error.contains("TMPDIR"), "{error}");
        assert!(error.starts_with("mosquitto "), "{error}");
        assert!(!scratch.exists(), "{name}: refused before anything is made");
    }
    let bytes = std::ffi::OsString::from_vec(b"a\xffb".to_vec());
    let error = start(&mosquitto, &within.path().join(bytes)).err().unwrap();
    assert!(error.to_string().contains("not UTF-8"), "{error}");
    let fine = within.path().join("é温$-+=@,~");
    mqtt_connect(port_of(&start(&mosquitto, &fine).unwrap()));
}

#[test]
fn two_mosquittos_run_side_by_side() {
    let scratch = tempfile::tempdir().unwrap();
    let mosquitto = Catalog::load(&[]).unwrap().get("mosquitto").unwrap();
    let both = [0, 1].map(|_| start(&mosquitto, scratch.path()).unwrap());
    assert_ne!(port_of(&both[0]), port_of(&both[1]));
    for running in &both {
        mqtt_connect(port_of(running));
    }
    drop(both);
    assert!(is_empty(scratch.path()));
}

#[test]
fn a_port_that_is_taken_is_exchanged_for_another() {
    // The script claims that its port is taken until it was started three times.
    let scratch = tempfile::tempdir().unwrap();
    let count = scratch.path().join("count");
    let body = format!(
        r#"echo x >> {0}; if [ $(wc -l < {0}) -lt 3 ]; then echo "Error: Address already in use" >&2; exit 1; fi; echo ready; exec sleep 100"#,
        count.display()
    );
    let running = start(&script(&body, READY_LINE), &scratch.path().join("s")).unwrap();
    assert_eq!(std::fs::read_to_string(&count).unwrap().lines().count(), 3);
    drop(running);
}

#[test]
fn a_port_that_is_always_taken_is_reported() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let mosquitto = Catalog::load(&[]).unwrap().get("mosquitto").unwrap();
    let mut fixed = mosquitto.clone();
    let port = taken.local_addr().unwrap().port().to_string();
    fixed.files[0].content = fixed.files[0].content.replace("{port}", &port);
    let error = fail(&fixed);
    assert!(error.contains("5 times in a row"), "{error}");
    assert!(error.contains("Address already in use"), "{error}");
}

#[test]
fn a_missing_program_is_reported_with_the_command_that_installs_it() {
    let text = r#"
name = "absent"
driver = "mqtt"
[find]
executables = ["no-such-program"]
variable = "PUBGAUGE_NO_SUCH"
[install]
apt = ["apt-get install -y absent"]
[run]
command = ["{exe}"]
ports = ["port"]
[ready]
tcp = ["port"]
"#;
    let error = fail(&SystemFile::parse(text, "absent.toml").unwrap());
    assert!(error.contains("no no-such-program on PATH"), "{error}");
    assert!(error.contains("PUBGAUGE_NO_SUCH"), "{error}");
    assert!(
        error.contains("hint: install it with: apt-get install -y absent"),
        "{error}"
    );
}

#[test]
fn a_server_that_exits_at_once_is_quoted() {
    let error = fail(&script(
        "echo starting; echo bad config in line 3 >&2; exit 7",
        READY_LINE,
    ));
    assert!(error.contains("exit code 7"), "{error}");
    assert!(error.contains("bad config in line 3"), "{error}");
    let error = fail(&script("kill -SEGV $$", READY_LINE));
    assert!(error.contains("SIGSEGV"), "{error}");
}

#[test]
fn a_server_that_never_becomes_ready_is_stopped() {
    let never = script(
        "echo still loading; exec sleep 100",
        "[ready]\nstdout-line = \"ready\"\ntime-out-s = 0.3",
    );
    let error = fail(&never);
    assert!(error.contains("not ready after 0.3 s"), "{error}");
    assert!(error.contains("no line with `ready`"), "{error}");
    assert!(error.contains("still loading"), "{error}");
}

#[test]
fn another_programs_listener_is_no_sign_of_readiness() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    let mut system = script(
        "exec sleep 100",
        "[ready]\ntcp = [\"port\"]\ntime-out-s = 0.3",
    );
    system.values.insert("port".into(), port.to_string());
    let error = fail(&system);
    assert!(
        error.contains("does not accept connections on its port `port`"),
        "{error}"
    );
}

#[test]
fn a_server_that_ignores_sigterm_is_killed() {
    let scratch = tempfile::tempdir().unwrap();
    let stubborn = script(
        "trap '' TERM; echo ready; while :; do sleep 1; done",
        &format!("{READY_LINE}\n[stop]\ngrace-s = 0.2"),
    );
    let running = start(&stubborn, scratch.path()).unwrap();
    let pids = running.pids();
    assert!(!pids.is_empty());
    assert_eq!(running.stop(), Stopped::Killed);
    assert!(pids.iter().all(|pid| !alive(*pid)));
    assert!(is_empty(scratch.path()));
}

#[test]
fn a_stopped_server_still_gets_its_sigterm() {
    let scratch = tempfile::tempdir().unwrap();
    let mosquitto = Catalog::load(&[]).unwrap().get("mosquitto").unwrap();
    let running = start(&mosquitto, scratch.path()).unwrap();
    // SAFETY: a signal to a process that this test has started.
    unsafe { libc::kill(running.pid().unwrap(), libc::SIGSTOP) };
    assert_eq!(running.stop(), Stopped::Orderly);
}

#[test]
fn daemons_of_a_server_are_stopped_with_it() {
    let scratch = tempfile::tempdir().unwrap();
    // One daemon in a session of its own with a parent that is gone, deaf to SIGTERM.
    let body = r#"(setsid sh -c 'trap "" TERM; echo $$ > $DIR/daemon; while :; do sleep 1; done' &); while [ ! -s $DIR/daemon ]; do sleep 0.02; done; echo ready; exec sleep 100"#;
    let system = script(body, &format!("{READY_LINE}\n[stop]\ngrace-s = 0.2"));
    let running = start(&system, scratch.path()).unwrap();
    let daemon = running.target.scratch.join("daemon");
    let daemon: i32 = std::fs::read_to_string(daemon)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let pids = running.pids();
    assert!(pids.contains(&daemon) && pids.contains(&running.pid().unwrap()));
    assert_eq!(running.stop(), Stopped::Killed);
    assert!(pids.iter().all(|pid| !alive(*pid)));
}

#[test]
fn a_server_killed_in_the_middle_is_noticed() {
    let scratch = tempfile::tempdir().unwrap();
    let body = "sleep 1000 & echo serving >&2; echo ready; wait";
    let running = start(&script(body, READY_LINE), scratch.path()).unwrap();
    let pids = running.pids();
    assert_eq!(pids.len(), 2);
    assert_eq!(running.exit_reason(), None);
    // SAFETY: a signal to a process that this test has started.
    unsafe { libc::kill(running.pid().unwrap(), libc::SIGKILL) };
    until("its end", || running.exit_reason().is_some());
    let error = running.exit_reason().unwrap();
    assert!(
        error.contains("SIGKILL") && error.contains("serving"),
        "{error}"
    );
    assert_eq!(running.stop(), Stopped::AlreadyOver);
    assert!(
        pids.iter().all(|pid| !alive(*pid)),
        "its child is left behind"
    );
}

#[test]
fn a_killed_guard_takes_the_server_with_it() {
    let scratch = tempfile::tempdir().unwrap();
    let mosquitto = Catalog::load(&[]).unwrap().get("mosquitto").unwrap();
    let running = start(&mosquitto, scratch.path()).unwrap();
    let pid = running.pid().unwrap();
    // SAFETY: a signal to a process that this test has started.
    unsafe { libc::kill(running.root_pid().unwrap(), libc::SIGKILL) };
    until("its end", || !alive(pid));
    assert!(running.exit_reason().is_some());
}

#[test]
fn a_panic_stops_the_system() {
    let scratch = tempfile::tempdir().unwrap();
    let mosquitto = Catalog::load(&[]).unwrap().get("mosquitto").unwrap();
    let seen = std::sync::Mutex::new(0);
    let outcome = std::panic::catch_unwind(|| {
        let running = start(&mosquitto, scratch.path()).unwrap();
        *seen.lock().unwrap() = running.pid().unwrap();
        std::panic::resume_unwind(Box::new("deliberate"));
    });
    assert!(outcome.is_err());
    let pid = seen.into_inner().unwrap();
    assert!(pid > 0 && !alive(pid));
    assert!(is_empty(scratch.path()));
}

#[test]
fn the_environment_is_clean_and_hooks_run_in_order() {
    let scratch = tempfile::tempdir().unwrap();
    let notes = scratch.path().join("notes");
    let hook = |when: &str| {
        format!(
            "[[hooks]]\nwhen = \"{when}\"\ncommand = [\"/bin/sh\", \"-c\", \"echo {when} $PORT >> {}\"]\n",
            notes.display()
        )
    };
    let hooks: String = ["after-stop", "before-stop", "after-ready", "before-start"]
        .map(hook)
        .concat();
    let system = script(
        "env > $DIR/env; echo ready; exec sleep 100",
        &format!("{READY_LINE}\n{hooks}"),
    );
    let running = start(&system, &scratch.path().join("s")).unwrap();
    let env = std::fs::read_to_string(running.target.scratch.join("env")).unwrap();
    assert!(env.contains(&format!("HOME={}", running.target.scratch.display())));
    assert!(!env.contains("CARGO"), "{env}");
    let port = port_of(&running);
    drop(running);
    let expected = ["before-start", "after-ready", "before-stop", "after-stop"];
    let expected: String = expected.map(|when| format!("{when} {port}\n")).concat();
    assert_eq!(std::fs::read_to_string(notes).unwrap(), expected);
}

#[test]
fn a_failing_hook_fails_the_start() {
    let hook = "[[hooks]]\nwhen = \"after-ready\"\ncommand = [\"/bin/sh\", \"-c\", \"echo no such user; exit 3\"]";
    let error = fail(&script(
        "echo ready; exec sleep 100",
        &format!("{READY_LINE}\n{hook}"),
    ));
    assert!(
        error.contains("exit code 3") && error.contains("no such user"),
        "{error}"
    );
    let hook =
        "[[hooks]]\nwhen = \"before-start\"\ncommand = [\"/bin/sleep\", \"100\"]\ntime-out-s = 0.1";
    let error = fail(&script(
        "echo ready; exec sleep 100",
        &format!("{READY_LINE}\n{hook}"),
    ));
    assert!(error.contains("did not end within 0.1 s"), "{error}");
}

/// The simulated system in place of an MQTT server, at the fourth attempt.
struct Late(Arc<AtomicUsize>);

impl Driver for Late {
    fn name(&self) -> &'static str {
        "mqtt"
    }

    fn resolve(&self, s: &Settings, t: &Target) -> Result<Vec<Mapping>, Vec<Unsupported>> {
        SimulatedDriver.resolve(s, t)
    }

    fn traits(&self, settings: &Settings) -> Traits {
        SimulatedDriver.traits(settings)
    }

    fn open(&self, mut config: FleetConfig) -> Result<Box<dyn Fleet>, DriverError> {
        assert!(config.target.endpoints[0].starts_with("mqtt://127.0.0.1:"));
        if self.0.fetch_add(1, Relaxed) < 3 {
            return Err(DriverError::new("broker unavailable"));
        }
        config.target.shared = SimulatedDriver.shared(&config.settings, Mark::from_seed(1));
        SimulatedDriver.open(config)
    }
}

#[test]
fn a_probe_by_the_driver_decides() {
    let scratch = tempfile::tempdir().unwrap();
    let system = script(
        "exec sleep 100",
        "[ready]\nprobe = \"connect\"\ntime-out-s = 10",
    );
    assert!(fail(&system).contains("asks for a probe"));
    let asked = Arc::new(AtomicUsize::new(0));
    let testbed = Testbed::new().unwrap().drivers(Late(asked.clone()));
    testbed.start(&system, None, scratch.path()).unwrap();
    assert_eq!(asked.load(Relaxed), 4);
}

#[test]
fn limits_reach_the_system() {
    let scratch = tempfile::tempdir().unwrap();
    let cpu = pubgauge_testbed::usable_cpus()[0];
    let limits = format!("[limits]\ncpus = [{cpu}]\naddress-space-mib = 512\nopen-files = 77");
    let body = "grep -E 'Cpus_allowed_list' /proc/self/status > $DIR/l; ulimit -v >> $DIR/l; ulimit -n >> $DIR/l; echo ready; exec sleep 100";
    let running = start(
        &script(body, &format!("{READY_LINE}\n{limits}")),
        scratch.path(),
    )
    .unwrap();
    let seen = std::fs::read_to_string(running.target.scratch.join("l")).unwrap();
    assert_eq!(seen, format!("Cpus_allowed_list:\t{cpu}\n524288\n77\n"));
}

#[test]
fn limits_that_cannot_be_had_are_named() {
    for (limits, expected) in [
        (
            "cpus = [0, 999]",
            "there is no processor 999 here\n  hint: limits.cpus may name: ",
        ),
        ("open-files = 99999999", "limits.open-files may be "),
    ] {
        let system = script(
            "echo ready; exec sleep 100",
            &format!("{READY_LINE}\n[limits]\n{limits}"),
        );
        let error = fail(&system);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_library_has_a_folder_but_no_process() {
    let scratch = tempfile::tempdir().unwrap();
    let direct = Catalog::load(&[]).unwrap().get("zeromq-direct").unwrap();
    let running = start(&direct, scratch.path()).unwrap();
    assert!(running.target.scratch.is_dir());
    assert!(running.target.endpoints.is_empty() && running.pids().is_empty());
    assert_eq!(running.stop(), Stopped::NothingToStop);
    assert!(is_empty(scratch.path()));
}

#[test]
fn an_external_system_gets_its_user_and_password() {
    let scratch = tempfile::tempdir().unwrap();
    let system = from_address("mqtts://ann@broker.example", &MqttDriver.into()).unwrap();
    let testbed = Testbed::new()
        .unwrap()
        .password(Some(pubgauge_driver::Secret::new("s3cret")));
    let running = testbed.start(&system, None, scratch.path()).unwrap();
    assert_eq!(running.target.endpoints, ["mqtts://broker.example:8883"]);
    assert_eq!(running.target.username.as_deref(), Some("ann"));
    assert_eq!(running.target.password.as_ref().unwrap().reveal(), "s3cret");
    assert!(!format!("{:?}{:?}", running.target, running.record).contains("s3cret"));
}

#[test]
fn a_broker_from_a_file_outside_the_repository() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("mine.toml"),
        r#"
name = "my-broker"
driver = "mqtt"
endpoints = ["mqtt://127.0.0.1:{port}"]
[find]
executables = ["mosquitto"]
[version]
command = ["{exe}", "-h"]
pattern = "mosquitto version {version}"
[run]
command = ["{exe}", "-p", "{port}", "-v"]
ports = ["port"]
[ready]
log-line = "running"
tcp = ["port"]
"#,
    )
    .unwrap();
    let catalog = Catalog::load(&[folder.path().to_owned()]).unwrap();
    let running = start(&catalog.get("my-broker").unwrap(), &folder.path().join("s")).unwrap();
    mqtt_connect(port_of(&running));
    let listing = catalog.list(&Testbed::with_program("/bin/true"));
    let mine = listing
        .iter()
        .find(|system| system.name == "my-broker")
        .unwrap();
    // Nothing is run to list it.
    assert!(mine.found && mine.version.is_none() && running.version.is_some());
    assert_eq!(
        mine.file.as_deref(),
        Some(folder.path().join("mine.toml").as_path())
    );
}

#[test]
fn nothing_of_the_tests_own_processes_is_counted() {
    let scratch = tempfile::tempdir().unwrap();
    let running = start(
        &script("echo ready; exec sleep 100", READY_LINE),
        scratch.path(),
    )
    .unwrap();
    let guard = running.root_pid().unwrap();
    assert!(!running.pids().contains(&guard));
    assert!(procfs::descendants(std::process::id() as i32).contains(&guard));
}
