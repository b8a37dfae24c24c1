//! WebSocket (RFC 6455): its handshake, and the frames around what is sent and received, both in place in the buffers that
//! are there anyway. No sockets here. What is taken from a server is bounded by whoever takes it: of a frame's payload
//! nothing is kept, however long it says that it is.

mod frames;
mod handshake;
#[cfg(test)]
mod tests;

use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};

use crate::random::random;
use frames::Frames;
use handshake::{Answered, Handshake};

pub use handshake::check;

/// The protocol that is named in the handshake of TLS (ALPN), as that of a browser is.
pub const ALPN: &[u8] = b"http/1.1";

/// Most bytes of a frame's payload: some servers take no frame beyond 64 KiB.
const MOST: usize = 32 << 10;

/// One end of a WebSocket connection, the client's.
#[derive(Debug)]
pub struct WebSocket {
    /// None once the server has accepted.
    handshake: Option<Box<Handshake>>,
    frames: Frames,
}

impl WebSocket {
    /// Begins a connection to an address, ws://HOST:PORT/PATH, over which `subprotocol` is to be spoken, and appends the
    /// request to `out`.
    ///
    /// # Errors
    /// If a request cannot be made of the address.
    pub fn begin(url: &str, subprotocol: &str, out: &mut Vec<u8>) -> Result<WebSocket, String> {
        let handshake = Handshake::begin(url, subprotocol, out)?;
        Ok(WebSocket {
            handshake: Some(Box::new(handshake)),
            frames: Frames::default(),
        })
    }

    /// Takes in what came, and moves what it carries to the beginning of `bytes`. How many bytes that are.
    ///
    /// # Errors
    /// Why the connection cannot go on, in words.
    pub fn take(&mut self, bytes: &mut [u8]) -> Result<usize, String> {
        let mut from = 0;
        if let Some(handshake) = self.handshake.take() {
            match handshake.take(bytes)? {
                Answered::Partly(handshake) => {
                    self.handshake = Some(handshake);
                    return Ok(0);
                }
                Answered::Accepted { rest } => from = rest,
            }
        }
        self.frames.take(bytes, from)
    }

    /// Whether the server has not accepted the connection yet.
    #[inline]
    pub fn is_beginning(&self) -> bool {
        self.handshake.is_some()
    }

    /// Whether the server has closed the connection, with the code of its reason if it gave one (RFC 6455 §7.4).
    pub fn closed(&self) -> Option<Option<u16>> {
        self.frames.closed
    }

    /// Whether a ping waits for its answer.
    #[inline]
    pub fn owes_pong(&self) -> bool {
        self.frames.has_ping()
    }

    /// Appends the answer to the last ping, which answers those before it, too (RFC 6455 §5.5.3): a flood of them does not
    /// grow `out`.
    pub fn answer(&mut self, out: &mut Vec<u8>) {
        if let Some(payload) = self.frames.take_ping() {
            let at = out.len();
            out.extend_from_slice(&payload);
            frame(OpCode::Control(Control::Pong), out, at);
        }
    }

    /// Puts what stands in `out` from `from` on into frames, where it stands.
    pub fn frame(&self, out: &mut Vec<u8>, from: usize) {
        frame(OpCode::Data(Data::Binary), out, from);
    }
}

/// Puts the bytes from `from` on into as many frames as they need, each a message of its own, masked as all of a client's
/// are (RFC 6455 §5.3).
fn frame(opcode: OpCode, out: &mut Vec<u8>, from: usize) {
    let random = random();
    let header = FrameHeader {
        is_final: true,
        opcode,
        mask: Some((random as u32).to_ne_bytes()),
        ..FrameHeader::default()
    };
    let mut left = out.len() - from;
    // One about the connection may be empty.
    let least = usize::from(matches!(opcode, OpCode::Control(_)));
    let count = left.div_ceil(MOST).max(least);
    let long = header.len(MOST as u64);
    // From the last to the first: each moves behind the headers that are before it.
    for nth in (0..count).rev() {
        let begin = nth * MOST;
        let len = left - begin;
        let head = header.len(len as u64);
        let (source, target) = (from + begin, from + begin + nth * long);
        out.resize(out.len().max(target + head + len), 0);
        out.copy_within(source..source + len, target + head);
        let (first, payload) = out[target..].split_at_mut(head);
        // Writing to memory that is as long as the header cannot fail.
        let _ = header.format(len as u64, &mut &mut first[..]);
        mask(&mut payload[..len], random as u32);
        left = begin;
    }
}

/// Masks each four bytes with those of `key`.
fn mask(bytes: &mut [u8], key: u32) {
    let wide = u64::from(key) | u64::from(key) << 32;
    let (eights, rest) = bytes.as_chunks_mut::<8>();
    for eight in eights {
        *eight = (u64::from_ne_bytes(*eight) ^ wide).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(wide.to_ne_bytes()) {
        *byte ^= key;
    }
}
