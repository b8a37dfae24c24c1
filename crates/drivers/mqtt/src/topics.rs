//! Advertised topics: each with its PUBLISH encoded as far as it goes.

use pubgauge_driver::DriverError;
use pubgauge_mqtt_codec::{EncodeError, PropertiesBuf, Property, PublishTemplate, Version, topic};
use pubgauge_net::topics::Named;

use crate::options::MqttOptions;

/// One topic of one client.
pub(crate) struct MqttTopic {
    /// Something was published to it.
    pub published: bool,
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
                alias_epoch: 0,
                plain: template(name, options, None)?,
                alias,
            })
        };
        make().map_err(|error| DriverError::new(format!("{name:?}: {error}")))
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
