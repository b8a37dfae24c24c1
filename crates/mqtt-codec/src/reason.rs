//! Reason codes of MQTT 5 (§2.4) and return codes of 3.1.1 (§3.2.2.3, §3.9.3), in words.

use std::fmt;

use crate::packet_type::PacketType;

/// A reason code (5.0 §2.4). Below 0x80 it is a success, from 0x80 on a failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReasonCode(pub u8);

macro_rules! reason_codes {
    ($($name:ident = $code:literal, $words:literal, [$($packet:ident)*];)*) => {
        impl ReasonCode {
            $(#[doc = concat!("`", stringify!($code), "`: ", $words, ".")]
            pub const $name: ReasonCode = ReasonCode($code);)*

            /// The specification's own words for it.
            pub fn words(self) -> &'static str {
                match self.0 {
                    $($code => $words,)*
                    _ => "unknown reason code",
                }
            }

            /// Whether an MQTT 5 packet of this type may carry it.
            pub fn is_valid_in(self, packet: PacketType) -> bool {
                match self.0 {
                    $($code => match packet {
                        $(PacketType::$packet => true,)*
                        #[allow(unreachable_patterns)]
                        _ => false,
                    },)*
                    _ => false,
                }
            }
        }
    };
}

// 5.0 §2.4 table 2-6. One line for each code; where the table gives a code two names, the words
// hold for both.
reason_codes! {
    SUCCESS = 0x00, "success", [ConnAck PubAck PubRec PubRel PubComp UnsubAck Auth Disconnect SubAck];
    GRANTED_QOS_1 = 0x01, "granted QoS 1", [SubAck];
    GRANTED_QOS_2 = 0x02, "granted QoS 2", [SubAck];
    DISCONNECT_WITH_WILL = 0x04, "disconnect with will message", [Disconnect];
    NO_MATCHING_SUBSCRIBERS = 0x10, "no matching subscribers", [PubAck PubRec];
    NO_SUBSCRIPTION_EXISTED = 0x11, "no subscription existed", [UnsubAck];
    CONTINUE_AUTHENTICATION = 0x18, "continue authentication", [Auth];
    REAUTHENTICATE = 0x19, "re-authenticate", [Auth];
    UNSPECIFIED_ERROR = 0x80, "unspecified error", [ConnAck PubAck PubRec SubAck UnsubAck Disconnect];
    MALFORMED_PACKET = 0x81, "malformed packet", [ConnAck Disconnect];
    PROTOCOL_ERROR = 0x82, "protocol error", [ConnAck Disconnect];
    IMPLEMENTATION_SPECIFIC_ERROR = 0x83, "implementation specific error", [ConnAck PubAck PubRec SubAck UnsubAck Disconnect];
    UNSUPPORTED_PROTOCOL_VERSION = 0x84, "unsupported protocol version", [ConnAck];
    CLIENT_IDENTIFIER_NOT_VALID = 0x85, "client identifier not valid", [ConnAck];
    BAD_USER_NAME_OR_PASSWORD = 0x86, "bad user name or password", [ConnAck];
    NOT_AUTHORIZED = 0x87, "not authorized", [ConnAck PubAck PubRec SubAck UnsubAck Disconnect];
    SERVER_UNAVAILABLE = 0x88, "server unavailable", [ConnAck];
    SERVER_BUSY = 0x89, "server busy", [ConnAck Disconnect];
    BANNED = 0x8a, "banned", [ConnAck];
    SERVER_SHUTTING_DOWN = 0x8b, "server shutting down", [Disconnect];
    BAD_AUTHENTICATION_METHOD = 0x8c, "bad authentication method", [ConnAck Disconnect];
    KEEP_ALIVE_TIMEOUT = 0x8d, "keep alive timeout", [Disconnect];
    SESSION_TAKEN_OVER = 0x8e, "session taken over by another connection with the same client identifier", [Disconnect];
    TOPIC_FILTER_INVALID = 0x8f, "topic filter invalid", [SubAck UnsubAck Disconnect];
    TOPIC_NAME_INVALID = 0x90, "topic name invalid", [ConnAck PubAck PubRec Disconnect];
    PACKET_IDENTIFIER_IN_USE = 0x91, "packet identifier in use", [PubAck PubRec SubAck UnsubAck];
    PACKET_IDENTIFIER_NOT_FOUND = 0x92, "packet identifier not found", [PubRel PubComp];
    RECEIVE_MAXIMUM_EXCEEDED = 0x93, "receive maximum exceeded", [Disconnect];
    TOPIC_ALIAS_INVALID = 0x94, "topic alias invalid", [Disconnect];
    PACKET_TOO_LARGE = 0x95, "packet too large", [ConnAck Disconnect];
    MESSAGE_RATE_TOO_HIGH = 0x96, "message rate too high", [Disconnect];
    QUOTA_EXCEEDED = 0x97, "quota exceeded", [ConnAck PubAck PubRec SubAck Disconnect];
    ADMINISTRATIVE_ACTION = 0x98, "administrative action", [Disconnect];
    PAYLOAD_FORMAT_INVALID = 0x99, "payload format invalid", [ConnAck PubAck PubRec Disconnect];
    RETAIN_NOT_SUPPORTED = 0x9a, "retain not supported", [ConnAck Disconnect];
    QOS_NOT_SUPPORTED = 0x9b, "QoS not supported", [ConnAck Disconnect];
    USE_ANOTHER_SERVER = 0x9c, "use another server", [ConnAck Disconnect];
    SERVER_MOVED = 0x9d, "server moved", [ConnAck Disconnect];
    SHARED_SUBSCRIPTIONS_NOT_SUPPORTED = 0x9e, "shared subscriptions not supported", [SubAck Disconnect];
    CONNECTION_RATE_EXCEEDED = 0x9f, "connection rate exceeded", [ConnAck Disconnect];
    MAXIMUM_CONNECT_TIME = 0xa0, "maximum connect time", [Disconnect];
    SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED = 0xa1, "subscription identifiers not supported", [SubAck Disconnect];
    WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED = 0xa2, "wildcard subscriptions not supported", [SubAck Disconnect];
}

impl ReasonCode {
    /// Whether it is a failure, 0x80 or above (5.0 §2.4).
    pub fn is_error(self) -> bool {
        self.0 >= 0x80
    }

    /// Whether it ends the delivery of a message when it comes in a packet of this type, be it a code that the
    /// specification gives to other packets: from 0x80 on the answer is no (5.0 §4.3.2, §4.3.3), whatever the reason.
    pub fn rejects_in(self, packet: PacketType) -> bool {
        use PacketType::{PubAck, PubComp, PubRec};
        self.is_error() && matches!(packet, PubAck | PubRec | PubComp)
    }
}

impl fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (0x{:02x})", self.words(), self.0)
    }
}

/// A CONNACK return code of 3.1.1 in words (§3.2.2.3).
pub fn connect_return_code_words(code: u8) -> &'static str {
    match code {
        0 => "connection accepted",
        1 => "unacceptable protocol version",
        2 => "client identifier rejected",
        3 => "server unavailable",
        4 => "bad user name or password",
        5 => "not authorized",
        _ => "unknown return code",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_stand_only_where_table_2_6_has_them() {
        assert!(ReasonCode::NO_MATCHING_SUBSCRIBERS.is_valid_in(PacketType::PubRec));
        assert!(!ReasonCode::NO_MATCHING_SUBSCRIBERS.is_valid_in(PacketType::PubComp));
        assert!(ReasonCode::DISCONNECT_WITH_WILL.is_valid_in(PacketType::Disconnect));
        assert!(!ReasonCode(0x03).is_valid_in(PacketType::SubAck));
        assert!(!ReasonCode::SUCCESS.is_valid_in(PacketType::Publish));
    }

    #[test]
    fn every_error_rejects_a_message() {
        for packet in [PacketType::PubAck, PacketType::PubRec, PacketType::PubComp] {
            for code in 0..=u8::MAX {
                assert_eq!(
                    ReasonCode(code).rejects_in(packet),
                    code >= 0x80,
                    "{code:#x}"
                );
            }
        }
        assert!(!ReasonCode::PACKET_TOO_LARGE.rejects_in(PacketType::PubRel));
        assert!(!ReasonCode::PACKET_TOO_LARGE.rejects_in(PacketType::SubAck));
    }

    #[test]
    fn a_code_names_itself() {
        assert_eq!(ReasonCode(0x87).to_string(), "not authorized (0x87)");
        assert_eq!(ReasonCode(0x7e).to_string(), "unknown reason code (0x7e)");
    }
}
