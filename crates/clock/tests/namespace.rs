//! 1000 s between the clocks of two processes, planted with a time namespace: the fit finds them to
//! within its bound. The far host is this program under another argument, started by `unshare -T` (util-linux
//! 2.36, Linux 5.6; as root or where users may have namespaces).

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use pubgauge_clock::udp::{Client, Key, Pace, Server, Watch, monotonic};
use pubgauge_clock::{Caps, fit};

const FAR: &str = "--far-host";
const PLANTED_NS: i64 = 1_000_000_000_000;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(FAR) {
        far();
        return ExitCode::SUCCESS;
    }
    pubgauge_testing::own_main(&[("a_planted_offset_is_found", a_planted_offset_is_found)])
}

/// Reads a key, tells its address and answers until standard input ends.
fn far() {
    let mut key = [0; Key::LEN];
    let mut input = std::io::stdin().lock();
    input.read_exact(&mut key).unwrap();
    let server = Server::start("127.0.0.1:0", Key::from_bytes(key), Arc::new(monotonic)).unwrap();
    let offsets = std::fs::read_to_string("/proc/self/timens_offsets").unwrap();
    let planted = offsets.lines().next().unwrap_or_default();
    println!("{}\n{planted}", server.address());
    let _ = input.read_to_end(&mut Vec::new());
    println!("{:?}", server.stop());
}

/// The far host; killed and waited for on every path.
struct Far {
    child: Child,
    says: BufReader<ChildStdout>,
}

impl Far {
    fn start(key: &Key) -> Far {
        let mut command = Command::new("unshare");
        if !rustix::process::geteuid().is_root() {
            command.args(["-U", "-r"]);
        }
        // With its parent's end it ends too.
        command.args(["-T", "--monotonic", "1000", "--kill-child"]);
        let mut child = command
            .arg(std::env::current_exe().expect("a path"))
            .arg(FAR)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare, of util-linux");
        let input = child.stdin.as_mut().expect("piped");
        input.write_all(key.bytes()).unwrap();
        let says = BufReader::new(child.stdout.take().expect("piped"));
        Far { child, says }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.says.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        // Its input ends, and so does it.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn a_planted_offset_is_found() {
    let key = Key::random().unwrap();
    let mut far = Far::start(&key);
    let address = far.line().parse().expect("the far host's address");
    let planted = far.line();
    let planted: Vec<&str> = planted.split_whitespace().collect();
    assert_eq!(
        planted,
        ["monotonic", "1000", "0"],
        "the namespace has the offset"
    );
    let client = Client::connect(address, key, Arc::new(monotonic)).unwrap();
    let watch = Watch::start(client, Pace::default()).unwrap();
    let before = watch.before(Duration::from_secs(60));
    let first = fit(&before, Caps::default()).expect("one host's clock keeps to the caps");
    std::thread::sleep(Duration::from_secs(1));
    let (all, counts) = watch.finish();
    let last = fit(&all, Caps::default()).expect("one host's clock keeps to the caps");
    let mut worst = 0;
    for near in (last.from()..last.until()).step_by(1_000_000) {
        let offset = last.offset(near);
        let error = (offset.ns - PLANTED_NS).unsigned_abs();
        assert!(
            error <= offset.bound_ns,
            "{error} ns beyond the bound of {offset:?}"
        );
        worst = worst.max(error);
    }
    let bound = last.bound_ns();
    let line = first.line(first.until());
    let corrected = last.bound_of_line(&line, first.from(), last.until());
    println!(
        "{} exchanges, {counts:?}: worst error {worst} ns, bound +-{bound} ns; +-{corrected} ns for what the first fit converted",
        all.len()
    );
    assert!(corrected >= bound);
    let middles = all
        .iter()
        .map(|one| (one.upper() + one.lower()) as f64 / 2.0);
    let average = middles.sum::<f64>() / all.len() as f64 - PLANTED_NS as f64;
    println!("the average of all is wrong by {:.0} ns", average.abs());
    drop(far.child.stdin.take());
    let served = far.line();
    assert!(served.starts_with("ServerCounts"), "{served}");
}
