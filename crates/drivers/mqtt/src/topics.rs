//! Advertised topics: each with its PUBLISH encoded as far as it goes.

use pubgauge_driver::header::HEADER_LEN;
use pubgauge_driver::travel::{HEADER_NAME, HEADER_TEXT_LEN, header_of_text, header_text};
use pubgauge_driver::{DriverError, Travel};
use pubgauge_mqtt_codec::{
    EncodeError, Properties, PropertiesBuf, Property, PublishTemplate, QoS, Version, topic,
};
use pubgauge_net::topics::Named;

use crate::options::MqttOptions;

/// One topic of one client.
pub(crate) struct MqttTopic {
    /// Something was published to it.
    pub published: bool,
    pub qos: QoS,
    pub retain: bool,
    /// Headers travel in a user property, the last one, whose value ends with the digit of the quality of service.
    pub header_apart: bool,
    /// Connection on which the alias was introduced.
    alias_epoch: u32,
    /// The whole topic in every message.
    pub plain: PublishTemplate,
    alias: Option<Box<Alias>>,
}

/// The two forms of a PUBLISH with a topic alias (5.0 §3.3.2.3.4).
struct Alias {
    /// Its number, from 1.
    number: u16,
    /// Topic and alias: the first message of a connection.
    introduce: PublishTemplate,
    /// The alias alone.
    short: PublishTemplate,
}

impl MqttTopic {
    /// A topic that was not published to, with the number of its alias if it has one.
    pub fn new(
        name: &str,
        options: &MqttOptions,
        alias: Option<u16>,
    ) -> Result<MqttTopic, DriverError> {
        topic::check_name(name).map_err(|error| {
            DriverError::with_hint(
                format!("{name:?} is not a topic to publish to: {error}"),
                "a topic has 1 to 65535 bytes and neither + nor #",
            )
        })?;
        let make = || -> Result<_, EncodeError> {
            let alias = match alias {
                Some(number) => Some(Box::new(Alias {
                    number,
                    introduce: template(name, options, Some(number))?,
                    short: template("", options, Some(number))?,
                })),
                None => None,
            };
            Ok(MqttTopic {
                published: false,
                qos: options.qos,
                retain: options.retain,
                header_apart: false,
                alias_epoch: 0,
                plain: template(name, options, None)?,
                alias,
            })
        };
        make().map_err(|error| DriverError::new(format!("{name:?}: {error}")))
    }

    /// A topic whose messages travel in a way of their own.
    pub fn with_travel(
        name: &str,
        options: &MqttOptions,
        travel: Travel,
    ) -> Result<MqttTopic, DriverError> {
        let mut own = options.clone();
        let v5 = options.version == Version::V5;
        // A subscriber is told in the property which quality of service to expect.
        if let Some(asked) = travel.qos.filter(|_| v5 && travel.header_apart) {
            own.qos = own.qos.min(match asked {
                0 => QoS::AtMostOnce,
                1 => QoS::AtLeastOnce,
                _ => QoS::ExactlyOnce,
            });
        }
        own.retain = travel.retain.unwrap_or(options.retain);
        let header_apart = v5 && travel.header_apart;
        if header_apart {
            let value = format!("{:0width$}{}", 0, own.qos as u8, width = HEADER_TEXT_LEN);
            own.user_properties.push((HEADER_NAME.into(), value));
        }
        let topic = MqttTopic::new(name, &own, None)?;
        Ok(MqttTopic {
            header_apart,
            ..topic
        })
    }

    /// Whether its messages travel as the settings say.
    pub fn is_plain(&self, options: &MqttOptions) -> bool {
        !self.header_apart && self.qos == options.qos && self.retain == options.retain
    }

    /// Puts a header into the last user property of a packet whose payload, of this many bytes, ends `bytes`.
    pub fn put_header(bytes: &mut [u8], payload_len: usize, header: &[u8; HEADER_LEN]) {
        // The digit of the quality of service stands behind the header.
        let end = bytes.len() - payload_len - 1;
        bytes[end - HEADER_TEXT_LEN..end].copy_from_slice(&header_text(header));
    }

    /// The header and the quality of service with which a message was sent, where its properties have them.
    pub fn header_in(properties: Properties<'_>) -> Option<([u8; HEADER_LEN], u8)> {
        let pairs = properties.user_properties();
        let (_, value) = pairs.filter(|(name, _)| *name == HEADER_NAME).last()?;
        let (header, qos) = value.as_bytes().split_at_checked(HEADER_TEXT_LEN)?;
        match qos {
            [qos @ b'0'..=b'2'] => Some((header_of_text(header)?, qos - b'0')),
            _ => None,
        }
    }

    /// The form of the next message, on connection number `epoch`, to a server that takes
    /// `alias_max` aliases. A form with an alias may be the longer one: the plain one is taken where
    /// that does not fit into a packet.
    #[inline]
    pub fn template(
        &mut self,
        alias_max: u16,
        epoch: u32,
        fits: impl Fn(&PublishTemplate) -> bool,
    ) -> &PublishTemplate {
        self.published = true;
        match &self.alias {
            Some(alias) if alias.number <= alias_max => {
                let form = if self.alias_epoch == epoch {
                    &alias.short
                } else {
                    &alias.introduce
                };
                if !fits(form) {
                    return &self.plain;
                }
                self.alias_epoch = epoch;
                form
            }
            _ => &self.plain,
        }
    }
}

impl Named for MqttTopic {
    fn name(&self) -> &str {
        self.plain.topic()
    }
}

fn template(
    name: &str,
    options: &MqttOptions,
    alias: Option<u16>,
) -> Result<PublishTemplate, EncodeError> {
    let mut properties = PropertiesBuf::default();
    if options.version == Version::V5 {
        if let Some(alias) = alias {
            properties.push(Property::TopicAlias(alias))?;
        }
        if let Some(expiry) = options.message_expiry_s {
            properties.push(Property::MessageExpiryInterval(expiry))?;
        }
        if let Some(content_type) = &options.content_type {
            properties.push(Property::ContentType(content_type))?;
        }
        if let Some(topic) = &options.response_topic {
            properties.push(Property::ResponseTopic(topic))?;
        }
        for (key, value) in &options.user_properties {
            properties.push(Property::UserProperty((key, value)))?;
        }
    }
    PublishTemplate::new(
        options.version,
        name,
        options.qos,
        options.retain,
        properties.as_properties(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubgauge_driver::{Settings, Target};
    use pubgauge_mqtt_codec::decode_publish;

    fn options(settings: &Settings) -> MqttOptions {
        let target = Target::default();
        let (options, _) = MqttOptions::resolve(settings, &target).expect("fine");
        options
    }

    #[test]
    fn a_header_travels_in_a_user_property_with_the_quality_of_service() {
        let settings = Settings {
            reliability: Some(pubgauge_driver::Reliability::AtLeastOnce),
            user_properties: Some([("pubgauge".to_owned(), "mine".to_owned())].into()),
            ..Settings::default()
        };
        let options = options(&settings);
        let head: [u8; HEADER_LEN] = std::array::from_fn(|n| n as u8 * 5);
        for (asked, sent) in [(None, 1), (Some(0), 0), (Some(1), 1), (Some(2), 1)] {
            let travel = Travel {
                header_apart: true,
                qos: asked,
                retain: Some(true),
            };
            let topic = MqttTopic::with_travel("a/b", &options, travel).expect("a topic");
            assert_eq!((topic.qos as u8, topic.retain), (sent, true));
            for body in [&b""[..], b"ON", &[9; 300]] {
                let mut bytes = b"before".to_vec();
                topic.plain.append(&mut bytes, 7, &[], body);
                MqttTopic::put_header(&mut bytes, body.len(), &head);
                let packet = &bytes[6..];
                let (publish, len) = decode_publish(packet, Version::V5, 1 << 20)
                    .expect("a packet")
                    .expect("whole");
                assert_eq!(
                    (len, publish.payload, publish.retain),
                    (packet.len(), body, true)
                );
                assert_eq!(publish.qos as u8, sent);
                assert_eq!(MqttTopic::header_in(publish.properties), Some((head, sent)));
            }
        }
    }

    #[test]
    fn without_properties_only_retain_is_its_own() {
        let mut settings = Settings {
            reliability: Some(pubgauge_driver::Reliability::ExactlyOnce),
            ..Settings::default()
        };
        let version = [("version".to_owned(), "3.1.1".into())].into();
        settings.native.insert("mqtt".into(), version);
        let travel = Travel {
            header_apart: true,
            qos: Some(0),
            retain: Some(true),
        };
        let topic = MqttTopic::with_travel("a", &options(&settings), travel).expect("a topic");
        assert_eq!(
            (topic.qos, topic.retain, topic.header_apart),
            (QoS::ExactlyOnce, true, false)
        );
    }
}
