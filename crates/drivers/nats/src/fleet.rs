//! NATS for a fleet over TCP: what each client and all of them keep, and the calls that come from
//! the fleet. What the server's lines mean is in [`crate::protocol`].

use std::borrow::Cow;
use std::collections::VecDeque;

use pubgauge_driver::{
    ClientSpec, DriverError, Encryption, Events, FleetConfig, Payload, Refusal, Scheme,
    Subscription, TopicId, refusal,
};
use pubgauge_net::endpoint::Addressing;
use pubgauge_net::fleet::{Broken, Link, Protocol, Taken, TcpFleet};
use pubgauge_net::pair;
use pubgauge_net::topics::Topics;

use crate::options::Options;
use crate::protocol::{self, Awaits, ask};
use crate::{subject, wire};

/// How NATS endpoints are written.
pub(crate) const ADDRESSING: Addressing = Addressing {
    name: "NATS",
    schemes: &[
        PLAIN,
        Scheme {
            name: "nats+tls",
            // After the server's INFO.
            encryption: Encryption::StartTls,
            ..PLAIN
        },
    ],
};

const PLAIN: Scheme = Scheme {
    name: "nats",
    also: &[],
    encryption: Encryption::None,
    usual_port: Some(4222),
    path: None,
};

/// All clients publish to the same subjects: topics belong to none of them.
const EVERYBODY: u32 = 0;

/// What is kept of a client besides its connection.
#[derive(Default)]
pub(crate) struct NatsClient {
    /// What the server's next PONGs are the answers to; none while nothing is under way.
    #[allow(clippy::box_collection)] // An idle client must be small: 8 bytes, not 32.
    pub pongs: Option<Box<VecDeque<Awaits>>>,
    /// Subscriptions asked for, which are numbered by that.
    pub subscriptions: u32,
    /// Longest message that the server takes, in bytes.
    pub max_out: u32,
}

/// A client and its connection.
pub(crate) type L<'a> = Link<'a, NatsClient>;

/// What all clients of a fleet share.
pub(crate) struct Nats {
    /// The header of every message; empty for none.
    pub header: Vec<u8>,
    pub keep_alive_s: u16,
    /// Longest message that is taken from a server, header and all, in bytes.
    pub max_in: usize,
    /// The PUB or HPUB line of each topic, up to the length of the message.
    topics: Topics<Vec<u8>>,
    /// The subject that came last, and the topic that it is.
    pub last: (Vec<u8>, String),
}

/// A fleet without clients.
pub(crate) fn open(config: FleetConfig) -> Result<TcpFleet<Nats>, DriverError> {
    let (options, _) =
        Options::resolve(&config.settings).map_err(|refused| refusal("NATS", refused))?;
    let endpoints = pair::plain_places(&config.target.endpoints, &ADDRESSING)?;
    let (tuning, nats) = (options.tuning, Nats::new(options, config.max_payload));
    TcpFleet::open(config, endpoints, tuning, nats)
}

impl Nats {
    pub fn new(options: Options, max_payload: usize) -> Nats {
        Nats {
            max_in: max_payload.saturating_add(options.header.len()),
            header: options.header,
            keep_alive_s: options.keep_alive_s,
            topics: Topics::default(),
            last: Default::default(),
        }
    }
}

impl Protocol for Nats {
    type Client = NatsClient;
    const NO_WILLS: Option<[&'static str; 2]> = Some(["NATS", "leave it out"]);
    const TURNED_AWAY: [&'static str; 2] = ["before the login", "NATS"];

    fn client(&mut self, _: &ClientSpec) -> Result<NatsClient, DriverError> {
        Ok(NatsClient::default())
    }

    fn receive(
        &mut self,
        link: &mut L<'_>,
        bytes: &[u8],
        events: &mut dyn Events,
    ) -> Result<usize, Broken> {
        protocol::receive(self, link, bytes, events)
    }

    fn unit_len(&self, beginning: &[u8]) -> Option<usize> {
        wire::message_len(beginning)
    }

    fn subscribe(
        &mut self,
        link: &mut L<'_>,
        subscription: &Subscription,
    ) -> Result<(), DriverError> {
        let (subject, group) = subject::of_subscription(subscription)?;
        link.client.own.subscriptions += 1;
        let line = format!(
            "SUB {subject} {group} {}\r\n",
            link.client.own.subscriptions
        );
        ask(link, &line, Awaits::Subscription);
        Ok(())
    }

    fn advertise(&mut self, _: &mut L<'_>, name: &str) -> Result<TopicId, DriverError> {
        if let Some(known) = self.topics.find(EVERYBODY, name) {
            return Ok(known);
        }
        let subject = subject::to_subject(name, false)?;
        let line = match self.header.len() {
            0 => format!("PUB {subject} "),
            len => format!("HPUB {subject} {len} "),
        };
        Ok(self.topics.insert(EVERYBODY, name, line.into_bytes()))
    }

    #[inline]
    fn publish(&mut self, link: &mut L<'_>, topic: TopicId, payload: Payload<'_>, _: u64) -> Taken {
        let Some(line) = self.topics.get(topic) else {
            return Taken::Refused(Refusal::NotConnected);
        };
        let len = payload.len() + self.header.len();
        if len > link.client.own.max_out as usize {
            return Taken::Refused(Refusal::TooLarge);
        }
        let out = link.out();
        out.bytes.extend_from_slice(line);
        wire::number(len as u32, &mut out.bytes);
        out.bytes.extend_from_slice(b"\r\n");
        out.bytes.extend_from_slice(&self.header);
        payload.append_to(&mut out.bytes);
        out.bytes.extend_from_slice(b"\r\n");
        out.messages += 1; // Nothing is acknowledged: it is settled once it is written.
        Taken::Accepted
    }

    fn ping(&mut self, link: &mut L<'_>) {
        ask(link, "", Awaits::SignOfLife);
    }

    fn waits_for(&self, client: &NatsClient) -> Cow<'static, str> {
        match client.max_out {
            0 => "no INFO (TLS before it, handshake_first, is not spoken here)".into(),
            _ => "no answer to the CONNECT".into(),
        }
    }

    fn dropped(&mut self, link: &mut L<'_>, _: bool) {
        link.client.own = NatsClient::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_client_is_small() {
        let size = size_of::<pubgauge_net::fleet::Client<NatsClient>>();
        assert!(size <= 128, "{size}");
    }
}
