//! Reads what servers send: stanzas, stream features, and the answers of SASL and STARTTLS (RFC
//! 6120, XEP-0060, XEP-0030, XEP-0199, XEP-0203).

use std::borrow::Cow;

use crate::element::{Body, Element, Ns, Scratch, Walk, XmlError};

/// A top-level element of a stream, read.
#[derive(Debug)]
pub enum Stanza {
    /// Items of a node: a notification may have several (XEP-0060 §7.1.2.1).
    /// Their node is [`Scratch::name`], their payloads are [`Scratch::bodies`].
    Items {
        /// They were published earlier: a last item, for a new subscriber.
        delayed: bool,
    },
    /// A message to this client alone, with a payload of ours.
    Direct(Body),
    /// The answer to a request of ours, whose identifier is [`Scratch::name`].
    Answer(Result<AnswerContent, Failure>),
    /// A request to us, which must be answered (RFC 6120 §8.2.3); its identifier is
    /// [`Scratch::name`].
    Question {
        from: Option<String>,
        ping: bool,
    },
    Features(Features),
    /// STARTTLS may begin.
    Proceed,
    /// STARTTLS is refused.
    TlsFailure,
    /// SASL: base64.
    Challenge(String),
    /// SASL: base64, perhaps empty.
    Success(String),
    SaslFailure(Failure),
    StreamError(Failure),
    /// Ignored: presence, other messages, retracted items.
    Other,
}

/// Contents of an answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AnswerContent {
    /// The address that was bound.
    pub jid: Option<String>,
    /// The nodes of a service.
    pub nodes: Vec<String>,
}

/// Why something was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// The defined condition, for example `item-not-found`.
    pub condition: String,
    /// Text of the server.
    pub text: String,
    /// It may work if tried again (RFC 6120 §8.3.2, the type `wait`).
    pub wait: bool,
}

impl Failure {
    /// The condition's legacy error code (XEP-0086); 0 if it has none.
    pub fn code(&self) -> u16 {
        let condition = self.condition.split(':').next().unwrap_or_default();
        match condition {
            "gone" | "redirect" => 302,
            "bad-request" | "jid-malformed" | "unexpected-request" => 400,
            "not-authorized" => 401,
            "payment-required" => 402,
            "forbidden" => 403,
            "item-not-found" => 404,
            "not-allowed" => 405,
            "not-acceptable" | "policy-violation" => 406,
            "registration-required" | "subscription-required" => 407,
            "conflict" => 409,
            "internal-server-error" | "resource-constraint" | "undefined-condition" => 500,
            "feature-not-implemented" => 501,
            "service-unavailable" | "recipient-unavailable" => 503,
            "remote-server-not-found" => 404,
            "remote-server-timeout" => 504,
            _ => 0,
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.condition.is_empty() {
            "an error without a condition"
        } else {
            &self.condition
        })?;
        if !self.text.is_empty() {
            write!(f, " ({})", self.text)?;
        }
        Ok(())
    }
}

/// Stream features (RFC 6120 §4.3.2).
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Features {
    pub starttls: bool,
    pub mechanisms: Vec<String>,
    pub bind: bool,
}

/// The start tag of a stream: the prefix of the stream's own elements.
///
/// # Errors
/// When it is not XMPP's.
pub fn header(input: &str, scratch: &mut Scratch) -> Result<String, XmlError> {
    // The prefix is declared in the tag itself.
    let mut walk = Walk::new(input, scratch, "");
    let not_ours = || XmlError("a document that is not an XMPP stream".into());
    let tag = walk.stanza()?.ok_or_else(not_ours)?;
    if !tag.is(Ns::Streams, "stream") {
        return Err(not_ours());
    }
    Ok(tag.prefix().to_owned())
}

/// The next stanza of `walk`.
///
/// # Errors
/// When it is not well-formed.
pub fn next(walk: &mut Walk<'_, '_>) -> Result<Option<Stanza>, XmlError> {
    let Some(element) = walk.stanza()? else {
        return Ok(None);
    };
    let stanza = match (element.ns, element.local()) {
        (Ns::Client, "message") => return message(walk, element).map(Some),
        (Ns::Client, "iq") => return iq(walk, element).map(Some),
        (Ns::Streams, "features") => features(walk, &element)?,
        (Ns::Streams, "error") => Stanza::StreamError(failure(walk, &element, Ns::StreamErrors)?),
        (Ns::Tls, "proceed") => {
            walk.skip(&element)?;
            Stanza::Proceed
        }
        (Ns::Tls, "failure") => {
            walk.skip(&element)?;
            Stanza::TlsFailure
        }
        (Ns::Sasl, "challenge") => Stanza::Challenge(walk.text(&element)?),
        (Ns::Sasl, "success") => Stanza::Success(walk.text(&element)?),
        (Ns::Sasl, "failure") => Stanza::SaslFailure(failure(walk, &element, Ns::Sasl)?),
        _ => {
            walk.skip(&element)?;
            Stanza::Other
        }
    };
    Ok(Some(stanza))
}

fn message<'i>(walk: &mut Walk<'i, '_>, message: Element<'i>) -> Result<Stanza, XmlError> {
    walk.scratch.bodies.clear();
    if message.raw("type") == Some("error") {
        // A message of ours that came back.
        walk.skip(&message)?;
        return Ok(Stanza::Other);
    }
    let mut direct = None;
    let mut delayed = false;
    while let Some(child) = walk.child(&message)? {
        match (child.ns, child.local()) {
            (Ns::Event, "event") => event(walk, &child)?,
            (Ns::Payload, "p") => direct = Some(walk.body(&child)?),
            (Ns::Delay, "delay") => {
                delayed = true;
                walk.skip(&child)?;
            }
            _ => walk.skip(&child)?,
        }
    }
    if !walk.scratch.bodies.is_empty() {
        return Ok(Stanza::Items { delayed });
    }
    Ok(match direct {
        Some(body) => Stanza::Direct(body),
        None => Stanza::Other,
    })
}

/// Collects the items of an event, and the name of their node.
fn event<'i>(walk: &mut Walk<'i, '_>, event: &Element<'i>) -> Result<(), XmlError> {
    while let Some(child) = walk.child(event)? {
        if !child.is(Ns::Event, "items") {
            walk.skip(&child)?;
            continue;
        }
        walk.scratch.name.clear();
        if let Some(node) = child.attribute("node")? {
            walk.scratch.name.push_str(&node);
        }
        while let Some(item) = walk.child(&child)? {
            if !item.is(Ns::Event, "item") {
                walk.skip(&item)?; // Such as a notice of items that are gone.
                continue;
            }
            let mut body = Body::Foreign;
            while let Some(payload) = walk.child(&item)? {
                if payload.is(Ns::Payload, "p") {
                    body = walk.body(&payload)?;
                } else {
                    walk.skip(&payload)?;
                }
            }
            walk.scratch.bodies.push(body);
        }
    }
    Ok(())
}

fn iq<'i>(walk: &mut Walk<'i, '_>, iq: Element<'i>) -> Result<Stanza, XmlError> {
    walk.scratch.name.clear();
    if let Some(id) = iq.attribute("id")? {
        walk.scratch.name.push_str(&id);
    }
    match iq.raw("type") {
        Some("result") => {
            let mut content = AnswerContent::default();
            while let Some(child) = walk.child(&iq)? {
                match (child.ns, child.local()) {
                    (Ns::Bind, "bind") => {
                        while let Some(jid) = walk.child(&child)? {
                            if jid.is(Ns::Bind, "jid") {
                                content.jid = Some(walk.text(&jid)?);
                            } else {
                                walk.skip(&jid)?;
                            }
                        }
                    }
                    (Ns::DiscoItems, "query") => {
                        while let Some(item) = walk.child(&child)? {
                            if let Some(node) = item.attribute("node")?
                                && item.is(Ns::DiscoItems, "item")
                            {
                                content.nodes.push(node.into_owned());
                            }
                            walk.skip(&item)?;
                        }
                    }
                    _ => walk.skip(&child)?,
                }
            }
            Ok(Stanza::Answer(Ok(content)))
        }
        Some("error") => {
            let mut why = Failure::default();
            while let Some(child) = walk.child(&iq)? {
                if child.is(Ns::Client, "error") {
                    why = failure(walk, &child, Ns::StanzaErrors)?
                } else {
                    walk.skip(&child)?
                }
            }
            Ok(Stanza::Answer(Err(why)))
        }
        Some("get" | "set") => {
            let from = iq.attribute("from")?.map(Cow::into_owned);
            let mut ping = false;
            while let Some(child) = walk.child(&iq)? {
                ping |= child.is(Ns::Ping, "ping");
                walk.skip(&child)?;
            }
            Ok(Stanza::Question { from, ping })
        }
        _ => {
            walk.skip(&iq)?;
            Ok(Stanza::Other)
        }
    }
}

fn features<'i>(walk: &mut Walk<'i, '_>, element: &Element<'i>) -> Result<Stanza, XmlError> {
    let mut features = Features::default();
    while let Some(child) = walk.child(element)? {
        match (child.ns, child.local()) {
            (Ns::Sasl, "mechanisms") => {
                while let Some(mechanism) = walk.child(&child)? {
                    if mechanism.is(Ns::Sasl, "mechanism") {
                        features.mechanisms.push(walk.text(&mechanism)?);
                    } else {
                        walk.skip(&mechanism)?;
                    }
                }
            }
            (ns, local) => {
                features.starttls |= ns == Ns::Tls && local == "starttls";
                features.bind |= ns == Ns::Bind && local == "bind";
                walk.skip(&child)?;
            }
        }
    }
    Ok(Stanza::Features(features))
}

/// Reads an error: one element of `conditions` names it.
fn failure<'i>(
    walk: &mut Walk<'i, '_>,
    element: &Element<'i>,
    conditions: Ns,
) -> Result<Failure, XmlError> {
    let mut failure = Failure {
        wait: element.raw("type") == Some("wait"),
        ..Failure::default()
    };
    while let Some(child) = walk.child(element)? {
        if child.ns != conditions {
            walk.skip(&child)?;
        } else if child.local() == "text" {
            failure.text = walk.text(&child)?;
        } else {
            failure.condition = child.local().to_owned();
            // The condition may have a text of its own: the other host of `see-other-host`.
            let said = walk.text(&child)?;
            if !said.is_empty() {
                failure.condition = format!("{}: {said}", failure.condition);
            }
        }
    }
    Ok(failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &str) -> Vec<(Stanza, Scratch)> {
        let mut all = Vec::new();
        let mut scratch = Scratch::default();
        let mut walk = Walk::new(input, &mut scratch, "stream");
        while let Some(stanza) = next(&mut walk).unwrap() {
            let copy = Scratch {
                bodies: walk.scratch.bodies.clone(),
                joined: walk.scratch.joined.clone(),
                name: walk.scratch.name.clone(),
                ..Scratch::default()
            };
            all.push((stanza, copy));
        }
        all
    }

    fn bodies(input: &str) -> (String, Vec<String>, bool) {
        let mut all = read(input);
        assert_eq!(all.len(), 1);
        let (stanza, scratch) = all.remove(0);
        let Stanza::Items { delayed } = stanza else {
            panic!("{stanza:?}")
        };
        let texts = scratch.bodies.iter().map(|body| match body {
            Body::Plain(range) => input[range.clone()].to_owned(),
            Body::Joined(range) => format!("joined {}", &scratch.joined[range.clone()]),
            Body::Foreign => "foreign".into(),
        });
        (scratch.name, texts.collect(), delayed)
    }

    #[test]
    fn items_are_read_and_not_stanzas() {
        let (node, texts, delayed) = bodies(
            "<message to='a@b/c' from='pubsub.b' type='headline'><event xmlns='http://jabber.org/protocol/pubsub#event'>\
             <items node='a/&lt;b'><item id='1'><p xmlns='urn:pubgauge:payload:0'>AAAA</p></item>\
             <item id='2'><x/><p xmlns='urn:pubgauge:payload:0'>BBBB</p></item><item/>\
             <item><p xmlns='urn:pubgauge:payload:0'>A<![CDATA[B]]>C&amp;D</p></item>\
             <item><p xmlns='urn:other'>CCCC</p></item><retract id='0'/></items></event></message>",
        );
        assert_eq!(node, "a/<b");
        assert_eq!(
            texts,
            ["AAAA", "BBBB", "foreign", "joined ABC&D", "foreign"]
        );
        assert!(!delayed);
    }

    #[test]
    fn a_retract_notice_is_no_item() {
        let all = read(
            "<message><event xmlns='http://jabber.org/protocol/pubsub#event'><items node='n'><retract id='0'/></items></event></message>",
        );
        assert!(matches!(all[0].0, Stanza::Other), "{all:?}");
    }

    #[test]
    fn namespaces_count_and_not_prefixes() {
        let (node, texts, delayed) = bodies(
            "<message xmlns:e='http://jabber.org/protocol/pubsub#event' xmlns:p='urn:pubgauge:payload:0'>\
             <e:event><e:items node='n'><e:item><p:p>AAAA</p:p></e:item></e:items></e:event>\
             <d:delay xmlns:d='urn:xmpp:delay' stamp='x'/></message>",
        );
        assert_eq!((node.as_str(), delayed), ("n", true));
        assert_eq!(texts, ["AAAA"]);
        // The prefix means something else outside of the element that declares it.
        let all = read(
            "<message><x><e:event xmlns:e='http://jabber.org/protocol/pubsub#event'/></x>\
             <e:event><e:items node='n'><e:item/></e:items></e:event></message>",
        );
        assert!(matches!(all[0].0, Stanza::Other), "{all:?}");
    }

    #[test]
    fn answers_and_questions() {
        let all = read(
            "<iq type='result' id='p1'/> <iq type='result' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>a@b/c&amp;d</jid></bind></iq>\
             <iq type='error' id='e'><pubsub xmlns='http://jabber.org/protocol/pubsub'><p/></pubsub><error type='wait'><item-not-found xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/><text xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'>no</text></error></iq>\
             <iq type='result' id='d'><query xmlns='http://jabber.org/protocol/disco#items'><item jid='p' node='a/b'/><item jid='p' node='c'/><item jid='q'/></query></iq>\
             <iq type='get' id='q' from='b'><ping xmlns='urn:xmpp:ping'/></iq>",
        );
        let ids: Vec<_> = all
            .iter()
            .map(|(_, scratch)| scratch.name.as_str())
            .collect();
        assert_eq!(ids, ["p1", "b", "e", "d", "q"]);
        let content = |n: usize| match &all[n].0 {
            Stanza::Answer(Ok(content)) => content,
            other => panic!("{other:?}"),
        };
        assert_eq!(*content(0), AnswerContent::default());
        assert_eq!(content(1).jid.as_deref(), Some("a@b/c&d"));
        let Stanza::Answer(Err(failure)) = &all[2].0 else {
            panic!("{:?}", all[2])
        };
        assert_eq!(failure.to_string(), "item-not-found (no)");
        assert!(failure.code() == 404 && failure.wait);
        assert_eq!(content(3).nodes, ["a/b", "c"]);
        assert!(matches!(&all[4].0, Stanza::Question { from: Some(f), ping: true } if f == "b"));
    }

    #[test]
    fn a_stream_begins_with_features() {
        let mut scratch = Scratch::default();
        let prefix = header(
            "<?xml version='1.0'?><s:stream xmlns:s='http://etherx.jabber.org/streams' xmlns='jabber:client' id='1'>",
            &mut scratch,
        );
        assert_eq!(prefix.as_deref(), Ok("s"));
        assert!(header("<html>", &mut scratch).is_err());
        let all = read(
            "<stream:features><starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'><required/></starttls><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism><mechanism>SCRAM-SHA-1</mechanism></mechanisms></stream:features>\
             <stream:error><see-other-host xmlns='urn:ietf:params:xml:ns:xmpp-streams'>h:1</see-other-host></stream:error>",
        );
        let Stanza::Features(features) = &all[0].0 else {
            panic!("{all:?}")
        };
        assert!(features.starttls && !features.bind);
        assert_eq!(features.mechanisms, ["PLAIN", "SCRAM-SHA-1"]);
        let Stanza::StreamError(failure) = &all[1].0 else {
            panic!("{all:?}")
        };
        assert_eq!(failure.condition, "see-other-host: h:1");
    }
}
