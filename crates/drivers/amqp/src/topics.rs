//! Topics and filters in AMQP's words, and advertised topics, each with its `basic.publish`
//! encoded as far as it goes.
//!
//! Levels become words: `/` becomes `.`, a whole level `+` becomes `*`, and `#` stays. The
//! characters `.` `*` `#` `%` within a level would mean something else in a routing key, and are
//! written `%2E` `%2A` `%23` `%25`; the way back restores them.

use crate::codec::{ContentHeader, EncodeError, PublishTemplate, Value};
use pubgauge_driver::DriverError;
use pubgauge_driver::header::HEADER_LEN;
use pubgauge_driver::travel::HEADER_NAME;
use pubgauge_net::dotted_topics::{escape, restore};
use pubgauge_net::topics::Named;

use crate::client::PUBLISHING;
use crate::options::{AmqpOptions, Exchange};

/// The name of a durable session's queue is this prefix and the client's name.
pub(crate) const SESSION_PREFIX: &str = "pubgauge.session.";

/// Longest routing key and longest queue name in bytes (short strings, §4.2.5.3).
const LONGEST: usize = 255;

/// The routing key that `topic` is published with.
pub(crate) fn routing_key(topic: &str, options: &AmqpOptions) -> Result<String, DriverError> {
    let bad = |what: String, hint: &str| {
        DriverError::with_hint(
            format!("{topic:?} is not a topic to publish to: {what}"),
            hint.to_owned(),
        )
    };
    if topic.is_empty() {
        return Err(bad("it is empty".into(), "give it at least one character"));
    }
    if topic.split('/').any(|level| level == "+" || level == "#") {
        return Err(bad(
            "+ and # stand for other levels".into(),
            "name one topic; wildcards are for subscriptions",
        ));
    }
    let key = match options.exchange {
        Exchange::Queue => topic.to_owned(),
        _ => to_words(topic, |level, key| escape(level, is_special, key)),
    };
    if options.exchange == Exchange::Queue && key.starts_with("amq.") {
        return Err(bad(
            "queue names that begin with amq. are the server's".into(),
            "choose another name",
        ));
    }
    if key.len() > LONGEST {
        return Err(bad(
            format!("it becomes a routing key of {} bytes", key.len()),
            "a routing key has at most 255 bytes; . * # % take three each",
        ));
    }
    Ok(key)
}

/// The binding key that `filter` subscribes with, or the queue's name.
pub(crate) fn binding_key(filter: &str, options: &AmqpOptions) -> Result<String, DriverError> {
    let bad = |what: String, hint: &str| {
        DriverError::with_hint(
            format!("{filter:?} cannot be subscribed to here: {what}"),
            hint.to_owned(),
        )
    };
    let levels: Vec<&str> = filter.split('/').collect();
    if filter.is_empty() {
        return Err(bad("it is empty".into(), "# stands for all topics"));
    }
    if levels[..levels.len() - 1].contains(&"#") {
        return Err(bad(
            "# is not at its end".into(),
            "# stands for all the rest and only at the end, + for one whole level",
        ));
    }
    let part = |level: &&str| level.len() > 1 && level.contains(['+', '#']);
    if levels.iter().any(part) {
        return Err(bad(
            "+ or # is part of a level".into(),
            "+ stands for one whole level, # for all the rest and only at the end",
        ));
    }
    let exact = !levels.iter().any(|level| matches!(*level, "+" | "#"));
    match options.exchange {
        Exchange::Topic => {}
        Exchange::Fanout if filter != "#" => {
            return Err(bad(
                "a fanout exchange gives every queue every message".into(),
                "subscribe to #, or take native.amqp.exchange = \"topic\" or \"direct\"",
            ));
        }
        Exchange::Direct if !exact => {
            return Err(bad(
                "a direct exchange knows exact topics only".into(),
                "name one topic, or take native.amqp.exchange = \"topic\"",
            ));
        }
        Exchange::Queue if !exact => {
            return Err(bad(
                "consumers of point-to-point messages name their queue".into(),
                "name one topic, or take native.amqp.exchange = \"topic\"",
            ));
        }
        Exchange::Queue => return routing_key(filter, options),
        Exchange::Fanout | Exchange::Direct => {}
    }
    let key = to_words(filter, |level, key| match level {
        "+" => key.push('*'),
        "#" => key.push('#'),
        level => escape(level, is_special, key),
    });
    if key.len() > LONGEST {
        return Err(bad(
            format!("it becomes a binding key of {} bytes", key.len()),
            "a binding key has at most 255 bytes; . * # % take three each",
        ));
    }
    Ok(key)
}

/// The name of a queue that the members of a group share.
pub(crate) fn group_queue(group: &str, key: &str) -> Result<String, DriverError> {
    let name = format!("pubgauge.group.{group}.{key}");
    match name.len() {
        ..=LONGEST => Ok(name),
        len => Err(DriverError::with_hint(
            format!("the queue of group {group:?} would have a name of {len} bytes"),
            "a queue's name has at most 255 bytes: shorten the group's name or the filter",
        )),
    }
}

fn to_words(topic: &str, word: impl Fn(&str, &mut String)) -> String {
    let mut key = String::with_capacity(topic.len());
    for (i, level) in topic.split('/').enumerate() {
        if i > 0 {
            key.push('.');
        }
        word(level, &mut key);
    }
    key
}

/// Characters with a meaning in a routing or binding key.
fn is_special(c: char) -> bool {
    ".*#%".contains(c)
}

/// The topic of a routing key, written into `topic` where it differs.
#[inline]
pub(crate) fn topic_of<'a>(key: &'a [u8], exchange: Exchange, topic: &'a mut String) -> &'a str {
    if exchange == Exchange::Queue {
        return std::str::from_utf8(key).unwrap_or_default();
    }
    restore(key, topic);
    topic
}

/// One topic of one client.
pub(crate) struct AmqpTopic {
    pub template: PublishTemplate,
    /// Headers of messages travel in a header of AMQP's.
    pub header_apart: bool,
    pub name: Box<str>,
    /// The routing key; of a point-to-point topic the name of its queue.
    pub key: Box<str>,
}

impl AmqpTopic {
    pub fn new(
        name: &str,
        options: &AmqpOptions,
        header_apart: bool,
    ) -> Result<AmqpTopic, DriverError> {
        let key = routing_key(name, options)?;
        let wrong = |error: EncodeError| DriverError::new(format!("{name:?}: {error}"));
        let mut headers = options.headers.clone();
        let mut properties = options.properties();
        if header_apart {
            let value = Value::Long(&[0; HEADER_LEN]);
            headers.push(HEADER_NAME, value).map_err(wrong)?;
            properties.headers = Some(headers.as_table());
        }
        let exchange = options.exchange_name();
        let template =
            PublishTemplate::new(PUBLISHING, exchange, &key, options.mandatory, properties);
        let mut template = template.map_err(wrong)?;
        if header_apart {
            let table_len = headers.as_table().as_bytes().len();
            template = template.with_header_value(table_len, HEADER_LEN);
        }
        Ok(AmqpTopic {
            template,
            header_apart,
            name: name.into(),
            key: key.into(),
        })
    }
}

/// The header of a message that travels in one of its headers.
#[inline]
pub(crate) fn header_in(content: &[u8]) -> Option<[u8; HEADER_LEN]> {
    match ContentHeader::headers_in(content)?.find(HEADER_NAME)? {
        Value::Long(header) => header.try_into().ok(),
        _ => None,
    }
}

impl Named for AmqpTopic {
    fn name(&self) -> &str {
        &self.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{FrameKind, decode_frame};
    use proptest::prelude::*;

    fn options(exchange: Exchange) -> AmqpOptions {
        AmqpOptions {
            exchange,
            ..AmqpOptions::default()
        }
    }

    #[test]
    fn a_header_travels_beside_its_body() {
        let mut options = options(Exchange::Topic);
        for with_own in [false, true] {
            if with_own {
                options.mandatory = true;
                let own = options.headers.push("k", Value::Long(b"v"));
                own.expect("short");
            }
            let topic = AmqpTopic::new("a/b", &options, true).expect("a topic");
            let head: [u8; HEADER_LEN] = std::array::from_fn(|n| n as u8 + 1);
            for body in [&b""[..], b"ON", &[7; 10_000]] {
                let mut bytes = Vec::new();
                topic
                    .template
                    .append_apart(&mut bytes, 4096, 9, &head, body);
                let (mut payload, mut at, mut header) = (Vec::new(), 0, None);
                while let Some((frame, len)) = decode_frame(&bytes[at..], 4096).expect("frames") {
                    at += len;
                    match frame.kind {
                        FrameKind::Header => header = header_in(frame.payload),
                        FrameKind::Body => payload.extend_from_slice(frame.payload),
                        _ => {}
                    }
                }
                assert_eq!((at, header, &payload[..]), (bytes.len(), Some(head), body));
            }
        }
    }

    #[test]
    fn levels_become_words() {
        let topic = options(Exchange::Topic);
        assert_eq!(routing_key("a/b c/d", &topic).unwrap(), "a.b c.d");
        assert_eq!(
            routing_key("/v1.2/50%*#", &topic).unwrap(),
            ".v1%2E2.50%25%2A%23"
        );
        assert_eq!(binding_key("a/+/#", &topic).unwrap(), "a.*.#");
        assert_eq!(binding_key("v1.2/+", &topic).unwrap(), "v1%2E2.*");
        for bad in ["", "a/#/b", "a+/b", "a/b#"] {
            let error = binding_key(bad, &topic).unwrap_err();
            assert!(error.hint.is_some(), "{bad}");
        }
        for bad in ["", "a/+", "#", &"x/".repeat(128)] {
            assert!(routing_key(bad, &topic).is_err(), "{bad}");
        }
    }

    #[test]
    fn exchanges_that_know_no_wildcards_refuse_them() {
        assert!(binding_key("a/b", &options(Exchange::Direct)).is_ok());
        assert!(binding_key("a/+", &options(Exchange::Direct)).is_err());
        assert!(binding_key("#", &options(Exchange::Fanout)).is_ok());
        assert!(binding_key("a", &options(Exchange::Fanout)).is_err());
        let queue = options(Exchange::Queue);
        assert_eq!(binding_key("a/b.c", &queue).unwrap(), "a/b.c");
        assert!(binding_key("a/#", &queue).is_err());
        assert!(routing_key("amq.topic", &queue).is_err());
    }

    #[test]
    fn foreign_keys_are_given_as_far_as_they_go() {
        let mut scratch = String::new();
        assert_eq!(
            topic_of(b"a.%zz.%", Exchange::Topic, &mut scratch),
            "a/%zz/%"
        );
        assert_eq!(topic_of(b"\xff", Exchange::Topic, &mut scratch), "");
    }

    proptest! {
        #[test]
        fn the_way_back_restores_the_topic(topic in "[a-zäß/.*#%+ 0-9]{1,60}") {
            for exchange in [Exchange::Topic, Exchange::Queue] {
                let options = options(exchange);
                if let Ok(key) = routing_key(&topic, &options) {
                    let mut scratch = String::new();
                    prop_assert_eq!(topic_of(key.as_bytes(), exchange, &mut scratch), &topic);
                }
            }
        }

        #[test]
        fn no_key_panics(key in prop::collection::vec(any::<u8>(), 0..100)) {
            let mut scratch = String::new();
            let _ = topic_of(&key, Exchange::Topic, &mut scratch);
        }
    }
}
