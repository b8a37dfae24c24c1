//! XMPP (RFC 6120): publish-subscribe services (XEP-0060) and direct messages.
//!
//! The driver is a protocol over the fleet of [`pubgauge_net::fleet`]. Its message path has no
//! allocation, lock or system call for a single message when publishing flat out. Stanzas are put
//! together from a template made when the topic is advertised; they gather in the connection's
//! buffer and go out with one write. All connections are read into one buffer, cut into stanzas
//! there (`frame`) and read in place by a pull parser (`stanza`).
//!
//! # Topics
//!
//! A topic is a leaf node of the same name at the service `pubsub.DOMAIN`, created by the client
//! that needs it first. Each item of a notification is a message of its own. XEP-0060 has no
//! wildcards: the driver lists the nodes at intervals and subscribes to each one that matches.
//!
//! Under `point-to-point` the topic is the resource of the receiver's address,
//! `ACCOUNT@DOMAIN/TOPIC`: a client that subscribes to a topic binds it, and messages go there as
//! `<message type='headline'>`. A client that will subscribe is therefore connected before it is
//! bound to an address, and has one topic.
//!
//! # Payloads
//!
//! Payloads travel in base64, in an element `p` of the namespace `urn:pubgauge:payload:0`. What
//! that costs, a third more, is in [`wire_bytes`](pubgauge_driver::Fleet::wire_bytes).
//!
//! # What acknowledgements mean
//!
//! The service answers each publish request: the item was accepted, and notifications of it are on
//! their way. Receivers do not answer notifications. When a connection ends, what was not answered
//! is forgotten and never acknowledged.

mod client;
mod element;
mod endpoint;
mod fleet;
mod frame;
mod native;
mod negotiate;
mod nodes;
mod options;
#[cfg(test)]
mod options_tests;
mod protocol;
mod requests;
mod sasl;
mod shared;
mod stanza;
mod wildcard;
mod window;
mod write;

use pubgauge_driver::capability::{Answer, Capability, Filtering};
use pubgauge_driver::{
    Crowd, Driver, DriverError, Fleet, FleetConfig, Footprint, Identification, Mapping,
    MessagingPattern, Scheme, Settings, Subscription, Target, Traits, Unsupported,
};

/// The XMPP driver.
///
/// Neutral settings become what [`Driver::resolve`] says. Its own settings, under `native.xmpp`, are in
/// `docs/settings.md`.
#[derive(Clone, Copy, Debug, Default)]
pub struct XmppDriver;

impl Driver for XmppDriver {
    fn name(&self) -> &'static str {
        native::NAME
    }

    fn schemes(&self) -> &'static [Scheme] {
        endpoint::ADDRESSING.schemes
    }

    fn resolve(
        &self,
        settings: &Settings,
        target: &Target,
    ) -> Result<Vec<Mapping>, Vec<Unsupported>> {
        options::XmppOptions::resolve(settings, &target.features).map(|(_, rows)| rows)
    }

    fn native_schema(&self) -> Option<serde_json::Value> {
        Some(native::NATIVE.schema())
    }

    /// Conditions are kept as the numbers that XEP-0086 gives them.
    fn rejection(&self, code: u16) -> String {
        match code {
            0 => "an error without a number".into(),
            code => format!("error {code} (XEP-0086)"),
        }
    }

    fn identification(&self, settings: &Settings, _: &Target) -> Identification {
        let direct = settings.pattern == Some(MessagingPattern::PointToPoint);
        Identification {
            id: if direct {
                Err("under point-to-point a receiver's resource is its topic")
            } else {
                Ok("resource of the JID")
            },
            user: if direct {
                Err("under point-to-point a sender knows a receiver by the account that both have")
            } else {
                Ok("account, the local part of the JID")
            },
            certificate: Ok(
                "client certificate of TLS: SASL EXTERNAL where no password is given, else beside the login",
            ),
        }
    }

    fn traits(&self, settings: &Settings) -> Traits {
        Traits {
            publishers_first: false,
            back_pressure: true,
            acknowledges: settings.pattern != Some(MessagingPattern::PointToPoint),
            may_duplicate: false,
            publish_sleeps: false,
        }
    }

    fn check_subscription(
        &self,
        settings: &Settings,
        _: &Target,
        subscription: &Subscription,
    ) -> Result<(), DriverError> {
        match options::XmppOptions::resolve(settings, &[]) {
            Ok((options, _)) => fleet::check_subscription(&options, subscription),
            Err(_) => Ok(()), // `resolve` says why not.
        }
    }

    fn capability(&self, capability: Capability, target: &Target) -> Answer {
        match capability {
            Capability::Filter(Filtering::Prefix | Filtering::PerLevel) => Answer::emulated(
                "nodes that match are looked for every second (XEP-0030) and subscribed to one by one: items of a node that was not found yet are missed",
            ),
            Capability::Filter(Filtering::Content) => Answer::unsupported(
                "subscribers choose nodes; XEP-0060 leaves filters over content to the service, and ejabberd has none",
            ),
            Capability::BinaryPayload => Answer::emulated("as base64 text, a third longer"),
            _ => capability.derived(self, target),
        }
    }

    fn footprint(&self, _: &Settings, _: &Target, crowd: &Crowd) -> Footprint {
        // 1.8 to 4.5 kB of resident memory were measured for an idle client (ejabberd).
        Footprint::over_tcp(crowd, 1_800)
    }

    fn bounds_reading(&self, _: &Settings) -> Result<(), String> {
        Ok(())
    }

    fn open(&self, config: FleetConfig) -> Result<Box<dyn Fleet>, DriverError> {
        Ok(Box::new(fleet::open(config)?))
    }
}

/// Reads a stream from a server, for fuzzing: framing and parsing, without acting on it. Returns
/// how many stanzas and items there were.
///
/// # Errors
/// When it is no XMPP stream.
#[doc(hidden)]
pub fn read_stream(pieces: &[&[u8]]) -> Result<(usize, usize), DriverError> {
    let no_stream = |error: &dyn std::fmt::Display| DriverError::new(error.to_string());
    let mut framer = frame::Framer::default();
    let mut scratch = element::Scratch::default();
    let (mut stanzas, mut items) = (0, 0);
    let mut buf: Vec<u8> = Vec::new();
    for piece in pieces {
        buf.extend_from_slice(piece);
        while let Some(unit) = framer.next(&buf).map_err(|error| no_stream(&error))? {
            let (frame::Unit::Blank(n)
            | frame::Unit::Header(n)
            | frame::Unit::Stanza(n)
            | frame::Unit::Close(n)) = unit;
            let text = std::str::from_utf8(&buf[..n]).map_err(|error| no_stream(&error))?;
            match unit {
                frame::Unit::Header(_) => {
                    stanza::header(text, &mut scratch).map_err(|error| no_stream(&error))?;
                }
                frame::Unit::Stanza(_) => {
                    let mut walk = element::Walk::new(text, &mut scratch, "stream");
                    let read = stanza::next(&mut walk).map_err(|error| no_stream(&error))?;
                    stanzas += 1;
                    if let Some(stanza::Stanza::Items { .. }) = read {
                        items += walk.scratch.bodies.len();
                        for body in &walk.scratch.bodies {
                            let mut decoded = Vec::new();
                            protocol::decode(&mut decoded, text, walk.scratch, body);
                        }
                    }
                }
                _ => {}
            }
            buf.drain(..n);
        }
    }
    Ok((stanzas, items))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STREAM: &str = "<?xml version='1.0'?><stream:stream xmlns='jabber:client' \
        xmlns:stream='http://etherx.jabber.org/streams' version='1.0'><stream:features/>\
        <message type='headline'><event xmlns='http://jabber.org/protocol/pubsub#event'>\
        <items node='t'><item id='1'><p xmlns='urn:pubgauge:payload:0'>AAAA</p></item><item/>\
        <retract id='0'/></items></event></message> <iq type='result' id='p1'/></stream:stream>";

    #[test]
    fn a_stream_reads_the_same_cut_at_any_byte() {
        let whole = read_stream(&[STREAM.as_bytes()]);
        assert_eq!(whole, Ok((3, 2)));
        for cut in 0..=STREAM.len() {
            let (a, b) = STREAM.as_bytes().split_at(cut);
            assert_eq!(read_stream(&[a, b]), whole, "cut at {cut}");
        }
        let every: Vec<&[u8]> = STREAM.as_bytes().chunks(1).collect();
        assert_eq!(read_stream(&every), whole);
    }

    proptest! {
        #[test]
        fn a_damaged_stream_is_no_panic(
            at in any::<prop::sample::Index>(),
            with in proptest::collection::vec(any::<u8>(), 0..8),
            gone in 0usize..8,
        ) {
            let mut bytes = STREAM.as_bytes().to_vec();
            let at = at.index(bytes.len());
            let end = (at + gone).min(bytes.len());
            bytes.splice(at..end, with);
            let whole = read_stream(&[&bytes]);
            let pieces: Vec<&[u8]> = bytes.chunks(3).collect();
            prop_assert_eq!(read_stream(&pieces).is_ok(), whole.is_ok());
        }
    }
}
