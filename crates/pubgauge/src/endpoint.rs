//! Live figures of a run over HTTP, as OpenMetrics.
//!
//! Scrapes must not disturb a measurement: one thread answers them that runs only when a processor is
//! idle (SCHED_IDLE), from a copy of counters that the conductor's thread keeps anyway; ten answers a second at most.
//! A connection that says nothing keeps no other waiting, and is closed after two seconds, or sooner where there are
//! many. The thread's CPU time is among the figures: `pubgauge_scrape_cpu_seconds_total`.

use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pubgauge_engine::conductor::Phase;
use pubgauge_engine::live::{LatencyLive, Live};
use pubgauge_export::openmetrics::{Kind, MEDIA_TYPE, Text};
use pubgauge_results::model::Status;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::calibrate::thread_cpu;
use crate::exit::Ending;
use crate::lock;

/// Longest time that one connection may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Most connections that have not asked yet; a new one takes the place of the oldest.
const MOST_WAITING: usize = 64;
/// Time between two answers, at least.
const PAUSE: Duration = Duration::from_millis(100);
/// Longest request that is read, bytes.
const MAX_REQUEST: usize = 8 << 10;

/// The figures of a run.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// Name of the study.
    pub study: String,
    /// Trials of the plan.
    pub trials: u64,
    /// Of these, not done yet.
    pub left: u64,
    /// Trials done since the run began or was resumed, by verdict.
    pub verdicts: BTreeMap<Status, u64>,
    /// Time since the run began or was resumed.
    pub elapsed: Duration,
    /// Estimated time that is left.
    pub remaining: Duration,
    /// The trial that runs.
    pub current: Option<Current>,
}

/// The figures of the trial that runs.
#[derive(Clone, Debug, Default)]
pub struct Current {
    /// Its number, from 1.
    pub number: u32,
    pub system: String,
    pub workload: String,
    pub settings: String,
    /// Its repeat, from 1.
    pub repeat: u32,
    /// Its phase; none while the system starts.
    pub phase: Option<Phase>,
    /// What its workers have counted.
    pub live: Live,
}

/// A listening endpoint; dropping it closes it.
pub struct Endpoint {
    address: SocketAddr,
    shown: Arc<Mutex<Shown>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Listens at `text`: a port, or HOST:PORT; without a host, at the loopback address.
    ///
    /// # Errors
    /// If it is not an address, or cannot be listened on.
    pub fn open(text: &str) -> Result<Endpoint, Ending> {
        let wrong = |why: &str, hint: &str| {
            Ending::bad_input(format!("--listen {text}: {why}\n  hint: {hint}"))
        };
        let address = address(text)
            .ok_or_else(|| wrong("no address", "a port such as 9464, or HOST:PORT"))?;
        let refused = |e: std::io::Error| {
            let hint = "name a free port; 0 takes any";
            wrong(&format!("cannot listen there: {e}"), hint)
        };
        let listener = TcpListener::bind(address).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let (shown, over) = (Arc::<Mutex<Shown>>::default(), Arc::<AtomicBool>::default());
        let server = Server {
            shown: shown.clone(),
            over: over.clone(),
            scrapes: 0,
        };
        let thread = std::thread::Builder::new()
            .name("metrics".into())
            .spawn(move || server.serve(&listener))
            .map_err(refused)?;
        Ok(Endpoint {
            address,
            shown,
            over,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The figures that it shows, for the run to update.
    pub fn shown(&self) -> Arc<Mutex<Shown>> {
        self.shown.clone()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        // Wakes the thread, so that it sees the flag.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_millis(100));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// An address as it is typed.
fn address(text: &str) -> Option<SocketAddr> {
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse::<u16>() {
        return Some((IpAddr::V4(Ipv4Addr::LOCALHOST), port).into());
    }
    text.to_socket_addrs().ok()?.next()
}

struct Server {
    shown: Arc<Mutex<Shown>>,
    over: Arc<AtomicBool>,
    scrapes: u64,
}

impl Server {
    fn serve(mut self, listener: &TcpListener) {
        // Where the system does not allow it, only the limit on scrapes applies.
        let _ = pubgauge_testbed::only_when_idle();
        // Otherwise it would wait for the next connection with those that have asked meanwhile.
        let _ = listener.set_nonblocking(true);
        let mut waiting: VecDeque<Client> = VecDeque::new();
        while !self.over.load(Relaxed) {
            until_one_speaks(listener, &waiting);
            for _ in 0..MOST_WAITING {
                let Ok((stream, _)) = listener.accept() else {
                    break;
                };
                if waiting.len() == MOST_WAITING {
                    waiting.pop_front();
                }
                waiting.extend(Client::new(stream));
            }
            let now = Instant::now();
            waiting.retain_mut(|client| client.read() && (client.asks() || now < client.until));
            let asks = waiting.iter().position(Client::asks);
            if let Some(client) = asks.and_then(|at| waiting.remove(at)) {
                // A scraper that disconnects is no error.
                let _ = self.answer(client);
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn answer(&mut self, client: Client) -> std::io::Result<()> {
        let Client {
            mut stream,
            request,
            until,
        } = client;
        stream.set_nonblocking(false)?;
        let line = request.split(|byte| *byte == b'\r').next().unwrap_or(&[]);
        let request = String::from_utf8_lossy(line);
        let mut words = request.split(' ');
        let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let path = path.split('?').next().unwrap_or("");
        let (status, kind, body) = match (method, path) {
            ("GET" | "HEAD", "/metrics") => {
                self.scrapes += 1;
                let shown = lock(&self.shown).clone();
                ("200 OK", MEDIA_TYPE, text(&shown, self.scrapes))
            }
            ("GET" | "HEAD", _) => (
                "404 Not Found",
                "text/plain; charset=utf-8",
                "live figures of a run of pubgauge are at /metrics\n".to_owned(),
            ),
            _ => (
                "405 Method Not Allowed",
                "text/plain; charset=utf-8",
                "GET /metrics\n".to_owned(),
            ),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        let left = until.saturating_duration_since(Instant::now());
        stream.set_write_timeout(Some(left.max(Duration::from_millis(1))))?;
        stream.write_all(head.as_bytes())?;
        if method != "HEAD" {
            stream.write_all(body.as_bytes())?;
        }
        stream.flush()
    }
}

/// A connection that has not been answered.
struct Client {
    stream: TcpStream,
    /// What it has said.
    request: Vec<u8>,
    until: Instant,
}

impl Client {
    fn new(stream: TcpStream) -> Option<Client> {
        stream.set_nonblocking(true).ok()?;
        Some(Client {
            stream,
            request: Vec::new(),
            until: Instant::now() + PATIENCE,
        })
    }

    /// Reads what has come; `false` if nothing more will, or too much has.
    fn read(&mut self) -> bool {
        let mut part = [0; 1024];
        while !self.asks() && self.request.len() <= MAX_REQUEST {
            match self.stream.read(&mut part) {
                Ok(0) => return false,
                Ok(n) => self.request.extend(&part[..n]),
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
        self.asks()
    }

    /// Whether the head of its request is complete.
    fn asks(&self) -> bool {
        self.request.windows(4).any(|end| end == b"\r\n\r\n")
    }
}

/// Waits until somebody connects or says something, or the first has waited long enough.
fn until_one_speaks(listener: &TcpListener, waiting: &VecDeque<Client>) {
    if waiting.iter().any(Client::asks) {
        return;
    }
    let streams = waiting.iter().map(|client| client.stream.as_fd());
    let all = std::iter::once(listener.as_fd()).chain(streams);
    let mut all: Vec<PollFd<'_>> = all
        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
        .collect();
    let left = waiting
        .front()
        .map(|first| first.until.saturating_duration_since(Instant::now()));
    let left = left.and_then(|left| Timespec::try_from(left).ok());
    // A signal or an error only means that it looks once more.
    let _ = poll(&mut all, left.as_ref());
}

/// Names of the phases; before the first the system starts.
const PHASES: [(&str, Option<Phase>); 7] = [
    ("start", None),
    ("connect", Some(Phase::Connect)),
    ("prove", Some(Phase::Prove)),
    ("warm-up", Some(Phase::WarmUp)),
    ("measure", Some(Phase::Measure)),
    ("drain", Some(Phase::Drain)),
    ("close", Some(Phase::Close)),
];

fn text(shown: &Shown, scrapes: u64) -> String {
    let mut text = Text::default();
    text.family("pubgauge_run", Kind::Info, "", "The run.");
    let version = env!("CARGO_PKG_VERSION");
    let about = [
        ("study", shown.study.as_str()),
        ("pubgauge_version", version),
    ];
    text.sample("_info", &about, &[], 1.0);
    let mut gauge = |name, unit, help, value| {
        text.family(name, Kind::Gauge, unit, help);
        text.sample("", &[], &[], value);
    };
    gauge(
        "pubgauge_run_trials",
        "",
        "Trials of the plan.",
        shown.trials as f64,
    );
    gauge(
        "pubgauge_run_trials_left",
        "",
        "Trials not done yet.",
        shown.left as f64,
    );
    gauge(
        "pubgauge_run_elapsed_seconds",
        "seconds",
        "Since the run began or went on.",
        shown.elapsed.as_secs_f64(),
    );
    gauge(
        "pubgauge_run_remaining_seconds",
        "seconds",
        "About how long the run still takes.",
        shown.remaining.as_secs_f64(),
    );
    text.family(
        "pubgauge_run_verdicts",
        Kind::Counter,
        "",
        "Trials done since the run began or went on, by verdict.",
    );
    for status in Status::ALL {
        let count = shown.verdicts.get(&status).copied().unwrap_or(0);
        text.sample("_total", &[("verdict", status.word())], &[], count as f64);
    }
    if let Some(current) = &shown.current {
        trial(&mut text, current);
    }
    text.family("pubgauge_scrapes", Kind::Counter, "", "Answers given here.");
    text.sample("_total", &[], &[], scrapes as f64);
    text.family(
        "pubgauge_scrape_cpu_seconds",
        Kind::Counter,
        "seconds",
        "Processor time that these answers have cost.",
    );
    text.sample("_total", &[], &[], thread_cpu() as f64 / 1e9);
    text.finish()
}

fn trial(text: &mut Text, current: &Current) {
    let (number, repeat) = (current.number.to_string(), current.repeat.to_string());
    let labels = [
        ("trial", number.as_str()),
        ("system", &current.system),
        ("workload", &current.workload),
        ("settings", &current.settings),
        ("repeat", &repeat),
    ];
    text.family(
        "pubgauge_live_phase",
        Kind::StateSet,
        "",
        "Phase of the trial that runs.",
    );
    for (name, phase) in PHASES {
        let is = f64::from(current.phase == phase);
        text.sample("", &labels, &[("pubgauge_live_phase", name)], is);
    }
    let live = &current.live;
    let counters = [
        (
            "pubgauge_live_published_messages",
            "Messages published, of all phases.",
            live.sent,
        ),
        (
            "pubgauge_live_deliveries",
            "Deliveries, of all phases.",
            live.received,
        ),
        (
            "pubgauge_live_connections_lost",
            "Connections lost.",
            live.lost,
        ),
    ];
    for (name, help, value) in counters {
        text.family(name, Kind::Counter, "", help);
        text.sample("_total", &labels, &[], value as f64);
    }
    let gauges = [
        (
            "pubgauge_live_connections",
            "Clients connected.",
            live.connected,
        ),
        (
            "pubgauge_live_under_way",
            "Measured deliveries that may still come.",
            live.under_way,
        ),
        (
            "pubgauge_live_passed_over",
            "Measured deliveries overtaken that have not come since: lost, as far as is known.",
            live.passed_over,
        ),
    ];
    for (name, help, value) in gauges {
        text.family(name, Kind::Gauge, "", help);
        text.sample("", &labels, &[], value as f64);
    }
    text.family(
        "pubgauge_live_latency_seconds",
        Kind::Gauge,
        "seconds",
        "Latency of the newest interval.",
    );
    if let Some(LatencyLive { p50, p99 }) = live.latency {
        for (quantile, ns) in [("0.5", p50), ("0.99", p99)] {
            text.sample("", &labels, &[("quantile", quantile)], ns as f64 / 1e9);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_host_only_this_machine_can_ask() {
        for (text, expected) in [
            ("9464", Some("127.0.0.1:9464")),
            (":9464", Some("127.0.0.1:9464")),
            ("0.0.0.0:0", Some("0.0.0.0:0")),
            ("[::1]:9", Some("[::1]:9")),
            ("localhost", None),
            ("99999", None),
            ("", None),
            ("127.0.0.1:x", None),
        ] {
            assert_eq!(
                address(text),
                expected.map(|e| e.parse().unwrap()),
                "{text}"
            );
        }
    }

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    /// 100 clients that say nothing: a scrape is answered before any of them is given up.
    #[test]
    fn silent_clients_keep_nobody_waiting() {
        let endpoint = Endpoint::open("0").unwrap();
        let connect = || TcpStream::connect(endpoint.address()).unwrap();
        let silent: Vec<TcpStream> = (0..100).map(|_| connect()).collect();
        let answer = ask(endpoint.address(), "GET /metrics HTTP/1.1\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        // Those that came last still have their time.
        let last = silent.last().unwrap();
        last.set_nonblocking(true).unwrap();
        let read = (&*last).read(&mut [0]).unwrap_err();
        assert_eq!(read.kind(), ErrorKind::WouldBlock);
    }

    #[test]
    fn it_answers_what_it_should_and_survives_the_rest() {
        let endpoint = Endpoint::open("0").unwrap();
        {
            let shown = endpoint.shown();
            let mut shown = shown.lock().unwrap();
            shown.study = "a \"quoted\"\nstudy".into();
            shown.current = Some(Current {
                system: "mosquitto".into(),
                phase: Some(Phase::Measure),
                live: Live {
                    sent: 7,
                    latency: Some(LatencyLive {
                        p99: 218_000,
                        ..LatencyLive::default()
                    }),
                    ..Live::default()
                },
                ..Current::default()
            });
        }
        let address = endpoint.address();
        let answer = ask(address, "GET /metrics?x HTTP/1.1\r\nHost: x\r\n\r\n");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text"));
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())));
        assert!(body.ends_with("# EOF\n"));
        for line in [
            "pubgauge_run_info{study=\"a \\\"quoted\\\"\\nstudy\",",
            "system=\"mosquitto\",workload=\"\",settings=\"\",repeat=\"0\",pubgauge_live_phase=\"measure\"} 1\n",
            "quantile=\"0.99\"} 0.000218\n",
            "pubgauge_scrapes_total 1\n",
        ] {
            assert!(body.contains(line), "{line} is not in\n{body}");
        }
        assert!(ask(address, "HEAD /metrics HTTP/1.0\r\n\r\n").ends_with("\r\n\r\n"));
        assert!(ask(address, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(ask(address, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
        // Garbage without end is cut off; silence is given up; both leave room for the next.
        let garbage = "x".repeat(3 * MAX_REQUEST);
        assert_eq!(ask(address, &garbage), "");
        let silent = TcpStream::connect(address).unwrap();
        let answer = ask(address, "GET /metrics HTTP/1.1\r\n\r\n");
        assert!(answer.contains("pubgauge_scrapes_total 3\n"), "{answer}");
        drop(silent);
        drop(endpoint);
        assert!(
            TcpStream::connect(address).is_err(),
            "nobody listens any more"
        );
    }
}
