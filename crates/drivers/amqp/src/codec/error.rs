//! Errors of decoding and encoding.

/// Bytes that are not AMQP 0-9-1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A frame of a type that does not exist (§2.3.5).
    #[error("a frame of type {0} (§2.3.5)")]
    UnknownFrame(u8),
    /// A protocol header: the peer speaks another version (§2.2.4).
    #[error("it speaks another version of AMQP: {0}.{1}.{2}.{3} (§2.2.4)")]
    OtherVersion(u8, u8, u8, u8),
    /// A frame that is longer than was agreed upon (§2.3.5).
    #[error("a frame of {len} bytes where {max} is the most (§2.3.5)")]
    FrameTooLong {
        /// Length of the whole frame in bytes.
        len: u64,
        /// The most that is allowed.
        max: usize,
    },
    /// A frame that does not end with 0xCE (§2.3.5).
    #[error("a frame without its end octet (§2.3.5)")]
    NoFrameEnd,
    /// A method that does not exist, or that this module does not decode.
    #[error("method {0}.{1}, which is not known here")]
    UnknownMethod(u16, u16),
    /// A frame's payload ends before its fields do.
    #[error("{0} ends before its fields do")]
    Truncated(&'static str),
    /// A frame's payload has bytes after its fields.
    #[error("{0} has bytes after its fields")]
    Trailing(&'static str),
    /// A content header that breaks its rules (§2.3.5.2).
    #[error("a content header with {0} (§2.3.5.2)")]
    Header(&'static str),
}

/// A value that the wire cannot express.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A short string has at most 255 bytes (§4.2.5.3).
    #[error("{0} bytes, but a short string has at most 255 (§4.2.5.3)")]
    ShortTooLong(usize),
    /// A long string or table has at most 4,294,967,295 bytes (§4.2.5.3).
    #[error("{0} bytes, but a long string or table has at most 4294967295 (§4.2.5.3)")]
    LongTooLong(usize),
}
