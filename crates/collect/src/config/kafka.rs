//! Kafka in place of a data folder, checked.

use super::direct::{Direct, nothing_here};
use super::faults::{Faults, MS, SECOND};
use super::file::CollectFile;

/// Kafka in place of a data folder.
#[derive(Clone, Debug, PartialEq)]
pub struct Kafka {
    /// HOST:PORT.
    pub brokers: Vec<String>,
    pub topic: String,
    pub direct: Direct,
}

pub(super) fn of(written: &CollectFile, faults: &mut Faults) -> Option<Kafka> {
    let kafka = written.kafka.as_ref()?;
    if cfg!(not(feature = "kafka")) {
        let hint = "build it with the feature `kafka`";
        faults.add(
            &["kafka"],
            "this pubgauge is built without Kafka",
            Some(hint),
        );
    }
    if kafka.brokers.is_empty() {
        let hint = "such as \"localhost:9092\"";
        faults.add(
            &["kafka", "brokers"],
            "at least one broker is needed",
            Some(hint),
        );
    }
    for (nth, broker) in kafka.brokers.iter().enumerate() {
        let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
        if !broker
            .rsplit_once(':')
            .is_some_and(|(host, port)| !host.is_empty() && is_port(port))
        {
            let message = format!("`{broker}` is no address of a broker");
            faults.add(
                &["kafka", "brokers", &nth.to_string()],
                message,
                Some("expected HOST:PORT"),
            );
        }
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let topic = &kafka.topic;
    if topic.is_empty()
        || topic.len() > 249
        || !topic.chars().all(fits)
        || topic.chars().all(|c| c == '.')
    {
        let hint = "expected up to 249 letters, digits, `-`, `_` and `.`";
        faults.add(
            &["kafka", "topic"],
            format!("`{topic}` cannot be a topic of Kafka"),
            Some(hint),
        );
    }
    let every = faults.span(&["kafka", "every"], kafka.every, 10 * MS, (MS, 10 * SECOND));
    let bytes = faults.size(
        &["kafka", "bytes"],
        kafka.bytes,
        4 << 20,
        (64 << 10, 64 << 20),
    );
    if written.upload.is_some() {
        let hint = "leave out one of them: nothing is a file here that could be moved";
        faults.add(
            &["upload"],
            "`upload` and `kafka` exclude each other",
            Some(hint),
        );
    }
    if written.payload.is_some() {
        let hint = "leave out `payload`";
        faults.add(
            &["payload"],
            "Kafka has no columns: payloads are sent as they are",
            Some(hint),
        );
    }
    nothing_here(written, "`kafka`", &["kafka"], faults);
    Some(Kafka {
        brokers: kafka.brokers.clone(),
        topic: kafka.topic.clone(),
        direct: Direct {
            every,
            bytes: bytes as usize,
            per_s: None,
        },
    })
}
