//! Whether a connection is admitted.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustls::{ServerConfig, ServerConnection};

use crate::credentials::Token;
use crate::hello::{self, Answer, Hello, Unclear, Welcome};
use crate::identity::exported;
use crate::limited::{Failure, Limited};
use crate::lock;
use crate::stream::{Connection, Reader, Writer};

/// Limits of connections that have not proved a token yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time; where there are more, the oldest is closed. The default is 64.
    pub pending: usize,
    /// From the connection to the answer. The default is 10 s.
    pub time: Duration,
    /// Bytes read of each, those of TLS included. The default is 16 KiB.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            pending: 64,
            time: Duration::from_secs(10),
            bytes: 16 << 10,
        }
    }
}

/// A worker that was let in: its hello, and both halves of its stream.
#[derive(Debug)]
pub struct Joined {
    /// Its hello; its proof is right.
    pub hello: Hello,
    /// Its host: the name, or the address where that is not known.
    pub host: String,
    /// Where it came from.
    pub address: SocketAddr,
    /// The conductor's own address, as the worker reached it.
    pub reached: SocketAddr,
    /// Ends the connection, and says how it ended: the peer of a link.
    pub connection: Connection,
    /// What the worker sends.
    pub reader: Reader,
    /// What is sent to it.
    pub writer: Writer,
}

/// Why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Stranger,
    Silent,
    Garbage,
    Mismatched,
    WrongToken,
    Replayed,
    /// It was closed to make room for newer ones.
    Evicted,
}

/// Admits the workers of one run.
#[derive(Debug)]
pub(crate) struct Door {
    pub config: Arc<ServerConfig>,
    pub tokens: BTreeMap<u32, Token>,
    pub welcome: Welcome,
    pub limits: Limits,
    /// Whether a rank may join again once its connection is in use or gone.
    pub again: bool,
    /// Ranks that have joined, each with its connection once that is made.
    pub here: Mutex<BTreeMap<u32, Option<Connection>>>,
}

impl Door {
    /// Ranks that have not joined, in order.
    pub fn missing(&self) -> Vec<u32> {
        let here = lock(&self.here);
        let is_missing = |rank: &&u32| here.get(rank).is_none_or(|one| self.is_free(one));
        self.tokens.keys().filter(is_missing).copied().collect()
    }

    /// The connection of a rank is in use: where ranks may join again, this one may.
    pub fn release(&self, rank: u32) {
        if self.again {
            lock(&self.here).remove(&rank);
        }
    }

    /// Whether another worker of the same rank may replace one that has joined.
    fn is_free(&self, joined: &Option<Connection>) -> bool {
        self.again && joined.as_ref().is_some_and(Connection::is_gone)
    }

    /// Marks a rank as joined; returns whether it was free.
    fn enter(&self, rank: u32) -> bool {
        let mut here = lock(&self.here);
        let free = here.get(&rank).is_none_or(|one| self.is_free(one));
        if free {
            here.insert(rank, None);
        }
        free
    }

    /// Does the handshake and the hello of a connection, within the limits. `is_ours` is asked last:
    /// whether the connection was not closed meanwhile to make room.
    pub fn admit(
        &self,
        socket: TcpStream,
        is_ours: impl FnOnce() -> bool,
    ) -> Result<Joined, Refusal> {
        let config = Arc::clone(&self.config);
        let mut tls = ServerConnection::new(config).map_err(|_| Refusal::Stranger)?;
        let until = Instant::now() + self.limits.time;
        let mut limited = Limited::new(&socket, until, self.limits.bytes);
        let mut stream = rustls::Stream::new(&mut tls, &mut limited);
        let said = hello::read(&mut stream);
        let was_tls = !stream.conn.is_handshaking();
        let said = said.map_err(|error| refusal(error, was_tls))?;
        let exported = exported(stream.conn).map_err(|_| Refusal::Garbage)?;
        let checked = self.check(&said, &exported);
        let answer = match &checked {
            Ok(_) => Answer::Welcome(self.welcome.clone()),
            Err((_, why)) => Answer::Refused { why: why.clone() },
        };
        if checked.is_ok() && !is_ours() {
            return Err(Refusal::Evicted);
        }
        let rank = checked.as_ref().ok().map(|hello| hello.rank);
        // Of two that join at the same time with the same token, the second is refused.
        let is_first = rank.is_none_or(|rank| self.enter(rank));
        let answer = match is_first {
            true => answer,
            false => Answer::Refused {
                why: "a worker of this rank has joined already; each joins once".into(),
            },
        };
        let told = hello::frame(&answer).and_then(|frame| {
            stream.write_all(&frame)?;
            stream.flush()
        });
        let hello = checked.map_err(|(refusal, _)| refusal)?;
        if !is_first {
            return Err(Refusal::Replayed);
        }
        let joined = told.and_then(|()| Joined::new(hello, socket, tls.into()));
        match joined {
            Ok(joined) => {
                let connection = Some(joined.connection.clone());
                lock(&self.here).insert(joined.hello.rank, connection);
                Ok(joined)
            }
            Err(_) => {
                // It did not get the welcome, and may try again.
                if let Some(rank) = rank {
                    lock(&self.here).remove(&rank);
                }
                Err(Refusal::Stranger)
            }
        }
    }

    /// # Errors
    /// Why not: for the counts, and in words for the worker.
    fn check(&self, said: &[u8], exported: &[u8; 32]) -> Result<Hello, (Refusal, String)> {
        let hint = "hint: the workers' program must be the one that runs the study";
        let hello = Hello::decode(said).map_err(|unclear| match unclear {
            Unclear::Malformed => (Refusal::Garbage, "the hello makes no sense".to_owned()),
            Unclear::Version(version) => {
                let why = format!(
                    "the worker speaks version {version} of joining, the conductor {}\n  {hint}",
                    hello::VERSION
                );
                (Refusal::Mismatched, why)
            }
        })?;
        let token = self.tokens.get(&hello.rank);
        if !token.is_some_and(|token| token.proves(&hello.proof, exported, hello.rank)) {
            let why = format!("the token is not that of rank {} in this run", hello.rank);
            return Err((Refusal::WrongToken, why));
        }
        let link = pubgauge_engine::link::VERSION;
        if hello.link != link {
            let why = format!(
                "the worker is pubgauge {} and speaks version {} of the link, not {link}\n  {hint}",
                hello.pubgauge, hello.link
            );
            return Err((Refusal::Mismatched, why));
        }
        let size = self.welcome.size;
        if hello.size.is_some_and(|theirs| theirs != size) {
            let theirs = hello.size.unwrap_or_default();
            let why = format!(
                "the worker was started as one of {theirs}, and the run has {size}\n  hint: start as many workers as the run waits for"
            );
            return Err((Refusal::Mismatched, why));
        }
        Ok(hello)
    }
}

/// What failed before there was a hello.
fn refusal(error: io::Error, was_tls: bool) -> Refusal {
    match Failure::of(error) {
        Failure::Silent => Refusal::Silent,
        Failure::TooMuch => Refusal::Garbage,
        Failure::Tls(_) if was_tls => Refusal::Garbage,
        Failure::Tls(_) | Failure::Left(_) => Refusal::Stranger,
    }
}

impl Joined {
    fn new(hello: Hello, socket: TcpStream, tls: rustls::Connection) -> io::Result<Joined> {
        let (address, reached) = (socket.peer_addr()?, socket.local_addr()?);
        let host = match hello.machine.host.as_str() {
            "" => address.ip().to_string(),
            host => host.to_owned(),
        };
        let whom = format!("host {host}, rank {}", hello.rank);
        let (connection, reader, writer) = Connection::split(socket, tls, whom)?;
        Ok(Joined {
            hello,
            host,
            address,
            reached,
            connection,
            reader,
            writer,
        })
    }
}
