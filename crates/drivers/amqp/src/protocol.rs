//! Handles the frames that a client gets. No sockets here: bytes come in as a slice, and
//! what is to be sent is appended to the client's output buffer.
//!
//! | channel | method | what happens |
//! |---|---|---|
//! | 0 | connection.start, tune, open-ok | the login continues |
//! | 0 | connection.blocked, unblocked | publishing is held back, resumes |
//! | 0 | connection.close | failed, with the server's words |
//! | 1 | basic.ack, basic.nack, tx.commit-ok | messages are acknowledged |
//! | 1 | basic.return | a message is marked as not routed; its confirm follows |
//! | 1, 2 | channel.flow | publishing is held back, resumes |
//! | 2 | basic.deliver | delivered, and acknowledged with all others of the read |
//! | 2 | basic.cancel | failed: the queue is gone |
//! | 1, 2 | channel.close | failed, or the subscription is refused, or the session is not there |
//! | 1, 2 | the answers to what was asked | taken off the list of what is awaited |

use std::collections::VecDeque;

use crate::codec::method::{BasicAck, ChannelCloseOk, ChannelFlowOk, MULTIPLE};
use crate::codec::{
    ContentHeader, DecodeError, Frame, FrameKind, Method, PublishTemplate, decode_delivery,
    decode_frame,
};
use pubgauge_driver::{Change, Delivery, Events};
use pubgauge_net::fleet::{Broken, State};
use pubgauge_net::tls;

use crate::client::{
    AnswerKind, Awaits, CONSUMING, ContentOwner, L, LoginStep, PUBLISHING, Partial, breach, send,
    unexpected,
};
use crate::login;
use crate::options::FRAME_MAX;
use crate::shared::Amqp;
use crate::subscribe::consumer_number;
use crate::topics::{header_in, topic_of};

/// Buffers of messages above this are not kept for reuse, in bytes.
const KEEP_BODY: usize = 4 << 20;

/// Takes in `bytes`, as many whole frames as they hold, and returns how many bytes that was.
pub(crate) fn receive(
    amqp: &mut Amqp,
    link: &mut L<'_>,
    bytes: &[u8],
    events: &mut dyn Events,
) -> Result<usize, Broken> {
    let mut at = 0;
    loop {
        let rest = &bytes[at..];
        if link.client.own.partial.is_none()
            && link.client.state == State::Connected
            && let Some((delivered, len)) = decode_delivery(rest, FRAME_MAX as usize)
        {
            at += len;
            if delivered.body.len() > amqp.max_in {
                return Err(too_large(amqp, link, delivered.body.len() as u64));
            }
            arrived(link, delivered.channel, delivered.delivery_tag)?;
            if let Some(header) = header_in(delivered.header) {
                events.header(&header);
            }
            let exchange = amqp.options.exchange;
            let delivery = Delivery {
                payload: delivered.body,
                topic: Some(topic_of(delivered.routing_key, exchange, &mut amqp.topic)),
                retained: false,
                redelivered: delivered.redelivered,
            };
            link.deliver(events, delivery);
            if link.client.is_busy() {
                break;
            }
            continue;
        }
        match decode_frame(rest, FRAME_MAX as usize) {
            Ok(Some((frame, len))) => {
                at += len;
                take(amqp, link, frame, events)?;
                if link.client.is_busy() {
                    break;
                }
            }
            Ok(None) => break,
            Err(_) if link.client.own.step == LoginStep::Greeting && tls::looks_like_tls(rest) => {
                return Err(Broken::new(tls::unexpected(link.display_endpoint())));
            }
            Err(error) => return Err(undecodable(link, error)),
        }
    }
    acknowledge(amqp, link);
    Ok(at)
}

/// Acknowledges all deliveries that came, with one basic.ack.
fn acknowledge(amqp: &mut Amqp, link: &mut L<'_>) {
    if !amqp.options.acknowledge || link.client.state != State::Connected {
        return;
    }
    let Some(consumer) = &mut link.client.own.consumer else {
        return;
    };
    if consumer.came > consumer.acknowledged {
        consumer.acknowledged = consumer.came;
        let ack = Method::BasicAck(BasicAck {
            delivery_tag: consumer.came,
            bits: MULTIPLE,
            ..BasicAck::default()
        });
        send(link, CONSUMING, ack);
    }
}

/// A delivery came in full.
#[inline]
fn arrived(link: &mut L<'_>, channel: u16, delivery_tag: u64) -> Result<(), Broken> {
    match &mut link.client.own.consumer {
        Some(consumer) if channel == CONSUMING && consumer.open => {
            consumer.came = delivery_tag;
            Ok(())
        }
        _ => Err(breach(link, "a basic.deliver where nothing is consumed")),
    }
}

#[cold]
fn undecodable(link: &L<'_>, error: DecodeError) -> Broken {
    match error {
        DecodeError::OtherVersion(..) => link.broken(format_args!(
            "{error}\n  hint: this driver speaks AMQP 0-9-1; is it an AMQP 1.0 server?"
        )),
        _ => breach(link, error),
    }
}

#[cold]
fn too_large(amqp: &Amqp, link: &L<'_>, len: u64) -> Broken {
    link.broken(format_args!(
        "a message of {len} bytes came\n  hint: this trial takes up to {} bytes; something else publishes to the same topics?",
        amqp.max_in
    ))
}

/// Takes in one frame.
fn take(
    amqp: &mut Amqp,
    link: &mut L<'_>,
    frame: Frame<'_>,
    events: &mut dyn Events,
) -> Result<(), Broken> {
    match frame.kind {
        FrameKind::Heartbeat => Ok(()), // Any byte from the server was already taken as a sign.
        FrameKind::Header => header(amqp, link, frame, events),
        FrameKind::Body => body(amqp, link, frame, events),
        FrameKind::Method => {
            let method = Method::decode(frame.payload).map_err(|error| undecodable(link, error))?;
            let partial = link.client.own.partial.as_ref();
            if partial.is_some_and(|p| p.channel == frame.channel) {
                return Err(unexpected(link, &method));
            }
            match frame.channel {
                0 => login::connection(amqp, link, method, events),
                PUBLISHING => publishing(amqp, link, method, events),
                CONSUMING => consuming(amqp, link, method, events),
                _ => Err(unexpected(link, &method)),
            }
        }
    }
}

/// A content header.
fn header(
    amqp: &mut Amqp,
    link: &mut L<'_>,
    frame: Frame<'_>,
    events: &mut dyn Events,
) -> Result<(), Broken> {
    let content = ContentHeader::decode(frame.payload).map_err(|error| undecodable(link, error))?;
    let waits = |p: &&mut Box<Partial>| p.channel == frame.channel && p.size.is_none();
    let Some(partial) = link.client.own.partial.as_mut().filter(waits) else {
        return Err(breach(link, "a content header out of turn (§4.2.6)"));
    };
    let size = usize::try_from(content.body_size).unwrap_or(usize::MAX);
    if size > amqp.max_in {
        return Err(too_large(amqp, link, content.body_size));
    }
    partial.size = Some(size);
    partial.header = header_in(frame.payload);
    if let ContentOwner::Return(number) = &mut partial.kind {
        let id = content.properties.message_id;
        *number = id.and_then(PublishTemplate::read_id);
    }
    if size == 0 {
        complete(amqp, link, events)?;
    }
    Ok(())
}

/// A piece of a body.
fn body(
    amqp: &mut Amqp,
    link: &mut L<'_>,
    frame: Frame<'_>,
    events: &mut dyn Events,
) -> Result<(), Broken> {
    let partial = link.client.own.partial.as_mut();
    let partial = partial.filter(|p| p.channel == frame.channel);
    let Some((partial, size)) = partial.and_then(|p| p.size.map(|size| (p, size))) else {
        return Err(breach(link, "a body frame out of turn (§4.2.6)"));
    };
    if frame.payload.len() > size - partial.body.len() {
        return Err(breach(
            link,
            "a body that is longer than its header says (§4.2.6.2)",
        ));
    }
    // Memory is given only as bytes come in: the size is the server's claim.
    partial.body.extend_from_slice(frame.payload);
    if partial.body.len() == size {
        complete(amqp, link, events)?;
    }
    Ok(())
}

/// Handles content that came in pieces and is complete.
fn complete(amqp: &mut Amqp, link: &mut L<'_>, events: &mut dyn Events) -> Result<(), Broken> {
    let Some(partial) = link.client.own.partial.take() else {
        return Ok(());
    };
    match partial.kind {
        ContentOwner::Return(number) => {
            if let (Some(number), Some(publisher)) = (number, &mut link.client.own.publisher) {
                publisher.window.returned(number);
            }
        }
        ContentOwner::Delivery => {
            arrived(link, partial.channel, partial.delivery_tag)?;
            // After our connection.close nothing is reported, nor acknowledged.
            if link.client.state == State::Connected {
                let exchange = amqp.options.exchange;
                let topic = topic_of(&partial.routing_key, exchange, &mut amqp.topic);
                if let Some(header) = &partial.header {
                    events.header(header);
                }
                let delivery = Delivery {
                    payload: &partial.body,
                    topic: Some(topic),
                    retained: false,
                    redelivered: partial.redelivered,
                };
                link.deliver(events, delivery);
            }
        }
    }
    if amqp.partials.len() < 16 && partial.body.capacity() <= KEEP_BODY {
        amqp.partials.push(partial);
    }
    Ok(())
}

fn begin<'a>(
    amqp: &mut Amqp,
    link: &'a mut L<'_>,
    channel: u16,
    kind: ContentOwner,
) -> &'a mut Partial {
    let mut partial = amqp.partials.pop().unwrap_or_default();
    partial.kind = kind;
    partial.channel = channel;
    partial.size = None;
    partial.header = None;
    partial.body.clear();
    partial.routing_key.clear();
    link.client.own.partial.insert(partial)
}

/// The answer to what was asked.
fn answer_of(method: &Method<'_>) -> Option<AnswerKind> {
    Some(match method {
        Method::ChannelOpenOk(_) => AnswerKind::ChannelOpen,
        Method::BasicQosOk(_) => AnswerKind::Qos,
        Method::ConfirmSelectOk(_) => AnswerKind::Confirm,
        Method::TxSelectOk(_) => AnswerKind::Tx,
        Method::ExchangeDeclareOk(_) => AnswerKind::Exchange,
        Method::QueueDeclareOk(_) => AnswerKind::Queue,
        Method::QueueBindOk(_) => AnswerKind::Bind,
        Method::BasicConsumeOk(ok) => AnswerKind::Consume(consumer_number(ok.consumer_tag)?),
        _ => return None,
    })
}

/// A method on the publishing channel.
fn publishing(
    amqp: &mut Amqp,
    link: &mut L<'_>,
    method: Method<'_>,
    events: &mut dyn Events,
) -> Result<(), Broken> {
    let Some(publisher) = &mut link.client.own.publisher else {
        return Err(unexpected(link, &method));
    };
    match method {
        Method::BasicAck(ack) => settle(
            link,
            (ack.delivery_tag, ack.bits & MULTIPLE != 0, true),
            events,
        ),
        Method::BasicNack(nack) => settle(
            link,
            (nack.delivery_tag, nack.bits & MULTIPLE != 0, false),
            events,
        ),
        Method::TxCommitOk(_) => match publisher.committing.take() {
            Some(last) => settle(link, (last, true, true), events),
            None => Err(unexpected(link, &method)),
        },
        Method::BasicReturn(_) => {
            begin(amqp, link, PUBLISHING, ContentOwner::Return(None));
            Ok(())
        }
        Method::ChannelFlow(flow) => {
            link.client.own.stopped = flow.active & 1 == 0;
            flow_ok(link, PUBLISHING, flow.active);
            Ok(())
        }
        Method::ChannelClose(close) => {
            let ok = Method::ChannelCloseOk(ChannelCloseOk::default());
            send(link, PUBLISHING, ok);
            Err(login::closed(
                link,
                "publishing channel",
                close.reply_code,
                close.reply_text,
                (close.class_id, close.method_id),
            ))
        }
        other => {
            let Some(answer) = answer_of(&other) else {
                return Err(unexpected(link, &other));
            };
            if answered(&mut publisher.awaits, answer).is_none() {
                return Err(unexpected(link, &other));
            }
            login::finish(amqp, link, events);
            Ok(())
        }
    }
}

/// Removes an answered request from the list. Not always the first: RabbitMQ answers for a consumer
/// when the queue has it, which may be after other answers.
fn answered(awaits: &mut VecDeque<Awaits>, answer: AnswerKind) -> Option<Awaits> {
    let fits = |a: &Awaits| {
        a.answer == answer || (a.answer, answer) == (AnswerKind::Session, AnswerKind::Queue)
    };
    let at = awaits.iter().position(fits)?;
    awaits.remove(at)
}

fn flow_ok(link: &mut L<'_>, channel: u16, active: u8) {
    let ok = Method::ChannelFlowOk(ChannelFlowOk {
        active,
        ..ChannelFlowOk::default()
    });
    send(link, channel, ok);
}

/// The server answers for published messages.
fn settle(
    link: &mut L<'_>,
    (number, multiple, taken): (u64, bool, bool),
    events: &mut dyn Events,
) -> Result<(), Broken> {
    let Some(publisher) = &mut link.client.own.publisher else {
        return Ok(());
    };
    let settled = publisher
        .window
        .settle(number, multiple, taken, |tag, answer| {
            events.acknowledged(link.id, tag, answer);
        });
    match settled {
        Ok(n) => {
            link.settled(n);
            link.shared.reports.reported = true;
            Ok(())
        }
        Err(_) => Err(breach(
            link,
            format!("a confirm of message {number}, which does not wait for one"),
        )),
    }
}

/// A method on the consuming channel.
fn consuming(
    amqp: &mut Amqp,
    link: &mut L<'_>,
    method: Method<'_>,
    events: &mut dyn Events,
) -> Result<(), Broken> {
    let Some(consumer) = link.client.own.consumer.as_mut().filter(|c| c.open) else {
        return Err(unexpected(link, &method));
    };
    match method {
        Method::BasicDeliver(deliver) => {
            let partial = begin(amqp, link, CONSUMING, ContentOwner::Delivery);
            partial.delivery_tag = deliver.delivery_tag;
            partial.redelivered = deliver.redelivered & 1 != 0;
            partial.routing_key.extend_from_slice(deliver.routing_key);
            Ok(())
        }
        Method::BasicCancel(_) => Err(link.broken(format_args!(
            "the server ended the subscription of {:?}: its queue is gone\n  hint: it was deleted, expired, or its node went down",
            link.client.name
        ))),
        Method::ChannelFlow(flow) => {
            flow_ok(link, CONSUMING, flow.active);
            Ok(())
        }
        Method::ChannelClose(close) => {
            let ok = Method::ChannelCloseOk(ChannelCloseOk::default());
            let awaited = consumer.awaits.front().copied();
            let no_session = close.reply_code == 404
                && consumer.awaits.len() == 1
                && awaited.is_some_and(|a| a.answer == AnswerKind::Session);
            let pending = consumer.awaits.iter().filter(|a| a.subscribed).count();
            let established = consumer.established;
            send(link, CONSUMING, ok);
            if link.client.state == State::Closing {
                // A queue that others still use could not be removed; the last of them does it.
                return Ok(());
            }
            if no_session {
                link.client.own.consumer = None;
                login::finish(amqp, link, events);
                return Ok(());
            }
            let broken = login::closed(link,
                "consuming channel",
                close.reply_code,
                close.reply_text,
                (close.class_id, close.method_id),
            );
            if pending == 0 || established > 0 || link.client.state != State::Connected {
                return Err(broken);
            }
            // Nothing was consumed yet: the client stays connected without this channel.
            link.client.own.consumer = None;
            for _ in 0..pending {
                let refused = Change::SubscriptionRefused(broken.failure.why.clone());
                link.report(events, refused);
            }
            Ok(())
        }
        other => {
            let Some(answer) = answer_of(&other) else {
                return Err(unexpected(link, &other));
            };
            let Some(awaits) = answered(&mut consumer.awaits, answer) else {
                return Err(unexpected(link, &other));
            };
            if awaits.answer == AnswerKind::Session {
                link.client.own.session_present = true;
            }
            if matches!(answer, AnswerKind::Consume(_)) || awaits.subscribed {
                consumer.established += 1;
            }
            if awaits.subscribed {
                link.report(events, Change::Subscribed);
            }
            login::finish(amqp, link, events);
            Ok(())
        }
    }
}
