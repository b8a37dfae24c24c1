//! Reads the elements of stanzas with a pull parser, namespaces resolved.

use std::borrow::Cow;
use std::ops::Range;

use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event};

/// The namespaces that this driver knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ns {
    /// `jabber:client`
    Client,
    /// `http://etherx.jabber.org/streams`
    Streams,
    /// `urn:ietf:params:xml:ns:xmpp-streams`: conditions of stream errors
    StreamErrors,
    /// `urn:ietf:params:xml:ns:xmpp-stanzas`: conditions of stanza errors
    StanzaErrors,
    /// `urn:ietf:params:xml:ns:xmpp-tls`
    Tls,
    /// `urn:ietf:params:xml:ns:xmpp-sasl`
    Sasl,
    /// `urn:ietf:params:xml:ns:xmpp-bind`
    Bind,
    /// `http://jabber.org/protocol/pubsub#event`
    Event,
    /// `http://jabber.org/protocol/disco#items`
    DiscoItems,
    /// `urn:xmpp:ping`
    Ping,
    /// `urn:xmpp:delay`
    Delay,
    /// [`PAYLOAD_NS`]
    Payload,
    /// Any other.
    Other,
}

/// The namespace of the element that carries a payload.
pub const PAYLOAD_NS: &str = "urn:pubgauge:payload:0";

impl Ns {
    fn from_uri(uri: &str) -> Ns {
        match uri {
            "jabber:client" => Ns::Client,
            "http://etherx.jabber.org/streams" => Ns::Streams,
            "urn:ietf:params:xml:ns:xmpp-streams" => Ns::StreamErrors,
            "urn:ietf:params:xml:ns:xmpp-stanzas" => Ns::StanzaErrors,
            "urn:ietf:params:xml:ns:xmpp-tls" => Ns::Tls,
            "urn:ietf:params:xml:ns:xmpp-sasl" => Ns::Sasl,
            "urn:ietf:params:xml:ns:xmpp-bind" => Ns::Bind,
            "http://jabber.org/protocol/pubsub#event" => Ns::Event,
            "http://jabber.org/protocol/disco#items" => Ns::DiscoItems,
            "urn:xmpp:ping" => Ns::Ping,
            "urn:xmpp:delay" => Ns::Delay,
            PAYLOAD_NS => Ns::Payload,
            _ => Ns::Other,
        }
    }
}

/// Bytes that are not the XML they should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct XmlError(pub String);

/// The start tag of an element whose content comes next.
pub struct Element<'i> {
    start: BytesStart<'i>,
    pub ns: Ns,
    /// Its default namespace, which its children have unless they say otherwise.
    default_ns: Ns,
    empty: bool,
    /// Prefixes that were declared outside of it.
    outer: usize,
}

impl Element<'_> {
    /// Its name without the prefix.
    pub fn local(&self) -> &str {
        self.start.local_name().into_inner()
    }

    /// Its prefix; empty if it has none.
    pub fn prefix(&self) -> &str {
        self.start.name().prefix().map_or("", |p| p.into_inner())
    }

    pub fn is(&self, ns: Ns, local: &str) -> bool {
        self.ns == ns && self.local() == local
    }

    /// An attribute as it stands there, without unescaping.
    pub fn raw(&self, name: &str) -> Option<&str> {
        // Duplicates, which XML forbids, are not looked for: that takes an allocation for each tag.
        // The first one counts.
        let mut attributes = self.start.attributes();
        attributes.with_checks(false);
        let found = attributes.flatten().find(|a| a.key.as_ref() == name)?;
        match found.value {
            Cow::Borrowed(value) => Some(value),
            Cow::Owned(_) => None, // Attributes of borrowed input are borrowed.
        }
    }

    pub fn attribute(&self, name: &str) -> Result<Option<Cow<'_, str>>, XmlError> {
        self.raw(name).map(text).transpose()
    }
}

/// Text with its character references resolved.
fn text(raw: &str) -> Result<Cow<'_, str>, XmlError> {
    unescape(raw).map_err(|error| XmlError(error.to_string()))
}

/// Text of an element, apart from its elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// This part of the input, and no markup.
    Plain(Range<usize>),
    /// This part of [`Scratch::joined`]: the text came in several pieces.
    Joined(Range<usize>),
    /// No text, or elements among it.
    Foreign,
}

/// Memory of the parser that is used again for the next stanza.
#[derive(Debug, Default)]
pub struct Scratch {
    /// The bodies of one stanza.
    pub bodies: Vec<Body>,
    /// Text put together from pieces.
    pub joined: String,
    /// The node of an event, the identifier of an answer.
    pub name: String,
    pub(crate) prefixes: Vec<(Box<str>, Ns)>,
}

/// Reads whole stanzas, one after the other.
pub struct Walk<'i, 's> {
    reader: Reader<&'i [u8]>,
    pub input: &'i str,
    pub scratch: &'s mut Scratch,
    /// Prefix of the stream's own elements.
    stream_prefix: &'s str,
}

impl<'i, 's> Walk<'i, 's> {
    pub fn new(input: &'i str, scratch: &'s mut Scratch, stream_prefix: &'s str) -> Self {
        scratch.prefixes.clear();
        Walk {
            reader: Reader::from_str(input),
            input,
            scratch,
            stream_prefix,
        }
    }

    fn event(&mut self) -> Result<Event<'i>, XmlError> {
        let event = self.reader.read_event();
        event.map_err(|error| XmlError(error.to_string()))
    }

    fn open(
        &mut self,
        start: BytesStart<'i>,
        default_ns: Ns,
        empty: bool,
    ) -> Result<Element<'i>, XmlError> {
        let outer = self.scratch.prefixes.len();
        let mut default_ns = default_ns;
        let mut attributes = start.attributes();
        attributes.with_checks(false);
        for attribute in attributes {
            let attribute = attribute.map_err(|error| XmlError(error.to_string()))?;
            let name: &str = attribute.key.as_ref();
            if name == "xmlns" {
                default_ns = Ns::from_uri(&text(&attribute.value)?);
            } else if let Some(prefix) = name.strip_prefix("xmlns:") {
                let ns = Ns::from_uri(&text(&attribute.value)?);
                self.scratch.prefixes.push((prefix.into(), ns));
            }
        }
        let ns = match start.name().prefix() {
            None => default_ns,
            Some(prefix) => self.resolve(prefix.as_ref()),
        };
        Ok(Element {
            start,
            ns,
            default_ns,
            empty,
            outer,
        })
    }

    fn resolve(&self, prefix: &str) -> Ns {
        let declared = self.scratch.prefixes.iter().rev();
        match declared.into_iter().find(|(p, _)| **p == *prefix) {
            Some((_, ns)) => *ns,
            None if prefix == self.stream_prefix => Ns::Streams,
            None => Ns::Other,
        }
    }

    /// The next stanza's start tag.
    pub fn stanza(&mut self) -> Result<Option<Element<'i>>, XmlError> {
        self.scratch.prefixes.clear();
        self.scratch.joined.clear();
        loop {
            return match self.event()? {
                Event::Start(start) => self.open(start, Ns::Client, false).map(Some),
                Event::Empty(start) => self.open(start, Ns::Client, true).map(Some),
                Event::Text(_) | Event::Decl(_) => continue,
                Event::Eof => Ok(None),
                _ => Err(XmlError("something other than a stanza".into())),
            };
        }
    }

    /// The next child of `parent`, whose children so far have been read to their ends; `None`
    /// after the last.
    pub fn child(&mut self, parent: &Element<'i>) -> Result<Option<Element<'i>>, XmlError> {
        if parent.empty {
            return Ok(None);
        }
        loop {
            return match self.event()? {
                Event::Start(start) => self.open(start, parent.default_ns, false).map(Some),
                Event::Empty(start) => self.open(start, parent.default_ns, true).map(Some),
                Event::End(_) => {
                    self.scratch.prefixes.truncate(parent.outer);
                    Ok(None)
                }
                Event::Text(_) | Event::CData(_) | Event::GeneralRef(_) => continue,
                _ => Err(forbidden()),
            };
        }
    }

    /// Reads an element to its end.
    pub fn skip(&mut self, element: &Element<'i>) -> Result<(), XmlError> {
        let mut depth = u32::from(!element.empty);
        while depth > 0 {
            match self.event()? {
                Event::Start(_) => depth += 1,
                Event::End(_) => depth -= 1,
                Event::Empty(_) | Event::Text(_) | Event::CData(_) | Event::GeneralRef(_) => {}
                _ => return Err(forbidden()),
            }
        }
        self.scratch.prefixes.truncate(element.outer);
        Ok(())
    }

    /// Reads an element to its end, for its text.
    pub fn body(&mut self, element: &Element<'i>) -> Result<Body, XmlError> {
        let mut plain: Option<Range<usize>> = None;
        let mut joined: Option<usize> = None;
        let mut foreign = false;
        let mut depth = u32::from(!element.empty);
        while depth > 0 {
            let piece: Cow<'i, str> = match self.event()? {
                Event::Start(_) => {
                    foreign = true;
                    depth += 1;
                    continue;
                }
                Event::Empty(_) => {
                    foreign = true;
                    continue;
                }
                Event::End(_) => {
                    depth -= 1;
                    continue;
                }
                Event::Text(text) if plain.is_none() && joined.is_none() => {
                    // The reader is past the text.
                    let end = usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX);
                    let length = text.len();
                    plain = Some(end.saturating_sub(length)..end);
                    continue;
                }
                Event::Text(text) => text.into_inner(),
                Event::CData(text) => text.into_inner(),
                Event::GeneralRef(name) => {
                    let reference = format!("&{};", &*name);
                    Cow::Owned(text(&reference)?.into_owned())
                }
                _ => return Err(forbidden()),
            };
            let begin = *joined.get_or_insert(self.scratch.joined.len());
            if let Some(first) = plain.take() {
                debug_assert_eq!(begin, self.scratch.joined.len());
                self.scratch
                    .joined
                    .push_str(self.input.get(first).unwrap_or_default());
            }
            self.scratch.joined.push_str(&piece);
        }
        self.scratch.prefixes.truncate(element.outer);
        Ok(match (foreign, plain, joined) {
            (true, ..) | (_, None, None) => Body::Foreign,
            (_, Some(range), _) => Body::Plain(range),
            (_, None, Some(begin)) => Body::Joined(begin..self.scratch.joined.len()),
        })
    }

    /// Reads an element to its end, for its text; empty if it has none.
    pub fn text(&mut self, element: &Element<'i>) -> Result<String, XmlError> {
        let body = self.body(element)?;
        Ok(match body {
            Body::Plain(range) => self.input.get(range).unwrap_or_default().to_owned(),
            Body::Joined(range) => self
                .scratch
                .joined
                .get(range)
                .unwrap_or_default()
                .to_owned(),
            Body::Foreign => String::new(),
        })
    }
}

fn forbidden() -> XmlError {
    XmlError("a stanza that does not end, or has in it what XMPP forbids".into())
}
