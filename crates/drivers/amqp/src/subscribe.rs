//! Channels, queues and bindings: what a client asks for before messages flow.

use pubgauge_amqp_codec::method::{
    BasicCancel, BasicConsume, BasicQos, ChannelOpen, ConfirmSelect, ExchangeDeclare, QueueBind,
    QueueDeclare, QueueDelete, TxSelect, consume, declare, delete,
};
use pubgauge_amqp_codec::{Method, Table};
use pubgauge_driver::{DriverError, Subscription};

use crate::client::{Answer, Awaits, CONSUMING, L, PUBLISHING, send};
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

/// What a queue is declared for.
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

    /// Asks something of the consuming channel.
    fn ask(&mut self, link: &mut L<'_>, answer: Answer, subscribed: bool, method: Method<'_>) {
        let consumer = link.client.own.consumer.get_or_insert_default();
        consumer.awaits.push_back(Awaits { answer, subscribed });
        send(link, CONSUMING, method);
    }

    /// Opens what a client needs before it counts as connected.
    pub fn open_channels(&mut self, link: &mut L<'_>) {
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
        self.ask(link, Answer::Session, false, probe);
    }

    /// Opens the publishing channel.
    pub fn open_publisher(&mut self, link: &mut L<'_>) {
        let publisher = link.client.own.publisher.get_or_insert_default();
        let mut ask = |answer| {
            publisher.awaits.push_back(Awaits {
                answer,
                subscribed: false,
            });
        };
        ask(Answer::ChannelOpen);
        match self.options.answers {
            Answers::Nothing => {}
            Answers::Confirms => ask(Answer::Confirm),
            Answers::Commits(_) => ask(Answer::Tx),
        }
        send(link, PUBLISHING, channel_open());
        match self.options.answers {
            Answers::Nothing => {}
            Answers::Confirms => {
                let select = Method::ConfirmSelect(ConfirmSelect::default());
                send(link, PUBLISHING, select);
            }
            Answers::Commits(_) => {
                let select = Method::TxSelect(TxSelect::default());
                send(link, PUBLISHING, select);
            }
        }
        if self.options.own_exchange.is_some() {
            self.declare_exchange(link, PUBLISHING);
        }
        if self.options.exchange == Exchange::Queue {
            let queues: Vec<Box<str>> = self
                .topics
                .iter()
                .filter(|(client, ..)| *client == link.id.0)
                .map(|(.., topic)| topic.key.clone())
                .collect();
            for queue in queues {
                self.declare_for_publishing(link, &queue);
            }
        }
    }

    /// A queue that point-to-point messages wait in must be there before the first of them.
    pub fn declare_for_publishing(&mut self, link: &mut L<'_>, queue: &str) {
        if let Some(publisher) = &mut link.client.own.publisher {
            publisher.awaits.push_back(Awaits {
                answer: Answer::Queue,
                subscribed: false,
            });
            self.declare_queue(link, PUBLISHING, queue, Use::Shared);
        }
    }

    fn declare_exchange(&mut self, link: &mut L<'_>, channel: u16) {
        let Some(name) = self.options.own_exchange.clone() else {
            return;
        };
        let awaits = Awaits {
            answer: Answer::Exchange,
            subscribed: false,
        };
        match channel {
            PUBLISHING => {
                if let Some(publisher) = &mut link.client.own.publisher {
                    publisher.awaits.push_back(awaits);
                }
            }
            _ => link
                .client
                .own
                .consumer
                .get_or_insert_default()
                .awaits
                .push_back(awaits),
        }
        let method = Method::ExchangeDeclare(ExchangeDeclare {
            exchange: name.as_bytes(),
            kind: self.options.exchange_kind().as_bytes(),
            bits: if self.options.persistent {
                declare::DURABLE
            } else {
                0
            },
            ..ExchangeDeclare::default()
        });
        send(link, channel, method);
    }

    /// Opens the consuming channel if it is not open.
    fn open_consumer(&mut self, link: &mut L<'_>) {
        let consumer = link.client.own.consumer.get_or_insert_default();
        if consumer.open {
            return;
        }
        consumer.open = true;
        self.ask(link, Answer::ChannelOpen, false, channel_open());
        if self.options.acknowledge && self.options.prefetch > 0 {
            let qos = Method::BasicQos(BasicQos {
                prefetch_count: self.options.prefetch,
                ..BasicQos::default()
            });
            self.ask(link, Answer::Qos, false, qos);
        }
        if self.options.own_exchange.is_some() {
            self.declare_exchange(link, CONSUMING);
        }
    }

    fn declare_queue(&mut self, link: &mut L<'_>, channel: u16, queue: &str, purpose: Use) {
        let options = &self.options;
        let durable = if options.persistent {
            declare::DURABLE
        } else {
            0
        };
        let (bits, arguments) = match (options.durable_session, purpose) {
            (true, _) => (durable, &options.staying),
            // An exclusive queue cannot be durable: RabbitMQ takes the bit and ignores it.
            (false, Use::Own) if !options.persistent => (declare::EXCLUSIVE, &options.passing),
            (false, _) => (durable | declare::AUTO_DELETE, &options.passing),
        };
        let arguments = arguments.clone();
        let method = Method::QueueDeclare(QueueDeclare {
            queue: queue.as_bytes(),
            bits,
            arguments: arguments.as_table(),
            ..QueueDeclare::default()
        });
        send(link, channel, method);
    }

    /// Asks for all that a subscription needs.
    pub fn ask_for(
        &mut self,
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
            consumer.awaits.push_back(Awaits {
                answer: Answer::Queue,
                subscribed: false,
            });
            self.declare_queue(link, CONSUMING, &queue, purpose);
        }
        if !point_to_point {
            let exchange = self.options.exchange_name().to_owned();
            let bind = Method::QueueBind(QueueBind {
                queue: queue.as_bytes(),
                exchange: exchange.as_bytes(),
                routing_key: key.as_bytes(),
                arguments: Table::default(),
                ..QueueBind::default()
            });
            self.ask(link, Answer::Bind, number.is_none(), bind);
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
                self.ask(link, Answer::Queue, true, passive);
            }
            None => {}
        }
        Ok(())
    }

    fn consume(&mut self, link: &mut L<'_>, queue: &str, number: u32, subscribed: bool) {
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
        self.ask(link, Answer::Consume(number), subscribed, method);
    }

    /// Removes the queues of a client's durable session, which would stay until they expire. A queue
    /// that it shares goes with the last of those who consume from it.
    pub fn remove_queues(&mut self, link: &mut L<'_>) {
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
    pub fn resume(&mut self, link: &mut L<'_>) {
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
