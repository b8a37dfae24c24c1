//! Methods (§1.2 to §1.8 of the reference), each with its fields in their order.

use super::error::{DecodeError, EncodeError};
use super::frame::{FrameKind, begin_frame, end_frame};
use super::table::Table;
use super::wire::{Field, FieldReader};

pub use super::wire::Long;

/// Bits of [`QueueDeclare::bits`]; the first two also of [`ExchangeDeclare::bits`].
pub mod declare {
    /// Only ask whether it exists.
    pub const PASSIVE: u8 = 1;
    /// It survives a restart.
    pub const DURABLE: u8 = 2;
    /// A queue for this connection only.
    pub const EXCLUSIVE: u8 = 4;
    /// A queue that the server deletes after its last consumer.
    pub const AUTO_DELETE: u8 = 8;
}

/// Bits of [`QueueDelete::bits`].
pub mod delete {
    /// Only if nobody consumes from it.
    pub const IF_UNUSED: u8 = 1;
    /// Without an answer.
    pub const NO_WAIT: u8 = 4;
}

/// Bits of [`BasicConsume::bits`].
pub mod consume {
    /// Messages count as acknowledged when they are sent.
    pub const NO_ACK: u8 = 2;
}

/// Bit of [`BasicPublish::bits`]: return the message if no queue gets it.
pub const MANDATORY: u8 = 1;

/// Bit of [`BasicAck::bits`] and [`BasicNack::bits`]: all up to this delivery tag.
pub const MULTIPLE: u8 = 1;

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident $class:literal $id:literal $text:literal {
        $($(#[$field_doc:meta])* $field:ident: $t:ty,)*
    })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            pub struct $name<'a> {
                $($(#[$field_doc])* pub $field: $t,)*
                /// Lets methods without fields have the same form as the others.
                pub _bytes: std::marker::PhantomData<&'a [u8]>,
            }
        )*

        /// Any method that this module decodes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Method<'a> {
            $($(#[$doc])* $name($name<'a>),)*
        }

        impl<'a> Method<'a> {
            /// Reads a method frame's payload.
            ///
            /// # Errors
            /// An unknown method, fields that are cut off, bytes after the last field.
            pub fn decode(payload: &'a [u8]) -> Result<Method<'a>, DecodeError> {
                let mut reader = FieldReader(payload);
                let (Some(class), Some(id)) = (reader.u16(), reader.u16()) else {
                    return Err(DecodeError::Truncated("a method"));
                };
                match (class, id) {
                    $(($class, $id) => {
                        #[allow(unused_mut)] // Some methods have no fields.
                        let mut fields = || -> Option<$name<'a>> {
                            Some($name {
                                $($field: Field::get(&mut reader)?,)*
                                _bytes: std::marker::PhantomData,
                            })
                        };
                        let method = fields().ok_or(DecodeError::Truncated($text))?;
                        match reader.0 {
                            [] => Ok(Method::$name(method)),
                            _ => Err(DecodeError::Trailing($text)),
                        }
                    })*
                    _ => Err(DecodeError::UnknownMethod(class, id)),
                }
            }

            /// Appends the method as a whole frame on `channel`.
            ///
            /// # Errors
            /// A string that is too long for its field. Nothing was appended.
            pub fn encode(&self, channel: u16, out: &mut Vec<u8>) -> Result<(), EncodeError> {
                let at = begin_frame(FrameKind::Method, channel, out);
                let result = self.fields(out);
                match result {
                    Ok(()) => end_frame(at, out),
                    Err(_) => out.truncate(at),
                }
                result
            }

            fn fields(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
                match self {
                    $(Method::$name(method) => {
                        out.extend_from_slice(&u16::to_be_bytes($class));
                        out.extend_from_slice(&u16::to_be_bytes($id));
                        $(Field::encode(&method.$field, out)?;)*
                        let _ = method;
                    })*
                }
                Ok(())
            }

            /// Its name in the specification, for example `queue.declare`.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Method::$name(_) => $text,)*
                }
            }
        }
    };
}

methods! {
    /// The server names its version, properties and SASL mechanisms.
    ConnectionStart 10 10 "connection.start" {
        /// 0
        version_major: u8,
        /// 9
        version_minor: u8,
        /// Its name, version and capabilities.
        server_properties: Table<'a>,
        /// SASL mechanisms, separated by spaces.
        mechanisms: Long<'a>,
        /// Locales, separated by spaces.
        locales: Long<'a>,
    }
    /// The client names its properties and logs in.
    ConnectionStartOk 10 11 "connection.start-ok" {
        /// Its name, version and capabilities.
        client_properties: Table<'a>,
        /// The SASL mechanism it has chosen.
        mechanism: &'a [u8],
        /// The mechanism's first response.
        response: Long<'a>,
        /// The locale it has chosen.
        locale: &'a [u8],
    }
    /// A further SASL challenge.
    ConnectionSecure 10 20 "connection.secure" {
        challenge: Long<'a>,
    }
    /// The server proposes limits; 0 means none.
    ConnectionTune 10 30 "connection.tune" {
        /// Highest channel number.
        channel_max: u16,
        /// Longest frame in bytes.
        frame_max: u32,
        /// Seconds between signs of life.
        heartbeat: u16,
    }
    /// The client settles the limits.
    ConnectionTuneOk 10 31 "connection.tune-ok" {
        /// Highest channel number.
        channel_max: u16,
        /// Longest frame in bytes.
        frame_max: u32,
        /// Seconds between signs of life.
        heartbeat: u16,
    }
    /// Enters a virtual host.
    ConnectionOpen 10 40 "connection.open" {
        virtual_host: &'a [u8],
        reserved_1: &'a [u8],
        /// 0.
        reserved_2: u8,
    }
    /// Answer to `connection.open`.
    ConnectionOpenOk 10 41 "connection.open-ok" {
        reserved_1: &'a [u8],
    }
    /// Ends the connection, and says why.
    ConnectionClose 10 50 "connection.close" {
        /// 200 for an orderly end (§1.2 of the reference for the others).
        reply_code: u16,
        reply_text: &'a [u8],
        /// Class of the method that was wrong, or 0.
        class_id: u16,
        /// The method that was wrong, or 0.
        method_id: u16,
    }
    /// The end is agreed upon.
    ConnectionCloseOk 10 51 "connection.close-ok" {}
    /// Extension: the server is short of memory or disk and takes no more messages.
    ConnectionBlocked 10 60 "connection.blocked" {
        reason: &'a [u8],
    }
    /// Extension: it takes messages again.
    ConnectionUnblocked 10 61 "connection.unblocked" {}
    ChannelOpen 20 10 "channel.open" {
        reserved_1: &'a [u8],
    }
    /// Answer to `channel.open`.
    ChannelOpenOk 20 11 "channel.open-ok" {
        reserved_1: Long<'a>,
    }
    /// Stops or resumes the flow of messages.
    ChannelFlow 20 20 "channel.flow" {
        /// 1 if messages may flow.
        active: u8,
    }
    /// Answer to `channel.flow`.
    ChannelFlowOk 20 21 "channel.flow-ok" {
        /// 1 if messages flow.
        active: u8,
    }
    /// Ends a channel, and says why.
    ChannelClose 20 40 "channel.close" {
        /// As of [`ConnectionClose`].
        reply_code: u16,
        reply_text: &'a [u8],
        /// Class of the method that was wrong, or 0.
        class_id: u16,
        /// The method that was wrong, or 0.
        method_id: u16,
    }
    /// The end is agreed upon.
    ChannelCloseOk 20 41 "channel.close-ok" {}
    /// Creates an exchange, or checks that it exists.
    ExchangeDeclare 40 10 "exchange.declare" {
        /// 0.
        reserved_1: u16,
        exchange: &'a [u8],
        /// `topic`, `direct`, `fanout`, ...
        kind: &'a [u8],
        /// See [`declare`].
        bits: u8,
        arguments: Table<'a>,
    }
    /// Answer to `exchange.declare`.
    ExchangeDeclareOk 40 11 "exchange.declare-ok" {}
    /// Creates a queue, or checks that it exists.
    QueueDeclare 50 10 "queue.declare" {
        /// 0.
        reserved_1: u16,
        /// Its name; empty to have one chosen.
        queue: &'a [u8],
        /// See [`declare`].
        bits: u8,
        arguments: Table<'a>,
    }
    /// Answer to `queue.declare`.
    QueueDeclareOk 50 11 "queue.declare-ok" {
        queue: &'a [u8],
        /// Messages in it, as of now.
        message_count: u32,
        consumer_count: u32,
    }
    /// Binds a queue to an exchange.
    QueueBind 50 20 "queue.bind" {
        /// 0.
        reserved_1: u16,
        /// The queue; empty for the one that was declared last on this channel.
        queue: &'a [u8],
        exchange: &'a [u8],
        /// Binding key: which messages go to the queue.
        routing_key: &'a [u8],
        /// 1 for no answer.
        no_wait: u8,
        arguments: Table<'a>,
    }
    /// Answer to `queue.bind`.
    QueueBindOk 50 21 "queue.bind-ok" {}
    /// Removes a queue.
    QueueDelete 50 40 "queue.delete" {
        /// 0.
        reserved_1: u16,
        queue: &'a [u8],
        /// 1 only if unused, 2 only if empty, 4 for no answer.
        bits: u8,
    }
    /// Answer to `queue.delete`.
    QueueDeleteOk 50 41 "queue.delete-ok" {
        /// Messages that were in it.
        message_count: u32,
    }
    /// Limits the unacknowledged deliveries to consumers.
    BasicQos 60 10 "basic.qos" {
        /// In bytes; 0 for no limit.
        prefetch_size: u32,
        /// In messages; 0 for no limit.
        prefetch_count: u16,
        /// 1 for the channel rather than each of its consumers (RabbitMQ's reading).
        global: u8,
    }
    /// Answer to `basic.qos`.
    BasicQosOk 60 11 "basic.qos-ok" {}
    /// Starts a consumer.
    BasicConsume 60 20 "basic.consume" {
        /// 0.
        reserved_1: u16,
        /// The queue; empty for the one that was declared last on this channel.
        queue: &'a [u8],
        /// Its name; empty to have one chosen.
        consumer_tag: &'a [u8],
        /// See [`consume`].
        bits: u8,
        arguments: Table<'a>,
    }
    /// Answer to `basic.consume`.
    BasicConsumeOk 60 21 "basic.consume-ok" {
        consumer_tag: &'a [u8],
    }
    /// Ends a consumer; from the server: its queue was deleted (extension).
    BasicCancel 60 30 "basic.cancel" {
        consumer_tag: &'a [u8],
        /// 1 for no answer.
        no_wait: u8,
    }
    /// Answer to `basic.cancel`.
    BasicCancelOk 60 31 "basic.cancel-ok" {
        consumer_tag: &'a [u8],
    }
    /// Publishes a message; header and body follow.
    BasicPublish 60 40 "basic.publish" {
        /// 0.
        reserved_1: u16,
        exchange: &'a [u8],
        /// Key that it routes by.
        routing_key: &'a [u8],
        /// See [`MANDATORY`].
        bits: u8,
    }
    /// A mandatory message that no queue got; header and body follow.
    BasicReturn 60 50 "basic.return" {
        /// 312 for no route.
        reply_code: u16,
        reply_text: &'a [u8],
        exchange: &'a [u8],
        /// Key that it routes by.
        routing_key: &'a [u8],
    }
    /// A message for a consumer; header and body follow.
    BasicDeliver 60 60 "basic.deliver" {
        consumer_tag: &'a [u8],
        /// Delivery tag: its number on this channel.
        delivery_tag: u64,
        /// 1 if it was delivered before.
        redelivered: u8,
        /// The exchange it was published to.
        exchange: &'a [u8],
        /// Key that it was routed by.
        routing_key: &'a [u8],
    }
    /// Acknowledges a delivery; from the server: confirms a published message (extension).
    BasicAck 60 80 "basic.ack" {
        /// Delivery tag: number of the message on this channel.
        delivery_tag: u64,
        /// See [`MULTIPLE`].
        bits: u8,
    }
    /// Extension: rejects a delivery, or a published message.
    BasicNack 60 120 "basic.nack" {
        /// Delivery tag: number of the message on this channel.
        delivery_tag: u64,
        /// [`MULTIPLE`], and 2 to put the message back into the queue.
        bits: u8,
    }
    /// Extension: asks the server to confirm messages published on this channel.
    ConfirmSelect 85 10 "confirm.select" {
        /// 1 for no answer.
        no_wait: u8,
    }
    /// Answer to `confirm.select`.
    ConfirmSelectOk 85 11 "confirm.select-ok" {}
    /// Makes the channel transactional.
    TxSelect 90 10 "tx.select" {}
    /// Answer to `tx.select`.
    TxSelectOk 90 11 "tx.select-ok" {}
    /// Ends a transaction: what was published in it is published.
    TxCommit 90 20 "tx.commit" {}
    /// Answer to `tx.commit`.
    TxCommitOk 90 21 "tx.commit-ok" {}
    /// Ends a transaction: what was published in it is not.
    TxRollback 90 30 "tx.rollback" {}
    /// Answer to `tx.rollback`.
    TxRollbackOk 90 31 "tx.rollback-ok" {}
}
