//! A socket with a limit on time and on bytes read: for a connection that has not proved a token
//! yet.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

pub(crate) struct Limited<'a> {
    socket: &'a TcpStream,
    until: Instant,
    /// Bytes that may still be read.
    left: usize,
}

/// More bytes came than are allowed.
#[derive(Debug, thiserror::Error)]
#[error("more bytes came than are read before a worker is known")]
struct TooMuch;

/// How an exchange failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The time is over.
    Silent,
    /// More bytes came than are allowed, or a frame that is too long.
    TooMuch,
    /// The far end closed the connection.
    Left(io::Error),
    /// What came is not valid TLS.
    Tls(rustls::Error),
}

impl Failure {
    pub fn of(error: io::Error) -> Failure {
        let inner = error.get_ref();
        if inner.is_some_and(|inner| inner.is::<TooMuch>()) {
            return Failure::TooMuch;
        }
        if let Some(tls) = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return Failure::Tls(tls.clone());
        }
        match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Failure::Silent,
            io::ErrorKind::InvalidData => Failure::TooMuch,
            _ => Failure::Left(error),
        }
    }
}

impl<'a> Limited<'a> {
    pub fn new(socket: &'a TcpStream, until: Instant, bytes: usize) -> Limited<'a> {
        Limited {
            socket,
            until,
            left: bytes,
        }
    }

    fn time(&self) -> io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        match left == Duration::ZERO {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => Ok(Some(left)),
        }
    }
}

impl Read for Limited<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::Error::other(TooMuch));
        }
        self.socket.set_read_timeout(self.time()?)?;
        let most = bytes.len().min(self.left);
        let read = self.socket.read(&mut bytes[..most])?;
        self.left -= read;
        Ok(read)
    }
}

impl Write for Limited<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(self.time()?)?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
