//! Requests to the server, and what their answers mean: addresses, nodes, subscriptions.

use pubgauge_driver::{Change, TopicId};
use pubgauge_net::fleet::Broken;

use crate::client::{NegotiationStep, Request, XmppLink};
use crate::shared::{Waiting, Xmpp};
use crate::stanza::{AnswerContent, Failure};
use crate::write;

/// Most retries of a request about a node where the server says to try again. ejabberd does where
/// several clients create nodes at once: its transactions may deadlock. Of 12 trials that created 100
/// or 160 nodes, two ended with 10 retries of one node in vain.
pub(crate) const TRIES: u8 = 50;

/// Creates a topic's node unless it exists.
pub(crate) fn make_sure(xmpp: &mut Xmpp, link: &mut XmppLink<'_>, topic: u32) {
    if !xmpp.options.direct {
        link.client.own.session.creating += 1;
        ask(xmpp, link, Request::Create { topic }, TRIES);
    }
}

/// Queues a request about a node.
pub(crate) fn ask(xmpp: &mut Xmpp, link: &mut XmppLink<'_>, request: Request, left: u8) {
    xmpp.waiting.push_back(Waiting {
        client: link.id.0,
        epoch: link.client.epoch,
        request,
        left,
    });
}

/// Sends a request whose turn it is.
pub(crate) fn send(xmpp: &mut Xmpp, link: &mut XmppLink<'_>, request: Request, left: u8) {
    xmpp.asked += 1;
    link.client.own.session.asked += 1;
    let service = xmpp.service(link);
    let jid = link.client.own.session.jid.clone().unwrap_or_default();
    let last_value = xmpp.options.last_value;
    let number = link.client.own.session.ask(request.clone(), left);
    let out = &mut link.out().bytes;
    let name = |topic: u32| xmpp.topic_name(topic);
    match &request {
        Request::Create { topic } => write::create(out, number, &service, name(*topic), last_value),
        Request::CreateFor { node, .. } => write::create(out, number, &service, node, last_value),
        Request::Configure { topic } => {
            write::configure(out, number, &service, name(*topic), last_value);
        }
        Request::Subscribe { node, .. } | Request::Match { node, .. } => {
            write::subscription(out, number, &service, "subscribe", node, &jid);
        }
        Request::Delete { node } => write::delete(out, number, &service, node),
        Request::Discover => write::discover(out, number, &service),
        Request::Bind { .. } | Request::Forget => debug_assert!(false, "{request:?}"),
    }
}

/// The answer to a request of ours.
pub(crate) fn answered(
    xmpp: &mut Xmpp,
    link: &mut XmppLink<'_>,
    request: Request,
    left: u8,
    answer: Result<AnswerContent, Failure>,
) -> Result<(), Broken> {
    if !matches!(request, Request::Bind { .. } | Request::Forget) {
        xmpp.asked = xmpp.asked.saturating_sub(1);
        link.client.own.session.asked = link.client.own.session.asked.saturating_sub(1);
    }
    match (request, answer) {
        (request, Err(failure))
            if failure.wait
                && left > 0
                && !matches!(request, Request::Bind { .. } | Request::Forget) =>
        {
            ask(xmpp, link, request, left - 1);
        }
        (Request::Bind { resource, report }, answer) => {
            bound(xmpp, link, &resource, report, answer)?;
        }
        (Request::Delete { node }, answer) => {
            let gone = |failure: &Failure| failure.condition == "item-not-found";
            if answer.as_ref().err().is_none_or(gone) {
                xmpp.made.retain(|(_, made)| *made != node);
            }
        }
        (Request::Create { topic }, Ok(_)) => {
            let node = xmpp.topic_name(topic).into();
            xmpp.made.push((link.id, node));
            node_ready(xmpp, link, topic);
        }
        (Request::Configure { topic }, Ok(_)) => node_ready(xmpp, link, topic),
        (Request::Create { topic }, Err(failure)) if failure.condition == "conflict" => {
            // It is there, but perhaps made for something else.
            ask(xmpp, link, Request::Configure { topic }, TRIES);
        }
        // The node belongs to another account, that of another publisher or subscriber of this
        // trial.
        (Request::Configure { topic }, Err(failure))
            if matches!(
                failure.condition.as_str(),
                "forbidden" | "not-allowed" | "not-authorized"
            ) =>
        {
            node_ready(xmpp, link, topic);
        }
        (Request::Create { topic } | Request::Configure { topic }, Err(failure)) => {
            let name = xmpp.topic_name(topic);
            return Err(link.broken(format!(
                    "the node {name:?} cannot be made: {failure}\n  hint: does the service {} exist, and may this account make nodes there?",
                    xmpp.service(link)
                ),
            ));
        }
        (Request::Subscribe { node, report, .. }, Ok(_)) => {
            link.client.own.session.nodes.push(node);
            settle(link, report, Change::Subscribed);
        }
        (
            Request::Subscribe {
                node,
                report,
                created: false,
            },
            Err(failure),
        ) if failure.condition == "item-not-found" => {
            ask(xmpp, link, Request::CreateFor { node, report }, TRIES);
        }
        (Request::CreateFor { node, report }, answer)
            if answer
                .as_ref()
                .err()
                .is_none_or(|f| f.condition == "conflict") =>
        {
            if answer.is_ok() {
                xmpp.made.push((link.id, node.clone()));
            }
            let request = Request::Subscribe {
                node,
                report,
                created: true,
            };
            ask(xmpp, link, request, TRIES);
        }
        (Request::Subscribe { node, report, .. } | Request::CreateFor { node, report }, answer) => {
            let failure = answer.err().unwrap_or_default();
            let words = format!("the node {node:?}: {failure}");
            settle(link, report, Change::SubscriptionRefused(words));
        }
        (Request::Match { wildcard, node }, answer) => {
            match &answer {
                Ok(_) => link.client.own.session.nodes.push(node),
                Err(failure) if failure.condition == "item-not-found" => {
                    xmpp.wildcards.forget_node(wildcard, &node);
                }
                Err(failure) => {
                    return Err(link.broken(format!(
                            "a node that matches a wildcard, {node:?}, cannot be subscribed to: {failure}"
                        ),
                    ));
                }
            }
            if let Some((report, change)) = xmpp.wildcards.answered(wildcard, link.id.0) {
                settle(link, report, change);
            }
        }
        (Request::Discover, Ok(content)) => {
            let interval = xmpp.options.discovery_interval_ms;
            xmpp.wildcards.record_nodes(
                link.client.place,
                content.nodes,
                link.shared.now_ms,
                interval,
            );
        }
        (Request::Discover, Err(failure)) => {
            return Err(link.broken(format!(
                "the service {} does not tell its nodes, which wildcards need: {failure}",
                xmpp.service(link)
            )));
        }
        (Request::Forget, _) => {}
    }
    Ok(())
}

fn node_ready(xmpp: &mut Xmpp, link: &mut XmppLink<'_>, topic: u32) {
    link.client.own.session.creating = link.client.own.session.creating.saturating_sub(1);
    if let Some(topic) = xmpp.topics.get_mut(TopicId(topic)) {
        topic.ready = link.client.epoch;
    }
}

/// An address was bound, or not.
fn bound(
    xmpp: &mut Xmpp,
    link: &mut XmppLink<'_>,
    resource: &str,
    report: Option<u32>,
    answer: Result<AnswerContent, Failure>,
) -> Result<(), Broken> {
    link.client.own.session.binding = false;
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
                    settle(link, report, Change::SubscriptionRefused(words));
                    Ok(())
                }
                None => Err(link.broken(words)),
            };
        }
    };
    let Some((_, actual)) = jid.split_once('/') else {
        return Err(link.broken(format!(
            "the server bound {jid:?}, which is no full address"
        )));
    };
    let as_asked = actual == resource;
    let actual = actual.to_owned();
    link.client.own.session.jid = Some(jid.into());
    if let Some(report) = report {
        let change = if as_asked {
            Change::Subscribed
        } else {
            Change::SubscriptionRefused(format!(
                "the server gave the resource {actual:?} instead of {resource:?}, where no sender looks for it"
            ))
        };
        settle(link, report, change);
    }
    if link.client.own.session.step == NegotiationStep::Bind {
        connected(xmpp, link);
    }
    Ok(())
}

/// The stream is negotiated.
pub(crate) fn connected(xmpp: &mut Xmpp, link: &mut XmppLink<'_>) {
    link.client.own.session.step = NegotiationStep::Done;
    link.connected();
    link.keep_alive(xmpp.options.keep_alive_s);
    link.owe(Change::Connected {
        session_present: false,
        address: None,
    });
    for n in 0..link.client.own.topics.len() {
        make_sure(xmpp, link, link.client.own.topics[n]);
    }
}

/// An outcome of a subscription. Outcomes are reported in the order in which the subscriptions were
/// asked for.
pub(crate) fn settle(link: &mut XmppLink<'_>, report: u32, change: Change) {
    link.client.own.session.keep_promise(report, change);
    while let Some(change) = link.client.own.session.outcome() {
        link.owe(change);
    }
}
