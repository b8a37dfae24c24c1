//! Properties of MQTT 5 as JSON.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use pubgauge_mqtt_codec::{Properties, Property};
use serde_json::{Map, Value, json};

/// The content type, and the other properties as a JSON object; neither where there is none. Topic alias is left out:
/// it means something on its connection alone.
pub fn decode(raw: &[u8]) -> (Option<&str>, Option<Map<String, Value>>) {
    let Ok(properties) = Properties::of_publish(raw) else {
        return (None, None);
    };
    let mut content_type = None;
    let mut others = Map::new();
    let (mut user, mut subscriptions) = (Vec::new(), Vec::new());
    for property in properties {
        let (name, value) = match property {
            Property::ContentType(text) => {
                content_type = Some(text);
                continue;
            }
            Property::UserProperty((name, value)) => {
                user.push(json!([name, value]));
                continue;
            }
            Property::SubscriptionIdentifier(number) => {
                subscriptions.push(json!(number));
                continue;
            }
            Property::PayloadFormatIndicator(is_text) => ("payload_is_utf8", json!(is_text)),
            Property::MessageExpiryInterval(seconds) => ("message_expiry_s", json!(seconds)),
            Property::ResponseTopic(topic) => ("response_topic", json!(topic)),
            Property::CorrelationData(bytes) => (
                "correlation_data_base64",
                json!(BASE64_STANDARD.encode(bytes)),
            ),
            _ => continue,
        };
        others.insert(name.to_owned(), value);
    }
    for (name, list) in [("user", user), ("subscription_identifiers", subscriptions)] {
        if !list.is_empty() {
            others.insert(name.to_owned(), Value::Array(list));
        }
    }
    (content_type, (!others.is_empty()).then_some(others))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubgauge_mqtt_codec::PropertiesBuf;

    #[test]
    fn all_but_the_content_type_becomes_one_object() {
        let mut buf = PropertiesBuf::default();
        for property in [
            Property::ContentType("application/json"),
            Property::UserProperty(("a", "1")),
            Property::UserProperty(("a", "2")),
            Property::MessageExpiryInterval(60),
            Property::CorrelationData(&[0xff, 0]),
            Property::TopicAlias(3),
        ] {
            buf.push(property).unwrap();
        }
        let (content_type, others) = decode(buf.as_properties().as_bytes());
        assert_eq!(content_type, Some("application/json"));
        assert_eq!(
            Value::Object(others.unwrap()),
            json!({"user": [["a", "1"], ["a", "2"]], "message_expiry_s": 60, "correlation_data_base64": "/wA="})
        );
        assert_eq!(decode(&[]), (None, None));
    }
}
