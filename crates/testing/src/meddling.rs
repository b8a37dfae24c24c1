//! Servers that misbehave, and somebody between a client and a real one who does.

mod between;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

pub use between::{MEDDLINGS, Meddling, meddled};

/// A server on a thread for each connection; its connections are cut when it is dropped.
pub struct Scripted {
    /// Its port of the loopback address.
    pub port: u16,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Scripted {
    /// Every connection is served by `serve`, which is to return when the flag is set or the
    /// connection ends.
    ///
    /// # Panics
    /// If no port is free.
    pub fn start(serve: impl Fn(TcpStream, &AtomicBool) + Send + Sync + 'static) -> Scripted {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let stop = Arc::new(AtomicBool::new(false));
        let flag = stop.clone();
        let serve = Arc::new(serve);
        let thread = std::thread::spawn(move || {
            let mut threads = Vec::new();
            for connection in listener.incoming() {
                if flag.load(Ordering::Relaxed) {
                    break;
                }
                let Ok(connection) = connection else { continue };
                connection
                    .set_read_timeout(Some(Duration::from_millis(50)))
                    .unwrap();
                let (serve, flag) = (serve.clone(), flag.clone());
                threads.push(std::thread::spawn(move || serve(connection, &flag)));
            }
            for thread in threads {
                let _ = thread.join();
            }
        });
        Scripted {
            port,
            stop,
            thread: Some(thread),
        }
    }

    /// Takes what comes and says nothing.
    pub fn silent() -> Scripted {
        Scripted::start(|mut connection, stop| while hears(&mut connection, stop).is_some() {})
    }

    /// The same, and counts the clients from which something has come.
    pub fn silent_and_counting(clients: Arc<AtomicU32>) -> Scripted {
        Scripted::start(move |mut connection, stop| {
            if hears(&mut connection, stop).is_some() {
                clients.fetch_add(1, Ordering::Relaxed);
            }
            while hears(&mut connection, stop).is_some() {}
        })
    }

    /// Answers the first packet with these bytes, and closes the connection if so wanted.
    pub fn answering(bytes: Vec<u8>, then_close: bool) -> Scripted {
        Scripted::start(move |mut connection, stop| {
            if hears(&mut connection, stop).is_some() {
                let _ = connection.write_all(&bytes);
            }
            while !then_close && hears(&mut connection, stop).is_some() {}
        })
    }

    /// Stands between clients and a server. What the server sends goes through `pass`, of which there is one
    /// for each connection.
    ///
    /// # Panics
    /// If no port is free.
    pub fn meddling<P>(port: u16, passes: impl Fn() -> P + Send + Sync + 'static) -> Scripted
    where
        P: FnMut(&[u8], &mut TcpStream, &AtomicBool) -> std::io::Result<()> + Send,
    {
        Scripted::start(move |mut client, stop| {
            let Ok(mut server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else {
                return;
            };
            let quiet = Some(Duration::from_millis(50));
            server.set_read_timeout(quiet).unwrap();
            client.set_write_timeout(quiet).unwrap();
            let (mut asks, mut asked) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    while let Some(bytes) = hears(&mut asks, stop) {
                        if asked.write_all(&bytes).is_err() {
                            break;
                        }
                    }
                    let _ = asked.shutdown(Shutdown::Both);
                });
                let mut pass = passes();
                while let Some(bytes) = hears(&mut server, stop) {
                    if pass(&bytes, &mut client, stop).is_err() {
                        break;
                    }
                }
                let _ = client.shutdown(Shutdown::Both);
            });
        })
    }

    /// Its address, as that of an MQTT broker.
    pub fn address(&self) -> String {
        format!("mqtt://127.0.0.1:{}", self.port)
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn waits(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// The next bytes of a connection; none once it ended or the server is to stop.
fn hears(connection: &mut TcpStream, stop: &AtomicBool) -> Option<Vec<u8>> {
    let mut bytes = [0; 4096];
    while !stop.load(Ordering::Relaxed) {
        match connection.read(&mut bytes) {
            Ok(0) => return None,
            Ok(n) => return Some(bytes[..n].to_vec()),
            Err(e) if waits(&e) => {}
            Err(_) => return None,
        }
    }
    None
}
