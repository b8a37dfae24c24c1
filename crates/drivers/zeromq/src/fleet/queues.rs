//! Point-to-point: a PUSH socket for each topic of a publisher, shared by the PULL sockets of the
//! topic's receivers.
//!
//! PUSH hands messages to its receivers in turn whatever their topic, so that each topic needs a
//! socket of its own, a *queue*. The publisher tells receivers its address: a receiver subscribes
//! to the topic on the publisher's XPUB socket, whose address it was given, gets an
//! [`announcement`], and connects its PULL socket to the queue. When the subscription's connection
//! or that of one queue is lost, the receiver has lost the publisher.

use std::io;

use pubgauge_driver::{Attempt, Change, ClientId, DriverError, Events, Failure, TopicId};

use super::connecting::{cannot_bind, remove_socket_file};
use super::ended::failed;
use super::state::{OpenQueue, Queue, SocketPhase, TopicSource, ZeromqClient, ZeromqFleet};
use crate::address::to_bind;
use crate::inbox::on_the_wire;
use crate::port::{Port, Role, allow_ipv6};
use crate::topic::{announcement, split, split_announcement};
use crate::zmq::{Link, WRITABLE, ZmqMessage};

impl OpenQueue {
    /// See [`Port::close`].
    pub(super) fn close(self, epoll: &std::os::fd::OwnedFd, linger_ms: i32) {
        self.port.close(epoll, linger_ms);
        remove_socket_file(&self.address);
    }
}

impl ZeromqFleet {
    /// Opens the queue of the topic with this number, at an address that was never used before: a
    /// queue before it may still be closing.
    pub(super) fn open_queue(
        &mut self,
        id: ClientId,
        topic: u32,
    ) -> Result<OpenQueue, DriverError> {
        let context = self.context.as_ref().ok_or_else(DriverError::closed)?;
        let client = id.find(&self.clients)?;
        self.queues_opened += 1;
        let ip = client.spec.source.unwrap_or(self.address);
        let name = format!("z{}-q{}", self.worker, self.queues_opened);
        let wanted = to_bind(self.options.transport, ip, &self.scratch, &name)?;
        let open = || {
            let port = Port::open(context, &self.options, &self.epoll, topic, Role::Queue)?;
            allow_ipv6(&port.socket, &wanted)?;
            port.socket.bind(&wanted)?;
            let address = port.socket.last_endpoint()?;
            Ok(OpenQueue { port, address })
        };
        open().map_err(|e| {
            let mut error = cannot_bind(&wanted, &e);
            error.what = format!("client {}: a queue {}", client.spec.name, error.what);
            error
        })
    }

    /// Opens the queues of all topics that a client has advertised before.
    pub(super) fn open_queues(&mut self, id: ClientId) -> Result<(), DriverError> {
        for index in 0..self.clients[id.0 as usize].topics.len() {
            let topic = self.clients[id.0 as usize].topics[index];
            if self.queues[topic.0 as usize].open.is_none() {
                self.queues[topic.0 as usize].open = Some(self.open_queue(id, topic.0)?);
            }
        }
        Ok(())
    }

    /// Adds the queue of a topic that is just being advertised, the next one, and tells those who
    /// have asked for it already.
    pub(super) fn add_queue(&mut self, id: ClientId) -> Result<(), DriverError> {
        let topic = TopicId(self.queues.len() as u32);
        let open = match self.clients[id.0 as usize].publisher {
            Some(_) => Some(self.open_queue(id, topic.0)?),
            None => None,
        };
        self.queues.push(Queue { client: id, open });
        self.clients[id.0 as usize].topics.push(topic);
        Ok(())
    }

    /// Tells all who have asked where the queue of a topic is.
    pub(super) fn announce(&mut self, topic: TopicId) -> io::Result<()> {
        let queue = &self.queues[topic.0 as usize];
        let client = &self.clients[queue.client.0 as usize];
        let (Some(open), Some(port), Some(publisher)) =
            (&queue.open, &client.publisher, &client.address)
        else {
            return Ok(());
        };
        let words = announcement(&self.topics[topic.0 as usize], publisher, &open.address);
        self.wire.sent += on_the_wire(words.len());
        port.socket.send_new(ZmqMessage::copy_of(&words)?, false)
    }

    /// Answers those who ask a publisher for its queues.
    pub(super) fn answer_subscriptions(&mut self, id: ClientId) -> io::Result<()> {
        let mut message = ZmqMessage::empty();
        // Sending may consume the wake-up for further subscriptions: read until nothing is left.
        while let Some(port) = &self.clients[id.0 as usize].publisher
            && port.socket.receive(&mut message)?.is_some()
        {
            // One byte, 1 to subscribe and 0 to cancel, then the prefix (RFC 29).
            let asked = message.bytes().strip_prefix(&[1]).and_then(split);
            if let Some((topic, _)) = asked
                && let Some(&topic) = self.topic_ids.get(&(id, topic.to_owned()))
            {
                self.announce(topic)?;
            }
        }
        Ok(())
    }

    /// Connects a receiver to the queues that it has been told of.
    pub(super) fn hear_announcements(&mut self, id: ClientId) -> io::Result<()> {
        let client = &mut self.clients[id.0 as usize];
        client.untold = false;
        let mut message = ZmqMessage::empty();
        while let Some(port) = &client.subscriber
            && let Some(len) = port.socket.receive(&mut message)?
        {
            self.wire.received += on_the_wire(len);
            let (Some(told), Some(context), Some(receiver)) = (
                split_announcement(message.bytes()),
                &self.context,
                &mut client.receiver,
            ) else {
                continue;
            };
            let (topic, publisher, queue) = told;
            // Only topics that it subscribed to, and one queue for each pair of publisher and
            // topic.
            if !client.filters.iter().any(|f| f == topic)
                || !client.spec.peers.iter().any(|p| p == publisher)
            {
                continue;
            }
            let source = client
                .sources
                .iter_mut()
                .find(|s| s.topic == topic && s.publisher == publisher);
            match source {
                Some(source) if source.queue == queue => continue,
                // The publisher has reconnected before its loss was noticed.
                Some(source) => {
                    receiver.forget(&source.queue);
                    source.queue = queue.to_owned();
                }
                None => client.sources.push(TopicSource {
                    topic: topic.to_owned(),
                    publisher: publisher.to_owned(),
                    queue: queue.to_owned(),
                }),
            }
            let connected = receiver.connect(context, &self.epoll, id.0, queue);
            // Connecting handles commands, which may have announced messages.
            if !client.flooded {
                client.flooded = true;
                self.flooded.push(id.0);
            }
            if let Err(e) = connected {
                let what = format!("cannot connect to the queue {queue}");
                let failure = failed(&what, Attempt::Open, &e);
                self.fail(id, failure);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Handles an event of a queue's socket. Returns whether anything was reported.
    pub(super) fn handle_queue(&mut self, topic: u32, events: &mut dyn Events) -> io::Result<bool> {
        let queue = &mut self.queues[topic as usize];
        let Some(open) = &mut queue.open else {
            return Ok(false);
        };
        let writable = open.port.socket.process_commands()? & WRITABLE != 0;
        if !(open.port.blocked && writable) {
            return Ok(false);
        }
        open.port.blocked = false;
        events.changed(queue.client, Change::Writable);
        Ok(true)
    }

    /// A queue's connection has changed: a receiver that loses one has lost the publisher.
    pub(super) fn queue_changed(&mut self, id: ClientId, queue: &str, link: Link) {
        let client = &mut self.clients[id.0 as usize];
        let source = client.sources.iter().find(|s| s.queue == queue);
        // Otherwise the event is of a queue that was given up.
        let (Some(source), false) = (source, link == Link::Up) else {
            return;
        };
        let publisher = source.publisher.clone();
        if let Some(port) = &mut client.subscriber {
            port.lose(&publisher);
        }
        let phase = client.phase;
        let why = match link {
            Link::Refused => {
                let why = format!(
                    "the publisher at {publisher} has its queue at {queue}, where nobody answers"
                );
                self.unreached(why, queue)
            }
            _ => Failure::from(format!(
                "the connection to a queue of the publisher at {publisher} was lost: it ended or \
                 was killed"
            )),
        };
        match phase {
            SocketPhase::Up => self.fail_once_drained(id, why),
            SocketPhase::Connecting { .. } => self.fail(id, why),
            SocketPhase::Down => {}
        }
    }
}

impl ZeromqClient {
    /// Whether a publisher was lost that has a queue whose last messages may still come.
    pub(super) fn awaits_queues(&self) -> bool {
        let (Some(subscriber), Some(receiver)) = (&self.subscriber, &self.receiver) else {
            return false;
        };
        self.sources
            .iter()
            .any(|s| !subscriber.is_up(&s.publisher) && receiver.is_up(&s.queue))
    }

    /// Gives up the queues of publishers that were lost.
    pub(super) fn forget_sources(&mut self) {
        let (Some(subscriber), Some(receiver)) = (&self.subscriber, &mut self.receiver) else {
            return;
        };
        self.sources.retain(|s| {
            let stands = subscriber.is_up(&s.publisher);
            if !stands {
                receiver.forget(&s.queue);
            }
            stands
        });
    }
}
