//! The worker's end: dials the conductor and joins, or is told why not.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::{ClientConfig, ClientConnection};

use crate::credentials::{Credentials, CredentialsError, Fingerprint, Token};
use crate::hello::{self, Answer, Hello, Welcome};
use crate::identity::{exported, is_another, name, trusting};
use crate::limited::{Failure, Limited};
use crate::machine::Machine;
use crate::place::{Address, Rank};
use crate::stream::{Connection, Reader, Writer};

/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_secs(10);
/// Time between attempts at first; it doubles up to [`SLOWEST`].
const FIRST_WAIT: Duration = Duration::from_millis(100);
const SLOWEST: Duration = Duration::from_secs(2);
/// Most bytes that are read from a conductor until its welcome.
const BYTES: usize = 16 << 10;

/// How to join.
#[derive(Clone, Debug)]
pub struct Dial {
    /// Where the conductor listens.
    pub conductor: Address,
    /// The fingerprint of the run's certificate and tokens, that of this rank among them.
    pub credentials: Credentials,
    /// Which worker this is.
    pub rank: Rank,
    /// Where it runs.
    pub machine: Machine,
    /// How long to try while the name is unknown or no conductor answers: it may start later, and the name of
    /// a Kubernetes service takes a while. [`PATIENCE`](Self::PATIENCE) is usual.
    pub patience: Duration,
}

impl Dial {
    /// The usual patience: 60 s.
    pub const PATIENCE: Duration = Duration::from_secs(60);
}

/// A worker that has joined: both halves of its stream.
#[derive(Debug)]
pub struct Member {
    /// The conductor's answer.
    pub welcome: Welcome,
    /// The conductor's address.
    pub address: SocketAddr,
    /// Ends the connection, and says how it ended.
    pub connection: Connection,
    /// What the conductor sends.
    pub reader: Reader,
    /// What is sent to it.
    pub writer: Writer,
}

/// Why a worker has not joined.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// No token for its rank.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// No conductor answered within the time.
    #[error(
        "the conductor at {conductor} could not be joined within {seconds} s: {why}\n  hint: does it listen on an address that this host reaches, and does its name resolve here?"
    )]
    NotReached {
        /// Where it should be.
        conductor: Address,
        /// How long it was tried.
        seconds: u64,
        /// What happened last.
        why: String,
    },
    /// Another certificate than the one that is trusted.
    #[error(
        "whoever answers at {conductor} has not the certificate with the fingerprint {expected}\n  hint: the credentials may be those of another run"
    )]
    OtherCertificate {
        /// Where.
        conductor: Address,
        /// The fingerprint in the credentials.
        expected: Fingerprint,
    },
    /// What answers is not a conductor.
    #[error("whoever answers at {conductor} is no conductor: {why}")]
    Strange {
        /// Where.
        conductor: Address,
        /// What it said.
        why: String,
    },
    /// The conductor refuses this worker.
    #[error("the conductor at {conductor} refused rank {rank}: {why}")]
    Refused {
        /// Where.
        conductor: Address,
        /// This worker's.
        rank: u32,
        /// In its words.
        why: String,
    },
    /// TLS cannot be set up.
    #[error("cannot set TLS up: {0}")]
    Tls(#[from] rustls::Error),
}

/// Dials until a conductor answers, and joins.
///
/// # Errors
/// No answer within [`Dial::patience`]; an answer of something else; a refusal.
pub fn join(dial: &Dial) -> Result<Member, JoinError> {
    join_by(dial, |address| {
        let name = (address.host.as_str(), address.port);
        Ok(name.to_socket_addrs()?.collect())
    })
}

/// The same with another way from names to addresses.
fn join_by(
    dial: &Dial,
    resolve: impl Fn(&Address) -> io::Result<Vec<SocketAddr>>,
) -> Result<Member, JoinError> {
    let caller = Caller {
        dial,
        token: dial.credentials.token(dial.rank.rank)?,
        config: trusting(dial.credentials.fingerprint)?,
    };
    let start = Instant::now();
    let end = start + dial.patience;
    let mut wait = FIRST_WAIT;
    loop {
        let last = match resolve(&dial.conductor) {
            Ok(addresses) if addresses.is_empty() => "its name has no address".into(),
            Ok(addresses) => match caller.any(&addresses, end)? {
                Ok(member) => return Ok(*member),
                Err(why) => why,
            },
            Err(error) => format!("its name cannot be resolved: {error}"),
        };
        if Instant::now() + wait >= end {
            return Err(JoinError::NotReached {
                conductor: dial.conductor.clone(),
                seconds: start.elapsed().as_secs(),
                why: last,
            });
        }
        std::thread::sleep(wait);
        wait = (wait * 2).min(SLOWEST);
    }
}

/// What came of an attempt: its error is why to try again.
type Tried = Result<Box<Member>, String>;

/// Who dials, and trusts one certificate.
struct Caller<'a> {
    dial: &'a Dial,
    token: &'a Token,
    config: Arc<ClientConfig>,
}

impl Caller<'_> {
    /// One attempt at each address.
    fn any(&self, addresses: &[SocketAddr], end: Instant) -> Result<Tried, JoinError> {
        let mut last = String::new();
        for address in addresses {
            let until = end.min(Instant::now() + ATTEMPT);
            let left = until.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                break;
            }
            let tried = match TcpStream::connect_timeout(address, left) {
                Ok(socket) => self.greet(socket, until)?,
                Err(error) => Err(format!("{address}: {error}")),
            };
            match tried {
                Ok(member) => return Ok(Ok(member)),
                Err(why) => last = why,
            }
        }
        Ok(Err(last))
    }

    /// One attempt over a connection: handshake, hello, answer.
    fn greet(&self, socket: TcpStream, until: Instant) -> Result<Tried, JoinError> {
        let conductor = || self.dial.conductor.clone();
        let strange = |why: &str| JoinError::Strange {
            conductor: conductor(),
            why: why.into(),
        };
        let mut tls = ClientConnection::new(Arc::clone(&self.config), name())?;
        let mut limited = Limited::new(&socket, until, BYTES);
        let own = socket.local_addr().map(|own| hello::interface(own.ip()));
        let interface = own.unwrap_or_default();
        let said = self.converse(&mut tls, &mut limited, interface);
        let answer = match said.map_err(Failure::of) {
            Ok(bytes) => {
                serde_json::from_slice(&bytes).map_err(|_| strange("its answer makes no sense"))?
            }
            Err(Failure::Tls(error)) if is_another(&error) => {
                return Err(JoinError::OtherCertificate {
                    conductor: conductor(),
                    expected: self.dial.credentials.fingerprint,
                });
            }
            Err(Failure::Tls(error)) => return Err(strange(&error.to_string())),
            Err(Failure::TooMuch) => return Err(strange("it says too much")),
            // Too many may dial at once: those whose connections were closed try again.
            Err(Failure::Silent) => return Ok(Err("no answer came in time".into())),
            Err(Failure::Left(error)) => {
                return Ok(Err(format!("it ended the connection: {error}")));
            }
        };
        match answer {
            Answer::Refused { why } => Err(JoinError::Refused {
                conductor: conductor(),
                rank: self.dial.rank.rank,
                why,
            }),
            Answer::Welcome(welcome) => {
                let member = self.member(welcome, socket, tls);
                Ok(member.map(Box::new).map_err(|error| error.to_string()))
            }
        }
    }

    /// The handshake, the hello and the answer.
    fn converse(
        &self,
        tls: &mut ClientConnection,
        limited: &mut Limited<'_>,
        interface: String,
    ) -> io::Result<Vec<u8>> {
        tls.complete_io(limited)?;
        let exported = exported(tls).map_err(io::Error::other)?;
        let rank = self.dial.rank;
        let hello = Hello {
            join: hello::VERSION,
            link: pubgauge_engine::link::VERSION,
            pubgauge: env!("CARGO_PKG_VERSION").into(),
            rank: rank.rank,
            size: rank.size,
            machine: self.dial.machine.clone(),
            interface,
            proof: self.token.proof(&exported, rank.rank),
        };
        let mut stream = rustls::Stream::new(tls, limited);
        stream.write_all(&hello::frame(&hello)?)?;
        stream.flush()?;
        hello::read(&mut stream)
    }

    fn member(
        &self,
        welcome: Welcome,
        socket: TcpStream,
        tls: ClientConnection,
    ) -> io::Result<Member> {
        let address = socket.peer_addr()?;
        let whom = format!("conductor at {}", self.dial.conductor);
        let (connection, reader, writer) = Connection::split(socket, tls.into(), whom)?;
        Ok(Member {
            welcome,
            address,
            connection,
            reader,
            writer,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Identity, Listener, Options};
    use std::cell::Cell;

    fn dial(credentials: Credentials, conductor: &str, patience: Duration) -> Dial {
        Dial {
            conductor: conductor.parse().unwrap(),
            credentials,
            rank: Rank {
                rank: 0,
                size: None,
            },
            machine: Machine::here(),
            patience,
        }
    }

    /// As a headless service's name is unknown until its pod is there.
    #[test]
    fn a_name_is_asked_for_again() {
        let identity = Identity::generate().unwrap();
        let credentials = identity.credentials(1).unwrap();
        let listener = Listener::start(&identity, &credentials, Options::default()).unwrap();
        let dial = dial(credentials, "conductor-0.pubgauge", Duration::from_secs(60));
        let asked = Cell::new(0);
        let member = join_by(&dial, |address| {
            assert_eq!(address.host, "conductor-0.pubgauge");
            asked.set(asked.get() + 1);
            match asked.get() {
                1 => Err(io::Error::other("Name or service not known")),
                2 => Ok(Vec::new()),
                _ => Ok(vec![listener.address()]),
            }
        });
        assert_eq!(member.unwrap().welcome.size, 1);
        assert_eq!(asked.get(), 3);
    }

    #[test]
    fn a_name_that_nobody_knows_is_told_in_time() {
        let identity = Identity::generate().unwrap();
        let credentials = identity.credentials(1).unwrap();
        let dial = dial(credentials, "nobody:1", Duration::from_millis(500));
        let unknown = |_: &Address| Err(io::Error::other("Name or service not known"));
        let error = join_by(&dial, unknown).unwrap_err().to_string();
        for part in ["nobody:1", "cannot be resolved", "not known", "hint:"] {
            assert!(error.contains(part), "{error}");
        }
    }
}
