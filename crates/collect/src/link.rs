//! A connection to a broker: a socket, with TLS and WebSocket where they are asked for, and what is to be written.

use std::io::Read;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use pubgauge_net::out::{Out, write_out};
use pubgauge_net::socket::{self, Arrived, Io, SocketOptions};
use pubgauge_net::tls::{self, TlsFailure};
use pubgauge_net::websocket::WebSocket;
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;

use crate::status::Wire;

/// The name of MQTT among what is spoken over WebSocket (MQTT 5.0 §6, MQTT-6.0.0-3).
const SUBPROTOCOL: &str = "mqtt";

/// Bytes that are asked for with one read.
const READ: usize = 256 << 10;

/// A connection that is being made, or is made.
pub struct Link {
    fd: OwnedFd,
    tls: Option<Box<rustls::ClientConnection>>,
    websocket: Option<WebSocket>,
    shown: String,
    /// TCP is not connected yet.
    pub connecting: bool,
    /// Bytes to be written, as they go over the wire.
    out: Out,
    /// Bytes to be written that are in no frame of WebSocket yet.
    unframed: Vec<u8>,
    /// Bytes that came and are no whole packet yet.
    pub input: Vec<u8>,
    wire: Arc<Wire>,
}

impl Link {
    /// Begins to connect, over WebSocket to `url` if there is one.
    ///
    /// # Errors
    /// Why it cannot, in words.
    pub fn begin(
        address: SocketAddr,
        shown: &str,
        tls: Option<Box<rustls::ClientConnection>>,
        url: Option<&str>,
        wire: Arc<Wire>,
    ) -> Result<Link, String> {
        let mut out = Out::default();
        let websocket = url
            .map(|url| WebSocket::begin(url, SUBPROTOCOL, &mut out.bytes))
            .transpose()
            .map_err(|why| format!("{shown}: {why}"))?;
        let options = SocketOptions::default();
        let (fd, begun) = socket::begin_connect(address, None, &options, shown)
            .map_err(|error| error.to_string())?;
        begun.map_err(|failure| failure.why)?;
        Ok(Link {
            fd,
            tls,
            websocket,
            shown: shown.to_owned(),
            connecting: true,
            out,
            unframed: Vec::new(),
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

    /// Bytes to be written; they go out with the next [`Link::flush`].
    pub fn out(&mut self) -> &mut Vec<u8> {
        match self.websocket {
            Some(_) => &mut self.unframed,
            None => &mut self.out.bytes,
        }
    }

    /// Bytes that the socket has not taken yet.
    pub fn unsent(&self) -> usize {
        self.out.pending().len() + self.unframed.len()
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
        if let Some(websocket) = self.websocket.as_ref().filter(|w| !w.is_beginning()) {
            let at = self.out.bytes.len();
            self.out.bytes.append(&mut self.unframed);
            websocket.frame(&mut self.out.bytes, at);
        }
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

    /// Reads once into the input; whether more may be there, nothing is left, or it was the end, and how many bytes were
    /// read from the socket.
    ///
    /// # Errors
    /// Why the connection failed, in words.
    pub fn read(&mut self) -> Result<(Arrived, usize), String> {
        let at = self.input.len();
        let mut received = 0;
        let read = match self.tls {
            Some(_) => self.read_tls(&mut received),
            None => self.read_plain(&mut received),
        };
        self.wire.received.add(received);
        let arrived = read?;
        let is_closed = self.unframe(at)?;
        let arrived = if is_closed { Arrived::Ended } else { arrived };
        Ok((arrived, received as usize))
    }

    /// Takes the frames of WebSocket away from what came, if there are such. Whether the server has closed the connection.
    fn unframe(&mut self, at: usize) -> Result<bool, String> {
        let Some(websocket) = &mut self.websocket else {
            return Ok(false);
        };
        let shown = &self.shown;
        if websocket.is_beginning() && tls::looks_like_tls(&self.input[at..]) {
            return Err(tls::unexpected(shown).to_string());
        }
        let taken = websocket.take(&mut self.input[at..]);
        let carried = taken.map_err(|why| format!("{shown}: {why}"))?;
        self.input.truncate(at + carried);
        websocket.answer(&mut self.out.bytes);
        Ok(websocket.closed().is_some())
    }

    /// The code with which the server has closed WebSocket, in words (RFC 6455 §7.4).
    pub fn close_code(&self) -> String {
        let closed = self.websocket.as_ref().and_then(WebSocket::closed);
        let code = closed.flatten().map(|code| format!(" (WebSocket {code})"));
        code.unwrap_or_default()
    }

    fn read_plain(&mut self, received: &mut u64) -> Result<Arrived, String> {
        let at = self.input.len();
        self.input.resize(at + READ, 0);
        let read = socket::read(self.fd.as_fd(), &mut self.input[at..]);
        let got = if let Io::Done(got) = read { got } else { 0 };
        self.input.truncate(at + got);
        *received += got as u64;
        match read {
            Io::Done(0) => Ok(Arrived::Ended),
            Io::Done(got) if got < READ => Ok(Arrived::Drained),
            Io::Done(_) => Ok(Arrived::More),
            Io::WouldBlock => Ok(Arrived::Drained),
            Io::Failed(errno) => Err(self.failure(errno)),
        }
    }

    fn read_tls(&mut self, received: &mut u64) -> Result<Arrived, String> {
        let Some(tls) = &mut self.tls else {
            return Ok(Arrived::Drained);
        };
        let arrived = tls::read(self.fd.as_fd(), tls, received);
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
