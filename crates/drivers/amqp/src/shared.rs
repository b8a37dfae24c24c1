//! State that all clients of a fleet share.

use pubgauge_net::topics::Topics;

use crate::client::{L, Partial};
use crate::options::{AmqpOptions, Answers};
use crate::topics::AmqpTopic;

/// State that all clients of a fleet share.
pub(crate) struct Amqp {
    pub options: AmqpOptions,
    /// The fleet is being closed: durable sessions end too.
    pub leaving: bool,
    /// A client certificate was given.
    pub has_certificate: bool,
    /// Random, for names that must not collide.
    pub nonce: u64,
    pub topics: Topics<AmqpTopic>,
    /// Buffers for messages that come in several pieces, for reuse; at most 16.
    #[allow(clippy::vec_box)] // They move in and out of clients, which hold 8 bytes each.
    pub partials: Vec<Box<Partial>>,
    /// The topic of the message that is being delivered.
    pub topic: String,
    /// Longest message that is taken from a server, in bytes.
    pub max_in: usize,
    /// Durable sessions whose queues could not be removed when the fleet was closed.
    pub left: usize,
}

impl Amqp {
    /// The virtual host that a client enters.
    pub fn virtual_host<'a>(&'a self, link: &'a L<'_>) -> &'a str {
        let path = link.endpoint().path.as_deref();
        path.filter(|path| !path.is_empty())
            .or(self.options.virtual_host.as_deref())
            .unwrap_or("/")
    }

    /// Whether messages are published in transactions.
    pub fn has_transactions(&self) -> bool {
        matches!(self.options.answers, Answers::Commits(_))
    }
}
