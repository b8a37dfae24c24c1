//! The frames that a server sends (RFC 6455 §5), taken away from around what they carry.

use std::io::Cursor;
use std::ops::Range;

use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};

/// The first byte of a binary message in one frame, without extensions.
const WHOLE_BINARY: u8 = 0x82;

/// Bytes of the longest header.
const HEADER: usize = 14;

/// Bytes of the longest payload of a frame that is about the connection (§5.5).
const CONTROL: u64 = 125;

/// Where in the frames the bytes are that come next. A frame may be of any length: of its payload nothing is kept here.
#[derive(Debug, Default)]
pub struct Frames {
    /// A header of which not all came: so many bytes of it.
    header: [u8; HEADER],
    header_len: u8,
    /// The frame whose payload comes, and the bytes of it that are still to come.
    frame: Option<(OpCode, u64)>,
    /// A message goes on with the next frame.
    goes_on: bool,
    /// The payload of a frame about the connection.
    control: Vec<u8>,
    /// The payload of the last ping that is not answered.
    ping: Option<Vec<u8>>,
    /// The server has closed the connection, with this code if it gave one (§7.4).
    pub closed: Option<Option<u16>>,
}

impl Frames {
    /// Takes the frames away from `bytes`, which begin at `from`: what they carry moves together at the beginning of
    /// `bytes`. How many bytes that are. Nothing is taken from behind the end of the connection.
    ///
    /// # Errors
    /// Describes what the protocol does not allow.
    pub fn take(&mut self, bytes: &mut [u8], from: usize) -> Result<usize, String> {
        let (mut read, mut kept) = (from, 0);
        while self.closed.is_none() {
            let Some((opcode, left)) = &mut self.frame else {
                if let Some(payload) = self.whole_message(&bytes[read..]) {
                    let (begin, end) = (read + payload.start, read + payload.end);
                    bytes.copy_within(begin..end, kept);
                    kept += payload.len();
                    read = end;
                    continue;
                }
                match self.begin(&bytes[read..])? {
                    Some(len) => read += len,
                    None => break,
                }
                continue;
            };
            let there = bytes.len() - read;
            let len = usize::try_from(*left).map_or(there, |left| left.min(there));
            match opcode {
                OpCode::Data(_) => {
                    bytes.copy_within(read..read + len, kept);
                    kept += len;
                }
                OpCode::Control(_) => self.control.extend_from_slice(&bytes[read..read + len]),
            }
            read += len;
            *left -= len as u64;
            if *left > 0 {
                break;
            }
            let opcode = *opcode;
            self.finish_frame(opcode);
        }
        Ok(kept)
    }

    /// Where the payload of the next frame is, if that is a binary message of its own of less than 64 KiB that came whole,
    /// as nearly all are: those cost no call of the library.
    #[inline]
    fn whole_message(&self, bytes: &[u8]) -> Option<Range<usize>> {
        if self.goes_on || self.header_len > 0 {
            return None;
        }
        let payload = match *bytes {
            [WHOLE_BINARY, len @ ..126, ..] => 2..2 + usize::from(len),
            [WHOLE_BINARY, 126, high, low, ..] => {
                4..4 + usize::from(u16::from_be_bytes([high, low]))
            }
            _ => return None,
        };
        (payload.end <= bytes.len()).then_some(payload)
    }

    /// Whether a ping is to be answered.
    #[inline]
    pub fn has_ping(&self) -> bool {
        self.ping.is_some()
    }

    /// The payload of the ping that is to be answered: of several the last one, which answers them all (§5.5.3).
    pub fn take_ping(&mut self) -> Option<Vec<u8>> {
        self.ping.take()
    }

    /// Bytes that it has memory for beside itself.
    #[cfg(test)]
    pub fn capacity(&self) -> usize {
        self.control.capacity()
    }

    /// Begins the next frame. How many bytes its header has here; none if not all of it came.
    fn begin(&mut self, bytes: &[u8]) -> Result<Option<usize>, String> {
        let before = usize::from(self.header_len);
        let parse = |bytes: &[u8]| {
            let mut cursor = Cursor::new(bytes);
            let parsed = FrameHeader::parse(&mut cursor).map_err(|error| error.to_string())?;
            Ok::<_, String>(parsed.map(|parsed| (parsed, cursor.position() as usize)))
        };
        // Most headers come whole; of others the bytes are gathered.
        if before == 0
            && let Some(((header, len), taken)) = parse(bytes)?
        {
            return self.begin_with(&header, len).map(|()| Some(taken));
        }
        let more = bytes.len().min(HEADER - before);
        self.header[before..before + more].copy_from_slice(&bytes[..more]);
        let gathered = self.header;
        match parse(&gathered[..before + more])? {
            Some(((header, len), taken)) => {
                self.header_len = 0;
                self.begin_with(&header, len)?;
                Ok(Some(taken - before))
            }
            None => {
                self.header_len = (before + more) as u8;
                Ok(None)
            }
        }
    }

    fn begin_with(&mut self, header: &FrameHeader, len: u64) -> Result<(), String> {
        self.check(header, len)?;
        self.frame = Some((header.opcode, len));
        Ok(())
    }

    fn check(&mut self, header: &FrameHeader, len: u64) -> Result<(), String> {
        let refused = |what: &str| Err(format!("{what}, which WebSocket does not allow"));
        if header.rsv1 || header.rsv2 || header.rsv3 {
            return refused("a frame of an extension that was not asked for (RFC 6455 §5.2)");
        }
        if header.mask.is_some() {
            return refused("a masked frame of a server (RFC 6455 §5.1)");
        }
        match header.opcode {
            OpCode::Data(Data::Binary) if self.goes_on => {
                refused("a message within another (RFC 6455 §5.4)")
            }
            OpCode::Data(Data::Continue) if !self.goes_on => {
                refused("the end of a message that never began (RFC 6455 §5.4)")
            }
            OpCode::Data(Data::Binary | Data::Continue) => {
                self.goes_on = !header.is_final;
                Ok(())
            }
            OpCode::Data(_) => Err("a frame of text, where binary ones are due".into()),
            OpCode::Control(_) if !header.is_final || len > CONTROL => {
                refused("a frame about the connection that is not short (RFC 6455 §5.5)")
            }
            OpCode::Control(_) => Ok(()),
        }
    }

    /// All of a frame came.
    fn finish_frame(&mut self, opcode: OpCode) {
        self.frame = None;
        match opcode {
            OpCode::Control(Control::Ping) => self.ping = Some(std::mem::take(&mut self.control)),
            OpCode::Control(Control::Close) => {
                let code = self
                    .control
                    .first_chunk()
                    .map(|code| u16::from_be_bytes(*code));
                self.closed = Some(code);
            }
            _ => self.control.clear(),
        }
    }
}
