//! The HTTP request and the answer with which a WebSocket connection begins (RFC 6455 §4).

use std::io::{self, Read, Write};

use tungstenite::ClientRequestBuilder;
use tungstenite::client::IntoClientRequest;
use tungstenite::error::{Error, ProtocolError, SubProtocolError};
use tungstenite::handshake::client::{ClientHandshake, Request};
use tungstenite::handshake::{HandshakeError, MidHandshake};
use tungstenite::http::Uri;

/// Most bytes of the answer, as HTTP servers themselves bound it.
const MOST: usize = 16 << 10;

/// Between the request and the answer.
pub struct Handshake {
    machine: MidHandshake<ClientHandshake<Memory>>,
    subprotocol: Box<str>,
    /// The answer, as far as it came.
    answer: Vec<u8>,
}

/// How far the answer came.
pub enum Answered {
    /// More of it is to come.
    Partly(Box<Handshake>),
    /// The server has accepted; from there on stands what it sent then.
    Accepted {
        /// Index into the bytes that were taken.
        rest: usize,
    },
}

impl std::fmt::Debug for Handshake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Handshake")
    }
}

/// Whether a request can be made of an address.
///
/// # Errors
/// Why it cannot.
pub fn check(url: &str) -> Result<(), String> {
    request(url, "").map(drop)
}

fn request(url: &str, subprotocol: &str) -> Result<Request, String> {
    let uri: Uri = url.parse().map_err(|error| format!("{error}"))?;
    let request = ClientRequestBuilder::new(uri).with_sub_protocol(subprotocol);
    request
        .into_client_request()
        .map_err(|error| error.to_string())
}

impl Handshake {
    pub fn begin(url: &str, subprotocol: &str, out: &mut Vec<u8>) -> Result<Handshake, String> {
        let cannot = |error: Error| format!("WebSocket cannot begin: {error}");
        let begun = ClientHandshake::start(Memory::default(), request(url, subprotocol)?, None);
        // It has the request written, and waits for the answer.
        match begun.map_err(cannot)?.handshake() {
            Err(HandshakeError::Interrupted(mut machine)) => {
                out.append(&mut machine.get_mut().get_mut().written);
                Ok(Handshake {
                    machine,
                    subprotocol: subprotocol.into(),
                    answer: Vec::new(),
                })
            }
            Err(HandshakeError::Failure(error)) => Err(cannot(error)),
            Ok(_) => Err("WebSocket cannot begin: it was answered before it was asked".into()),
        }
    }

    /// Takes the answer from `bytes`, as far as it came.
    ///
    /// # Errors
    /// Why that is no answer with which anything can begin.
    pub fn take(mut self: Box<Self>, bytes: &[u8]) -> Result<Answered, String> {
        let before = self.answer.len();
        self.answer.extend_from_slice(bytes);
        let mut beginning = self.answer.iter().zip(b"HTTP/");
        if !beginning.all(|(one, other)| one == other) {
            return Err("what answers is no HTTP server".into());
        }
        let from = before.saturating_sub(3);
        let mut fours = self.answer[from..].windows(4);
        let end = fours.position(|four| four == b"\r\n\r\n");
        let Some(end) = end.map(|at| from + at + 4).filter(|end| *end <= MOST) else {
            if self.answer.len() >= MOST {
                return Err(format!(
                    "the answer to its beginning is longer than {} KiB",
                    MOST >> 10
                ));
            }
            return Ok(Answered::Partly(self));
        };
        self.answer.truncate(end);
        self.machine.get_mut().get_mut().unread = io::Cursor::new(self.answer);
        match self.machine.handshake() {
            Ok(_) => Ok(Answered::Accepted { rest: end - before }),
            Err(HandshakeError::Failure(error)) => Err(refusal(&error, &self.subprotocol)),
            Err(HandshakeError::Interrupted(_)) => Err("what answers is no HTTP server".into()),
        }
    }
}

/// Why a connection is not accepted, in words.
fn refusal(error: &Error, subprotocol: &str) -> String {
    match error {
        Error::Http(answer) => {
            format!(
                "the server does not begin WebSocket there: HTTP {}",
                answer.status()
            )
        }
        Error::Protocol(ProtocolError::SecWebSocketSubProtocolError(
            SubProtocolError::NoSubProtocol | SubProtocolError::InvalidSubProtocol,
        )) => format!("the server has WebSocket there, without the subprotocol `{subprotocol}`"),
        other => format!("the server does not begin WebSocket as it should: {other}"),
    }
}

/// Buffers that the handshake reads and writes in place of a socket.
#[derive(Default)]
struct Memory {
    unread: io::Cursor<Vec<u8>>,
    written: Vec<u8>,
}

impl Read for Memory {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self.unread.read(buf) {
            Ok(0) => Err(io::ErrorKind::WouldBlock.into()),
            other => other,
        }
    }
}

impl Write for Memory {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.written.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
