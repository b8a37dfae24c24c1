//! Workers on another host over ssh: an sshd of the test's own, with keys of its own. Needs root, ssh and sshd.

use crate::common;

use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use pubgauge_testing::free_port;

use common::hosts::{flags, paced};
use common::*;

/// An sshd that lets root in with one key; it ends when this is dropped.
struct Sshd {
    process: Child,
    /// The command prefix that reaches it.
    prefix: String,
}

impl Sshd {
    fn start(place: &Place) -> Sshd {
        // From the one before.
        let _ = std::fs::remove_dir_all(place.path_to("ssh"));
        std::fs::create_dir(place.path_to("ssh")).unwrap();
        let dir = place.path_to("ssh").display().to_string();
        for name in ["host", "user"] {
            let file = format!("{dir}/{name}");
            let key = ["-q", "-t", "ed25519", "-N", "", "-f", &file];
            let made = Command::new("ssh-keygen").args(key).status();
            assert!(
                made.expect("this test needs apt install openssh-client")
                    .success()
            );
        }
        std::fs::copy(format!("{dir}/user.pub"), format!("{dir}/let-in")).unwrap();
        std::fs::set_permissions(format!("{dir}/let-in"), PermissionsExt::from_mode(0o600))
            .unwrap();
        let port = free_port();
        place.write(
            "ssh/config",
            format!(
                "Port {port}
ListenAddress 127.0.0.1
HostKey {dir}/host
AuthorizedKeysFile {dir}/let-in
PidFile none
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
SetEnv PUBGAUGE_TEST={dir}
"
            ),
        );
        // Where it leaves its privileges; a system starts its own sshd with it.
        std::fs::create_dir_all("/run/sshd").unwrap();
        let config = format!("{dir}/config");
        let mut command = Command::new("/usr/sbin/sshd");
        command.args(["-D", "-e", "-f", &config]);
        place.run_here(&mut command);
        let log = std::fs::File::create(place.path_to("ssh/log")).unwrap();
        let started = command.stderr(log).spawn();
        let process = started.expect("this test needs apt install openssh-server");
        let end = Instant::now() + Duration::from_secs(60);
        let log = || std::fs::read_to_string(place.path_to("ssh/log")).unwrap_or_default();
        while !log().contains("Server listening") {
            assert!(Instant::now() < end, "sshd does not listen: {}", log());
            std::thread::sleep(Duration::from_millis(10));
        }
        let prefix = format!(
            "ssh -F none -p {port} -i {dir}/user -o IdentitiesOnly=yes -o UserKnownHostsFile={dir}/known -o StrictHostKeyChecking=accept-new -o BatchMode=yes root@127.0.0.1"
        );
        Sshd { process, prefix }
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn workers_start_over_ssh_and_nothing_is_left_there() {
    let place = Place::new();
    let sshd = Sshd::start(&place);
    let all = flags("127.0.0.1", &[&sshd.prefix, &sshd.prefix]);
    let length = ["--duration", "1s", "--warm-up", "200ms"].map(str::to_owned);
    let done = place.run(&paced("run", &[&all[..], &length].concat()));
    done.ran_to_its_end();
    done.assert_says("is there: 2 of 2");
    let trial = place.trial("run");
    adds_up(&trial);
    assert_eq!(trial["hosts"].as_array().unwrap().len(), 2);

    // A key that is not let in: ssh's own words.
    std::fs::write(place.path_to("ssh/let-in"), "").unwrap();
    let refused = place.run(&paced("refused", &all)).exits(2);
    refused
        .assert_says("Permission denied")
        .assert_says("ended with exit code 255");
    assert!(!place.path_to("refused").exists());
    drop(sshd);
    // Nobody listens.
    let nobody = place.run(&paced("nobody", &all)).exits(2);
    nobody.assert_says("Connection refused");
    place.has_no_process_soon();
    place.is_clean();
}

#[test]
fn an_interrupted_run_leaves_nothing_on_the_other_host() {
    let place = Place::new();
    for signal in [libc::SIGINT, libc::SIGKILL] {
        let sshd = Sshd::start(&place);
        let length = ["--duration", "60s", "--warm-up", "200ms"].map(str::to_owned);
        let all = [&flags("127.0.0.1", &[&sshd.prefix])[..], &length].concat();
        let mut run = place.start(&paced(&format!("run-{signal}"), &all));
        run.measures();
        kill(run.pid(), signal);
        let _ = run.wait_for_end();
        // Sessions outlive the sshd that began them; those of this run have ended with it, and their workers too.
        drop(sshd);
        place.has_no_process_soon();
    }
}
