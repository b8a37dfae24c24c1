//! A few pages over HTTP, for scrapers and health checks, on a thread of their own.
//!
//! A connection has one answer. One that says nothing keeps no other waiting, and is closed after two seconds, or sooner
//! where there are many.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use http_body_util::Full;
pub use hyper::StatusCode;
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, yield_now};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::exit::Ending;

/// Longest time that one connection may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Most connections at a time; a new one takes the place of the oldest.
const MOST_WAITING: usize = 64;
/// How long to wait when the system gives no more descriptors.
const AGAIN: Duration = Duration::from_millis(100);
/// Longest head of a request that is read, bytes.
pub const MAX_REQUEST: usize = 8 << 10;

/// Plain text.
pub const PLAIN: &str = "text/plain; charset=utf-8";

/// An answer.
#[derive(Clone, Debug)]
pub struct Page {
    pub status: StatusCode,
    pub media_type: &'static str,
    pub body: String,
}

/// The answer to a GET of a path.
pub type Responder = Box<dyn FnMut(&str) -> Page + Send>;

/// How much of the machine a server may take.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Time between two answers, at least.
    pub pause: Duration,
    /// Called on the server's thread before it answers anybody, which may schedule it behind others.
    pub begin: fn(),
}

impl Effort {
    /// Answers at once.
    pub const AT_ONCE: Effort = Effort {
        pause: Duration::ZERO,
        begin: || {},
    };
}

/// A listening server; dropping it closes it.
pub struct Http {
    address: SocketAddr,
    over: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Http {
    /// Listens at `text`, which `flag` gave: a port, or HOST:PORT; without a host, at the loopback address.
    ///
    /// # Errors
    /// If it is not an address, or cannot be listened on.
    pub fn open(flag: &str, text: &str, effort: Effort, answer: Responder) -> Result<Http, Ending> {
        let wrong = |why: &str, hint: &str| {
            Ending::bad_input(format!("{flag} {text}: {why}\n  hint: {hint}"))
        };
        let address = address(text)
            .ok_or_else(|| wrong("no address", "a port such as 9464, or HOST:PORT"))?;
        let refused = |e: std::io::Error| {
            let hint = "name a free port; 0 takes any";
            wrong(&format!("cannot listen there: {e}"), hint)
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(refused)?;
        let (listener, address) = listen(&runtime, address).map_err(refused)?;
        let (over, is_over) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("metrics".into())
            .spawn(move || {
                (effort.begin)();
                let server = Arc::new(HttpServer {
                    turn: tokio::sync::Mutex::new(Instant::now()),
                    pause: effort.pause,
                    answer: Mutex::new(answer),
                });
                runtime.spawn(server.serve(listener));
                // Its end is that of the runtime, and of all connections with it.
                let _ = runtime.block_on(is_over);
            })
            .map_err(refused)?;
        Ok(Http {
            address,
            over: Some(over),
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
        // The thread ends by it.
        drop(self.over.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn listen(
    runtime: &Runtime,
    address: SocketAddr,
) -> std::io::Result<(tokio::net::TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let _inside = runtime.enter();
    Ok((tokio::net::TcpListener::from_std(listener)?, address))
}

/// An address as it is typed.
fn address(text: &str) -> Option<SocketAddr> {
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse::<u16>() {
        return Some((IpAddr::V4(Ipv4Addr::LOCALHOST), port).into());
    }
    text.to_socket_addrs().ok()?.next()
}

struct HttpServer {
    /// When the next answer may be given.
    turn: tokio::sync::Mutex<Instant>,
    pause: Duration,
    answer: Mutex<Responder>,
}

impl HttpServer {
    /// Takes connections until its runtime ends.
    async fn serve(self: Arc<HttpServer>, listener: tokio::net::TcpListener) {
        let mut open: VecDeque<AbortHandle> = VecDeque::new();
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                sleep(AGAIN).await;
                continue;
            };
            open.retain(|connection| !connection.is_finished());
            if open.len() == MOST_WAITING
                && let Some(oldest) = open.pop_front()
            {
                oldest.abort();
            }
            let connection = tokio::spawn(timeout(PATIENCE, self.clone().connection(stream)));
            open.push_back(connection.abort_handle());
            // Whoever has asked already is answered before others take its place.
            yield_now().await;
        }
    }

    async fn connection(self: Arc<HttpServer>, stream: tokio::net::TcpStream) {
        let service = service_fn(|request| self.respond(request));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(PATIENCE)
            .max_buf_size(MAX_REQUEST)
            .keep_alive(false)
            .title_case_headers(true)
            .serve_connection(TokioIo::new(stream), service);
        // A scraper that disconnects is no error.
        let _ = connection.await;
    }

    async fn respond(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        {
            let mut turn = self.turn.lock().await;
            sleep_until(*turn).await;
            *turn = Instant::now() + self.pause;
        }
        let page = match *request.method() {
            Method::GET | Method::HEAD => {
                let mut answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
                answer(request.uri().path())
            }
            _ => Page {
                status: StatusCode::METHOD_NOT_ALLOWED,
                media_type: PLAIN,
                body: "GET alone\n".to_owned(),
            },
        };
        let mut response = Response::new(Full::from(page.body));
        *response.status_mut() = page.status;
        let media_type = hyper::header::HeaderValue::from_static(page.media_type);
        response.headers_mut().insert(CONTENT_TYPE, media_type);
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::net::TcpStream;

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
            status: StatusCode::OK,
            media_type: PLAIN,
            body: path.to_owned(),
        };
        let http = Http::open("--listen", "0", Effort::AT_ONCE, Box::new(page)).unwrap();
        let silent: Vec<TcpStream> = (0..100).map(|_| connect(&http)).collect();
        let mut stream = connect(&http);
        stream
            .write_all(b"GET /path HTTP/1.1\r\nHost: x\r\n\r\n")
            .unwrap();
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

    /// Scrapers that ask as fast as they are answered, and others that say nothing: whoever asks among them is answered.
    #[test]
    fn a_flood_of_requests_keeps_nobody_from_an_answer() {
        let page = |path: &str| Page {
            status: StatusCode::OK,
            media_type: PLAIN,
            body: path.repeat(10_000),
        };
        let http = Http::open("--listen", "0", Effort::AT_ONCE, Box::new(page)).unwrap();
        let address = http.address();
        let over = std::sync::atomic::AtomicBool::new(false);
        let is_over = || over.load(std::sync::atomic::Ordering::Relaxed);
        std::thread::scope(|scope| {
            for asks in [true, true, true, false] {
                scope.spawn(move || {
                    while !is_over() {
                        let Ok(mut stream) = TcpStream::connect(address) else {
                            continue;
                        };
                        if asks {
                            let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
                            let _ = stream.read_to_end(&mut Vec::new());
                        }
                    }
                });
            }
            for _ in 0..50 {
                let mut stream = connect(&http);
                let request = b"GET /l HTTP/1.1\r\nHost: x\r\n\r\n";
                stream.write_all(request).unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).unwrap();
                assert!(answer.ends_with("/l/l"), "{} bytes", answer.len());
            }
            over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }
}
