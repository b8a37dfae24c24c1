//! The broker's own topics, in mosquitto's names and meaning.

use crate::broker::Broker;
use crate::conn::NONE;
use crate::message::Message;

/// The text of `$SYS/broker/version`.
pub(crate) const VERSION: &str = concat!(
    "pubgauge reference broker version ",
    env!("CARGO_PKG_VERSION")
);

impl Broker {
    /// Publishes those of the `$SYS` topics whose value has changed, retained, at
    /// QoS 2 as mosquitto does.
    ///
    /// All values are of one moment: messages published here count only next
    /// time.
    pub(crate) fn publish_sys(&mut self) {
        let stats = self.net.stats;
        let sessions = self.sessions.len() as u64;
        let absent = sessions.saturating_sub(stats.clients_connected);
        let values: [(&'static str, String); 15] = [
            ("$SYS/broker/version", VERSION.to_owned()),
            (
                "$SYS/broker/uptime",
                format!("{} seconds", self.now_ms / 1000),
            ),
            (
                "$SYS/broker/clients/connected",
                stats.clients_connected.to_string(),
            ),
            ("$SYS/broker/clients/disconnected", absent.to_string()),
            ("$SYS/broker/clients/total", sessions.to_string()),
            (
                "$SYS/broker/clients/maximum",
                stats.clients_maximum.to_string(),
            ),
            (
                "$SYS/broker/messages/received",
                stats.packets_received.to_string(),
            ),
            ("$SYS/broker/messages/sent", stats.packets_sent.to_string()),
            (
                "$SYS/broker/publish/messages/received",
                stats.publish_received.to_string(),
            ),
            (
                "$SYS/broker/publish/messages/sent",
                stats.publish_sent.to_string(),
            ),
            (
                "$SYS/broker/publish/messages/dropped",
                stats.publish_dropped.to_string(),
            ),
            (
                "$SYS/broker/bytes/received",
                stats.bytes_received.to_string(),
            ),
            ("$SYS/broker/bytes/sent", stats.bytes_sent.to_string()),
            (
                "$SYS/broker/retained messages/count",
                self.retained.len().to_string(),
            ),
            (
                "$SYS/broker/subscriptions/count",
                self.subscriptions().to_string(),
            ),
        ];
        for (topic, value) in values {
            let said = &mut self.sys;
            match said.iter_mut().find(|(t, _)| *t == topic) {
                Some((_, last)) if *last == value => continue,
                Some((_, last)) => last.clone_from(&value),
                None => said.push((topic, value.clone())),
            }
            let message = Message::new(topic.as_bytes(), b"", value.as_bytes(), 2, true, None);
            self.publish_own(&message, NONE, None);
        }
    }

    fn subscriptions(&self) -> usize {
        let sessions = self
            .sessions
            .ids()
            .into_iter()
            .filter_map(|id| self.sessions.get(id));
        sessions.map(|s| s.filters.len()).sum()
    }
}
