//! NATS for a fleet over TCP: the calls that come from the fleet. What the server's lines mean is in
//! [`crate::protocol`].

use std::borrow::Cow;

use pubgauge_driver::travel::{HEADER_NAME, header_text};
use pubgauge_driver::{
    ClientSpec, DriverError, Encryption, Events, FleetConfig, Grant, Payload, Refusal, Scheme,
    Subscription, TopicId, Travel, accepted,
};
use pubgauge_net::endpoint::Addressing;
use pubgauge_net::fleet::{Broken, Protocol, State, Taken, TcpFleet};
use pubgauge_net::pair;

use crate::options::NatsOptions;
use crate::protocol::{APART_LEN, Awaits, Nats, NatsClient, NatsLink, NatsTopic, act, ask, breach};
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
    websocket: None,
};

/// Owner of all topics: clients publish to the same subjects, and no topic belongs to one client.
const EVERYBODY: u32 = 0;

/// A fleet without clients.
pub(crate) fn open(config: FleetConfig) -> Result<TcpFleet<Nats>, DriverError> {
    let options = accepted("NATS", NatsOptions::resolve(&config.settings))?;
    let endpoints = pair::plain_places(&config.target.endpoints, &ADDRESSING)?;
    let (tuning, nats) = (options.tuning, Nats::new(options, config.max_payload));
    TcpFleet::open(config, endpoints, tuning, nats)
}

impl Protocol for Nats {
    fn grants(&self) -> Vec<Grant> {
        self.granted.clone()
    }

    type Client = NatsClient;
    const NO_WILLS: Option<[&'static str; 2]> = Some(["NATS", "leave it out"]);
    const TURNED_AWAY: [&'static str; 2] = ["before the login", "NATS"];

    fn client(&mut self, _: &ClientSpec) -> Result<NatsClient, DriverError> {
        Ok(NatsClient::default())
    }

    fn receive(
        &mut self,
        link: &mut NatsLink<'_>,
        bytes: &[u8],
        events: &mut dyn Events,
    ) -> Result<usize, Broken> {
        let mut at = 0;
        while link.client.state != State::Closing {
            match wire::decode(&bytes[at..], self.max_in) {
                Ok(Some((op, len))) => {
                    at += len;
                    act(self, link, op, events)?;
                    // Bytes that followed INFO were not encrypted: anybody may have sent it.
                    if link.client.is_in_handshake() && at < bytes.len() {
                        return Err(breach(link, "data between INFO and TLS"));
                    }
                    if link.client.is_busy() {
                        return Ok(at);
                    }
                }
                Ok(None) => return Ok(at),
                Err(what) => return Err(breach(link, what)),
            }
        }
        // Bytes that come while closing are ignored.
        Ok(bytes.len())
    }

    fn unit_len(&self, beginning: &[u8]) -> Option<usize> {
        wire::message_len(beginning)
    }

    fn subscribe(
        &mut self,
        link: &mut NatsLink<'_>,
        subscription: &Subscription,
    ) -> Result<(), DriverError> {
        let (subject, group) = subject::of_subscription(subscription)?;
        let own = &mut link.client.own;
        own.subscriptions += 1;
        let line = format!("SUB {subject} {group} {}\r\n", own.subscriptions);
        ask(link, &line, Awaits::Subscription);
        Ok(())
    }

    fn advertise(&mut self, _: &mut NatsLink<'_>, name: &str) -> Result<TopicId, DriverError> {
        let known = self.topics.find(EVERYBODY, name);
        let is_plain = |id: &TopicId| {
            let topic = self.topics.get(*id);
            topic.is_some_and(|topic| topic.apart.is_none())
        };
        if let Some(known) = known.filter(is_plain) {
            return Ok(known);
        }
        let subject = subject::to_subject(name, false)?;
        let line = match self.options.header.len() {
            0 => format!("PUB {subject} "),
            len => format!("HPUB {subject} {len} "),
        };
        let topic = NatsTopic {
            name: name.into(),
            line: line.into_bytes().into(),
            apart: None,
        };
        Ok(self.topics.insert(EVERYBODY, topic))
    }

    fn advertise_as(
        &mut self,
        link: &mut NatsLink<'_>,
        name: &str,
        travel: Travel,
    ) -> Result<TopicId, DriverError> {
        if !travel.header_apart {
            return self.advertise(link, name);
        }
        let subject = subject::to_subject(name, false)?;
        // The fields of the settings without the empty line that ends them.
        let own = self.options.header.strip_suffix(b"\r\n");
        let mut fields = own.unwrap_or(b"NATS/1.0\r\n").to_vec();
        fields.extend_from_slice(format!("{HEADER_NAME}: ").as_bytes());
        let line = format!("HPUB {subject} {} ", fields.len() + APART_LEN);
        let topic = NatsTopic {
            name: name.into(),
            line: line.into_bytes().into(),
            apart: Some(fields.into()),
        };
        Ok(self.topics.insert(EVERYBODY, topic))
    }

    #[inline]
    fn publish(
        &mut self,
        link: &mut NatsLink<'_>,
        topic: TopicId,
        payload: Payload<'_>,
        _: u64,
    ) -> Taken {
        let Some(NatsTopic { line, apart, .. }) = self.topics.get(topic) else {
            return Taken::Refused(Refusal::NotConnected);
        };
        let len = match apart {
            None => payload.len() + self.options.header.len(),
            Some(fields) => payload.body.len() + fields.len() + APART_LEN,
        };
        if len > link.client.own.max_out as usize {
            return Taken::Refused(Refusal::TooLarge);
        }
        let out = link.out();
        out.bytes.extend_from_slice(line);
        wire::number(len as u32, &mut out.bytes);
        out.bytes.extend_from_slice(b"\r\n");
        match apart {
            None => {
                out.bytes.extend_from_slice(&self.options.header);
                payload.append_to(&mut out.bytes);
            }
            Some(fields) => {
                out.bytes.extend_from_slice(fields);
                out.bytes.extend_from_slice(&header_text(payload.head));
                out.bytes.extend_from_slice(b"\r\n\r\n");
                out.bytes.extend_from_slice(payload.body);
            }
        }
        out.bytes.extend_from_slice(b"\r\n");
        out.messages += 1; // Nothing is acknowledged: it is settled once it is written.
        Taken::Accepted
    }

    fn ping(&mut self, link: &mut NatsLink<'_>) {
        ask(link, "", Awaits::SignOfLife);
    }

    fn waits_for(&self, client: &NatsClient) -> Cow<'static, str> {
        match client.max_out {
            0 => "no INFO (TLS before it, handshake_first, is not spoken here)".into(),
            _ => "no answer to the CONNECT".into(),
        }
    }

    fn dropped(&mut self, link: &mut NatsLink<'_>, _: bool) {
        link.client.own = NatsClient::default();
    }
}
