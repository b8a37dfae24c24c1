//! MQTT for a fleet over TCP: the calls that come from the fleet. What the packets mean is in
//! [`crate::protocol`].

use std::borrow::Cow;

use pubgauge_driver::{
    ClientSpec, DriverError, Encryption, Events, FleetConfig, Grant, Nanos, Payload, Refusal,
    Scheme, Subscription, TopicId, Travel, accepted,
};
use pubgauge_mqtt_codec::{
    Disconnect, FiltersBuf, Packet, PropertiesBuf, Property, PublishTemplate, QoS, ReasonCode,
    Subscribe, SubscribeOptions, Version, encode_pingreq, packet_len, topic,
};
use pubgauge_net::endpoint::Addressing;
use pubgauge_net::fleet::{Broken, Protocol, Taken, TcpFleet};
use pubgauge_net::pair;

use crate::client::{L, Mqtt, MqttClient};
use crate::options::MqttOptions;
use crate::session::{Awaits, MqttSession};
use crate::topics::MqttTopic;
use crate::{leave, protocol};

/// How MQTT endpoints are written.
pub(crate) const ADDRESSING: Addressing = Addressing {
    name: "MQTT",
    schemes: &[
        PLAIN,
        Scheme {
            name: "mqtts",
            also: &["ssl", "tls"],
            encryption: Encryption::Tls,
            usual_port: Some(8883),
            ..PLAIN
        },
        WEBSOCKET,
        Scheme {
            name: "wss",
            encryption: Encryption::Tls,
            usual_port: Some(443),
            ..WEBSOCKET
        },
    ],
};

/// MQTT over WebSocket (5.0 §6), at the ports of RFC 6455 §3 and the path that most brokers have.
const WEBSOCKET: Scheme = Scheme {
    name: "ws",
    also: &[],
    encryption: Encryption::None,
    usual_port: Some(80),
    path: Some("PATH"),
    websocket: Some("/mqtt"),
};

const PLAIN: Scheme = Scheme {
    name: "mqtt",
    also: &["tcp"],
    encryption: Encryption::None,
    usual_port: Some(1883),
    path: None,
    websocket: None,
};

/// A fleet without clients.
pub(crate) fn open(config: FleetConfig) -> Result<TcpFleet<Mqtt>, DriverError> {
    let target = &config.target;
    let options = accepted("MQTT", MqttOptions::resolve(&config.settings, target))?;
    let endpoints = pair::plain_places(&target.endpoints, &ADDRESSING)?;
    let password_alone = target.password.is_some()
        && target.username.is_none()
        && endpoints.iter().any(|e| e.username.is_none());
    if password_alone && options.version == Version::V311 {
        return Err(DriverError::with_hint(
            "a password without a user name, which MQTT 3.1.1 does not allow",
            "give the user name too",
        ));
    }
    // Room for the longest topic, and as much again for properties.
    let max_in = config.max_payload.saturating_add(128 << 10);
    let tuning = options.tuning;
    TcpFleet::open(config, endpoints, tuning, Mqtt::new(options, max_in))
}

impl Mqtt {
    /// Whether a DISCONNECT has to say that no session is to stay (MQTT 5).
    fn ends_sessions(&self) -> bool {
        self.leaving && self.options.durable && self.options.version == Version::V5
    }

    /// The session of a client on its present connection; none is made elsewhere, as only here its window is known.
    pub(crate) fn session<'a>(&self, link: &'a mut L<'_>) -> &'a mut MqttSession {
        if link.client.own.session.is_none() {
            let window = protocol::window(self, link);
            let session = link.client.own.session.get_or_insert_default();
            session.begin_connection(window);
        }
        link.client.own.session.get_or_insert_default()
    }

    /// Assigns a QoS 1 or 2 message its packet identifier, if the window has room.
    #[inline]
    fn take(
        &self,
        link: &mut L<'_>,
        (topic, qos): (TopicId, QoS),
        payload: Payload<'_>,
        tag: u64,
    ) -> Option<u16> {
        let session = self.session(link);
        if !session.can_publish() {
            return None;
        }
        let awaits = match qos {
            QoS::ExactlyOnce => Awaits::PubRec,
            _ => Awaits::PubAck,
        };
        let keep = self.options.durable.then_some(payload);
        Some(session.take(awaits, topic, tag, keep))
    }
}

impl Protocol for Mqtt {
    type Client = MqttClient;
    const PING: &'static str = "PINGREQ";
    const SUBPROTOCOL: &'static str = "mqtt";
    const TURNED_AWAY: [&'static str; 2] = ["before its CONNACK", "this version of MQTT"];

    fn client(&mut self, spec: &ClientSpec) -> Result<MqttClient, DriverError> {
        if spec.name.len() > 65_535 || spec.name.contains('\0') {
            return Err(DriverError::new(
                "an MQTT client identifier has at most 65535 bytes and no U+0000",
            ));
        }
        if let Some(will) = &spec.will {
            topic::check_name(&will.topic).map_err(|error| {
                DriverError::new(format!("the topic of the will, {:?}: {error}", will.topic))
            })?;
            self.options.check_will(will).map_err(DriverError::new)?;
        }
        Ok(MqttClient {
            has_session: false,
            will_was_due: false,
            ended_in_order: false,
            receive_max: u16::MAX,
            alias_max: 0,
            aliases: 0,
            max_packet: u32::MAX,
            session: None,
            will: spec.will.clone().map(Box::new),
        })
    }

    fn renew_will(&mut self, client: &mut MqttClient, payload: Vec<u8>) -> bool {
        let Some(will) = &mut client.will else {
            return false;
        };
        will.payload = payload;
        true
    }

    fn greet(&mut self, link: &mut L<'_>) -> Result<(), Broken> {
        protocol::connect(self, link)
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
        // The header was checked when the beginning came in.
        packet_len(beginning, self.max_in).ok().flatten()
    }

    fn subscribe(
        &mut self,
        link: &mut L<'_>,
        subscription: &Subscription,
    ) -> Result<(), DriverError> {
        let options = &self.options;
        let v5 = options.version == Version::V5;
        let wanted = SubscribeOptions {
            qos: options.subscribe_qos,
            no_local: v5 && options.no_local && subscription.group.is_none(),
            retain_as_published: false,
            retain_handling: options.retain_handling,
        };
        let filter = match &subscription.group {
            Some(group) => format!("$share/{group}/{}", subscription.filter),
            None => subscription.filter.clone(),
        };
        let refuse = |error: &dyn std::fmt::Display| {
            DriverError::with_hint(
                format!("{filter:?} is not an MQTT topic filter: {error}"),
                "levels are separated by /, + stands for one whole level, # for all the rest and only at the end; a group name has neither of them",
            )
        };
        let group = subscription.group.as_deref();
        if group.is_some_and(|group| group.contains('/')) {
            return Err(refuse(&"a group name with / in it"));
        }
        topic::check_filter(&filter).map_err(|error| refuse(&error))?;
        let mut filters = FiltersBuf::default();
        filters
            .push(&filter, wanted)
            .map_err(|error| refuse(&error))?;
        let Some(packet_id) = self.session(link).begin_subscribe() else {
            return Err(DriverError::with_hint(
                "more than 1500 subscriptions of one client without an answer",
                "poll the fleet between subscriptions",
            ));
        };
        let mut properties = PropertiesBuf::default();
        if let Some(number) = options.subscription_identifier {
            let _ = properties.push(Property::SubscriptionIdentifier(number)); // Numbers always fit.
        }
        let packet = Packet::Subscribe(Subscribe {
            packet_id,
            filters: filters.as_filters(),
            properties: properties.as_properties(),
        });
        if let Err(error) = packet.encode(options.version, &mut link.out().bytes) {
            self.session(link).end_subscribe(packet_id);
            return Err(refuse(&error));
        }
        Ok(())
    }

    fn advertise(&mut self, link: &mut L<'_>, name: &str) -> Result<TopicId, DriverError> {
        let known = self.topics.find(link.id.0, name);
        let is_plain = |id: &TopicId| {
            let topic = self.topics.get(*id);
            topic.is_some_and(|topic| topic.is_plain(&self.options))
        };
        if let Some(known) = known.filter(is_plain) {
            return Ok(known);
        }
        let aliases = &mut link.client.own.aliases;
        let alias = (*aliases < self.options.topic_alias).then(|| *aliases + 1);
        let topic = MqttTopic::new(name, &self.options, alias)?;
        *aliases = alias.unwrap_or(*aliases);
        Ok(self.topics.insert(link.id.0, topic))
    }

    fn advertise_as(
        &mut self,
        link: &mut L<'_>,
        name: &str,
        travel: Travel,
    ) -> Result<TopicId, DriverError> {
        let topic = MqttTopic::with_travel(name, &self.options, travel)?;
        Ok(self.topics.insert(link.id.0, topic))
    }

    fn is_acknowledged(&self, topic: TopicId) -> bool {
        let topic = self.topics.get(topic);
        topic.is_none_or(|topic| topic.qos != QoS::AtMostOnce)
    }

    #[inline]
    fn publish(
        &mut self,
        link: &mut L<'_>,
        topic_id: TopicId,
        payload: Payload<'_>,
        tag: u64,
    ) -> Taken {
        let Some(topic) = self.topics.get(topic_id) else {
            return Taken::Refused(Refusal::NotConnected);
        };
        let header_apart = topic.header_apart;
        let len = if header_apart {
            payload.body.len()
        } else {
            payload.len()
        };
        let max_packet = u64::from(link.client.own.max_packet);
        let fits = |form: &PublishTemplate| {
            let packet = form.packet_len(len);
            packet.is_some_and(|packet| packet as u64 <= max_packet)
        };
        if !fits(&topic.plain) {
            return Taken::Refused(Refusal::TooLarge);
        }
        let qos = topic.qos;
        let at_most_once = qos == QoS::AtMostOnce;
        let packet_id = if at_most_once {
            0
        } else {
            match self.take(link, (topic_id, qos), payload, tag) {
                Some(packet_id) => packet_id,
                None => return Taken::Full,
            }
        };
        let (alias_max, epoch) = (link.client.own.alias_max, link.client.epoch);
        let Some(topic) = self.topics.get_mut(topic_id) else {
            return Taken::Refused(Refusal::NotConnected);
        };
        let out = link.out();
        let template = topic.template(alias_max, epoch, fits);
        if header_apart {
            template.append(&mut out.bytes, packet_id, &[], payload.body);
            MqttTopic::put_header(&mut out.bytes, payload.body.len(), payload.head);
        } else {
            template.append(&mut out.bytes, packet_id, payload.head, payload.body);
        }
        out.messages += u32::from(at_most_once);
        Taken::Accepted
    }

    #[inline]
    fn may_publish(&self, client: &MqttClient) -> bool {
        client.session.as_ref().is_none_or(|s| s.can_publish())
    }

    #[inline]
    fn after_write(&mut self, link: &mut L<'_>) {
        if link.client.own.session.is_some() {
            protocol::send_again(self, link);
        }
    }

    fn ping(&mut self, link: &mut L<'_>) {
        encode_pingreq(&mut link.out().bytes);
    }

    fn goodbye(&mut self, link: &mut L<'_>) {
        let mut properties = PropertiesBuf::default();
        if self.ends_sessions() {
            // One number always fits.
            let _ = properties.push(Property::SessionExpiryInterval(0));
        }
        let disconnect = Packet::Disconnect(Disconnect {
            properties: properties.as_properties(),
            ..Disconnect::default()
        });
        // Encoding it cannot fail.
        let _ = disconnect.encode(self.options.version, &mut link.out().bytes);
    }

    /// Under MQTT 5, sends a DISCONNECT with the reason (5.0 §4.13.1), if the connection can be
    /// written.
    fn failing(&mut self, link: &mut L<'_>, code: Option<u8>) -> bool {
        let v5 = self.options.version == Version::V5;
        let Some(code) = code.filter(|_| v5 && link.is_connected() && link.client.out.is_none())
        else {
            return false;
        };
        let packet = Packet::Disconnect(Disconnect {
            reason: ReasonCode(code),
            ..Disconnect::default()
        });
        packet.encode(Version::V5, &mut link.out().bytes).is_ok()
    }

    /// The session stays if the server keeps it too.
    fn dropped(&mut self, link: &mut L<'_>, in_order: bool) {
        let connected = link.is_connected();
        let own = &mut link.client.own;
        own.will_was_due |= connected && own.will.as_ref().is_some_and(|will| will.retain);
        own.ended_in_order = in_order;
        // The DISCONNECT of the end said that no session is to stay.
        if in_order && self.ends_sessions() {
            own.has_session = false;
        }
        let Some(session) = &mut own.session else {
            return;
        };
        session.subscribing.clear();
        if !self.options.durable {
            link.shared.unsettled -= session.discard();
        }
        if session.is_idle() {
            own.session = None;
        }
    }

    fn waits_for(&self, _: &MqttClient) -> Cow<'static, str> {
        "no CONNACK".into()
    }

    fn close(fleet: &mut TcpFleet<Mqtt>, until: Nanos) {
        leave::leave(fleet, until);
    }

    fn grants(&self) -> Vec<Grant> {
        self.granted.clone()
    }

    fn parting_messages(&self) -> u64 {
        self.left.cleared as u64
    }

    fn left_behind(&self) -> Option<String> {
        self.left.description()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_client_is_small() {
        // With a name of 24 bytes in its own allocation and an 8-byte timer entry this keeps an
        // idle connection below 200 bytes.
        let size = size_of::<pubgauge_net::fleet::FleetClient<MqttClient>>();
        assert!(size <= 112, "{size}");
        assert!(size_of::<MqttTopic>() <= 40);
    }
}
