//! What a client does about what the server says.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pubgauge_driver::{Acknowledgement, Change, ClientId, Delivery, Events};

use crate::client::{Client, Request, State, Step};
use crate::element::{Body, Scratch, Walk};
use crate::endpoint::Security;
use crate::frame::Unit;
use crate::sasl::{Account, Login};
use crate::shared::Shared;
use crate::stanza::{self, Content, Failure, Features, Stanza};
use crate::write;

/// A connection cannot go on: why, and what to do.
pub(crate) struct Broken(pub String);

impl Broken {
    pub fn of(client: &Client, shared: &Shared, what: impl std::fmt::Display) -> Broken {
        Broken(format!("{}: {what}", shared.shown(client)))
    }
}

/// Reads what is whole in `bytes` and acts on it; returns how much that was.
pub(crate) fn receive(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    bytes: &[u8],
    events: &mut dyn Events,
) -> Result<usize, Broken> {
    let mut used = 0;
    // Stanzas that were cut out and not read yet: in a stream that has been negotiated, all that
    // came are read in one go.
    let mut batch = 0..0;
    loop {
        let unit = client.framer.next(&bytes[used..]);
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
            if client.state == State::Connected {
                continue;
            }
        }
        if !batch.is_empty() {
            stanzas(client, shared, id, &bytes[batch.clone()], events)?;
            batch = 0..0;
        }
        match unit {
            Ok(Some(Unit::Header(n))) => {
                let text = utf8(client, shared, &bytes[used..used + n])?;
                let prefix = stanza::header(text, &mut shared.scratch)
                    .map_err(|error| not_xmpp(client, shared, &error))?;
                client.session.prefix = prefix.into();
                used += n;
            }
            Ok(Some(Unit::Close(_))) => {
                return match client.state {
                    State::Closing => Err(Broken(String::new())), // Which is what was wanted.
                    _ => Err(Broken::of(
                        client,
                        shared,
                        "the server ended the stream\n  hint: it was stopped, or threw this client out: its log may say why",
                    )),
                };
            }
            Ok(None) => break,
            Ok(_) => {}
            Err(error) => return Err(not_xmpp(client, shared, &error)),
        }
        if client.session.step == Step::Proceed && client.tls.is_some() {
            // What came behind <proceed/> was not encrypted, and anybody may have said it.
            if used < bytes.len() {
                return Err(Broken::of(client, shared, "data between STARTTLS and TLS"));
            }
            open_stream(client, shared, id, Step::Features);
            break;
        }
    }
    Ok(used)
}

fn utf8<'a>(client: &Client, shared: &Shared, bytes: &'a [u8]) -> Result<&'a str, Broken> {
    std::str::from_utf8(bytes).map_err(|_| not_xmpp(client, shared, &"not UTF-8"))
}

fn not_xmpp(client: &Client, shared: &Shared, what: &dyn std::fmt::Display) -> Broken {
    let hint = match client.state {
        State::Negotiating => {
            "\n  hint: is that port for XMPP clients (and TLS from the start only where the endpoint is xmpps://)?"
        }
        _ => "",
    };
    Broken::of(
        client,
        shared,
        format!("the server sent what is not XMPP: {what}{hint}"),
    )
}

/// Reads whole stanzas and acts on each.
fn stanzas(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    bytes: &[u8],
    events: &mut dyn Events,
) -> Result<(), Broken> {
    let text = utf8(client, shared, bytes)?;
    // Both are out of the way while they are read from.
    let mut scratch = std::mem::take(&mut shared.scratch);
    let prefix = std::mem::take(&mut client.session.prefix);
    let mut walk = Walk::new(text, &mut scratch, &prefix);
    let result = loop {
        match stanza::next(&mut walk) {
            Ok(None) => break Ok(()),
            Ok(Some(stanza)) => {
                let done = act(client, shared, id, text, walk.scratch, stanza, events);
                if done.is_err() {
                    break done;
                }
            }
            Err(error) => break Err(not_xmpp(client, shared, &error)),
        }
    };
    shared.scratch = scratch;
    client.session.prefix = prefix;
    result
}

#[inline]
fn act(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    text: &str,
    scratch: &Scratch,
    stanza: Stanza,
    events: &mut dyn Events,
) -> Result<(), Broken> {
    match stanza {
        Stanza::Items { delayed } => {
            for body in &scratch.bodies {
                decode(&mut shared.decoded, text, scratch, body);
                shared.reported = true;
                let delivery = Delivery {
                    payload: &shared.decoded,
                    topic: Some(&scratch.name),
                    retained: delayed,
                    redelivered: false,
                };
                events.delivered(id, delivery);
            }
            Ok(())
        }
        Stanza::Direct(body) => {
            decode(&mut shared.decoded, text, scratch, &body);
            shared.reported = true;
            let jid = client.session.jid.as_deref();
            let delivery = Delivery {
                payload: &shared.decoded,
                topic: jid.and_then(|jid| Some(jid.split_once('/')?.1)),
                retained: false,
                redelivered: false,
            };
            events.delivered(id, delivery);
            Ok(())
        }
        Stanza::Answer(answer) => {
            let number = write::number(&scratch.name);
            match (scratch.name.as_bytes().first(), number) {
                (Some(&write::PUBLISH), Some(number)) => {
                    if let Some(tag) = client.session.window.settle(number) {
                        shared.unsettled -= 1;
                        shared.reported = true;
                        let answer = match answer {
                            Ok(_) => Acknowledgement::Taken,
                            Err(failure) => Acknowledgement::Rejected(failure.code()),
                        };
                        events.acknowledged(id, tag, answer);
                    }
                    Ok(())
                }
                (Some(&write::CONTROL), Some(number)) => match client.session.answered(number) {
                    Some(request) => answered(client, shared, id, request, answer),
                    None => Ok(()),
                },
                _ => Ok(()), // Not one of ours.
            }
        }
        Stanza::Question { from, ping } => {
            let out = client.out(&mut shared.out_pool);
            write::reply(&mut out.bytes, &scratch.name, from.as_deref(), ping);
            shared.mark_dirty(client, id);
            Ok(())
        }
        Stanza::StreamError(failure) => Err(stream_error(client, shared, &failure)),
        Stanza::Other => Ok(()),
        other => negotiate(client, shared, id, other),
    }
}

/// Decodes a payload. One that is not ours is empty, and for the engine to count.
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

fn stream_error(client: &Client, shared: &Shared, failure: &Failure) -> Broken {
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
    Broken::of(
        client,
        shared,
        format!("stream error {failure}\n  hint: {hint}"),
    )
}

/// Opens a stream, or opens it again after STARTTLS or login (RFC 6120 §4.3.3).
pub(crate) fn open_stream(client: &mut Client, shared: &mut Shared, id: ClientId, step: Step) {
    client.session.step = step;
    client.framer = crate::frame::Framer::default();
    let out = client.out.get_or_insert_with(|| shared.out_pool.get());
    let domain = &shared.endpoints[usize::from(client.endpoint)].domain;
    write::stream_header(&mut out.bytes, domain);
    shared.mark_dirty(client, id);
}

/// What concerns the negotiation of the stream (RFC 6120 §4.3, §5, §6, §7).
fn negotiate(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    stanza: Stanza,
) -> Result<(), Broken> {
    match (client.session.step, stanza) {
        (Step::Features, Stanza::Features(features)) => {
            features_came(client, shared, id, &features)
        }
        (Step::Proceed, Stanza::Proceed) => {
            let connection = shared.tls_connection(client);
            let connection = connection.map_err(|error| Broken::of(client, shared, error))?;
            client.tls = Some(connection);
            Ok(())
        }
        (Step::Proceed, Stanza::TlsFailure) => Err(Broken::of(
            client,
            shared,
            "the server refuses STARTTLS\n  hint: its certificate may be missing; its log may say why",
        )),
        (Step::Login, Stanza::Challenge(challenge)) => {
            let response = match client.session.login.as_mut() {
                Some(login) => login.response(&challenge),
                None => Err("a challenge that nobody asked for".into()),
            };
            let response =
                response.map_err(|error| Broken::of(client, shared, format!("SASL: {error}")))?;
            let out = client.out(&mut shared.out_pool);
            write::sasl(&mut out.bytes, None, &response);
            shared.mark_dirty(client, id);
            Ok(())
        }
        (Step::Login, Stanza::Success(data)) => {
            if let Some(mut login) = client.session.login.take() {
                login.success(&data).map_err(|error| {
                    Broken::of(
                        client,
                        shared,
                        format!("SASL: the server does not know the password it should: {error}"),
                    )
                })?;
            }
            open_stream(client, shared, id, Step::LoggedIn);
            Ok(())
        }
        (Step::Login, Stanza::SaslFailure(failure)) => {
            let name = client.session.login.as_ref().map_or("", Login::name);
            Err(Broken::of(
                client,
                shared,
                format!(
                    "login by SASL {name} failed: {failure}\n  hint: check the user name, its domain and the password; the testbed's systems make their accounts themselves"
                ),
            ))
        }
        (Step::LoggedIn, Stanza::Features(features)) => {
            if !features.bind {
                return Err(Broken::of(
                    client,
                    shared,
                    "the server offers no resource binding",
                ));
            }
            if shared.options.direct && client.subscribes {
                // Its address is to be the topic that it subscribes to.
                connected(client, shared, id);
                return Ok(());
            }
            client.session.step = Step::Bind;
            let name = client.name.clone();
            bind(client, shared, id, &name, None);
            Ok(())
        }
        (step, _) => Err(Broken::of(
            client,
            shared,
            format!("the server said something else than was due ({step:?})"),
        )),
    }
}

fn features_came(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    features: &Features,
) -> Result<(), Broken> {
    let endpoint = shared.endpoint(client);
    if endpoint.security == Security::StartTls && client.tls.is_none() {
        if !features.starttls {
            return Err(Broken::of(
                client,
                shared,
                "the server does not offer STARTTLS\n  hint: give it a certificate and switch STARTTLS on, or use an xmpp:// endpoint, which is not encrypted",
            ));
        }
        let out = client.out(&mut shared.out_pool);
        out.bytes.extend_from_slice(write::STARTTLS);
        client.session.step = Step::Proceed;
        shared.mark_dirty(client, id);
        return Ok(());
    }
    let account = Account {
        username: endpoint.username.as_deref(),
        password: shared.password.as_ref(),
        private: endpoint.is_private(),
    };
    let login = Login::choose(shared.options.mechanism, &features.mechanisms, &account);
    let mut login = login.map_err(|error| Broken::of(client, shared, error))?;
    let out = client.out(&mut shared.out_pool);
    let first = login.initial();
    write::sasl(&mut out.bytes, Some(login.name()), &first);
    client.session.login = Some(login);
    client.session.step = Step::Login;
    shared.mark_dirty(client, id);
    Ok(())
}

/// Asks for an address with this resource, for a subscription's sake if there is a `report`.
pub(crate) fn bind(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    resource: &str,
    report: Option<u32>,
) {
    client.session.binding = true;
    let request = Request::Bind {
        resource: resource.into(),
        report,
    };
    let number = client.session.ask(request);
    let out = client.out(&mut shared.out_pool);
    write::bind(&mut out.bytes, number, resource);
    shared.mark_dirty(client, id);
}

/// The stream is negotiated.
fn connected(client: &mut Client, shared: &mut Shared, id: ClientId) {
    client.session.step = Step::Done;
    client.state = State::Connected;
    client.due_ms = 0;
    let keep_alive = shared.options.keep_alive_s;
    if keep_alive > 0 {
        shared.set_timer(client, id, u32::from(keep_alive) * 1000);
    }
    let change = Change::Connected {
        session_present: false,
        address: None,
    };
    shared.owed.push((id, change));
    for n in 0..client.topics.len() {
        make_sure(client, shared, id, client.topics[n]);
    }
}

/// Sees to it that a topic's node is there.
pub(crate) fn make_sure(client: &mut Client, shared: &mut Shared, id: ClientId, topic: u32) {
    if shared.options.direct {
        return;
    }
    client.session.creating += 1;
    let number = client.session.ask(Request::Create { topic });
    let service = shared.service(client);
    let name = &shared.topics[topic as usize].name;
    let out = client.out.get_or_insert_with(|| shared.out_pool.get());
    write::create(
        &mut out.bytes,
        number,
        &service,
        name,
        shared.options.last_value,
    );
    shared.mark_dirty(client, id);
}

/// The node of a subscription, or the subscription itself.
pub(crate) fn subscribe(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    node: &str,
    report: u32,
    created: bool,
) {
    let request = Request::Subscribe {
        node: node.into(),
        report,
        created,
    };
    let number = client.session.ask(request);
    let service = shared.service(client);
    let jid = client.session.jid.clone().unwrap_or_default();
    let out = client.out(&mut shared.out_pool);
    write::subscription(&mut out.bytes, number, &service, "subscribe", node, &jid);
    shared.mark_dirty(client, id);
}

/// The answer to a request of ours.
fn answered(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    request: Request,
    answer: Result<Content, Failure>,
) -> Result<(), Broken> {
    match (request, answer) {
        (Request::Bind { resource, report }, answer) => {
            bound(client, shared, id, &resource, report, answer)?;
        }
        (Request::Create { topic } | Request::Configure { topic }, Ok(_)) => {
            node_ready(client, shared, topic);
        }
        (Request::Create { topic }, Err(failure)) if failure.condition == "conflict" => {
            // It is there, but perhaps made for something else.
            let number = client.session.ask(Request::Configure { topic });
            let service = shared.service(client);
            let name = &shared.topics[topic as usize].name;
            let out = client.out.get_or_insert_with(|| shared.out_pool.get());
            write::configure(
                &mut out.bytes,
                number,
                &service,
                name,
                shared.options.last_value,
            );
            shared.mark_dirty(client, id);
        }
        // Another account's node, of another publisher or subscriber of this trial.
        (Request::Configure { topic }, Err(failure))
            if matches!(
                failure.condition.as_str(),
                "forbidden" | "not-allowed" | "not-authorized"
            ) =>
        {
            node_ready(client, shared, topic);
        }
        (Request::Create { topic } | Request::Configure { topic }, Err(failure)) => {
            let name = &shared.topics[topic as usize].name;
            return Err(Broken::of(
                client,
                shared,
                format!(
                    "the node {name:?} cannot be made: {failure}\n  hint: does the service {} exist, and may this account make nodes there?",
                    shared.service(client)
                ),
            ));
        }
        (Request::Subscribe { node, report, .. }, Ok(_)) => {
            client.session.nodes.push(node);
            settle(client, shared, id, report, Change::Subscribed);
        }
        (
            Request::Subscribe {
                node,
                report,
                created: false,
            },
            Err(failure),
        ) if failure.condition == "item-not-found" => {
            let number = client.session.ask(Request::CreateFor {
                node: node.clone(),
                report,
            });
            let service = shared.service(client);
            let last_value = shared.options.last_value;
            let out = client.out(&mut shared.out_pool);
            write::create(&mut out.bytes, number, &service, &node, last_value);
            shared.mark_dirty(client, id);
        }
        (Request::CreateFor { node, report }, answer)
            if answer
                .as_ref()
                .err()
                .is_none_or(|f| f.condition == "conflict") =>
        {
            subscribe(client, shared, id, &node, report, true);
        }
        (Request::Subscribe { node, report, .. } | Request::CreateFor { node, report }, answer) => {
            let failure = answer.err().unwrap_or_default();
            let words = format!("the node {node:?}: {failure}");
            settle(
                client,
                shared,
                id,
                report,
                Change::SubscriptionRefused(words),
            );
        }
        (Request::Match { wildcard, node }, answer) => {
            match &answer {
                Ok(_) => client.session.nodes.push(node),
                Err(failure) if failure.condition == "item-not-found" => {
                    shared.wildcards.gone(wildcard, &node);
                }
                Err(failure) => {
                    return Err(Broken::of(
                        client,
                        shared,
                        format!(
                            "a node that matches a wildcard, {node:?}, cannot be subscribed to: {failure}"
                        ),
                    ));
                }
            }
            if let Some((report, change)) = shared.wildcards.answered(wildcard, id.0) {
                settle(client, shared, id, report, change);
            }
        }
        (Request::Discover, Ok(content)) => {
            let interval = shared.options.discovery_interval_ms;
            shared
                .wildcards
                .found(client.endpoint, content.nodes, shared.now_ms, interval);
        }
        (Request::Discover, Err(failure)) => {
            return Err(Broken::of(
                client,
                shared,
                format!(
                    "the service {} does not tell its nodes, which wildcards need: {failure}",
                    shared.service(client)
                ),
            ));
        }
        (Request::Forget, _) => {}
    }
    Ok(())
}

fn node_ready(client: &mut Client, shared: &mut Shared, topic: u32) {
    client.session.creating = client.session.creating.saturating_sub(1);
    shared.topics[topic as usize].ready = client.epoch;
}

/// An address was bound, or not.
fn bound(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    resource: &str,
    report: Option<u32>,
    answer: Result<Content, Failure>,
) -> Result<(), Broken> {
    client.session.binding = false;
    let jid = match answer {
        Ok(content) => content.jid.unwrap_or_default(),
        Err(failure) => {
            let hint = match failure.condition.as_str() {
                "conflict" => {
                    "\n  hint: another client has it: names of clients, and topics of receivers, must differ"
                }
                _ => "",
            };
            let words = format!(
                "the address with the resource {resource:?} cannot be had: {failure}{hint}"
            );
            return match report {
                Some(report) => {
                    settle(
                        client,
                        shared,
                        id,
                        report,
                        Change::SubscriptionRefused(words),
                    );
                    Ok(())
                }
                None => Err(Broken::of(client, shared, words)),
            };
        }
    };
    let Some((_, actual)) = jid.split_once('/') else {
        return Err(Broken::of(
            client,
            shared,
            format!("the server bound {jid:?}, which is no full address"),
        ));
    };
    let as_asked = actual == resource;
    let actual = actual.to_owned();
    client.session.jid = Some(jid.into());
    if let Some(report) = report {
        let change = match as_asked {
            true => Change::Subscribed,
            false => Change::SubscriptionRefused(format!(
                "the server gave the resource {actual:?} instead of {resource:?}, where no sender looks for it"
            )),
        };
        settle(client, shared, id, report, change);
    }
    if client.session.step == Step::Bind {
        connected(client, shared, id);
    }
    Ok(())
}

/// An outcome of a subscription.
fn settle(client: &mut Client, shared: &mut Shared, id: ClientId, report: u32, change: Change) {
    client.session.keep_promise(report, change);
    shared.settled.push(id.0);
}
