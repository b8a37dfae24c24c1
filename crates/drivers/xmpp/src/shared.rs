//! State that all clients of a fleet share.

use std::collections::VecDeque;

use pubgauge_driver::{ClientId, TopicId};
use pubgauge_net::topics::{Named, Topics};

use crate::client::{Request, XmppLink};
use crate::element::Scratch;
use crate::endpoint::{Endpoint, split_account};
use crate::options::XmppOptions;
use crate::wildcard::Wildcards;
use crate::write::Template;

/// A topic that a client advertised.
pub(crate) struct XmppTopic {
    pub name: Box<str>,
    pub template: Template,
    /// Number of the connection on which its node was known to exist.
    pub ready: u32,
}

impl Named for XmppTopic {
    fn name(&self) -> &str {
        &self.name
    }
}

/// A request that was not sent yet.
pub(crate) struct Waiting {
    pub client: u32,
    /// Number of the connection that it is for.
    pub epoch: u32,
    pub request: Request,
    /// How often it may be retried.
    pub left: u8,
}

/// State that all clients of a fleet share.
pub(crate) struct Xmpp {
    pub options: XmppOptions,
    /// The fleet's endpoints, with the XMPP domain and account of each.
    pub endpoints: Vec<Endpoint>,
    /// All clients that have no certificate of their own show one in TLS.
    pub has_certificate: bool,
    pub topics: Topics<XmppTopic>,
    pub wildcards: Wildcards,
    /// Requests that concern nodes and have not been sent, and how many wait for their answers.
    pub waiting: VecDeque<Waiting>,
    pub asked: u32,
    /// Longest stanza that is taken from a server, in bytes.
    pub max_in: usize,
    pub scratch: Scratch,
    /// The payload decoded last.
    pub decoded: Vec<u8>,
    /// Nodes that this fleet has made, each with the client that owns it.
    pub made: Vec<(ClientId, Box<str>)>,
}

impl Xmpp {
    /// Where a client is connected to.
    pub fn endpoint(&self, link: &XmppLink<'_>) -> &Endpoint {
        &self.endpoints[usize::from(link.client.place)]
    }

    /// A client's account, without its domain.
    pub fn username<'a>(&'a self, link: &'a XmppLink<'_>) -> Option<&'a str> {
        let own = link.own_username().map(|account| split_account(account).0);
        own.or(self.endpoint(link).username.as_deref())
    }

    /// The address of the publish-subscribe service.
    pub fn service(&self, link: &XmppLink<'_>) -> String {
        match &self.options.service {
            Some(service) => service.clone(),
            None => format!("pubsub.{}", self.endpoint(link).domain),
        }
    }

    /// The name of a topic, which is its node's.
    pub fn topic_name(&self, topic: u32) -> &str {
        self.topics
            .get(TopicId(topic))
            .map_or("", |topic| &topic.name)
    }
}
