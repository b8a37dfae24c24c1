//! Requests to the server, and what their answers mean: addresses, nodes, subscriptions.

use pubgauge_driver::{Change, ClientId};

use crate::broken::Broken;
use crate::client::{Client, Request, State, Step};
use crate::shared::{Shared, Waiting};
use crate::stanza::{Content, Failure};
use crate::write;

/// How often more a request that concerns a node is made where the server says to try again. ejabberd
/// does where several clients make nodes at once: its transactions may be each other's deadlock.
pub(crate) const TRIES: u8 = 10;

/// Sees to it that a topic's node is there.
pub(crate) fn make_sure(client: &mut Client, shared: &mut Shared, id: ClientId, topic: u32) {
    if !shared.options.direct {
        client.session.creating += 1;
        ask(client, shared, id, Request::Create { topic }, TRIES);
    }
}

/// Takes a request that concerns a node, to be sent when it is its turn.
pub(crate) fn ask(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    request: Request,
    left: u8,
) {
    shared.waiting.push_back(Waiting {
        client: id.0,
        epoch: client.epoch,
        request,
        left,
    });
}

/// Sends a request whose turn it is.
pub(crate) fn send(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    request: Request,
    left: u8,
) {
    shared.asked += 1;
    client.session.asked += 1;
    let service = shared.service(client);
    let jid = client.session.jid.clone().unwrap_or_default();
    let last_value = shared.options.last_value;
    let out = client.out.get_or_insert_with(|| shared.out_pool.get());
    let out = &mut out.bytes;
    let number = client.session.ask(request.clone(), left);
    let name = |topic: u32| &shared.topics[topic as usize].name;
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
    shared.mark_dirty(client, id);
}

/// The answer to a request of ours.
pub(crate) fn answered(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    request: Request,
    left: u8,
    answer: Result<Content, Failure>,
) -> Result<(), Broken> {
    if !matches!(request, Request::Bind { .. } | Request::Forget) {
        shared.asked = shared.asked.saturating_sub(1);
        client.session.asked = client.session.asked.saturating_sub(1);
    }
    match (request, answer) {
        (request, Err(failure))
            if failure.wait
                && left > 0
                && !matches!(request, Request::Bind { .. } | Request::Forget) =>
        {
            ask(client, shared, id, request, left - 1);
        }
        (Request::Bind { resource, report }, answer) => {
            bound(client, shared, id, &resource, report, answer)?;
        }
        (Request::Delete { node }, answer) => {
            let gone = |failure: &Failure| failure.condition == "item-not-found";
            if answer.as_ref().err().is_none_or(gone) {
                shared.made.retain(|(_, made)| *made != node);
            }
        }
        (request @ (Request::Create { topic } | Request::Configure { topic }), Ok(_)) => {
            if matches!(request, Request::Create { .. }) {
                let node = shared.topics[topic as usize].name.clone();
                shared.made.push((id, node));
            }
            node_ready(client, shared, topic);
        }
        (Request::Create { topic }, Err(failure)) if failure.condition == "conflict" => {
            // It is there, but perhaps made for something else.
            ask(client, shared, id, Request::Configure { topic }, TRIES);
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
            ask(
                client,
                shared,
                id,
                Request::CreateFor { node, report },
                TRIES,
            );
        }
        (Request::CreateFor { node, report }, answer)
            if answer
                .as_ref()
                .err()
                .is_none_or(|f| f.condition == "conflict") =>
        {
            if answer.is_ok() {
                shared.made.push((id, node.clone()));
            }
            let request = Request::Subscribe {
                node,
                report,
                created: true,
            };
            ask(client, shared, id, request, TRIES);
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

/// The stream is negotiated.
pub(crate) fn connected(client: &mut Client, shared: &mut Shared, id: ClientId) {
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
    shared.reports.owe(id, change);
    for n in 0..client.topics.len() {
        make_sure(client, shared, id, client.topics[n]);
    }
}

/// An outcome of a subscription.
fn settle(client: &mut Client, shared: &mut Shared, id: ClientId, report: u32, change: Change) {
    client.session.keep_promise(report, change);
    shared.settled.push(id.0);
}
