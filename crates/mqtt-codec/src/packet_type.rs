//! The types of control packets.

macro_rules! packet_types {
    ($($name:ident = $number:literal, $words:literal;)*) => {
        /// Types of control packets with their numbers on the wire (5.0 §2.1.2).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[allow(missing_docs)] // Each is the name that the specification gives it.
        pub enum PacketType {
            $($name = $number,)*
        }

        impl PacketType {
            /// The type with this number.
            pub fn from_bits(bits: u8) -> Option<PacketType> {
                match bits {
                    $($number => Some(PacketType::$name),)*
                    _ => None,
                }
            }

            /// Its name as the specification writes it.
            pub fn name(self) -> &'static str {
                match self { $(PacketType::$name => $words,)* }
            }
        }
    };
}

packet_types! {
    Connect = 1, "CONNECT";
    ConnAck = 2, "CONNACK";
    Publish = 3, "PUBLISH";
    PubAck = 4, "PUBACK";
    PubRec = 5, "PUBREC";
    PubRel = 6, "PUBREL";
    PubComp = 7, "PUBCOMP";
    Subscribe = 8, "SUBSCRIBE";
    SubAck = 9, "SUBACK";
    Unsubscribe = 10, "UNSUBSCRIBE";
    UnsubAck = 11, "UNSUBACK";
    PingReq = 12, "PINGREQ";
    PingResp = 13, "PINGRESP";
    Disconnect = 14, "DISCONNECT";
    Auth = 15, "AUTH";
}
