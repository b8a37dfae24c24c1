//! A TLS connection in two halves, for two threads: what is read and what is written do not wait for each
//! other.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pubgauge_engine::link::stream::Peer;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;

use crate::lock;

/// Ciphertext that is read at once: a record and its header.
const AT_ONCE: usize = 17 << 10;
/// Time for telling the far end that this one ends.
const GOODBYE: Duration = Duration::from_secs(1);
/// A host that does not answer for this long is lost.
const LOST: Duration = Duration::from_secs(10);

/// How a connection ended that was ended in order.
const CLOSED: &str = "the far end closed it";

/// A connection to a host: ends it, and says how it ended.
#[derive(Clone, Debug)]
pub struct Connection(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    socket: TcpStream,
    tls: Mutex<rustls::Connection>,
    /// The far end, for messages.
    whom: String,
    /// Why it ended, once it has.
    why: Mutex<Option<String>>,
}

impl Shared {
    fn ended(&self, why: &str) {
        lock(&self.why).get_or_insert_with(|| why.to_owned());
    }
}

impl Connection {
    /// Both halves of a connection whose handshake is over.
    pub(crate) fn split(
        socket: TcpStream,
        tls: rustls::Connection,
        whom: String,
    ) -> io::Result<(Connection, Reader, Writer)> {
        socket.set_read_timeout(None)?;
        socket.set_write_timeout(None)?;
        socket.set_nodelay(true)?;
        // A host without power does not close its connections: the kernel probes it, and gives up.
        sockopt::set_socket_keepalive(&socket, true)?;
        sockopt::set_tcp_keepidle(&socket, LOST / 2)?;
        sockopt::set_tcp_keepintvl(&socket, Duration::from_secs(1))?;
        sockopt::set_tcp_keepcnt(&socket, 5)?;
        sockopt::set_tcp_user_timeout(&socket, LOST.as_millis() as u32)?;
        let shared = Arc::new(Shared {
            socket,
            tls: Mutex::new(tls),
            whom,
            why: Mutex::default(),
        });
        let reader = Reader {
            shared: Arc::clone(&shared),
            raw: vec![0; AT_ONCE].into(),
            waiting: 0..0,
        };
        let writer = Writer(Arc::clone(&shared));
        Ok((Connection(shared), reader, writer))
    }

    /// For a far end that has nothing to send yet: whether it has ended the connection or is lost. Anything
    /// that waits to be read counts as that.
    pub fn is_gone(&self) -> bool {
        let watched = PollFlags::IN | PollFlags::RDHUP;
        let mut socket = [PollFd::new(&self.0.socket, watched)];
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // A poll that fails counts as nothing found: the next use of the connection will fail.
        matches!(poll(&mut socket, Some(&at_once)), Ok(1..))
    }

    /// Whether the far end ended it in order: it said that nothing more comes.
    pub fn was_closed(&self) -> bool {
        lock(&self.0.why).as_deref() == Some(CLOSED)
    }
}

impl Peer for Connection {
    fn kill(&self) {
        self.0.ended("it was ended from here");
        // A socket that is no longer connected is what is wanted.
        let _ = self.0.socket.shutdown(Shutdown::Both);
    }

    fn ending(&self) -> String {
        let known = lock(&self.0.why);
        let why = known.as_deref().unwrap_or("it has not ended");
        format!("connection to {}: {why}", self.0.whom)
    }

    fn host(&self) -> Option<String> {
        Some(self.0.whom.clone())
    }
}

/// The reading half. It ends where the connection was closed and where it was lost; [`Connection`] says
/// which.
#[derive(Debug)]
pub struct Reader {
    shared: Arc<Shared>,
    raw: Box<[u8]>,
    /// The part of `raw` that TLS has not processed.
    waiting: std::ops::Range<usize>,
}

impl Read for Reader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let shared = Arc::clone(&self.shared);
        loop {
            let mut tls = lock(&shared.tls);
            match tls.reader().read(bytes) {
                Ok(0) => {
                    shared.ended(CLOSED);
                    return Ok(0);
                }
                Ok(read) => return Ok(read),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    shared.ended("it was cut off, as when a program is killed");
                    return Ok(0);
                }
                Err(error) => return Err(error),
            }
            if self.waiting.is_empty() {
                drop(tls);
                match (&shared.socket).read(&mut self.raw) {
                    Ok(read) => self.waiting = 0..read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => {
                        shared.ended(&format!("it was lost: {error}"));
                        return Ok(0);
                    }
                }
                tls = lock(&shared.tls);
            }
            // Nothing waiting now is the end, and TLS is told.
            let mut next = &self.raw[self.waiting.clone()];
            self.waiting.start += tls.read_tls(&mut next)?;
            if let Err(error) = tls.process_new_packets() {
                shared.ended(&format!("what came is not what was sent: {error}"));
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
        }
    }
}

/// The writing half. When it is dropped, the far end is told that nothing more comes.
#[derive(Debug)]
pub struct Writer(Arc<Shared>);

impl Writer {
    /// What TLS makes of what is written, or of the end.
    fn sealed(
        &self,
        seal: impl FnOnce(&mut rustls::Connection) -> io::Result<usize>,
    ) -> io::Result<(usize, Vec<u8>)> {
        let mut tls = lock(&self.0.tls);
        let taken = seal(&mut tls)?;
        let mut bytes = Vec::new();
        while tls.wants_write() {
            tls.write_tls(&mut bytes)?;
        }
        Ok((taken, bytes))
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (taken, sealed) = self.sealed(|tls| tls.writer().write(bytes))?;
        // Without the lock: the reading half does not wait meanwhile.
        (&self.0.socket).write_all(&sealed)?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // A far end that cannot be told sees the socket close.
        let _ = self.0.socket.set_write_timeout(Some(GOODBYE));
        let end = self.sealed(|tls| {
            tls.send_close_notify();
            Ok(0)
        });
        if let Ok((_, sealed)) = end {
            let _ = (&self.0.socket).write_all(&sealed);
        }
        let _ = self.0.socket.shutdown(Shutdown::Write);
    }
}
