//! Writes stanzas into the connection's buffer.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pubgauge_driver::Payload;

use crate::element::PAYLOAD_NS;

/// Appends text with XML's reserved characters escaped, for content and attributes alike.
pub(crate) fn escaped(out: &mut Vec<u8>, text: &str) {
    for byte in text.bytes() {
        let entity: &[u8] = match byte {
            b'&' => b"&amp;",
            b'<' => b"&lt;",
            b'>' => b"&gt;",
            b'\'' => b"&apos;",
            b'"' => b"&quot;",
            // White space in an attribute would be read as a space (XML §3.3.3).
            b'\t' => b"&#9;",
            b'\n' => b"&#10;",
            b'\r' => b"&#13;",
            byte => {
                out.push(byte);
                continue;
            }
        };
        out.extend_from_slice(entity);
    }
}

/// Whether XML allows all characters of this text (XML §2.2, `Char`).
pub(crate) fn is_xml(text: &str) -> bool {
    text.chars()
        .all(|c| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..))
}

/// Appends `xml` with the values, escaped, each in place of a `{}`.
fn fill(out: &mut Vec<u8>, xml: &str, values: &[&str]) {
    let mut values = values.iter();
    for piece in xml.split("{}") {
        out.extend_from_slice(piece.as_bytes());
        if let Some(value) = values.next() {
            escaped(out, value);
        }
    }
}

/// Appends a number in hexadecimal.
#[inline]
pub(crate) fn hex(out: &mut Vec<u8>, number: u32) {
    let digits = (32 - number.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        out.push(b"0123456789abcdef"[(number >> (4 * digit) & 15) as usize]);
    }
}

/// The number in an identifier after its first character.
#[inline]
pub(crate) fn number(id: &str) -> Option<u32> {
    let digits = id.get(1..)?;
    if digits.is_empty() || digits.len() > 8 {
        return None;
    }
    u32::from_str_radix(digits, 16).ok()
}

/// First character of the identifier of a control request; publish requests have another.
pub(crate) const CONTROL: u8 = b'c';
pub(crate) const PUBLISH: u8 = b'p';

pub(crate) fn stream_header(out: &mut Vec<u8>, domain: &str) {
    fill(
        out,
        "<?xml version='1.0'?><stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' version='1.0' to='{}'>",
        &[domain],
    );
}

pub(crate) const STARTTLS: &[u8] = b"<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>";
pub(crate) const STREAM_END: &[u8] = b"</stream:stream>";

/// `element` is `auth`, with the mechanism's name, or `response`.
pub(crate) fn sasl(out: &mut Vec<u8>, mechanism: Option<&str>, base64: &str) {
    match mechanism {
        Some(name) => fill(
            out,
            "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='{}'>{}</auth>",
            &[name, base64],
        ),
        None => fill(
            out,
            "<response xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>{}</response>",
            &[base64],
        ),
    }
}

/// Opens a request with the identifier `id`.
fn iq(out: &mut Vec<u8>, kind: &str, to: Option<&str>, id: u32) {
    fill(out, "<iq type='{}' id='", &[kind]);
    out.push(CONTROL);
    hex(out, id);
    if let Some(to) = to {
        fill(out, "' to='{}", &[to]);
    }
    fill(out, "'>", &[]);
}

pub(crate) fn bind(out: &mut Vec<u8>, id: u32, resource: &str) {
    iq(out, "set", None, id);
    fill(
        out,
        "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>{}</resource></bind></iq>",
        &[resource],
    );
}

pub(crate) fn ping(out: &mut Vec<u8>, id: u32, domain: &str) {
    iq(out, "get", Some(domain), id);
    fill(out, "<ping xmlns='urn:xmpp:ping'/></iq>", &[]);
}

pub(crate) fn discover(out: &mut Vec<u8>, id: u32, service: &str) {
    iq(out, "get", Some(service), id);
    let query = "<query xmlns='http://jabber.org/protocol/disco#items'/></iq>";
    fill(out, query, &[]);
}

/// The configuration of a node (XEP-0060 §16.4.4) as a form, up to the end of the request.
fn form(out: &mut Vec<u8>, last_value: bool) {
    fill(
        out,
        "<x xmlns='jabber:x:data' type='submit'><field var='FORM_TYPE' type='hidden'><value>http://jabber.org/protocol/pubsub#node_config</value></field>",
        &[],
    );
    let flag = if last_value { "1" } else { "0" };
    let when = if last_value { "on_sub" } else { "never" };
    for (name, value) in [
        ("persist_items", flag),
        ("max_items", "1"),
        ("send_last_published_item", when),
        ("deliver_payloads", "1"),
        ("notify_retract", "0"),
        ("access_model", "open"),
        ("publish_model", "open"),
        ("notification_type", "headline"),
    ] {
        fill(
            out,
            "<field var='pubsub#{}'><value>{}</value></field>",
            &[name, value],
        );
    }
    fill(out, "</x></configure></pubsub></iq>", &[]);
}

/// Creates a node, configured.
pub(crate) fn create(out: &mut Vec<u8>, id: u32, service: &str, node: &str, last_value: bool) {
    iq(out, "set", Some(service), id);
    fill(
        out,
        "<pubsub xmlns='http://jabber.org/protocol/pubsub'><create node='{}'/><configure>",
        &[node],
    );
    form(out, last_value);
}

/// Deletes a node (XEP-0060 §8.4).
pub(crate) fn delete(out: &mut Vec<u8>, id: u32, service: &str, node: &str) {
    iq(out, "set", Some(service), id);
    fill(
        out,
        "<pubsub xmlns='http://jabber.org/protocol/pubsub#owner'><delete node='{}'/></pubsub></iq>",
        &[node],
    );
}

/// Configures a node that is there.
pub(crate) fn configure(out: &mut Vec<u8>, id: u32, service: &str, node: &str, last_value: bool) {
    iq(out, "set", Some(service), id);
    fill(
        out,
        "<pubsub xmlns='http://jabber.org/protocol/pubsub#owner'><configure node='{}'>",
        &[node],
    );
    form(out, last_value);
}

/// `verb` is `subscribe` or `unsubscribe`.
pub(crate) fn subscription(
    out: &mut Vec<u8>,
    id: u32,
    service: &str,
    verb: &str,
    node: &str,
    jid: &str,
) {
    iq(out, "set", Some(service), id);
    fill(
        out,
        "<pubsub xmlns='http://jabber.org/protocol/pubsub'><{} node='{}' jid='{}'/></pubsub></iq>",
        &[verb, node, jid],
    );
}

/// Answers a request: a ping with a result, any other with an error (RFC 6120 §8.2.3).
pub(crate) fn reply(out: &mut Vec<u8>, id: &str, to: Option<&str>, ping: bool) {
    let kind = if ping { "result" } else { "error" };
    fill(out, "<iq type='{}' id='{}", &[kind, id]);
    if let Some(to) = to {
        fill(out, "' to='{}", &[to]);
    }
    let end = if ping {
        "'/>"
    } else {
        "'><error type='cancel'><service-unavailable xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>"
    };
    fill(out, end, &[]);
}

/// The part that is alike in every message of a topic.
#[derive(Debug)]
pub(crate) struct Template {
    /// Up to the request's number; all of the head for a direct message.
    head: Box<[u8]>,
    /// From the request's number to the payload; empty for a direct message.
    middle: Box<[u8]>,
    tail: &'static [u8],
}

impl Template {
    /// Publish requests for a node.
    pub fn publish(service: &str, node: &str, last_value: bool) -> Template {
        let mut head = Vec::new();
        fill(&mut head, "<iq type='set' to='{}' id='p", &[service]);
        let mut middle = Vec::new();
        // With one identifier for all its items a node replaces the item and retracts none: a
        // "singleton node" (XEP-0060 §12.20).
        let item = if last_value {
            "<item id='current'>"
        } else {
            "<item>"
        };
        fill(
            &mut middle,
            "'><pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='{}'>",
            &[node],
        );
        fill(&mut middle, item, &[]);
        fill(&mut middle, "<p xmlns='{}'>", &[PAYLOAD_NS]);
        Template {
            head: head.into(),
            middle: middle.into(),
            tail: b"</p></item></publish></pubsub></iq>",
        }
    }

    /// Messages to one receiver. A headline is neither stored for an absent receiver nor sent
    /// to another of the account's (RFC 6121 §8.5.3.2.1).
    pub fn direct(to: &str) -> Template {
        let mut head = Vec::new();
        fill(
            &mut head,
            "<message to='{}' type='headline'><p xmlns='{}'>",
            &[to, PAYLOAD_NS],
        );
        Template {
            head: head.into(),
            middle: Box::default(),
            tail: b"</p></message>",
        }
    }

    /// Appends a stanza; `number` is the publish request's.
    #[inline]
    pub fn append(&self, out: &mut Vec<u8>, number: u32, payload: Payload<'_>) {
        out.extend_from_slice(&self.head);
        if !self.middle.is_empty() {
            hex(out, number);
            out.extend_from_slice(&self.middle);
        }
        base64(out, payload);
        out.extend_from_slice(self.tail);
    }
}

/// Appends a payload in base64 without joining its two parts: three bytes make four letters, so
/// that the header takes two bytes of the body with it.
#[inline]
fn base64(out: &mut Vec<u8>, payload: Payload<'_>) {
    let (with_head, body) = payload.body.split_at(payload.body.len().min(2));
    let mut first = [0; 18];
    first[..16].copy_from_slice(payload.head);
    first[16..16 + with_head.len()].copy_from_slice(with_head);
    let first = &first[..16 + with_head.len()];
    let start = out.len();
    out.resize(start + 4 * payload.len().div_ceil(3), 0);
    // The room is what base64 takes, so that neither can fail.
    let n = STANDARD.encode_slice(first, &mut out[start..]).unwrap_or(0);
    let _ = STANDARD.encode_slice(body, &mut out[start + n..]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn stanzas_are_as_the_standards_show_them() {
        assert_eq!(
            text(|o| bind(o, 255, "a&b")),
            "<iq type='set' id='cff'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>a&amp;b</resource></bind></iq>"
        );
        assert_eq!(
            text(|o| subscription(o, 0, "p", "subscribe", "a/'b", "u@h/r")),
            "<iq type='set' id='c0' to='p'><pubsub xmlns='http://jabber.org/protocol/pubsub'><subscribe node='a/&apos;b' jid='u@h/r'/></pubsub></iq>"
        );
        assert_eq!(
            text(|o| reply(o, "x", Some("h"), true)),
            "<iq type='result' id='x' to='h'/>"
        );
        assert!(text(|o| reply(o, "x", None, false)).contains("service-unavailable"));
        let message = Payload {
            head: &[0; 16],
            body: &[],
        };
        assert_eq!(
            text(|o| Template::direct("u@h/a/b").append(o, 0, message)),
            "<message to='u@h/a/b' type='headline'><p xmlns='urn:pubgauge:payload:0'>AAAAAAAAAAAAAAAAAAAAAA==</p></message>"
        );
        assert_eq!(
            text(|o| Template::publish("p", "n", true).append(o, 0x12, message)),
            "<iq type='set' to='p' id='p12'><pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='n'><item id='current'><p xmlns='urn:pubgauge:payload:0'>AAAAAAAAAAAAAAAAAAAAAA==</p></item></publish></pubsub></iq>"
        );
    }

    #[test]
    fn what_xml_cannot_have_is_known() {
        assert!(is_xml("a/\u{e4}\u{1f600}\t"));
        assert!(!is_xml("a\0") && !is_xml("\u{b}") && !is_xml("\u{ffff}"));
    }

    proptest! {
        #[test]
        fn escaped_text_comes_back(any in "\\PC*[<>&'\"\t\n\r]*\\PC*") {
            prop_assume!(is_xml(&any));
            let written = text(|o| escaped(o, &any));
            prop_assert!(!written.contains(['<', '>', '\'', '"', '\n']));
            prop_assert_eq!(quick_xml::escape::unescape(&written).unwrap(), any);
        }

        #[test]
        fn numbers_come_back(any: u32) {
            let id = text(|o| { o.push(PUBLISH); hex(o, any); });
            prop_assert_eq!(number(&id), Some(any));
        }

        #[test]
        fn payloads_come_back(head: [u8; 16], body in proptest::collection::vec(any::<u8>(), 0..100)) {
            let written = text(|o| base64(o, Payload { head: &head, body: &body }));
            let mut whole = head.to_vec();
            whole.extend_from_slice(&body);
            prop_assert_eq!(STANDARD.decode(&written).unwrap(), whole);
        }
    }
}
