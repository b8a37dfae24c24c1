//! AMQP 0-9-1 frames, methods and content, for clients and for servers.
//!
//! Decoding borrows from the receive buffer: [`decode_frame`] looks at the start of a byte slice
//! and returns a [`Frame`] that points into it, or that more bytes are needed, or an error.
//! [`Method::decode`] and [`ContentHeader::decode`] decode a frame's payload. Nothing is allocated
//! and nothing panics, whatever the bytes.
//!
//! The message path has two shortcuts: [`PublishTemplate`] keeps everything of a `basic.publish`
//! that does not change from one message to the next, and [`decode_delivery`] reads a whole
//! `basic.deliver` with its header and its only body frame in one call.
//!
//! Section numbers in this module are those of "AMQP Advanced Message Queuing Protocol,
//! Protocol Specification, Version 0-9-1" (13 November 2008); methods marked as extensions are
//! RabbitMQ's.
//!
//! ```
//! use pubgauge_driver_amqp::codec::{decode_frame, FrameKind, Method, method::QueueDeclare};
//!
//! let mut wire = Vec::new();
//! let declare = Method::QueueDeclare(QueueDeclare { queue: b"q", ..Default::default() });
//! declare.encode(1, &mut wire)?;
//! let (frame, consumed) = decode_frame(&wire, 4096)?.expect("a whole frame");
//! assert_eq!((frame.kind, frame.channel, consumed), (FrameKind::Method, 1, wire.len()));
//! assert_eq!(Method::decode(frame.payload)?, declare);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod content;
mod error;
mod frame;
pub mod method;
mod table;
mod template;
mod wire;

pub use content::{ContentHeader, Delivered, Properties, decode_delivery};
pub use error::{DecodeError, EncodeError};
pub use frame::{
    FRAME_MIN, FRAME_OVERHEAD, Frame, FrameKind, HEARTBEAT, PROTOCOL_HEADER, begin_frame,
    decode_frame, end_frame,
};
pub use method::Method;
pub use table::{Table, TableBuf, Value};
pub use template::PublishTemplate;
