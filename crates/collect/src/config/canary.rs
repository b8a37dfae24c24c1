//! A canary through each broker, checked.

use std::time::Duration;

use pubgauge_mqtt_codec::topic;

use super::faults::{Faults, HOUR, MS, SECOND};
use super::file::CollectFile;

/// Beginning of the topics of canaries where none is given.
const TOPIC: &str = "collect-canary";

/// A numbered message of the collector's own through each broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canary {
    pub every: Duration,
    /// Beginning of the topics of all collectors' canaries.
    pub topic: String,
}

impl Canary {
    /// The topic of one collector's canaries.
    pub fn topic_of(&self, collector: &str) -> String {
        format!("{}/{collector}", self.topic)
    }

    /// The filter that is subscribed to for it: in the way that the messages are, so that it meets what they meet. No other member
    /// of the group has this filter.
    pub fn filter_of(&self, collector: &str, group: Option<&str>) -> String {
        let topic = self.topic_of(collector);
        match group {
            Some(group) => format!("$share/{group}/{topic}"),
            None => topic,
        }
    }
}

pub(super) fn check_canary(written: &CollectFile, faults: &mut Faults) -> Option<Canary> {
    let canary = written.canary.as_ref()?;
    let every = faults.span(
        &["canary", "every"],
        canary.every,
        10 * SECOND,
        (100 * MS, HOUR),
    );
    let topic = canary.topic.as_deref().unwrap_or(TOPIC);
    // The name of a collector follows.
    let is_topic = topic.len() <= 1024 && !topic.starts_with('$');
    if !is_topic || topic::check_name(topic).is_err() {
        let hint = "expected a topic without `+`, `#` and `$`; the collector's name follows as its last level";
        faults.add(
            &["canary", "topic"],
            format!("`{topic}` cannot be the beginning of a topic"),
            Some(hint),
        );
    }
    Some(Canary {
        every,
        topic: topic.to_owned(),
    })
}
