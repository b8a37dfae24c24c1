//! Channels, queues and bindings: what a client asks for before messages flow.

use crate::codec::Method;
use crate::codec::method::{
    BasicCancel, BasicConsume, BasicQos, ChannelOpen, ConfirmSelect, ExchangeDeclare, QueueBind,
    QueueDeclare, QueueDelete, TxSelect, consume, declare, delete,
};
use pubgauge_driver::{DriverError, Subscription};

use crate::client::{AnswerKind, Awaits, CONSUMING, L, PUBLISHING, send};
use crate::options::{Answers, Exchange};
use crate::shared::Amqp;
use crate::topics::{SESSION_PREFIX, binding_key, group_queue};

/// Number of the consumer of a client's own queue.
const OWN: u32 = 0;

/// A consumer's tag; a short one, since every delivery carries it.
fn consumer_tag(number: u32) -> String {
    format!("c{number}")
}

/// The number in a consumer's tag.
pub(crate) fn consumer_number(tag: &[u8]) -> Option<u32> {
    std::str::from_utf8(tag)
        .ok()?
        .strip_prefix('c')?
        .parse()
        .ok()
}

/// Number of the consumer of the queue at this place among the shared ones.
fn shared_number(index: usize) -> u32 {
    index as u32 + 1
}

/// The purpose of a queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// One client's subscriptions.
    Own,
    /// Several consumers, or a publisher and its consumers.
    Shared,
}

impl Amqp {
    /// The name of a client's own queue on its present connection.
    fn own_queue(&self, link: &L<'_>) -> String {
        if self.options.durable_session {
            return format!("{}{}", SESSION_PREFIX, link.client.name);
        }
        // A name of its own for each connection: the server may still hold the former one's queue.
        format!(
            "pubgauge.{:016x}.{}.{}",
            self.nonce, link.id.0, link.client.epoch
        )
    }

    /// Opens what a client needs before it counts as connected.
    pub fn open_channels(&self, link: &mut L<'_>) {
        if link.client.own.publishes {
            self.open_publisher(link);
        }
        if !self.options.durable_session || !link.client.own.subscribes {
            link.client.own.consumer = None;
            return;
        }
        // Is the session still there?
        let consumer = link.client.own.consumer.get_or_insert_default();
        let own = consumer.own || consumer.shared.is_empty();
        let probed = match (own, self.options.exchange) {
            (false, _) => consumer.shared[0].to_string(),
            (true, Exchange::Queue) => return, // The topics' queues are the only ones.
            (true, _) => self.own_queue(link),
        };
        self.open_consumer(link);
        let probe = Method::QueueDeclare(QueueDeclare {
            queue: probed.as_bytes(),
            bits: declare::PASSIVE,
            ..QueueDeclare::default()
        });
        ask(link, CONSUMING, AnswerKind::Session, false, probe);
    }

    /// Opens the publishing channel.
    pub fn open_publisher(&self, link: &mut L<'_>) {
        ask(
            link,
            PUBLISHING,
            AnswerKind::ChannelOpen,
            false,
            channel_open(),
        );
        match self.options.answers {
            Answers::Nothing => {}
            Answers::Confirms => {
                let select = Method::ConfirmSelect(ConfirmSelect::default());
                ask(link, PUBLISHING, AnswerKind::Confirm, false, select);
            }
            Answers::Commits(_) => {
                let select = Method::TxSelect(TxSelect::default());
                ask(link, PUBLISHING, AnswerKind::Tx, false, select);
            }
        }
        self.declare_exchange(link, PUBLISHING);
        if self.options.exchange == Exchange::Queue {
            for (client, topic) in self.topics.iter() {
                if client == link.id.0 {
                    self.declare_for_publishing(link, &topic.key);
                }
            }
        }
    }

    /// A queue that point-to-point messages wait in must be there before the first of them.
    pub fn declare_for_publishing(&self, link: &mut L<'_>, queue: &str) {
        self.declare_queue(link, PUBLISHING, queue, Use::Shared);
    }

    /// Declares the exchange, if it is not one of the server's own.
    fn declare_exchange(&self, link: &mut L<'_>, channel: u16) {
        let Some(name) = &self.options.own_exchange else {
            return;
        };
        let method = Method::ExchangeDeclare(ExchangeDeclare {
            exchange: name.as_bytes(),
            kind: self.options.exchange_kind().as_bytes(),
            bits: self.durable_bit(),
            ..ExchangeDeclare::default()
        });
        ask(link, channel, AnswerKind::Exchange, false, method);
    }

    fn durable_bit(&self) -> u8 {
        if self.options.persistent {
            declare::DURABLE
        } else {
            0
        }
    }

    /// Opens the consuming channel if it is not open.
    fn open_consumer(&self, link: &mut L<'_>) {
        let consumer = link.client.own.consumer.get_or_insert_default();
        if consumer.open {
            return;
        }
        consumer.open = true;
        ask(
            link,
            CONSUMING,
            AnswerKind::ChannelOpen,
            false,
            channel_open(),
        );
        if self.options.acknowledge && self.options.prefetch > 0 {
            let qos = Method::BasicQos(BasicQos {
                prefetch_count: self.options.prefetch,
                ..BasicQos::default()
            });
            ask(link, CONSUMING, AnswerKind::Qos, false, qos);
        }
        self.declare_exchange(link, CONSUMING);
    }

    fn declare_queue(&self, link: &mut L<'_>, channel: u16, queue: &str, purpose: Use) {
        let options = &self.options;
        let durable = self.durable_bit();
        let (bits, arguments) = match (options.durable_session, purpose) {
            (true, _) => (durable, &options.staying),
            // An exclusive queue cannot be durable: RabbitMQ takes the bit and ignores it.
            (false, Use::Own) if !options.persistent => (declare::EXCLUSIVE, &options.passing),
            (false, _) => (durable | declare::AUTO_DELETE, &options.passing),
        };
        let method = Method::QueueDeclare(QueueDeclare {
            queue: queue.as_bytes(),
            bits,
            arguments: arguments.as_table(),
            ..QueueDeclare::default()
        });
        ask(link, channel, AnswerKind::Queue, false, method);
    }

    /// Asks for all that a subscription needs.
    pub fn ask_for(
        &self,
        link: &mut L<'_>,
        subscription: &Subscription,
    ) -> Result<(), DriverError> {
        let key = binding_key(&subscription.filter, &self.options)?;
        let point_to_point = self.options.exchange == Exchange::Queue;
        let (queue, purpose) = match &subscription.group {
            _ if point_to_point => (key.clone(), Use::Shared),
            Some(group) => (group_queue(group, &key)?, Use::Shared),
            None => (self.own_queue(link), Use::Own),
        };
        link.client.own.subscribes = true;
        self.open_consumer(link);
        let consumer = link.client.own.consumer.get_or_insert_default();
        let number = match purpose {
            Use::Own if consumer.own => None,
            Use::Own => {
                consumer.own = true;
                Some(OWN)
            }
            Use::Shared if consumer.shared.iter().any(|q| **q == *queue) => None,
            Use::Shared => {
                consumer.shared.push(queue.as_str().into());
                Some(shared_number(consumer.shared.len() - 1))
            }
        };
        if number.is_some() {
            self.declare_queue(link, CONSUMING, &queue, purpose);
        }
        if !point_to_point {
            let bind = Method::QueueBind(QueueBind {
                queue: queue.as_bytes(),
                exchange: self.options.exchange_name().as_bytes(),
                routing_key: key.as_bytes(),
                ..QueueBind::default()
            });
            ask(link, CONSUMING, AnswerKind::Bind, number.is_none(), bind);
        }
        match number {
            Some(number) => self.consume(link, &queue, number, true),
            // The queue is consumed from already: only ask whether it is still there.
            None if point_to_point => {
                let passive = Method::QueueDeclare(QueueDeclare {
                    queue: queue.as_bytes(),
                    bits: declare::PASSIVE,
                    ..QueueDeclare::default()
                });
                ask(link, CONSUMING, AnswerKind::Queue, true, passive);
            }
            None => {}
        }
        Ok(())
    }

    fn consume(&self, link: &mut L<'_>, queue: &str, number: u32, subscribed: bool) {
        let tag = consumer_tag(number);
        let method = Method::BasicConsume(BasicConsume {
            queue: queue.as_bytes(),
            consumer_tag: tag.as_bytes(),
            bits: if self.options.acknowledge {
                0
            } else {
                consume::NO_ACK
            },
            ..BasicConsume::default()
        });
        let answer = AnswerKind::Consume(number);
        ask(link, CONSUMING, answer, subscribed, method);
    }

    /// Removes the queues of a client's durable session, which would stay until they expire. A queue
    /// that it shares goes with the last of those who consume from it.
    pub fn remove_queues(&self, link: &mut L<'_>) {
        let Some(consumer) = link.client.own.consumer.as_ref().filter(|c| c.open) else {
            return;
        };
        let (own, shared) = (consumer.own, consumer.shared.clone());
        if own {
            let queue = self.own_queue(link);
            send(link, CONSUMING, removal(&queue, 0));
        }
        for (index, queue) in shared.iter().enumerate() {
            let tag = consumer_tag(shared_number(index));
            let cancel = Method::BasicCancel(BasicCancel {
                consumer_tag: tag.as_bytes(),
                no_wait: 1,
                ..BasicCancel::default()
            });
            send(link, CONSUMING, cancel);
            send(link, CONSUMING, removal(queue, delete::IF_UNUSED));
        }
    }

    /// Consumes again from all queues of a session that is still there.
    pub fn resume(&self, link: &mut L<'_>) {
        let Some(consumer) = &mut link.client.own.consumer else {
            return;
        };
        let shared = consumer.shared.clone();
        // A session that an earlier run left behind has a queue of its own.
        consumer.own |= shared.is_empty();
        if consumer.own {
            let own = self.own_queue(link);
            self.consume(link, &own, OWN, false);
        }
        for (index, queue) in shared.iter().enumerate() {
            self.consume(link, queue, shared_number(index), false);
        }
    }
}

/// Asks something of a channel. `subscribed`: its answer is the last that a subscription needs.
fn ask(link: &mut L<'_>, channel: u16, answer: AnswerKind, subscribed: bool, method: Method<'_>) {
    let own = &mut link.client.own;
    let awaits = match channel {
        PUBLISHING => &mut own.publisher.get_or_insert_default().awaits,
        _ => &mut own.consumer.get_or_insert_default().awaits,
    };
    awaits.push_back(Awaits { answer, subscribed });
    send(link, channel, method);
}

/// Removes a queue. No answer comes.
fn removal(queue: &str, bits: u8) -> Method<'_> {
    Method::QueueDelete(QueueDelete {
        queue: queue.as_bytes(),
        bits: bits | delete::NO_WAIT,
        ..QueueDelete::default()
    })
}

fn channel_open() -> Method<'static> {
    Method::ChannelOpen(ChannelOpen::default())
}
