//! A connection to a broker: a socket, with TLS where it is asked for, and what is to be written.

use std::io::Read;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use pubgauge_net::out::{Out, write_out};
use pubgauge_net::socket::{self, Arrived, Io, SocketOptions};
use pubgauge_net::tls::{self, TlsFailure};
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;

use crate::status::Wire;

/// Bytes that are asked for with one read.
const READ: usize = 256 << 10;

/// A connection that is being made, or is made.
pub struct Link {
    fd: OwnedFd,
    tls: Option<Box<rustls::ClientConnection>>,
    shown: String,
    /// TCP is not connected yet.
    pub connecting: bool,
    out: Out,
    /// Bytes that came and are no whole packet yet.
    pub input: Vec<u8>,
    wire: Arc<Wire>,
}

impl Link {
    /// Begins to connect.
    ///
    /// # Errors
    /// Why it cannot, in words.
    pub fn begin(
        address: SocketAddr,
        shown: &str,
        tls: Option<Box<rustls::ClientConnection>>,
        wire: Arc<Wire>,
    ) -> Result<Link, String> {
        let options = SocketOptions {
            no_delay: true,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
        };
        let (fd, begun) = socket::begin_connect(address, None, &options, shown)
            .map_err(|error| error.to_string())?;
        begun.map_err(|failure| failure.why)?;
        Ok(Link {
            fd,
            tls,
            shown: shown.to_owned(),
            connecting: true,
            out: Out::default(),
            input: Vec::new(),
            wire,
        })
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// TCP has connected, or failed.
    ///
    /// # Errors
    /// Why it failed, in words.
    pub fn connected(&mut self) -> Result<(), String> {
        self.connecting = false;
        match socket_error(&self.fd) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(errno)) | Err(errno) => Err(socket::failure(errno, &self.shown, true).why),
        }
    }

    /// What is to be written; it goes out with the next [`Link::flush`].
    pub fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out.bytes
    }

    /// Bytes that the socket has not taken yet.
    pub fn unsent(&self) -> usize {
        self.out.pending().len()
    }

    /// Whether something is left to write.
    pub fn wants_write(&self) -> bool {
        !self.connecting
            && (!self.out.pending().is_empty()
                || self.tls.as_ref().is_some_and(|tls| tls.wants_write()))
    }

    /// Writes what the socket takes.
    ///
    /// # Errors
    /// Why the connection failed, in words.
    pub fn flush(&mut self) -> Result<(), String> {
        if !self.wants_write() {
            return Ok(());
        }
        let written = write_out(
            self.fd.as_fd(),
            self.tls.as_deref_mut(),
            Some(&mut self.out),
        );
        self.wire.sent.add(written.sent);
        if self.out.pending().is_empty() {
            self.out.bytes.clear();
            self.out.start = 0;
        } else {
            self.out.compact();
        }
        match written.failed {
            Some(errno) => Err(self.failure(errno)),
            None => Ok(()),
        }
    }

    fn failure(&self, errno: Errno) -> String {
        socket::failure(errno, &self.shown, false).why
    }

    /// Reads once into the input; whether more may be there, nothing is left, or it was the end.
    ///
    /// # Errors
    /// Why the connection failed, in words.
    pub fn read(&mut self) -> Result<Arrived, String> {
        if self.tls.is_some() {
            return self.read_tls();
        }
        let at = self.input.len();
        self.input.resize(at + READ, 0);
        let read = socket::read(self.fd.as_fd(), &mut self.input[at..]);
        let got = if let Io::Done(got) = read { got } else { 0 };
        self.input.truncate(at + got);
        self.wire.received.add(got as u64);
        match read {
            Io::Done(0) => Ok(Arrived::Ended),
            Io::Done(got) if got < READ => Ok(Arrived::Drained),
            Io::Done(_) => Ok(Arrived::More),
            Io::WouldBlock => Ok(Arrived::Drained),
            Io::Failed(errno) => Err(self.failure(errno)),
        }
    }

    fn read_tls(&mut self) -> Result<Arrived, String> {
        let Some(tls) = &mut self.tls else {
            return Ok(Arrived::Drained);
        };
        let mut received = 0;
        let arrived = tls::read(self.fd.as_fd(), tls, &mut received);
        self.wire.received.add(received);
        let arrived = arrived.map_err(|failure| match failure {
            TlsFailure::Socket(errno) => socket::failure(errno, &self.shown, false).why,
            TlsFailure::Protocol(error) => tls::failure(&self.shown, &error).to_string(),
        })?;
        // It fails with `WouldBlock` when all was taken, and at an end without a farewell, which `arrived` tells too.
        let _ = tls.reader().read_to_end(&mut self.input);
        if arrived == Arrived::Ended && tls.is_handshaking() {
            return Err(tls::ended_early(&self.shown).to_string());
        }
        Ok(arrived)
    }

    /// Takes the first `len` bytes of the input away.
    pub fn consume(&mut self, len: usize) {
        if len == self.input.len() {
            self.input.clear();
        } else {
            self.input.drain(..len);
        }
        if self.input.is_empty() && self.input.capacity() > 8 * READ {
            self.input = Vec::new();
        }
    }
}
