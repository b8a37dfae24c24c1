//! MQTT over WebSocket (MQTT 5.0 §6, RFC 6455): its handshake, and the frames around what is sent and received. No sockets
//! here.

mod frames;
mod handshake;
#[cfg(test)]
mod tests;

use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};

use crate::random::random;
use frames::Frames;
use handshake::Handshake;

pub use handshake::check;

/// One end of a WebSocket connection, the client's.
pub struct WebSocket {
    /// None once the server has accepted.
    handshake: Option<Handshake>,
    frames: Frames,
}

impl WebSocket {
    /// Begins a connection to an address, ws://HOST:PORT/PATH, and appends the request to `out`.
    ///
    /// # Errors
    /// If a request cannot be made of the address.
    pub fn begin(url: &str, out: &mut Vec<u8>) -> Result<WebSocket, String> {
        let handshake = Handshake::begin(url, out)?;
        Ok(WebSocket {
            handshake: Some(handshake),
            frames: Frames::default(),
        })
    }

    /// Takes in what came, which stands in `bytes` from `from` on, and leaves there what it carries. What is to be answered
    /// is appended to `out`: one answer to many pings, so that a flood of them does not grow it.
    ///
    /// # Errors
    /// Why the connection cannot go on, in words.
    pub fn take(
        &mut self,
        bytes: &mut Vec<u8>,
        from: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        if let Some(handshake) = self.handshake.take() {
            self.handshake = handshake.take(bytes, from)?;
            if self.handshake.is_some() {
                return Ok(());
            }
        }
        self.frames.take(bytes, from)?;
        if let Some(payload) = self.frames.ping() {
            frame(OpCode::Control(Control::Pong), &payload, out);
        }
        Ok(())
    }

    /// Whether the server has not accepted the connection yet.
    pub fn is_beginning(&self) -> bool {
        self.handshake.is_some()
    }

    /// Whether the server has closed the connection, with the code of its reason if it gave one (RFC 6455 §7.4).
    pub fn closed(&self) -> Option<Option<u16>> {
        self.frames.closed
    }

    /// Moves `plain` into a frame at the end of `out`, once the server has accepted the connection.
    pub fn send(&self, plain: &mut Vec<u8>, out: &mut Vec<u8>) {
        if self.handshake.is_none() && !plain.is_empty() {
            frame(OpCode::Data(Data::Binary), plain, out);
            plain.clear();
        }
    }
}

/// Appends a frame with this payload, masked as all of a client's are (RFC 6455 §5.3).
fn frame(opcode: OpCode, payload: &[u8], out: &mut Vec<u8>) {
    let mask = (random() as u32).to_le_bytes();
    let header = FrameHeader {
        is_final: true,
        opcode,
        mask: Some(mask),
        ..FrameHeader::default()
    };
    // Writing to memory cannot fail.
    let _ = header.format(payload.len() as u64, out);
    let masked = payload.iter().zip(mask.iter().cycle());
    out.extend(masked.map(|(byte, mask)| byte ^ mask));
}
