//! MQTT 5 properties (§2.2.2), and which packets each may be in.

use crate::error::{DecodeError, EncodeError};
use crate::packet_type::PacketType;
use crate::reason::ReasonCode;
use crate::topic;
use crate::wire::{PacketReader, VARINT_MAX, write_binary, write_varint};

const SECTION: &str = "5.0 §2.2.2.2";

/// Where properties are: a packet type, or the will of a CONNECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PropertyScope(u16);

impl PropertyScope {
    /// The will; it has the bit of packet type 0, which does not exist.
    pub const WILL: PropertyScope = PropertyScope(1);

    pub const fn in_packet(packet: PacketType) -> PropertyScope {
        PropertyScope(1 << packet as u8)
    }
}

macro_rules! mask {
    ($($place:ident)*) => { 0 $(| mask!(@ $place))* };
    (@ Will) => { PropertyScope::WILL.0 };
    (@ $packet:ident) => { PropertyScope::in_packet(PacketType::$packet).0 };
}

macro_rules! properties {
    ($($name:ident = $id:literal, $words:literal, $kind:ident $ty:ty, [$($place:ident)*];)*) => {
        /// Identifiers of properties (5.0 table 2-4).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum PropertyId {
            $(#[doc = concat!($words, " (`", stringify!($id), "`).")] $name = $id,)*
        }

        /// One property (5.0 table 2-4).
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Property<'a> {
            $(#[doc = concat!($words, " (`", stringify!($id), "`).")] $name($ty),)*
        }

        impl Property<'_> {
            /// Its identifier.
            pub fn id(&self) -> PropertyId {
                match self { $(Property::$name(_) => PropertyId::$name,)* }
            }

            /// Its name as the specification writes it.
            pub fn name(&self) -> &'static str {
                match self { $(Property::$name(_) => $words,)* }
            }
        }

        /// Reads one property; the bits are the places that allow it.
        #[inline]
        fn read<'a>(reader: &mut PacketReader<'a>) -> Result<(Property<'a>, u16), DecodeError> {
            // An identifier is a variable byte integer, but all that exist take one byte.
            match reader.u8()? {
                $($id => Ok((Property::$name(reader.$kind()?), mask!($($place)*))),)*
                id => Err(DecodeError::malformed("unknown property identifier", SECTION).with_found(id)),
            }
        }

        fn write(out: &mut Vec<u8>, property: Property<'_>) -> Result<(), EncodeError> {
            out.push(property.id() as u8);
            match property { $(Property::$name(value) => emit::$kind(out, value, $words),)* }
        }
    };
}

properties! {
    PayloadFormatIndicator = 0x01, "Payload Format Indicator", boolean bool, [Publish Will];
    MessageExpiryInterval = 0x02, "Message Expiry Interval", u32 u32, [Publish Will];
    ContentType = 0x03, "Content Type", string &'a str, [Publish Will];
    ResponseTopic = 0x08, "Response Topic", topic &'a str, [Publish Will];
    CorrelationData = 0x09, "Correlation Data", binary &'a [u8], [Publish Will];
    SubscriptionIdentifier = 0x0b, "Subscription Identifier", nonzero_varint u32, [Publish Subscribe];
    SessionExpiryInterval = 0x11, "Session Expiry Interval", u32 u32, [Connect ConnAck Disconnect];
    AssignedClientIdentifier = 0x12, "Assigned Client Identifier", string &'a str, [ConnAck];
    ServerKeepAlive = 0x13, "Server Keep Alive", u16 u16, [ConnAck];
    AuthenticationMethod = 0x15, "Authentication Method", string &'a str, [Connect ConnAck Auth];
    AuthenticationData = 0x16, "Authentication Data", binary &'a [u8], [Connect ConnAck Auth];
    RequestProblemInformation = 0x17, "Request Problem Information", boolean bool, [Connect];
    WillDelayInterval = 0x18, "Will Delay Interval", u32 u32, [Will];
    RequestResponseInformation = 0x19, "Request Response Information", boolean bool, [Connect];
    ResponseInformation = 0x1a, "Response Information", string &'a str, [ConnAck];
    ServerReference = 0x1c, "Server Reference", string &'a str, [ConnAck Disconnect];
    ReasonString = 0x1f, "Reason String", string &'a str, [ConnAck PubAck PubRec PubRel PubComp SubAck UnsubAck Disconnect Auth];
    ReceiveMaximum = 0x21, "Receive Maximum", nonzero_u16 u16, [Connect ConnAck];
    TopicAliasMaximum = 0x22, "Topic Alias Maximum", u16 u16, [Connect ConnAck];
    TopicAlias = 0x23, "Topic Alias", alias u16, [Publish];
    MaximumQoS = 0x24, "Maximum QoS", boolean bool, [ConnAck];
    RetainAvailable = 0x25, "Retain Available", boolean bool, [ConnAck];
    UserProperty = 0x26, "User Property", pair (&'a str, &'a str), [Connect ConnAck Publish Will PubAck PubRec PubRel PubComp Subscribe SubAck Unsubscribe UnsubAck Disconnect Auth];
    MaximumPacketSize = 0x27, "Maximum Packet Size", nonzero_u32 u32, [Connect ConnAck];
    WildcardSubscriptionAvailable = 0x28, "Wildcard Subscription Available", boolean bool, [ConnAck];
    SubscriptionIdentifierAvailable = 0x29, "Subscription Identifier Available", boolean bool, [ConnAck];
    SharedSubscriptionAvailable = 0x2a, "Shared Subscription Available", boolean bool, [ConnAck];
}

fn nonzero<T: PartialEq + From<u8>>(value: T) -> Result<T, DecodeError> {
    if value == T::from(0) {
        return Err(DecodeError::protocol(
            "a property that must not be 0 is 0",
            "5.0 §3.1.2.11.3, §3.1.2.11.4, §3.8.2.1.2",
        ));
    }
    Ok(value)
}

/// Readers of the values that properties alone have, with the rules that hold in every place.
impl<'a> PacketReader<'a> {
    fn boolean(&mut self) -> Result<bool, DecodeError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(DecodeError::protocol(
                "a property that is 0 or 1 has another value",
                SECTION,
            )
            .with_found(other)),
        }
    }

    fn nonzero_u16(&mut self) -> Result<u16, DecodeError> {
        nonzero(self.u16()?)
    }

    fn alias(&mut self) -> Result<u16, DecodeError> {
        match self.u16()? {
            0 => Err(
                DecodeError::protocol("a topic alias is 0", "5.0 §3.3.2.3.4")
                    .with_reason(ReasonCode::TOPIC_ALIAS_INVALID),
            ),
            alias => Ok(alias),
        }
    }

    fn nonzero_u32(&mut self) -> Result<u32, DecodeError> {
        nonzero(self.u32()?)
    }

    fn nonzero_varint(&mut self) -> Result<u32, DecodeError> {
        nonzero(self.varint()?)
    }

    fn topic(&mut self) -> Result<&'a str, DecodeError> {
        let text = self.string()?;
        topic::check_response_topic(text)?;
        Ok(text)
    }

    fn pair(&mut self) -> Result<(&'a str, &'a str), DecodeError> {
        Ok((self.string()?, self.string()?))
    }
}

/// Writers of the values, under the same names.
mod emit {
    use super::*;

    type EncodeResult = Result<(), EncodeError>;

    pub fn boolean(out: &mut Vec<u8>, value: bool, _: &'static str) -> EncodeResult {
        out.push(u8::from(value));
        Ok(())
    }
    pub fn u16(out: &mut Vec<u8>, value: u16, _: &'static str) -> EncodeResult {
        out.extend_from_slice(&value.to_be_bytes());
        Ok(())
    }
    pub use self::u16 as nonzero_u16;
    pub use self::u16 as alias;
    pub fn u32(out: &mut Vec<u8>, value: u32, _: &'static str) -> EncodeResult {
        out.extend_from_slice(&value.to_be_bytes());
        Ok(())
    }
    pub use self::u32 as nonzero_u32;
    pub fn nonzero_varint(out: &mut Vec<u8>, value: u32, name: &'static str) -> EncodeResult {
        if value > VARINT_MAX {
            return Err(EncodeError::FieldTooLong(name));
        }
        write_varint(out, value);
        Ok(())
    }
    pub fn string(out: &mut Vec<u8>, value: &str, name: &'static str) -> EncodeResult {
        write_binary(out, value.as_bytes(), name)
    }
    pub use self::string as topic;
    pub fn binary(out: &mut Vec<u8>, value: &[u8], name: &'static str) -> EncodeResult {
        write_binary(out, value, name)
    }
    pub fn pair(out: &mut Vec<u8>, value: (&str, &str), name: &'static str) -> EncodeResult {
        write_binary(out, value.0.as_bytes(), name)?;
        write_binary(out, value.1.as_bytes(), name)
    }
}

/// The properties of one packet, in wire form without their length.
///
/// Those of a decoded packet have been checked: each is allowed there, and none but User Property
/// (and, in a PUBLISH, Subscription Identifier) occurs twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Properties<'a> {
    raw: &'a [u8],
}

impl<'a> Properties<'a> {
    /// Whether there are none.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.raw.is_empty()
    }

    /// The wire form, without the length in front of it.
    #[inline]
    pub fn as_bytes(self) -> &'a [u8] {
        self.raw
    }

    /// The properties of a PUBLISH from their wire form, as [`Properties::as_bytes`] gives it.
    ///
    /// # Errors
    /// If they are none, or a PUBLISH cannot have them.
    pub fn of_publish(raw: &'a [u8]) -> Result<Self, DecodeError> {
        let properties = Properties { raw };
        properties.check(PropertyScope::in_packet(PacketType::Publish))?;
        Ok(properties)
    }

    /// All properties in their order.
    pub fn iter(self) -> PropertiesIter<'a> {
        PropertiesIter(PacketReader::new(self.raw))
    }

    /// The first property with this identifier.
    pub fn find(self, id: PropertyId) -> Option<Property<'a>> {
        self.iter().find(|p| p.id() == id)
    }

    /// The number under this identifier, whatever its width; booleans are 0 and 1. `None` if it
    /// is absent or not a number.
    pub fn number(self, id: PropertyId) -> Option<u32> {
        use Property::*;
        match self.find(id)? {
            PayloadFormatIndicator(v)
            | RequestProblemInformation(v)
            | RequestResponseInformation(v)
            | MaximumQoS(v)
            | RetainAvailable(v)
            | WildcardSubscriptionAvailable(v)
            | SubscriptionIdentifierAvailable(v)
            | SharedSubscriptionAvailable(v) => Some(u32::from(v)),
            ServerKeepAlive(v) | ReceiveMaximum(v) | TopicAliasMaximum(v) | TopicAlias(v) => {
                Some(u32::from(v))
            }
            MessageExpiryInterval(v)
            | SubscriptionIdentifier(v)
            | SessionExpiryInterval(v)
            | WillDelayInterval(v)
            | MaximumPacketSize(v) => Some(v),
            _ => None,
        }
    }

    /// The text under this identifier. `None` if it is absent or not text.
    pub fn text(self, id: PropertyId) -> Option<&'a str> {
        use Property::*;
        match self.find(id)? {
            ContentType(v)
            | ResponseTopic(v)
            | AssignedClientIdentifier(v)
            | AuthenticationMethod(v)
            | ResponseInformation(v)
            | ServerReference(v)
            | ReasonString(v) => Some(v),
            _ => None,
        }
    }

    /// All user properties in their order.
    pub fn user_properties(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.iter().filter_map(|p| match p {
            Property::UserProperty(pair) => Some(pair),
            _ => None,
        })
    }

    /// Reads the length and the properties that follow it.
    #[inline]
    pub(crate) fn read(
        reader: &mut PacketReader<'a>,
        place: PropertyScope,
    ) -> Result<Self, DecodeError> {
        let len = reader.varint()?;
        let raw = reader.bytes(len as usize)?;
        let properties = Properties { raw };
        if !raw.is_empty() {
            properties.check(place)?;
        }
        Ok(properties)
    }

    /// Checks that `place` allows each property and that none occurs twice.
    pub(crate) fn check(self, place: PropertyScope) -> Result<(), DecodeError> {
        let mut reader = PacketReader::new(self.raw);
        let mut seen = 0u64;
        while !reader.is_empty() {
            let (property, places) = read(&mut reader)?;
            let id = property.id();
            if places & place.0 == 0 {
                return Err(DecodeError::protocol(
                    "a property that does not belong in this packet",
                    SECTION,
                )
                .with_found(id as u8));
            }
            let repeats = id == PropertyId::UserProperty
                || id == PropertyId::SubscriptionIdentifier
                    && place == PropertyScope::in_packet(PacketType::Publish);
            if seen & 1 << id as u8 != 0 && !repeats {
                return Err(
                    DecodeError::protocol("a property stands twice", SECTION).with_found(id as u8)
                );
            }
            seen |= 1 << id as u8;
        }
        let (data, method) = (
            PropertyId::AuthenticationData,
            PropertyId::AuthenticationMethod,
        );
        if seen & 1 << data as u8 != 0 && seen & 1 << method as u8 == 0 {
            return Err(DecodeError::protocol(
                "authentication data without an authentication method",
                "5.0 §3.1.2.11.10",
            ));
        }
        Ok(())
    }

    pub(crate) fn write(self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let len = u32::try_from(self.raw.len()).map_err(|_| EncodeError::PacketTooLong)?;
        if len > VARINT_MAX {
            return Err(EncodeError::PacketTooLong);
        }
        write_varint(out, len);
        out.extend_from_slice(self.raw);
        Ok(())
    }
}

impl<'a> IntoIterator for Properties<'a> {
    type Item = Property<'a>;
    type IntoIter = PropertiesIter<'a>;

    fn into_iter(self) -> PropertiesIter<'a> {
        self.iter()
    }
}

/// Iterator over [`Properties`].
#[derive(Clone, Debug)]
pub struct PropertiesIter<'a>(PacketReader<'a>);

impl<'a> Iterator for PropertiesIter<'a> {
    type Item = Property<'a>;

    #[inline]
    fn next(&mut self) -> Option<Property<'a>> {
        if self.0.is_empty() {
            return None;
        }
        // Checked when it was decoded: an error here ends the iteration.
        read(&mut self.0).ok().map(|(property, _)| property)
    }
}

/// Builds [`Properties`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PropertiesBuf {
    raw: Vec<u8>,
}

impl PropertiesBuf {
    /// Adds a property.
    ///
    /// # Errors
    /// If a string or binary value is longer than 65,535 bytes. Whether the packet allows the
    /// property is checked when it is encoded.
    pub fn push(&mut self, property: Property<'_>) -> Result<(), EncodeError> {
        let before = self.raw.len();
        write(&mut self.raw, property).inspect_err(|_| self.raw.truncate(before))
    }

    /// The properties added so far.
    pub fn as_properties(&self) -> Properties<'_> {
        Properties { raw: &self.raw }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(properties: &[Property<'_>], place: PropertyScope) -> Result<(), DecodeError> {
        let mut buf = PropertiesBuf::default();
        for p in properties {
            buf.push(*p).unwrap();
        }
        buf.as_properties().check(place)
    }

    #[test]
    fn a_property_stands_only_where_table_2_4_has_it() {
        let publish = PropertyScope::in_packet(PacketType::Publish);
        let connect = PropertyScope::in_packet(PacketType::Connect);
        assert!(check(&[Property::TopicAlias(3)], publish).is_ok());
        assert!(check(&[Property::TopicAlias(3)], PropertyScope::WILL).is_err());
        assert!(check(&[Property::WillDelayInterval(3)], PropertyScope::WILL).is_ok());
        assert!(check(&[Property::WillDelayInterval(3)], connect).is_err());
        assert!(check(&[Property::ReceiveMaximum(0)], connect).is_err());
        assert!(check(&[Property::TopicAlias(0)], publish).is_err());
    }

    #[test]
    fn only_user_properties_and_subscription_identifiers_repeat() {
        let publish = PropertyScope::in_packet(PacketType::Publish);
        let user = Property::UserProperty(("a", "b"));
        let subscription = Property::SubscriptionIdentifier(7);
        assert!(check(&[user, user], publish).is_ok());
        assert!(check(&[subscription, subscription], publish).is_ok());
        assert!(
            check(
                &[subscription, subscription],
                PropertyScope::in_packet(PacketType::Subscribe)
            )
            .is_err()
        );
        let expiry = Property::MessageExpiryInterval(1);
        assert!(check(&[expiry, expiry], publish).is_err());
    }

    #[test]
    fn the_wire_form_of_a_publish_is_read_again() {
        let mut buf = PropertiesBuf::default();
        buf.push(Property::ContentType("text/plain")).unwrap();
        let raw = buf.as_properties().as_bytes();
        let read = Properties::of_publish(raw).unwrap();
        assert_eq!(read.text(PropertyId::ContentType), Some("text/plain"));
        assert!(Properties::of_publish(&raw[..3]).is_err());
        let mut buf = PropertiesBuf::default();
        buf.push(Property::ReceiveMaximum(3)).unwrap();
        assert!(Properties::of_publish(buf.as_properties().as_bytes()).is_err());
    }

    #[test]
    fn authentication_data_needs_a_method() {
        let connect = PropertyScope::in_packet(PacketType::Connect);
        let data = Property::AuthenticationData(b"x");
        assert!(check(&[data], connect).is_err());
        assert!(check(&[data, Property::AuthenticationMethod("m")], connect).is_ok());
    }

    #[test]
    fn a_value_too_long_leaves_nothing_behind() {
        let long = "x".repeat(65_536);
        let mut buf = PropertiesBuf::default();
        assert!(buf.push(Property::UserProperty(("key", &long))).is_err());
        assert!(buf.as_properties().is_empty());
    }
}
