//! Advertised topics: each with its PUBLISH encoded as far as it goes.

use std::hash::{BuildHasher, Hasher};

use pubgauge_driver::{DriverError, TopicId};
use pubgauge_mqtt_codec::{EncodeError, PropertiesBuf, Property, PublishTemplate, Version, topic};
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::options::Options;

const NONE: u32 = u32::MAX;

/// One topic of one client.
pub(crate) struct Topic {
    pub client: u32,
    /// Next topic under the same hash.
    next: u32,
    /// Something was published to it.
    pub published: bool,
    /// Connection on which the alias was introduced.
    pub alias_epoch: u32,
    /// The whole topic in every message.
    pub plain: PublishTemplate,
    pub alias: Option<Box<Alias>>,
    name: Box<str>,
}

/// The two forms of a PUBLISH with a topic alias (5.0 §3.3.2.3.4).
pub(crate) struct Alias {
    /// Its number, from 1.
    pub number: u16,
    /// Topic and alias: the first message of a connection.
    pub introduce: PublishTemplate,
    /// The alias alone.
    pub short: PublishTemplate,
}

/// All topics of a fleet.
#[derive(Default)]
pub(crate) struct Topics {
    list: Vec<Topic>,
    /// First topic under each hash of client and name.
    by_hash: FxHashMap<u64, u32>,
}

impl Topics {
    #[inline]
    pub fn get(&self, id: TopicId) -> Option<&Topic> {
        self.list.get(id.0 as usize)
    }

    #[inline]
    pub fn get_mut(&mut self, id: TopicId) -> Option<&mut Topic> {
        self.list.get_mut(id.0 as usize)
    }

    /// Topics that were published to, each with its client.
    pub fn published(&self) -> Vec<(u32, String)> {
        let published = self.list.iter().filter(|topic| topic.published);
        published.map(|t| (t.client, t.name.to_string())).collect()
    }

    /// The id of a client's topic, made if it is new. `next_alias` gives the number of an alias
    /// for it, if there is one left.
    pub fn advertise(
        &mut self,
        client: u32,
        name: &str,
        options: &Options,
        next_alias: impl FnOnce() -> Option<u16>,
    ) -> Result<TopicId, DriverError> {
        let mut hasher = FxBuildHasher.build_hasher();
        hasher.write_u32(client);
        hasher.write(name.as_bytes());
        let hash = hasher.finish();
        let first = self.by_hash.get(&hash).copied().unwrap_or(NONE);
        let mut at = first;
        while at != NONE {
            let known = &self.list[at as usize];
            if known.client == client && &*known.name == name {
                return Ok(TopicId(at));
            }
            at = known.next;
        }
        topic::check_name(name).map_err(|error| {
            DriverError::with_hint(
                format!("{name:?} is not a topic to publish to: {error}"),
                "a topic has 1 to 65535 bytes and neither + nor #",
            )
        })?;
        let templates = || -> Result<_, EncodeError> {
            let plain = template(name, options, None)?;
            let alias = match next_alias() {
                Some(number) => Some(Box::new(Alias {
                    number,
                    introduce: template(name, options, Some(number))?,
                    short: template("", options, Some(number))?,
                })),
                None => None,
            };
            Ok((plain, alias))
        };
        let (plain, alias) =
            templates().map_err(|error| DriverError::new(format!("{name:?}: {error}")))?;
        let id = self.list.len() as u32;
        self.list.push(Topic {
            client,
            next: first,
            published: false,
            alias_epoch: 0,
            plain,
            alias,
            name: name.into(),
        });
        self.by_hash.insert(hash, id);
        Ok(TopicId(id))
    }
}

fn template(
    name: &str,
    options: &Options,
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
