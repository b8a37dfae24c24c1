//! Messages that the simulated system keeps for whoever subscribes later: last values and stored ones.

use std::collections::VecDeque;

use pubgauge_driver::clock::Nanos;
use pubgauge_driver::header::{HEADER_LEN, Header, Mark};
use pubgauge_driver::topic::TopicMatch;

use super::{BusContent, Inner};

/// The messages of one topic that are kept for whoever subscribes later, each with its header where that is not in it.
#[derive(Default)]
pub(super) struct Stored {
    last_value: Option<(Vec<u8>, Option<[u8; HEADER_LEN]>)>,
    history: VecDeque<(Vec<u8>, Option<[u8; HEADER_LEN]>)>,
}

impl Inner {
    /// Keeps a message of a topic for whoever subscribes later.
    pub(super) fn store(
        &mut self,
        topic: &str,
        payload: &[u8],
        header: Option<[u8; HEADER_LEN]>,
        keeps: bool,
    ) {
        let most = self.behaviour.history;
        let mut kept_nothing = self.behaviour.keeps_none_of.iter();
        let keeps = keeps && !kept_nothing.any(|of| of == topic);
        if !keeps && most == 0 {
            return;
        }
        let stored = self.stored.entry(topic.to_owned()).or_default();
        if keeps {
            stored.last_value = Some((payload.to_vec(), header));
        }
        if most > 0 {
            stored.history.push_back((payload.to_vec(), header));
            if stored.history.len() > most {
                stored.history.pop_front();
            }
        }
    }

    /// Sends what is kept of the topics of a filter to the newest subscription.
    pub(super) fn send_stored(&mut self, mark: Mark, now: Nanos, filter: &str) {
        let index = self.subscriptions.len() - 1;
        let (fleet, client) = (
            self.subscriptions[index].fleet,
            self.subscriptions[index].client,
        );
        let mut all = Vec::new();
        for (topic, stored) in &self.stored {
            if filter.matches_topic(topic) {
                let last_value = stored.last_value.iter().map(|message| (message, true));
                let history = stored.history.iter().map(|message| (message, false));
                let each = last_value.chain(history);
                all.extend(each.map(|(message, last)| (topic.clone(), message.clone(), last)));
            }
        }
        let mut due = now + self.behaviour.delay_median_ns;
        for (topic, (payload, header), last_value) in all {
            let decoded = match &header {
                Some(header) => Header::decode(header, mark),
                None => Header::decode(&payload, mark),
            };
            let truth = self.note(index, decoded, now, false);
            if let Some(record) = self.truth.as_mut().and_then(|all| all.get_mut(truth)) {
                record.last_value = last_value;
            }
            self.inside += 1;
            // Later messages of its stream wait for it.
            let stream = decoded.map_or(u32::MAX, |h| h.stream);
            self.last_delivery.insert((fleet, client, stream), due);
            let message = BusContent::Message {
                topic,
                payload,
                header,
                redelivered: false,
                last_value,
                lowered: false,
                truth,
            };
            self.send(fleet, client, due, message);
            due += self.behaviour.kept_every_ns;
        }
    }
}
