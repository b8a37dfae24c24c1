//! XMPP for a fleet over TCP: the calls that come from the fleet. What stanzas mean is in [`crate::protocol`], [`crate::negotiate`] and [`crate::requests`].

use std::borrow::Cow;
use std::collections::VecDeque;

use pubgauge_driver::topic::filter_fault;
use pubgauge_driver::{
    ClientSpec, DriverError, Events, FleetConfig, Grant, Nanos, Payload, Refusal, Subscription,
    TopicId, TopicMatch, accepted,
};
use pubgauge_net::endpoint::Endpoint as Net;
use pubgauge_net::fleet::{Broken, Protocol, Taken, TcpFleet};
use pubgauge_net::pair;
use pubgauge_net::topics::Topics;

use crate::client::{NegotiationStep, Request, XmppClient, XmppLink};
use crate::element::Scratch;
use crate::endpoint::{self, ADDRESSING, split_account};
use crate::options::XmppOptions;
use crate::shared::{Xmpp, XmppTopic};
use crate::wildcard::Wildcards;
use crate::write::{self, Template};
use crate::{negotiate, nodes, protocol, requests};

/// Bytes that a stanza may have besides its payload: names, lists of nodes.
const STANZA_OVERHEAD: usize = 8 << 20;

/// Longest resource (RFC 7622 §3.4), in bytes.
const MAX_RESOURCE: usize = 1023;

/// A fleet without clients.
pub(crate) fn open(config: FleetConfig) -> Result<TcpFleet<Xmpp>, DriverError> {
    let target = &config.target;
    let options = accepted(
        "XMPP",
        XmppOptions::resolve(&config.settings, &target.features),
    )?;
    let user = target.username.as_deref();
    let endpoints = pair::parse_places(&target.endpoints, &ADDRESSING, |url| {
        endpoint::parse_pair(url, user)
    })?;
    let nets = endpoints.iter().map(|e| e.net.clone()).collect();
    let tuning = options.tuning;
    let xmpp = Xmpp {
        options,
        endpoints,
        has_certificate: target.tls.as_ref().is_some_and(|t| t.cert_file.is_some()),
        topics: Topics::default(),
        wildcards: Wildcards::default(),
        waiting: VecDeque::new(),
        asked: 0,
        // The payload is in base64, also where an error sends it back.
        max_in: (config.max_payload / 3 + 1)
            .saturating_mul(4)
            .saturating_add(STANZA_OVERHEAD),
        scratch: Scratch::default(),
        decoded: Vec::new(),
        made: Vec::new(),
    };
    TcpFleet::open(config, nets, tuning, xmpp)
}

impl Xmpp {
    /// The address of the receiver of a topic, under point-to-point.
    fn receiver(&self, link: &XmppLink<'_>, topic: &str) -> Result<String, DriverError> {
        let domain = &self.endpoint(link).domain;
        match self.username(link) {
            Some(user) => Ok(format!("{user}@{domain}/{topic}")),
            None => Err(DriverError::with_hint(
                "point-to-point needs an account: the server gives anonymous clients their addresses, so that no sender knows them",
                "give a user name and its password",
            )),
        }
    }
}

/// Whether a topic can be a node's name, or a resource.
fn check_topic(topic: &str, direct: bool) -> Result<(), DriverError> {
    let refuse = |what: &str| {
        Err(DriverError::with_hint(
            format!("the topic {topic:?} {what}"),
            "a topic has levels between /, no wildcards, and no control characters",
        ))
    };
    if topic.is_empty() {
        return refuse("is empty");
    }
    if !write::is_xml(topic) {
        return refuse("has a character that XML does not allow");
    }
    if direct && topic.len() > MAX_RESOURCE {
        return refuse("has more than 1023 bytes, which a resource may not have");
    }
    if direct && topic.chars().any(char::is_control) {
        return refuse("has a control character, which a resource may not have");
    }
    Ok(())
}

/// Whether clients can subscribe so; see [`pubgauge_driver::Driver::check_subscription`].
pub(crate) fn check_subscription(
    options: &XmppOptions,
    subscription: &Subscription,
) -> Result<(), DriverError> {
    if subscription.group.is_some() {
        return Err(DriverError::with_hint(
            "XMPP has no shared subscriptions: every subscriber of a node gets every item",
            "give each member a topic of its own, or leave the group out",
        ));
    }
    let filter = &subscription.filter;
    if let Some(fault) = filter_fault(filter) {
        return Err(DriverError::new(format!("the filter {filter:?}: {fault}")));
    }
    if options.direct && filter.is_wild() {
        return Err(DriverError::with_hint(
            "under point-to-point a receiver has one address, and that is its topic: no wildcards",
            "give each receiver a topic, or use pattern = \"publish-subscribe\"",
        ));
    }
    check_topic(filter, options.direct)
}

impl Protocol for Xmpp {
    type Client = XmppClient;
    // The server answers the end of a stream.
    const HALF_CLOSES: bool = false;
    const NO_WILLS: Option<[&'static str; 2]> = Some([
        "XMPP",
        "leave it out: who wants to know of a client's end watches its presence",
    ]);
    const TURNED_AWAY: [&'static str; 2] = ["before there was a session", "XMPP to clients"];
    // XEP-0368 §2.
    const ALPN: &'static [&'static [u8]] = &[b"xmpp-client"];

    fn client(&mut self, spec: &ClientSpec) -> Result<XmppClient, DriverError> {
        if spec.name.is_empty()
            || spec.name.len() > MAX_RESOURCE
            || spec.name.chars().any(char::is_control)
        {
            return Err(DriverError::new(
                "the name of an XMPP client is its resource: 1 to 1023 bytes without control characters",
            ));
        }
        let own = spec.login.username.as_deref().map(split_account);
        if let Some((user, Some(domain))) = own
            && let Some(other) = self.endpoints.iter().find(|e| e.domain != domain)
        {
            return Err(DriverError::with_hint(
                format!(
                    "the account {user}@{domain} is of another domain than {}, which is {}",
                    other.net.shown, other.domain
                ),
                "clients log in at their own domain: leave the domain out, or name that of the address",
            ));
        }
        Ok(XmppClient::new(spec))
    }

    /// A certificate is for the XMPP domain, wherever its server is (RFC 6120 §13.7.2.1).
    fn server_name<'a>(&'a self, place: usize, _: &'a Net) -> &'a str {
        &self.endpoints[place].domain
    }

    fn greet(&mut self, link: &mut XmppLink<'_>) -> Result<(), Broken> {
        negotiate::open_stream(self, link, NegotiationStep::Features);
        Ok(())
    }

    fn receive(
        &mut self,
        link: &mut XmppLink<'_>,
        bytes: &[u8],
        events: &mut dyn Events,
    ) -> Result<usize, Broken> {
        protocol::receive(self, link, bytes, events)
    }

    fn subscribe(
        &mut self,
        link: &mut XmppLink<'_>,
        subscription: &Subscription,
    ) -> Result<(), DriverError> {
        check_subscription(&self.options, subscription)?;
        let filter = subscription.filter.as_str();
        let session = &mut link.client.own.session;
        if !self.options.direct {
            let report = session.promise();
            if filter.is_wild() {
                let (client, place) = (link.id.0, link.client.place);
                let now_ms = link.shared.now_ms;
                self.wildcards.add(client, place, filter, report, now_ms);
            } else {
                let request = Request::Subscribe {
                    node: filter.into(),
                    report,
                    created: false,
                };
                requests::ask(self, link, request, requests::TRIES);
            }
            return Ok(());
        }
        if session.jid.is_some() || session.binding {
            return Err(DriverError::with_hint(
                "under point-to-point a client receives at one address, and this one has its address already",
                "subscribe once for each client, to one topic, before it publishes",
            ));
        }
        let report = session.promise();
        negotiate::bind(link, filter, Some(report));
        Ok(())
    }

    fn advertise(&mut self, link: &mut XmppLink<'_>, name: &str) -> Result<TopicId, DriverError> {
        if let Some(known) = self.topics.find(link.id.0, name) {
            return Ok(known);
        }
        let direct = self.options.direct;
        check_topic(name, direct)?;
        let template = if direct {
            Template::direct(&self.receiver(link, name)?)
        } else {
            Template::publish(&self.service(link), name, self.options.last_value)
        };
        let topic = XmppTopic {
            name: name.into(),
            template,
            ready: 0,
        };
        let id = self.topics.insert(link.id.0, topic);
        link.client.own.topics.push(id.0);
        if link.is_connected() {
            requests::make_sure(self, link, id.0);
        }
        Ok(id)
    }

    #[inline]
    fn publish(
        &mut self,
        link: &mut XmppLink<'_>,
        topic: TopicId,
        payload: Payload<'_>,
        tag: u64,
    ) -> Taken {
        let Some(topic) = self.topics.get(topic) else {
            return Taken::Refused(Refusal::NotConnected);
        };
        let direct = self.options.direct;
        let session = &mut link.client.own.session;
        if direct && session.jid.is_none() {
            // It has subscribed to nothing: it may have any address.
            if !session.binding {
                let name = link.client.name.clone();
                negotiate::bind(link, &name, None);
            }
            return Taken::NotYet;
        }
        if !direct && topic.ready != link.client.epoch {
            return Taken::NotYet;
        }
        let number = match direct {
            true => 0,
            false if session.window.has_room(self.options.in_flight) => session.window.take(tag),
            false => return Taken::Full,
        };
        let out = link.out();
        topic.template.append(&mut out.bytes, number, payload);
        out.messages += u32::from(direct);
        Taken::Accepted
    }

    fn grants(&self) -> Vec<Grant> {
        let windowed = !self.options.direct;
        let window = windowed.then(|| Grant::own_window(self.options.in_flight as u64));
        window.into_iter().collect()
    }

    #[inline]
    fn may_publish(&self, client: &XmppClient) -> bool {
        let session = &client.session;
        session.creating == 0
            && session.jid.is_some()
            && session.window.has_room(self.options.in_flight)
    }

    fn ping(&mut self, link: &mut XmppLink<'_>) {
        let number = link.client.own.session.ask(Request::Forget, 0);
        let domain = &self.endpoint(link).domain;
        write::ping(&mut link.out().bytes, number, domain);
    }

    /// Ends a stream: its subscriptions first.
    fn goodbye(&mut self, link: &mut XmppLink<'_>) {
        let service = self.service(link);
        let jid = link.client.own.session.jid.clone().unwrap_or_default();
        for node in std::mem::take(&mut link.client.own.session.nodes) {
            let number = link.client.own.session.ask(Request::Forget, 0);
            let out = &mut link.out().bytes;
            write::subscription(out, number, &service, "unsubscribe", &node, &jid);
        }
        link.out().bytes.extend_from_slice(write::STREAM_END);
    }

    fn dropped(&mut self, link: &mut XmppLink<'_>, _: bool) {
        self.asked = self.asked.saturating_sub(link.client.own.session.asked);
        let unanswered = link.client.own.forget_connection();
        link.settled(unanswered);
        self.wildcards.forget(link.id.0, link.shared.now_ms);
    }

    fn waits_for(&self, client: &XmppClient) -> Cow<'static, str> {
        let step = client.session.step;
        format!("no XMPP session (waiting at step {step:?})").into()
    }

    /// RFC 6120 §13.7.2.1.
    fn tls_failed(&self, error: &mut DriverError) {
        if let Some(hint) = &mut error.hint {
            *hint += "; the name that counts is the XMPP domain, in the path of the address";
        }
    }

    fn prepare(fleet: &mut TcpFleet<Xmpp>) {
        nodes::search(fleet);
        nodes::send_waiting(fleet);
    }

    fn next_timer_ms(&self) -> Option<u32> {
        self.wildcards.first_ms()
    }

    fn close(fleet: &mut TcpFleet<Xmpp>, until: Nanos) {
        nodes::delete(fleet, until);
        fleet.leave(until);
    }

    fn left_behind(&self) -> Option<String> {
        let left = self.made.len();
        (left > 0).then(|| {
            format!(
                "nodes of this trial ({left}) are still on the server, which did not delete them in time at the end\n  hint: the names of default topics carry the trial's mark; delete them there if the server is to be used further"
            )
        })
    }
}
