//! A few pages over HTTP, for scrapers and health checks.
//!
//! One thread answers, ten answers a second at most. A connection that says nothing keeps no other waiting, and is closed
//! after two seconds, or sooner where there are many.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::exit::Ending;

/// Longest time that one connection may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Most connections that have not asked yet; a new one takes the place of the oldest.
const MOST_WAITING: usize = 64;
/// Time between two answers, at least.
const PAUSE: Duration = Duration::from_millis(100);
/// Longest request that is read, bytes.
pub const MAX_REQUEST: usize = 8 << 10;

/// Plain text.
pub const PLAIN: &str = "text/plain; charset=utf-8";

/// An answer.
#[derive(Clone, Debug)]
pub struct Page {
    /// Status line after the version.
    pub status: &'static str,
    pub media_type: &'static str,
    pub body: String,
}

/// The answer to a GET of a path.
pub type Answer = Box<dyn FnMut(&str) -> Page + Send>;

/// A listening server; dropping it closes it.
pub struct Http {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Http {
    /// Listens at `text`, which `flag` gave: a port, or HOST:PORT; without a host, at the loopback address. With
    /// `when_idle` it runs only when a processor is idle (SCHED_IDLE).
    ///
    /// # Errors
    /// If it is not an address, or cannot be listened on.
    pub fn open(flag: &str, text: &str, when_idle: bool, answer: Answer) -> Result<Http, Ending> {
        let wrong = |why: &str, hint: &str| {
            Ending::bad_input(format!("{flag} {text}: {why}\n  hint: {hint}"))
        };
        let address = address(text)
            .ok_or_else(|| wrong("no address", "a port such as 9464, or HOST:PORT"))?;
        let refused = |e: std::io::Error| {
            let hint = "name a free port; 0 takes any";
            wrong(&format!("cannot listen there: {e}"), hint)
        };
        let listener = TcpListener::bind(address).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let over = Arc::<AtomicBool>::default();
        let server = Server {
            over: over.clone(),
            answer,
        };
        let thread = std::thread::Builder::new()
            .name("metrics".into())
            .spawn(move || {
                if when_idle {
                    // Where the system does not allow it, only the limit on answers applies.
                    let _ = pubgauge_testbed::only_when_idle();
                }
                server.serve(&listener);
            })
            .map_err(refused)?;
        Ok(Http {
            address,
            over,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Http {
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
    over: Arc<AtomicBool>,
    answer: Answer,
}

impl Server {
    fn serve(mut self, listener: &TcpListener) {
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
        let page = match method {
            "GET" | "HEAD" => (self.answer)(path),
            _ => Page {
                status: "405 Method Not Allowed",
                media_type: PLAIN,
                body: "GET alone\n".to_owned(),
            },
        };
        let head = format!(
            "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            page.status,
            page.media_type,
            page.body.len()
        );
        let left = until.saturating_duration_since(Instant::now());
        stream.set_write_timeout(Some(left.max(Duration::from_millis(1))))?;
        stream.write_all(head.as_bytes())?;
        if method != "HEAD" {
            stream.write_all(page.body.as_bytes())?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn connect(http: &Http) -> TcpStream {
        TcpStream::connect(http.address()).unwrap()
    }

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

    /// 100 clients that say nothing: a scrape is answered before any of them is given up.
    #[test]
    fn silent_clients_keep_nobody_waiting() {
        let page = |path: &str| Page {
            status: "200 OK",
            media_type: PLAIN,
            body: path.to_owned(),
        };
        let http = Http::open("--listen", "0", false, Box::new(page)).unwrap();
        let silent: Vec<TcpStream> = (0..100).map(|_| connect(&http)).collect();
        let mut stream = connect(&http);
        stream.write_all(b"GET /path HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert!(answer.ends_with("\r\n\r\n/path"), "{answer}");
        // Those that came last still have their time.
        let last = silent.last().unwrap();
        last.set_nonblocking(true).unwrap();
        let read = (&*last).read(&mut [0]).unwrap_err();
        assert_eq!(read.kind(), ErrorKind::WouldBlock);
    }
}
