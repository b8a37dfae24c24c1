//! What a client does with the frames it gets. No sockets here: bytes come in as a slice, and
//! what is to be sent is appended to the client's output buffer.
//!
//! | channel | method | what happens |
//! |---|---|---|
//! | 0 | connection.start, tune, open-ok | the login goes on |
//! | 0 | connection.blocked, unblocked | publishing is held back, goes on |
//! | 0 | connection.close | failed, with the server's words |
//! | 1 | basic.ack, basic.nack, tx.commit-ok | messages are acknowledged |
//! | 1 | basic.return | a message is marked as not routed; its confirm follows |
//! | 1, 2 | channel.flow | publishing is held back, goes on |
//! | 2 | basic.deliver | delivered, and acknowledged with all others of the read |
//! | 2 | basic.cancel | failed: the queue is gone |
//! | 1, 2 | channel.close | failed, or the subscription is refused, or the session is not there |
//! | 1, 2 | the answers to what was asked | taken off the list of what is awaited |

use std::collections::VecDeque;

use pubgauge_amqp_codec::method::{BasicAck, ChannelCloseOk, ChannelFlowOk, MULTIPLE};
use pubgauge_amqp_codec::{
    ContentHeader, DecodeError, Frame, FrameKind, Method, PublishTemplate, decode_delivery,
    decode_frame,
};
use pubgauge_driver::{Change, ClientId, Delivery, Events};
use pubgauge_net::tls;

use crate::broken::{Broken, unexpected};
use crate::client::{Answer, Awaits, CONSUMING, Client, Content, PUBLISHING, Partial, State};
use crate::login;
use crate::options::FRAME_MAX;
use crate::shared::Shared;
use crate::subscribe::consumer_number;
use crate::topics::topic_of;

/// Buffers of messages above this are not kept for reuse, in bytes.
const KEEP_BODY: usize = 4 << 20;

/// Takes in `bytes`, as many whole frames as they hold, and returns how many bytes that was.
pub(crate) fn receive(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    bytes: &[u8],
    events: &mut dyn Events,
) -> Result<usize, Broken> {
    let mut at = 0;
    loop {
        let rest = &bytes[at..];
        if client.partial.is_none()
            && client.state == State::Connected
            && let Some((delivered, len)) = decode_delivery(rest, FRAME_MAX as usize)
        {
            at += len;
            if delivered.body.len() > shared.max_in {
                return Err(too_large(client, shared, delivered.body.len() as u64));
            }
            arrived(client, shared, delivered.channel, delivered.delivery_tag)?;
            shared.reports.reported = true;
            let exchange = shared.options.exchange;
            events.delivered(
                id,
                Delivery {
                    payload: delivered.body,
                    topic: Some(topic_of(delivered.routing_key, exchange, &mut shared.topic)),
                    retained: false,
                    redelivered: delivered.redelivered,
                },
            );
            continue;
        }
        match decode_frame(rest, FRAME_MAX as usize) {
            Ok(Some((frame, len))) => {
                at += len;
                take(client, shared, id, frame, events)?;
            }
            Ok(None) => break,
            Err(_) if client.state == State::Greeting && tls::looks_like_tls(rest) => {
                return Err(Broken::told(tls::unexpected(shared.endpoint(client))));
            }
            Err(error) => return Err(undecodable(client, shared, error)),
        }
    }
    acknowledge(client, shared, id);
    Ok(at)
}

/// Acknowledges what came, all at once.
fn acknowledge(client: &mut Client, shared: &mut Shared, id: ClientId) {
    if !shared.options.acknowledge || client.state != State::Connected {
        return;
    }
    let Some(consumer) = &mut client.consumer else {
        return;
    };
    if consumer.came > consumer.acknowledged {
        consumer.acknowledged = consumer.came;
        let ack = Method::BasicAck(BasicAck {
            delivery_tag: consumer.came,
            bits: MULTIPLE,
            ..BasicAck::default()
        });
        shared.send(client, id, CONSUMING, ack);
    }
}

/// A delivery came in full.
#[inline]
fn arrived(
    client: &mut Client,
    shared: &Shared,
    channel: u16,
    delivery_tag: u64,
) -> Result<(), Broken> {
    match &mut client.consumer {
        Some(consumer) if channel == CONSUMING && consumer.open => {
            consumer.came = delivery_tag;
            Ok(())
        }
        _ => Err(Broken::protocol(
            shared.endpoint(client),
            "a basic.deliver where nothing is consumed",
        )),
    }
}

#[cold]
fn undecodable(client: &Client, shared: &Shared, error: DecodeError) -> Broken {
    match error {
        DecodeError::OtherVersion(..) => Broken::told(format!(
            "{}: {error}\n  hint: this driver speaks AMQP 0-9-1; is it an AMQP 1.0 server?",
            shared.endpoint(client)
        )),
        _ => Broken::protocol(shared.endpoint(client), error),
    }
}

#[cold]
fn too_large(client: &Client, shared: &Shared, len: u64) -> Broken {
    Broken::told(format!(
        "{}: a message of {len} bytes came\n  hint: this trial takes up to {} bytes; something else publishes to the same topics?",
        shared.endpoint(client),
        shared.max_in
    ))
}

/// Takes in one frame.
fn take(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    frame: Frame<'_>,
    events: &mut dyn Events,
) -> Result<(), Broken> {
    match frame.kind {
        FrameKind::Heartbeat => Ok(()), // Any byte from the server was already taken as a sign.
        FrameKind::Header => header(client, shared, id, frame, events),
        FrameKind::Body => body(client, shared, id, frame, events),
        FrameKind::Method => {
            let method = match Method::decode(frame.payload) {
                Ok(method) => method,
                Err(error) => return Err(undecodable(client, shared, error)),
            };
            if client
                .partial
                .as_ref()
                .is_some_and(|p| p.channel == frame.channel)
            {
                return Err(unexpected(client, shared, &method));
            }
            match frame.channel {
                0 => login::connection(client, shared, id, method, events),
                PUBLISHING => publishing(client, shared, id, method, events),
                CONSUMING => consuming(client, shared, id, method, events),
                _ => Err(unexpected(client, shared, &method)),
            }
        }
    }
}

/// A content header.
fn header(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    frame: Frame<'_>,
    events: &mut dyn Events,
) -> Result<(), Broken> {
    let content = match ContentHeader::decode(frame.payload) {
        Ok(header) => header,
        Err(error) => return Err(undecodable(client, shared, error)),
    };
    let waits = |p: &&mut Box<Partial>| p.channel == frame.channel && p.size.is_none();
    let Some(partial) = client.partial.as_mut().filter(waits) else {
        return Err(Broken::protocol(
            shared.endpoint(client),
            "a content header out of turn (§4.2.6)",
        ));
    };
    let size = usize::try_from(content.body_size).unwrap_or(usize::MAX);
    if size > shared.max_in {
        return Err(too_large(client, shared, content.body_size));
    }
    partial.size = Some(size);
    if let Content::Return(number) = &mut partial.kind {
        *number = content
            .properties
            .message_id
            .and_then(PublishTemplate::read_id);
    }
    if size == 0 {
        complete(client, shared, id, events)?;
    }
    Ok(())
}

/// A piece of a body.
fn body(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    frame: Frame<'_>,
    events: &mut dyn Events,
) -> Result<(), Broken> {
    let partial = client
        .partial
        .as_mut()
        .filter(|p| p.channel == frame.channel);
    let Some((partial, size)) = partial.and_then(|p| p.size.map(|size| (p, size))) else {
        return Err(Broken::protocol(
            shared.endpoint(client),
            "a body frame out of turn (§4.2.6)",
        ));
    };
    if frame.payload.len() > size - partial.body.len() {
        return Err(Broken::protocol(
            shared.endpoint(client),
            "a body that is longer than its header says (§4.2.6.2)",
        ));
    }
    // Memory is given only as bytes come in: the size is the server's claim.
    partial.body.extend_from_slice(frame.payload);
    if partial.body.len() == size {
        complete(client, shared, id, events)?;
    }
    Ok(())
}

/// Content is complete that came in pieces.
fn complete(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    events: &mut dyn Events,
) -> Result<(), Broken> {
    let Some(partial) = client.partial.take() else {
        return Ok(());
    };
    match partial.kind {
        Content::Return(number) => {
            if let (Some(number), Some(publisher)) = (number, &mut client.publisher) {
                publisher.window.returned(number);
            }
        }
        Content::Delivery => {
            arrived(client, shared, partial.channel, partial.delivery_tag)?;
            // After our connection.close nothing is reported, nor acknowledged.
            if client.state == State::Connected {
                shared.reports.reported = true;
                let exchange = shared.options.exchange;
                let topic = topic_of(&partial.routing_key, exchange, &mut shared.topic);
                events.delivered(
                    id,
                    Delivery {
                        payload: &partial.body,
                        topic: Some(topic),
                        retained: false,
                        redelivered: partial.redelivered,
                    },
                );
            }
        }
    }
    if shared.partials.len() < 16 && partial.body.capacity() <= KEEP_BODY {
        shared.partials.push(partial);
    }
    Ok(())
}

/// Content begins.
fn begin<'a>(
    client: &'a mut Client,
    shared: &mut Shared,
    channel: u16,
    kind: Content,
) -> &'a mut Partial {
    let mut partial = shared.partials.pop().unwrap_or_default();
    partial.kind = kind;
    partial.channel = channel;
    partial.size = None;
    partial.body.clear();
    partial.routing_key.clear();
    client.partial.insert(partial)
}

/// The answer to what was asked.
fn answer_of(method: &Method<'_>) -> Option<Answer> {
    Some(match method {
        Method::ChannelOpenOk(_) => Answer::ChannelOpen,
        Method::BasicQosOk(_) => Answer::Qos,
        Method::ConfirmSelectOk(_) => Answer::Confirm,
        Method::TxSelectOk(_) => Answer::Tx,
        Method::ExchangeDeclareOk(_) => Answer::Exchange,
        Method::QueueDeclareOk(_) => Answer::Queue,
        Method::QueueBindOk(_) => Answer::Bind,
        Method::BasicConsumeOk(ok) => Answer::Consume(consumer_number(ok.consumer_tag)?),
        _ => return None,
    })
}

/// A method on the publishing channel.
fn publishing(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    method: Method<'_>,
    events: &mut dyn Events,
) -> Result<(), Broken> {
    let Some(publisher) = &mut client.publisher else {
        return Err(unexpected(client, shared, &method));
    };
    match method {
        Method::BasicAck(ack) => settle(
            client,
            shared,
            id,
            (ack.delivery_tag, ack.bits & MULTIPLE != 0, true),
            events,
        ),
        Method::BasicNack(nack) => settle(
            client,
            shared,
            id,
            (nack.delivery_tag, nack.bits & MULTIPLE != 0, false),
            events,
        ),
        Method::TxCommitOk(_) => match publisher.committing.take() {
            Some(last) => settle(client, shared, id, (last, true, true), events),
            None => Err(unexpected(client, shared, &method)),
        },
        Method::BasicReturn(_) => {
            begin(client, shared, PUBLISHING, Content::Return(None));
            Ok(())
        }
        Method::ChannelFlow(flow) => {
            client.stopped = flow.active & 1 == 0;
            flow_ok(client, shared, id, PUBLISHING, flow.active);
            Ok(())
        }
        Method::ChannelClose(close) => {
            let ok = Method::ChannelCloseOk(ChannelCloseOk::default());
            shared.send(client, id, PUBLISHING, ok);
            Err(login::closed(
                client,
                shared,
                "publishing channel",
                close.reply_code,
                close.reply_text,
                (close.class_id, close.method_id),
            ))
        }
        other => {
            let Some(answer) = answer_of(&other) else {
                return Err(unexpected(client, shared, &other));
            };
            if answered(&mut publisher.awaits, answer).is_none() {
                return Err(unexpected(client, shared, &other));
            }
            login::finish(client, shared, id, events);
            Ok(())
        }
    }
}

/// Takes what was answered off the list. Not always the first: RabbitMQ answers for a consumer
/// when the queue has it, which may be after other answers.
fn answered(awaits: &mut VecDeque<Awaits>, answer: Answer) -> Option<Awaits> {
    let fits =
        |a: &Awaits| a.answer == answer || (a.answer, answer) == (Answer::Session, Answer::Queue);
    let at = awaits.iter().position(fits)?;
    awaits.remove(at)
}

fn flow_ok(client: &mut Client, shared: &mut Shared, id: ClientId, channel: u16, active: u8) {
    let ok = Method::ChannelFlowOk(ChannelFlowOk {
        active,
        ..ChannelFlowOk::default()
    });
    shared.send(client, id, channel, ok);
}

/// The server answers for published messages.
fn settle(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    (number, multiple, taken): (u64, bool, bool),
    events: &mut dyn Events,
) -> Result<(), Broken> {
    let Some(publisher) = &mut client.publisher else {
        return Ok(());
    };
    let settled = publisher
        .window
        .settle(number, multiple, taken, |tag, answer| {
            events.acknowledged(id, tag, answer);
        });
    match settled {
        Ok(n) => {
            shared.unsettled -= n;
            shared.reports.reported = true;
            Ok(())
        }
        Err(_) => Err(Broken::protocol(
            shared.endpoint(client),
            format!("a confirm of message {number}, which does not wait for one"),
        )),
    }
}

/// A method on the consuming channel.
fn consuming(
    client: &mut Client,
    shared: &mut Shared,
    id: ClientId,
    method: Method<'_>,
    events: &mut dyn Events,
) -> Result<(), Broken> {
    let Some(consumer) = client.consumer.as_mut().filter(|c| c.open) else {
        return Err(unexpected(client, shared, &method));
    };
    match method {
        Method::BasicDeliver(deliver) => {
            let partial = begin(client, shared, CONSUMING, Content::Delivery);
            partial.delivery_tag = deliver.delivery_tag;
            partial.redelivered = deliver.redelivered & 1 != 0;
            partial.routing_key.extend_from_slice(deliver.routing_key);
            Ok(())
        }
        Method::BasicCancel(_) => Err(Broken::told(format!(
            "{}: the server ended the subscription of {:?}: its queue is gone\n  hint: it was deleted, expired, or its node went down",
            shared.endpoint(client),
            client.name
        ))),
        Method::ChannelFlow(flow) => {
            flow_ok(client, shared, id, CONSUMING, flow.active);
            Ok(())
        }
        Method::ChannelClose(close) => {
            let ok = Method::ChannelCloseOk(ChannelCloseOk::default());
            let awaited = consumer.awaits.front().copied();
            let no_session = close.reply_code == 404
                && consumer.awaits.len() == 1
                && awaited.is_some_and(|a| a.answer == Answer::Session);
            let pending = consumer.awaits.iter().filter(|a| a.subscribed).count();
            let established = consumer.established;
            shared.send(client, id, CONSUMING, ok);
            if client.state == State::Closing {
                // A queue that others still use could not be removed; the last of them does it.
                return Ok(());
            }
            if no_session {
                client.consumer = None;
                login::finish(client, shared, id, events);
                return Ok(());
            }
            let broken = login::closed(
                client,
                shared,
                "consuming channel",
                close.reply_code,
                close.reply_text,
                (close.class_id, close.method_id),
            );
            if pending == 0 || established > 0 || client.state != State::Connected {
                return Err(broken);
            }
            // Nothing was consumed yet: the client goes on without.
            client.consumer = None;
            for _ in 0..pending {
                let refused = Change::SubscriptionRefused(broken.failure.why.clone());
                shared.reports.report(events, id, refused);
            }
            Ok(())
        }
        other => {
            let Some(answer) = answer_of(&other) else {
                return Err(unexpected(client, shared, &other));
            };
            let Some(awaits) = answered(&mut consumer.awaits, answer) else {
                return Err(unexpected(client, shared, &other));
            };
            if awaits.answer == Answer::Session {
                client.session_present = true;
            }
            if matches!(answer, Answer::Consume(_)) || awaits.subscribed {
                consumer.established += 1;
            }
            if awaits.subscribed {
                shared.reports.report(events, id, Change::Subscribed);
            }
            login::finish(client, shared, id, events);
            Ok(())
        }
    }
}
