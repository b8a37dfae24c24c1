//! Brokers and topic filters, checked.

use pubgauge_driver::{Encryption, Scheme};
use pubgauge_mqtt_codec::topic;
use pubgauge_net::endpoint::{Addressing, Endpoint};

use super::faults::Faults;
use super::file::CollectFile;

/// How brokers are addressed.
const ADDRESSING: Addressing = Addressing {
    name: "MQTT",
    schemes: &[
        Scheme {
            name: "mqtt",
            also: &["tcp"],
            encryption: Encryption::None,
            usual_port: Some(1883),
            path: None,
        },
        Scheme {
            name: "mqtts",
            also: &["ssl"],
            encryption: Encryption::Tls,
            usual_port: Some(8883),
            path: None,
        },
    ],
};

pub(super) fn brokers(written: &CollectFile, faults: &mut Faults) -> Vec<Endpoint> {
    if written.brokers.is_empty() {
        faults.add(
            &["brokers"],
            "at least one broker is needed",
            Some("such as \"mqtt://localhost\""),
        );
    }
    let mut brokers: Vec<Endpoint> = Vec::new();
    for (nth, url) in written.brokers.iter().enumerate() {
        let at = nth.to_string();
        match Endpoint::read(url, &ADDRESSING) {
            Err(error) => faults.add(&["brokers", &at], error.what, error.hint.as_deref()),
            Ok(broker)
                if brokers
                    .iter()
                    .any(|other| (&other.host, other.port) == (&broker.host, broker.port)) =>
            {
                faults.add(
                    &["brokers", &at],
                    format!("{} is given twice", broker.shown),
                    None,
                );
            }
            Ok(broker) => brokers.push(broker),
        }
    }
    brokers
}

pub(super) fn filters(written: &CollectFile, faults: &mut Faults) -> Vec<String> {
    if written.topics.is_empty() {
        faults.add(
            &["topics"],
            "at least one topic filter is needed",
            Some("\"#\" stands for all topics"),
        );
    }
    let group = written.group.as_deref();
    if let Some(group) =
        group.filter(|group| group.is_empty() || group.contains(['/', '+', '#', '\0']))
    {
        let hint = "a group's name has no `/`, `+` and `#`";
        faults.add(
            &["group"],
            format!("`{group}` cannot be a group's name"),
            Some(hint),
        );
    }
    let mut filters: Vec<String> = Vec::new();
    for (nth, topic) in written.topics.iter().enumerate() {
        let at = nth.to_string();
        if let Err(error) = topic::check_filter(topic) {
            let hint =
                "`+` stands for one level, `#` for all that follow, both only as whole levels";
            faults.add(
                &["topics", &at],
                format!("`{topic}` is no topic filter: {}", error.what),
                Some(hint),
            );
        } else if group.is_some() && topic.starts_with('$') {
            let message = format!("`{topic}` cannot be shared by a group as well");
            faults.add(
                &["topics", &at],
                message,
                Some("leave out `group`, or what begins with `$`"),
            );
        }
        let filter = match group {
            Some(group) => format!("$share/{group}/{topic}"),
            None => topic.clone(),
        };
        if filters.contains(&filter) {
            faults.add(&["topics", &at], format!("`{topic}` is given twice"), None);
        }
        filters.push(filter);
    }
    filters
}
