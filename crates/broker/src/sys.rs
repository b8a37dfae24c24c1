//! The broker's own topics, in mosquitto's names and meaning.

use crate::broker::Broker;
use crate::conn::NONE;
use crate::message::StoredMessage;

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
        let texts = [
            ("version", VERSION.to_owned()),
            ("uptime", format!("{} seconds", self.now_ms / 1000)),
        ];
        let numbers = [
            ("clients/connected", stats.clients_connected),
            ("clients/disconnected", absent),
            ("clients/total", sessions),
            ("clients/maximum", stats.clients_maximum),
            ("messages/received", stats.packets_received),
            ("messages/sent", stats.packets_sent),
            ("publish/messages/received", stats.publish_received),
            ("publish/messages/sent", stats.publish_sent),
            ("publish/messages/dropped", stats.publish_dropped),
            ("bytes/received", stats.bytes_received),
            ("bytes/sent", stats.bytes_sent),
            ("retained messages/count", self.retained.len() as u64),
            ("subscriptions/count", self.subscriptions() as u64),
        ];
        let numbers = numbers.map(|(name, number)| (name, number.to_string()));
        for (name, value) in texts.into_iter().chain(numbers) {
            let said = &mut self.sys;
            match said.iter_mut().find(|(n, _)| *n == name) {
                Some((_, last)) if *last == value => continue,
                Some((_, last)) => last.clone_from(&value),
                None => said.push((name, value.clone())),
            }
            let topic = format!("$SYS/broker/{name}");
            let message =
                StoredMessage::new(topic.as_bytes(), b"", value.as_bytes(), 2, true, None);
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
