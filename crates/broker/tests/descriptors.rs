//! Many connections: what an idle one costs, and what happens when there are no
//! file descriptors left. The broker runs as a process of its own, which is this
//! program under another argument.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pubgauge_broker::{Options, run};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const SERVE: &str = "--serve-as-broker";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    if args.get(1).is_some_and(|a| a == SERVE) {
        serve(args[2].parse().unwrap());
        return ExitCode::SUCCESS;
    }
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    pubgauge_testing::own_main(&[
        (
            "an_idle_connection_costs_little",
            an_idle_connection_costs_little,
        ),
        (
            "without_file_descriptors_it_rests_and_recovers",
            without_file_descriptors_it_rests_and_recovers,
        ),
    ])
}

/// Serves with at most `files` open files until standard input ends; then prints
/// what it counted.
fn serve(files: u64) {
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(files),
            maximum: Some(files),
        },
    )
    .unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            stop.store(true, Ordering::Relaxed);
        });
        let ready = |address: SocketAddr| println!("{address}");
        let counters = run(Options::default(), ready, &stop).unwrap();
        println!("refused {}", counters.accept_out_of_files);
    });
}

struct Broker {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
    address: SocketAddr,
}

impl Broker {
    fn new(files: u64) -> Broker {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([SERVE, &files.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        Broker {
            child,
            stdout,
            address: line.trim().parse().unwrap(),
        }
    }

    /// A connection with CONNACK; `None` if the broker closes it.
    fn connect(&self, id: usize) -> Option<TcpStream> {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let id = format!("device-{id:06}");
        let mut connect = vec![0x10, 12 + id.len() as u8];
        connect.extend(b"\x00\x04MQTT\x04\x02\x00\x00\x00");
        connect.push(id.len() as u8);
        connect.extend(id.as_bytes());
        stream.write_all(&connect).ok()?;
        let mut connack = [0; 4];
        match stream.read_exact(&mut connack) {
            Ok(()) => assert_eq!(connack, [0x20, 2, 0, 0]),
            Err(e) if e.kind() == ErrorKind::WouldBlock => panic!("no CONNACK in time"),
            Err(_) => return None,
        }
        Some(stream)
    }

    fn proc(&self, file: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).unwrap()
    }

    fn rss_bytes(&self) -> u64 {
        let status = self.proc("status");
        let line = status.lines().find(|l| l.starts_with("VmRSS")).unwrap();
        line.split_whitespace()
            .nth(1)
            .unwrap()
            .parse::<u64>()
            .unwrap()
            * 1024
    }

    fn cpu(&self) -> Duration {
        let text = self.proc("schedstat");
        Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
    }

    /// Stops it; what it printed at the end.
    fn stop(mut self) -> String {
        drop(self.child.stdin.take());
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success());
        rest.trim().to_owned()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn an_idle_connection_costs_little() {
    let most = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let broker = Broker::new(most);
    // Pools and tables find their size first.
    let first: Vec<_> = (0..500).map(|i| broker.connect(i).unwrap()).collect();
    let before = broker.rss_bytes();
    let count = 4000;
    let clients: Vec<_> = (0..count)
        .map(|i| broker.connect(1000 + i).unwrap())
        .collect();
    let each = broker.rss_bytes().saturating_sub(before) / count as u64;
    println!("memory of an idle connection: {each} bytes");
    assert!(
        each <= 600,
        "{each} bytes for each of {count} idle connections"
    );
    let before = broker.cpu();
    std::thread::sleep(Duration::from_millis(500));
    let idle = broker.cpu() - before;
    assert!(
        idle < Duration::from_millis(50),
        "{idle:?} of CPU in 500 ms without work"
    );
    drop((first, clients));
    assert_eq!(broker.stop(), "refused 0");
}

fn without_file_descriptors_it_rests_and_recovers() {
    let broker = Broker::new(64);
    let mut clients = Vec::new();
    let mut turned_away = 0;
    for i in 0..100 {
        match broker.connect(i) {
            Some(client) => clients.push(client),
            None => turned_away += 1,
        }
        if turned_away == 3 {
            break;
        }
    }
    assert!(
        (40..64).contains(&clients.len()),
        "{} connected",
        clients.len()
    );
    assert_eq!(
        turned_away, 3,
        "further clients must be told, not left waiting"
    );
    // It does not spin meanwhile, even with somebody at the door.
    let waiting: Vec<_> = (0..20)
        .map(|_| TcpStream::connect(broker.address).unwrap())
        .collect();
    let before = broker.cpu();
    std::thread::sleep(Duration::from_millis(500));
    let spent = broker.cpu() - before;
    assert!(
        spent < Duration::from_millis(100),
        "{spent:?} of CPU in 500 ms"
    );
    // Those inside are served.
    clients[0].write_all(&[0xc0, 0]).unwrap();
    let mut pong = [0; 2];
    clients[0].read_exact(&mut pong).unwrap();
    assert_eq!(pong, [0xd0, 0]);
    // When some leave, others can come.
    drop(waiting);
    clients.truncate(10);
    let until = Instant::now() + Duration::from_secs(60);
    while broker.connect(500).is_none() {
        assert!(Instant::now() < until, "it must accept again");
    }
    let said = broker.stop();
    let refused: u64 = said.strip_prefix("refused ").unwrap().parse().unwrap();
    assert!(refused >= 3, "{said}");
}
