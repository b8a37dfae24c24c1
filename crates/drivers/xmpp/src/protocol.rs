//! Handles the stanzas that a client gets.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pubgauge_driver::{Acknowledgement, Delivery, Events};
use pubgauge_net::fleet::{Broken, State};
use pubgauge_net::tls;

use crate::client::{NegotiationStep, XmppLink};
use crate::element::{Body, Scratch, Walk};
use crate::frame::Unit;
use crate::negotiate::{negotiate, open_stream};
use crate::requests;
use crate::shared::Xmpp;
use crate::stanza::{self, Failure, Stanza};
use crate::write;

/// Reads what is whole in `bytes` and acts on it; returns how much that was.
pub(crate) fn receive(
    xmpp: &mut Xmpp,
    link: &mut XmppLink<'_>,
    bytes: &[u8],
    events: &mut dyn Events,
) -> Result<usize, Broken> {
    let mut used = 0;
    // Stanzas that were cut out and not read yet: in a stream that has been negotiated, all that
    // came are read in one go.
    let mut batch = 0..0;
    loop {
        let unit = link.client.own.framer.next(&bytes[used..]);
        let stanza = match unit {
            Ok(Some(Unit::Stanza(n))) => Some(n),
            Ok(Some(Unit::Blank(n))) => {
                used += n;
                continue;
            }
            _ => None,
        };
        if let Some(n) = stanza {
            if batch.is_empty() {
                batch.start = used;
            }
            used += n;
            batch.end = used;
            if link.client.state == State::Connected && !link.client.is_bounded() {
                continue;
            }
        }
        if !batch.is_empty() {
            stanzas(xmpp, link, &bytes[batch.clone()], events)?;
            batch = 0..0;
            if link.client.is_busy() {
                break;
            }
        }
        match unit {
            Ok(Some(Unit::Header(n))) => {
                let text = utf8(link, &bytes[used..used + n])?;
                let prefix = stanza::header(text, &mut xmpp.scratch)
                    .map_err(|error| not_xmpp(link, &error))?;
                link.client.own.session.prefix = prefix.into();
                used += n;
            }
            Ok(Some(Unit::Close(_))) => {
                return match link.client.state {
                    State::Closing => Err(Broken::new("")), // Which is what was wanted.
                    _ => Err(link.broken("the server ended the stream\n  hint: it was stopped, or threw this client out: its log may say why",
                    )),
                };
            }
            Ok(None) => break,
            Ok(_) => {}
            Err(_) if link.client.state == State::Greeting && tls::looks_like_tls(bytes) => {
                return Err(Broken::new(tls::unexpected(link.display_endpoint())));
            }
            Err(error) => return Err(not_xmpp(link, &error)),
        }
        if link.client.own.session.step == NegotiationStep::Proceed && link.client.has_tls() {
            // Bytes that followed <proceed/> were not encrypted: anybody may have sent it.
            if used < bytes.len() {
                return Err(link.broken("data between STARTTLS and TLS"));
            }
            open_stream(xmpp, link, NegotiationStep::Features);
            break;
        }
    }
    if bytes.len() - used > xmpp.max_in && !link.client.is_busy() {
        return Err(link.broken(format_args!(
            "the server sent a stanza of more than {} bytes, which is more than the longest payload can need",
            xmpp.max_in
        )));
    }
    Ok(used)
}

fn utf8<'a>(link: &XmppLink<'_>, bytes: &'a [u8]) -> Result<&'a str, Broken> {
    std::str::from_utf8(bytes).map_err(|_| not_xmpp(link, &"not UTF-8"))
}

fn not_xmpp(link: &XmppLink<'_>, what: &dyn std::fmt::Display) -> Broken {
    let hint = match link.client.state {
        State::Greeting => {
            "\n  hint: is that port for XMPP clients (and TLS from the start only where the endpoint is xmpps://)?"
        }
        _ => "",
    };
    link.broken(format!("the server sent what is not XMPP: {what}{hint}"))
}

/// Reads whole stanzas and acts on each.
fn stanzas(
    xmpp: &mut Xmpp,
    link: &mut XmppLink<'_>,
    bytes: &[u8],
    events: &mut dyn Events,
) -> Result<(), Broken> {
    let text = utf8(link, bytes)?;
    // Both are taken out of `xmpp` while they are read from.
    let mut scratch = std::mem::take(&mut xmpp.scratch);
    let prefix = std::mem::take(&mut link.client.own.session.prefix);
    let mut walk = Walk::new(text, &mut scratch, &prefix);
    let result = loop {
        match stanza::next(&mut walk) {
            Ok(None) => break Ok(()),
            Ok(Some(stanza)) => {
                let done = act(xmpp, link, text, walk.scratch, stanza, events);
                if done.is_err() {
                    break done;
                }
            }
            Err(error) => break Err(not_xmpp(link, &error)),
        }
    };
    xmpp.scratch = scratch;
    link.client.own.session.prefix = prefix;
    result
}

#[inline]
fn act(
    xmpp: &mut Xmpp,
    link: &mut XmppLink<'_>,
    text: &str,
    scratch: &Scratch,
    stanza: Stanza,
    events: &mut dyn Events,
) -> Result<(), Broken> {
    match stanza {
        Stanza::Items { delayed } => {
            for body in &scratch.bodies {
                decode(&mut xmpp.decoded, text, scratch, body);
                let delivery = Delivery {
                    payload: &xmpp.decoded,
                    topic: Some(&scratch.name),
                    retained: delayed,
                    redelivered: false,
                };
                link.deliver(events, delivery);
            }
            Ok(())
        }
        Stanza::Direct(body) => {
            decode(&mut xmpp.decoded, text, scratch, &body);
            let jid = link.client.own.session.jid.as_deref();
            let delivery = Delivery {
                payload: &xmpp.decoded,
                topic: jid.and_then(|jid| Some(jid.split_once('/')?.1)),
                retained: false,
                redelivered: false,
            };
            link.shared.reports.deliver(events, link.id, delivery);
            link.client.count_delivery();
            Ok(())
        }
        Stanza::Answer(answer) => {
            let number = write::number(&scratch.name);
            match (scratch.name.as_bytes().first(), number) {
                (Some(&write::PUBLISH), Some(number)) => {
                    if let Some(tag) = link.client.own.session.window.settle(number) {
                        let answer = match answer {
                            Ok(_) => Acknowledgement::Taken,
                            Err(failure) => Acknowledgement::Rejected(failure.code()),
                        };
                        link.acknowledge(events, tag, answer);
                    }
                    Ok(())
                }
                (Some(&write::CONTROL), Some(number)) => {
                    match link.client.own.session.answered(number) {
                        Some((request, left)) => {
                            requests::answered(xmpp, link, request, left, answer)
                        }
                        None => Ok(()),
                    }
                }
                _ => Ok(()), // Not one of ours.
            }
        }
        Stanza::Question { from, ping } => {
            let out = link.out();
            write::reply(&mut out.bytes, &scratch.name, from.as_deref(), ping);
            Ok(())
        }
        Stanza::StreamError(failure) => Err(stream_error(link, &failure)),
        Stanza::Other => Ok(()),
        other => negotiate(xmpp, link, other),
    }
}

/// Decodes a payload. One that is not pubgauge's becomes empty, and the engine counts it.
#[inline]
pub(crate) fn decode(decoded: &mut Vec<u8>, text: &str, scratch: &Scratch, body: &Body) {
    let encoded = match body {
        Body::Plain(range) => text.get(range.clone()),
        Body::Joined(range) => scratch.joined.get(range.clone()),
        Body::Foreign => None,
    };
    let encoded = encoded.unwrap_or_default();
    decoded.resize(encoded.len().div_ceil(4) * 3, 0);
    let n = match STANDARD.decode_slice(encoded, decoded) {
        Ok(n) => n,
        Err(_) => {
            // Base64 may be broken into lines (RFC 4648 §3.1 leaves it to who refers to it).
            let solid: String = encoded.split_ascii_whitespace().collect();
            STANDARD.decode_slice(solid, decoded).unwrap_or(0)
        }
    };
    decoded.truncate(n);
}

fn stream_error(link: &XmppLink<'_>, failure: &Failure) -> Broken {
    let condition = failure.condition.split(':').next().unwrap_or_default();
    let hint = match condition {
        "conflict" => "another client took this one's address: names of clients must differ",
        "host-unknown" => "give the XMPP domain after the host: xmpp://HOST:PORT/DOMAIN",
        "policy-violation" => {
            "a limit of the server: the size of stanzas (ejabberd: max_stanza_size), a shaper, or connections"
        }
        "see-other-host" => "connect to that host instead",
        "system-shutdown" | "reset" => "the server was stopped or restarted",
        "connection-timeout" => "the server missed a sign of life: set keep-alive-s",
        "not-authorized" => "the server wants a login, or encryption, first",
        _ => "the server's log may say more",
    };
    link.broken(format!("stream error {failure}\n  hint: {hint}"))
}
